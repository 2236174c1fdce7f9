"""`lease verify`, `lease list` and `lease inspect`: what lies in a sandbox lease store, and what it means."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import (
    PATH,
    StrictCommand,
    display_options,
    format_option,
    pass_environment,
    spelling_hint,
)
from symbi_recover.cli.reading.trusting import keys_for, trust_option
from symbi_recover.core.errors import MisuseError, UnexaminedError
from symbi_recover.core.exits import Exit
from symbi_recover.core.leases import (
    Document,
    InspectDocument,
    ListDocument,
    OriginView,
    StoreReport,
    Verdict,
    VerifyDocument,
)
from symbi_recover.core.scalars import is_canonical_uuid
from symbi_recover.read.verify.lease_judge import judge, one_lease
from symbi_recover.read.verify.lease_store import read_store
from symbi_recover.read.verify.origin import OriginSearch, origins
from symbi_recover.render import leases
from symbi_recover.render.shell import option

F = TypeVar("F", bound=Callable[..., Any])
VARIABLE = "SYMBIONT_SANDBOX_STATE_DIR"
_EXITS: dict[Verdict, Exit] = {
    "sound": Exit.OK,
    "attention": Exit.ATTENTION,
    "blocked": Exit.REFUSED,
    "contradicted": Exit.REFUSED,
    "unexamined": Exit.UNEXAMINED,
}
EPILOG = "Exit codes: 0 sound; 2 someone must act; 1 the helper would not start, or evidence contradicts; 3 not examined."


def store_options(function: F) -> F:
    """`--state-dir` and `--helper-uid`."""
    function = click.option(
        "--helper-uid",
        type=click.IntRange(0, 2**32 - 2),
        metavar="UID",
        help="The account the helper runs as. [default: your own; as root, the directory's owner if it was at work there]",
    )(function)
    return click.option(
        "--state-dir",
        metavar="DIR",
        type=PATH,
        help=f"The lease store. [default: ${VARIABLE}, else ~/.symbiont/sandbox-leases]",
    )(function)


def origin_options(function: F) -> F:
    """Where the runs' journals are looked for, and whom to trust."""
    function = trust_option(function)
    function = click.option(
        "--public-key",
        "key_text",
        metavar="KEY",
        help="The runs' key: 64 hex digits, PEM, `ssh-ed25519 …` or @FILE.",
    )(function)
    function = click.option(
        "--root",
        "roots",
        multiple=True,
        metavar="DIR",
        type=PATH,
        help="Search for projects below it.",
    )(function)
    return click.option(
        "--project",
        "projects",
        multiple=True,
        metavar="DIR",
        type=PATH,
        help="A project with journals.",
    )(function)


def state_dir(given: str | None) -> str:
    """The store that a command is about (leases.md section 2)."""
    if given:
        return given
    return os.environ.get(VARIABLE) or os.path.expanduser("~/.symbiont/sandbox-leases")


class Question:
    """One store, and where its origins are looked for."""

    def __init__(
        self,
        environment: Environment,
        directory: str | None,
        helper_uid: int | None,
        search: OriginSearch | None = None,
    ) -> None:
        self.environment = environment
        self.directory = state_dir(directory)
        self.helper_uid = helper_uid
        self.search = search

    def look(self) -> StoreReport:
        """Read and judge the store."""
        snapshot = read_store(self.directory, now_ns=self.environment.clock())
        views: dict[str, OriginView] | None = None
        if self.search is not None:
            readings = [entry.reading for entry in snapshot.entries if entry.reading is not None]
            views = origins([one.record for one in readings if one.record is not None], self.search)
        return judge(snapshot, helper_uid=self.helper_uid, origins=views)


def _search(
    projects: tuple[str, ...], roots: tuple[str, ...], key_text: str | None, trust_file: str | None
) -> OriginSearch | None:
    if not projects and not roots:
        if key_text is not None or trust_file is not None:
            raise MisuseError(
                "usage", "a key was given, but no --project or --root whose journals it could verify"
            )
        return None

    def keys(journal: str) -> list[bytes]:
        try:
            return [bytes.fromhex(key.public_key) for key in keys_for(journal, key_text, trust_file)]
        except UnexaminedError as error:
            if error.code != "trust_no_key":
                raise
            return []  # of many projects, one without a pinned key leaves its own origins unverified

    return OriginSearch(projects, roots, keys)


def deliver(environment: Environment, form: str, document: Document, lines: list[str]) -> Exit:
    """Print the document or the lines; give the exit code that the document names."""
    code = Exit(document.exit)
    return environment.deliver_json(code, document) if form == "json" else environment.deliver(code, lines)


def store_words(state_dir: str, helper_uid: int | None) -> str:
    """The store's options for the next command."""
    account = "" if helper_uid is None else f" --helper-uid {helper_uid}"
    return option("--state-dir", state_dir) + account


def exit_of(verdict: Verdict) -> Exit:
    """The exit code of a verdict."""
    return _EXITS[verdict]


@click.command(
    cls=StrictCommand,
    help="Say whether the helper would start on a lease store, what every record means, which are tombstones, what is "
    "charged and what nobody supervises. Reads only; takes no lock.",
    epilog=EPILOG,
    examples="""
    symbi-recover lease verify
    symbi-recover lease verify --state-dir /var/lib/symbivmm/state --root /srv/projects --public-key @audit-key.pem
    """,
)
@store_options
@origin_options
@format_option("text", "json")
@display_options
@pass_environment
def verify_command(
    environment: Environment,
    state_dir: str | None,
    helper_uid: int | None,
    projects: tuple[str, ...],
    roots: tuple[str, ...],
    key_text: str | None,
    trust_file: str | None,
    chosen_format: str | None,
) -> Exit:
    """Run `lease verify`."""
    form = environment.format(chosen_format)
    search = _search(projects, roots, key_text, trust_file)
    report = Question(environment, state_dir, helper_uid, search).look()
    code = exit_of(report.verdict)
    document = VerifyDocument(ok=code is Exit.OK, exit=int(code), report=report)
    return deliver(environment, form, document, leases.store(report, code, environment.paint))


@click.command(
    cls=StrictCommand,
    help="List the leases of a store, one line each, bad records included.",
    epilog=EPILOG,
    examples="""
    symbi-recover lease list
    symbi-recover lease list --format jsonl | jq 'select(.tombstone)'
    """,
)
@store_options
@format_option("text", "json", "jsonl")
@display_options
@pass_environment
def list_command(
    environment: Environment, state_dir: str | None, helper_uid: int | None, chosen_format: str | None
) -> Exit:
    """Run `lease list`."""
    form = environment.format(chosen_format)
    report = Question(environment, state_dir, helper_uid).look()
    rows = leases.rows(report)
    code = exit_of(report.verdict)
    if form == "jsonl":
        return environment.deliver_json_lines(code, rows)
    document = ListDocument(
        ok=code is Exit.OK,
        exit=int(code),
        state_dir=report.state_dir,
        verdict=report.verdict,
        store_blocked=report.store_blocked,
        helper=report.helper,
        leases=tuple(rows),
    )
    return deliver(environment, form, document, leases.listing(rows, report, code, environment.paint))


@click.command(
    cls=StrictCommand,
    help="Show one lease: its record, whether it is a tombstone, its worker, and the signed dispatch that caused it.",
    epilog=EPILOG,
    examples="""
    symbi-recover lease inspect 6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10 --project /srv/agent --public-key @audit-key.pem
    """,
)
@click.argument("lease")
@store_options
@origin_options
@format_option("text", "json")
@display_options
@pass_environment
def inspect_command(
    environment: Environment,
    lease: str,
    state_dir: str | None,
    helper_uid: int | None,
    projects: tuple[str, ...],
    roots: tuple[str, ...],
    key_text: str | None,
    trust_file: str | None,
    chosen_format: str | None,
) -> Exit:
    """Run `lease inspect`."""
    form = environment.format(chosen_format)
    need_canonical(lease)
    search = _search(projects, roots, key_text, trust_file)
    whole = Question(environment, state_dir, helper_uid, search).look()
    report = one_lease(whole, lease)
    if report is None:
        raise no_lease(lease, whole)
    code = exit_of(report.verdict)
    document = InspectDocument(ok=code is Exit.OK, exit=int(code), report=report)
    return deliver(environment, form, document, leases.lease(report, code, environment.paint))


def need_canonical(lease: str) -> None:
    """Refuse a lease in any other spelling than that of file names.

    Raises:
        MisuseError: it is no canonical UUID.
    """
    if not is_canonical_uuid(lease):
        raise MisuseError(
            "usage", "a lease is named by its UUID, lower case with hyphens", hint=spelling_hint(lease)
        )


def need_leases(chosen: tuple[str, ...], report: StoreReport) -> None:
    """Refuse leases that the store does not name.

    Raises:
        UnexaminedError: `lease_missing`.
    """
    for lease in chosen:
        if one_lease(report, lease) is None:
            raise no_lease(lease, report)


def no_lease(lease: str, report: StoreReport) -> UnexaminedError:
    """The error for a lease that the store does not name."""
    return UnexaminedError("lease_missing", f"no record of lease {lease}", path=report.state_dir)
