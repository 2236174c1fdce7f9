"""A small correct writer of a receipt, and versions of it with one planted fault each.

Usage: `writer.py FAULT ROOT`. It reads ROOT/evidence.txt and leaves ROOT/store/receipt.txt: temporary file, write all,
sync, publish without replacing, sync the directory, read back, and only then one line on stdout. An existing receipt is
checked and announced again. FAULT is "none" or the name of the fault, each marked where it is planted.
"""

import contextlib
import ctypes
import os
import sys
import time

FAULTS = (
    "no-file-sync",
    "no-directory-sync",
    "early-announcement",
    "overwriting-rename",
    "fixed-temporary",
    "evidence-touched",
    "short-write-unchecked",
    "disk-full-ignored",
    "sync-error-ignored",
    "traceback",
    "written-in-place",
)
_LIBC = ctypes.CDLL(None, use_errno=True)
_NOREPLACE = 1


class Writer:
    """The writer; `fault` is asked for at each place where one can be planted."""

    def __init__(self, fault: str, root: str) -> None:
        self.fault = fault
        self.evidence = f"{root}/evidence.txt"
        self.store = f"{root}/store"
        self.final = f"{self.store}/receipt.txt"

    def run(self) -> None:
        wanted = b"receipt for " + self.read(self.evidence)
        if self.fault == "overwriting-rename":
            wanted += str(time.time_ns()).encode()  # a receipt says when it was made, so replacing it shows
        elif self.exists(self.final):
            if self.read(self.final) != wanted:
                raise OSError(0, "the receipt that exists is another one", self.final)
            self.sync_store()
            self.announce()
            return
        if self.fault == "early-announcement":
            self.announce()
        if self.fault == "evidence-touched":
            self.touch_evidence()
        self.publish(wanted)
        self.sync_store()
        if (
            self.fault not in ("short-write-unchecked", "disk-full-ignored")
            and self.read(self.final) != wanted
        ):
            raise OSError(0, "the receipt reads back differently", self.final)
        if self.fault != "early-announcement":
            self.announce()

    def publish(self, data: bytes) -> None:
        if self.fault == "written-in-place":
            self.fill(self.final, data)
            return
        temporary = f"{self.store}/.tmp{'' if self.fault == 'fixed-temporary' else os.urandom(3).hex()}"
        try:
            self.fill(temporary, data)
            if self.fault == "overwriting-rename":
                os.rename(temporary, self.final)
            else:
                self.rename(temporary, self.final)
        except OSError:
            if self.fault != "fixed-temporary":
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise

    def fill(self, path: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            self.write_all(descriptor, data)
            if self.fault == "sync-error-ignored":
                with contextlib.suppress(OSError):
                    os.fsync(descriptor)
            elif self.fault != "no-file-sync":
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write_all(self, descriptor: int, data: bytes) -> None:
        if self.fault == "short-write-unchecked":
            os.write(descriptor, data)
            return
        if self.fault == "disk-full-ignored":
            with contextlib.suppress(OSError):
                os.write(descriptor, data)
            return
        while data:
            data = data[os.write(descriptor, data) :]

    def rename(self, old: str, new: str) -> None:
        if _LIBC.renameat2(-100, old.encode(), -100, new.encode(), _NOREPLACE):
            raise OSError(ctypes.get_errno(), "cannot publish the receipt", new)

    def sync_store(self) -> None:
        if self.fault == "no-directory-sync":
            return
        descriptor = os.open(self.store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def touch_evidence(self) -> None:
        """Mark the evidence as being worked on, and take the mark away: only a kill in between shows it."""
        descriptor = os.open(self.evidence, os.O_WRONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            os.pwrite(descriptor, b"in work", size)
            os.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)

    def announce(self) -> None:
        self.write_all(1, b"receipt written\n")

    @staticmethod
    def exists(path: str) -> bool:
        try:
            os.lstat(path)
        except FileNotFoundError:
            return False
        return True

    @staticmethod
    def read(path: str) -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 4096)
        finally:
            os.close(descriptor)


def main() -> int:
    fault, root = sys.argv[1:]
    try:
        Writer(fault, root).run()
    except OSError as problem:
        if fault == "traceback":
            raise
        with contextlib.suppress(OSError):
            os.write(2, f"error: {problem.strerror}: {problem.filename or 'a descriptor'}\n".encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
