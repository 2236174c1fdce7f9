"""Generate a large, valid journal for measurements.

Steps: a start record with a shared budget, then iterations in the mix that real runs show (inference, reasoning,
policy, dispatches, network requests, publications, observations, budget), then an ending. The last long tool
output is padded so that the file has exactly the asked size. The bytes depend on the arguments alone. It is a
measuring aid: the signing seed is the public test seed, and nothing is published or sent.

    python benchmarks/generate.py OUT [--bytes N] [--seed N] [--complete | --interrupted]
"""

import argparse
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

if not __package__:  # run as a script: the writer lives beside, under tests/
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.writer import effects, events, inference
from tests.support.writer.journal import JournalWriter
from tests.support.writer.publication import intent
from tests.support.writer.text import AGENT, RUN, Clock, digest, plain_hash, uid

LIMIT = 64 * 1024 * 1024
"""The largest journal the runtime reads, in bytes."""

SMALLEST = 48 * 1024
TAIL = 211
ROOT_LIMIT = 4_000_000_000
SENTENCES = (
    "The invoice of the third quarter lists 48 positions, two of them without an order number.",
    'Asked the service for "open" tickets; it answered with a page of twenty and a cursor.',
    "Wrote the draft to out/report.md, then compared it with the previous version line by line.",
    "Température moyenne 21,4 °C, Abweichung ±0,3; the sensor in Zürich was silent for an hour.",
    "path=C:\\exports\\weekly\\summary.csv\tcolumns=17\trows=20418",
    "No change since the last run; the cached answer is 340 seconds old and still allowed.",
    "Next step: fetch the remaining pages, sum the amounts, and ask for approval above 500 EUR.",
    "The reply was cut after 4096 tokens, so the summary covers sections one to seven only.",
)
TOOLS = ("read_file", "http_post", "write_report", "search_index", "http_get")

Events = Iterator[tuple[events.Event, int]]


class Generated(NamedTuple):
    """What was written: the identities needed to verify it, and its measures."""

    path: Path
    run_id: str
    agent_id: str
    public_key: str
    records: int
    size: int
    effects: int
    tail: int


class Run:
    """The state of one invented run: a source of repeatable choices and the spent budget."""

    def __init__(self, seed: int) -> None:
        self.source = random.Random(seed)  # noqa: S311 - must be repeatable, not secret
        self.seed = seed
        self.spent = 0
        self.calls = 0

    def below(self, bound: int) -> int:
        """Return a number from 0 to below the bound; only `random()` is promised to stay the same."""
        return int(self.source.random() * bound)

    def text(self, sentences: int) -> str:
        """Return a text of that many sentences."""
        return " ".join(SENTENCES[self.below(len(SENTENCES))] for _ in range(sentences))

    def iteration(self, number: int) -> Events:
        """Yield the events of one iteration, with its number."""
        for event in self._inference(number):
            yield event, number
        calls = 2 if self.below(6) == 0 else 1
        yield from self._calls(number, calls)
        usage = events.usage(self.spent * 3 // 4, self.spent - self.spent * 3 // 4)
        yield inference.budget_updated(usage, ROOT_LIMIT), number

    def _inference(self, number: int) -> Iterator[events.Event]:
        name = f"req_{number}"
        prompt, completion = 500 + self.below(4000), 50 + self.below(900)
        self.spent += prompt + completion
        if number % 3:
            yield inference.inference_requested(name, request_hash=plain_hash(f"{self.seed} {name}".encode()))
            yield inference.inference_completed(name, response_bytes=900 + self.below(9000))
            return
        reserved = inference.reservation(
            uid(self.seed, name),
            [inference.scope(0, None, ROOT_LIMIT)],
            input_tokens=prompt,
            output_tokens=4096,
            iteration=number,
            audit=events.reference(RUN, f"/srv/project/.symbiont/governed/{AGENT}.{RUN}.jsonl"),
        )
        yield inference.budget_reservation_started(reserved)
        yield inference.budget_reservation_finished(reserved["id"], events.usage(prompt, completion))

    def _calls(self, number: int, count: int) -> Events:
        first, self.calls = self.calls, self.calls + count
        tools = [(f"call_{first + at}", TOOLS[self.below(len(TOOLS))]) for at in range(count)]
        actions = [
            events.tool_call(name, tool, f'{{"query": "{plain_hash(name.encode())[:12]}", "limit": {at}}}')
            for at, (name, tool) in enumerate(tools)
        ]
        prints = [digest([self.seed, name]) for name, _ in tools]
        yield events.reasoning_complete(number, actions), number
        approvals = [events.approval(act, mark) for act, mark in zip(actions, prints, strict=True)]
        yield events.policy_evaluated(number, approvals), number
        for (name, tool), mark in zip(tools, prints, strict=True):
            for event in self._dispatch(name, tool, mark):
                yield event, number
        yield events.tools_dispatched(number, count), number
        seen = [events.observation(self.text(3 + self.below(5)), name) for name, _ in tools]
        yield events.tool_batch_completed(number, seen), number
        yield events.observations_collected(number, count), number

    def _dispatch(self, name: str, tool: str, mark: str) -> Iterator[events.Event]:
        dispatch = uid(self.seed, name)
        yield events.tool_dispatch_started(dispatch, name, mark, tool_name=tool)
        if tool.startswith("http"):
            request, host = f"http_{name}", f"api{self.below(40)}.example"
            outbound = {"destination": host, "policy": "allow-listed", "share": 0.25}
            url = f"https://{host}/v2/items/{self.below(10**9)}?page={self.below(90)}"
            sent = effects.network_request_started(request, outbound, url=url, method=tool[5:].upper())
            yield effects.tool_effect(sent, mark)
            yield effects.tool_effect(effects.network_request_finished(request, 200), mark)
        if tool == "write_report":
            content = f"{name} of {self.seed}".encode()
            folder, made = [2049, 131_073], [2049, 200_000 + self.below(10**8)]
            path = f"out/week-{self.below(52)}/{name}.md"
            meant = intent(
                uid(self.seed, "file", name), "/srv/project/out", folder, made, path=path, content=content
            )
            yield effects.tool_effect(effects.file_publication_prepared(meant), mark)
            done = effects.file_publication_finished(meant["publication_id"])
            yield effects.tool_effect(done, mark)
        yield events.tool_dispatch_finished(dispatch, observation_hash=digest([name, "observation"]))

    def ending(self, number: int, padding: int, *, complete: bool) -> Events:
        """Yield the last events: a long tool output, then the end of the run or an open dispatch."""
        seen = [events.observation("x" * padding, f"call_{self.calls}")]
        yield events.tool_batch_completed(number, seen), number
        yield events.observations_collected(number, 1), number
        if complete:
            total = events.usage(self.spent * 3 // 4, self.spent - self.spent * 3 // 4)
            yield events.terminated(iterations=number, total_usage=total), number
        else:
            open_dispatch = uid(self.seed, "open")
            mark = digest([self.seed, "open"])
            yield events.policy_evaluated(number, [events.approval(None, mark)]), number
            yield events.tool_dispatch_started(open_dispatch, "call_open", mark), number


STARTS = (
    "InferenceRequested",
    "BudgetReservationStarted",
    "ToolDispatchStarted",
    "NetworkRequestStarted",
    "FilePublicationPrepared",
)


def _starts_effect(event: events.Event) -> bool:
    effect = event.get("ToolEffect", {}).get("effect", event)
    return next(iter(effect)) in STARTS


def generate(path: Path | str, size: int = LIMIT, seed: int = 0, *, complete: bool = True) -> Generated:
    """Write a journal of exactly `size` bytes.

    Args:
        path: file to write; replaced if it exists.
        size: bytes of the whole file, tail included; 48 KiB to 64 MiB.
        seed: selects the contents; equal arguments give equal bytes.
        complete: whether the run ends; otherwise it stops in an open dispatch with a torn tail.

    Raises:
        ValueError: the size is out of range.
    """
    if not SMALLEST <= size <= LIMIT:
        raise ValueError(f"the size must be between {SMALLEST} and {LIMIT} bytes, not {size}")
    journal, run, effects = JournalWriter(clock=Clock(step_ms=41)), Run(seed), 0
    room = size - (0 if complete else TAIL)
    many = events.config(max_iterations=1_000_000, max_total_tokens=ROOT_LIMIT)
    opening = [events.started(config=many), inference.budget_opened(limit=ROOT_LIMIT)]
    used = sum(len(journal.append(event)) for event in opening)
    number = 0
    while used < room - 24 * 1024:
        number += 1
        for event, iteration in run.iteration(number):
            used += len(journal.append(event, iteration))
            effects += _starts_effect(event)
    used += _finish(journal, run, number + 1, room - used, complete=complete)
    fragment = b"" if complete else journal.tail(TAIL)
    target = journal.write(Path(path))
    return Generated(
        path=target,
        run_id=RUN,
        agent_id=AGENT,
        public_key=journal.public_key,
        records=len(journal.lines),
        size=used + len(fragment),
        effects=effects + (0 if complete else 1),
        tail=len(fragment),
    )


def _finish(journal: JournalWriter, run: Run, number: int, room: int, *, complete: bool) -> int:
    """Append the ending so that it takes exactly `room` bytes; measured once without padding. Returns room."""
    state = (journal.sequence, journal.previous, journal.clock.nanos, len(journal.lines))
    bare = sum(len(journal.append(event, at)) for event, at in run.ending(number, 0, complete=complete))
    journal.sequence, journal.previous, journal.clock.nanos, kept = state
    del journal.lines[kept:]
    padded = run.ending(number, room - bare, complete=complete)
    return sum(len(journal.append(event, at)) for event, at in padded)


def main() -> None:
    """Read the arguments, write the file, and print what a verifier needs."""
    parser = argparse.ArgumentParser(description="Generate a large, valid journal.")
    parser.add_argument("out", metavar="OUT", type=Path)
    parser.add_argument("--bytes", metavar="N", type=int, default=LIMIT)
    parser.add_argument("--seed", metavar="N", type=int, default=0)
    ending = parser.add_mutually_exclusive_group()
    ending.add_argument("--complete", action="store_true", help="the run ends (default)")
    ending.add_argument("--interrupted", action="store_true", help="an open dispatch and a torn tail")
    given = parser.parse_args()
    made = generate(given.out, given.bytes, given.seed, complete=not given.interrupted)
    for name in ("run_id", "public_key", "records", "size", "effects", "tail"):
        print(f"{name}: {getattr(made, name)}")


if __name__ == "__main__":
    main()
