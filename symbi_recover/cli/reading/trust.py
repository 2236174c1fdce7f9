"""`trust list`: the pinned keys."""

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import StrictCommand, display_options, format_option, pass_environment
from symbi_recover.cli.reading.trusting import default_trust_file
from symbi_recover.core.exits import Exit
from symbi_recover.read.trust import TrustList, load
from symbi_recover.render.safe import safe


@click.command(
    cls=StrictCommand,
    help="List the pinned keys with what they are for, where they come from, and when they were pinned.",
    epilog="Exit codes: 0, also for an empty list; 3 the file cannot be read; 64 it is no private trust file.",
    examples="symbi-recover trust list",
)
@click.option(
    "--file", "trust_file", metavar="FILE", help="The trust file. [default: in the operator's folder]"
)
@format_option("text", "json", "jsonl")
@display_options
@pass_environment
def list_command(environment: Environment, trust_file: str | None, chosen_format: str | None) -> Exit:
    """Run `trust list`."""
    chosen = environment.format(chosen_format)
    path = trust_file or default_trust_file()
    entries = load(path, required=trust_file is not None)
    if chosen == "json":
        return environment.deliver_json(Exit.OK, TrustList(file=path, entries=entries))
    if chosen == "jsonl":
        return environment.deliver_json_lines(Exit.OK, entries)
    lines = []
    for entry in entries:
        place = safe(entry.project) if entry.project is not None else "every project"
        place += "" if entry.host is None else f" on {safe(entry.host)}"
        lines.append(f"{entry.public_key}  {place}  {safe(entry.added_at)}  {safe(entry.comment)}".rstrip())
    return environment.deliver(Exit.OK, [*lines, f"{len(entries)} pinned in {safe(path)}"])
