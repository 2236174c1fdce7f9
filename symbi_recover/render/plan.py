"""A plan for people: what would be done, what stands against it, and the command that would do it."""

from symbi_recover.core.plan import Plan
from symbi_recover.render.safe import safe

_TEXT = 400


def lines(plan: Plan) -> list[str]:
    """The plan, with the next command last; that is quoted for the shell, so it is harmless as it is."""
    shown = [f"Plan for `{plan.command}`; nothing was changed"]
    shown += [f"  {safe(name, 40)}: {safe(text, _TEXT)}" for name, text in plan.subject.items()]
    if plan.evidence is not None:
        shown.append(f"  evidence: {safe(plan.evidence)}")
    for title, texts in (
        ("would", plan.steps),
        ("missing", plan.missing),
        ("think of", plan.warnings),
    ):
        shown += [f"  {title + ':':9} {safe(text, _TEXT)}" for text in texts]
    if plan.consent is not None:
        shown.append(f"  next:     {plan.consent}")
    return shown
