"""Where the deciding keys of a command come from: `--public-key`, or keys pinned beforehand."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from symbi_recover.cli.env import operator_home
from symbi_recover.cli.options import PATH
from symbi_recover.core.report import KeyUsed
from symbi_recover.read import trust
from symbi_recover.read.keys import public_key as read_public_key
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


def trusted_keys(public_key: str | None, trust_file: str | None, project: str) -> trust.Trusted | None:
    """The keys that the operator gave, or pinned for a project by its real path; arguments and errors as `decide`."""
    return trust.decide(
        public_key=public_key, trust_file=trust_file, default_file=default_trust_file(), project=project
    )


def read_trusted(public_key: str | None, trust_file: str | None) -> None:
    """Read what the operator gave, before anything else is opened, so that its faults are told once; errors as `decide`."""
    if public_key is not None:
        read_public_key(public_key)
    else:
        trust.load(trust_file or default_trust_file(), required=trust_file is not None)


def keys_for(journal: str, key_text: str | None, trust_file: str | None) -> list[KeyUsed]:
    """The keys to accept for a journal, those of its project; none where none was given or pinned, errors as above."""
    # a journal lies in <project>/.symbiont/governed
    project = os.path.realpath(os.path.join(os.path.dirname(journal), os.pardir, os.pardir))
    trusted = trusted_keys(key_text, trust_file, project)
    return [] if trusted is None else [KeyUsed(key.hex(), trusted.source) for key in sorted(trusted.keys)]
