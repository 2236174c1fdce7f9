"""Forensics and recovery for interrupted or suspect agent runs of the Symbiont runtime.

The public interface is what `__all__` names, and it reads only:

    report = inspect_journal(path, Question(), [KeyUsed(public_key, "given")]).report

Each name is loaded when it is first asked for, so that importing a part of the package loads nothing else.
"""

TYPE_CHECKING = False  # as in `typing`, which `--version` need not load
if TYPE_CHECKING:
    from symbi_recover.core.report import JournalReport, KeyUsed
    from symbi_recover.read.inspection import ExpectedHead, Inspection, Question
    from symbi_recover.read.inspection import inspect as inspect_journal

__version__ = "0.1.0"
__all__ = ["ExpectedHead", "Inspection", "JournalReport", "KeyUsed", "Question", "inspect_journal"]


def __getattr__(name: str) -> object:
    """Load a public name; AttributeError for any other."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from symbi_recover.core import report  # noqa: PLC0415 -- late: see the module
    from symbi_recover.read import inspection  # noqa: PLC0415 -- late: see the module

    if name == "inspect_journal":
        return inspection.inspect
    return getattr(report if name in ("JournalReport", "KeyUsed") else inspection, name)
