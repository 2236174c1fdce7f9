"""The program: groups that load a command only when it is called, and the one place where failures end.

`main` returns the exit code and never raises. Errors become one sentence with a code and a next step; a closed pipe
is not an error; a defect of ours says so, without a traceback of the user's data.
"""

import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from symbi_recover import __version__
from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import Helped, RuntimeCommand, StrictCommand
from symbi_recover.core.errors import GuardError, RecoverError, UnexaminedError
from symbi_recover.core.exits import Exit, runtime_exit
from symbi_recover.render import failure
from symbi_recover.render.safe import safe
from symbi_recover.wire import canonical

_READING = "symbi_recover.cli.reading"
_WRITING = "symbi_recover.cli.writing"

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "audit": {
        "inspect": (f"{_READING}.audit", "Report what a run journal proves; the runtime's own report."),
        "verify": (f"{_READING}.audit_verify", "Check journals strictly; say what was and was not checked."),
        "show": (f"{_READING}.audit_show", "Show the records of a journal, escaped."),
    },
    "invocation": {
        "inspect": (
            f"{_READING}.invocation",
            "Say what one invocation's evidence proves; the runtime's own answer.",
        ),
        "file-inspect": (
            f"{_READING}.invocation",
            "Say where one file publication stands; the runtime's own answer.",
        ),
        "list": (f"{_READING}.invocations", "List every claim of a project, and what is odd in its store."),
        "draft-review": (f"{_WRITING}.review", "Write a review file to complete, with hashes filled in."),
        "reconcile": (
            f"{_WRITING}.invocation",
            "Record a signed assessment of what happened; the runtime's own receipt.",
        ),
        "file-recover": (
            f"{_WRITING}.invocation",
            "Finish or acknowledge one file publication; the runtime's own receipt.",
        ),
    },
    "lease": {
        "verify": (f"{_READING}.lease", "Say whether the helper would start, and what every record means."),
        "list": (f"{_READING}.lease", "List the leases of a store."),
        "inspect": (f"{_READING}.lease", "Show one lease and the run that caused it."),
        "check": (f"{_READING}.lease_live", "Ask the recorded daemon about each container; GET only."),
        "capacity": (f"{_READING}.lease_live", "Say what is charged, by the files and by the helper."),
        "reconcile": (f"{_WRITING}.lease", "Remove owned containers that are there, then their records."),
        "witness": (f"{_WRITING}.lease_retire", "Keep what is seen of a tombstone, for a later proof."),
        "retire": (f"{_WRITING}.lease_retire", "Retire one tombstone on proof, never on absence."),
        "fences": (f"{_WRITING}.lease", "List and remove our own left-over fences."),
    },
    "key": {
        "init": (f"{_WRITING}.key", "Make the operator's own signing key."),
        "show": (f"{_WRITING}.key", "Show the operator's public key."),
        "import": (f"{_WRITING}.key", "Take an existing private key as the operator's."),
        "export-public": (f"{_WRITING}.key", "Print the operator's public key in other forms."),
    },
    "ledger": {
        "show": (f"{_READING}.ledger", "Show what an operator did with this toolkit."),
        "verify": (f"{_READING}.ledger", "Check that the record of an operator's acts holds."),
    },
    "trust": {
        "add": (f"{_WRITING}.trust", "Pin a public key for a project or host."),
        "list": (f"{_READING}.trust", "List the pinned keys."),
        "remove": (f"{_WRITING}.trust", "Remove a pinned key."),
    },
    "schema": {
        "list": (f"{_READING}.schema", "List the JSON Schemas of evidence and output."),
        "show": (f"{_READING}.schema", "Print one schema."),
        "validate": (f"{_READING}.schema", "Check a document's form against a schema."),
    },
    "runbook": {
        "list": (f"{_READING}.runbook", "List the runbooks."),
        "show": (f"{_READING}.runbook", "Print one runbook."),
    },
}
"""Group, command: the module that has it (as `NAME_command`), and its line in the group's help."""

GROUPS = {
    "audit": "Run journals: what was an agent run about to do, and what came back?",
    "invocation": "Invocations: who claimed what, what happened, and what waits for a decision?",
    "lease": "Sandbox leases: which workers were left behind, and what do they block?",
    "key": "The operator's own key, which signs the ledger of what was done.",
    "ledger": "The operator's signed ledger: what was intended, what was done, and how it ended.",
    "trust": "Public keys that were checked by a person.",
    "schema": "JSON Schemas of everything that is read and printed.",
    "runbook": "What to do in an incident, step by step, offline.",
}
TOP: dict[str, tuple[str, str]] = {
    "explain": (f"{_READING}.explain", "Explain a finding or failure code, offline."),
}


class LazyGroup(Helped, click.Group):
    """A group whose commands are imported when called; its help needs none of them."""

    def __init__(self, table: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        return [*self.table, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command, or None for an unknown name."""
        if cmd_name not in self.table:
            return super().get_command(ctx, cmd_name)
        module, _ = self.table[cmd_name]
        command = getattr(import_module(module), f"{cmd_name.replace('-', '_')}_command")
        command.name = cmd_name
        return command  # type: ignore[no-any-return]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Options as click completes them, and commands without loading any."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 -- late: only shells ask for it

        options = click.Command.shell_complete(self, ctx, incomplete)
        texts = {name: text for name, (_, text) in self.table.items()}
        texts |= {name: command.get_short_help_str(100) for name, command in self.commands.items()}
        names = [CompletionItem(n, help=text) for n, text in texts.items() if n.startswith(incomplete)]
        return [*names, *options]

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 -- click gives it
        formatter: click.HelpFormatter,
    ) -> None:
        """List the commands without loading them."""
        rows = [(name, text) for name, (_, text) in self.table.items()]
        rows += [(name, command.get_short_help_str(100)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def program() -> click.Group:
    """The whole command tree."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
    top = LazyGroup(
        TOP,
        name="symbi-recover",
        help=(
            "Examine and recover interrupted or suspect agent runs of the Symbiont runtime.\n\n"
            "Reading commands change nothing. Writing commands print a plan until they are given the hash of "
            "the evidence that was reviewed."
        ),
        context_settings=settings,
        epilog="Exit codes: 0 proven, nothing to do; 2 someone must act; 1 refused or failed; 3 could not "
        "examine; 4 the world changed since the review; 64 usage.",
    )
    for name, table in COMMANDS.items():
        top.add_command(LazyGroup(table, name=name, help=GROUPS[name], context_settings=settings))
    top.params.append(
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_version,
            help="Print the version.",
        )
    )
    return top


def main(arguments: list[str] | None = None, *, name: str = "symbi-recover") -> int:
    """Run the program; give its exit code."""
    environment = Environment.of_process()
    with suppress(ValueError):  # only the main thread may set handlers
        signal.signal(signal.SIGTERM, _terminated)
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments, name, environment)
    except _TerminatedError as stopped:
        code = _stopped(stopped, Exit.TERMINATED, environment)
    except (KeyboardInterrupt, click.Abort) as stopped:
        code = _stopped(stopped, Exit.INTERRUPTED, environment)
    except BrokenPipeError:
        environment.output.close()
        code = environment.verdict if environment.verdict is not None else Exit.REFUSED
    return int(code)


class _TerminatedError(BaseException):
    """SIGTERM arrived."""


def _terminated(*_: object) -> None:
    raise _TerminatedError


def _stopped(stopped: BaseException, code: Exit, environment: Environment) -> Exit:
    """An interrupt stays one; the failure among its causes, to undo what had been begun, is told."""
    cause: BaseException | None = stopped
    while cause is not None and not isinstance(cause, RecoverError):
        cause = cause.__cause__
    if cause is not None:
        with suppress(BrokenPipeError):
            _failed(cause, environment)
    return code


def _run(arguments: list[str], name: str, environment: Environment) -> Exit:
    try:
        code = program().main(list(arguments), prog_name=name, standalone_mode=False, obj=environment)
        return Exit(code or 0)
    except click.UsageError as error:
        return _usage(error, environment)
    except RecoverError as error:
        return _failed(error, environment)
    except (BrokenPipeError, click.Abort):
        raise
    except GuardError as error:
        return _failed(error.failure, environment)
    except OSError as error:  # the system failed, not this program: a close, a read of a faulty device
        return _failed(_system(error), environment)
    except Exception as error:  # noqa: BLE001 -- the last line of defence
        return _defect(error, environment)


def _system(error: OSError) -> RecoverError:
    number = error.errno or 0
    path = error.filename if isinstance(error.filename, str) else None
    return UnexaminedError("system_failed", f"{os.strerror(number)} (os error {number})", path=path)


def _usage(error: click.UsageError, environment: Environment) -> Exit:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        environment.output.note(error.format_message())
        return Exit.USAGE
    command = error.ctx.command if error.ctx else None
    path = error.ctx.command_path if error.ctx else "symbi-recover"
    if error.ctx:
        environment.output.note(safe(error.ctx.get_usage()))
    environment.output.note(f"error: {safe(error.format_message())}")
    environment.output.note(f"  next:  {safe(path)} --help")
    return command.usage_exit if isinstance(command, StrictCommand) else Exit.USAGE


def _failed(error: RecoverError, environment: Environment) -> Exit:
    command = environment.command
    compatible = isinstance(command, RuntimeCommand)
    prefix = command.runtime_prefix if isinstance(command, RuntimeCommand) else "error: "
    lines = failure.lines(error, prefix)
    environment.output.note("\n".join(lines[:1] if environment.verbosity < 0 else lines))
    if environment.wants_json and not compatible:
        with suppress(RecoverError):
            environment.put_json(canonical.pretty(failure.document(error)))
    return runtime_exit(error.exit) if compatible else error.exit


def _defect(error: Exception, environment: Environment) -> Exit:
    """Say where, without values: they may hold secrets."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    environment.output.note(
        "\n".join(
            [
                f"error: a defect of this program ({type(error).__name__}); nothing was concluded",
                f"  where: {' < '.join(reversed(frames[-6:]))}",
                "  code:  defect (symbi-recover explain defect)",
                f"  next:  report these lines, the command, and version {__version__}",
            ]
        )
    )
    return Exit.DEFECT


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Environment).output.text([f"symbi-recover {__version__}"])
        ctx.exit(0)
