"""Spreads a large journal over worker processes; this way may only say yes.

1. The file is cut at multiples of `PIECE` bytes; a line belongs to the piece in which it begins.
2. Each worker reads its pieces through the inherited descriptor and verifies each as a chain of its own.
3. The parent joins the chains in order and hands on what they found.

On any doubt at all — a refused line, two chains that do not meet, a worker that died — it raises `Doubt`, and the
plain way finds out what is wrong. Only what the guard refused to a worker ends the parent as well. Workers are forked and answer over pipes, so that nothing is created in the file
system, which a process pool's semaphores would be.
"""

import io
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from symbi_recover.core.errors import GuardError
from symbi_recover.core.events import EVENTS, Event
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.verify.chain import Batch, Chain, Stretch
from symbi_recover.wire import timestamp
from symbi_recover.wire.journal import MAX_RECORD

PIECE = 4 << 20
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


class Doubt(Exception):  # noqa: N818 -- not an error: the plain way decides
    """The parallel way cannot say yes."""


class _Answer(Struct, frozen=True, array_like=True):
    """One verified piece: where its chain begins and ends, and its batch with events as (sequence, iteration, name, body)."""

    stretch: Stretch
    first_time: str
    backwards: list[tuple[int, str, str]]
    not_canonical: list[int]
    layout_odd: list[int]
    events: list[tuple[int, int, str, Raw]]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Answer | dict[str, str])


@contextmanager
def working(file: OpenedFile, chain: Chain, workers: int) -> Iterator[Iterator[Batch]]:
    """Start workers, and give their batches in order while `chain` advances; end them on leaving.

    Raises:
        Doubt: while the batches are taken; one process has to decide.
        GuardError: the guard refused something to a worker.
    """
    # late: only large journals need processes
    from multiprocessing import get_context  # noqa: PLC0415

    context = get_context("fork")
    starts = range(0, file.facts.size, PIECE)
    processes = []
    pipes = []
    # workers are born with interrupts held, so that the parent alone answers to them and ends the workers
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
    try:
        for number in range(workers):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(
                target=_work, args=(file, chain, starts[number::workers], sender), daemon=True
            )
            process.start()
            sender.close()
            processes.append(process)
            pipes.append(receiver)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield _joined(chain, [pipes[number % workers] for number in range(len(starts))])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for process, pipe in zip(processes, pipes, strict=True):
            pipe.close()
            process.kill()
            process.join()


def _joined(chain: Chain, pipes: list[Any]) -> Iterator[Batch]:
    for pipe in pipes:
        try:
            answer = _DECODER.decode(pipe.recv_bytes())
            if isinstance(answer, dict):
                raise GuardError(**answer)
            events = [
                (at, iteration, _decoder(name).decode(body)) for at, iteration, name, body in answer.events
            ]
        except (EOFError, OSError, msgspec.MsgspecError) as error:
            raise Doubt from error
        following = answer.stretch
        if following.agent is None:
            continue
        if timestamp.earlier(answer.first_time, chain.last_time):
            answer.backwards.insert(0, (following.start[0], chain.last_time, answer.first_time))
        if not chain.join(following):
            raise Doubt
        yield Batch(
            events,
            answer.first_time,
            following.last_time,
            answer.backwards,
            answer.not_canonical,
            answer.layout_odd,
        )


def _work(file: OpenedFile, chain: Chain, starts: range, sender: Any) -> None:
    """In a worker: verify the pieces that begin at `starts`; fall silent on the first doubt."""
    with suppress(Exception):  # whatever it is, the plain way finds out
        try:
            for start in starts:
                sender.send_bytes(_ENCODER.encode(_verify_piece(file, chain, start)))
        except GuardError as error:  # but of this it might never hear
            failure = error.failure
            sender.send_bytes(_ENCODER.encode({"message": failure.message, "path": failure.path}))
    sender.close()


def _verify_piece(file: OpenedFile, chain: Chain, start: int) -> _Answer:
    own = Chain(chain.public_key, chain.run)
    data = b"".join(file.blocks(max(0, start - 1), min(start + PIECE, file.facts.size)))
    skipped = 0
    if start:
        skipped = data.find(b"\n") + 1
        if skipped == 0:
            raise Doubt
    lines = io.BytesIO(data[skipped:] + _rest_of_line(file, start + PIECE, data)).readlines()
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    if any(len(line) > MAX_RECORD for line in lines):
        raise Doubt
    own.adopt(max(0, start - 1) + skipped)
    batch = own.take(lines)
    return _Answer(
        own.stretch(),
        batch.first_time,
        batch.backwards,
        batch.not_canonical,
        batch.layout_odd,
        [
            (at, iteration, type(event).__name__, Raw(_ENCODER.encode(event)))
            for at, iteration, event in batch.events
        ],
    )


def _rest_of_line(file: OpenedFile, end: int, data: bytes) -> bytes:
    """What follows the piece up to the end of its last line; empty if the piece ends with one."""
    if data.endswith(b"\n") or end >= file.facts.size:
        return b""
    rest = b"".join(file.blocks(end, min(end + MAX_RECORD, file.facts.size)))
    cut = rest.find(b"\n") + 1
    return rest[:cut] if cut else rest


@cache
def _decoder(name: str) -> "msgspec.msgpack.Decoder[Event]":
    return msgspec.msgpack.Decoder(EVENTS[name])
