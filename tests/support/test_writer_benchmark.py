"""The generator of large journals is exact, repeatable and valid."""

import base64
import collections
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import VerifyKey

from benchmarks import generate as generator

SIZE = 400_000
ROOT = Path(generator.__file__).resolve().parents[1]


def names(path: Path, key: str) -> collections.Counter[str]:
    """Verify every complete line with means of this test's own; return how often each event occurs."""
    verify = VerifyKey(bytes.fromhex(key)).verify
    previous, found = "0" * 64, collections.Counter[str]()
    *lines, _ = path.read_bytes().split(b"\n")
    for at, line in enumerate(lines):
        raw, _, signature = line.removeprefix(b'{"payload":').rpartition(b',"signature":"')
        verify(raw, base64.b64decode(signature.removesuffix(b'"}')))
        payload: dict[str, Any] = json.loads(raw)
        assert (payload["previous_hash"], payload["entry"]["sequence"]) == (previous, at)
        previous = hashlib.sha256(line + b"\n").hexdigest()
        (name,) = payload["entry"]["event"]
        found[name] += 1
        if name == "ToolEffect":
            found.update([*payload["entry"]["event"][name]["effect"]])
    return found


@pytest.mark.parametrize("complete", [True, False])
def test_a_generated_journal_is_valid_and_has_exactly_the_asked_size(tmp_path, complete):
    made = generator.generate(tmp_path / "j", SIZE, complete=complete)
    found = names(made.path, made.public_key)
    assert made.path.stat().st_size == made.size == SIZE
    assert found["Terminated"] == (1 if complete else 0)
    assert made.effects == sum(found[name] for name in generator.STARTS)
    assert made.tail == (0 if complete else generator.TAIL)
    assert made.path.read_bytes().endswith(b"\n") is complete


def test_the_mix_has_every_kind_of_work_and_scales_within_the_limit_of_effects(tmp_path):
    made = generator.generate(tmp_path / "j", SIZE)
    found = names(made.path, made.public_key)
    for name in (
        *generator.STARTS,
        "PolicyEvaluated",
        "ReasoningComplete",
        "BudgetUpdated",
        "ToolsDispatched",
    ):
        assert found[name] > 1
    assert 650 < SIZE / made.records < 830
    assert made.effects * generator.LIMIT / SIZE < 32_768


def test_equal_arguments_give_equal_bytes_and_another_seed_other_bytes(tmp_path):
    first, again, other = (
        generator.generate(tmp_path / str(at), 100_000, seed).path.read_bytes()
        for at, seed in enumerate((1, 1, 2))
    )
    assert first == again != other


@pytest.mark.parametrize("size", [0, generator.SMALLEST - 1, generator.LIMIT + 1])
def test_a_size_out_of_range_is_refused(tmp_path, size):
    with pytest.raises(ValueError, match="size"):
        generator.generate(tmp_path / "j", size)


def test_the_command_prints_what_a_verifier_needs(tmp_path):
    script = [sys.executable, str(ROOT / "benchmarks" / "generate.py"), str(tmp_path / "j")]
    done = subprocess.run(
        [*script, "--bytes", "60000", "--interrupted"], capture_output=True, text=True, check=True, timeout=60
    )
    said = dict(line.split(": ") for line in done.stdout.splitlines())
    names(tmp_path / "j", said["public_key"])
    assert said["run_id"] == generator.RUN
    assert (said["size"], said["tail"]) == ("60000", str(generator.TAIL))
