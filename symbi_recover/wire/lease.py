"""Lease records and the small files beside them, read as the sandbox helper reads them (leases.md sections 4, 10, 11, 19).

Steps for one record:

1. bound its size, then scan it as strict JSON into the structure of `core/lease_records.py`;
2. `state` is read twice: once in full, as the helper buffers it, to find its phase; then as that phase's structure;
3. check the rules of section 4; every broken one is a fault, not the first alone;
4. spellings that the helper takes but never writes are remembered as deviations.

No file is opened here. A fault blocks the helper; a deviation does not.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from symbi_recover.core.lease_records import (
    MOST_WORKERS,
    NIL,
    RECORD_LIMIT,
    SMALL_LIMIT,
    STATES,
    AdmissionLimits,
    LeaseRecord,
    StagingLimits,
    StagingReservation,
    State,
)
from symbi_recover.core.shapes import Strict
from symbi_recover.core.words import counted
from symbi_recover.wire import exact
from symbi_recover.wire.lease_rules import Deviation, Fault, canonical_uuid, identity_faults, rule_faults
from symbi_recover.wire.strictjson import JsonError, Scanner

T = TypeVar("T")


class RecordReading(Struct, frozen=True):
    """What one record file says. `record` is None exactly when there are faults."""

    record: LeaseRecord | None
    faults: tuple[Fault, ...] = ()
    deviations: tuple[Deviation, ...] = ()


class SmallReading(Struct, frozen=True):
    """What `admission.conf`, `staging.conf` or a reservation says."""

    value: AdmissionLimits | StagingLimits | StagingReservation | None
    faults: tuple[Fault, ...] = ()
    deviations: tuple[Deviation, ...] = ()


class _LeaseScanner(Scanner):
    """A scanner that remembers deviations."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.deviations: list[Deviation] = []

    def note(self, code: str, message: str, offset: int) -> None:
        self.deviations.append(Deviation(code, message, offset))

    def elements(self, on_element: Callable[[int], None]) -> int:
        """An array where a structure is due; real arrays are read by `Scanner.elements`."""
        self.peek()
        self.note("positional_form", "an array stands for an object with fixed members", self.position)
        return super().elements(on_element)


def read_record(data: bytes, stem: str | None) -> RecordReading:
    """Read one record.

    Args:
        data: the file's bytes, at most one more than the limit.
        stem: the file's name without `.json`, a UUID in canonical form; None for a left-over, whose name says
            nothing.
    """
    if len(data) > RECORD_LIMIT:
        return RecordReading(None, (Fault("record_too_large", f"more than {RECORD_LIMIT} bytes"),))
    value, fault, deviations = _read(data, LeaseRecord)
    if value is None:
        return RecordReading(None, (fault,) if fault else ())
    faults = (*identity_faults(value, value.lease if stem is None else stem), *rule_faults(value, deviations))
    if value.lease == NIL:
        deviations.append(Deviation("nil_lease", "the lease is the all-zero UUID"))
    return RecordReading(None if faults else value, tuple(faults), tuple(deviations))


def read_admission(data: bytes) -> SmallReading:
    """Read `admission.conf`; its only fault code is `admission_invalid`."""
    reading = _small(data, AdmissionLimits, "admission_invalid")
    value = reading.value
    if isinstance(value, AdmissionLimits):
        if not (value.max_workers and value.memory_bytes and value.cpu_nanos):
            return SmallReading(None, (Fault("admission_invalid", "a limit is zero"),))
        if value.max_workers > MOST_WORKERS:
            return SmallReading(None, (Fault("admission_invalid", f"max_workers is above {MOST_WORKERS}"),))
    return reading


def read_staging_limits(data: bytes) -> SmallReading:
    """Read `staging.conf`; its only fault code is `staging_bad_entry`."""
    reading = _small(data, StagingLimits, "staging_bad_entry")
    value = reading.value
    if isinstance(value, StagingLimits) and not (
        0 < value.max_snapshots <= MOST_WORKERS and value.reserved_bytes
    ):
        return SmallReading(None, (Fault("staging_bad_entry", "a limit is out of range"),))
    return reading


def read_reservation(data: bytes, name: str) -> SmallReading:
    """Read a staging reservation from the directory `name`; its only fault code is `staging_bad_entry`."""
    reading = _small(data, StagingReservation, "staging_bad_entry")
    value = reading.value
    if isinstance(value, StagingReservation) and (value.id != name or not value.reserved_bytes):
        return SmallReading(
            None, (Fault("staging_bad_entry", "id is not the directory's, or bytes are zero"),)
        )
    return reading


def _small(
    data: bytes, kind: type[AdmissionLimits | StagingLimits | StagingReservation], code: str
) -> SmallReading:
    if len(data) > SMALL_LIMIT:
        return SmallReading(None, (Fault(code, f"more than {SMALL_LIMIT} bytes"),))
    value, fault, deviations = _read(data, kind)
    if value is None:
        return SmallReading(None, (Fault(code, fault.message, fault.offset),) if fault else ())
    return SmallReading(value, (), tuple(deviations))


def _read(data: bytes, kind: type[T]) -> tuple[T | None, Fault | None, list[Deviation]]:
    """Read a whole document; on failure say whether it is JSON at all."""
    try:
        scanner = _LeaseScanner(data)
        value: T = exact.reader(kind)(scanner)  # type: ignore[arg-type]  # a type is hashable
        scanner.end()
    except JsonError as error:
        code = "record_schema" if _is_json(data) else "record_not_json"
        return None, Fault(code, error.message, error.offset), []
    return value, None, scanner.deviations


def _is_json(data: bytes) -> bool:
    try:
        scanner = _LeaseScanner(data)
        scanner.read_over()
        scanner.end()
    except JsonError:
        return False
    return True


def _note(scanner: Scanner, code: str, message: str, offset: int) -> None:
    if isinstance(scanner, _LeaseScanner):
        scanner.note(code, message, offset)


def _uuid(scanner: Scanner) -> str:
    scanner.peek()
    start = scanner.position
    text = scanner.string()
    value = canonical_uuid(text)
    if value is None:
        return scanner.fail("not a UUID", start)
    if value != text:
        _note(scanner, "noncanonical_spelling", f"{text!r} is an unusual spelling of {value}", start)
    return value


def _staging(scanner: Scanner) -> tuple[str, ...]:
    ids: list[str] = []
    Scanner.elements(scanner, lambda _: ids.append(_uuid(scanner)))
    return tuple(ids)


def _environment(scanner: Scanner) -> dict[str, str]:
    values: dict[str, str] = {}

    def member(name: str) -> None:
        if name in values:
            _note(
                scanner, "duplicate_env_key", f"{name!r} is repeated; the last one counts", scanner.position
            )
        values[name] = scanner.string()

    scanner.members(member)
    return values


def _state(scanner: Scanner) -> State:
    """Section 6, with the tolerance of section 4.2: the phase may stand anywhere, or first in an array."""
    scanner.peek()
    start = scanner.position
    phase, others = _find_phase(scanner)
    kind = STATES.get(phase)
    if kind is None:
        return scanner.fail(f"unknown phase {phase!r}", start)
    if not kind.__struct_fields__:
        if others and scanner.data[start : start + 1] == b"[":
            scanner.fail("too many elements", start)
        if others:
            _note(
                scanner,
                "state_extra_members",
                f"{counted(others, 'member')} that phase {phase} does not have",
                start,
            )
        if scanner.data[start : start + 1] == b"[":
            _note(scanner, "positional_form", "an array stands for the state", start)
        return kind()
    scanner.position = start
    value = exact.reader(_with_phase(kind))(scanner)
    return kind(**{name: getattr(value, name) for name in kind.__struct_fields__})


def _find_phase(scanner: Scanner) -> tuple[str, int]:
    """Read the state in full; give its phase and the number of other members."""
    phases: list[str] = []
    others = 0

    def member(name: str) -> None:
        nonlocal others
        if name == "phase":
            if phases:
                scanner.fail("member 'phase' is repeated")
            phases.append(scanner.string())
        else:
            others += 1
            scanner.read_over()

    def element(index: int) -> None:
        member("phase" if index == 0 else "")

    start = scanner.position
    if scanner.peek() == b"[":
        Scanner.elements(scanner, element)
    else:
        scanner.members(member)
    return (phases[0], others) if phases else scanner.fail("member 'phase' is missing", start)


@cache
def _with_phase(kind: type[State]) -> type[Struct]:
    """The structure of a phase with its tag as an ordinary first member."""
    fields = [(f.name, f.type) for f in msgspec.structs.fields(kind)]
    tag: Any = Literal[str(kind.__struct_config__.tag)]
    return msgspec.defstruct(f"_{kind.__name__}", [("phase", tag), *fields], bases=(Strict,), frozen=True)


exact.KINDS.update(
    lease_uuid=_uuid, lease_staging=_staging, lease_environment=_environment, lease_state=_state
)
