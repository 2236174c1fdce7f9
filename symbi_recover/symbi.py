"""Entry point of `symbi`: the runtime's grammar for what this toolkit answers, the runtime for the rest.

`symbi audit`, `symbi invocation` and `symbi lease` are answered here. Every other word is handed, unchanged, to the
next `symbi` on PATH by exec, so that arguments, streams and exit code are its own.
`SYMBI_RECOVER_PASSTHROUGH=1` hands everything over.
"""

import os
import sys

_OURS = ("audit", "invocation", "lease")


def main() -> int:
    """Run `symbi` with the process's arguments."""
    arguments = sys.argv[1:]
    ours = bool(arguments) and arguments[0] in _OURS
    if ours and os.environ.get("SYMBI_RECOVER_PASSTHROUGH") != "1":
        from symbi_recover.cli.app import main as run  # noqa: PLC0415 -- late: click is heavy

        return run(name="symbi")
    runtime = next_on_path("symbi", own=sys.argv[0])
    if runtime is None:
        print(_missing(arguments), file=sys.stderr)
        return 64
    try:
        os.execv(runtime, ["symbi", *arguments])  # noqa: S606 -- handing over is what this is for
    except OSError as error:
        print(_not_started(runtime, error), file=sys.stderr)
        return 64


def next_on_path(program: str, own: str) -> str | None:
    """The first executable `program` on PATH that is not `own`, by file, not by name; None if there is none."""
    seen = _identity(own)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder or os.curdir, program)
        runnable = os.path.isfile(candidate) and os.access(candidate, os.X_OK)
        if runnable and _identity(candidate) != seen and not _is_ours(candidate):
            return candidate
    return None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_ours(path: str) -> bool:
    """Whether another copy of this entry point lies there, which would hand over in a circle."""
    try:
        with open(path, "rb") as script:
            return b"symbi_recover.symbi" in script.read(4096)
    except OSError:
        return False


def _not_started(runtime: str, error: OSError) -> str:
    return (
        f"error: {ascii(runtime)[1:-1]} could not be started: {os.strerror(error.errno or 0)}\n"
        "  code:  no_runtime (symbi-recover explain no_runtime)\n"
        "  next:  install the runtime anew, or put another one first on PATH"
    )


def _missing(arguments: list[str]) -> str:
    what = f"`symbi {arguments[0]}`" if arguments else "`symbi` without a word"
    return (
        f"error: {ascii(what)[1:-1]} belongs to the Symbiont runtime, and no other `symbi` was found on PATH\n"
        "  code:  no_runtime (symbi-recover explain no_runtime)\n"
        f"  next:  install the runtime, or put it on PATH; answered here: {', '.join(_OURS)}"
    )


if __name__ == "__main__":
    sys.exit(main())
