"""`audit show`: the records of a journal, one by one."""

import os

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import PATH, StrictCommand, display_options, format_option, pass_environment
from symbi_recover.cli.reading.trusting import key_words
from symbi_recover.core.documents import ShownLines
from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.exits import Exit, worst
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.keys import public_key as read_public_key
from symbi_recover.read.records import ShownRecord, records, selection
from symbi_recover.render import records as as_records
from symbi_recover.render.shell import quoted


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
@click.argument("journal", type=PATH)
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
    wanted = os.fsencode(needle) if needle is not None else None
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
    if form == "jsonl":
        return environment.deliver_json_lines(verdict, map(as_records.document, shown))
    if form == "json":
        return environment.deliver_json(verdict, ShownLines(records=tuple(map(as_records.document, shown))))
    return environment.deliver(verdict, _readable(environment, shown, journal, key_text))


def _readable(
    environment: Environment, shown: list[ShownRecord], journal: str, key_text: str | None
) -> list[str]:
    whole = environment.verbosity > 0
    lines = [line for record in shown for line in as_records.lines(record, environment.paint, whole=whole)]
    note = (
        "signatures checked with the given key"
        if key_text is not None
        else "signatures NOT checked: give --public-key"
    )
    return [
        *lines,
        "",
        f"{len(shown):,} shown; {note}. Next: `symbi-recover audit verify {quoted(journal)}"
        f"{key_words(key_text, None)}` judges the whole journal.",
    ]
