"""`audit verify`: many journals, strictly."""

import re

import click
from msgspec import Struct

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import (
    PATH,
    StrictCommand,
    canonical_uuid,
    display_options,
    format_option,
    pass_environment,
    spelling_hint,
)
from symbi_recover.cli.reading.journals import next_step, processors, warn_of_dash
from symbi_recover.cli.reading.trusting import keys_for, read_trusted, trust_option
from symbi_recover.core.errors import Failure, MisuseError, RecoverError
from symbi_recover.core.exits import Exit, worst
from symbi_recover.core.report import JournalReport
from symbi_recover.read import inspection
from symbi_recover.render import failure, text
from symbi_recover.render.safe import safe

_HEAD = re.compile(r"([0-9]{1,19}):([0-9a-f]{64})")


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
    failure: Failure | None = None


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
@click.argument("journals", nargs=-1, required=True, type=PATH)
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
    run = canonical_uuid(run_id) if run_id is not None else None
    if run_id is not None and run is None:
        raise MisuseError(
            "run_id_form", "--run-id takes a UUID in lower case with hyphens", hint=spelling_hint(run_id)
        )
    asked = inspection.Question(
        run_id=run,
        strict=True,
        expected_head=_expected_head(expect_head, journals),
        require_anchor=require_anchor,
        want_digest=True,
        workers=jobs or processors(),
        now=environment.now,
    )
    read_trusted(key_text, trust_file)
    warn_of_dash(environment, journals)
    lines: list[str] = []
    files = []
    steps: dict[tuple[Exit, bool], str] = {}
    for journal in journals:
        try:
            inspected = inspection.inspect(journal, asked, keys_for(journal, key_text, trust_file))
        except RecoverError as error:
            files.append(VerifiedFile(exit=int(error.exit), failure=failure.document(error)))
            lines += [*failure.lines(error, "error: "), ""]
            steps.setdefault((error.exit, True), safe(failure.next_step(error)))
            continue
        files.append(VerifiedFile(exit=int(inspected.verdict), report=inspected.report))
        lines += [*text.journal(inspected.report, inspected.verdict, environment.paint), ""]
        # of several that are refused, one that no interruption explains is the next to look at
        grave = inspected.refusal is None or inspected.refusal.code not in (
            "record_incomplete",
            "journal_empty",
        )
        steps.setdefault((inspected.verdict, grave), next_step(inspected, key_text, trust_file))
    verdict = worst([code for code, _ in steps])
    if form == "text":
        lines.append(
            text.conclusion(verdict, steps.get((verdict, True)) or steps[verdict, False], len(files))
        )
        return environment.deliver(verdict, lines)
    if form == "jsonl":
        return environment.deliver_json_lines(verdict, files)
    document = VerifiedJournals(ok=verdict is Exit.OK, exit=int(verdict), journals=tuple(files))
    return environment.deliver_json(verdict, document)


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
