"""`invocation draft-review`: a review file to complete, and beside it the effects whose outcome nobody signed."""

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import (
    WritingCommand,
    canonical_uuid,
    display_options,
    format_option,
    pass_environment,
    spelling_hint,
)
from symbi_recover.cli.reading.invocation import (
    Target,
    identity_options,
    project_option,
    trust_options,
)
from symbi_recover.core.acts import ReviewDraft
from symbi_recover.core.claims import Inspection, Outcome, Review
from symbi_recover.core.errors import MisuseError
from symbi_recover.core.exits import Exit
from symbi_recover.read import proposal
from symbi_recover.read.evidence.locate import readable
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.invocation import inspect_invocation
from symbi_recover.read.verify.claim import check_scope
from symbi_recover.render import words
from symbi_recover.render.safe import safe
from symbi_recover.render.shell import option
from symbi_recover.wire import canonical
from symbi_recover.write import draft


@click.command(
    cls=WritingCommand,
    help="Write a review file for an unresolved invocation, to be completed by hand: it holds the exact hash of "
    "the evidence and of the files that are named. `effects_stopped` is left false.\n\n"
    "The effects without a signed outcome are listed in a second file beside it. An existing file is never replaced.",
    epilog="Exit codes: 0 written; 1 refused or failed; 3 a file could not be examined; 64 usage.",
    examples="symbi-recover invocation draft-review --scope cli:orga --id UUID --outcome no_effects "
    "--evidence worker-list.txt",
)
@project_option
@identity_options
@click.option(
    "--outcome",
    required=True,
    type=click.Choice(["completed", "failed", "no_effects"]),
    help="What you believe happened; it can still be changed in the file.",
)
@click.option("--rationale", default="", metavar="TEXT", help="Why; it can also be written into the file.")
@click.option(
    "--evidence",
    "files",
    multiple=True,
    metavar="FILE",
    help="A file that you looked at; its hash is noted. At most 32 times.",
)
@click.option("--output", metavar="FILE", help="Where to write. [default: review-<id>.json]")
@trust_options
@format_option("text", "json")
@display_options
@pass_environment
def draft_review_command(
    environment: Environment,
    project: str,
    scope: str,
    invocation: str,
    outcome: Outcome,
    rationale: str,
    files: tuple[str, ...],
    output: str | None,
    public_key: str | None,
    trust: str | None,
    chosen_format: str | None,
) -> Exit:
    """Run `invocation draft-review`."""
    chosen = environment.format(chosen_format)
    wanted = canonical_uuid(invocation)
    if wanted is None:
        raise MisuseError(
            "invocation_id_invalid",
            "--id takes a UUID in lower case with hyphens",
            hint=spelling_hint(invocation),
        )
    target = Target.of(project, scope, invocation, public_key, trust)
    check_scope(scope)
    with InvocationStore(target.project) as store:
        inspection = inspect_invocation(store, scope, target.invocation, trusted=target.trusted)
        warnings = proposal.publication_warnings(store, inspection.snapshot, inspection.recovery)
    review = draft.draft(inspection, outcome, rationale, files)
    path = output or f"review-{invocation}.json"
    effects = _effects(inspection)
    beside = f"{path.removesuffix('.json')}.effects.txt" if effects else None
    written = [(path, draft.text(review))]
    if beside is not None:
        written.insert(0, (beside, "".join(f"{line}\n" for line in effects).encode()))
    made = draft.write_new(written)
    following = target.command("reconcile", option("--review", path))
    missing = _missing(review)
    if chosen == "json":
        document = ReviewDraft(
            review=readable(path),
            effects=None if beside is None else readable(beside),
            created=made[-1],
            snapshot_hash=review.snapshot_hash,
            missing=tuple(missing),
            warnings=warnings,
            next=readable(following),
        )
        return environment.deliver(Exit.OK, canonical.pretty(document))
    lines = [
        f"review   {safe(path)}" + ("" if made[-1] else ", which was there already with the same content")
    ]
    if beside is not None:
        lines.append(f"effects  {safe(beside)}: the effects without a signed outcome")
    lines += [f"warning  {safe(text)}" for text in warnings]
    lines += [f"missing  {text}" for text in missing]
    return environment.deliver(Exit.OK, [*lines, f"Verdict: drafted. Next: complete it, then {following}"])


def _missing(review: Review) -> list[str]:
    """What has to be done by hand."""
    missing = ["set effects_stopped to true once you have made sure that nothing goes on any more"]
    if not review.rationale.strip():
        missing.append("write a rationale")
    if not review.evidence:
        missing.append("name at least one piece of evidence, with its SHA-256")
    return missing


def _effects(inspection: Inspection) -> list[str]:
    """The effects without a signed outcome, in plain and harmless words; empty if there are none."""
    if inspection.recovery is None or not inspection.recovery.unknown_effects:
        return []
    lines = [
        f"Effects without a signed outcome, invocation {inspection.snapshot.id}",
        f"Evidence {inspection.snapshot_hash}",
    ]
    for effect in inspection.recovery.unknown_effects:
        lines += ["", f"{words.effect_name(effect)} (record {effect.start_sequence})"]
        lines.append(f"  {words.unknown_meaning(effect)}")
        lines += [f"  {name}: {value}" for name, value in words.references(effect)]
    return lines
