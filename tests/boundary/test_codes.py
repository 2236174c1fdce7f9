"""Codes and source agree: what is raised is registered, what is registered is raised, and sentences are sentences.

Uses are found in the syntax tree: the first argument of `finding(…)`, `refuse(…)` and of every `…Error(…)`. A code
that is chosen by an expression or kept in a table is seen as a plain text anywhere outside the registry.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from symbi_recover.core import errors
from symbi_recover.core.codes import CODES
from symbi_recover.core.exits import Exit
from symbi_recover.render import explanation

PACKAGE = Path(__file__).resolve().parents[2] / "symbi_recover"
REGISTRY = PACKAGE / "core" / "codes"
NOT_RAISED: dict[str, str] = {
    "defect": "printed by the last line of defence, which raises nothing",
    "schema_mismatch": "explained only; `schema validate` lists places instead",
    "usage": "also given to every usage error of the command line",
}
"""Registered codes that need not be raised by name, each with the reason."""
_ERROR = re.compile(r"[A-Z]\w*Error")
_CODE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_SENTENCE = re.compile(r"(?:[A-Z0-9`]|[a-z]+\.[a-z]+ ).*[.?]")
"""Begins as a sentence does, or with the name of a file."""


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of every module outside the registry."""
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if REGISTRY not in path.parents]
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_bytes()) for path in paths}


def called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@cache
def coded_errors() -> set[str]:
    """Names of error classes whose first argument is a code: those of the one tree, and any whose `__init__` takes `code`."""
    names = {name for name in dir(errors) if name.endswith("Error")}
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                init = next(
                    (f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None
                )
                first = init.args.args[1].arg if init and len(init.args.args) > 1 else None
                if first == "code" or (init is None and bases & names):
                    names.add(node.name)
    return names


def uses(tree: ast.Module, coded: set[str]) -> Iterator[tuple[int, str, str]]:
    """Line, what is called, and each code that its first argument can be."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and node.args
            and (called(node) in {"finding", "refuse"} or called(node) in coded)
        ):
            first = node.args[0]
            choices = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
            for choice in choices:
                if isinstance(choice, ast.Constant) and isinstance(choice.value, str):
                    yield node.lineno, called(node), choice.value


def words() -> set[str]:
    """Every word of every text outside the registry, descriptions in docstrings left out."""
    found: set[str] = set()
    for tree in trees().values():
        described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
                found.update(_CODE.findall(node.value))
    return found


def unregistered(modules: dict[str, ast.Module], coded: set[str]) -> list[str]:
    return [
        f"{name}:{line}: {what}({code!r})"
        for name, tree in modules.items()
        for line, what, code in uses(tree, coded)
        if code not in CODES
    ]


def test_every_code_in_the_source_is_registered() -> None:
    coded = coded_errors()
    assert sum(1 for tree in trees().values() for _ in uses(tree, coded)) > 80
    assert unregistered(trees(), coded) == []


def test_an_unregistered_code_is_noticed() -> None:
    planted = {
        "x.py": ast.parse(
            "raise RefusedError('no_such_code', 'm')\nfinding('a' if x else 'tombstone', 'm')\n"
        )
    }
    assert len(unregistered(planted, coded_errors())) == 2


def test_every_registered_code_is_used_somewhere() -> None:
    unused = CODES.keys() - words()
    assert unused <= NOT_RAISED.keys(), f"registered and never used: {sorted(unused - NOT_RAISED.keys())}"
    assert NOT_RAISED.keys() <= CODES.keys()


@pytest.mark.parametrize("code", CODES)
def test_each_code_says_what_it_means_why_and_what_next_in_sentences(code: str) -> None:
    assert _CODE.fullmatch(code)
    entry = CODES[code]
    for text in (entry.meaning, entry.why, entry.next):
        assert _SENTENCE.fullmatch(text), f"not a sentence: {text!r}"
        assert text == " ".join(text.split()), f"spaces: {text!r}"
        assert text.isprintable()
    assert not re.search(r"[.?] [A-Z]", entry.meaning), f"more than one sentence: {entry.meaning!r}"


def test_explain_names_the_exit_code_that_each_error_ends_with() -> None:
    wrong = []
    for name, tree in trees().items():
        for line, what, code in uses(tree, coded_errors()):
            kind = getattr(errors, what, None)
            said = explanation.explanation(code).exits
            if (
                kind in (errors.UnexaminedError, errors.StaleError, errors.MisuseError)
                and kind.exit not in said
            ):
                wrong.append(
                    f"{name}:{line}: {code} ends with {kind.exit}, `explain` says {said}: run scripts/generate"
                )
    assert not wrong, "\n".join(wrong)
    assert explanation.EXITS.keys() == set(Exit)
