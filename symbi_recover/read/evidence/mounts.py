"""Which mount a file lies on, whether its file system is local, and whether /proc can be believed.

Implements the lease format's sections 13 (device numbers), 18.4 (an honest /proc) and 18.5 (local file systems).

1. `parse_mounts` turns the bytes of `mountinfo` into mounts; `read_mounts` reads until two passes agree.
2. `mount_of_descriptor` finds a file's mount by the number in `fdinfo`, on old kernels by the longest prefix.
3. `file_key` gathers both identities of a file: the one of `stat`, and the one that kernel listings print.
4. `judge_proc` lists what speaks against the /proc that this tool reads.

Nothing is mounted, nothing is opened that the caller did not open, and no path is resolved.
"""

import os
from enum import StrEnum

from msgspec import Struct

from symbi_recover.core.words import counted, noun_for
from symbi_recover.read.evidence.kernel import (
    MEBIBYTE,
    PROC,
    CannotKnow,
    Why,
    from_error,
    read_proc,
    small_number,
)

LOCAL_KINDS = frozenset({b"ext2", b"ext3", b"ext4", b"xfs", b"btrfs", b"zfs", b"f2fs", b"overlay", b"tmpfs"})
_NETWORK_KINDS = frozenset(
    b"9p afs beegfs ceph cifs coda fhgfs gfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs pvfs2 "
    b"smb3 smbfs virtiofs".split()
)
_MOST_MOUNTINFO = 16 * MEBIBYTE
_MOST_FDINFO = MEBIBYTE
_PASSES = 4
_OCTAL_LENGTH = 3


class Locality(StrEnum):
    """Where a file system's locks and files live."""

    LOCAL = "local"
    """One of the types whose locks are all in this kernel."""
    NETWORK = "network"
    """Other machines may hold locks and write."""
    OTHER = "other"
    """Neither is known, as for FUSE."""


class Mount(Struct, frozen=True):
    """One line of `mountinfo`; names as bytes, escapes undone."""

    number: int
    parent: int
    device: int
    """Of the super block, in `os.makedev` form."""
    root: bytes
    """The part of the file system that is mounted here."""
    point: bytes
    options: tuple[bytes, ...]
    kind: bytes
    source: bytes
    super_options: tuple[bytes, ...]

    @property
    def locality(self) -> Locality:
        """Judge by the type alone."""
        if self.kind in LOCAL_KINDS:
            return Locality.LOCAL
        return Locality.NETWORK if self.kind in _NETWORK_KINDS else Locality.OTHER


class MountTable(Struct, frozen=True):
    """What `mountinfo` said; `malformed` counts lines that could not be read."""

    mounts: tuple[Mount, ...]
    malformed: int


class FileKey(Struct, frozen=True):
    """The two identities of one file.

    `device` and `inode` are those of `stat`. `kernel_device` and `kernel_inode` are those that /proc/locks and
    socket listings print; they differ from the first on btrfs subvolumes and on overlays of several file
    systems. They are None where the kernel does not tell.
    """

    device: int
    inode: int
    kernel_device: int | None
    kernel_inode: int | None
    kind: bytes | None
    """Type of the file system, None when its mount is not known."""
    locality: Locality


class DescriptorInfo(Struct, frozen=True):
    """What `fdinfo` tells about a descriptor; None on kernels that do not print it."""

    mount: int | None
    inode: int | None


class ProcView(Struct, frozen=True):
    """Whether the mounted /proc shows every process as it is."""

    faults: tuple[str, ...]
    """One sentence each; none means that the mounts give no reason for doubt."""
    covered: tuple[bytes, ...]
    """All mount points below it, harmless ones included."""

    @property
    def honest(self) -> bool:
        """No fault was found."""
        return not self.faults


def parse_mounts(data: bytes) -> MountTable:
    """Parse `mountinfo`. Never raises; lines that do not fit are counted."""
    mounts: list[Mount] = []
    malformed = 0
    for line in data.split(b"\n"):
        if not line:
            continue
        mount = _parse_line(line)
        if mount is None:
            malformed += 1
        else:
            mounts.append(mount)
    return MountTable(tuple(mounts), malformed)


def _parse_line(line: bytes) -> Mount | None:
    fields = line.split(b" ")
    try:
        end = fields.index(b"-", 6)
    except ValueError:
        return None
    # The source may be empty, which leaves two blanks; an option string is never split.
    if len(fields) != end + 4:
        return None
    major, colon, minor = fields[2].partition(b":")
    numbers = [small_number(text, 0x7FFFFFFF) for text in (fields[0], fields[1], major, minor)]
    number, parent, high, low = numbers
    if number is None or parent is None or high is None or low is None or not colon:
        return None
    if high > 0xFFF or low > 0xFFFFF:
        return None
    return Mount(
        number,
        parent,
        os.makedev(high, low),
        unescape(fields[3]),
        unescape(fields[4]),
        tuple(fields[5].split(b",")),
        unescape(fields[end + 1]),
        unescape(fields[end + 2]),
        tuple(fields[end + 3].split(b",")),
    )


def unescape(text: bytes) -> bytes:
    """Undo the kernel's three-digit octal escapes; a backslash before anything else stays."""
    first, *rest = text.split(b"\\")
    parts = [first]
    for part in rest:
        digits = part[:_OCTAL_LENGTH]
        if len(digits) == _OCTAL_LENGTH and not digits.strip(b"01234567") and int(digits, 8) < 256:
            parts.append(bytes((int(digits, 8),)) + part[_OCTAL_LENGTH:])
        else:
            parts.append(b"\\" + part)
    return b"".join(parts)


def read_mounts(proc: str = PROC) -> MountTable | CannotKnow:
    """Read this process's mounts. The kernel hands out a long table in pieces, hence the second pass."""
    last: bytes | None = None
    for _ in range(_PASSES):
        data = read_proc("self/mountinfo", limit=_MOST_MOUNTINFO, proc=proc)
        if isinstance(data, CannotKnow):
            return data
        if data == last:
            return parse_mounts(data)
        last = data
    return CannotKnow(Why.UNSTABLE, "the mounts changed while they were read")


def parse_descriptor_info(data: bytes) -> DescriptorInfo:
    """Parse the `mnt_id` and `ino` lines of `fdinfo`; the first of each counts. Never raises."""
    found: dict[bytes, int | None] = {}
    for line in data.split(b"\n"):
        name, _, value = line.partition(b":")
        if name in (b"mnt_id", b"ino") and name not in found:
            found[name] = small_number(value.strip(b" \t"))
    return DescriptorInfo(found.get(b"mnt_id"), found.get(b"ino"))


def covering_mount(table: MountTable, path: bytes) -> Mount | None:
    """Return the mount with the longest mount point above an absolute, resolved path; of equals the last."""
    best: Mount | None = None
    for mount in table.mounts:
        if _is_below(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def _is_below(path: bytes, point: bytes) -> bool:
    return path == point or path.startswith(point.rstrip(b"/") + b"/")


def mount_of_descriptor(descriptor: int, proc: str = PROC) -> Mount | CannotKnow:
    """Return the mount that an open file lies on.

    Args:
        descriptor: open in this process; one opened with `O_PATH` will do.
        proc: where proc is mounted.
    """
    table = read_mounts(proc)
    if isinstance(table, CannotKnow):
        return table
    data = read_proc(f"self/fdinfo/{descriptor}", limit=_MOST_FDINFO, proc=proc)
    info = parse_descriptor_info(data) if isinstance(data, bytes) else DescriptorInfo(None, None)
    return _mount_of(table, info, descriptor, proc)


def _mount_of(table: MountTable, info: DescriptorInfo, descriptor: int, proc: str) -> Mount | CannotKnow:
    if info.mount is not None:
        same = [mount for mount in table.mounts if mount.number == info.mount]
        if len(same) == 1:
            return same[0]
        return CannotKnow(Why.MISSING, f"mount {info.mount} of the open file is not in this mount namespace")
    try:
        path = os.readlink(os.fsencode(f"{proc}/self/fd/{descriptor}"))
    except OSError as error:
        return from_error(error, "the name of the open file cannot be read")
    mount = covering_mount(table, path) if path.startswith(b"/") else None
    return mount or CannotKnow(Why.MISSING, "no mount lies above the open file")


def file_key(descriptor: int, proc: str = PROC) -> FileKey | CannotKnow:
    """Gather both identities of an open file; a mount that cannot be found leaves its members None.

    Args:
        descriptor: open in this process; one opened with `O_PATH` will do.
        proc: where proc is mounted.
    """
    try:
        status = os.fstat(descriptor)
    except OSError as error:
        return from_error(error, "the open file cannot be examined")
    data = read_proc(f"self/fdinfo/{descriptor}", limit=_MOST_FDINFO, proc=proc)
    info = parse_descriptor_info(data) if isinstance(data, bytes) else DescriptorInfo(None, None)
    table = read_mounts(proc)
    mount = table if isinstance(table, CannotKnow) else _mount_of(table, info, descriptor, proc)
    if isinstance(mount, CannotKnow):
        return FileKey(status.st_dev, status.st_ino, None, info.inode, None, Locality.OTHER)
    return FileKey(status.st_dev, status.st_ino, mount.device, info.inode, mount.kind, mount.locality)


def judge_proc(table: MountTable, point: bytes = b"/proc") -> ProcView:
    """List what speaks against the mounted /proc (section 18.4). Pure: the table comes as an argument."""
    faults: list[str] = []
    here = [mount for mount in table.mounts if mount.point == point]
    if table.malformed:
        faults.append(f"{counted(table.malformed, 'line')} of the mount table cannot be read")
    if len(here) != 1:
        faults.append(f"there are {len(here)} mounts at the proc directory instead of one")
    for mount in here:
        if mount.kind != b"proc" or mount.root != b"/":
            faults.append("what is mounted at the proc directory is not the whole of proc")
        hiding = {option.partition(b"=")[0] for option in mount.super_options + mount.options}
        faults.extend(
            f"proc is mounted with the option {name.decode()}"
            for name in (b"hidepid", b"subset")
            if name in hiding
        )
    below = tuple(m.point for m in table.mounts if m.point != point and _is_below(m.point, point))
    hidden = [name for name in below if name[len(point) :].split(b"/")[1].isdigit()]
    if hidden:
        faults.append(
            f"{counted(len(hidden), 'mount')} {noun_for(len(hidden), 'covers', 'cover')} what proc says about single processes"
        )
    return ProcView(tuple(faults), below)
