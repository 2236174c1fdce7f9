"""Quotes words of a command line that an operator is to type: the same word for the shell, harmless on the screen."""

import re

from symbi_recover.render.safe import safe

_PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")


def quoted(word: str) -> str:
    """`word` for a POSIX shell; with anything odd in it, in the `$'…'` form that bash, zsh and ksh read."""
    if _PLAIN.fullmatch(word):
        return word
    if safe(word) == word:
        return "'" + word.replace("'", "'\"'\"'") + "'"
    return "$'" + "".join(map(_escaped, word)) + "'"


def option(name: str, value: str) -> str:
    """An option with its value for a POSIX shell, in the one form that takes a value which begins with `-`."""
    return f"{name}{'=' if value.startswith('-') else ' '}{quoted(value)}"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if safe(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
