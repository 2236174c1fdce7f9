"""Hints about a journal's writer (journal.md section 17): what an honest runtime would not have written.

Everything here is authentic. A hint means that another program held the key, that another runtime version ran, or
that there is a defect. It never changes a verdict. Each kind gives one finding, with the first few places.
"""

import os
from collections import Counter
from collections.abc import Callable
from uuid import UUID

from symbi_recover.core import events as e
from symbi_recover.core.codes import finding
from symbi_recover.core.findings import Finding
from symbi_recover.core.report import Identity
from symbi_recover.core.values import AuditReference
from symbi_recover.core.words import counted
from symbi_recover.read.classify import Finish, Start, approved_fingerprints
from symbi_recover.read.verify.chain import Batch

_SHOWN = 5
Scope = tuple[str, str]
"""Run key and call fingerprint."""


class Hints:
    """Watches the events that a classifier sees, and what the reader notes on the way."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._backwards: list[tuple[int, str, str]] = []
        self._places: dict[str, list[int]] = {}
        self._unconfirmed = False
        self._approved: Counter[tuple[int, str]] = Counter()
        self._open_dispatches: dict[UUID, Scope] = {}
        self._open_nested: dict[Identity, Scope] = {}
        self._dispatching: Counter[Scope] = Counter()
        self._unsettled: Counter[Scope] = Counter()
        """How many open dispatches, and nested effects, there are in a scope."""
        self._delegations: dict[Scope, AuditReference] = {}
        self._budget_kinds: set[type[e.Event]] = set()

    def note(self, batch: Batch) -> None:
        """Note what the chain saw on the way."""
        self._backwards.extend(batch.backwards)
        for code, places in (
            ("not_canonical", batch.not_canonical),
            ("layout_not_writers", batch.layout_odd),
        ):
            if places:
                self._places.setdefault(code, []).extend(places)

    def take(self, sequence: int, iteration: int, event: e.Event, step: Start | Finish | None) -> None:
        """Watch one event that matters, and its `effect_step`."""
        if self._unconfirmed and (isinstance(step, Start) or isinstance(event, e.Started)):
            self._note("start_after_unconfirmed", sequence)
        watch = _WATCHES.get(type(event))
        if watch is not None:
            watch(self, sequence, iteration, event, step)
        if _leaves_unconfirmed(event, step):
            self._unconfirmed = True

    def findings(self, principal: UUID, run: UUID | None, tail: bytes) -> tuple[Finding, ...]:
        """All hints, one finding for each kind."""
        found = [self._finding(code, places) for code, places in sorted(self._places.items())]
        if self._backwards:
            sequence, before, now = self._backwards[0]
            found.append(
                finding(
                    "time_backwards",
                    f"{counted(len(self._backwards), 'record')} dated before the one in front",
                    path=self.path,
                    record=sequence,
                    sequence=sequence,
                    expected=f"not before {before}",
                    actual=now,
                )
            )
        name, written = (
            os.path.basename(self.path),
            f"{principal}.{run}.jsonl" if run else f"{principal}.jsonl",
        )
        if name != written:
            found.append(
                finding(
                    "file_name_differs",
                    "the name is not the writer's",
                    path=self.path,
                    expected=written,
                    actual=name,
                )
            )
        heads = (
            f'{{"payload":{{"entry":{{"agent_id":"{principal}","event":{{"',
            f'{{"payload":{{"version":{2 if run else 1},',
        )
        if tail and not any(tail.startswith(head[: len(tail)].encode()) for head in heads):
            found.append(
                finding(
                    "tail_not_a_prefix",
                    f"the tail of {counted(len(tail), 'byte')} begins otherwise",
                    path=self.path,
                )
            )
        return tuple(found)

    def _finding(self, code: str, places: list[int]) -> Finding:
        shown = ", ".join(map(str, places[:_SHOWN])) + (", …" if len(places) > _SHOWN else "")
        return finding(
            code,
            f"{counted(len(places), 'record')}: {shown}",
            path=self.path,
            record=places[0],
            sequence=places[0],
        )

    def _note(self, code: str, sequence: int) -> None:
        self._places.setdefault(code, []).append(sequence)

    def _policy(self, _sequence: int, iteration: int, event: e.PolicyEvaluated, _step: object) -> None:
        self._approved.update((iteration, f) for f in approved_fingerprints(event) if f is not None)

    def _dispatch(self, sequence: int, iteration: int, event: e.ToolDispatchStarted, _step: object) -> None:
        if (iteration, event.call_fingerprint) not in self._approved:
            self._note("dispatch_without_approval", sequence)
        scope = event.run_key, event.call_fingerprint
        self._open_dispatches[event.dispatch_id] = scope
        self._dispatching[scope] += 1

    def _dispatched(
        self, sequence: int, _iteration: int, event: e.ToolDispatchFinished, _step: object
    ) -> None:
        scope = self._open_dispatches.pop(event.dispatch_id, None)
        if scope is None:
            return
        self._dispatching[scope] -= 1
        if not event.is_error and self._unsettled[scope]:
            self._note("dispatch_hides_unknown", sequence)

    def _nested(
        self, sequence: int, _iteration: int, event: e.ToolEffect, step: Start | Finish | None
    ) -> None:
        scope = event.run_key, event.call_fingerprint
        if not self._dispatching[scope]:
            self._note("effect_outside_dispatch", sequence)
        if isinstance(step, Start):
            self._open_nested[step.identity] = scope
            self._unsettled[scope] += 1
        elif isinstance(step, Finish) and step.confirmed and step.identity in self._open_nested:
            del self._open_nested[step.identity]
            self._unsettled[scope] -= 1

    def _delegation(self, _sequence: int, _iteration: int, event: e.DelegationStarted, _step: object) -> None:
        self._delegations[event.run_key, event.call_id] = event.audit

    def _delegated(self, sequence: int, _iteration: int, event: e.DelegationFinished, _step: object) -> None:
        started = self._delegations.pop((event.run_key, event.call_id), None)
        if started is not None and started != event.audit:
            self._note("delegation_audit_differs", sequence)

    def _budget(self, sequence: int, _iteration: int, event: e.Event, _step: object) -> None:
        self._budget_kinds.add(type(event))
        if len(self._budget_kinds) > 1:
            self._note("budget_opened_and_linked", sequence)

    def _end(self, sequence: int, _iteration: int, event: e.Terminated, _step: object) -> None:
        if self._unconfirmed and event.reason == "Completed":
            self._note("completed_after_unconfirmed", sequence)


_WATCHES: dict[type[e.Event], Callable[..., None]] = {
    e.PolicyEvaluated: Hints._policy,  # noqa: SLF001 -- the table belongs to the class
    e.ToolDispatchStarted: Hints._dispatch,  # noqa: SLF001
    e.ToolDispatchFinished: Hints._dispatched,  # noqa: SLF001
    e.ToolEffect: Hints._nested,  # noqa: SLF001
    e.DelegationStarted: Hints._delegation,  # noqa: SLF001
    e.DelegationFinished: Hints._delegated,  # noqa: SLF001
    e.BudgetOpened: Hints._budget,  # noqa: SLF001
    e.BudgetScopeLinked: Hints._budget,  # noqa: SLF001
    e.Terminated: Hints._end,  # noqa: SLF001
}


def _leaves_unconfirmed(event: e.Event, step: Start | Finish | None) -> bool:
    """Whether the writer would refuse effect starts after this event."""
    match event:
        case e.Terminated() | e.DirectInferenceFinished():
            return event.reason != "Completed"
        case e.BudgetReservationFinished() | e.InferenceCompleted():
            return False
    return isinstance(step, Finish) and not step.confirmed
