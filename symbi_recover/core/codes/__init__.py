"""The registry of finding and failure codes, one module for each kind of evidence."""

from symbi_recover.core.codes import (
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
    worker,
    writing,
)
from symbi_recover.core.errors import RecoverError
from symbi_recover.core.findings import Code, Finding, Severity

_PARTS = (
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
    worker,
    writing,
)


def _merged() -> dict[str, Code]:
    codes: dict[str, Code] = {}
    for part in _PARTS:
        twice = codes.keys() & part.CODES.keys()
        if twice:
            raise ValueError(f"code registered twice: {sorted(twice)}")
        codes |= part.CODES
    return dict(sorted(codes.items()))


CODES = _merged()
"""Every code, sorted by name."""


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
