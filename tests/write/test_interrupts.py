"""A recovery that is interrupted by a person: the interrupt is never lost, and what it leaves is undone or told."""

import errno
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.errors import RefusedError
from symbi_recover.core.exits import Exit
from symbi_recover.write import effect, holding
from tests.support.writer.project import put
from tests.support.writer.publication import Publication
from tests.write.worlds import command, finish, publishing


@pytest.fixture
def publication(tmp_path: Path) -> Publication:
    return publishing(tmp_path)


def stop_after_rename(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The interrupt arrives right after the rename with this number, before its caller goes on."""
    real, done = holding.rename_no_replace, []

    def rename(*words: Any) -> None:
        real(*words)
        done.append(words)
        if len(done) == number:
            raise KeyboardInterrupt

    monkeypatch.setattr(holding, "rename_no_replace", rename)


def stop_while_the_name_is_taken(
    publication: Publication, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A real signal arrives while the candidate is aside, and another file has its name by then."""

    def interrupted(*_: Any) -> None:
        put(publication.candidate, b"theirs")
        os.kill(os.getpid(), number)

    monkeypatch.setattr(effect, "_check_content", interrupted)


def test_an_interrupt_right_after_the_candidate_was_taken_gives_it_back(
    publication: Publication, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after_rename(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt) as raised:
        finish(publication)
    assert raised.value.__cause__ is None
    assert os.listdir(publication.parent) == [publication.candidate.name]


def test_an_interrupt_right_after_the_final_name_was_given_leaves_it_and_says_nothing_wrong(
    publication: Publication, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after_rename(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt) as raised:
        finish(publication)
    assert raised.value.__cause__ is None
    assert os.listdir(publication.parent) == [publication.target.name]
    monkeypatch.undo()
    assert finish(publication).how == "acknowledged"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)]
)
def test_an_interrupt_ends_as_one_and_tells_where_the_candidate_is_stuck(
    number: int, code: Exit, publication: Publication, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_while_the_name_is_taken(publication, monkeypatch, number)
    hash_ = publication.invocation.snapshot_hash()
    ran = command(
        "file-recover", publication.invocation, "--publication", publication.id, "--snapshot-hash", hash_
    )
    assert ran.rc == code
    assert ran.out == b""
    said = ran.err.decode()
    assert "publication_held" in said
    assert f"{publication.parent}/.symbi-recover-{publication.id}/candidate" in said
    assert publication.candidate.read_bytes() == b"theirs"
    assert not publication.target.exists()


def test_a_failure_after_which_the_candidate_is_stuck_ends_as_that(
    publication: Publication, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        put(publication.candidate, b"theirs")
        raise RefusedError("publication_candidate_changed", "publication candidate content changed")

    monkeypatch.setattr(effect, "_check_content", failing)
    with pytest.raises(RefusedError) as raised:
        finish(publication)
    assert raised.value.code == "publication_held"


def test_an_interrupt_is_not_lost_where_the_system_does_not_even_tell_what_lies_aside(
    publication: Publication, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        monkeypatch.setattr(holding.Holding, "has_candidate", blind)
        raise KeyboardInterrupt

    def blind(_: holding.Holding) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(effect, "_check_content", interrupted)
    with pytest.raises(KeyboardInterrupt) as raised:
        finish(publication)
    assert isinstance(raised.value.__cause__, RefusedError)
    assert "Input/output error" in str(raised.value.__cause__.detail)
