"""No signal is ever sent on the strength of a number (F-108): no module, writers included, could send one.

A timer that interrupts the command itself (`setitimer`) and handlers and masks of its own signals are no sending.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "symbi_recover"
SENDERS = frozenset(
    {
        *(
            "kill",
            "killpg",
            "pidfd_send_signal",
            "pthread_kill",
            "raise_signal",
            "sigqueue",
            "tgkill",
            "tkill",
        ),
        *("terminate", "send_signal", "kill_container"),
    }
)
"""Functions of `os` and `signal`, methods of processes, and names that a C library would be asked for."""
ALLOWED = {
    "read/verify/pieces.py": [".kill"],
}
"""Workers that the module has started itself and not yet waited for, by their handles: no number can be used again."""
MODULES = [str(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py"))]


def senders(source: str) -> Iterator[str]:
    """Every mention of something that sends a signal: as a name, an attribute, an import, or a text of its own."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in SENDERS:
            yield f".{node.attr}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in SENDERS:
            yield node.id
        elif isinstance(node, ast.alias) and node.name.rpartition(".")[2] in SENDERS:
            yield f"import of {node.name}"
        elif isinstance(node, ast.Constant) and node.value in SENDERS:
            yield repr(node.value)


@pytest.mark.parametrize("name", MODULES)
def test_no_module_could_send_a_signal(name: str) -> None:
    assert list(senders((PACKAGE / name).read_text("utf-8"))) == ALLOWED.get(name, [])


@pytest.mark.parametrize(
    "planted",
    [
        "import os\nos.kill(1, 9)",
        "import os as quiet\nact = quiet.killpg",
        "from os import kill as end\nend(1, 9)",
        "import signal\nsignal.pidfd_send_signal(3, 9)",
        "from signal import pthread_kill",
        "process.terminate()",
        "import subprocess\nsubprocess.Popen('a').send_signal(9)",
        "import ctypes\ngetattr(ctypes.CDLL(None), 'kill')(1, 9)",
    ],
)
def test_a_planted_sender_is_found(planted: str) -> None:
    assert list(senders(planted))


def test_a_timer_and_a_mask_are_not_taken_for_a_sender() -> None:
    own = (
        "import signal\nsignal.setitimer(signal.ITIMER_REAL, 1)\nsignal.pthread_sigmask(signal.SIG_BLOCK, ())"
    )
    assert not list(senders(own))
