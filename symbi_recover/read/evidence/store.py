"""The invocation store of a project, held open for reading (invocation.md sections 4 to 6).

1. resolve the project, as the runtime does, and open it one component at a time without following a link;
2. open `.symbiont` and `invocations` from it; the last must be private;
3. open claims, receipts and journals by name in those folders, and examine them through their descriptors.

Nothing is locked, created or changed. Whether somebody else holds a lock is read from the kernel's list.
Messages are those of section 16; where the runtime would follow a link above the store, this refuses.
"""

import errno
import os
import stat
import time
from contextlib import ExitStack
from typing import Self

from symbi_recover.core.claims import STORE_FILE_LIMIT
from symbi_recover.core.errors import RecoverError, RefusedError, UnexaminedError
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.locate import (
    GOVERNED,
    INVOCATIONS,
    STORE_LOCK,
    SYMBIONT,
    is_folder,
    lstat_at,
    walk_searching,
)
from symbi_recover.read.evidence.locks import LockAnswer, LockState, ask_lock
from symbi_recover.read.evidence.lockwatch import LockWatch
from symbi_recover.read.evidence.opener import (
    FILE_FLAGS,
    FOLDER_FLAGS,
    FileFacts,
    OpenedFile,
    examining,
    facts_of,
    is_there,
    system_text,
)

_PATIENCE = 2.0
_POLL = 0.01
_REPLACED = 3
"""Times to open a name again when another file took it in between."""
_PATH_ONLY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_HELD = (LockState.HELD, LockState.PROBABLE)

FILE_RULE = "invocation file must be private, runtime-owned, have one link and be bounded"
FOLDER_RULE = "journal directory must be private and runtime-owned"
JOURNAL_RULE = "invocation journal must be private, runtime-owned and singly linked"
STORE_ABSENT = "invocation store does not exist"
STORE_BUSY = "invocation store busy; retry with the same ID"
STILL_OWNED = "invocation is still owned; reconciliation refused"


def resolve_project(path: str) -> str:
    """The real path of a project, which need not hold anything.

    Raises:
        UnexaminedError: `project_missing`, with the system's words.
    """
    try:
        return os.path.realpath(path, strict=True)
    except (OSError, ValueError) as error:
        words = system_text(error) if isinstance(error, OSError) else "the name holds a NUL byte"
        raise UnexaminedError("project_missing", words, path=path) from error


class InvocationStore:
    """An open store; use it as a context manager."""

    def __init__(self, project: str, *, patience: float = _PATIENCE) -> None:
        """Open the store of a project given by its real path.

        Args:
            project: from `resolve_project`.
            patience: seconds to wait for a process that holds the store's lock.

        Raises:
            RefusedError: `store_missing`, `store_behind_link` or `store_not_private`.
            UnexaminedError: it cannot be looked at.
        """
        self.project = project
        self.path = f"{project}/{SYMBIONT}/{INVOCATIONS}"
        self.governed_path = f"{project}/{SYMBIONT}/{GOVERNED}"
        self.patience = patience
        self._watch: LockWatch | None = None
        with ExitStack() as stack:
            self.symbiont, self.folder = self._open(stack)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _open(self, stack: ExitStack) -> tuple[int, int]:
        absent = RefusedError("store_missing", STORE_ABSENT, path=self.path)
        with examining(self.path):
            try:
                os.stat(self.path)
            except OSError as error:
                if error.errno == errno.EACCES:  # it may well be there
                    raise
                raise absent from None
        try:
            root = stack.enter_context(walk_searching(self.project))
        except OSError as error:
            raise self._behind_link(self.project) from error
        if not is_folder(lstat_at(SYMBIONT, root)):
            raise self._behind_link(f"{self.project}/{SYMBIONT}")
        with examining(self.path):
            symbiont = os.open(SYMBIONT, _PATH_ONLY, dir_fd=root)
            stack.callback(os.close, symbiont)
            status = lstat_at(INVOCATIONS, symbiont)
            if status is None:
                raise absent
            if not _is_private_folder(status):
                raise RefusedError(
                    "store_not_private", FOLDER_RULE, path=self.path, detail=shown(facts_of(status))
                )
            folder = os.open(INVOCATIONS, FOLDER_FLAGS, dir_fd=symbiont)
            stack.callback(os.close, folder)
        return symbiont, folder

    @staticmethod
    def _behind_link(path: str) -> RefusedError:
        return RefusedError(
            "store_behind_link",
            "a folder on the way to the evidence is a symbolic link or no folder",
            path=path,
        )

    def open_entry(self, name: str) -> OpenedFile:
        """Open a claim, receipt or lock file and hold it to the file rule of section 5.

        Raises:
            UnexaminedError: it cannot be opened; the message is the system's.
            RefusedError: `store_file_not_private`.
        """
        file = self._open_file(name, self.folder, self.path)
        try:
            self.check_entry(file)
        except RecoverError:
            file.__exit__()
            raise
        return file

    def check_entry(self, file: OpenedFile) -> None:
        """The file rule of section 5; a folder is refused in the system's words, as opening it for writing would be.

        Raises:
            UnexaminedError: `file_kind`, for a folder.
            RefusedError: `store_file_not_private`.
        """
        if file.facts.kind == "folder":
            raise UnexaminedError("file_kind", "Is a directory (os error 21)", path=file.path)
        if not file.facts.private or file.facts.size > STORE_FILE_LIMIT:
            raise RefusedError("store_file_not_private", FILE_RULE, path=file.path, detail=shown(file.facts))

    def open_journal(self, name: str) -> OpenedFile:
        """Open a run journal and hold it to the journal rule of section 5, size aside.

        Raises:
            UnexaminedError: it cannot be opened; the message is the system's.
            RefusedError: `journal_not_private`, or `store_behind_link`.
        """
        status = lstat_at(GOVERNED, self.symbiont)
        if status is not None and not stat.S_ISDIR(status.st_mode):
            raise self._behind_link(self.governed_path)
        with examining(f"{self.governed_path}/{name}"):
            folder = os.open(GOVERNED, _PATH_ONLY, dir_fd=self.symbiont)
        try:
            file = self._open_file(name, folder, self.governed_path)
        finally:
            os.close(folder)
        if not file.facts.private:
            file.__exit__()
            raise RefusedError("journal_not_private", JOURNAL_RULE, path=file.path, detail=shown(file.facts))
        return file

    @staticmethod
    def _open_file(name: str, folder: int, folder_path: str) -> OpenedFile:
        path = f"{folder_path}/{name}"
        with examining(path):
            file = OpenedFile(path, os.open(name, FILE_FLAGS, dir_fd=folder))
            for _ in range(_REPLACED):
                if file.facts.links:
                    break
                file.__exit__()  # it lost its name just now: look at what has the name
                file = OpenedFile(path, os.open(name, FILE_FLAGS, dir_fd=folder))
        return file

    def has(self, name: str) -> bool:
        """Whether anything lies under a name in the store, of whatever kind.

        Raises:
            UnexaminedError: that cannot be told.
        """
        return is_there(name, folder=self.folder, path=f"{self.path}/{name}")

    def wait_for_writers(self) -> None:
        """Wait until nobody holds the store's lock, as the runtime would wait for it; a missing lock file is free.

        Raises:
            UnexaminedError, RefusedError: the lock file breaks the file rule.
            RefusedError: `store_busy`, when it stayed held.
        """
        if not self.has(STORE_LOCK):
            return
        with self.open_entry(STORE_LOCK) as file:
            end = time.monotonic() + self.patience
            while (answer := ask_lock(file.descriptor)).state in _HELD:
                if time.monotonic() >= end:
                    raise RefusedError(
                        "store_busy",
                        STORE_BUSY,
                        path=file.path,
                        detail=holders(answer),
                    )
                time.sleep(_POLL)

    def ask_owner(self, file: OpenedFile) -> LockAnswer:
        """Whether a process holds the lock of an open claim."""
        return ask_lock(file.descriptor) if self._watch is None else self._watch.ask(file)

    def watch_locks(self) -> LockWatch:
        """From now on ask about locks in the way that suits many files."""
        self._watch = LockWatch(self.folder)
        return self._watch

    def is_busy(self) -> bool:
        """Whether a process holds the store's lock at this moment; False if it cannot be known."""
        try:
            with self._open_file(STORE_LOCK, self.folder, self.path) as file:
                return self.ask_owner(file).state in _HELD
        except UnexaminedError:
            return False


def is_held(answer: LockAnswer) -> bool:
    """Whether the lock counts as held."""
    return answer.state in _HELD


def holders(answer: LockAnswer) -> str:
    """Who holds a lock, in words."""
    known = sorted({holder.pid for holder in answer.holders if holder.pid is not None})
    if not known:
        return "the lock is held by a process that cannot be named from here"
    doubt = "" if answer.state is LockState.HELD else ", if the file is the one in the kernel's list"
    return f"the lock was taken by process {', '.join(map(str, known))}{doubt}"


def shown(facts: FileFacts) -> str:
    """Kind, owner, mode, links and size of a file, in words."""
    return (
        f"it is a {facts.kind} of user {facts.uid}, mode {facts.mode:04o}, "
        f"with {counted(facts.links, 'link')} and {counted(facts.size, 'byte')}"
    )


def _is_private_folder(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
