"""Where the deciding keys of a journal command come from: `--public-key`, or keys pinned beforehand."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from symbi_recover.cli.env import operator_home
from symbi_recover.cli.options import PATH
from symbi_recover.core.report import KeyUsed
from symbi_recover.read import trust
from symbi_recover.read.keys import public_key
from symbi_recover.render.shell import option

F = TypeVar("F", bound=Callable[..., Any])


def default_trust_file() -> str:
    """The trust file in the operator's folder."""
    return os.path.join(operator_home(), trust.FILE_NAME)


def key_words(public_key: str | None, trust_file: str | None) -> str:
    """The options as they were given, each after a space, for the next command; empty where neither was given."""
    given = (("--public-key", public_key), ("--trust", trust_file))
    return "".join(f" {option(name, value)}" for name, value in given if value is not None)


def trust_option(function: F) -> F:
    """`--trust FILE`."""
    return click.option(
        "--trust",
        "trust_file",
        metavar="FILE",
        type=PATH,
        help="Pinned keys; by default those of `trust add`.",
    )(function)


def keys_for(journal: str, key_text: str | None, trust_file: str | None) -> list[KeyUsed]:
    """The keys to accept for a journal: the given one, else those pinned for its project; perhaps none.

    Raises:
        RefusedError: a key cannot be read.
        MisuseError: the trust file cannot be used.
    """
    if key_text is not None:
        return [KeyUsed(public_key(key_text).hex(), "given")]
    entries = trust.load(trust_file or default_trust_file(), required=trust_file is not None)
    # a journal lies in <project>/.symbiont/governed
    project = os.path.realpath(os.path.join(os.path.dirname(journal), os.pardir, os.pardir))
    keys = trust.pinned(entries, project, os.uname().nodename)
    return [KeyUsed(key.hex(), "trust file") for key in sorted(keys)]
