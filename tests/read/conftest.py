"""Places that the tests of this room share."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def place() -> Iterator[Path]:
    """A state directory's path, short enough for a socket; nothing is there yet."""
    folder = Path(tempfile.mkdtemp(prefix="sl", dir="/tmp"))
    yield folder / "s"
    shutil.rmtree(folder)
