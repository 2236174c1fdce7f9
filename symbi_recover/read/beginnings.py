"""Which invocation each journal of a project says that it is of, by its first record, whose signature is not checked.

A claim that lacks a record cannot say whether its owner was stopped before anything was executed, or whether it was
damaged after that (invocation.md section 7). A journal that names the invocation shows that its run began. That there is
none shows nothing.
"""

from symbi_recover.core.claims import ClaimRecord
from symbi_recover.core.errors import RecoverError
from symbi_recover.core.events import Payload, Started
from symbi_recover.core.words import counted
from symbi_recover.read.entries import list_journals
from symbi_recover.read.evidence.locate import claim_name, journal_name
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.wire import exact
from symbi_recover.wire.exact import parse_uuid
from symbi_recover.wire.journal import MAX_RECORD, SignatureFormError, envelope
from symbi_recover.wire.strictjson import JsonError

_USUAL = 1 << 16
"""Bytes in which the first record of a journal usually ends."""
_MOST = 1 << 26
"""Bytes that are read of all journals together."""
_NAMED = 3
"""Journals that are named for one claim."""
BEGAN = (
    "Keep the claim, and look for an earlier copy of it. Check that journal with `audit verify`, and treat its effects "
    "as those of an interrupted run."
)


class Beginnings:
    """The journals of an open store by the claim whose invocation they name; read once, when first asked."""

    def __init__(self, store: InvocationStore) -> None:
        self.store = store
        self._journals: dict[str, list[str]] | None = None
        self._all = True

    def explain(self, error: RecoverError, name: str, claim: ClaimRecord | None) -> None:
        """Add to the refusal of an incomplete claim what the journals say of it.

        Args:
            error: `claim_incomplete`.
            name: file name of the claim.
            claim: its first record, if it has that.
        """
        if self._journals is None:
            self._journals = self._read()
        found = self._journals.get(name, [])
        own = None if claim is None else journal_name(claim.agent_id, claim.run_id)
        if found:
            more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            paths = ", ".join(f"{self.store.governed_path}/{journal}" for journal in found[:_NAMED])
            error.detail = f"the run began, for its invocation is named by the first record (signature not checked) of {paths}{more}"
            error.hint = BEGAN
        elif own is not None and (size := self._size(own)) is not None:
            error.detail = (
                f"its journal {self.store.governed_path}/{own} holds {counted(size, 'byte')}, "
                "and no first record that names the invocation"
            )
        else:
            which = "no journal" if self._all else "none of the journals that were looked at"
            error.detail = (
                f"{which} in {self.store.governed_path} names its invocation, "
                "which does not show that nothing ran"
            )

    def _read(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        left = _MOST
        for name in sorted(list_journals(self.store)):
            if left <= 0:
                self._all = False
                break
            try:
                with self.store.open_journal(name) as journal:
                    line = first_line(journal)
                started = _started(line)
            except (JsonError, SignatureFormError, RecoverError):
                continue
            left -= len(line)
            invocation = _named(started)
            if invocation is not None:
                found.setdefault(invocation, []).append(name)
        return found

    def _size(self, name: str) -> int | None:
        try:
            with self.store.open_journal(name) as journal:
                return journal.facts.size
        except RecoverError:
            return None


def first_line(journal: OpenedFile) -> bytes:
    """The first line of a journal with its line feed, or what there is of it; at most one record's length."""
    for most in (_USUAL, MAX_RECORD):
        head, feed, _ = b"".join(journal.blocks(0, min(most, journal.facts.size))).partition(b"\n")
        if feed:
            break
    return head + feed


def started_exactly(journal: OpenedFile) -> Started | None:
    """The start event with numbers as the runtime reads them, which the fast decoder may read differently.

    Raises:
        JsonError, SignatureFormError: the first line is no record.
    """
    return _started(first_line(journal))


def _started(line: bytes) -> Started | None:
    payload, _, _ = envelope(line)
    event = exact.read(payload, Payload).entry.event
    return event if isinstance(event, Started) else None


def _named(started: Started | None) -> str | None:
    """The file name of the claim whose invocation a start event names."""
    context = None if started is None else started.execution_context
    named = context.get("invocation") if isinstance(context, dict) else None
    scope, text = (named.get("scope"), named.get("id")) if isinstance(named, dict) else (None, None)
    value = parse_uuid(text) if isinstance(text, str) else None
    return claim_name(scope, value) if isinstance(scope, str) and value is not None else None
