"""Numbers with their nouns, for sentences that people read."""


def noun_for(number: int | None, noun: str, plural: str = "") -> str:
    """The form of a noun after a number; an unknown number takes the plural, which ends in s unless given."""
    return noun if number == 1 else plural or f"{noun}s"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number and its noun: `1 byte`, `2,345 bytes`."""
    return f"{number:,} {noun_for(number, noun, plural)}"
