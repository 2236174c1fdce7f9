"""A plan for people: what would be done, what stands against it, and the command that would do it."""

from symbi_recover.core.plan import Plan
from symbi_recover.render.safe import safe

_TEXT = 400


def lines(plan: Plan) -> list[str]:
    """The plan, with the next command last; that is quoted for the shell, so it is harmless as it is."""
    rows = [(safe(name, 40), safe(text, _TEXT)) for name, text in plan.subject.items()]
    if plan.evidence is not None:
        rows.append(("snapshot hash", safe(plan.evidence)))
    for title, texts in (
        ("would", plan.steps),
        ("missing", plan.missing),
        ("think of", plan.warnings),
    ):
        rows += [(title, safe(text, _TEXT)) for text in texts]
    if plan.consent is not None:
        rows.append(("next", plan.consent))
    width = max(len(title) for title, _ in rows) + 1
    return [
        f"Plan for `{plan.command}`; nothing was changed",
        *(f"  {title + ':':{width}} {text}" for title, text in rows),
    ]
