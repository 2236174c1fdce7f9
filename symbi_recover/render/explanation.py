"""The page of one finding or failure code, for terminals and for `docs/findings/`; both from the registry."""

from symbi_recover.core.codes import CODES
from symbi_recover.core.documents import Explanation
from symbi_recover.core.exits import Exit
from symbi_recover.core.findings import Severity
from symbi_recover.core.words import counted
from symbi_recover.render.colour import Painter
from symbi_recover.render.exits_of_codes import EXITS_OF_CODES
from symbi_recover.render.safe import safe

SEVERITIES = {
    Severity.INFO: "worth knowing, casts no doubt",
    Severity.REMARK: "unusual: worth a look, and by itself no reason to refuse anything",
    Severity.ATTENTION: "authentic, but someone must decide",
    Severity.REFUSED: "the evidence or the request cannot be accepted",
}
EXITS = {
    Exit.OK: "proven, and nothing to do",
    Exit.REFUSED: "refused or failed",
    Exit.ATTENTION: "authentic, but someone must act",
    Exit.UNEXAMINED: "could not examine",
    Exit.STALE: "write refused, because the world is not as it was reviewed",
    Exit.USAGE: "the command line was misused",
    Exit.DEFECT: "a defect of this program",
    Exit.INTERRUPTED: "interrupted from the keyboard",
    Exit.TERMINATED: "ended by a signal",
}
"""Each exit code in words."""

BY_SEVERITY: dict[Severity, tuple[Exit, ...]] = {
    Severity.INFO: (),
    Severity.REMARK: (),
    Severity.ATTENTION: (Exit.ATTENTION,),
    Severity.REFUSED: (Exit.REFUSED,),
}
"""What a finding does to the exit code by itself; `exits_of_codes` has the codes of errors that end otherwise."""


def explanation(code: str) -> Explanation:
    """The registry's entry as a document; KeyError for an unregistered code."""
    entry = CODES[code]
    return Explanation(
        code=code,
        severity=entry.severity,
        meaning=entry.meaning,
        why=entry.why,
        next=entry.next,
        exits=tuple(int(e) for e in EXITS_OF_CODES.get(code, BY_SEVERITY[entry.severity])),
    )


def page(shown: Explanation, paint: Painter) -> list[str]:
    """The page for a terminal, safe to print."""
    return [
        f"{paint('strong', safe(shown.code))}  {shown.severity}: {SEVERITIES[shown.severity]}",
        "",
        safe(shown.meaning),
        "",
        f"{paint('strong', 'Why')}   {safe(shown.why)}",
        f"{paint('strong', 'Exit')}  {exit_words(shown)}",
        f"{paint('strong', 'Next')}  {safe(shown.next)}",
    ]


def listing(codes: tuple[Explanation, ...], paint: Painter) -> list[str]:
    """One line for each code."""
    width = max((len(shown.code) for shown in codes), default=0)
    lines = [
        f"{paint('strong', safe(shown.code).ljust(width))}  {shown.severity:9}  {safe(shown.meaning)}"
        for shown in codes
    ]
    return [*lines, "", f"{counted(len(codes), 'code')}. Next: `symbi-recover explain CODE` for one of them."]


def markdown(shown: Explanation) -> str:
    """The page as it stands in `docs/findings/`."""
    return "\n".join(
        [
            f"# {shown.code}",
            "",
            shown.meaning,
            "",
            f"- **Severity:** {shown.severity}, {SEVERITIES[shown.severity]}",
            f"- **Exit code:** {exit_words(shown)}",
            "",
            "## Why",
            "",
            shown.why,
            "",
            "## Next",
            "",
            shown.next,
            "",
        ]
    )


def exit_words(shown: Explanation) -> str:
    """What the code does to the exit code of a command."""
    if not shown.exits:
        return "not changed by this alone"
    words = " or ".join(f"{code} ({EXITS[Exit(code)]})" for code in shown.exits)
    compatible = {"usage": 2, "key_form": 1}.get(shown.code, 1 if Exit.UNEXAMINED in shown.exits else None)
    return words if compatible is None else f"{words}; {compatible} in commands that the runtime has too"
