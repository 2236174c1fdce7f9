"""Fixtures that every room's tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import evidence

pytest_plugins = ("tests.support.engine",)


@pytest.fixture(scope="session")
def evidence_place() -> Iterator[Path]:
    """The runtime's evidence at the absolute path that its claims name; for reading only."""
    with evidence.hold_place() as place:
        yield place


@pytest.fixture(scope="session")
def evidence_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime's evidence in a folder of this process, shared by its tests; for reading only."""
    return evidence.unpack(tmp_path_factory.mktemp("evidence") / "e")


@pytest.fixture
def own_evidence(tmp_path: Path) -> Path:
    """The runtime's evidence in a folder of one test, which may change it."""
    return evidence.unpack(tmp_path / "evidence")
