"""The rules that a signed publication intent must keep before anything is looked at (publication.md section 4)."""

from symbi_recover.core.scalars import ANY_HEX_64
from symbi_recover.core.values import PublicationIntent

BYTES_LIMIT = 16_777_216
CANDIDATE_PREFIX = ".symbi-publish-"
HOLDING_PREFIX = ".symbi-recover-"
"""Begins the name of the private folder in which a recovery of ours holds a candidate while it gives it its name."""
HELD_NAME = "candidate"
_PATH_LIMIT = 4096
_FORBIDDEN = frozenset("{}\\:,\0\n\r")


class IntentError(ValueError):
    """The intent breaks a rule; `code` is registered in `core/codes/publication.py`, the text is the runtime's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


_INVALID = "invalid authenticated publication intent"


def check(intent: PublicationIntent) -> None:
    """Test the rules in the runtime's order.

    Raises:
        IntentError: for the first rule that is broken.
    """
    if (
        intent.bytes > BYTES_LIMIT
        or intent.candidate_name != f"{CANDIDATE_PREFIX}{intent.publication_id}"
        or not ANY_HEX_64.fullmatch(intent.sha256)
    ):
        raise IntentError("publication_intent_invalid", _INVALID)
    path = intent.path
    if path.startswith("{") and path.endswith("}"):
        raise IntentError("publication_path_argument", f"missing filesystem argument {path[1:-1]}")
    parts = path.split("/")
    if (
        len(path.encode()) > _PATH_LIMIT
        or _FORBIDDEN & set(path)
        or any(part in ("", ".", "..") for part in parts)
    ):
        raise IntentError(
            "publication_path_invalid", "filesystem grants require normalized relative file paths"
        )
    if parts[-1] != intent.target_name:
        raise IntentError("publication_intent_invalid", _INVALID)
    if not intent.parent_path.startswith("/"):
        raise IntentError("publication_parent_relative", "host grant root must be absolute")
