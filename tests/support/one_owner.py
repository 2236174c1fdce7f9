"""File systems that show one owner for all files, whoever they belong to: a FUSE server and an idmapped mount.

`served` shows a folder read-only through /dev/fuse, as `bindfs --force-user` or a network mount does, with one owner
and, if asked, one mode for all. `mapped` shows a folder through a mount whose user namespace knows none of its
accounts: the kernel shows everything as belonging to the overflow account, and root has no rights over it.

Both are for use inside `tests.support.mounts.in_private_mounts`.
"""

import ctypes
import errno
import os
import signal
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.mounts import NotHereError, checked, mount

OVERFLOW = int(Path("/proc/sys/kernel/overflowuid").read_text())
_LIBC = ctypes.CDLL(None, use_errno=True)
_REQUEST = struct.Struct("<IIQQIIII")
_ANSWER = struct.Struct("<IiQ")
_ATTRIBUTES = struct.Struct("<6Q10I")
_LOOKUP, _FORGET, _GETATTR, _READLINK, _OPEN, _READ, _STATFS = 1, 2, 3, 5, 14, 15, 17
_INIT, _OPENDIR, _READDIR, _INTERRUPT, _BATCH_FORGET = 26, 27, 28, 36, 42
_SILENT = (18, 25, 29)  # release, flush, releasedir
_UNANSWERED = (_FORGET, _INTERRUPT, _BATCH_FORGET)
_PR_SET_PDEATHSIG = 1


class _Server:
    """Answers the kernel's questions about one folder; nodes are numbered as they are looked up, from 1, the root."""

    def __init__(self, device: int, tree: Path, uid: int, mode: int | None) -> None:
        self.device = device
        self.uid = uid
        self.mode = mode
        self.paths = {1: tree}
        self.nodes = {tree: 1}

    def serve(self) -> None:
        """Answer until the file system is gone."""
        while True:
            data = os.read(self.device, 1 << 20)
            _, what, unique, node, *_ = _REQUEST.unpack_from(data)
            if what in _UNANSWERED:
                continue
            try:
                number, answer = (
                    0,
                    self._answer(what, self.paths.get(node, self.paths[1]), data[_REQUEST.size :]),
                )
            except OSError as error:
                number, answer = -(error.errno or errno.EIO), b""
            os.write(self.device, _ANSWER.pack(_ANSWER.size + len(answer), number, unique) + answer)

    def _answer(self, what: int, path: Path, given: bytes) -> bytes:
        if what == _INIT:
            return struct.pack("<4I2H11I", 7, 23, 1 << 16, 0, 0, 0, 1 << 16, 1, *(0,) * 9)
        if what == _LOOKUP:
            below = path / os.fsdecode(given.split(b"\0")[0])
            shown = self._attributes(below)
            node = self.nodes.setdefault(below, len(self.nodes) + 1)
            self.paths[node] = below
            return struct.pack("<4Q2I", node, 0, 0, 0, 0, 0) + shown
        if what == _GETATTR:
            return struct.pack("<Q2I", 0, 0, 0) + self._attributes(path)
        if what == _READLINK:
            return os.fsencode(os.readlink(path))
        if what in (_OPEN, _OPENDIR):
            return struct.pack("<Q2I", 0, 0, 0)
        if what in (_READ, _READDIR):
            _, offset, size = struct.unpack_from("<2QI", given)
            content = path.read_bytes() if what == _READ else self._entries(path)
            return content[offset : offset + size]
        if what == _STATFS:
            return struct.pack("<5Q4I24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0)
        if what in _SILENT:
            return b""
        raise OSError(errno.ENOSYS, "")

    def _attributes(self, path: Path) -> bytes:
        status = path.lstat()
        mode = status.st_mode if self.mode is None else stat.S_IFMT(status.st_mode) | self.mode
        seconds = (int(status.st_atime), int(status.st_mtime), int(status.st_ctime))
        parts = (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns)
        return _ATTRIBUTES.pack(
            *(status.st_ino, status.st_size, status.st_blocks, *seconds),
            *(part % 1_000_000_000 for part in parts),
            *(mode, status.st_nlink, self.uid, self.uid, 0, 4096, 0),
        )

    def _entries(self, path: Path) -> bytes:
        """The folder's entries one after the other; each says where the next one begins."""
        listed = b""
        for entry in sorted(path.iterdir()):
            status, name = entry.lstat(), os.fsencode(entry.name)
            size = 24 + len(name) + -len(name) % 8
            head = struct.pack("<2Q2I", status.st_ino, len(listed) + size, len(name), status.st_mode >> 12)
            listed += (head + name).ljust(size, b"\0")
        return listed


@contextmanager
def served(tree: Path, point: Path, *, uid: int, mode: int | None = None) -> Iterator[None]:
    """Show `tree` at `point`, all of it as belonging to `uid`, with its own modes or one `mode` for all.

    Raises:
        NotHereError: there is no FUSE here.
    """
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise NotHereError(f"/dev/fuse: {error.strerror}") from error
    given = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    mount("fuse", point, given, source="one-owner")
    server = os.fork()
    if server == 0:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.closerange(3, device)
        os.closerange(device + 1, 256)
        try:
            _Server(device, tree, uid, mode).serve()
        finally:
            os._exit(1)
    os.close(device)
    try:
        yield
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH, _MOUNT_ATTR_IDMAP = 1, 4, 0x100000
_CLONE_NEWUSER = 0x10000000
_UNUSED_ACCOUNT = 3_000_000_000


def mapped(tree: Path, point: Path) -> None:
    """Show `tree` at `point`, every account in it as the overflow account.

    Raises:
        NotHereError: this kernel or file system has no idmapped mounts.
    """
    tree_fd = checked(
        "open_tree", _LIBC.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(tree), _OPEN_TREE_CLONE | os.O_CLOEXEC)
    )
    accounts = _accounts()
    attributes = struct.pack("<4Q", _MOUNT_ATTR_IDMAP, 0, 0, accounts)
    answer = _LIBC.syscall(_MOUNT_SETATTR, tree_fd, b"", _AT_EMPTY_PATH, attributes, len(attributes))
    checked("an idmapped mount", answer)
    answer = _LIBC.syscall(_MOVE_MOUNT, tree_fd, b"", _AT_FDCWD, os.fsencode(point), _MOVE_MOUNT_F_EMPTY_PATH)
    checked("move_mount", answer)
    os.close(tree_fd)
    os.close(accounts)


def _accounts() -> int:
    """A user namespace that knows one account, which nothing belongs to; it lives as long as the descriptor."""
    ready, made = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(made, b"1" if _LIBC.unshare(_CLONE_NEWUSER) == 0 else b"0")
        signal.pause()
    try:
        if os.read(ready, 1) != b"1":
            raise NotHereError("a user namespace is refused")
        for which in ("uid_map", "gid_map"):
            Path(f"/proc/{child}/{which}").write_text(f"{_UNUSED_ACCOUNT} {_UNUSED_ACCOUNT} 1\n")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NotHereError(f"a user namespace: {error.strerror}") from error
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(made)
