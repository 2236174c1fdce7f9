"""The folders of an execution project (invocation.md sections 4 and 5).

`make_project` lays them out with the modes the runtime uses; `put` writes one file with a mode.
"""

from pathlib import Path

from tests.support.writer.text import SEED, public_key


def put(path: Path, data: bytes, mode: int = 0o600) -> Path:
    """Write a file with a mode, whatever the umask says. Returns the path."""
    path.write_bytes(data)
    path.chmod(mode)
    return path


class Project:
    """The folders of one execution project; see :func:`make_project`."""

    def __init__(self, root: Path, seed: bytes) -> None:
        self.root = root
        self.seed = seed
        self.state = root / ".symbiont"
        self.governed = self.state / "governed"
        self.invocations = self.state / "invocations"
        self.key = self.governed / "audit-signing.key"
        self.store_lock = self.invocations / "store.lock"

    @property
    def public_key(self) -> str:
        """The public half of the project's signing key."""
        return public_key(self.seed)


def make_project(root: Path, seed: bytes = SEED, *, key: bool = True, lock: bool = True) -> Project:
    """Lay out a project below an existing or new folder.

    Args:
        root: the project folder; its resolved path is what claims will name.
        seed: the project's signing seed.
        key: whether the signing key file exists.
        lock: whether the store's lock file exists.
    """
    root.mkdir(exist_ok=True)
    project = Project(root.resolve(), seed)
    for folder in (project.state, project.governed, project.invocations):
        folder.mkdir()
        folder.chmod(0o700)
    if key:
        put(project.key, seed)
    if lock:
        put(project.store_lock, b"")
    return project
