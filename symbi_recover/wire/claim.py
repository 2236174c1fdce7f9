"""The claim file: newline-terminated records, and bytes behind the last newline (invocation.md section 7).

1. cut the bytes at line feeds; what follows the last one is torn and never parsed;
2. read each line on the fast path, which may only say yes: decoded, and encoded again to the same bytes;
3. otherwise read it as the runtime does: the whole line first, then the structure that its `kind` names.

What the records mean together, and whether they are the right ones, is judged in `read/verify/claim.py`.
"""

from typing import Any

import msgspec
from msgspec import Struct

from symbi_recover.core.claims import AuditRecord, ClaimRecord, Record, ResultRecord
from symbi_recover.wire import canonical, exact
from symbi_recover.wire.strictjson import JsonError, Scanner

_KINDS: dict[str, type[Record]] = {"claim": ClaimRecord, "audit": AuditRecord, "result": ResultRecord}
_FAST = (
    (b'{"kind":"claim",', msgspec.json.Decoder(ClaimRecord)),
    (b'{"kind":"audit",', msgspec.json.Decoder(AuditRecord)),
    (b'{"kind":"result",', msgspec.json.Decoder(ResultRecord)),
)
_ENCODE = msgspec.json.Encoder().encode
_MOST_FAST_CONTAINERS = 100


class ClaimSyntaxError(JsonError):
    """A complete line of a claim is no record; `line` counts from 0, `offset` from the start of the file."""

    def __init__(self, message: str, offset: int, line: int) -> None:
        super().__init__(message, offset)
        self.line = line


class ClaimText(Struct, frozen=True):
    """A claim file, parsed."""

    records: tuple[Record, ...]
    torn: int
    """Number of bytes behind the last newline."""

    @property
    def claim(self) -> ClaimRecord | None:
        """Record 1, if it is one."""
        first = self.records[0] if self.records else None
        return first if isinstance(first, ClaimRecord) else None

    @property
    def audit(self) -> AuditRecord | None:
        """Record 2, if it is one."""
        second = self.records[1] if len(self.records) > 1 else None
        return second if isinstance(second, AuditRecord) else None

    @property
    def result(self) -> ResultRecord | None:
        """Record 3, if it is one."""
        third = self.records[2] if len(self.records) > 2 else None
        return third if isinstance(third, ResultRecord) else None


def parse(data: bytes) -> ClaimText:
    """Parse the bytes of a claim file.

    Raises:
        ClaimSyntaxError: for the first complete line that is no record.
    """
    *lines, torn = data.split(b"\n")
    records = []
    offset = 0
    for number, line in enumerate(lines):
        try:
            records.append(read_record(line))
        except JsonError as error:
            raise ClaimSyntaxError(error.message, offset + error.offset, number) from None
        offset += len(line) + 1
    return ClaimText(tuple(records), len(torn))


def read_record(line: bytes) -> Record:
    """Read one line without its newline.

    Raises:
        JsonError: where the runtime's reader refuses it.
    """
    return _read_fast(line) or _read_exact(line)


def _read_fast(line: bytes) -> Record | None:
    """Only what an honest writer writes, and no admission that needs the runtime's own reading of numbers."""
    if line.count(b"{") + line.count(b"[") > _MOST_FAST_CONTAINERS or b"$serde_json" in line:
        return None
    for start, decoder in _FAST:
        if line.startswith(start):
            try:
                record: Record = decoder.decode(line)
                same = _ENCODE(record) == line
            except (msgspec.MsgspecError, UnicodeError, ValueError, OverflowError):
                return None
            return record if same and not _is_delicate(record) else None
    return None


def _is_delicate(record: Record) -> bool:
    return isinstance(record, ClaimRecord) and (record.admission is None or has_float(record.admission))


def _read_exact(line: bytes) -> Record:
    scanner = Scanner(line)
    kind = _kind(scanner)
    scanner.end()
    if kind not in _KINDS:
        scanner.fail("expected a record of kind claim, audit or result", 0)
    record: Record = exact.read(line, _KINDS[kind])
    return record


def _kind(scanner: Scanner) -> Any:
    """Read the whole line once as the runtime does, and give what its `kind` says."""
    found: list[Any] = []

    def member(name: str) -> None:
        if name != "kind":
            scanner.read_over()
        elif found:
            scanner.fail("member 'kind' is repeated")
        else:
            found.append(scanner.string())

    def element(index: int) -> None:
        if index == 0:
            found.append(scanner.string())
        else:
            scanner.read_over()

    if scanner.peek() == b"[":
        scanner.elements(element)
    else:
        scanner.members(member)
    return found[0] if found else scanner.fail("member 'kind' is missing", 0)


def admission_size(record: ClaimRecord) -> int:
    """Bytes of the admission in compact form (0 for none)."""
    return 0 if record.admission is msgspec.UNSET else len(canonical.compact(record.admission))


def has_float(value: Any) -> bool:
    """Whether a free value holds a binary64 number, whose reading depends on the library."""
    if isinstance(value, dict):
        return any(has_float(item) for item in value.values())
    if isinstance(value, list):
        return any(has_float(item) for item in value)
    return isinstance(value, float)


def equal(left: Any, right: Any) -> bool:
    """Whether two free values are the same JSON value: members in any order, 1 is neither 1.0 nor true."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(item, right[name]) for name, item in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)
