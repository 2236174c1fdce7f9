"""`explain`: what a finding or failure code means, offline, from the one registry."""

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import StrictCommand, display_options, format_option, pass_environment
from symbi_recover.core.codes import CODES
from symbi_recover.core.documents import Explanations
from symbi_recover.core.errors import MisuseError
from symbi_recover.core.exits import Exit
from symbi_recover.read import library
from symbi_recover.render import explanation


@click.command(
    cls=StrictCommand,
    help="Explain a finding or failure code: how much it weighs, what it means, how it comes about, and what to do "
    "next. Without a code, list them all.",
    epilog="Exit codes: 0 explained; 64 usage, or no such code.",
    examples="""
    symbi-recover explain
    symbi-recover explain link_mismatch
    symbi-recover explain tail_unauthenticated --format json
    """,
)
@click.argument("code", required=False)
@format_option("text", "json")
@display_options
@pass_environment
def explain_command(environment: Environment, code: str | None, chosen_format: str | None) -> Exit:
    """Run `explain`."""
    form = environment.format(chosen_format)
    if code is not None and code not in CODES:
        hint = library.nearest(code, [*CODES], "symbi-recover explain")
        raise MisuseError("unknown_code", f"no finding or failure has the code {code}", hint=hint)
    shown = tuple(explanation.explanation(name) for name in ([code] if code is not None else CODES))
    if form == "json":
        return environment.deliver_json(Exit.OK, Explanations(codes=shown))
    if code is None:
        return environment.deliver(Exit.OK, explanation.listing(shown, environment.paint))
    return environment.deliver(Exit.OK, explanation.page(shown[0], environment.paint))
