"""Good lease records whose text is chosen by an enemy: no command may crash on them, or lose the other leases."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.core.lease_records import ENVIRONMENT_NAMES
from symbi_recover.read.evidence.host import boot_id
from tests.crash.drivers.lease import StillHost
from tests.property.strategies import fast
from tests.support.cli import run
from tests.support.writer import lease as made

HOSTILE, NEIGHBOUR = made.LEASE, made.lease_uid(1)
BOOT = str(boot_id())
ODD = st.sampled_from(
    [
        "\0",
        "..",
        "//",
        "%00",
        "\x1b[2J",
        "\u202e",
        "\ud7ff",
        "\U0010ffff",
        "[::1",
        "a" * 300,
        "a" * 5000,
        "\t",
    ]
)
TEXT = st.lists(ODD | st.text(st.characters(codec="utf-8"), max_size=8), max_size=3).map("".join)
VALUE = TEXT.map(lambda text: text.translate({0: "N", 10: "L", 13: "R"}))
HOST = st.sampled_from(["", "unix://", "unix:///tmp/", "tcp://", "ssh://", "npipe://"])
FOLDERS = st.sampled_from(["", "/", "/dev/null/", "/proc/self/"])


def environments() -> st.SearchStrategy[dict[str, str]]:
    odd = st.dictionaries(st.sampled_from(sorted(ENVIRONMENT_NAMES)), VALUE, max_size=4)
    # The default socket may be somebody's real one, which is not asked here.
    host = st.builds(lambda scheme, rest: {"DOCKER_HOST": f"{scheme}{rest}x"}, HOST, VALUE)
    folder = st.builds(
        lambda base, rest: {"DOCKER_CONFIG": base + rest, "DOCKER_CONTEXT": "c"}, FOLDERS, VALUE
    )
    return st.builds(lambda left, right: {**left, **right}, odd, host | folder)


def container(environment: dict[str, str], binary: str, state: dict[str, Any]) -> dict[str, Any]:
    return made.record(HOSTILE, state, docker_environment=environment, docker_binary=f"/{binary}")


def cgroups(rest: str) -> dict[str, Any]:
    # `..` is refused by the format, and a name of its own keeps the path below the root
    path = f"/sys/fs/cgroup/x{rest.replace('..', '.')}"
    return made.cgroup(path, boot_id=BOOT)


def delegated(rest: str, leaf: bool) -> dict[str, Any]:
    parent = cgroups(rest)
    return made.record(HOSTILE, made.host_created(HOSTILE, parent) if leaf else made.host_creating(parent))


STATES = st.sampled_from([made.creating(), made.created(), made.uncertain()])
RECORDS = st.builds(container, environments(), TEXT, STATES) | st.builds(delegated, TEXT, st.booleans())


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="lt", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("symbi_recover.cli.writing.lease_retire.the_host", StillHost)
        patch.setattr("symbi_recover.read.verify.lease_check.RealHost", StillHost)
        yield folder
    shutil.rmtree(folder)


@fast
@given(RECORDS)
def test_no_command_crashes_on_a_good_record_with_hostile_text(place: Path, record: dict[str, Any]) -> None:
    store, home = place / "s", place / "home"
    shutil.rmtree(store, ignore_errors=True)
    neighbour = made.record(NEIGHBOUR, made.uncertain(), docker_environment={"DOCKER_HOST": "tcp://x"})
    made.make_state(store, record, neighbour)

    def say(*words: str) -> bytes:
        ran = run("lease", *words, "--state-dir", store, env={"SYMBI_RECOVER_HOME": str(home)})
        assert ran.rc in (0, 1, 2, 3), (words, ran.rc, ran.err)
        return ran.out

    def lease(*words: str) -> dict[str, Any]:
        return dict(json.loads(say(*words, "--format", "json")))

    report = lease("verify")["report"]
    assert [view["lease"] for view in report["records"]] == sorted([HOSTILE, NEIGHBOUR]), report["findings"]
    assert len(lease("list")["leases"]) == 2
    assert lease("inspect", HOSTILE)["report"]["view"]["lease"] == HOSTILE
    assert len(lease("check", "--timeout", "0.2")["report"]["checks"]) == 2
    assert len(lease("reconcile")["report"]["items"]) == 2
    assert lease("retire", HOSTILE)["report"]["outcome"] == "plan"
    assert lease("witness")["report"]["findings"]
    for words in (("inspect", HOSTILE), ("check", "--timeout", "0.2"), ("retire", HOSTILE)):
        assert HOSTILE.encode() in say(*words)
