"""The fence: an unstarted container under the record's name, and what is left of one (leases.md sections 18.3 and 18.6).

Making one: a note in the operator's folder, durable and locked for as long as the run goes on; an empty image; the
container. The note's nonce, on image and container, is what makes them ours.

Removing: the container by id, without force, then the image by id, then the note. A note is kept while it is not certain
that nothing of its fence exists, or may still come to exist, so that `lease fences` finds it.
"""

import fcntl
import os
import secrets
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from symbi_recover.core.fences import FENCE_LABEL, NONCE_LABEL, FenceNote
from symbi_recover.core.findings import Finding
from symbi_recover.core.lease_records import LABEL, NAME_PREFIX
from symbi_recover.core.retirement import Fence
from symbi_recover.read.daemon.questions import DaemonError
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.retirement.notes import FENCES, SUFFIX
from symbi_recover.wire.retirement import encode
from symbi_recover.write.daemon import EngineHand, NameTaken
from symbi_recover.write.lock import HeldLock, is_behind_name, try_lock
from symbi_recover.write.notes import own_folder, remove_own, write_own

Hands = Callable[[str], EngineHand]
_UNSTARTED = "created"


def note_name(note: FenceNote) -> str:
    """The file name of a note."""
    return f"{note.lease}.{note.nonce}{SUFFIX}"


class FenceWork:
    """One fence of one run."""

    def __init__(self, hands: Hands, home: str, lease: str, endpoint: str, now_ns: int) -> None:
        self.note = FenceNote(nonce=secrets.token_hex(16), lease=lease, endpoint=endpoint, at_ns=now_ns)
        self.fence = Fence(nonce=self.note.nonce)
        self._home = home
        self._hands = hands
        self._lock: HeldLock | None = None
        self._certain = True
        """Every answer so far said whether the thing was made."""

    @property
    def _name(self) -> str:
        return f"{NAME_PREFIX}{self.note.lease}"

    def make(self) -> tuple[Finding, ...]:
        """Make note, image and container; the fence's state says how it went. Gives what has to be said of the note.

        Raises:
            RefusedError: the note could not be written; nothing was made.
        """
        written = write_own(self._home, FENCES, note_name(self.note), encode(self.note))
        self._lock = lock_note(self._home, self.note)
        if self._lock is None:
            why = "another command holds the note of this fence"
            self.fence = replace(self.fence, state="fence_failed", why=why)
            return written.remarks
        hand = self._hands(self.note.endpoint)
        try:
            image = hand.import_image(self.note.lease, self.note.nonce)
            self.fence = replace(self.fence, image_id=image)
            made = hand.create_fence(self._name, image, self.note.lease, self.note.nonce)
            self.fence = self._made(hand, made)
        except DaemonError as error:
            self._certain = error.code == "daemon_failed"
            self.fence = replace(self.fence, state="fence_failed", why=f"{error.code}: {error.message}")
        finally:
            hand.close()
        return written.remarks

    def _made(self, hand: EngineHand, made: str | NameTaken) -> Fence:
        if isinstance(made, str):
            return replace(self.fence, state="unbroken", container_id=made)
        if made.container_id is None:
            return replace(self.fence, state="fence_failed", why=made.message)
        if hand.inspect(made.container_id) is None:
            why = f"the name is reserved for {made.container_id}, which cannot be seen"
            return replace(self.fence, state="creation_in_flight", why=why)
        return replace(self.fence, state="name_foreign", why=f"container {made.container_id} has the name")

    def check(self, hand: EngineHand) -> Fence:
        """See whether the fence still stands: same id, unstarted.

        Raises:
            DaemonError: the daemon did not answer.
        """
        if self.fence.state != "unbroken":
            return self.fence
        found = hand.inspect(self._name)
        why = None
        if found is None or found.name != self._name or found.id != self.fence.container_id:
            why = "the container under the name is gone, or another one"
        elif found.state != _UNSTARTED or found.labels.get(NONCE_LABEL) != self.note.nonce:
            why = f"the fence is in state {found.state}"
        if why is not None:
            self.fence = replace(self.fence, state="fence_broken", why=why)
        return self.fence

    def remove(self) -> str | None:
        """Remove whatever was made, and the note; None, or why something may be left. A repeat does no harm.

        A fence that stood and is not there any more is broken: somebody else took it away, and nobody knows when.
        """
        if self._lock is None:
            return None
        try:
            why = self._remove()
            if why is None and not self._certain:
                why = "a request may still be carried out"
            if why is None:
                remove_own(self._home, FENCES, note_name(self.note))
        finally:
            self.release()
        return why

    def _remove(self) -> str | None:
        hand = self._hands(self.note.endpoint)
        try:
            removal = remove_fence(hand, self.note)
        except DaemonError as error:
            return f"{error.code}: {error.message}"
        finally:
            hand.close()
        if (
            self.fence.state == "unbroken"
            and self.fence.container_id not in removal.removed
            and not removal.why
        ):
            why = "it was gone before this run took it away"
            self.fence = replace(self.fence, state="fence_broken", why=why)
        return removal.why

    def release(self) -> None:
        """Let others take care of what is left."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def lock_note(home: str, note: FenceNote) -> HeldLock | None:
    """Lock a note; None if a run holds it, or has just removed it.

    Raises:
        RefusedError: `lock_uncertain`, `operator_home_unsafe`.
        UnexaminedError: the note cannot be opened.
    """
    name = note_name(note)
    with own_folder(home, FENCES) as folder:
        file = OpenedFile.open(name, folder=folder)
        taken = False
        try:
            taken = try_lock(file.descriptor, file.path, fcntl.flock) and is_behind_name(file, name, folder)
        finally:
            if not taken:
                os.close(file.descriptor)
    return HeldLock(file) if taken else None


class Removal(Struct, frozen=True):
    """What became of a fence."""

    removed: frozenset[str]
    """Ids of the containers that were there and are not any more."""
    why: str | None = None
    """Why something is left, or None."""


def remove_fence(hand: EngineHand, note: FenceNote) -> Removal:
    """Remove the container and the image of a note, by their ids and never by force.

    Raises:
        DaemonError: the daemon refused, or did not answer.
    """
    removed: set[str] = set()
    for one in hand.fences():
        if not is_of(one.labels, note):
            continue
        if f"{NAME_PREFIX}{note.lease}" not in one.names or one.state != _UNSTARTED:
            names = ", ".join(one.names)
            return Removal(
                frozenset(), f"container {one.id} carries our nonce, is named {names} and {one.state}"
            )
        if hand.remove_container(one.id, force=False, volumes=False):
            removed.add(one.id)
    for image in hand.fence_images():
        if is_of(image.labels, note):
            hand.remove_image(image.id)
    left = [one.id for one in hand.fences() if is_of(one.labels, note)]
    left += [image.id for image in hand.fence_images() if is_of(image.labels, note)]
    return Removal(frozenset(removed), f"{', '.join(left)} is still there" if left else None)


def is_of(labels: dict[str, str], note: FenceNote) -> bool:
    """Whether labels are those of a note's fence, and of no lease."""
    ours = labels.get(FENCE_LABEL) == note.lease and labels.get(NONCE_LABEL) == note.nonce
    return ours and LABEL not in labels
