"""`audit show`: the records of a journal, one by one."""

import os

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import (
    PATH,
    StrictCommand,
    display_options,
    format_option,
    pass_environment,
    verbose_option,
)
from symbi_recover.cli.reading.journals import empty_step, torn_step, verify_step, warn_of_dash
from symbi_recover.cli.reading.trusting import key_words
from symbi_recover.core.documents import ShownLines
from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.exits import Exit
from symbi_recover.core.shown import ShownRecord
from symbi_recover.core.words import counted
from symbi_recover.read.documents import shown_line
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.keys import public_key as read_public_key
from symbi_recover.read.records import records, selection
from symbi_recover.render import records as as_records


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
@verbose_option("Show long values in full.")
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
    warn_of_dash(environment, (journal,))
    everything, shown = _Seen(), _Seen()
    with OpenedFile.open(journal) as file:
        for record in records(file, key):
            everything.note(record)
            matches = wanted is None or wanted in record.payload
            if chosen.has(record.line) and matches and not (only_tail and record.complete):
                shown.note(record)
                shown.kept.append(record)
        if not file.unchanged():
            raise UnexaminedError("file_changed", "the journal changed while it was being read", path=journal)
    attention = key is None or not shown.kept or shown.tail
    verdict = Exit.REFUSED if shown.unsound else Exit.ATTENTION if attention else Exit.OK
    if form == "jsonl":
        return environment.deliver_json_lines(verdict, map(shown_line, shown.kept))
    if form == "json":
        return environment.deliver_json(verdict, ShownLines(records=tuple(map(shown_line, shown.kept))))
    whole = environment.verbosity > 0
    lines = [line for one in shown.kept for line in as_records.lines(one, environment.paint, whole=whole)]
    return environment.deliver(verdict, [*lines, "", _conclusion(shown, everything, journal, key_text)])


class _Seen:
    """What is known of several lines; of all of a journal without the lines themselves."""

    def __init__(self) -> None:
        self.kept: list[ShownRecord] = []
        self.records = 0
        """Complete lines, also those that are no records."""
        self.signed = 0
        """Those whose signature holds."""
        self.unsound = False
        self.tail = False
        self.run_id: str | None = None

    def note(self, line: ShownRecord) -> None:
        if not line.complete:
            self.tail = True
            return
        self.records += 1
        self.signed += line.signature_holds is True
        self.unsound |= not line.sound
        if line.record is not None:
            self.run_id = self.run_id or line.record.run_id


def _conclusion(shown: _Seen, everything: _Seen, journal: str, key_text: str | None) -> str:
    """The last line: how much was shown, what was checked of it, and the command to go on with."""
    tail = " and the fragment at the end" if shown.tail else ""
    counts = f"{shown.records:,} of {counted(everything.records, 'record')}{tail} shown"
    if not shown.kept and everything.records:
        counts += f", numbers 0 to {everything.records - 1}"
    if key_text is None:
        checks = "signatures NOT checked: give --public-key"
    elif not shown.records:
        checks = "no signature checked"
    elif shown.signed == shown.records:
        checks = "every signature holds under the given key"
    else:
        checks = f"signatures hold under the given key for {shown.signed:,} of {shown.records:,}"
    if everything.unsound or not everything.tail:
        step = verify_step(journal, key_text)
    elif everything.records:
        step = torn_step(journal, everything.run_id, key_text or "KEY")
    else:
        step = empty_step(journal, key_words(key_text, None))
    return f"{counts}; {checks}. Next: {step}"
