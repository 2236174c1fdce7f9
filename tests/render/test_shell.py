"""Words of a command line to type: the shell gets the same word, the screen gets nothing odd."""

import subprocess

import pytest

from symbi_recover.render.safe import safe
from symbi_recover.render.shell import quoted


@pytest.mark.parametrize(
    "word",
    [
        "plain",
        "",
        "two words",
        "it's",
        "$(reboot)",
        "`x`",
        "a\nb",
        "\x1b[2J\r",
        "back\\slash'",
        "größe",
        "\u202e",
        "-x",
        "*",
        "!x",
        "\udcff",
    ],
)
def test_the_shell_reads_the_word_back_and_nothing_odd_is_shown(word: str) -> None:
    text = quoted(word)
    assert safe(text).replace("\\\\", "\\") == text
    command = f"printf %s {text}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert done.stdout == word.encode("utf-8", "surrogateescape")
