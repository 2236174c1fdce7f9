"""Codes about files that hold evidence, whatever is in them."""

from symbi_recover.core.findings import Code, refused

CODES: dict[str, Code] = {
    "file_missing": refused(
        "A file that was asked for is not there.",
        "It may have been moved, never written, or lie on a file system that is not mounted. A missing file never proves that nothing happened.",
        "Check the path and the mounts, and look for a copy.",
    ),
    "file_link": refused(
        "The last component of a path is a symbolic link.",
        "The runtime writes real files. A link is not followed, because it could point at evidence that somebody else prepared.",
        "Find out who made the link, and name the real file.",
    ),
    "file_unreadable": refused(
        "A file is there but could not be read.",
        "Missing rights, a device error, or an unusual file system. Nothing can be said about its content.",
        "Run as a user who may read it, or read a copy made by one.",
    ),
    "file_kind": refused(
        "What lies under the name is not a regular file, or is larger than the format allows.",
        "Folders, FIFOs, sockets and devices cannot hold evidence, and larger files are never written by the runtime.",
        "Name the right file.",
    ),
    "file_changed": refused(
        "A file changed while it was being read.",
        "A writer is at work, or somebody touched the file. No verdict is given about a mixture of two states.",
        "Work on a copy, or wait until the writer has ended.",
    ),
}
