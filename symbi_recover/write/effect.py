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
from contextlib import suppress
from typing import Literal, NamedTuple

from symbi_recover.core.claims import PublicationEvidence, PublicationState
from symbi_recover.core.errors import RefusedError
from symbi_recover.core.values import PublicationIntent
from symbi_recover.read.evidence.locate import lstat_at
from symbi_recover.read.evidence.opener import FILE_FLAGS, OpenedFile, examining, facts_of, system_text
from symbi_recover.read.verify.publication import judge_publication
from symbi_recover.wire.intent import HELD_NAME
from symbi_recover.write.atomic import changing, sync_folder, unsupported
from symbi_recover.write.holding import Holding, OtherFileError, StuckError, holding_name
from symbi_recover.write.parent import check_parent, open_parent

How = Literal["renamed", "acknowledged"]
CONFLICT = "publication candidate is missing or conflicts; no file changed"
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
    with open_parent(intent) as parent:
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
    with suppress(OSError, RefusedError), open_parent(intent) as parent:
        holding = Holding(parent, intent)
        if holding.open():
            if holding.is_empty():
                holding.remove()
                sync_folder(parent)
            holding.close()


def held_candidate(intent: PublicationIntent) -> str | None:
    """Where an interrupted recovery left the candidate; None if it is not there. Only looks."""
    found = False
    with suppress(OSError, RefusedError), open_parent(intent) as parent:
        holding = Holding(parent, intent)
        if holding.open():
            found = holding.has_candidate()
            holding.close()
    return f"{intent.parent_path}/{holding_name(intent)}/{HELD_NAME}" if found else None


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
            raise _stuck(intent, error.cause) from error
        finally:
            holding.close()


def _stuck(intent: PublicationIntent, cause: OSError) -> RefusedError:
    return RefusedError(
        "publication_held",
        CONFLICT,
        path=f"{intent.parent_path}/{holding_name(intent)}/{HELD_NAME}",
        detail=f"the candidate lies there and cannot get its own name back: {system_text(cause)}",
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
        check_parent(intent, "publication_parent_changed")
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
    check_parent(intent, "publication_parent_moved")
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
        _take(intent, file, holding)
        _check_content(intent, file)
        _give(intent, holding)
    except BaseException as stopped:
        _undo(intent, holding, stopped)
        raise


def _undo(intent: PublicationIntent, holding: Holding, stopped: BaseException) -> None:
    """Give the candidate its own name back, if it was taken aside.

    Where that fails, a failure is replaced by the worse one; an interrupt goes on, with the failure as its cause.
    """
    try:
        if holding.has_candidate():
            holding.put_back()
    except (OSError, StuckError) as error:
        stuck = _stuck(intent, error.cause if isinstance(error, StuckError) else error)
        if isinstance(stopped, Exception):
            raise stuck from error
        raise stopped from stuck


def _take(intent: PublicationIntent, file: OpenedFile, holding: Holding) -> None:
    try:
        holding.take()
    except OtherFileError as error:
        stuck = None if error.stuck is None else f"the file that was there is now {error.stuck}"
        raise _identity_changed(file.path, stuck) from error
    except OSError as error:
        raise _refused(intent, holding, error) from error


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
