"""Every runbook is followed from top to bottom, in a workspace with its incident: exit codes and quoted lines hold."""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.runbooks.page import PLACEHOLDERS, RUNBOOKS, Command, Mark, compare, follow, steps
from tests.runbooks.workspaces import MAKERS, Workspace, workspace

SECTIONS = [
    "What you see",
    "Find",
    "Preserve a copy",
    "Plan",
    "Act",
    "Verify again",
    "What this does not settle",
    "Who to tell",
]
NAMES = sorted(path.stem for path in RUNBOOKS.glob("*.md") if path.stem != "README")
FOLLOWED = [name for name in NAMES if name != "tombstone"]
"""All but the one that needs an engine, which has tests of its own."""


def walk(text: str, root: Path) -> int:
    """Follow a runbook; gives the number of commands that ran."""
    spaces: dict[str, Workspace] = {}
    space: Workspace | None = None
    ran = 0
    with ExitStack() as cleanup:
        for step in steps(text):
            if isinstance(step, Mark) and step.kind == "workspace":
                if step.name not in spaces:
                    folder = root / step.name / "w"
                    folder.mkdir(parents=True)
                    spaces[step.name] = cleanup.enter_context(workspace(step.name, folder))
                space = spaces[step.name]
                continue
            assert space is not None, f"line {step.line}: no workspace was named before"
            if isinstance(step, Command):
                follow(step, space)
                ran += 1
            else:
                space.by_hand[step.name]()
    return ran


@pytest.mark.parametrize("name", FOLLOWED)
def test_following_a_runbook_does_what_it_says(name: str, tmp_path: Path) -> None:
    text = (RUNBOOKS / f"{name}.md").read_text()
    assert walk(text, tmp_path) == text.count("\n$ ") >= 5


@pytest.mark.parametrize("name", NAMES)
def test_a_runbook_has_the_sections_that_operators_know(name: str) -> None:
    text = (RUNBOOKS / f"{name}.md").read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert text.startswith("# ")
    prose = re.sub(r"^```.*?^```|^\|.*?$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > 120] == []


def test_evidence_of_a_project_without_a_schedule_is_preserved_as_well(tmp_path: Path) -> None:
    text = (RUNBOOKS / "interrupted-run.md").read_text()
    section = text.partition("## Preserve a copy")[2].partition("\n## ")[0]
    assert "cron_jobs.db" in section
    with workspace("publication-ready", tmp_path) as space:
        assert not list(space.root.rglob("cron_jobs.db*"))
        journal = next(space.root.glob("project/.symbiont/governed/*.jsonl"))
        space.values |= {"JOURNAL": str(journal)}
        for step in steps(section):
            assert isinstance(step, Command)
            follow(step, space)


def test_every_workspace_is_visited() -> None:
    texts = [(RUNBOOKS / f"{name}.md").read_text() for name in FOLLOWED]
    named = {s.name for text in texts for s in steps(text) if isinstance(s, Mark) and s.kind == "workspace"}
    assert named == set(MAKERS)


def test_every_placeholder_is_used() -> None:
    texts = "".join((RUNBOOKS / f"{name}.md").read_text() for name in NAMES)
    assert [word for word in PLACEHOLDERS if not re.search(rf"\b{word}\b", texts)] == []


PAGE = """
<!-- workspace: store-blocked -->

```console
$ symbi-recover invocation list --project PROJECT
unresolved  SCOPE  ID  …
Verdict 1, a claim or store cannot be accepted; its findings say why. Next: …
# exit 1
$ symbi-recover invocation inspect --project PROJECT --scope SCOPE --id ID --public-key KEY
UNRESOLVED  SCOPE ID: …
# exit 2
$ mkdir COPY
```
"""


def test_a_small_page_is_followed(tmp_path: Path) -> None:
    assert walk(PAGE, tmp_path) == 3


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("invocation list", "invocation lists"),
        ("--public-key", "--pubkey"),
        ("# exit 2", "# exit 0"),
        ("# exit 1\n", ""),
        ("unresolved  SCOPE", "resolved  SCOPE"),
        ("UNRESOLVED  SCOPE ID", "UNRESOLVED  ID SCOPE"),
        ("unresolved  SCOPE  ID  …\nVerdict", "Verdict 1, …\nunresolved  SCOPE  ID  …\nVerdict"),
        ("mkdir COPY", "mkdir PROJECT"),
        ("mkdir COPY", "mkdir ELSEWHERE"),
        ("mkdir COPY", "touch COPY"),
        ("unresolved  SCOPE  ID  …", "unresolved  SCOPE  …"),
    ],
)
def test_a_page_that_no_longer_holds_fails(was: str, becomes: str, tmp_path: Path) -> None:
    assert was in PAGE
    with pytest.raises(AssertionError, match="line "):
        walk(PAGE.replace(was, becomes, 1), tmp_path)


def test_a_placeholder_without_value_is_taken_from_the_output_and_then_stays() -> None:
    values: dict[str, str] = {}
    compare(("run RUN_ID of …",), "first\n  run 17 of agent\n", values, "here")
    assert values == {"RUN_ID": "17"}
    with pytest.raises(AssertionError):
        compare(("run RUN_ID of …",), "run 18 of agent\n", values, "here")


def test_quoted_output_without_a_command_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="line 2"):
        list(steps("```console\nverdict\n```\n"))
