"""The registry of finding and failure codes, one module for each kind of evidence."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from symbi_recover.core.errors import RecoverError
from symbi_recover.core.findings import Code, Finding, Severity


class _Registry(Mapping[str, Code]):
    """Every code, sorted by name; put together when first asked, for most runs of the program find nothing."""

    @cached_property
    def _codes(self) -> dict[str, Code]:
        from symbi_recover.core.codes import (  # noqa: PLC0415 -- late: see the class
            cli,
            cron,
            daemon,
            evidence,
            invocation,
            journal,
            lease,
            ledger,
            publication,
            retirement,
            trust,
            writing,
        )

        parts = (
            cli,
            cron,
            daemon,
            evidence,
            invocation,
            journal,
            lease,
            ledger,
            publication,
            retirement,
            trust,
            writing,
        )
        codes: dict[str, Code] = {}
        for part in parts:
            twice = codes.keys() & part.CODES.keys()
            if twice:
                raise ValueError(f"code registered twice: {sorted(twice)}")
            codes |= part.CODES
        return dict(sorted(codes.items()))

    def __getitem__(self, code: str) -> Code:
        return self._codes[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._codes)

    def __len__(self) -> int:
        return len(self._codes)


CODES: Mapping[str, Code] = _Registry()


def finding(code: str, message: str, **where: object) -> Finding:
    """A finding with the severity that the registry gives to `code`; KeyError for an unregistered code."""
    return Finding(code=code, severity=CODES[code].severity, message=message, **where)  # type: ignore[arg-type]


def as_finding(error: RecoverError) -> Finding:
    """A failure as what it is beside others: one finding among them."""
    return Finding(
        code=error.code,
        severity=CODES[error.code].severity if error.code in CODES else Severity.REFUSED,
        message=error.message if error.detail is None else f"{error.message}; {error.detail}",
        path=error.path,
        record=error.record,
        start=error.offset,
    )
