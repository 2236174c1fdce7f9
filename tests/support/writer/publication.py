"""Live file publications: candidates, intents, signed records and receipts (publication.md sections 2 to 8).

`prepare_publication` makes the candidate file, so that the intent names a real inode, signs the intent into the
invocation's journal, and goes on as far as asked: rename, finished record. The journal still has to be written
by `Invocation.write` afterwards. Receipts come in both member orders of `created_files`.
"""

from pathlib import Path
from typing import Any

from tests.support.writer.claim import Invocation, receipt
from tests.support.writer.effects import file_publication_finished, file_publication_prepared, tool_effect
from tests.support.writer.events import (
    FINGERPRINT,
    RUN_KEY,
    Event,
    approval,
    policy_evaluated,
    tool_call,
    tool_dispatch_finished,
    tool_dispatch_started,
)
from tests.support.writer.journal import JournalWriter
from tests.support.writer.project import put
from tests.support.writer.text import PUBLICATION, digest, merge, plain_hash, uid

RECOVERY_PREFIX = b"symbi-file-publication-recovery:v1\n"
STOCK_ORDER = ("path", "bytes", "sha256")
SORTED_ORDER = ("bytes", "path", "sha256")
ORDERS = {"stock": STOCK_ORDER, "sorted": SORTED_ORDER}


def identity(path: Path) -> list[int]:
    """Return device and inode of what a path names, links not followed."""
    status = path.lstat()
    return [status.st_dev, status.st_ino]


def candidate_name(publication_id: str) -> str:
    """Return the name of a candidate file."""
    return f".symbi-publish-{publication_id}"


def intent(
    publication_id: str,
    parent_path: str,
    parent_identity: list[int],
    candidate_identity: list[int],
    *,
    path: str,
    content: bytes,
    **fields: Any,
) -> dict[str, Any]:
    """Return an intent, members in the order of the format."""
    defaults = {
        "publication_id": publication_id,
        "path": path,
        "parent_path": parent_path,
        "parent_identity": parent_identity,
        "candidate_name": candidate_name(publication_id),
        "candidate_identity": candidate_identity,
        "target_name": path.rsplit("/", 1)[-1],
        "bytes": len(content),
        "sha256": plain_hash(content),
    }
    return merge(defaults, fields)


def receipt_name(scope: str, invocation_id: str, publication_id: str) -> str:
    """Return the file name of a publication receipt."""
    stem = digest(["file-publication-v1", scope, invocation_id, publication_id]).removeprefix("sha256:")
    return f"{stem}.publication.json"


def publication_receipt(
    seed: bytes,
    snapshot: dict[str, Any],
    published: dict[str, Any],
    *,
    order: str = "sorted",
    operator_uid: int = 0,
    recorded_at: str = "2026-03-04T06:01:00.000001Z",
    **fields: Any,
) -> bytes:
    """Return the bytes of a publication receipt; `order` is `sorted` or `stock`."""
    payload = {
        "version": 1,
        "snapshot": snapshot,
        "publication": published,
        "created_files": [{name: published[name] for name in ORDERS[order]}],
        "operator_uid": operator_uid,
        "recorded_at": recorded_at,
    }
    return receipt(seed, RECOVERY_PREFIX, merge(payload, fields))


class Call:
    """An approved and dispatched tool call, open until it is finished; see :func:`begin_call`."""

    def __init__(self, journal: JournalWriter, dispatch_id: str, fingerprint: str, iteration: int) -> None:
        self.journal = journal
        self.dispatch_id = dispatch_id
        self.fingerprint = fingerprint
        self.iteration = iteration

    def effect(self, nested: Event, **fields: Any) -> bytes:
        """Sign a nested effect of this call. Returns the line."""
        return self.journal.append(tool_effect(nested, self.fingerprint, **fields), self.iteration)

    def finish(self, *, is_error: bool = False, **fields: Any) -> bytes:
        """Sign the end of this call. Returns the line."""
        event = tool_dispatch_finished(self.dispatch_id, is_error=is_error, **fields)
        return self.journal.append(event, self.iteration)


def begin_call(
    journal: JournalWriter,
    call_id: str = "call_1",
    tool_name: str = "write_report",
    *,
    iteration: int = 1,
    dispatch_id: str | None = None,
    fingerprint: str | None = None,
) -> Call:
    """Sign the approval and the dispatch of a tool call, as the loop does before any effect."""
    known = call_id == "call_1" and tool_name == "write_report"
    made = fingerprint or (FINGERPRINT if known else digest({"call": call_id, "tool": tool_name}))
    dispatch = dispatch_id or uid("dispatch", journal.agent_id, journal.sequence, call_id)
    approved = approval(tool_call(call_id, tool_name), made)
    journal.append(policy_evaluated(iteration, [approved]), iteration)
    event = tool_dispatch_started(dispatch, call_id, made, tool_name=tool_name, run_key=RUN_KEY)
    journal.append(event, iteration)
    return Call(journal, dispatch, made, iteration)


class Publication:
    """A publication with real files; see :func:`prepare_publication`."""

    def __init__(self, invocation: Invocation, intended: dict[str, Any], parent: Path, call: Call) -> None:
        self.invocation = invocation
        self.intent = intended
        self.id = str(intended["publication_id"])
        self.parent = parent
        self.candidate = parent / str(intended["candidate_name"])
        self.target = parent / str(intended["target_name"])
        self.call = call
        name = receipt_name(invocation.scope, invocation.id, self.id)
        self.receipt_path = invocation.project.invocations / name

    def publish(self) -> None:
        """Rename the candidate to the target."""
        self.candidate.rename(self.target)

    def sign_finished(self, *, confirmed: bool = True, error: str | None = None) -> bytes:
        """Sign `FilePublicationFinished`. Returns the line."""
        return self.call.effect(file_publication_finished(self.id, confirmed=confirmed, error=error))

    def write_receipt(self, **fields: Any) -> Path:
        """Write the publication receipt for the evidence as it is on disk. Returns its path."""
        snapshot = self.invocation.snapshot()
        made = publication_receipt(self.invocation.project.seed, snapshot, self.intent, **fields)
        return put(self.receipt_path, made)


def prepare_publication(
    invocation: Invocation,
    parent: Path,
    name: str = "report.txt",
    content: bytes = b"verified-output",
    *,
    publication_id: str = PUBLICATION,
    path: str | None = None,
    mode: int = 0o600,
    call: Call | None = None,
    publish: bool = False,
    finished: bool | None = None,
    dispatch_finished: bool = False,
    **fields: Any,
) -> Publication:
    """Make a candidate and sign its intent.

    Args:
        invocation: whose journal receives the records.
        parent: folder of candidate and target; made with mode 0755 when missing.
        name: target name.
        content: the bytes to publish.
        publication_id: identity of the publication.
        path: the tool's relative path; the target name by default.
        mode: mode of the candidate.
        call: an open call to record under; a new one is approved and dispatched by default.
        publish: whether to rename the candidate to the target.
        finished: sign `FilePublicationFinished` with this as `confirmed`; None signs nothing.
        dispatch_finished: whether to sign the end of the dispatch as well.
        fields: members of the intent to replace.
    """
    if not parent.exists():
        parent.mkdir()
        parent.chmod(0o755)
    parent = parent.resolve()
    used = call or begin_call(invocation.journal)
    candidate = put(parent / candidate_name(publication_id), content, mode)
    relative = name if path is None else path
    made = intent(
        publication_id,
        str(parent),
        identity(parent),
        identity(candidate),
        path=relative,
        content=content,
    )
    made = merge(made, fields)
    used.effect(file_publication_prepared(made))
    publication = Publication(invocation, made, parent, used)
    if publish:
        publication.publish()
    if finished is not None:
        publication.sign_finished(confirmed=finished, error=None if finished else "output was not published")
    if dispatch_finished:
        used.finish(is_error=finished is False)
    return publication
