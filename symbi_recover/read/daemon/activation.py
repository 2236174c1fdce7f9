"""Whether a question at a socket would start an engine: looked at without connecting (leases.md section 18.4).

1. the one listening socket that the socket's file names, from the kernel's dump;
2. the processes that start services for others, `init` first, and whether one of them holds that socket;
3. every other process: one that holds it too serves it, be it an engine or a proxy, and a question starts nothing.

Where some process keeps its descriptors to itself (no root), the listener is taken to wait if no engine is seen to run at
all, and otherwise there is no answer. What stands behind a proxy is not looked at.
"""

from symbi_recover.read.daemon.listener import ENGINE, INIT, Pids
from symbi_recover.read.daemon.peer import holds_socket
from symbi_recover.read.daemon.sockets import NoListener, ask_listener
from symbi_recover.read.evidence.host import sees_whole_host
from symbi_recover.read.evidence.kernel import PROC, CannotKnow, Why
from symbi_recover.read.evidence.processes import ProcessStat, list_pids, read_identity

ASLEEP = "no engine is seen to serve it, and a question could start one"
_ACTIVATORS = frozenset({b"systemd", b"systemd-socket-", b"init", b"dinit", b"xinetd", b"inetd"})
"""Names of commands that listen for services which do not run yet, as the kernel cuts them at 15 bytes."""


def waits_for_start(
    path: str, *, init: int = INIT, pids: Pids = list_pids, proc: str = PROC
) -> bool | CannotKnow:
    """Say whether nobody but a starter of services holds the listener of a socket.

    Args:
        path: of the socket.
        init: a process that owns the listeners of socket activation.
        pids: lists the processes that count as this host's.
        proc: where proc is mounted.
    """
    listening = ask_listener(path, init, proc)
    if isinstance(listening, CannotKnow):
        return listening
    if isinstance(listening, NoListener):
        return CannotKnow(Why.MISSING, "nobody listens there that can be seen")
    numbers = pids(proc)
    if isinstance(numbers, CannotKnow):
        return numbers
    starters = [pid for pid in numbers if _starts_services(pid, init, proc)]
    held = _held(starters, listening.inode, proc)
    if held is False:
        return False
    served = _held(sorted(set(numbers) - set(starters)), listening.inode, proc)
    if served is True:
        return False
    unseen = next((answer for answer in (held, served) if isinstance(answer, CannotKnow)), None)
    if unseen is not None and engine_runs(pids=pids, proc=proc):
        return unseen
    return True


def engine_runs(*, pids: Pids = list_pids, proc: str = PROC) -> bool:
    """Say whether some engine is seen to run, by its command's name alone, which needs no rights."""
    numbers = pids(proc)
    if isinstance(numbers, CannotKnow):
        return False
    stats = (read_identity(pid, proc) for pid in numbers)
    return any(isinstance(one, ProcessStat) and one.command == ENGINE and not one.ended for one in stats)


def _starts_services(pid: int, init: int, proc: str) -> bool:
    stat = read_identity(pid, proc)
    if isinstance(stat, ProcessStat) and stat.command in _ACTIVATORS:
        return True
    # The first process of a container may be any program.
    return pid == init and (pid != INIT or sees_whole_host(proc) is True)


def _held(pids: list[int], inode: int, proc: str) -> bool | CannotKnow:
    """Whether one of these holds the socket; a process that is gone holds nothing."""
    answers = [holds_socket(pid, inode, proc) for pid in pids]
    if any(answer is True for answer in answers):
        return True
    return next((answer for answer in answers if isinstance(answer, CannotKnow)), False)
