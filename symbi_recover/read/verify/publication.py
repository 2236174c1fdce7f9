"""Judges one file publication by what lies on disk (publication.md sections 4 to 7).

1. the intent keeps its rules; 2. its parent is walked, one component after the other, following no link, and must be
the recorded folder; 3. the candidate's and the target's names are each judged against the recorded identity, size
and content; 4. the two verdicts make a state.

The runtime's answer is kept beside ours. Where its command fails or says `conflict`, the names are still looked at
and shown: a folder and file that differ in nothing but device numbers, or a file that differs in nothing but its
identity, are `identity_unconfirmed`; so are a folder and file on another mount of an overlay's layers. Nothing is opened that is not a regular file or a folder, so that no FIFO or
device notices. No state is ever taken from content alone.
"""

import hashlib
import os
from typing import Any, NamedTuple

from symbi_recover.core.claims import NameEvidence, PublicationEvidence, PublicationState, Verdict
from symbi_recover.core.codes import finding
from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.findings import Finding
from symbi_recover.core.values import PublicationIntent
from symbi_recover.read.evidence.kernel import CannotKnow
from symbi_recover.read.evidence.locate import UpwardError, lstat_at, walk
from symbi_recover.read.evidence.mounts import mount_of_descriptor
from symbi_recover.read.evidence.opener import (
    FILE_FLAGS,
    FileFacts,
    OpenedFile,
    examining,
    facts_of,
    system_text,
)
from symbi_recover.wire.intent import HELD_NAME, HOLDING_PREFIX, IntentError, check

_OPENED = ("file", "folder", "unknown")
_LINK = "Too many levels of symbolic links (os error 40)"
_SOCKET = "No such device or address (os error 6)"
_STATES = {
    (Verdict.MATCH, Verdict.ABSENT): PublicationState.READY,
    (Verdict.ABSENT, Verdict.MATCH): PublicationState.PUBLISHED,
    (Verdict.ABSENT, Verdict.ABSENT): PublicationState.MISSING,
}


def judge_publication(intent: PublicationIntent) -> PublicationEvidence:
    """Judge a signed intent. Never raises for what lies on disk: `failure` is what ends the runtime's command."""
    try:
        check(intent)
        with walk(intent.parent_path) as parent:
            return _judge_names(intent, parent)
    except IntentError as error:
        failure = finding(error.code, error.message)
    except UpwardError:
        failure = finding("publication_parent_invalid", "invalid host grant root", path=intent.parent_path)
    except OSError as error:
        failure = finding("publication_parent_unreachable", system_text(error), path=intent.parent_path)
    except ValueError:
        failure = finding(
            "publication_parent_unreachable", "the path holds a NUL byte", path=intent.parent_path
        )
    return PublicationEvidence(
        intent=intent,
        state=None,
        runtime_state=None,
        parent=None,
        candidate=None,
        target=None,
        failure=failure,
    )


class _Names(NamedTuple):
    parent: NameEvidence
    candidate: NameEvidence
    target: NameEvidence


def _judge_names(intent: PublicationIntent, folder: int) -> PublicationEvidence:
    names = _Names(
        _parent_evidence(intent, folder),
        judge_name(intent, intent.candidate_name, folder),
        judge_name(intent, intent.target_name, folder),
    )
    failure = _failure(intent, names)
    runtime_state = None
    if failure is None:
        runtime_state = _STATES.get(
            (names.candidate.verdict, names.target.verdict), PublicationState.CONFLICT
        )
    unconfirmed = _only_identity_differs(intent, names, folder)
    state = PublicationState.IDENTITY_UNCONFIRMED if unconfirmed else runtime_state
    return PublicationEvidence(
        intent=intent,
        state=state,
        runtime_state=runtime_state,
        parent=names.parent,
        candidate=names.candidate,
        target=names.target,
        failure=failure,
        findings=(*_remarks(intent, names, state), *_held(intent, folder)),
    )


def _parent_evidence(intent: PublicationIntent, folder: int) -> NameEvidence:
    facts = facts_of(os.fstat(folder))
    device, inode = intent.parent_identity
    differs = (*(["device"] if facts.device != device else []), *(["inode"] if facts.inode != inode else []))
    return NameEvidence(
        name=intent.parent_path,
        verdict=Verdict.OTHER if differs else Verdict.MATCH,
        differs=tuple(differs),
        **_shown(facts),
    )


def _failure(intent: PublicationIntent, names: _Names) -> Finding | None:
    """What ends the runtime's command: the parent first, then the candidate, then the target."""
    if names.parent.verdict is not Verdict.MATCH:
        return finding(
            "publication_parent_changed",
            "publication parent identity changed",
            path=intent.parent_path,
            expected=_pair(intent.parent_identity),
            actual=_pair((names.parent.device, names.parent.inode)),
        )
    for name in (names.candidate, names.target):
        if name.error is not None:
            return finding(
                "publication_name_unreadable", name.error, path=f"{intent.parent_path}/{name.name}"
            )
    return None


def judge_name(intent: PublicationIntent, name: str, folder: int) -> NameEvidence:
    """What lies under one of the two names (section 6).

    Args:
        intent: whose identity, size and hash it is judged against.
        name: the candidate's or the target's.
        folder: open parent.
    """
    status = lstat_at(name, folder)
    if status is not None:
        facts = facts_of(status)
        if facts.kind not in _OPENED:
            error = {"symbolic link": _LINK, "socket": _SOCKET}.get(facts.kind)
            verdict = Verdict.OTHER if error is None else Verdict.ERROR
            return NameEvidence(name=name, verdict=verdict, differs=("kind",), error=error, **_shown(facts))
    try:
        file = OpenedFile(name, os.open(name, FILE_FLAGS, dir_fd=folder))
    except FileNotFoundError:
        return NameEvidence(name=name, verdict=Verdict.ABSENT)
    except OSError as error:
        known = {} if status is None else _shown(facts_of(status))
        return NameEvidence(name=name, verdict=Verdict.ERROR, error=system_text(error), **known)
    with file:
        return _judge_file(intent, name, file)


def _judge_file(intent: PublicationIntent, name: str, file: OpenedFile) -> NameEvidence:
    facts = file.facts
    device, inode = intent.candidate_identity
    tests = {
        "kind": facts.kind == "file",
        "links": facts.links == 1,
        "owner": facts.uid == os.geteuid(),
        "mode": not facts.mode & 0o077,
        "size": facts.size == intent.bytes,
        "device": facts.device == device,
        "inode": facts.inode == inode,
    }
    differs = [what for what, holds in tests.items() if not holds]
    sha256 = None
    if tests["kind"] and tests["size"]:
        try:
            with examining(name):
                content = file.read(intent.bytes)
                sha256 = hashlib.sha256(content).hexdigest()
                if len(content) != intent.bytes or sha256 != intent.sha256 or not file.unchanged():
                    differs.append("content")
        except UnexaminedError as error:
            return NameEvidence(name=name, verdict=Verdict.ERROR, error=error.message, **_shown(facts))
    return NameEvidence(
        name=name,
        verdict=Verdict.OTHER if differs else Verdict.MATCH,
        sha256=sha256,
        differs=tuple(differs),
        **_shown(facts),
    )


def _shown(facts: FileFacts) -> dict[str, Any]:
    return {
        "kind": facts.kind,
        "device": facts.device,
        "inode": facts.inode,
        "uid": facts.uid,
        "mode": facts.mode,
        "links": facts.links,
        "bytes": facts.size,
    }


def _only_identity_differs(intent: PublicationIntent, names: _Names, folder: int) -> bool:
    """Whether one name fits in all but identity, and the other is absent.

    With the recorded parent, device and inode of the file may differ (a layered file system). With another parent,
    only the device numbers of both may, and to the same new number, from the same old one. Every mount of an overlay
    has device numbers of its own, where layers lie apart another for files than for folders, and numbers its folders
    anew: there both devices must differ, and the inodes may.
    """
    present = [name for name in (names.candidate, names.target) if name.verdict is not Verdict.ABSENT]
    if len(present) != 1 or not present[0].content_equal or not present[0].differs:
        return False
    differs = set(present[0].differs)
    if names.parent.verdict is Verdict.MATCH:
        return differs <= {"device", "inode"}
    if (
        differs == {"device"}
        and names.parent.differs == ("device",)
        and present[0].device == names.parent.device
        and intent.candidate_identity[0] == intent.parent_identity[0]
    ):
        return True
    return (
        "device" in names.parent.differs and "device" in differs <= {"device", "inode"} and _layered(folder)
    )


def _layered(folder: int) -> bool:
    """Whether an open folder lies on an overlay; what cannot be known is not taken for one."""
    mount = mount_of_descriptor(folder)
    return not isinstance(mount, CannotKnow) and mount.kind == b"overlay"


def _remarks(intent: PublicationIntent, names: _Names, state: PublicationState | None) -> list[Finding]:
    remarks = []
    if names.parent.mode is not None and names.parent.mode & 0o022:
        remarks.append(
            finding(
                "publication_parent_loose", f"its mode is {names.parent.mode:04o}", path=intent.parent_path
            )
        )
    if state is PublicationState.IDENTITY_UNCONFIRMED:
        remarks.append(_unconfirmed(intent, names))
    else:
        remarks.extend(
            finding(
                "publication_content_elsewhere",
                f"{name.name!r} has the promised content, but differs in {', '.join(name.differs)}",
                path=f"{intent.parent_path}/{name.name}",
                expected=_pair(intent.candidate_identity),
                actual=_pair((name.device, name.inode)),
            )
            for name in (names.candidate, names.target)
            if name.content_equal and {"device", "inode"} & set(name.differs)
        )
    return remarks


def _held(intent: PublicationIntent, folder: int) -> list[Finding]:
    """Whether an interrupted recovery of this toolkit holds the candidate aside."""
    name = f"{HOLDING_PREFIX}{intent.publication_id}/{HELD_NAME}"
    status = lstat_at(name, folder)
    if status is None or (status.st_dev, status.st_ino) != intent.candidate_identity:
        return []
    return [finding("publication_held", "the candidate lies there", path=f"{intent.parent_path}/{name}")]


def _unconfirmed(intent: PublicationIntent, names: _Names) -> Finding:
    present = names.candidate if names.target.verdict is Verdict.ABSENT else names.target
    what = "identity" if "inode" in (*present.differs, *names.parent.differs) else "device number"
    return finding(
        "publication_identity_unconfirmed",
        f"identity cannot be confirmed: {what} changed, content as promised",
        path=f"{intent.parent_path}/{present.name}",
        expected=f"folder {_pair(intent.parent_identity)}, file {_pair(intent.candidate_identity)}",
        actual=f"folder {_pair((names.parent.device, names.parent.inode))}, "
        f"file {_pair((present.device, present.inode))}",
    )


def _pair(identity: tuple[int | None, int | None]) -> str:
    return f"device {identity[0]}, inode {identity[1]}"
