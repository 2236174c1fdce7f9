"""Signed run journals, line by line (journal.md sections 4, 9 and 17).

A :class:`JournalWriter` keeps the lines in memory: `append` adds an honest record, `append_payload` signs any
payload text, `append_raw` adds any bytes, and `data` or `write` give the file. Order of work for one honest
record: entry, payload with the previous line's hash, canonical text, signature, line. The class does not judge:
it will happily sign a second start or a wrong sequence, since forgeries are what tests need.
"""

import base64
import hashlib
from pathlib import Path
from typing import Any

from tests.support.writer.text import ABSENT, AGENT, RUN, SEED, Clock, canonical, merge, public_key, sign

GENESIS = "0" * 64
"""The previous hash of the first record."""


def envelope(payload: bytes, signature: bytes) -> bytes:
    """Return the line of a signed payload text, with its LF."""
    return b'{"payload":' + payload + b',"signature":"' + base64.b64encode(signature) + b'"}\n'


class JournalWriter:
    """Builds one journal in memory.

    Args:
        seed: 32-byte signing seed.
        agent_id: principal of every entry.
        run_id: run of every payload; None writes the legacy version 1 without one.
        clock: gives a time to each record that is not told one.
    """

    def __init__(
        self,
        seed: bytes = SEED,
        agent_id: str = AGENT,
        run_id: str | None = RUN,
        clock: Clock | None = None,
    ) -> None:
        self.seed = seed
        self.agent_id = agent_id
        self.run_id = run_id
        self.clock = clock or Clock()
        self.lines: list[bytes] = []
        self.sequence = 0
        self.previous = GENESIS
        self.fragment = b""

    @property
    def public_key(self) -> str:
        """The public key as 64 lower-case hex digits."""
        return public_key(self.seed)

    @property
    def name(self) -> str:
        """The file name that belongs to principal and run."""
        middle = "" if self.run_id is None else f".{self.run_id}"
        return f"{self.agent_id}{middle}.jsonl"

    def payload(
        self,
        event: Any,
        iteration: int = 0,
        *,
        timestamp: str | None = None,
        entry: dict[str, Any] | None = None,
        **members: Any,
    ) -> dict[str, Any]:
        """Return the payload value of the next record, without adding it.

        Args:
            event: the event value.
            iteration: loop iteration of the entry.
            timestamp: time of the entry; None takes the next reading of the clock.
            entry: members of the entry to replace or, with ABSENT, to leave out.
            members: members of the payload to replace or leave out.
        """
        honest = {
            "sequence": self.sequence,
            "timestamp": self.clock.read() if timestamp is None else timestamp,
            "agent_id": self.agent_id,
            "iteration": iteration,
            "event": event,
        }
        payload = {
            "version": 1 if self.run_id is None else 2,
            "run_id": ABSENT if self.run_id is None else self.run_id,
            "previous_hash": self.previous,
            "entry": merge(honest, entry or {}),
        }
        return merge(payload, members)

    def append(self, event: Any, iteration: int = 0, **changes: Any) -> bytes:
        """Sign and add the record of an event; arguments as for :meth:`payload`. Returns the line."""
        return self.append_payload(canonical(self.payload(event, iteration, **changes)))

    def append_payload(
        self, payload: bytes | str, *, seed: bytes | None = None, signature: bytes | None = None
    ) -> bytes:
        """Sign any payload text and add its line; another seed or a given signature makes a forgery."""
        raw = payload.encode() if isinstance(payload, str) else payload
        made = sign(self.seed if seed is None else seed, raw) if signature is None else signature
        return self.append_raw(envelope(raw, made))

    def append_raw(self, line: bytes) -> bytes:
        """Add any bytes as one line. The next honest record chains to them."""
        self.lines.append(line)
        self.previous = hashlib.sha256(line).hexdigest()
        self.sequence += 1
        return line

    def tail(self, fragment: bytes | int = b'{"payload":') -> bytes:
        """Set the bytes after the last newline; a number takes that many bytes of an honest next line."""
        if isinstance(fragment, int):
            fragment = self._next_line()[:fragment]
        self.fragment = fragment
        return fragment

    def _next_line(self) -> bytes:
        event = {"ObservationsCollected": {"iteration": 1, "observation_count": 1}}
        raw = canonical(self.payload(event, 1))
        return envelope(raw, sign(self.seed, raw))

    def data(self) -> bytes:
        """Return the whole file: all lines and the tail."""
        return b"".join(self.lines) + self.fragment

    def write(self, path: Path, mode: int = 0o600) -> Path:
        """Write the file as it stands, replacing an older state of it. Returns the path."""
        path.write_bytes(self.data())
        path.chmod(mode)
        return path

    def reference(self, path: Path | str) -> dict[str, Any]:
        """Return the audit reference that others hold of this journal, in the order the runtime writes."""
        return {"run_id": self.run_id, "path": str(path), "public_key": self.public_key}
