"""Every command that only reads, with arguments that work, for tests that show that it changes nothing.

A command stands here as a function of the world that `tests.support.reading_world` lays out, so that the same one can
be run with its calls traced, on a read-only mount, and as another user. Whoever adds a reading command adds it here.
`exits` are the exit codes that show that the command did its work rather than fail early; `others` are those that
another user gets who may read all of it and owns nothing: None if the same answer, byte for byte. Claims, leases and
the operator's own files demand their owner, so there the right answer is a refusal.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.support import reading_world as world
from tests.support.evidence import checks


class ReadingCommand(NamedTuple):
    """One command: its name, its arguments for a world at a folder, and the exit codes that are right."""

    name: str
    arguments: Callable[[Path], list[str]]
    exits: frozenset[int]
    others: frozenset[int] | None = None
    sockets: tuple[str, ...] = ()
    """The only sockets that it may connect to, relative to the world."""


_REFUSED = frozenset({1})


def _row(name: str, template: str, rc: int) -> ReadingCommand:
    """A command whose arguments are the words of `template`, with `{w}` for the folder of the world."""

    def arguments(root: Path) -> list[str]:
        return [word.replace("{w}", str(root)) for word in template.split()]

    return ReadingCommand(name, arguments, frozenset({rc}))


def _audit(name: str, rc: int, verb: str, options: str, *, run: bool = True) -> ReadingCommand:
    """A journal command on the first real journal that the runtime answered with `rc`."""
    check = next(check for check in checks("audit inspect") if check.rc == rc)
    who = f"--run-id {check.run_id}" if run else ""
    exits = 0 if verb == "show" else rc
    return _row(
        name,
        f"audit {verb} {{w}}/evidence/{check.journal} {options} {who} --public-key {check.public_key}",
        exits,
    )


def _invocation(name: str, where: str, rc: int, form: str = "json", verb: str = "inspect") -> ReadingCommand:
    """A command on an invocation of a project."""
    row = _row(
        f"invocation {verb}, {name}, {form}", f"invocation {verb} --project {{w}}/{where} --format {form}", rc
    )
    return row._replace(others=_REFUSED)


def _publication(state: str, rc: int, form: str = "json", verb: str = "file-inspect") -> ReadingCommand:
    invocation, publication = world.publication(state)
    where = f"publishing --scope {world.SCOPE} --id {invocation} --publication {publication}"
    return _invocation(state, where, rc, form, verb)


def _list(place: str, form: str, rc: int) -> ReadingCommand:
    """`invocation list` of a project, or of all of them."""
    return _invocation(place or "recursive", place or "/ --recursive", rc, form, "list")


def _lease(
    verb: str, store: str, form: str, rc: int, *, socket: str | None = None, more: str = ""
) -> ReadingCommand:
    """A command on a lease store; `verb` may be followed by a lease."""
    name = ", ".join([f"lease {verb.split(maxsplit=1)[0]}", store, *(["origins"] if more else []), form])
    row = _row(name, f"lease {verb} --state-dir {{w}}/{store} {more} --format {form}", rc)
    return row._replace(others=_REFUSED, sockets=() if socket is None else (socket,))


_PROJECT = f"--project {{w}}/settled --public-key {world.KEY}"
_SEARCH = "--root {{w}} --trust {{w}}/home/trust.jsonl"
_JOURNAL = f"{{w}}/evidence/{checks('audit inspect')[0].journal}"

PLANS = (
    _publication("ready", 2, verb="file-recover"),
    _publication("unrecorded", 2, "text", verb="file-recover"),
    _invocation(
        "unresolved",
        f"settled --scope {world.SCOPE} --id {world.UNRESOLVED} --review {{w}}/draft.json",
        1,
        verb="reconcile",
    ),
    _lease("reconcile", "leases", "json", 2, socket=world.ENGINE),
    _lease(f"retire {world.TOMBSTONE}", "leases", "json", 2, socket=world.ENGINE),
    _lease("reconcile", "blocked", "json", 1, socket=world.ENGINE),
    _lease(f"retire {world.TOMBSTONE}", "spoilt", "json", 2, socket=world.ENGINE),
    _row("lease fences", "lease fences --state-dir {w}/leases --format json", 0)._replace(
        sockets=(world.ENGINE,), others=frozenset({2})
    ),
    _row("key show", "key show --format json", 0)._replace(others=_REFUSED),
    _row("key export-public", "key export-public --form openssh", 0)._replace(others=_REFUSED),
)
"""Writing commands without the operator's consent, and those of the key that only show: they change nothing either."""

READING: tuple[ReadingCommand, ...] = (
    _audit("audit inspect, complete", 0, "inspect", "--format json"),
    _audit("audit inspect, complete, text", 0, "inspect", "--format text"),
    _audit("audit inspect, interrupted", 2, "inspect", "--format json"),
    _audit("audit inspect, refused", 1, "inspect", "--format json"),
    _audit("audit verify", 0, "verify", "--format json"),
    _audit("audit verify, lines", 0, "verify", "--format jsonl"),
    _audit("audit verify, refused, text", 1, "verify", "--format text"),
    _audit("audit show", 0, "show", "--format json", run=False),
    _audit("audit show, text", 2, "show", "0-2 --format text", run=False),
    _invocation("recorded", f"settled --scope {world.SCOPE} --id {world.RECORDED}", 0),
    _invocation("reconciled", f"settled --scope {world.SCOPE} --id {world.RECONCILED}", 0),
    _invocation("unresolved", f"settled --scope {world.SCOPE} --id {world.UNRESOLVED}", 2, "text"),
    _invocation("scheduled", f"cron --scope scheduler:v1 --id {world.SCHEDULED}", 2),
    _invocation("scheduled, killed", f"cron-killed --scope scheduler:v1 --id {world.SCHEDULED}", 2),
    _publication("ready", 2),
    _publication("unrecorded", 0),
    _publication("finished", 0),
    _publication("missing", 2),
    _publication("conflict", 2, "text"),
    _publication("recovered", 0),
    _list("publishing", "json", 2),
    _list("settled", "csv", 2),
    _list("odd", "json", 1),
    _list("cron", "json", 2),
    _list("cron-killed", "text", 2),
    _list("", "jsonl", 1),
    _lease("verify", "leases", "json", 2),
    _lease("verify", "leases", "text", 2, more=_PROJECT),
    _lease("verify", "helped", "json", 0),
    _lease("list", "leases", "json", 2),
    _lease("list", "leases", "jsonl", 2),
    _lease(f"inspect {world.CREATED}", "leases", "json", 2, more=_SEARCH),
    _lease("check", "leases", "json", 2, socket=world.ENGINE),
    _lease(f"check {world.CREATED}", "leases", "text", 2, socket=world.ENGINE),
    _lease("capacity", "leases", "json", 0),
    _lease("capacity", "helped", "json", 2, socket=world.HELPER),
    _lease("verify", "blocked", "text", 1),
    _lease("list", "spoilt", "json", 1),
    _lease(f"inspect {world.TOMBSTONE}", "spoilt", "text", 1, more=_SEARCH),
    _lease("check", "blocked", "json", 1, socket=world.ENGINE),
    _lease("capacity", "spoilt", "json", 1),
    _row("ledger show", "ledger show --format json", 0),
    _row("ledger show, text", "ledger show --format text", 0),
    _row("ledger verify", "ledger verify --format json", 0),
    _row("trust list", "trust list --format json", 0),
    _row("trust list, given", "trust list --file {w}/home/trust.jsonl --format text", 0),
    _row("explain, all", "explain --format json", 0),
    _row("explain", "explain guard --format text", 0),
    _row("schema list", "schema list --format json", 0),
    _row("schema show", "schema show journal-record", 0),
    _row("schema validate", f"schema validate journal-record {_JOURNAL} --format json", 0),
    _row("runbook list", "runbook list --format json", 0),
    _row("runbook show", "runbook show interrupted-run", 0),
    *PLANS,
)
"""The table."""


def without_row(commands: dict[tuple[str, ...], str]) -> list[str]:
    """Which of some commands, each with the module that has it, are reading ones and not in the table."""
    rows = [tuple(row.arguments(Path("/w"))) for row in READING]
    return [
        " ".join(command)
        for command, module in commands.items()
        if module.startswith("symbi_recover.cli.reading.")
        and not any(row[: len(command)] == command for row in rows)
    ]
