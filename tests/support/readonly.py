"""Shows that a command only looks: by its system calls, by the state of a tree before and after, on a read-only mount.

Three independent ways, because each sees what the others miss:

1. `assert_traced_read_only` runs the command under strace and judges every call of every process, start-up included.
   An attempt that failed counts as well. Only the standard streams, pipes, /dev/null and memory files may be written.
2. `hash_tree` lists a tree with names, kinds, bytes, modes, owners, times, links and extended attributes, to be
   compared before and after. It sees what no system call of the command shows, such as the work of a helper.
3. `read_only_mount` makes a directory read-only for everyone, root included, for as long as a block runs.

A change made through a descriptor that was open before the command started is not seen by the first.
"""

import hashlib
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import Struct

from tests.crash.calls import Call, names, parse
from tests.crash.run import environment, missing_strace

NAME_SERVICE = "/var/run/nscd/socket"
"""The C library asks this socket for user names before it reads /etc/passwd."""

_CHANGES = frozenset(
    names(
        "creat rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat rmdir mkdir mkdirat mknod "
        "mknodat truncate chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes utimensat "
        "futimesat setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr mount umount2 pivot_root "
        "move_mount fsmount open_by_handle_at flock bind quotactl swapon acct io_uring_setup"
    )
)
_SIGNALS = names("kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal")
_WRITES = frozenset(
    names(
        "write pwrite64 writev pwritev pwritev2 ftruncate fallocate copy_file_range sendfile splice vmsplice tee"
    )
)
_TO_LAST = frozenset({"copy_file_range", "splice", "tee"})
_SENDS = frozenset({"connect", "sendto", "sendmsg", "sendmmsg"})
_WRITE_FLAGS = re.compile(r"\b(O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE)\b")
_LOCKS = re.compile(r"\bF_(SETLKW?|SETLKW?64|OFD_SETLKW?|SETLEASE)\b")
_IOCTLS = re.compile(
    r"\b(FS_IOC_SETFLAGS|FS_IOC_FSSETXATTR|FICLONE|FICLONERANGE|FIDEDUPERANGE|BTRFS_IOC_\w+)\b"
)
_HARMLESS = re.compile(r"/dev/(null|tty|pts/\d+)|/memfd:.*|(pipe|socket):\[\d+\]|anon_inode:.*")
_ADDRESS = re.compile(r'sun_path=@?"((?:[^"\\]|\\.)*)"|inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"')
_IPV6_PROBE = re.compile(r'htons\(0\),.* inet_pton\(AF_INET6, "::1"')
"""urllib3 asks on import whether there is IPv6 by binding a socket to any port of ::1, where nothing listens then."""
_TRACED = f"%file,%desc,%network,%process,{','.join(sorted(_SIGNALS))},quotactl,swapon,acct,io_uring_setup"


class Entry(Struct, frozen=True):
    """One name in a tree. `content` is a SHA-256 for a regular file, the target for a link, else ""."""

    kind: str
    mode: int
    uid: int
    gid: int
    inode: int
    links: int
    size: int
    mtime_ns: int
    ctime_ns: int
    content: str
    attributes: tuple[tuple[str, bytes], ...]


def assert_traced_read_only(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    *,
    sockets: Collection[str] = (),
    exits: Collection[int] | None = None,
    timeout: float = 60.0,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command under strace and raise AssertionError when any of its calls could change something.

    Args:
        argv: the command.
        cwd: its working directory.
        env: added to a small fixed environment, in which the interpreter writes no byte code.
        sockets: paths or addresses that it may connect to.
        exits: the exit codes that are right; None for any. Use it, or a command that fails at once passes.
        timeout: seconds.
    """
    reason = missing_strace()
    if reason:
        pytest.skip(f"not run: {reason}")
    with tempfile.TemporaryDirectory(prefix="strace-") as folder:
        log = Path(folder, "log")
        traced = ["strace", "-f", "-y", "-qq", "-a1", "-s", "64", "--seccomp-bpf", "-e", f"trace={_TRACED}"]
        whole = [*traced, "-o", str(log), "--", *argv]
        ended = subprocess.run(
            whole,
            cwd=cwd,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        calls = parse(log.read_text("utf-8", "surrogateescape").splitlines(), str(cwd))
    if not calls:
        raise AssertionError(f"nothing was traced: {ended.stderr!r}")
    allowed = {*sockets, NAME_SERVICE}
    started = {call.pid for call in calls} - {calls[0].pid}
    found = [text for call in calls if (text := violation(call, allowed, started)) is not None]
    if found:
        raise AssertionError("not read-only:\n" + "\n".join(found))
    if exits is not None and ended.returncode not in exits:
        raise AssertionError(f"ended with {ended.returncode}, not one of {sorted(exits)}: {ended.stderr!r}")
    return ended


def violation(call: Call, sockets: Collection[str], started: Collection[int] = ()) -> str | None:
    """What a call does that a reader must not do, with its line of the log; None when it only reads.

    A command may end by number the processes that it has `started` itself, which it waits for.
    """
    text = " ".join(call.args)
    if call.name == "bind" and _IPV6_PROBE.search(text):
        return None
    if call.name == "kill" and call.args[0].isdigit() and int(call.args[0]) in started:
        return None
    if call.name in _SIGNALS:
        return f"signals a process: {call.text}"
    if call.name in _CHANGES:
        return f"changes: {call.text}"
    if (
        call.name in ("open", "openat", "openat2")
        and _WRITE_FLAGS.search(text)
        and not _harmless(call.paths[-1:])
    ):
        return f"opens for writing: {call.text}"
    if call.name in _WRITES and call.descriptor not in (1, 2):
        target = call.paths[-1:] if call.name in _TO_LAST else call.paths[:1]
        return None if _harmless(target) else f"writes: {call.text}"
    if (call.name == "fcntl" and _LOCKS.search(text)) or (call.name == "ioctl" and _IOCTLS.search(text)):
        return f"locks or changes: {call.text}"
    if call.name in _SENDS:
        wanted = [next(filter(None, found)) for found in _ADDRESS.findall(text) if any(found)]
        if any(address not in sockets for address in wanted):
            return f"connects to a socket that is not allowed: {call.text}"
        if call.name == "connect" and not wanted and "AF_NETLINK" not in text and "AF_UNSPEC" not in text:
            return f"connects to an address that cannot be read: {call.text}"
    return None


def hash_tree(root: Path, *, ctime: bool = False) -> dict[str, Entry]:
    """Everything below `root`, itself included as ".", by relative path; no link is followed, no pipe is opened.

    `ctime` is 0 unless it is asked for, because a rename of the tree itself changes it.
    """
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            content = str(path.readlink()) if stat.S_ISLNK(status.st_mode) else ""
        found[str(path.relative_to(root))] = Entry(
            kind=stat.filemode(status.st_mode)[0],
            mode=stat.S_IMODE(status.st_mode),
            uid=status.st_uid,
            gid=status.st_gid,
            inode=status.st_ino,
            links=status.st_nlink,
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns if ctime else 0,
            content=content,
            attributes=_attributes(path),
        )
    return found


@contextmanager
def read_only_mount(directory: Path) -> Iterator[Path]:
    """Make `directory` read-only at its own place for the block, by a bind mount; skip the test where that cannot be."""
    if os.geteuid() != 0:
        pytest.skip("not run: a read-only bind mount needs root")
    bound = _mount("mount", "--bind", str(directory), str(directory))
    if bound:
        pytest.skip(f"not run: no bind mount here: {bound}")
    try:
        closed = _mount("mount", "-o", "remount,bind,ro", str(directory))
        if closed:
            pytest.skip(f"not run: no read-only remount here: {closed}")
        yield directory
    finally:
        left = _mount("umount", str(directory)) and _mount("umount", "--lazy", str(directory))
        if left:
            raise AssertionError(f"{directory} is still mounted: {left}")


def _harmless(paths: Sequence[str]) -> bool:
    return bool(paths) and all(_HARMLESS.fullmatch(path) for path in paths)


def _attributes(path: Path) -> tuple[tuple[str, bytes], ...]:
    try:
        listed = sorted(os.listxattr(path, follow_symlinks=False))
        return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in listed)
    except OSError:  # the file system has none
        return ()


def _mount(*argv: str) -> str:
    """Run a mount command; its message when it failed."""
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    return "" if ended.returncode == 0 else ended.stderr.strip() or f"{argv[0]} failed"
