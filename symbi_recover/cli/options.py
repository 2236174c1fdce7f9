"""The grammar that all commands share, and their common options.

`StrictCommand` has the runtime's grammar (journal.md section 3): long options in any order, `--opt VALUE` or
`--opt=VALUE`, no abbreviations, each at most once, no value that begins with `-`.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.guard import read_only
from symbi_recover.core.exits import Exit
from symbi_recover.wire.exact import parse_uuid

F = TypeVar("F", bound=Callable[..., Any])
pass_environment = click.make_pass_decorator(Environment)
PATH = click.Path(readable=False)
"""A path as it was typed. What lies there, and whether it can be read, is for the command to find out and to say."""


class Helped(click.Command):
    """A command whose help is written as every document is, so that it fails as every document does."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option that click makes, with the writing put right."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _help
        return option


def _help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    environment = ctx.find_object(Environment)
    if value and not ctx.resilient_parsing and environment is not None:
        environment.output.text([ctx.get_help()])
        ctx.exit()


class StrictCommand(Helped):
    """A command with the runtime's grammar.

    Attributes:
        usage_exit: what a usage error ends with; the runtime-compatible commands take the runtime's own 2.
        runtime_prefix: what the runtime puts before the message of a failure; empty for commands of ours.
        writes: whether the command changes something, so that the read-only guard stays off.
    """

    usage_exit: Exit = Exit.USAGE
    runtime_prefix: str = ""
    writes: bool = False

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*args, **kwargs)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Check what click does not, then let it parse; an unfinished line that is to be completed is not checked."""
        if not ctx.resilient_parsing:
            _check_grammar(self, ctx, list(args))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, a reading one under the guard."""
        environment = ctx.find_object(Environment)
        if environment is not None:
            environment.command = self
        if self.writes:
            return super().invoke(ctx)
        with read_only():
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the examples as they are."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples.strip().splitlines():
                    formatter.write(f"  {line.strip()}\n")
        super().format_epilog(ctx, formatter)


class WritingCommand(StrictCommand):
    """A command that changes something."""

    writes = True


class RuntimeCommand(StrictCommand):
    """A command that the runtime has too: three exit codes, and the runtime's words on failure."""

    usage_exit = Exit.ATTENTION


def _check_grammar(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    options = {name: p for p in command.params if isinstance(p, click.Option) for name in p.opts}
    seen: set[str] = set()
    index = 0
    while index < len(args) and args[index] != "--":
        name, equals, _ = args[index].partition("=")
        option = options.get(name)
        index += 1
        if option is None:
            continue
        if not option.multiple and not option.count:
            if option.name in seen:
                raise click.UsageError(f"the option {name} was given more than once", ctx)
            seen.add(str(option.name))
        if option.is_flag or option.count or equals:
            continue
        if index >= len(args) or (args[index].startswith("-") and args[index] != "-"):
            raise click.UsageError(f"the option {name} needs a value that does not begin with `-`", ctx)
        index += 1


def read_uuid(text: str) -> UUID | None:
    """The UUID that an argument spells in one of the runtime's forms, or None."""
    return parse_uuid(text)


def canonical_uuid(text: str) -> UUID | None:
    """The UUID that an argument spells in the one form that commands of our own take, that of file names, or None."""
    value = parse_uuid(text)
    return value if value is not None and str(value) == text else None


def spelling_hint(text: str) -> str | None:
    """The next step for a UUID in another spelling; None for what is no UUID in any."""
    value = parse_uuid(text)
    return None if value is None else f"Give it as {value}."


def format_option(*formats: str) -> Callable[[F], F]:
    """`--format`, for the formats that a command has."""
    return click.option(
        "--format",
        "chosen_format",
        type=click.Choice(formats),
        help="How to print the result. [default: text on a terminal, json otherwise]",
    )


def ledger_option(function: F) -> F:
    """`--no-ledger`, of a command that acts."""
    return click.option(
        "--no-ledger", is_flag=True, help="Do not record the act in the operator's ledger; this is said."
    )(function)


def timeout_option(seconds: float) -> Callable[[F], F]:
    """`--timeout`, of a command that asks a daemon, with its default."""
    return click.option(
        "--timeout",
        type=click.FloatRange(0.1, 300),
        default=seconds,
        show_default=True,
        metavar="SECONDS",
        help="For each question to a daemon.",
    )


def display_options(function: F) -> F:
    """`--color` and `-q`, which reach the command through its environment."""
    function = click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        expose_value=False,
        callback=_colour,
        help="Colour; NO_COLOR is respected.",
    )(function)
    return click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_quiet,
        help="Leave out progress and remarks on stderr, and all of a failure but its sentence.",
    )(function)


def verbose_option(more: str) -> Callable[[F], F]:
    """`-v`, of a command that has more to say; `more` is what, as a sentence."""
    return click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_verbose, help=more)


def _colour(ctx: click.Context, _: click.Parameter, value: str) -> None:
    environment = ctx.find_object(Environment)
    if environment is not None and value != "auto":
        environment.output.colour = value == "always"


def _quiet(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    environment = ctx.find_object(Environment)
    if environment is not None and value:
        environment.verbosity = -1


def _verbose(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    environment = ctx.find_object(Environment)
    if environment is not None and value:
        environment.verbosity = 1
