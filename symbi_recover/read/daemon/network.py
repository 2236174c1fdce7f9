"""Makes a socket inside another process's network namespace (leases.md section 18.4, "Listener and engine").

A thread of our own enters the namespace, makes the socket and ends; the socket stays where it was made. The rest of this
process never leaves its own namespace. `CAP_SYS_ADMIN` is needed. Nothing changes but that thread.
"""

import errno
import os
import socket
import threading
from collections.abc import Callable

from symbi_recover.read.evidence.kernel import PROC, opened, opened_directory

_CLONE_NEWNET = 0x40000000
# A namespace's name in /proc is a link that has to be followed.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC


def inside_network(pid: int, make: Callable[[], socket.socket], proc: str = PROC) -> socket.socket:
    """Make a socket in the network namespace of a process.

    Args:
        pid: of the process.
        make: makes the socket.
        proc: where proc is mounted.

    Raises:
        OSError: the namespace cannot be opened or entered, or the socket not be made.
    """
    made: list[socket.socket] = []
    failed: list[OSError] = []

    def work() -> None:
        try:
            _enter(namespace)
            made.append(make())
        except OSError as error:
            failed.append(error)

    with opened_directory(f"{proc}/{pid}") as process, opened("ns/net", _FLAGS, within=process) as namespace:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    if failed:
        raise failed[0]
    if not made:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return made[0]


def _enter(namespace: int) -> None:
    import ctypes  # noqa: PLC0415  # late: hardly any host needs it

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(ctypes.c_int(namespace), ctypes.c_int(_CLONE_NEWNET)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
