"""Fixtures that the tests of the writing rooms share."""

import time

import pytest


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that runs on by itself, so that patience ends without waiting."""
    now = [0.0]

    def monotonic() -> float:
        now[0] += 0.5
        return now[0]

    monkeypatch.setattr(time, "monotonic", monotonic)
    monkeypatch.setattr(time, "sleep", lambda _: None)
