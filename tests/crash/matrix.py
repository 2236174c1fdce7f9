"""Runs the full matrix of a scenario, a sample of it, or single points: `python -m tests.crash.matrix NAME`.

Scenarios are the values in the tuple `SCENARIOS` of every module in `tests/crash/scenarios/`, and the toys.
It ends with 0 when nothing failed, 1 when something did, 2 when a name is not known.
"""

import argparse
import importlib
import pkgutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.crash import scenarios
from tests.crash.harness import (
    Result,
    Scenario,
    check_faults,
    check_kills,
    check_points,
    missing_strace,
    record_scenario,
)


def discover(*, toys: bool = False) -> dict[str, Scenario]:
    """Every scenario by its name.

    Raises:
        ValueError: two have the same name.
    """
    modules = [f"{scenarios.__name__}.{found.name}" for found in pkgutil.iter_modules(scenarios.__path__)]
    modules += ["tests.crash.toys.scenarios"] if toys else []
    found: dict[str, Scenario] = {}
    for module in modules:
        for scenario in importlib.import_module(module).SCENARIOS:
            if scenario.name in found:
                raise ValueError(f"two scenarios are named {scenario.name}")
            found[scenario.name] = scenario
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.matrix", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios; without any, they are listed")
    parser.add_argument("--kills", action="store_true", help="only the kills")
    parser.add_argument("--faults", action="store_true", help="only the faults")
    parser.add_argument("--sample", type=int, help="at most so many points of each; without it, all of them")
    parser.add_argument("--only", action="append", metavar="ID", help="only this point, such as kill:fsync:2")
    parser.add_argument(
        "--trace", action="store_true", help="print the calls after start-up and run no point"
    )
    wanted = parser.parse_args(argv)
    known = discover(toys=True)
    unknown = [name for name in wanted.names if name not in known]
    if unknown or not wanted.names:
        print(*(f"not known: {name}" for name in unknown), *known, sep="\n")
        return 2 if unknown else 0
    reason = missing_strace()
    if reason:
        print(f"cannot run: {reason}", file=sys.stderr)
        return 2
    return max(_one(known[name], wanted) for name in wanted.names)


def _one(scenario: Scenario, wanted: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        tmp = Path(folder)
        if wanted.trace:
            print(*(call.text for call in record_scenario(scenario, tmp).calls), sep="\n")
            return 0
        results: list[Result] = []
        if wanted.only:
            results.append(check_points(scenario, tmp / "only", wanted.only))
        else:
            if wanted.kills or not wanted.faults:
                results.append(check_kills(scenario, tmp / "kills", wanted.sample))
            if wanted.faults or not wanted.kills:
                results.append(check_faults(scenario, tmp / "faults", wanted.sample))
        print(*results, sep="\n")
        return 1 if any(result.failures for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
