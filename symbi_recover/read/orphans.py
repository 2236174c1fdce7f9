"""What no claim of a store accounts for: journals, receipts, and candidates beside publications.

It is told of every examined claim, and asked at the end. Delegated runs have journals without a claim; those that a
verified journal names are no orphans.
"""

from collections.abc import Iterator

from symbi_recover.core.claims import STORE_FILE_LIMIT
from symbi_recover.core.codes import finding
from symbi_recover.core.errors import RecoverError
from symbi_recover.core.findings import Finding
from symbi_recover.core.report import DelegationDetails, SharedInferenceDetails
from symbi_recover.read.entries import Entries, candidates_in, list_journals
from symbi_recover.read.evidence.locate import claim_name, publication_name
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.invocation import Evidence
from symbi_recover.wire.receipt import parse_publication
from symbi_recover.wire.strictjson import JsonError

_MOST_SHOWN = 1000


class Orphans:
    """The names that are not accounted for yet."""

    def __init__(self, store: InvocationStore, entries: Entries) -> None:
        self.store = store
        self._claims = frozenset(entries.claims)
        stems = {name.removesuffix(".jsonl") for name in entries.claims}
        self._resolutions = sorted(
            name for name in entries.resolutions if name.removesuffix(".resolved.json") not in stems
        )
        self._publications = set(entries.publications)
        self._journals = set(list_journals(store))
        self._candidates: dict[str, set[str]] = {}

    def know_journal(self, name: str) -> None:
        """A claim names this journal."""
        self._journals.discard(name)

    def account_for(self, evidence: Evidence) -> None:
        """Take off everything that a verified invocation names."""
        self.know_journal(evidence.facts.journal)
        recovery, snapshot = evidence.recovery, evidence.snapshot
        if recovery is None:
            return
        for intent in (publication.intent for publication in recovery.publications):
            self._publications.discard(publication_name(snapshot.scope, snapshot.id, intent.publication_id))
            self._candidates.setdefault(intent.parent_path, set()).add(intent.candidate_name)
        for details in (effect.details for effect in recovery.effects):
            if isinstance(details, DelegationDetails | SharedInferenceDetails) and details.audit is not None:
                self.know_journal(details.audit.path.rsplit("/", 1)[-1])

    def findings(self) -> tuple[Finding, ...]:
        """What is left, as findings; of each kind at most 1000, and then how many more."""
        return (
            *_listed("journal_without_claim", self.store.governed_path, sorted(self._journals)),
            *_listed("receipt_without_claim", self.store.path, self._resolutions),
            *_listed(
                "receipt_without_claim",
                self.store.path,
                [name for name in sorted(self._publications) if not self._has_claim(name)],
            ),
            *self._stray_candidates(),
        )

    def _has_claim(self, name: str) -> bool:
        """Whether a publication receipt says that it is for a claim that is there, verified or not."""
        try:
            with self.store.open_entry(name) as file:
                snapshot = parse_publication(file.read(STORE_FILE_LIMIT)).payload.snapshot
        except (RecoverError, JsonError):
            return False
        return claim_name(snapshot.scope, snapshot.id) in self._claims

    def _stray_candidates(self) -> Iterator[Finding]:
        for parent, known in sorted(self._candidates.items()):
            yield from _listed("publication_orphan", parent, sorted(candidates_in(parent) - known))


def _listed(code: str, folder: str, names: list[str]) -> Iterator[Finding]:
    for name in names[:_MOST_SHOWN]:
        yield finding(code, name, path=f"{folder}/{name}")
    if len(names) > _MOST_SHOWN:
        yield finding(code, f"and {len(names) - _MOST_SHOWN} more", path=folder)
