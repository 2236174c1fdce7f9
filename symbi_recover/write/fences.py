"""`lease fences`: finds left-over fences by their label, and removes those whose nonce our own notes know.

Containers, images and notes are looked for at every endpoint that a note or a record of the store names. What carries
our label with an unknown nonce is shown and left: a label is no proof. A fence of a run that is at work is left too. What
was agreed to is noted before the first removal, so that the same command ends what an interrupted one began.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from symbi_recover.core.codes import finding
from symbi_recover.core.errors import RecoverError, StaleError
from symbi_recover.core.fences import (
    FENCE_LABEL,
    NONCE_LABEL,
    FenceClearing,
    FenceNote,
    FenceReport,
    FenceView,
)
from symbi_recover.core.findings import Finding
from symbi_recover.core.lease_records import NAME_PREFIX
from symbi_recover.read.daemon.questions import DaemonError
from symbi_recover.read.retirement.engine import why_not_asked
from symbi_recover.read.retirement.host import RealHost
from symbi_recover.read.retirement.notes import CLEARINGS, FENCES, SUFFIX, decoded, read_own
from symbi_recover.wire import canonical
from symbi_recover.wire.retirement import encode
from symbi_recover.write.daemon import EngineHand
from symbi_recover.write.fence import Hands, is_of, lock_note, note_name, remove_fence
from symbi_recover.write.ledger import Recorder
from symbi_recover.write.notes import remove_own, write_own

COMMAND = "lease fences"
_SETTLED_NS = 3_600_000_000_000
_PENDING = (
    "there is no fence, but its creation may still be carried out; ask again when the note is an hour old"
)


def survey(home: str, endpoints: tuple[str, ...], hands: Hands, now_ns: int) -> FenceReport:
    """List every fence; nothing is changed.

    Args:
        home: the operator's folder.
        endpoints: sockets to ask besides those of the notes.
        hands: connects to one. A daemon that a question would only start is not asked.
        now_ns: nanoseconds since 1970; a note without a fence is left until it is an hour old.
    """
    notes, findings = _notes(home)
    host = RealHost()
    everywhere = tuple(sorted({*endpoints, *(note.endpoint for note in notes)}))
    views: list[FenceView] = []
    for endpoint in everywhere:
        asleep = why_not_asked(endpoint, host)
        if asleep is not None:
            findings.append(finding("engine_asleep", asleep, path=endpoint))
            continue
        hand = hands(endpoint)
        try:
            views += _at(hand, endpoint, [note for note in notes if note.endpoint == endpoint], now_ns)
        except DaemonError as error:
            findings.append(finding(error.code, error.message, path=endpoint))
        finally:
            hand.close()
    return FenceReport(
        endpoints=everywhere,
        executed=False,
        plan_hash=_hash(views),
        fences=tuple(views),
        findings=tuple(findings),
    )


def _notes(home: str) -> tuple[list[FenceNote], list[Finding]]:
    notes: list[FenceNote] = []
    findings: list[Finding] = []
    for own in read_own(home, FENCES):
        note = decoded(own, FenceNote)
        if isinstance(note, str) or note_name(note) != own.name:
            why = note if isinstance(note, str) else "its name is not that of its content"
            findings.append(finding("operator_file_unusable", why, path=own.path))
        else:
            notes.append(note)
    return notes, findings


def _at(hand: EngineHand, endpoint: str, notes: list[FenceNote], now_ns: int) -> Iterator[FenceView]:
    seen: set[str] = set()
    for container in hand.fences():
        named = next((note for note in notes if is_of(container.labels, note)), None)
        ours = (
            named is not None
            and f"{NAME_PREFIX}{named.lease}" in container.names
            and container.state == "created"
        )
        seen |= {named.nonce} if named is not None else set()
        yield _view(
            "container",
            container.id,
            ", ".join(container.names),
            container.labels,
            endpoint,
            container.state,
            ours,
        )
    for image in hand.fence_images():
        named = next((note for note in notes if is_of(image.labels, note)), None)
        seen |= {named.nonce} if named is not None else set()
        yield _view(
            "image", image.id, ", ".join(image.tags), image.labels, endpoint, "there", named is not None
        )
    for note in notes:
        if note.nonce not in seen:
            yield FenceView(
                kind="note",
                id=note.nonce,
                name=note_name(note),
                lease=note.lease,
                nonce=note.nonce,
                endpoint=endpoint,
                state="without a fence",
                ours=True,
                code="fence_note_stale",
                outcome="planned" if _is_settled(note, now_ns) else "left",
            )


def _is_settled(note: FenceNote, now_ns: int) -> bool:
    """Whether a creation that is not there now is out of the question."""
    return now_ns - note.at_ns >= _SETTLED_NS


def _view(
    kind: str, one: str, name: str, labels: dict[str, str], endpoint: str, state: str, ours: bool
) -> FenceView:
    return FenceView(
        kind="container" if kind == "container" else "image",
        id=one,
        name=name,
        lease=labels.get(FENCE_LABEL, ""),
        nonce=labels.get(NONCE_LABEL, ""),
        endpoint=endpoint,
        state=state,
        ours=ours,
        code="fence_own" if ours else "fence_foreign",
        outcome="planned" if ours else "left",
    )


def _hash(views: list[FenceView]) -> str:
    acts = [
        [one.kind, one.id, one.lease, one.nonce, one.endpoint] for one in views if one.outcome == "planned"
    ]
    return canonical.digest(["lease-fences-v1", acts]).removeprefix("sha256:")


def clear(
    home: str, endpoints: tuple[str, ...], hands: Hands, *, confirm: str, recorder: Recorder, now_ns: int
) -> FenceReport:
    """Remove our own left-over fences. A note without a fence goes once it is an hour old.

    Args:
        home: the operator's folder.
        endpoints: as for `survey`.
        hands: connects to one.
        confirm: hash of the plan that was reviewed.
        recorder: of the ledger.
        now_ns: nanoseconds since 1970.

    Raises:
        StaleError: `plan_changed`.
    """
    plan = survey(home, endpoints, hands, now_ns)
    agreed, remarks = _consented(plan, home, confirm)
    if agreed is None:
        return replace(plan, executed=True)
    todo = any(one.outcome == "planned" and one.nonce in agreed.nonces for one in plan.fences)
    recorder.begin(COMMAND, {"home": home, "confirm": confirm}, confirm, anew=todo)
    outcomes: dict[str, tuple[str, str]] = {}
    notes, unusable = _notes(home)
    if unusable:
        why = f"its note cannot be read: {unusable[0].message}"
        outcomes = dict.fromkeys(agreed.nonces, ("failed", why))
    for note in notes:
        if note.nonce in agreed.nonces:
            certain = note.nonce in agreed.seen or _is_settled(note, now_ns)
            outcomes[note.nonce] = _clear_one(home, note, hands, certain=certain)
    views = tuple(_after(one, outcomes) for one in plan.fences)
    failed = any(one.outcome == "failed" for one in views)
    recorder.finish("failed" if failed else "done")
    reasons = [
        finding(_left_code(why) if outcome == "left" else "fence_left", why)
        for outcome, why in outcomes.values()
        if outcome != "done"
    ]
    return replace(plan, executed=True, fences=views, findings=(*plan.findings, *reasons, *remarks))


def _consented(
    plan: FenceReport, home: str, confirm: str
) -> tuple[FenceClearing | None, tuple[Finding, ...]]:
    """What the operator agreed to, noted durably, or what an interrupted run noted; None if there is nothing to do.

    Raises:
        StaleError: `plan_changed`.
    """
    planned = [one for one in plan.fences if one.outcome == "planned"]
    earlier = _earlier(home, confirm)
    if earlier is not None:
        return earlier, ()
    if not planned:
        return None, ()
    if plan.plan_hash != confirm:
        raise StaleError(
            "plan_changed",
            "the fences are not those that were reviewed",
            hint=f"the hash is {plan.plan_hash} now",
        )
    nonces = dict.fromkeys(one.nonce for one in planned)
    seen = dict.fromkeys(one.nonce for one in planned if one.kind == "container")
    made = FenceClearing(nonces=tuple(nonces), seen=tuple(seen))
    return made, write_own(home, CLEARINGS, confirm + SUFFIX, encode(made)).remarks


def _earlier(home: str, confirm: str) -> FenceClearing | None:
    for own in read_own(home, CLEARINGS, prefix=confirm + SUFFIX):
        noted = decoded(own, FenceClearing)
        if not isinstance(noted, str):
            return noted
    return None


def _left_code(why: str) -> str:
    return "fence_note_stale" if why == _PENDING else "fence_in_use"


def _after(one: FenceView, outcomes: dict[str, tuple[str, str]]) -> FenceView:
    if not one.ours or one.nonce not in outcomes:
        return replace(one, outcome="left")
    outcome, why = outcomes[one.nonce]
    if outcome == "left" and not (why == _PENDING and one.kind == "image"):
        return replace(one, outcome="left", code=_left_code(why))
    return replace(one, outcome="failed" if outcome == "failed" else "done")


def _clear_one(home: str, note: FenceNote, hands: Hands, *, certain: bool) -> tuple[str, str]:
    """What became of one note's fence: done, left or failed, and why.

    Without certainty a note stays whose fence is not there: its creation may still be carried out. An engine that the
    question would start is not asked: its start would later look like a proof.
    """
    asleep = why_not_asked(note.endpoint, RealHost())
    if asleep is not None:
        return "left", asleep
    try:
        lock = lock_note(home, note)
        if lock is None:
            return "left", f"the fence of lease {note.lease} belongs to a run that is at work"
        hand = hands(note.endpoint)
        try:
            removal = remove_fence(hand, note)
            if removal.why is None and (certain or removal.removed):
                remove_own(home, FENCES, note_name(note))
        finally:
            hand.close()
            lock.release()
    except RecoverError as error:
        return "failed", f"{error.code}: {error.message}"
    if removal.why is not None:
        return "failed", removal.why
    return ("done", "") if certain or removal.removed else ("left", _PENDING)


def has_own(home: str, lease: str) -> bool:
    """Whether an interrupted run of a lease may have left a fence."""
    return any(note.lease == lease for note in _notes(home)[0])


def clear_own(home: str, lease: str, hands: Hands, *, certain: bool) -> list[str]:
    """Remove what interrupted runs of one lease left; reasons why something is left.

    Args:
        home: the operator's folder.
        lease: whose fences.
        hands: connects to an endpoint.
        certain: no request of an interrupted run can still be carried out, so that the notes may go as well.
    """
    notes, _ = _notes(home)
    results = [_clear_one(home, note, hands, certain=certain) for note in notes if note.lease == lease]
    return [why for outcome, why in results if outcome != "done" and why != _PENDING]
