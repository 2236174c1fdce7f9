"""Live publications: every state, and every odd thing that can lie at the two names."""

import errno
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from symbi_recover.core.claims import PublicationState, Verdict
from symbi_recover.core.scalars import UUID
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.publication import FileInspection, inspect_file
from symbi_recover.read.verify import publication as judgement
from tests.support.cli import Ran, run
from tests.support.writer.claim import Invocation, open_invocation
from tests.support.writer.project import make_project, put
from tests.support.writer.publication import Publication, candidate_name, identity, prepare_publication
from tests.support.writer.text import PUBLICATION, plain_hash

PREFIX = "Invocation inspection/reconciliation failed: "
CONTENT = b"verified-output"


class Case(NamedTuple):
    invocation: Invocation
    publication: Publication

    def ask(self, *more: str) -> Ran:
        invocation = self.invocation
        return run(
            "invocation", "file-inspect", "--project", invocation.project.root, "--scope", invocation.scope,
            "--id", invocation.id, "--publication", self.publication.id, *more,
        )  # fmt: skip

    def look(self) -> FileInspection:
        with InvocationStore(str(self.invocation.project.root)) as store:
            return inspect_file(
                store, self.invocation.scope, UUID(self.invocation.id), UUID(self.publication.id)
            )


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Case]:
    def make(name: str = "report.txt", **options: Any) -> Case:
        invocation = open_invocation(make_project(tmp_path / "p"))
        publication = prepare_publication(invocation, tmp_path / "out", name, CONTENT, **options)
        invocation.write()
        return Case(invocation, publication)

    return make


def state_of(ran: Ran) -> str:
    import json

    return str(json.loads(ran.out)["state"])


def test_a_complete_candidate_is_ready_to_publish(made: Callable[..., Case]) -> None:
    case = made()
    ran = case.ask()
    assert (ran.rc, state_of(ran)) == (2, "ready_to_publish")


def test_a_renamed_candidate_is_published(made: Callable[..., Case]) -> None:
    ran = made(publish=True).ask()
    assert (ran.rc, state_of(ran)) == (0, "published")


def test_neither_name_is_missing(made: Callable[..., Case]) -> None:
    case = made()
    case.publication.candidate.unlink()
    ran = case.ask()
    assert (ran.rc, state_of(ran)) == (2, "missing")


def hard_link_elsewhere(case: Case) -> None:
    os.link(case.publication.candidate, case.publication.parent / "other")


def hard_link_at_target(case: Case) -> None:
    os.link(case.publication.candidate, case.publication.target)


def loose_mode(case: Case) -> None:
    case.publication.candidate.chmod(0o640)


def equal_length(case: Case) -> None:
    put(case.publication.candidate, b"verified-0utput")


def longer(case: Case) -> None:
    put(case.publication.candidate, CONTENT + b"!")


def empty(case: Case) -> None:
    put(case.publication.candidate, b"")


def target_same_content(case: Case) -> None:
    put(case.publication.target, CONTENT)


def target_empty(case: Case) -> None:
    put(case.publication.target, b"")


def target_folder(case: Case) -> None:
    case.publication.target.mkdir()


def target_fifo(case: Case) -> None:
    os.mkfifo(case.publication.target)


def candidate_folder(case: Case) -> None:
    case.publication.candidate.unlink()
    case.publication.candidate.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        hard_link_elsewhere, hard_link_at_target, loose_mode, equal_length, longer, empty, target_same_content,
        target_empty, target_folder, target_fifo, candidate_folder,
    ],
)  # fmt: skip
def test_anything_else_at_either_name_is_a_conflict(
    made: Callable[..., Case], spoil: Callable[[Case], None]
) -> None:
    case = made()
    assert state_of(case.ask()) == "ready_to_publish"
    spoil(case)
    ran = case.ask()
    assert (ran.rc, state_of(ran)) == (2, "conflict")


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: only root can give a file away")
def test_a_candidate_of_another_owner_is_a_conflict(made: Callable[..., Case]) -> None:
    case = made()
    os.chown(case.publication.candidate, 1234, -1)
    ran = case.ask()
    assert (ran.rc, state_of(ran)) == (2, "conflict")
    assert case.look().publication.candidate.differs == ("owner",)  # type: ignore[union-attr]


def test_an_owner_only_mode_other_than_0600_still_matches(made: Callable[..., Case]) -> None:
    case = made()
    case.publication.candidate.chmod(0o700)
    assert state_of(case.ask()) == "ready_to_publish"


def link_target(case: Case) -> None:
    case.publication.target.symlink_to(case.publication.candidate)


def dangling_target(case: Case) -> None:
    case.publication.target.symlink_to("/nowhere")


def link_candidate(case: Case) -> None:
    moved = case.publication.parent / "moved"
    case.publication.candidate.rename(moved)
    case.publication.candidate.symlink_to(moved)


@pytest.mark.parametrize("spoil", [link_target, dangling_target, link_candidate])
def test_a_link_at_either_name_fails_in_the_systems_words(
    made: Callable[..., Case], spoil: Callable[[Case], None]
) -> None:
    case = made()
    spoil(case)
    ran = case.ask()
    assert (ran.rc, ran.out) == (1, b"")
    assert ran.first_error_line == PREFIX + "Too many levels of symbolic links (os error 40)"
    assert b"symbolic link" in ran.err.split(b"\n", 1)[1]


def test_a_socket_at_the_target_fails_in_the_systems_words(made: Callable[..., Case]) -> None:
    case = made()
    with socket.socket(socket.AF_UNIX) as listener:
        folder = os.getcwd()
        os.chdir(case.publication.parent)  # a socket path is short
        try:
            listener.bind(case.publication.target.name)
        finally:
            os.chdir(folder)
        ran = case.ask()
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + "No such device or address (os error 6)")


def test_a_fifo_at_the_target_is_never_opened(made: Callable[..., Case]) -> None:
    case = made()
    os.mkfifo(case.publication.target)
    opened = os.open(case.publication.target, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert state_of(case.ask()) == "conflict"
    finally:
        os.close(opened)
    with pytest.raises(OSError, match="No such device"):  # nobody reads: nothing of ours is left open
        os.open(case.publication.target, os.O_WRONLY | os.O_NONBLOCK)


def test_a_receipt_behind_a_link_at_the_target_is_shown_all_the_same(made: Callable[..., Case]) -> None:
    case = made(publish=True)
    case.publication.write_receipt(operator_uid=4711)
    moved = case.publication.parent / "moved"
    case.publication.target.rename(moved)
    case.publication.target.symlink_to(moved)
    ran = case.ask()
    assert (ran.rc, ran.out) == (1, b"")
    assert ran.first_error_line == PREFIX + "Too many levels of symbolic links (os error 40)"
    assert b"receipt_hidden" in ran.err
    assert b"4711" in ran.err


@pytest.mark.parametrize("order", ["sorted", "stock"])
def test_a_receipt_is_printed_with_its_members_in_the_order_of_the_file(
    made: Callable[..., Case], order: str
) -> None:
    import json

    case = made(publish=True)
    path = case.publication.write_receipt(order=order)
    ran = case.ask()
    assert ran.rc == 0
    printed = json.loads(ran.out)["recovery"]
    assert json.dumps(printed, separators=(",", ":")) in path.read_text()


def test_a_receipt_for_another_intent_is_refused(made: Callable[..., Case]) -> None:
    case = made(publish=True)
    other = case.publication.intent | {"sha256": "0" * 64}
    case.publication.intent = other
    case.publication.write_receipt()
    ran = case.ask()
    assert (ran.rc, ran.first_error_line) == (
        1,
        PREFIX + "file recovery receipt differs from original evidence",
    )


def test_a_resolution_receipt_is_no_publication_receipt_and_the_other_way(made: Callable[..., Case]) -> None:
    case = made(publish=True)
    resolution = case.invocation.resolve().read_bytes()
    put(case.publication.receipt_path, resolution)
    assert case.ask().rc == 1
    case.publication.write_receipt()
    assert case.ask().rc == 0
    put(case.invocation.receipt_path, case.publication.receipt_path.read_bytes())
    ran = run(
        "invocation", "inspect", "--project", case.invocation.project.root, "--scope", case.invocation.scope,
        "--id", case.invocation.id,
    )  # fmt: skip
    assert ran.rc == 1


def test_a_parent_that_was_replaced_is_refused_and_both_identities_are_shown(
    made: Callable[..., Case],
) -> None:
    case = made()
    recorded = identity(case.publication.parent)
    case.publication.parent.rename(case.publication.parent.with_name("old"))
    shutil.copytree(case.publication.parent.with_name("old"), case.publication.parent)
    ran = case.ask()
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + "publication parent identity changed")
    present = identity(case.publication.parent)
    assert f"inode {present[1]} (recorded {recorded[0]}, {recorded[1]})".encode() in ran.err


def test_a_parent_reached_through_a_link_is_refused(made: Callable[..., Case]) -> None:
    case = made()
    moved = case.publication.parent.with_name("moved")
    case.publication.parent.rename(moved)
    case.publication.parent.symlink_to(moved)
    ran = case.ask()
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + "Not a directory (os error 20)")


def test_a_parent_that_is_gone_is_refused(made: Callable[..., Case]) -> None:
    case = made()
    shutil.rmtree(case.publication.parent)
    ran = case.ask()
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + "No such file or directory (os error 2)")


@pytest.mark.parametrize(
    ("parent", "message"),
    [("relative", "host grant root must be absolute"), ("/var/../tmp", "invalid host grant root")],
)
def test_a_parent_path_that_is_not_plain_is_refused(
    made: Callable[..., Case], parent: str, message: str
) -> None:
    ran = made(parent_path=parent).ask()
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + message)


@pytest.mark.parametrize("name", ["ein Bericht.txt", "größe—報告.txt", "tab\tname", "\u202eevil", "\x1b[2J"])
def test_names_with_spaces_unicode_and_escapes_are_published_and_shown_safely(
    made: Callable[..., Case], name: str
) -> None:
    case = made(name, publish=True)
    ran = case.ask()
    assert (ran.rc, state_of(ran)) == (0, "published")
    shown = case.ask("--format", "text")
    assert shown.rc == 0
    assert not {"\x1b", "\t", "\u202e"} & set(shown.out.decode() + shown.err.decode())


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a:b", "a,b", "a{b"])
def test_names_that_the_runtime_never_signs_are_refused(made: Callable[..., Case], name: str) -> None:
    ran = made(name).ask()
    assert ran.rc == 1
    assert ran.first_error_line == PREFIX + "filesystem grants require normalized relative file paths"


def renumbered(
    tmp_path: Path, *, publish: bool = False, file_device: int = 1, folder_device: int = 1
) -> Case:
    """A publication whose recorded device numbers differ from the present ones by the given amounts."""
    parent = tmp_path / "out"
    parent.mkdir(mode=0o755)
    folder = identity(parent)
    file = identity(put(parent / candidate_name(PUBLICATION), CONTENT))
    invocation = open_invocation(make_project(tmp_path / "p"))
    publication = prepare_publication(
        invocation,
        parent,
        content=CONTENT,
        publish=publish,
        parent_identity=[folder[0] + folder_device, folder[1]],
        candidate_identity=[file[0] + file_device, file[1]],
    )
    invocation.write()
    return Case(invocation, publication)


@pytest.mark.parametrize("publish", [False, True], ids=["candidate", "target"])
def test_renumbered_devices_are_a_state_of_their_own(tmp_path: Path, publish: bool) -> None:
    case = renumbered(tmp_path, publish=publish)
    ran = case.ask()
    assert (ran.rc, state_of(ran)) == (2, "identity_unconfirmed")
    recorded, present = case.publication.intent["parent_identity"], identity(case.publication.parent)
    assert f"device {recorded[0]}, inode {recorded[1]}".encode() in ran.err
    assert f"device {present[0]}, inode {present[1]}".encode() in ran.err
    assert b"conflict" not in ran.err
    shown = case.ask("--format", "text")
    assert shown.rc == 2
    assert "IDENTITY CANNOT BE CONFIRMED" in shown.text
    assert "file-recover" not in shown.text


@pytest.mark.parametrize(("file_device", "folder_device"), [(2, 1), (0, 1)])
def test_devices_that_moved_apart_are_no_renumbering(
    tmp_path: Path, file_device: int, folder_device: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgement, "_layered", lambda _: False)
    ran = renumbered(tmp_path, file_device=file_device, folder_device=folder_device).ask()
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + "publication parent identity changed")


def test_renumbered_devices_with_other_content_are_refused(tmp_path: Path) -> None:
    case = renumbered(tmp_path)
    put(case.publication.candidate, b"verified-0utput")
    ran = case.ask()
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + "publication parent identity changed")


@pytest.mark.parametrize("publish", [False, True], ids=["candidate", "target"])
def test_equal_content_with_another_identity_is_not_taken_for_a_change_of_content(
    made: Callable[..., Case], publish: bool
) -> None:
    case = made(publish=publish)
    path = case.publication.target if publish else case.publication.candidate
    shutil.copy2(path, path.with_name("copy"))
    path.with_name("copy").rename(path)
    ran = case.ask()
    assert (ran.rc, state_of(ran)) == (2, "conflict"), "the runtime's own word"
    assert b"publication_identity_unconfirmed" in ran.err
    inspected = case.look().publication
    assert inspected.state is PublicationState.IDENTITY_UNCONFIRMED
    assert inspected.runtime_state is PublicationState.CONFLICT


@pytest.mark.parametrize("content", [b"verified-0utput", b"other", b"something much longer than that"])
def test_an_inode_number_that_was_used_again_is_a_conflict_by_content(
    made: Callable[..., Case], content: bytes
) -> None:
    case = made()
    wanted = identity(case.publication.candidate)
    case.publication.candidate.unlink()
    for number in range(500):
        path = put(case.publication.parent / f"new-{number}", content)
        if identity(path) == wanted:
            path.rename(case.publication.candidate)
            break
    else:
        pytest.skip("not run: this file system did not give the inode number out again")
    found = case.look().publication
    assert found.state is PublicationState.CONFLICT
    assert found.candidate is not None
    assert not {"device", "inode"} & set(found.candidate.differs)


def test_the_promised_size_bounds_what_is_read(made: Callable[..., Case]) -> None:
    case = made()
    with case.publication.candidate.open("r+b") as file:
        file.truncate(1 << 40)
    found = case.look().publication.candidate
    assert found is not None
    assert (found.verdict, found.sha256) == (Verdict.OTHER, None)


def test_a_parent_that_others_may_write_to_is_accepted_with_a_remark(made: Callable[..., Case]) -> None:
    case = made()
    case.publication.parent.chmod(0o777)
    ran = case.ask()
    assert (ran.rc, state_of(ran)) == (2, "ready_to_publish")
    assert b"publication_parent_loose" in ran.err


def test_the_next_command_is_printed_ready_to_type(made: Callable[..., Case]) -> None:
    case = made()
    shown = case.ask("--format", "text").text
    assert (
        f"symbi-recover invocation file-recover --project {case.invocation.project.root} --scope cli:orga "
        f"--id {case.invocation.id} --publication {case.publication.id} "
        f"--snapshot-hash {case.invocation.snapshot_hash()}" in shown
    )


def test_an_unknown_publication_and_an_empty_journal_have_the_runtimes_words(
    tmp_path: Path, made: Callable[..., Case]
) -> None:
    case = made()
    other = case._replace(publication=case.publication)
    other.publication.id = "0f0e0d0c-0b0a-4908-8706-050403020199"
    assert other.ask().first_error_line == PREFIX + "publication is not in the authenticated invocation"
    bare = open_invocation(make_project(tmp_path / "q"), start=False).write()
    ran = Case(bare, case.publication).ask()
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + "invocation has no signed effects")
    case.publication.id = "not-a-uuid"
    assert case.ask().first_error_line == PREFIX + "publication ID must be a UUID"


def test_the_first_of_two_intents_with_one_id_counts_and_the_second_is_remarked(tmp_path: Path) -> None:
    invocation = open_invocation(make_project(tmp_path / "p"))
    first = prepare_publication(invocation, tmp_path / "out", "a.txt", CONTENT)
    prepare_publication(invocation, tmp_path / "other", "b.txt", CONTENT, call=None)
    invocation.write()
    ran = Case(invocation, first).ask()
    assert ran.rc in (1, 2)
    if ran.rc == 2:
        assert b"publication_repeated" in ran.err


def test_content_is_compared_by_hash_and_looking_changes_nothing(
    made: Callable[..., Case], tmp_path: Path
) -> None:
    from tests.support.evidence import fingerprint

    case = made()
    before = fingerprint(tmp_path)
    found = case.look().publication.candidate
    assert found is not None
    assert found.sha256 == plain_hash(CONTENT)
    case.ask()
    assert fingerprint(tmp_path) == before


def test_content_that_the_device_does_not_give_is_said_of_its_name(
    made: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = made()
    inode = case.publication.candidate.stat().st_ino
    real = os.pread

    def failing(descriptor: int, size: int, start: int) -> bytes:
        if os.fstat(descriptor).st_ino == inode:
            raise OSError(errno.EIO, "")
        return real(descriptor, size, start)

    monkeypatch.setattr(os, "pread", failing)
    found = case.look().publication
    assert found.candidate is not None
    assert (found.candidate.verdict, found.candidate.error) == (
        Verdict.ERROR,
        "Input/output error (os error 5)",
    )
    assert found.failure is not None
    assert found.failure.code == "publication_name_unreadable"
