"""The next command that is printed is about the same evidence, and trusts the same keys, as the one that was typed."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.support.cli import Ran, run
from tests.support.sample_journals import KEY, small
from tests.support.writer.claim import Invocation, open_invocation, review
from tests.support.writer.cron_store import cron_project
from tests.support.writer.project import make_project
from tests.support.writer.publication import prepare_publication
from tests.support.writer.text import RUN, SEED, public_key
from tests.write.lease_rig import OWNED, Reconcile, Retire, rig
from tests.write.worlds import publishing

OTHER_PUBLICATION = "12121212-3434-4545-8656-787878787878"


@pytest.fixture
def unresolved(tmp_path: Path) -> Invocation:
    return open_invocation(make_project(tmp_path / "p q")).write()


def typed(text: str) -> list[str]:
    """The words of the last printed command as a shell reads them."""
    printed = re.findall(r"symbi-recover (?:invocation|audit|lease) [^\n`]*", text)[-1]
    shell = subprocess.run(["bash", "-c", f"printf '%s\\0' {printed}"], capture_output=True, check=True)
    return shell.stdout.decode("utf-8", "surrogateescape").split("\0")[1:-1]


def asked(invocation: Invocation, name: str, *more: str) -> Ran:
    who = ["--project", str(invocation.project.root), "--scope", invocation.scope, "--id", invocation.id]
    return run("invocation", name, *who, *more, "--format", "text")


def test_inspection_hands_the_given_key_on(unresolved: Invocation) -> None:
    words = typed(asked(unresolved, "inspect", "--public-key", public_key(SEED)).text)
    assert words[:2] == ["invocation", "draft-review"]
    assert words[words.index("--public-key") + 1] == public_key(SEED)
    assert words[words.index("--project") + 1] == str(unresolved.project.root)


def test_without_a_given_key_none_is_invented(unresolved: Invocation) -> None:
    words = typed(asked(unresolved, "inspect").text)
    assert "--public-key" not in words
    assert "--trust" not in words


def pem() -> str:
    raw = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key(SEED)))
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return raw.public_bytes(serialization.Encoding.PEM, form).decode()


def test_a_key_with_line_ends_is_read_back_by_the_shell_and_accepted(
    unresolved: Invocation, tmp_path: Path
) -> None:
    ran = asked(unresolved, "inspect", f"--public-key={pem()}")
    assert ran.rc == 2
    words = typed(ran.text)
    assert f"--public-key={pem()}" in words
    words[-1] = "no_effects"
    assert run(*words, "--output", tmp_path / "r.json").rc == 0


def test_a_trust_file_is_handed_on_and_the_printed_command_runs(
    unresolved: Invocation, tmp_path: Path
) -> None:
    file = tmp_path / "it's trust"
    root = str(unresolved.project.root)
    assert run("trust", "add", public_key(SEED), "--project", root, "--file", file).rc == 0
    words = typed(asked(unresolved, "inspect", "--trust", str(file)).text)
    assert words[words.index("--trust") + 1] == str(file)
    words[-1] = "no_effects"
    ran = run(*words, "--output", tmp_path / "r.json", "--format", "text")
    assert ran.rc == 0
    following = typed(ran.text)
    assert following[:2] == ["invocation", "reconcile"]
    assert following[following.index("--trust") + 1] == str(file)
    assert following[following.index("--review") + 1] == str(tmp_path / "r.json")


def test_the_list_names_the_project_and_hands_the_given_key_on(unresolved: Invocation) -> None:
    root = unresolved.project.root
    ran = run("invocation", "list", "--project", root, "--public-key", public_key(SEED), "--format", "text")
    words = typed(ran.text.splitlines()[-1])
    where = ["--project", str(root), "--scope", "SCOPE", "--id", "ID"]
    assert words == ["invocation", "inspect", *where, "--public-key", public_key(SEED)]
    ran = run("invocation", "list", "--project", root, "--format", "text")
    assert typed(ran.text.splitlines()[-1]) == ["invocation", "inspect", *where]


def test_the_list_of_many_projects_leaves_the_project_to_be_put_in(unresolved: Invocation) -> None:
    above = unresolved.project.root.parent
    ran = run("invocation", "list", "--project", above, "--recursive", "--format", "text")
    assert typed(ran.text.splitlines()[-1])[2:4] == ["--project", "PROJECT"]


def test_the_commands_of_a_publication_hand_the_key_on(tmp_path: Path) -> None:
    invocation = publishing(tmp_path).invocation
    key = ("--public-key", public_key(SEED))
    shown = asked(invocation, "inspect", *key)
    words = typed(shown.text)
    assert words[:2] == ["invocation", "file-inspect"]
    assert words[words.index("--public-key") + 1] == key[1]
    states = typed(run(*words, "--format", "text").text)
    assert states[:2] == ["invocation", "file-recover"]
    assert states[states.index("--public-key") + 1] == key[1]
    plan = run(*states[:-2], "--format", "text")
    assert typed(plan.text) == states


@pytest.mark.parametrize("others", [0, 1])
def test_a_publication_whose_end_is_signed_is_not_the_next_thing_to_look_at(
    tmp_path: Path, others: int
) -> None:
    invocation = open_invocation(make_project(tmp_path / "p"))
    prepare_publication(invocation, tmp_path / "out", publish=True, finished=True)
    for _ in range(others):
        prepare_publication(invocation, tmp_path / "more", publication_id=OTHER_PUBLICATION)
    words = typed(asked(invocation.write(), "inspect").text)
    assert words[1] == ("file-inspect" if others else "draft-review")
    assert (OTHER_PUBLICATION in words) == bool(others)


def test_a_review_that_is_not_complete_hands_key_and_schedule_on(
    unresolved: Invocation, tmp_path: Path
) -> None:
    file = tmp_path / "my review.json"
    file.write_text(json.dumps(review(unresolved.snapshot_hash(), effects_stopped=False)))
    ran = asked(unresolved, "reconcile", "--review", str(file), "--public-key", public_key(SEED))
    assert ran.rc == 1
    words = typed(ran.err.decode())
    assert words[words.index("--public-key") + 1] == public_key(SEED)
    assert words[words.index("--review") + 1] == str(file)


def journal(folder: Path) -> Path:
    made = small(end=False)
    return made.write(folder / f"my {made.name}")


@pytest.mark.parametrize("verb", ["inspect", "verify", "show"])
@pytest.mark.parametrize("key", ["hex", "PEM"])
def test_the_commands_of_a_journal_hand_the_key_on(tmp_path: Path, verb: str, key: str) -> None:
    path = journal(tmp_path)
    given = KEY if key == "hex" else pem()
    who = ["--run-id", RUN] if verb == "inspect" else []
    ran = run("audit", verb, path, *who, f"--public-key={given}", "--format", "text")
    words = typed(ran.text.splitlines()[-1])
    assert words[:2] == (["audit", "verify"] if verb == "show" else ["invocation", "inspect"])
    assert " ".join(words).endswith(f"--public-key {given}" if key == "hex" else f"--public-key={given}")
    if verb == "show":
        assert words[2] == str(path)
        assert run(*words).rc == 2


@pytest.mark.parametrize("verb", ["inspect", "verify"])
def test_a_journal_names_its_invocation_in_a_command_that_runs_as_it_is(
    verb: str, unresolved: Invocation
) -> None:
    path = unresolved.journal_path
    who = ["--run-id", RUN] if verb == "inspect" else []
    ran = run("audit", verb, path, *who, "--public-key", public_key(SEED), "--format", "text")
    words = typed(ran.text.splitlines()[-1])
    assert words[words.index("--project") + 1] == str(unresolved.project.root)
    assert words[words.index("--scope") + 1] == unresolved.scope
    assert words[words.index("--id") + 1] == unresolved.id
    assert run(*words).rc == 2


def test_a_copied_journal_leaves_the_project_to_be_put_in(unresolved: Invocation, tmp_path: Path) -> None:
    path = tmp_path / unresolved.journal_path.name
    path.write_bytes(unresolved.journal_path.read_bytes())
    ran = run("audit", "verify", path, "--public-key", public_key(SEED), "--format", "text")
    words = typed(ran.text.splitlines()[-1])
    assert words[words.index("--project") + 1] == "PROJECT"
    assert words[words.index("--id") + 1] == unresolved.id


def test_a_run_that_names_no_invocation_leaves_it_to_be_put_in(tmp_path: Path) -> None:
    ran = run("audit", "verify", journal(tmp_path), "--public-key", KEY, "--format", "text")
    words = typed(ran.text.splitlines()[-1])
    assert words[2:8] == ["--project", "PROJECT", "--scope", "SCOPE", "--id", "ID"]


def test_a_journal_checked_with_pinned_keys_hands_their_file_on(tmp_path: Path) -> None:
    path, file = journal(tmp_path), tmp_path / "trust"
    assert run("trust", "add", KEY, "--file", file).rc == 0
    ran = run("audit", "verify", path, "--trust", file, "--format", "text")
    assert typed(ran.text)[-2:] == ["--trust", str(file)]


def test_the_lease_commands_hand_on_what_the_hash_and_the_verdict_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = str(os.geteuid())
    with rig(Reconcile(), tmp_path, monkeypatch) as made:
        ran = made.cli("reconcile", OWNED, "--helper-uid", me, "--format", "text")
        words = typed(ran.text)
        assert words[:2] == ["lease", "reconcile"]
        assert words[words.index("--helper-uid") + 1] == me
        assert OWNED in words
        env = {"SYMBI_RECOVER_HOME": str(made.made.home)}
        assert run(*words, env=env).rc == 0


def test_a_retirement_hands_on_what_was_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviewed = tmp_path / "re viewed"
    reviewed.write_text("")
    accepted = ["--reviewed-wrappers", str(reviewed), "--acknowledge-staging", "--accept-wall-clock"]
    with rig(Retire(), tmp_path, monkeypatch) as made:
        words = typed(made.cli("retire", OWNED, *accepted, "--format", "text").text)
        assert [word for word in words if word in accepted] == accepted
        env = {"SYMBI_RECOVER_HOME": str(made.made.home)}
        assert run(*words, env=env).rc == 0


def test_a_review_of_a_scheduled_run_hands_the_database_on(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    invocation = cron_project(project)
    database, file = project.state / "cron_jobs.db", tmp_path / "review.json"
    file.write_text(json.dumps(review(invocation.snapshot_hash(), effects_stopped=False)))
    ran = asked(invocation, "reconcile", "--review", str(file), "--cron-store", str(database))
    words = typed(ran.err.decode())
    assert words[words.index("--cron-store") + 1] == str(database)
