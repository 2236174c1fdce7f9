"""`trust add` and `trust remove`: change the operator's own list of pinned keys."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import WritingCommand, display_options, pass_environment
from symbi_recover.cli.reading.trusting import default_trust_file
from symbi_recover.core.exits import Exit
from symbi_recover.read.evidence.store import resolve_project
from symbi_recover.read.keys import check_sound
from symbi_recover.read.keys import public_key as read_public_key
from symbi_recover.read.trust import TrustEntry
from symbi_recover.render.safe import safe
from symbi_recover.wire.timestamp import from_nanoseconds
from symbi_recover.write import trust

F = TypeVar("F", bound=Callable[..., Any])


def _place_options(function: F) -> F:
    function = click.option("--host", help="Only on this host, by its node name.")(function)
    function = click.option("--project", metavar="DIRECTORY", help="Only for this project.")(function)
    function = click.option(
        "--file", "trust_file", metavar="FILE", help="The trust file. [default: in the operator's folder]"
    )(function)
    return click.argument("key_text", metavar="KEY")(function)


@click.command(
    cls=WritingCommand,
    help="Pin a public key, so that evidence signed with another one is refused. Check the key with the person who "
    "set the project up before you pin it; never take it from the evidence.",
    epilog="Exit codes: 0 pinned, or pinned already; 1 the key proves nothing, or another process holds the list; "
    "3 a file cannot be read; 64 this is no key, or no private trust file.",
    examples="symbi-recover trust add 03a1…31b8 --project /srv/project --comment 'from ticket 17'",
)
@_place_options
@click.option("--comment", default="", help="Where the key comes from.")
@display_options
@pass_environment
def add_command(
    environment: Environment,
    key_text: str,
    trust_file: str | None,
    project: str | None,
    host: str | None,
    comment: str,
) -> Exit:
    """Run `trust add`."""
    key = read_public_key(key_text)
    check_sound(key)
    entry = TrustEntry(
        public_key=key.hex(),
        project=None if project is None else resolve_project(project),
        host=host,
        comment=comment,
        added_at=from_nanoseconds(environment.clock() // 10**9 * 10**9),
    )
    added = trust.add(trust_file or default_trust_file(), entry)
    word = "pinned" if added else "was pinned already"
    return environment.deliver(Exit.OK, [f"{entry.public_key} {word}{_place(entry.project, host)}"])


@click.command(
    cls=WritingCommand,
    help="Remove a pinned key, named as `trust list` shows it.",
    epilog="Exit codes: 0 removed; 1 no such entry, or another process holds the list; 3 a file cannot be read; "
    "64 this is no key, or no private trust file.",
    examples="symbi-recover trust remove 03a1…31b8 --project /srv/project",
)
@_place_options
@display_options
@pass_environment
def remove_command(
    environment: Environment, key_text: str, trust_file: str | None, project: str | None, host: str | None
) -> Exit:
    """Run `trust remove`."""
    key = read_public_key(key_text).hex()
    # the project may be gone by now, so its path is only made absolute if it cannot be resolved
    path = None if project is None else os.path.realpath(project)
    trust.remove(trust_file or default_trust_file(), (key, path, host))
    return environment.deliver(Exit.OK, [f"{key} removed{_place(path, host)}"])


def _place(project: str | None, host: str | None) -> str:
    where = "" if project is None else f" for {safe(project)}"
    return where if host is None else f"{where} on {safe(host)}"
