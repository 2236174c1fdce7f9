"""Runs every reading command as another user, in one process: `python -m tests.support.other_user WORLD UID`.

1. Run each as the user who started this, so that every module is loaded: the other may not be able to read them.
2. Become the other user for good, and make sure that it cannot write to the world.
3. Run each again, and print how all of them ended, both times, as one JSON object.

A command that reads what the package ships is left out where the other user cannot reach the package.
"""

import base64
import json
import os
import sys
from pathlib import Path

import symbi_recover
from tests.support.cli import Ran, run
from tests.support.reading_commands import READING, ReadingCommand
from tests.support.reading_world import environment

_SHIPPED = ("schema", "runbook")


def main(root: Path, user: int) -> None:
    """See the module."""
    os.chdir(root)  # a folder that the other user can be in
    mine = {row.name: _run(row, root) for row in READING}
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    for place in (root, root / "publishing" / "out", root / "leases"):
        if os.access(place, os.W_OK):
            sys.exit(f"this user can write to {place}")
    reached = os.access(symbi_recover.__file__, os.R_OK)
    left_out = [row.name for row in READING if row.name.startswith(_SHIPPED) and not reached]
    theirs = {row.name: _run(row, root) for row in READING if row.name not in left_out}
    json.dump({"mine": mine, "theirs": theirs, "left_out": left_out}, sys.stdout)


def _run(row: ReadingCommand, root: Path) -> tuple[int, str, str]:
    ran: Ran = run(*row.arguments(root), env={**environment(root), "TMPDIR": str(root)})
    return ran.rc, base64.b64encode(ran.out).decode(), ran.err.decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
