"""Damaged journals end in a verdict: exit 0, 1 or 2, in bounded time, without a traceback (F-017).

Structure-aware changes to honest journals of many shapes: of lines, of tokens inside lines (with and without a
signature over the result), and of raw bytes; some thousands from fixed seeds. What is wrong is told with the seed that
makes it again. `test_damaged_files.py` gives such journals, among others, to the program itself.
"""

import contextlib
import json
import random
import signal
import time
from collections.abc import Iterator

import pytest

from symbi_recover.core.exits import Exit
from symbi_recover.read.inspection import Inspection
from symbi_recover.read.verify import journal as plain
from symbi_recover.read.verify import pieces
from symbi_recover.render.colour import Painter
from symbi_recover.render.text import journal as readable
from symbi_recover.wire import canonical
from tests.property.damage import VALUES
from tests.property.test_journal_decoders import TOKENS
from tests.support.sample_journals import Memory, memory, small
from tests.support.writer import effects, events, inference
from tests.support.writer.journal import JournalWriter
from tests.support.writer.text import canonical as written
from tests.support.writer.text import uid

SECONDS = 5
ORDINARY = 4000


def some_event(source: random.Random) -> events.Event:
    """An event whose identities come from a small set, so that starts, finishes and repetitions meet."""
    n = source.randrange(4)
    root = source.choice([events.ROOT_BUDGET, events.DISPATCH, "00000000-0000-0000-0000-000000000000"])
    scopes = [inference.scope(1, 0, source.choice([400, 200_000])), inference.scope(0, None, 100_000)]
    return source.choice(
        [
            events.started,
            lambda: events.terminated(source.choice(["Completed", "Timeout", {"Error": {"message": "x"}}])),
            lambda: events.policy_evaluated(n, [events.approval(None, f"f{n}")]),
            lambda: events.tool_dispatch_started(uid(n), f"c{n}", f"f{n}"),
            lambda: events.tool_dispatch_finished(uid(n), is_error=source.random() < 0.5),
            lambda: effects.tool_effect(
                effects.network_request_started(f"r{n}", source.choice(VALUES)), f"f{n}"
            ),
            lambda: effects.tool_effect(effects.network_request_finished(f"r{n}"), f"f{n}"),
            lambda: effects.tool_effect(effects.file_publication_finished(uid(n)), f"f{n}"),
            lambda: inference.budget_opened(root, source.choice([0, 400, 2**32 - 1])),
            lambda: inference.budget_reservation_started(
                inference.reservation(
                    uid(n),
                    source.choice([scopes, scopes[1:], scopes[::-1], scopes * 2, []]),
                    input_tokens=source.choice([0, 100, 2**32 - 1]),
                    output_tokens=source.choice([0, 200, 2**32 - 1]),
                )
            ),
            lambda: inference.budget_reservation_finished(
                uid(n), events.usage(source.choice([0, 50, 2**32 - 1]), 1)
            ),
            lambda: inference.budget_scope_linked(root),
            lambda: inference.inference_requested(f"q{n}"),
            lambda: inference.inference_completed(f"q{n}"),
            lambda: events.delegation_started(f"c{n}"),
            lambda: events.delegation_finished(f"c{n}", reason=source.choice(["Completed", "Timeout"])),
            lambda: events.response_delivery_started(f"f{n}"),
            lambda: events.response_delivery_finished(f"f{n}", confirmed=source.random() < 0.5),
            lambda: events.observations_collected(n),
        ]
    )()


def signed_but_odd(source: random.Random, journal: JournalWriter) -> None:
    """A record that a key holder signed, with a token, a member or bytes of it changed."""
    payload = bytearray(written(journal.payload(some_event(source), source.randrange(3))))
    action = source.randrange(4)
    at = source.randrange(len(payload))
    if action == 0:
        payload[at : at + source.randrange(3)] = source.choice(TOKENS).encode()
    elif action == 1:
        places = [i for i, byte in enumerate(payload) if byte in b":,[{"]
        at = source.choice(places) + 1
        payload[at:at] = source.choice(TOKENS).encode() + b","
    elif action == 2:
        places = [i for i, byte in enumerate(payload) if byte == ord(":")]
        at = source.choice(places) + 1
        end = min(i for i in (payload.find(mark, at) for mark in (b",", b"}")) if i >= 0)
        payload[at:end] = source.choice(TOKENS).encode()
    else:
        payload[at] ^= 1 << source.randrange(8)
    journal.append_payload(bytes(payload))


def made(seed: int) -> bytes:
    """One journal: some records, then changes to lines and bytes."""
    source = random.Random(seed)  # noqa: S311 -- repeatable, not secret
    journal = small(source.randrange(1, 4), end=False) if source.random() < 0.8 else JournalWriter()
    for _ in range(source.randrange(6)):
        if source.random() < 0.25:
            signed_but_odd(source, journal)
        else:
            journal.append(some_event(source), source.randrange(3))
    lines = list(journal.lines)
    if lines and source.random() < 0.3:
        at = source.randrange(len(lines))
        change = source.randrange(4)
        if change == 0:
            lines.insert(at, lines[source.randrange(len(lines))])
        elif change == 1:
            del lines[at]
        elif change == 2:
            lines[at] = source.choice(
                [b"\n", b"{}\n", b"[]\n", b"null\n", b"\xff\n", b" \n", b"[" * 5000 + b"\n"]
            )
        else:
            source.shuffle(lines)
    data = bytearray(b"".join(lines))
    if data and source.random() < 0.4:
        for _ in range(source.randrange(1, 3)):
            at = source.randrange(len(data))
            data[at : at + source.randrange(2)] = bytes([source.randrange(256)])
    if source.random() < 0.2:
        del data[source.randrange(len(data) + 1) :]
    return bytes(data)


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Raise TimeoutError in whatever hangs."""

    def late(*_: object) -> None:
        raise TimeoutError(f"no answer within {SECONDS} s")

    previous = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS * 4)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def assert_answered(file: Memory, seed: int, **asked: object) -> Inspection:
    """A verdict that can be printed in both forms."""
    data = made(seed)
    start = time.process_time()
    try:
        answer = file.examine(data, **asked)  # type: ignore[arg-type]
        assert answer.verdict in (Exit.OK, Exit.REFUSED, Exit.ATTENTION)
        assert (answer.refusal is not None) is (answer.report.recovery is None)
        if answer.report.recovery is not None:
            json.loads(canonical.pretty(answer.report.recovery), parse_constant=_no_constant)
        lines = readable(answer.report, answer.verdict, Painter(colour=False), "see.")
        assert not any("\x1b" in line or "\n" in line for line in lines)
    except Exception as error:
        error.add_note(f"seed {seed}: {data!r}")
        raise
    assert time.process_time() - start < SECONDS, f"seed {seed}"
    return answer


def _no_constant(word: str) -> None:
    raise ValueError(word)


@pytest.mark.parametrize("part", range(4))
def test_damaged_journals_end_in_a_verdict(part) -> None:
    """F-017: a sample; all three verdicts occur, and many different reasons."""
    reasons = set()
    verdicts = set()
    with memory() as file, time_limit_each(file) as examine:
        for seed in range(part, ORDINARY, 4):
            answer = examine(seed)
            verdicts.add(answer.verdict)
            reasons.add(answer.refusal.code if answer.refusal else None)
    assert verdicts in ({Exit.OK, Exit.REFUSED, Exit.ATTENTION}, {Exit.REFUSED, Exit.ATTENTION})
    assert len(reasons) >= 12


@contextlib.contextmanager
def time_limit_each(file: Memory) -> Iterator:
    def examine(seed: int) -> Inspection:
        with time_limit():
            return assert_answered(file, seed)

    yield examine


@pytest.mark.parametrize("part", range(2))
def test_two_processes_answer_as_one_does(part, monkeypatch) -> None:
    """Serial and parallel verification agree on honest and damaged journals, remarks included."""
    monkeypatch.setattr(plain, "PARALLEL_FROM", 1)
    monkeypatch.setattr(pieces, "PIECE", 1024)
    with memory() as file:
        for seed in range(part, 160, 2):
            alone = assert_answered(file, seed)
            together = assert_answered(file, seed, workers=2)
            assert alone.report == together.report, seed
            assert alone.verdict == together.verdict
