"""Invocation claims, snapshots, reviews and resolution receipts (invocation.md sections 4 to 12).

`open_invocation` gives an invocation whose claim and journal are written by `write`; `resolve` signs an operator's review as the runtime would. Members are
in the order of the format's tables. Nothing takes a lock, and nothing is durable: these are fixtures.
"""

from pathlib import Path
from typing import Any

from tests.support.writer.events import Event, started
from tests.support.writer.journal import JournalWriter
from tests.support.writer.project import Project, put
from tests.support.writer.text import (
    ABSENT,
    AGENT,
    INVOCATION,
    RUN,
    Clock,
    compact,
    digest,
    merge,
    plain_hash,
    sign,
)

RESOLUTION_PREFIX = b"symbi-invocation-resolution:v1\n"


def claim_name(scope: str, invocation_id: str) -> str:
    """Return the file name stem of a claim: 64 hex digits."""
    return digest([scope, invocation_id]).removeprefix("sha256:")


def claim_record(
    scope: str, invocation_id: str, request_hash: str, agent_id: str, run_id: str, **fields: Any
) -> bytes:
    """Return record 1; an `admission` keyword makes it version 2, and any member may be replaced."""
    defaults = {
        "kind": "claim",
        "version": 2 if "admission" in fields else 1,
        "scope": scope,
        "id": invocation_id,
        "request_hash": request_hash,
        "agent_id": agent_id,
        "run_id": run_id,
    }
    return compact(merge(defaults, fields)) + b"\n"


def audit_record(reference: dict[str, Any], **fields: Any) -> bytes:
    """Return record 2."""
    return compact(merge({"kind": "audit", "reference": reference}, fields)) + b"\n"


def result_record(payload: Any, **fields: Any) -> bytes:
    """Return record 3."""
    return compact(merge({"kind": "result", "payload": payload}, fields)) + b"\n"


def receipt(seed: bytes, prefix: bytes, payload: dict[str, Any]) -> bytes:
    """Return a signed receipt file: the signature is over prefix and compact payload, in hex, no newline."""
    raw = compact(payload)
    return b'{"payload":' + raw + b',"signature":"' + sign(seed, prefix + raw).hex().encode() + b'"}'


def review(snapshot_hash: str, outcome: str = "no_effects", **fields: Any) -> dict[str, Any]:
    """Return the content of a review file."""
    defaults = {
        "snapshot_hash": snapshot_hash,
        "outcome": outcome,
        "rationale": "Journal is empty and no worker was started.",
        "evidence": [{"reference": "case-17/worker-list.txt", "sha256": "ab" * 32}],
        "effects_stopped": True,
    }
    return merge(defaults, fields)


def resolution_receipt(
    seed: bytes,
    snapshot: dict[str, Any],
    reviewed: dict[str, Any],
    *,
    operator_uid: int = 0,
    recorded_at: str = "2026-03-04T06:00:00.250Z",
    **fields: Any,
) -> bytes:
    """Return the bytes of a resolution receipt."""
    payload = {
        "version": 1,
        "snapshot": snapshot,
        "review": reviewed,
        "operator_uid": operator_uid,
        "recorded_at": recorded_at,
    }
    return receipt(seed, RESOLUTION_PREFIX, merge(payload, fields))


class Invocation:
    """One invocation of a project: its claim, its journal and its receipt; see :func:`open_invocation`."""

    def __init__(
        self, project: Project, scope: str, invocation_id: str, journal: JournalWriter, request_hash: str
    ) -> None:
        self.project = project
        self.scope = scope
        self.id = invocation_id
        self.journal = journal
        self.request_hash = request_hash
        self.admission: Any = ABSENT
        stem = claim_name(scope, invocation_id)
        self.claim_path = project.invocations / f"{stem}.jsonl"
        self.receipt_path = project.invocations / f"{stem}.resolved.json"
        self.journal_path = project.governed / journal.name

    @property
    def binding(self) -> dict[str, Any]:
        """The `execution_context` that ties the journal to the claim."""
        honest = {"id": self.id, "scope": self.scope, "request_hash": self.request_hash}
        return {"invocation": merge(honest, {"admission": self.admission})}

    @property
    def reference(self) -> dict[str, Any]:
        """The audit reference of record 2."""
        return self.journal.reference(self.journal_path)

    def started(self, **fields: Any) -> Event:
        """Return the `Started` event that binds this claim."""
        return started(self.journal.agent_id, self.binding, **fields)

    def records(self, *, result: Any = ABSENT, **fields: Any) -> bytes:
        """Return the claim: records 1 and 2, and record 3 when a result is given."""
        made = merge({"admission": self.admission}, fields)
        first = claim_record(
            self.scope, self.id, self.request_hash, self.journal.agent_id, str(self.journal.run_id), **made
        )
        last = b"" if result is ABSENT else result_record(result)
        return first + audit_record(self.reference) + last

    def write(self, *, result: Any = ABSENT, torn: bytes = b"", claim: bytes | None = None) -> "Invocation":
        """Write journal and claim as they stand; `torn` follows the claim, `claim` replaces its records."""
        self.journal.write(self.journal_path)
        put(self.claim_path, (self.records(result=result) if claim is None else claim) + torn)
        return self

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot of the files as they are on disk, members in the order of the format."""
        return snapshot(self, self.claim_path.read_bytes(), self.journal_path.read_bytes())

    def snapshot_hash(self) -> str:
        """Return the hash that an operator repeats."""
        return digest(self.snapshot())

    def resolve(self, reviewed: dict[str, Any] | None = None, **fields: Any) -> Path:
        """Sign and write the resolution receipt for the files as they are. Returns its path."""
        chosen = review(self.snapshot_hash()) if reviewed is None else reviewed
        made = resolution_receipt(self.project.seed, self.snapshot(), chosen, **fields)
        return put(self.receipt_path, made)


def snapshot(invocation: Invocation, claim: bytes, journal: bytes) -> dict[str, Any]:
    """Return the snapshot of given claim and journal bytes."""
    return {
        "scope": invocation.scope,
        "id": invocation.id,
        "request_hash": invocation.request_hash,
        "agent_id": invocation.journal.agent_id,
        "claim_sha256": plain_hash(claim),
        "journal_sha256": plain_hash(journal),
        "audit": invocation.reference,
    }


def open_invocation(
    project: Project,
    scope: str = "cli:orga",
    invocation_id: str = INVOCATION,
    *,
    agent_id: str = AGENT,
    run_id: str = RUN,
    request: Any = ABSENT,
    request_hash: str | None = None,
    admission: Any = ABSENT,
    clock: Clock | None = None,
    start: bool = True,
) -> Invocation:
    """Return a new invocation in memory; its `write` puts it on disk.

    Args:
        project: the project it belongs to.
        scope: trusted entry point.
        invocation_id: the caller's UUID.
        agent_id: principal of the journal.
        run_id: run of the journal.
        request: the request value that is hashed; a small one by default.
        request_hash: the hash itself, instead of a request.
        admission: object that makes the claim version 2.
        clock: clock of the journal.
        start: whether the journal begins with the binding `Started`; without it the journal is empty.
    """
    asked = {"task": "write the report"} if request is ABSENT else request
    journal = JournalWriter(project.seed, agent_id, run_id, clock)
    made = Invocation(project, scope, invocation_id, journal, request_hash or digest(asked))
    made.admission = admission
    if start:
        journal.append(made.started())
    return made
