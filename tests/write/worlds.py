"""Small projects for tests of the writing rooms, and ways to call them with a clock that is told the time."""

import json
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from symbi_recover.core.claims import Review
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.wire.review import parse_review
from symbi_recover.write.assess import Assessment, Reconciled, reconcile
from symbi_recover.write.ledger import Ledger, Recorder
from symbi_recover.write.publish import Recovered, recover
from symbi_recover.write.sign import Signer
from tests.support.cli import Ran, run
from tests.support.writer.claim import Invocation, open_invocation, review
from tests.support.writer.project import make_project, put
from tests.support.writer.publication import Publication, prepare_publication
from tests.support.writer.text import SEED, nanoseconds, public_key

NOW = "2026-03-04T07:08:09.123456789Z"


def clock(text: str = NOW) -> Callable[[], int]:
    """A clock that stands still."""
    return lambda: nanoseconds(text)


def interrupted(folder: Path, **options: Any) -> Invocation:
    """An invocation whose journal was begun and never ended."""
    return open_invocation(make_project(folder / "p"), **options).write()


def publishing(folder: Path, *, publish: bool = False, content: bytes = b"verified-output") -> Publication:
    """An invocation that was interrupted while it published a file."""
    invocation = open_invocation(make_project(folder / "p"))
    publication = prepare_publication(invocation, folder / "out", content=content, publish=publish)
    invocation.write()
    return publication


def reviewed(invocation: Invocation, **fields: Any) -> Review:
    """A complete review of the evidence as it is."""
    return parse_review(json.dumps(review(invocation.snapshot_hash(), **fields)).encode())


def operator_home(folder: Path) -> Path:
    """An operator's folder with the marked test key."""
    home = folder / "operator"
    home.mkdir(mode=0o700)
    put(home / "operator.key", SEED)
    put(home / "operator.pub", public_key(SEED).encode() + b"\n")
    return home


def recorder(home: Path, at: str = NOW) -> Recorder:
    """A recorder in an operator's folder."""
    return Recorder(Ledger(str(home), Signer(SEED), clock(at)))


SILENT = "a test"


def assess(
    invocation: Invocation, asked: Review | None = None, *, record: Recorder | None = None, at: str = NOW
) -> Reconciled:
    """Reconcile through the library."""
    wanted = Assessment(
        scope=invocation.scope,
        id=UUID(invocation.id),
        review=asked or reviewed(invocation),
        cron_store=None,
    )
    with InvocationStore(str(invocation.project.root)) as store:
        return reconcile(store, wanted, clock=clock(at), record=record or Recorder(None, SILENT))


def finish(
    publication: Publication,
    snapshot_hash: str | None = None,
    *,
    record: Recorder | None = None,
    at: str = NOW,
) -> Recovered:
    """Recover a publication through the library."""
    invocation = publication.invocation
    which = invocation.scope, UUID(invocation.id), UUID(publication.id)
    with InvocationStore(str(invocation.project.root)) as store:
        return recover(
            store,
            which,
            snapshot_hash or invocation.snapshot_hash(),
            clock=clock(at),
            record=record or Recorder(None, SILENT),
        )


def command(name: str, invocation: Invocation, *more: str | Path, env: dict[str, str] | None = None) -> Ran:
    """Run an `invocation` command on an invocation."""
    where = ["--project", invocation.project.root, "--scope", invocation.scope, "--id", invocation.id]
    return run("invocation", name, *where, *more, env=env)


@contextmanager
def nothing_changes(*folders: Path) -> Any:
    """Names, bytes, modes and times below the folders are the same afterwards; `store.lock` may appear."""
    before = [picture(folder) for folder in folders]
    yield
    assert [picture(folder) for folder in folders] == before


def picture(folder: Path) -> dict[str, Any]:
    """What lies below a folder: kinds, modes, inodes, times, and content of files."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.name == "store.lock":
            continue
        status = path.lstat()
        shown: tuple[Any, ...] = (oct(status.st_mode), status.st_ino, status.st_nlink)
        if path.is_file() and not path.is_symlink():
            shown += (path.read_bytes(), status.st_mtime_ns)
        found[str(path.relative_to(folder))] = shown
    return found
