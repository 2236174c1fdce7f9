"""Adds up a shared budget from its signed records (journal.md section 15).

`BudgetLedger` takes the three events that count, in order, and gives the code of a fault instead of raising it,
because any fault in a line or in the effects takes precedence; it is then given no more. Quantities are tokens,
unsigned 32-bit.
"""

from uuid import UUID

from symbi_recover.core.events import BudgetOpened, BudgetReservationFinished, BudgetReservationStarted
from symbi_recover.core.report import RecoveredBudget, RecoveredReservation
from symbi_recover.core.values import Accounting, BudgetSnapshot, Reservation, ScopeId, Usage

MAX_RESERVATIONS = 32_768
MAX_SCOPES = 4096
_U32_MAX = 2**32 - 1
_NIL = UUID(int=0)


class _Scope:
    """One scope as it stands."""

    def __init__(self, parent: int | None, limit: int) -> None:
        self.parent = parent
        self.limit = limit
        self.prompt = self.completion = self.total = 0
        self.reserved = 0
        self.uncertain = 0
        self.exceeded = False

    @property
    def own_available(self) -> int:
        if self.exceeded:
            return 0
        return max(0, self.limit - self.total - self.uncertain - self.reserved)


class _Held:
    """A reservation and its settlement, if any."""

    def __init__(self, reservation: Reservation, start: int, amount: int) -> None:
        self.reservation = reservation
        self.start = start
        self.amount = amount
        self.finish: int | None = None
        self.outcome: Accounting = "unknown"
        self.usage: Usage | None = None


class BudgetLedger:
    """The scopes and reservations of one shared budget as they stand."""

    def __init__(self) -> None:
        self._root: UUID | None = None
        self._scopes: dict[int, _Scope] = {}
        self._held: dict[UUID, _Held] = {}

    def opened(self, event: BudgetOpened) -> str | None:
        """Open the root budget; give the code of a fault, or None."""
        if event.root_id == _NIL or self._root is not None:
            return "budget_root_repeated"
        self._root = event.root_id
        self._scopes[0] = _Scope(None, event.limit)
        return None

    def started(self, event: BudgetReservationStarted, sequence: int) -> str | None:
        """Reserve; give the code of a fault, or None."""
        r = event.reservation
        if self._root is None or r.root_id != self._root or r.id == _NIL or r.id in self._held:
            return "budget_reservation_identity"
        if len(self._held) >= MAX_RESERVATIONS:
            return "budget_reservation_identity"
        amount = r.input_tokens + r.output_tokens
        if amount > _U32_MAX:
            return "budget_amount_overflow"
        last = r.ancestors[-1] if r.ancestors else None
        if (
            r.output_tokens == 0
            or last is None
            or len(r.ancestors) > MAX_SCOPES
            or (last.scope, last.parent) != (0, None)
        ):
            return "budget_allowance_shape"
        fault = self._admit(r.ancestors, amount)
        if fault is None:
            for link in r.ancestors:
                self._scopes[link.scope].reserved += amount
            self._held[r.id] = _Held(r, sequence, amount)
        return fault

    def _admit(self, ancestors: tuple[ScopeId, ...], amount: int) -> str | None:
        seen: set[int] = set()
        below_parent: ScopeId | None = None
        for link in reversed(ancestors):
            parent = below_parent.scope if below_parent else None
            if link.scope >= MAX_SCOPES or link.scope in seen or link.parent != parent:
                return "budget_ancestry"
            if parent is not None and link.limit > self._scopes[parent].limit:
                return "budget_child_allowance"
            scope = self._scopes.setdefault(link.scope, _Scope(link.parent, link.limit))
            if (scope.parent, scope.limit) != (link.parent, link.limit):
                return "budget_scope_changed"
            if scope.own_available < amount:
                return "budget_overdrawn"
            seen.add(link.scope)
            below_parent = link
        return None

    def finished(self, event: BudgetReservationFinished, sequence: int) -> str | None:
        """Settle; give the code of a fault, or None."""
        if self._root is None or event.root_id != self._root:
            return "budget_settlement_root"
        held = self._held.get(event.reservation_id)
        if held is None:
            return "budget_settlement_unknown"
        if held.finish is not None:
            return "budget_settlement_repeated"
        outcome = _accounting(event.usage, held)
        if outcome != event.outcome:
            return "budget_settlement_outcome"
        for link in held.reservation.ancestors:
            _settle(self._scopes[link.scope], held.amount, event.usage, outcome)
        held.finish, held.outcome, held.usage = sequence, outcome, event.usage
        return None

    def total(self) -> RecoveredBudget | None:
        """The budget with every open reservation counted as uncertain; None if none was opened."""
        if self._root is None:
            return None
        for held in self._held.values():
            if held.finish is None:
                for link in held.reservation.ancestors:
                    scope = self._scopes[link.scope]
                    scope.reserved -= held.amount
                    scope.uncertain += held.amount
        return RecoveredBudget(
            root_id=self._root,
            scopes=tuple(self._snapshot(self._root, number) for number in sorted(self._scopes)),
            reservations=tuple(
                RecoveredReservation(held.reservation, held.start, held.finish, held.outcome, held.usage)
                for held in self._held.values()
            ),
        )

    def _snapshot(self, root: UUID, number: int) -> BudgetSnapshot:
        own = self._scopes[number]
        available, exceeded = own.own_available, own.exceeded
        parent = own.parent
        for _ in range(MAX_SCOPES):
            if parent is None:
                break
            scope = self._scopes[parent]
            available, exceeded = min(available, scope.own_available), exceeded or scope.exceeded
            parent = scope.parent
        return BudgetSnapshot(
            root_id=root,
            scope=number,
            limit=own.limit,
            usage=Usage(prompt_tokens=own.prompt, completion_tokens=own.completion, total_tokens=own.total),
            reserved_tokens=own.reserved,
            uncertain_tokens=own.uncertain,
            available_tokens=available,
            exceeded=exceeded,
        )


def _accounting(usage: Usage, held: _Held) -> Accounting:
    prompt, completion, total = usage.prompt_tokens, usage.completion_tokens, usage.total_tokens
    if prompt == completion == total == 0:
        return "unknown"
    spent = prompt + completion
    if (
        spent > _U32_MAX
        or total < spent
        or total > held.amount
        or completion > held.reservation.output_tokens
    ):
        return "exceeded"
    return "confirmed"


def _settle(scope: _Scope, amount: int, usage: Usage, outcome: Accounting) -> None:
    scope.reserved -= amount
    if outcome == "unknown":
        scope.uncertain += amount
        return
    spent = min(usage.prompt_tokens + usage.completion_tokens, _U32_MAX)
    scope.prompt = min(scope.prompt + usage.prompt_tokens, _U32_MAX)
    scope.completion = min(scope.completion + usage.completion_tokens, _U32_MAX)
    scope.total = min(scope.total + max(usage.total_tokens, spent), _U32_MAX)
    scope.exceeded = scope.exceeded or outcome == "exceeded"
