"""Asks about the locks of many files of one folder: what is the same for all is found out once.

Whether the kernel's list of locks is whole, and how the kernel numbers the folder's device, is asked for the folder.
For each file the list itself is read anew, and only parsed if the file's inode number occurs in it.
"""

from msgspec.structs import replace

from symbi_recover.read.evidence.kernel import MEBIBYTE, CannotKnow, read_proc
from symbi_recover.read.evidence.locks import LockAnswer, LockState, ask_lock, judge_locks, parse_locks
from symbi_recover.read.evidence.mounts import file_key
from symbi_recover.read.evidence.opener import OpenedFile

_MOST_LOCKS = 16 * MEBIBYTE


class LockWatch:
    """Answers for the files of one open folder."""

    def __init__(self, folder: int) -> None:
        self._absence = ask_lock(folder)
        key = file_key(folder)
        usable = not isinstance(key, CannotKnow) and key.kernel_inode in (None, key.inode)
        self._key = key if usable and not isinstance(key, CannotKnow) else None

    @property
    def doubt(self) -> CannotKnow | None:
        """Why the absence of a holder would show nothing; None if it shows that a lock is free."""
        return self._absence.because

    def ask(self, file: OpenedFile) -> LockAnswer:
        """Who holds the lock of an open file of the folder."""
        facts = file.facts
        if self._key is None or facts.device != self._key.device:
            return ask_lock(file.descriptor)
        data = read_proc("locks", limit=_MOST_LOCKS)
        if isinstance(data, CannotKnow):
            return LockAnswer(LockState.UNKNOWN, because=data)
        if b":%d " % facts.inode in data:
            kernel_inode = None if self._key.kernel_inode is None else facts.inode
            key = replace(self._key, inode=facts.inode, kernel_inode=kernel_inode)
            answer = judge_locks(parse_locks(data), key)
            if answer.holders:
                return answer
        if self.doubt is not None:
            return LockAnswer(LockState.UNKNOWN, because=self.doubt)
        return LockAnswer(LockState.FREE)
