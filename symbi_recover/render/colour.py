"""Colour for terminals; it never carries meaning alone."""

from symbi_recover.core.findings import Severity

STYLES = {
    Severity.REFUSED: "bad",
    Severity.ATTENTION: "attention",
    Severity.REMARK: "strong",
    Severity.INFO: "faint",
}
"""The style of each severity, the gravest first."""
_CODES = {"good": "32", "attention": "33", "bad": "31", "strong": "1", "faint": "2"}


class Painter:
    """Paints words, or leaves them as they are."""

    def __init__(self, *, colour: bool) -> None:
        self.colour = colour

    def __call__(self, style: str, text: str) -> str:
        """`text` in a style: good, attention, bad, strong or faint."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour else text
