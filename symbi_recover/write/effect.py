"""Gives a publication's candidate its final name, exactly that and nothing else (publication.md sections 10 and 14).

1. the intent keeps its rules; its parent is walked without following a link, is the recorded folder, and stays open;
2. what an interrupted recovery left aside is put back; 3. candidate and target are judged; 4. the candidate is opened
and stays open, its content is made durable; 5. the parent still is behind its path; 6. the candidate is taken aside,
compared with the open file and hashed through it, and given the target's name, replacing nothing; 7. the parent is
synced and walked again; 8. both names are judged once more.

Up to step 6 a refusal leaves candidate and target as they were. A conflict is never repaired.
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple

from symbi_recover.core.claims import PublicationEvidence, PublicationState
from symbi_recover.core.errors import RefusedError
from symbi_recover.core.values import PublicationIntent
from symbi_recover.read.evidence.locate import UpwardError, lstat_at, walk
from symbi_recover.read.evidence.opener import FILE_FLAGS, OpenedFile, examining, facts_of, system_text
from symbi_recover.read.verify.publication import judge_publication
from symbi_recover.wire.intent import IntentError, check
from symbi_recover.write.atomic import changing, sync_folder, unsupported
from symbi_recover.write.holding import HELD, Holding, OtherFileError, StuckError, holding_name

How = Literal["renamed", "acknowledged"]
CONFLICT = "publication candidate is missing or conflicts; no file changed"
_MOVED = "output parent pathname changed; publication requires reconciliation"
_UNSYNCED = "output created but directory durability is uncertain"


class Done(NamedTuple):
    """What was done to the file, and whether the file system could confirm that it is durable."""

    how: How
    confirmed: bool


def complete(intent: PublicationIntent) -> Done:
    """Finish a publication, or make sure that a finished one is durable.

    Raises:
        RefusedError: with the runtime's words; see the codes `publication_*`.
    """
    with _parent(intent) as parent:
        _put_back(intent, parent)
        before = judged(intent)
        if before.runtime_state is PublicationState.PUBLISHED:
            done = Done("acknowledged", _acknowledge(intent, parent))
        elif before.runtime_state is PublicationState.READY:
            done = Done("renamed", _rename(intent, parent))
        else:
            raise RefusedError(
                "publication_conflicts",
                CONFLICT,
                path=f"{intent.parent_path}/{intent.target_name}",
                detail=f"the state is {before.state}",
            )
    after = judge_publication(intent)
    if after.runtime_state is not PublicationState.PUBLISHED:
        raise RefusedError(
            "publication_not_retained",
            "publication did not retain its expected identity and content",
            path=f"{intent.parent_path}/{intent.target_name}",
            detail="the target now exists and must be examined",
        )
    return done


def judged(intent: PublicationIntent) -> PublicationEvidence:
    """The publication as it lies on disk.

    Raises:
        RefusedError: where the runtime's command fails instead of having a state.
    """
    evidence = judge_publication(intent)
    if evidence.failure is not None:
        failure = evidence.failure
        detail = None if failure.expected is None else f"recorded {failure.expected}, found {failure.actual}"
        raise RefusedError(failure.code, failure.message, path=failure.path, detail=detail)
    return evidence


def tidy(intent: PublicationIntent) -> None:
    """Remove an empty holding folder; whatever stands against it is left as it is."""
    with suppress(OSError, RefusedError), _parent(intent) as parent:
        holding = Holding(parent, intent)
        if holding.open():
            if holding.is_empty():
                holding.remove()
                sync_folder(parent)
            holding.close()


def held_candidate(intent: PublicationIntent) -> str | None:
    """Where an interrupted recovery left the candidate; None if it is not there. Only looks."""
    found = False
    with suppress(OSError, RefusedError), _parent(intent) as parent:
        holding = Holding(parent, intent)
        if holding.open():
            found = holding.has_candidate()
            holding.close()
    return f"{intent.parent_path}/{holding_name(intent)}/{HELD}" if found else None


@contextmanager
def _parent(intent: PublicationIntent) -> Iterator[int]:
    """The recorded parent, open for as long as it is worked in."""
    path = intent.parent_path
    try:
        check(intent)
    except IntentError as error:
        raise RefusedError(error.code, error.message, path=path) from error
    with _walked(path, "publication_parent_unreachable") as parent:
        status = os.fstat(parent)
        if (status.st_dev, status.st_ino) != intent.parent_identity:
            raise RefusedError(
                "publication_parent_changed",
                "publication parent identity changed",
                path=path,
                detail=_identities(intent, status),
            )
        yield parent


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


def _check_parent(intent: PublicationIntent, code: str) -> None:
    """The folder behind the path still is the recorded one."""
    with _walked(intent.parent_path, code) as again:
        status = os.fstat(again)
    if (status.st_dev, status.st_ino) != intent.parent_identity:
        raise RefusedError(code, _MOVED, path=intent.parent_path, detail=_identities(intent, status))


def _identities(intent: PublicationIntent, status: os.stat_result) -> str:
    device, inode = intent.parent_identity
    return (
        f"recorded device {device}, inode {inode}; found device {status.st_dev}, inode {status.st_ino}; "
        f"the file's own recorded identity is {intent.candidate_identity[0]}, {intent.candidate_identity[1]}"
    )


def _put_back(intent: PublicationIntent, parent: int) -> None:
    """Undo what an interrupted recovery left: the candidate gets its name back, the holding folder goes."""
    holding = Holding(parent, intent)
    path = f"{intent.parent_path}/{holding.name}"
    with changing(path):
        if not holding.open():
            return
        try:
            if holding.has_candidate():
                holding.put_back()
            if holding.is_empty():
                holding.remove()
                sync_folder(parent)
        except StuckError as error:
            raise _stuck(intent, error) from error
        finally:
            holding.close()


def _stuck(intent: PublicationIntent, error: StuckError) -> RefusedError:
    return RefusedError(
        "publication_held",
        CONFLICT,
        path=f"{intent.parent_path}/{holding_name(intent)}/{HELD}",
        detail=f"the candidate lies there and cannot get its own name back: {system_text(error.cause)}",
    )


def _acknowledge(intent: PublicationIntent, parent: int) -> bool:
    path = f"{intent.parent_path}/{intent.target_name}"
    with examining(path):
        file = OpenedFile(path, os.open(intent.target_name, FILE_FLAGS, dir_fd=parent))
    with file:
        try:
            os.fsync(file.descriptor)
            return sync_folder(parent)
        except OSError as error:
            raise RefusedError("sync_failed", system_text(error), path=path) from error


def _rename(intent: PublicationIntent, parent: int) -> bool:
    path = f"{intent.parent_path}/{intent.candidate_name}"
    with examining(path):
        file = OpenedFile(path, os.open(intent.candidate_name, FILE_FLAGS, dir_fd=parent))
    with file:
        _check_file(intent, file)
        with changing(path):
            os.fsync(file.descriptor)
        _check_parent(intent, "publication_parent_changed")
        holding = Holding(parent, intent)
        with changing(f"{intent.parent_path}/{holding.name}"):
            holding.make()
        try:
            _move(intent, file, holding)
        except BaseException:
            with suppress(OSError):
                holding.remove()
                sync_folder(parent)
            holding.close()
            raise
        confirmed = _sync(intent, parent, holding)
    _check_parent(intent, "publication_parent_moved")
    return confirmed


def _sync(intent: PublicationIntent, parent: int, holding: Holding) -> bool:
    try:
        holding.remove()
        return sync_folder(parent)
    except OSError as error:
        raise RefusedError(
            "publication_unsynced",
            _UNSYNCED,
            path=f"{intent.parent_path}/{intent.target_name}",
            detail=system_text(error),
        ) from error
    finally:
        holding.close()


def _move(intent: PublicationIntent, file: OpenedFile, holding: Holding) -> None:
    """Step 6; on return the target is the open file."""
    try:
        holding.take()
    except OtherFileError as error:
        stuck = None if error.stuck is None else f"the file that was there is now {error.stuck}"
        raise _identity_changed(file.path, stuck) from error
    except OSError as error:
        raise _refused(intent, holding, error) from error
    try:
        _check_content(intent, file)
        _give(intent, holding)
    except BaseException:
        try:
            holding.put_back()
        except StuckError as error:
            raise _stuck(intent, error) from error
        raise


def _give(intent: PublicationIntent, holding: Holding) -> None:
    try:
        holding.give()
    except OSError as error:
        # a file system on another machine may have done what it reports as failed
        named = lstat_at(intent.target_name, holding.parent)
        if (
            holding.is_empty()
            and named is not None
            and (named.st_dev, named.st_ino) == intent.candidate_identity
        ):
            return
        raise _refused(intent, holding, error) from error


def _refused(intent: PublicationIntent, holding: Holding, error: OSError) -> RefusedError:
    path = f"{intent.parent_path}/{intent.target_name}"
    refusal = unsupported(error, holding.parent, path)
    if refusal is not None:
        return refusal
    code = "publication_target_taken" if error.errno == errno.EEXIST else "write_failed"
    return RefusedError(code, system_text(error), path=path)


def _identity_changed(path: str, detail: str | None = None) -> RefusedError:
    return RefusedError(
        "publication_candidate_changed", "publication candidate identity changed", path=path, detail=detail
    )


def _check_file(intent: PublicationIntent, file: OpenedFile) -> None:
    facts = facts_of(os.fstat(file.descriptor))
    if (
        not facts.private
        or facts.size != intent.bytes
        or (facts.device, facts.inode) != intent.candidate_identity
    ):
        raise _identity_changed(file.path)


def _check_content(intent: PublicationIntent, file: OpenedFile) -> None:
    """Hash the file through its descriptor, and see that it did not change meanwhile."""
    with examining(file.path):
        before = facts_of(os.fstat(file.descriptor))
        digest = hashlib.sha256()
        for block in file.blocks(0, intent.bytes + 1):
            digest.update(block)
        after = facts_of(os.fstat(file.descriptor))
    if before != after or after.links != 1:
        raise _identity_changed(file.path, "it changed while it was read, or has a second name")
    if after.size != intent.bytes or digest.hexdigest() != intent.sha256:
        raise RefusedError(
            "publication_candidate_changed", "publication candidate content changed", path=file.path
        )
