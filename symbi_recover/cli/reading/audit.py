"""`audit inspect`, `audit verify` and `audit show`: run journals."""

import os
import re
from typing import Any

import click
from msgspec import Struct

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import (
    RuntimeCommand,
    StrictCommand,
    display_options,
    format_option,
    pass_environment,
)
from symbi_recover.cli.reading.trusting import keys_for, trust_option
from symbi_recover.core.errors import MisuseError, RecoverError, RefusedError, UnexaminedError
from symbi_recover.core.exits import Exit, worst
from symbi_recover.core.report import JournalReport, KeyUsed
from symbi_recover.read import inspection
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.keys import public_key as read_public_key
from symbi_recover.read.records import ShownRecord, records, selection
from symbi_recover.render import failure, text
from symbi_recover.render import records as as_records
from symbi_recover.wire import canonical
from symbi_recover.wire.exact import parse_uuid
from symbi_recover.wire.timestamp import from_nanoseconds

_HEAD = re.compile(r"([0-9]{1,19}):([0-9a-f]{64})")


class InspectCommand(RuntimeCommand):
    """The runtime's own command."""

    runtime_prefix = "Audit inspection failed: "


@click.command(
    cls=InspectCommand,
    help="Report what the journal of one run proves: its effects, which of them are unknown, its budget. The JSON "
    "is the runtime's own report, byte for byte.",
    epilog="Exit codes: 0 complete; 2 needs reconciliation (or usage, as in the runtime); 1 refused or failed.",
    examples="""
    symbi-recover audit inspect run.jsonl --run-id 22222222-2222-4222-8222-222222222222 --public-key 03a1…31b8
    symbi-recover audit inspect run.jsonl --run-id 2222…2222 --public-key @audit-key.pem --format text
    """,
)
@click.argument("journal", type=click.Path())
@click.option("--run-id", required=True, metavar="UUID", help="The run that is asked for.")
@click.option(
    "--public-key",
    "key_text",
    required=True,
    metavar="KEY",
    help="64 hexadecimal digits, PEM, `ssh-ed25519 …`, or @FILE holding one of these.",
)
@click.option("--jobs", type=click.IntRange(1, 64), default=None, help="Processes for large journals.")
@format_option("text", "json")
@display_options
@pass_environment
def inspect_command(
    environment: Environment,
    journal: str,
    run_id: str,
    key_text: str,
    jobs: int | None,
    chosen_format: str | None,
) -> Exit:
    """Run `audit inspect`."""
    form = environment.format(chosen_format)
    key = read_public_key(key_text)
    run = parse_uuid(run_id)
    if run is None:
        raise RefusedError("run_id_form", "run ID must be a UUID")
    _warn_of_dash(environment, journal)
    question = inspection.Question(
        run_id=run,
        workers=jobs or _processors(),
        now=_now(environment),
        want_digest=form == "text",
    )
    try:
        inspected = inspection.inspect(journal, question, [KeyUsed(key.hex(), "given")])
        if inspected.refusal is not None:
            raise inspected.refusal
    except RecoverError as error:
        if error.code not in ("key_form", "run_id_form"):
            error.message = f"Journal write failed: {error.message}"
        raise
    if form == "json":
        return environment.deliver(inspected.verdict, canonical.pretty(inspected.report.recovery))
    lines = text.journal(inspected.report, inspected.verdict, environment.paint, _next(inspected))
    return environment.deliver(inspected.verdict, lines)


class VerifiedJournals(Struct, frozen=True, kw_only=True):
    """The document of `audit verify`."""

    schema: str = "symbi-recover/audit-verify.v1"
    ok: bool
    exit: int
    journals: tuple["VerifiedFile", ...]


class VerifiedFile(Struct, frozen=True, kw_only=True):
    """One journal in it; `failure` where it could not be examined."""

    exit: int
    report: JournalReport | None = None
    failure: dict[str, Any] | None = None


@click.command(
    cls=StrictCommand,
    help="Check journals strictly: every record complete, signed, linked and laid out as the runtime's writer does; "
    "no tail. Goes on after a bad one. Says what was checked, and what was not.",
    epilog="Exit codes: 0 authentic and complete; 2 authentic, but someone must act; 1 refused; 3 not examined; "
    "several journals: the worst, in the order 1, 3, 2, 0.",
    examples="""
    symbi-recover audit verify *.jsonl --public-key @audit-key.pem
    symbi-recover audit verify run.jsonl --public-key 03a1…31b8 --expect-head 41:8b7b…01be --require-anchor
    """,
)
@click.argument("journals", nargs=-1, required=True, type=click.Path())
@click.option(
    "--run-id", metavar="UUID", help="The run that is asked for; otherwise that of the first record."
)
@click.option("--public-key", "key_text", metavar="KEY", help="As for `audit inspect`.")
@trust_option
@click.option(
    "--expect-head",
    metavar="SEQ:HASH",
    help="A record's number and line hash, known from elsewhere; for one journal.",
)
@click.option("--require-anchor", is_flag=True, help="Refuse without `--expect-head`.")
@click.option("--jobs", type=click.IntRange(1, 64), default=None, help="Processes for large journals.")
@format_option("text", "json", "jsonl")
@display_options
@pass_environment
def verify_command(
    environment: Environment,
    journals: tuple[str, ...],
    run_id: str | None,
    key_text: str | None,
    trust_file: str | None,
    expect_head: str | None,
    require_anchor: bool,
    jobs: int | None,
    chosen_format: str | None,
) -> Exit:
    """Run `audit verify`."""
    form = environment.format(chosen_format)
    run = parse_uuid(run_id) if run_id is not None else None
    if run_id is not None and run is None:
        raise MisuseError("run_id_form", "run ID must be a UUID")
    asked = inspection.Question(
        run_id=run,
        strict=True,
        expected_head=_expected_head(expect_head, journals),
        require_anchor=require_anchor,
        want_digest=True,
        workers=jobs or _processors(),
        now=_now(environment),
    )
    lines: list[str] = []
    files = []
    for journal in journals:
        try:
            inspected = inspection.inspect(journal, asked, keys_for(journal, key_text, trust_file))
        except RecoverError as error:
            files.append(VerifiedFile(exit=int(error.exit), failure=failure.document(error)))
            lines += failure.lines(error, "error: ")
            continue
        files.append(VerifiedFile(exit=int(inspected.verdict), report=inspected.report))
        lines += text.journal(inspected.report, inspected.verdict, environment.paint, _next(inspected))
    verdict = worst([Exit(file.exit) for file in files])
    if form == "text":
        return environment.deliver(verdict, lines)
    if form == "jsonl":
        return environment.deliver(verdict, b"".join(canonical.compact(file) + b"\n" for file in files))
    document = VerifiedJournals(ok=verdict is Exit.OK, exit=int(verdict), journals=tuple(files))
    return environment.deliver(verdict, canonical.pretty(document))


def _expected_head(given: str | None, journals: tuple[str, ...]) -> inspection.ExpectedHead | None:
    if given is None:
        return None
    match = _HEAD.fullmatch(given)
    if match is None:
        raise MisuseError(
            "usage", "--expect-head takes SEQ:HASH, a number and 64 lower-case hexadecimal digits"
        )
    if len(journals) > 1:
        raise MisuseError("usage", "--expect-head belongs to one journal, and several were given")
    return inspection.ExpectedHead(int(match.group(1)), match.group(2))


def _next(inspected: inspection.Inspection) -> str:
    """The next step, for the last line."""
    if inspected.refusal is not None:
        return failure.next_step(inspected.refusal)
    if inspected.verdict is Exit.REFUSED:
        return "look at what was found above, and compare with another copy."
    if inspected.verdict is Exit.OK:
        return "nothing has to be decided about this run."
    recovery = inspected.report.recovery
    unknown = len(recovery.unknown_effects) if recovery else 0
    if unknown:
        return (
            f"settle the {unknown:,} unknown effect{'' if unknown == 1 else 's'} above with the systems concerned, "
            "then `symbi-recover invocation inspect`; do not repeat the work."
        )
    return (
        "find out whether the run is still active; if not, `symbi-recover invocation inspect` its invocation."
    )


def _warn_of_dash(environment: Environment, journal: str) -> None:
    if journal == "-" and environment.verbosity >= 0:
        environment.output.note("note: `-` is taken as a file name; evidence is not read from standard input")


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _now(environment: Environment) -> str:
    return from_nanoseconds(environment.clock())


@click.command(
    cls=StrictCommand,
    help="Show the records of a journal, escaped, each with its place and what was checked. Goes on after a bad "
    "line. Gives no verdict about the journal as a whole.",
    epilog="Exit codes: 0 shown, and each signature and link holds; 2 shown without a key, or nothing matched; "
    "1 a shown line is no record, or its signature or link does not hold; 3 not examined.",
    examples="""
    symbi-recover audit show run.jsonl 0-5 --public-key @audit-key.pem
    symbi-recover audit show run.jsonl --grep write_file --format jsonl
    symbi-recover audit show run.jsonl --tail
    """,
)
@click.argument("journal", type=click.Path())
@click.argument("sequences", nargs=-1, metavar="[SEQ|FROM-TO]...")
@click.option("--public-key", "key_text", metavar="KEY", help="Check each record's signature.")
@click.option("--grep", "needle", metavar="TEXT", help="Only records whose signed text holds TEXT.")
@click.option("--tail", "only_tail", is_flag=True, help="Only the bytes after the last complete record.")
@format_option("text", "json", "jsonl")
@display_options
@pass_environment
def show_command(
    environment: Environment,
    journal: str,
    sequences: tuple[str, ...],
    key_text: str | None,
    needle: str | None,
    only_tail: bool,
    chosen_format: str | None,
) -> Exit:
    """Run `audit show`."""
    form = environment.format(chosen_format)
    chosen = selection(sequences)
    key = read_public_key(key_text) if key_text is not None else None
    wanted = needle.encode() if needle is not None else None
    verdict = Exit.OK if key is not None else Exit.ATTENTION
    shown = []
    with OpenedFile.open(journal) as file:
        for record in records(file, key):
            matches = wanted is None or wanted in record.payload
            if not chosen.has(record.line) or not matches or (only_tail and record.complete):
                continue
            shown.append(record)
            sound = (
                record.problem is None and record.signature_holds is not False and record.linked is not False
            )
            if not sound and record.complete:
                verdict = Exit.REFUSED
        if not file.unchanged():
            raise UnexaminedError("file_changed", "the journal changed while it was being read", path=journal)
    if not shown or not all(record.complete for record in shown):
        verdict = worst([verdict, Exit.ATTENTION])
    return environment.deliver(verdict, _shown(environment, form, shown, keyed=key is not None))


def _shown(
    environment: Environment, form: str, shown: list[ShownRecord], *, keyed: bool
) -> bytes | list[str]:
    if form == "jsonl":
        return b"".join(canonical.compact(as_records.document(record)) + b"\n" for record in shown)
    if form == "json":
        rows = [as_records.document(record) for record in shown]
        return canonical.pretty({"schema": "symbi-recover/audit-show.v1", "records": rows})
    whole = environment.verbosity > 0
    lines = [line for record in shown for line in as_records.lines(record, environment.paint, whole=whole)]
    note = "signatures checked with the given key" if keyed else "signatures NOT checked: give --public-key"
    return [
        *lines,
        "",
        f"{len(shown):,} shown; {note}. Next: `symbi-recover audit verify` judges the whole journal.",
    ]
