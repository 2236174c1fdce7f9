"""Turns authenticated events into effects and a verdict (journal.md section 13), streaming.

`Classifier.take` is given each event that matters, in order, and keeps only the state of effects and approvals.
The first fault is remembered, not raised: a bad line further on would take precedence. `finish` then raises it, or
gives the effects, the warnings and the budget.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import UNSET

from symbi_recover.core import events as e
from symbi_recover.core.refusals import refuse
from symbi_recover.core.report import (
    DelegationDetails,
    DelegationIdentity,
    Details,
    DirectInferenceDetails,
    DirectInferenceIdentity,
    Effect,
    FilePublicationIdentity,
    Identity,
    InferenceDetails,
    InferenceIdentity,
    NetworkRequestDetails,
    NetworkRequestIdentity,
    RecoveredBudget,
    ResponseDeliveryDetails,
    ResponseDeliveryIdentity,
    SharedInferenceDetails,
    SharedInferenceIdentity,
    ToolDispatchDetails,
    ToolDispatchIdentity,
)
from symbi_recover.core.values import Reason
from symbi_recover.read.budget import BudgetLedger
from symbi_recover.wire import canonical

MAX_EFFECTS = 32_768

_NO_START = "No signed run start record."
_NO_END = "No signed terminal record; the run may still be active or interrupted."
_TAIL = (
    "The final fragment is unauthenticated. It may reflect interruption or tampering; the file was preserved."
)
_UNTRACKED = (
    "Some tool approvals lack dispatch lifecycle records; do not infer that their effects did not occur."
)


class Start(NamedTuple):
    """An event that starts an effect."""

    identity: Identity
    details: Details


class Finish(NamedTuple):
    """An event that finishes one, and whether its outcome is confirmed."""

    identity: Identity
    confirmed: bool


class _Open:
    """An effect as it stands."""

    def __init__(self, start: int, details: Details) -> None:
        self.start = start
        self.details = details
        self.finish: int | None = None
        self.confirmed = False


class Classified(NamedTuple):
    """What the events add up to."""

    effects: tuple[Effect, ...]
    started: bool
    reason: Reason | None
    untracked: int
    budget: RecoveredBudget | None

    def complete(self, tail: int) -> bool:
        """Whether the journal is complete, given the length of its tail in bytes."""
        return self.started and self.reason is not None and not tail

    def warnings(self, tail: int) -> tuple[str, ...]:
        """The runtime's warnings, in its order."""
        cases = (
            (not self.started, _NO_START),
            (self.reason is None, _NO_END),
            (tail != 0, _TAIL),
            (self.untracked != 0, _UNTRACKED),
        )
        return tuple(text for applies, text in cases if applies)


class Classifier:
    """Streams events into effects, approvals and the budget."""

    def __init__(self) -> None:
        self._effects: dict[Identity, _Open] = {}
        self._approvals: dict[tuple[int, str], int] = {}
        self._budget = BudgetLedger()
        self._started = False
        self._reason: Reason | None = None
        self._ended_at: int | None = None
        self._fault: tuple[str, int] | None = None
        self._budget_fault: tuple[str, int] | None = None

    def take(
        self, sequence: int, iteration: int, principal: UUID, event: e.Event, step: Start | Finish | None
    ) -> None:
        """Take one event of `MATTERS` and its `effect_step`; others may be given and change nothing."""
        if self._fault is not None:
            return
        code = self._lifecycle(sequence, iteration, principal, event, step)
        if code is not None:
            self._fault = code, sequence
            return
        if self._budget_fault is None and type(event) in _BUDGET:
            code = self._account(sequence, event)
            if code is not None:
                self._budget_fault = code, sequence

    def finish(self, records: int) -> Classified:
        """All of it, for a journal of `records` records.

        Raises:
            JournalRefusedError: with the first fault of the effects, else of the budget.
        """
        if self._fault is None and self._ended_at is not None and self._ended_at + 1 < records:
            self._fault = "record_after_end", self._ended_at + 1
        fault = self._fault or self._budget_fault
        if fault is not None:
            raise refuse(fault[0], _FAULT_SENTENCE, record=fault[1], sequence=fault[1])
        return Classified(
            effects=tuple(
                Effect(
                    identity,
                    effect.start,
                    effect.finish,
                    "result_recorded" if effect.confirmed else "unknown",
                    effect.details,
                )
                for identity, effect in self._effects.items()
            ),
            started=self._started,
            reason=self._reason,
            untracked=sum(self._approvals.values()),
            budget=self._budget.total(),
        )

    def _lifecycle(
        self, sequence: int, iteration: int, principal: UUID, event: e.Event, step: Start | Finish | None
    ) -> str | None:
        if self._ended_at is not None:
            return "record_after_end"
        if type(event) is e.Started:
            if self._started or sequence or event.agent_id != principal:
                return "start_invalid"
            self._started = True
        elif type(event) is e.Terminated:
            self._reason = event.reason
            self._ended_at = sequence
        elif type(event) is e.PolicyEvaluated:
            return self._approve(iteration, event)
        else:
            if type(step) is Start:
                if type(event) is e.ToolDispatchStarted:
                    approval = iteration, event.call_fingerprint
                    if self._approvals.get(approval):
                        self._approvals[approval] -= 1
                return self._start(sequence, step)
            if type(step) is Finish:
                return self._finish(sequence, step)
        return None

    def _approve(self, iteration: int, event: e.PolicyEvaluated) -> str | None:
        for fingerprint in approved_fingerprints(event):
            if fingerprint is None:
                return "approval_without_fingerprint"
            approval = iteration, fingerprint
            self._approvals[approval] = self._approvals.get(approval, 0) + 1
        return None

    def _start(self, sequence: int, step: Start) -> str | None:
        if len(self._effects) >= MAX_EFFECTS or step.identity in self._effects:
            return "effect_repeated"
        self._effects[step.identity] = _Open(sequence, step.details)
        return None

    def _finish(self, sequence: int, step: Finish) -> str | None:
        effect = self._effects.get(step.identity)
        if effect is None:
            return "finish_without_start"
        if effect.finish is not None:
            return "finish_repeated"
        effect.finish, effect.confirmed = sequence, step.confirmed
        return None

    def _account(self, sequence: int, event: e.Event) -> str | None:
        match event:
            case e.BudgetOpened():
                return self._budget.opened(event)
            case e.BudgetReservationStarted():
                return self._budget.started(event, sequence)
            case e.BudgetReservationFinished():
                return self._budget.finished(event, sequence)
        return None


_FAULT_SENTENCE = "the records are authentic, but do not fit together here"
_BUDGET = (e.BudgetOpened, e.BudgetReservationStarted, e.BudgetReservationFinished)


def approved_fingerprints(event: e.PolicyEvaluated) -> list[str | None]:
    """The fingerprints of the approved tool calls; None for one that is not a string."""
    found: list[str | None] = []
    for call in event.approved_calls:
        action = call.get("action") if isinstance(call, dict) else None
        if isinstance(action, dict) and "ToolCall" in action:
            fingerprint = call.get("fingerprint")
            found.append(fingerprint if isinstance(fingerprint, str) else None)
    return found


def effect_step(event: e.Event) -> Start | Finish | None:
    """What an event does to an effect (the table of section 13)."""
    step = _STEPS.get(type(event))
    return None if step is None else step(event)


def _nested(event: e.ToolEffect) -> Start | Finish:
    scope = event.run_key, event.call_fingerprint
    effect = event.effect.value
    match effect:
        case e.FilePublicationPrepared(intent=intent):
            return Start(FilePublicationIdentity(*scope, intent.publication_id), intent)
        case e.FilePublicationFinished():
            confirmed = effect.confirmed and effect.error is None
            return Finish(FilePublicationIdentity(*scope, effect.publication_id), confirmed)
        case e.NetworkRequestStarted():
            outbound = canonical.free(None if effect.outbound is UNSET else effect.outbound)
            return Start(
                NetworkRequestIdentity(*scope, effect.request_id),
                NetworkRequestDetails(effect.method, effect.url, effect.request_hash, outbound),
            )
        case _:
            confirmed = None not in (effect.status, effect.response_hash) and effect.error is None
            return Finish(NetworkRequestIdentity(*scope, effect.request_id), confirmed)


def _shared(event: e.BudgetReservationStarted) -> Start:
    r = event.reservation
    details = SharedInferenceDetails(
        root_id=r.root_id,
        scope=r.ancestors[0].scope if r.ancestors else None,
        provider=r.provider,
        model=r.model,
        request_hash=r.request_hash,
        input_tokens=r.input_tokens,
        output_tokens=r.output_tokens,
        agent_id=r.agent_id,
        audit=r.audit,
    )
    return Start(SharedInferenceIdentity(r.id), details)


_STEPS: dict[type[e.Event], Callable[[Any], Start | Finish]] = {
    e.ToolEffect: _nested,
    e.ToolDispatchStarted: lambda x: Start(
        ToolDispatchIdentity(x.dispatch_id),
        ToolDispatchDetails(x.run_key, x.call_id, x.call_fingerprint, x.tool_name),
    ),
    e.ToolDispatchFinished: lambda x: Finish(ToolDispatchIdentity(x.dispatch_id), not x.is_error),
    e.DelegationStarted: lambda x: Start(
        DelegationIdentity(x.run_key, x.call_id), DelegationDetails(x.target, x.call_fingerprint, x.audit)
    ),
    e.DelegationFinished: lambda x: Finish(DelegationIdentity(x.run_key, x.call_id), x.reason == "Completed"),
    e.InferenceRequested: lambda x: Start(
        InferenceIdentity(x.request_id), InferenceDetails(x.endpoint, x.model, x.request_hash)
    ),
    e.InferenceCompleted: lambda x: Finish(InferenceIdentity(x.request_id), True),
    e.DirectInferenceRequested: lambda x: Start(
        DirectInferenceIdentity(x.call_id),
        DirectInferenceDetails(x.operation, x.provider, x.model, x.request_hash),
    ),
    e.DirectInferenceFinished: lambda x: Finish(
        DirectInferenceIdentity(x.call_id), x.reason == "Completed" and x.response_hash is not None
    ),
    e.BudgetReservationStarted: _shared,
    e.BudgetReservationFinished: lambda x: Finish(SharedInferenceIdentity(x.reservation_id), True),
    e.ResponseDeliveryStarted: lambda x: Start(
        ResponseDeliveryIdentity(x.fingerprint), ResponseDeliveryDetails(x.request_hash)
    ),
    e.ResponseDeliveryFinished: lambda x: Finish(ResponseDeliveryIdentity(x.fingerprint), x.confirmed),
}

MATTERS: frozenset[type[e.Event]] = frozenset(
    {*_STEPS, e.Started, e.Terminated, e.PolicyEvaluated, e.BudgetOpened, e.BudgetScopeLinked}
)
"""The events that a classifier must see; the others change nothing."""
