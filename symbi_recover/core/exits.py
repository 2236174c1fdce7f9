"""The exit codes of every command, once."""

from enum import IntEnum, unique


@unique
class Exit(IntEnum):
    """What the end of a command says.

    The runtime-compatible commands (`audit inspect`, `invocation inspect|reconcile|file-inspect|file-recover`)
    end only with 0, 1 or 2, as the runtime does, but for a defect of ours; see `runtime_exit`.
    """

    OK = 0
    """Proven, and nothing to do."""
    REFUSED = 1
    """Evidence refused, or the command failed."""
    ATTENTION = 2
    """Authentic, but someone must act."""
    UNEXAMINED = 3
    """Could not examine: missing, unreadable, changing, daemon away."""
    STALE = 4
    """Write refused: the world is not as it was reviewed."""
    USAGE = 64
    """The command line was misused."""
    DEFECT = 70
    """A defect of this program."""
    INTERRUPTED = 130
    """Interrupted by SIGINT."""
    TERMINATED = 143
    """Interrupted by SIGTERM."""


_WORST_FIRST = (Exit.DEFECT, Exit.REFUSED, Exit.UNEXAMINED, Exit.STALE, Exit.ATTENTION, Exit.OK)


def worst(exits: list[Exit]) -> Exit:
    """The exit code for several targets: the worst one, in the order 70, 1, 3, 4, 2, 0; 0 for none."""
    return min(exits, key=_WORST_FIRST.index, default=Exit.OK)


def runtime_exit(code: Exit) -> Exit:
    """Fold our finer codes into the three that the runtime's own commands know; a defect of ours stays one."""
    return code if code in (Exit.OK, Exit.ATTENTION, Exit.DEFECT) else Exit.REFUSED
