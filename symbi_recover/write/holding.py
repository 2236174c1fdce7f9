"""Takes a candidate aside before it is published, so that nothing but the very file that was judged gets the name.

A rename moves whatever lies under a name at that instant. Between the last look and the rename another process may
have put another file there (publication.md section 14.1). So the candidate is moved in two steps, each without
replacing anything:

1. into a private folder `.symbi-recover-<publication id>` beside it, where its identity is compared with the file that
   is held open, and where nobody else's names are; 2. from there to the target's name.

What turns out to be another file goes back to the candidate's name, and so does the candidate when the target's name is
taken. A process that is killed in between leaves the candidate in the folder; the next run puts it back first.
"""

import errno
import os
import stat
from contextlib import suppress

from symbi_recover.core.values import PublicationIntent
from symbi_recover.read.evidence.locate import lstat_at
from symbi_recover.read.evidence.opener import FOLDER_FLAGS
from symbi_recover.wire.intent import HELD_NAME, HOLDING_PREFIX
from symbi_recover.write.atomic import rename_no_replace, sync_folder


class OtherFileError(Exception):
    """What lay under the candidate's name was another file; it is there again, or `stuck` names where it is."""

    def __init__(self, stuck: str | None) -> None:
        super().__init__()
        self.stuck = stuck


class StuckError(Exception):
    """The candidate could not get its own name back; it lies in the holding folder."""

    def __init__(self, cause: OSError) -> None:
        super().__init__()
        self.cause = cause


def holding_name(intent: PublicationIntent) -> str:
    """The name of the holding folder, beside candidate and target."""
    return f"{HOLDING_PREFIX}{intent.publication_id}"


class Holding:
    """The holding folder of one publication, in the open parent."""

    def __init__(self, parent: int, intent: PublicationIntent) -> None:
        self.parent = parent
        self.intent = intent
        self.name = holding_name(intent)
        self._folder = -1

    def open(self) -> bool:
        """Open a folder that an interrupted recovery left; False if there is none of our own.

        Raises:
            OSError: as the system answers.
        """
        try:
            self._folder = os.open(self.name, FOLDER_FLAGS, dir_fd=self.parent)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
                return False
            raise
        status = os.fstat(self._folder)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            self.close()
            return False
        return True

    def make(self) -> None:
        """Make and open it.

        Raises:
            OSError: as the system answers; EEXIST if something has its name.
        """
        os.mkdir(self.name, 0o700, dir_fd=self.parent)
        try:
            self._folder = os.open(self.name, FOLDER_FLAGS, dir_fd=self.parent)
        except OSError:
            with suppress(OSError):
                os.rmdir(self.name, dir_fd=self.parent)
            raise

    def close(self) -> None:
        """Close it, if it is open."""
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def has_candidate(self) -> bool:
        """Whether it holds the file of the intent, by identity."""
        status = lstat_at(HELD_NAME, self._folder)
        return status is not None and (status.st_dev, status.st_ino) == self.intent.candidate_identity

    def is_empty(self) -> bool:
        """Whether it holds nothing under the name that is used here."""
        return lstat_at(HELD_NAME, self._folder) is None

    def take(self) -> None:
        """Step 1: move what lies under the candidate's name here, and compare it.

        Raises:
            OSError: as the system answers; nothing was moved.
            OtherFileError: it was another file.
        """
        rename_no_replace(self.parent, self.intent.candidate_name, self._folder, HELD_NAME)
        if not self.has_candidate():
            stuck = None
            try:
                self.put_back()
            except StuckError:
                stuck = f"{self.name}/{HELD_NAME}"
            raise OtherFileError(stuck)

    def give(self) -> None:
        """Step 2: give the candidate the target's name.

        Raises:
            OSError: as the system answers; it is still here.
        """
        rename_no_replace(self._folder, HELD_NAME, self.parent, self.intent.target_name)

    def put_back(self) -> None:
        """Move what is here back to the candidate's name.

        Raises:
            StuckError: that name is taken, or the system refuses.
        """
        try:
            rename_no_replace(self._folder, HELD_NAME, self.parent, self.intent.candidate_name)
        except OSError as error:
            raise StuckError(error) from error

    def remove(self) -> None:
        """Remove the folder, durably as far as its own names go; what cannot be removed stays.

        Raises:
            OSError: its names could not be synced.
        """
        sync_folder(self._folder)
        self.close()
        with suppress(OSError):
            os.rmdir(self.name, dir_fd=self.parent)
