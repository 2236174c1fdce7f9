"""Codes about files that hold evidence, whatever is in them."""

from symbi_recover.core.findings import Code, Severity

CODES: dict[str, Code] = {
    "file_missing": Code(
        severity=Severity.REFUSED,
        meaning="A file that was asked for is not there.",
        why="It may have been moved, never written, or lie on a file system that is not mounted. A missing file never proves that nothing happened.",
        next="Check the path and the mounts, and look for a copy.",
    ),
    "file_link": Code(
        severity=Severity.REFUSED,
        meaning="The last component of a path is a symbolic link.",
        why="The runtime writes real files. A link is not followed, because it could point at evidence that somebody else prepared.",
        next="Find out who made the link, and name the real file.",
    ),
    "file_unreadable": Code(
        severity=Severity.REFUSED,
        meaning="A file is there but could not be read.",
        why="Missing rights, a device error, or an unusual file system. Nothing can be said about its content.",
        next="Run as a user who may read it, or read a copy made by one.",
    ),
    "file_kind": Code(
        severity=Severity.REFUSED,
        meaning="What lies under the name is not a regular file, or is larger than the format allows.",
        why="Folders, FIFOs, sockets and devices cannot hold evidence, and larger files are never written by the runtime.",
        next="Name the right file.",
    ),
    "file_changed": Code(
        severity=Severity.REFUSED,
        meaning="A file changed while it was being read.",
        why="A writer is at work, or somebody touched the file. No verdict is given about a mixture of two states.",
        next="Work on a copy, or wait until the writer has ended.",
    ),
}
