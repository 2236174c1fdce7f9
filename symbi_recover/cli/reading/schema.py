"""`schema list`, `schema show` and `schema validate`: the shape of everything that is read and printed."""

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
from symbi_recover.core.documents import SchemaError, SchemaList, SchemaValidation
from symbi_recover.core.exits import Exit
from symbi_recover.core.words import counted
from symbi_recover.read import library, validation
from symbi_recover.render.safe import safe


@click.command(
    cls=StrictCommand,
    help="List the JSON Schemas that are shipped: of evidence, which the runtime writes, and of output, which this "
    "program prints.",
    epilog="Exit codes: 0 listed; 64 usage.",
    examples="""
    symbi-recover schema list
    symbi-recover schema list --format json
    """,
)
@format_option("text", "json")
@verbose_option("Name the file of each as well.")
@display_options
@pass_environment
def list_command(environment: Environment, chosen_format: str | None) -> Exit:
    """Run `schema list`."""
    form = environment.format(chosen_format)
    listed = library.schemas()
    if form == "json":
        return environment.deliver_json(Exit.OK, SchemaList(schemas=listed))
    paint = environment.paint
    width = max((len(entry.name) for entry in listed), default=0)
    lines: list[str] = []
    for kind in ("evidence", "output"):
        lines += [paint("strong", kind.capitalize())]
        for entry in listed:
            if entry.kind == kind:
                lines.append(f"  {entry.name:{width}}  v{entry.version}  {entry.description}")
                lines += [paint("faint", f"  {'':{width}}      {entry.file}")] * (environment.verbosity > 0)
        lines += [""]
    return environment.deliver(
        Exit.OK,
        [
            *lines,
            f"{counted(len(listed), 'schema')}. Next: `symbi-recover schema show NAME` for one of them.",
        ],
    )


@click.command(
    cls=StrictCommand,
    help="Print one schema as it is shipped. It stands alone: everything it refers to is in it.",
    epilog="Exit codes: 0 printed; 64 usage, or no such schema.",
    examples="""
    symbi-recover schema show journal-record
    symbi-recover schema show recovery-report.v1 > recovery-report.schema.json
    """,
)
@click.argument("name")
@display_options
@pass_environment
def show_command(environment: Environment, name: str) -> Exit:
    """Run `schema show`."""
    return environment.deliver(Exit.OK, library.schema_text(library.schema(name)))


@click.command(
    cls=StrictCommand,
    help="Check the form of a file against a schema and say every place that differs, with its JSON pointer. Of a "
    "journal or a claim each complete line is checked. No signature and no link is looked at; `audit verify` does "
    "that.",
    epilog="Exit codes: 0 valid; 1 not valid; 3 the file could not be examined; 64 usage, or no such schema.",
    examples="""
    symbi-recover schema validate journal-record run.jsonl
    symbi-recover schema validate recovery-report report.json --format json
    """,
)
@click.argument("name")
@click.argument("file", type=PATH)
@format_option("text", "json")
@display_options
@pass_environment
def validate_command(environment: Environment, name: str, file: str, chosen_format: str | None) -> Exit:
    """Run `schema validate`."""
    form = environment.format(chosen_format)
    result = validation.validate(library.schema(name), file)
    verdict = Exit(result.exit)
    if form == "json":
        return environment.deliver_json(verdict, result)
    return environment.deliver(verdict, _lines(result, environment))


def _lines(result: SchemaValidation, environment: Environment) -> list[str]:
    style, word = ("good", "VALID") if result.ok else ("bad", "NOT VALID")
    documents = counted(result.documents, "document")
    lines = [f"{environment.paint(style, word)}  {safe(result.path)}: {documents} against {result.name}"]
    lines += [_line(error) for error in result.errors]
    if result.more_errors:
        lines.append(f"  … and {result.more_errors:,} more")
    lines += [f"  not checked: {item.what}: {item.why}" for item in result.not_checked]
    step = (
        "`symbi-recover audit verify` says whether a journal is authentic."
        if result.ok
        else "look at the places above (code schema_mismatch); `symbi-recover schema show` prints the rules."
    )
    return [*lines, "", f"Verdict {result.exit}, {word.lower()}. Next: {step}"]


def _line(error: SchemaError) -> str:
    record = f"record {error.record}, " if error.record is not None else ""
    rule = f" [{safe(error.rule, 200)}]" if error.rule else ""
    return f"  {record}{safe(error.pointer, 300) or 'the document'}: {safe(error.message)}{rule}"
