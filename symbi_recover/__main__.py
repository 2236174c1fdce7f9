"""Entry point of `symbi-recover`: answers `--version` at once, and loads the program for everything else."""

import gc
import sys


def main() -> int:
    """Run `symbi-recover` with the process's arguments."""
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        from symbi_recover import __version__  # noqa: PLC0415 -- late: nothing else is needed

        try:
            print(f"symbi-recover {__version__}", flush=True)
        except OSError:
            pass  # the program tries again, and says what is wrong
        else:
            return 0
    # One command is one short life over bounded data: the collector costs more than it frees (docs/adr/0005).
    gc.disable()
    try:
        from symbi_recover.cli.app import main as run  # noqa: PLC0415 -- late: click is heavy

        return run()
    except KeyboardInterrupt:  # while the program itself was still being loaded
        return 130


if __name__ == "__main__":
    sys.exit(main())
