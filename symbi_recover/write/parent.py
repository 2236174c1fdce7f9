"""The folder of a publication: walked without following a link, and the very one that the intent names."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from symbi_recover.core.errors import RefusedError
from symbi_recover.core.values import PublicationIntent
from symbi_recover.read.evidence.locate import UpwardError, walk
from symbi_recover.read.evidence.opener import system_text
from symbi_recover.wire.intent import IntentError, check

_MOVED = "output parent pathname changed; publication requires reconciliation"


@contextmanager
def open_parent(intent: PublicationIntent) -> Iterator[int]:
    """The recorded parent of a sound intent, open for as long as it is worked in.

    Raises:
        RefusedError: the intent breaks a rule (the codes of `wire/intent.py`), `publication_parent_invalid`,
            `publication_parent_unreachable`, `publication_parent_changed`.
    """
    path = intent.parent_path
    try:
        check(intent)
    except IntentError as error:
        raise RefusedError(error.code, error.message, path=path) from error
    with _walked(path, "publication_parent_unreachable") as parent:
        _compare(intent, parent, "publication_parent_changed", "publication parent identity changed")
        yield parent


def check_parent(intent: PublicationIntent, code: str) -> None:
    """See that the folder behind the path still is the recorded one.

    Raises:
        RefusedError: `code`, or `publication_parent_invalid`.
    """
    with _walked(intent.parent_path, code) as again:
        _compare(intent, again, code, _MOVED)


def _compare(intent: PublicationIntent, parent: int, code: str, message: str) -> None:
    status = os.fstat(parent)
    if (status.st_dev, status.st_ino) != intent.parent_identity:
        device, inode = intent.parent_identity
        raise RefusedError(
            code,
            message,
            path=intent.parent_path,
            detail=f"recorded device {device}, inode {inode}; found device {status.st_dev}, inode {status.st_ino}; "
            f"the file's own recorded identity is {intent.candidate_identity[0]}, {intent.candidate_identity[1]}",
        )


@contextmanager
def _walked(path: str, code: str) -> Iterator[int]:
    walking = walk(path)
    try:
        parent = walking.__enter__()
    except UpwardError as error:
        raise RefusedError("publication_parent_invalid", "invalid host grant root", path=path) from error
    except OSError as error:
        raise RefusedError(code, system_text(error), path=path) from error
    except ValueError as error:
        raise RefusedError(code, "the path holds a NUL byte", path=path) from error
    try:
        yield parent
    finally:
        walking.__exit__(None, None, None)
