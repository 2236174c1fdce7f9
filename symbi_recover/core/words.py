"""Numbers with their nouns and units, for sentences that people read."""


def noun_for(number: int | None, noun: str, plural: str = "") -> str:
    """The form of a noun after a number; an unknown number takes the plural, which ends in s unless given."""
    return noun if number == 1 else plural or f"{noun}s"


def span(seconds: int) -> str:
    """A span of time in the largest unit of which there are two at least: `90 s`, `36 h`, `3 d`."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number and its noun: `1 byte`, `2,345 bytes`."""
    return f"{number:,} {noun_for(number, noun, plural)}"
