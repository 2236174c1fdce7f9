"""What is shipped is found in a wheel, in the repository, and is said to be missing when it is."""

from pathlib import Path

import pytest

from symbi_recover.core.errors import MisuseError, UnexaminedError
from symbi_recover.read import library

SCHEMA = b'{"description":"A test.","x-lines":true}'


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for the package, with nothing shipped."""
    package = tmp_path / "site" / "symbi_recover"
    package.mkdir(parents=True)
    monkeypatch.setattr(library, "_PACKAGE", str(package))
    return package


def lay(root: Path, *names: str) -> None:
    for kind in ("evidence", "output"):
        (root / kind).mkdir(parents=True, exist_ok=True)
    for name in names:
        (root / name).write_bytes(SCHEMA)


def test_a_wheel_brings_its_own(package: Path) -> None:
    lay(package / "_shipped" / "schemas", "evidence/x.v1.schema.json")
    lay(package.parent / "schemas", "evidence/y.v1.schema.json")
    assert [entry.name for entry in library.schemas()] == ["x"]


def test_an_editable_install_uses_the_repository(package: Path) -> None:
    lay(package.parent / "schemas", "evidence/y.v1.schema.json")
    (entry,) = library.schemas()
    assert (entry.name, entry.version, entry.kind, entry.lines) == ("y", 1, "evidence", True)
    assert library.schema_text(entry) == SCHEMA


def test_what_is_not_installed_is_said_with_a_next_step(package: Path) -> None:
    with pytest.raises(UnexaminedError) as caught:
        library.folder("runbooks")
    assert caught.value.code == "file_missing"
    assert caught.value.hint == "Install the program again from its wheel."


def test_the_newest_version_is_meant_unless_one_is_named(package: Path) -> None:
    lay(
        package / "_shipped" / "schemas",
        "output/x.v1.schema.json",
        "output/x.v10.schema.json",
        "output/x.v9.schema.json",
    )
    assert library.schema("x").version == 10
    assert library.schema("x.v9").version == 9
    with pytest.raises(MisuseError):
        library.schema("x.v2")


def test_other_files_are_no_schemas(package: Path) -> None:
    lay(
        package / "_shipped" / "schemas",
        "evidence/README.md",
        "evidence/x.v0.schema.json",
        "evidence/.x.json",
    )
    assert library.schemas() == ()


def test_a_next_step_names_what_is_near_or_only_the_list() -> None:
    assert (
        library.nearest("journl", ["journal", "claim"], "list")
        == "Did you mean journal? Run `list` to see all."
    )
    assert library.nearest("zzz", ["journal", "claim"], "list") == "Run `list` to see all."
