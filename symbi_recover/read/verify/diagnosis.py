"""Says more about a refused journal than the first fault alone, without changing the verdict.

The lines after the fault are looked at unverified: their numbers tell missing records from moved ones, and their line
ends tell a conversion from tampering. Whatever is said here is a hint about the kind of damage.
"""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from symbi_recover.core.refusals import JournalRefusedError
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.wire.journal import MAX_JOURNAL

_SEQUENCE = re.compile(rb'"sequence":([0-9]{1,19}),"timestamp"')
_CRLF = (
    "line ends seem to have been changed to CR LF on the way; "
    "ask for the journal again, transferred as binary data"
)


def refine(error: JournalRefusedError, file: OpenedFile) -> JournalRefusedError:
    """The same refusal with the kind of damage named as exactly as the rest of the file allows."""
    found = error.finding
    if found.code not in ("records_missing", "link_mismatch", "record_malformed", "signature_invalid"):
        return error
    if file.facts.kind != "file" or file.facts.size > MAX_JOURNAL:
        return error
    if found.code == "records_missing" and found.expected is not None and found.actual is not None:
        wanted = int(found.expected)
        moved = any(sequence == wanted for sequence in _sequences_after(file, found.end or 0))
        last = int(found.actual) - 1
        missing = f"record {wanted} is" if wanted == last else f"records {wanted} to {last} are"
        found = replace(
            found,
            code="records_out_of_order" if moved else found.code,
            message=f"record {wanted} stands further on" if moved else f"{missing} missing before this one",
        )
    refined = error.become(found)
    if _has_crlf(file):
        refined.hint = _CRLF
    return refined


def _sequences_after(file: OpenedFile, offset: int) -> Iterator[int]:
    """The sequence numbers that later lines claim in the writer's spelling; looked for as text, which is quick."""
    data = b"".join(file.blocks(offset, file.facts.size))
    return (int(found) for found in _SEQUENCE.findall(data))


def _has_crlf(file: OpenedFile) -> bool:
    first = b"".join(file.blocks(0, min(file.facts.size, 1 << 20)))
    return first[: first.find(b"\n") + 1].endswith(b"\r\n")
