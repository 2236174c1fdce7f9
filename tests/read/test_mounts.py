"""Mount tables: parsing, the mount of a file, its two identities, and an honest /proc."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.read.evidence import mounts
from symbi_recover.read.evidence.kernel import CannotKnow, Why
from symbi_recover.read.evidence.mounts import Locality, Mount, MountTable
from tests.read.live import may_unshare

PROC_LINE = b"22 27 0:21 / /proc rw,nosuid,relatime shared:5 master:2 - proc proc rw\n"


def table(*lines: bytes) -> MountTable:
    return mounts.parse_mounts(b"".join(line.rstrip(b"\n") + b"\n" for line in lines))


def test_a_line_is_parsed_with_its_optional_fields():
    (mount,) = table(PROC_LINE).mounts

    assert mount == Mount(
        22,
        27,
        os.makedev(0, 21),
        b"/",
        b"/proc",
        (b"rw", b"nosuid", b"relatime"),
        b"proc",
        b"proc",
        (b"rw",),
    )


def test_octal_escapes_are_undone_in_names():
    (mount,) = table(rb"1 0 8:1 /a\040b /mnt/x\011\012\134y rw - ext4 /dev/a\040b rw").mounts

    assert (mount.root, mount.point, mount.source) == (b"/a b", b"/mnt/x\t\n\\y", b"/dev/a b")


@pytest.mark.parametrize("text", [rb"\04", rb"\999", rb"\777", b"\\", rb"a\zb"])
def test_what_is_no_escape_stays(text: bytes):
    assert mounts.unescape(text) == text


def test_an_empty_source_is_allowed():
    (mount,) = table(b"1 0 0:5 / /x rw - tmpfs  rw").mounts
    assert mount.source == b""


@pytest.mark.parametrize(
    "line",
    [
        b"1 0 0:5 / /x rw tmpfs tmpfs rw",
        b"1 0 0:5 / /x rw - tmpfs",
        b"x 0 0:5 / /x rw - tmpfs t rw",
        b"1 0 05 / /x rw - tmpfs t rw",
        b"1 0 0:9999999 / /x rw - tmpfs t rw",
        b"-",
        b"\xff",
    ],
)
def test_a_line_that_does_not_fit_is_counted(line: bytes):
    assert table(line) == MountTable((), 1)


@given(st.binary(max_size=400))
def test_no_bytes_make_the_parsers_raise(data: bytes):
    mounts.parse_mounts(data)
    mounts.parse_descriptor_info(data)
    mounts.unescape(data)
    mounts.judge_proc(mounts.parse_mounts(data))


@given(st.data())
def test_damaged_lines_never_make_the_parser_raise(data: st.DataObject):
    line = bytearray(PROC_LINE)
    for _ in range(data.draw(st.integers(1, 4))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    parsed = mounts.parse_mounts(bytes(line))
    mounts.judge_proc(parsed)
    mounts.covering_mount(parsed, b"/proc/1")


@given(st.binary(min_size=1, max_size=40))
def test_escaping_as_the_kernel_does_is_undone(name: bytes):
    escaped = b"".join(
        b"\\%03o" % byte if byte in b" \t\n\\#" else bytes((byte,)) for byte in name.replace(b"\0", b"")
    )
    assert mounts.unescape(escaped) == name.replace(b"\0", b"")


@pytest.mark.parametrize(
    ("kind", "locality"),
    [
        *(
            (kind, Locality.LOCAL)
            for kind in (["ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "tmpfs"])
        ),
        *((kind, Locality.NETWORK) for kind in (["nfs", "nfs4", "cifs", "9p", "ceph", "virtiofs"])),
        *((kind, Locality.OTHER) for kind in (["fuse.sshfs", "fuse", "vfat", "proc", "ext5"])),
    ],
)
def test_locality_follows_the_type(kind: str, locality: Locality):
    (mount,) = table(b"1 0 0:5 / /x rw - %s s rw" % kind.encode()).mounts
    assert mount.locality is locality


def test_the_longest_mount_point_covers_a_path_and_the_last_of_equals():
    found = table(
        b"1 0 8:1 / / rw - ext4 a rw",
        b"2 1 8:2 / /srv rw - xfs b rw",
        b"3 2 0:9 / /srv rw - nfs c rw",
        b"4 1 8:4 / /srv/data rw - ext4 d rw",
    )

    def number(path: bytes) -> int | None:
        mount = mounts.covering_mount(found, path)
        return mount and mount.number

    assert number(b"/srv/x") == 3
    assert number(b"/srv") == 3
    assert number(b"/srvx") == 1
    assert number(b"/srv/data/y") == 4
    assert number(b"relative") is None


def test_an_open_file_is_found_with_both_identities(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    with (tmp_path / "file").open("rb") as stream:
        key = mounts.file_key(stream.fileno())
        mount = mounts.mount_of_descriptor(stream.fileno())
        status = os.fstat(stream.fileno())

    assert isinstance(key, mounts.FileKey)
    assert isinstance(mount, Mount)
    assert (key.device, key.inode) == (status.st_dev, status.st_ino)
    assert key.kernel_device == mount.device
    assert key.kind == mount.kind
    assert key.kernel_inode in (None, status.st_ino)


def test_a_closed_descriptor_is_an_answer():
    with socket.socket() as gone:
        number = gone.detach()
    os.close(number)

    assert isinstance(mounts.file_key(number), CannotKnow)


def test_a_socket_lies_on_no_mount_of_the_table():
    with socket.socket(socket.AF_UNIX) as unnamed:
        answer = mounts.mount_of_descriptor(unnamed.fileno())

    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.MISSING


def test_without_a_mount_number_the_longest_prefix_is_used(tmp_path: Path):
    folder = tmp_path / "self"
    (folder / "fdinfo").mkdir(parents=True)
    (folder / "fd").mkdir()
    (folder / "fdinfo" / "0").write_bytes(b"pos:\t0\n")
    (folder / "fd" / "0").symlink_to("/srv/data/file")
    (folder / "mountinfo").write_bytes(b"1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /srv rw - xfs b rw\n")

    mount = mounts.mount_of_descriptor(0, str(tmp_path))
    assert isinstance(mount, Mount)
    assert mount.number == 2


def test_an_honest_proc_has_no_fault():
    view = mounts.judge_proc(table(PROC_LINE, b"9 22 0:3 / /proc/sys/fs/binfmt_misc rw - autofs s rw"))

    assert view.honest
    assert view.covered == (b"/proc/sys/fs/binfmt_misc",)


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (PROC_LINE, PROC_LINE),
        (b"22 27 0:21 / /proc rw - tmpfs proc rw",),
        (b"22 27 0:21 /1 /proc rw - proc proc rw",),
        (b"22 27 0:21 / /proc rw - proc proc rw,hidepid=invisible",),
        (b"22 27 0:21 / /proc rw - proc proc rw,hidepid=2",),
        (b"22 27 0:21 / /proc rw - proc proc rw,subset=pid",),
        (PROC_LINE, b"9 22 0:3 / /proc/123 rw - tmpfs s rw"),
        (PROC_LINE, b"9 22 0:3 / /proc/123/cmdline rw - tmpfs s rw"),
        (PROC_LINE, b"damaged"),
    ],
)
def test_what_can_hide_a_process_is_a_fault(lines: tuple[bytes, ...]):
    assert not mounts.judge_proc(table(*lines)).honest


def test_the_real_table_is_parsed_without_loss():
    real = mounts.read_mounts()

    assert isinstance(real, MountTable)
    assert real.malformed == 0
    assert any(mount.point == b"/proc" for mount in real.mounts)


OVERLAY = """
import fcntl, os, subprocess, sys
sys.path.insert(0, sys.argv[2])
from symbi_recover.read.evidence import locks, mounts
base = sys.argv[1]
for name in ("lower", "upper", "work", "merged"):
    os.mkdir(f"{base}/{name}")
subprocess.run(["mount", "-t", "tmpfs", "t", f"{base}/lower"], check=True)
open(f"{base}/lower/file", "w").close()
options = f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work"
subprocess.run(["mount", "-t", "overlay", "o", "-o", options, f"{base}/merged"], check=True)
inner = os.open(f"{base}/merged/file", os.O_RDONLY)
fcntl.flock(inner, fcntl.LOCK_EX)
key = mounts.file_key(inner)
answer = locks.ask_lock(inner)
print(key.kind.decode(), key.device != key.kernel_device, answer.state, answer.holders[0].exact)
other = os.open(f"{base}/lower/file", os.O_RDONLY)
print(locks.ask_lock(other).state)
"""


@pytest.mark.root
def test_on_an_overlay_of_two_file_systems_a_lock_is_found_though_devices_differ(tmp_path: Path):
    if not may_unshare("-m"):
        pytest.skip("needs uid 0 and mount namespaces")
    home = str(Path(mounts.__file__).parents[3])
    command = ["unshare", "-m", sys.executable, "-c", OVERLAY, str(tmp_path), home]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "overlay" in result.stderr and "unknown filesystem" in result.stderr:
        pytest.skip("this kernel has no overlay file system")

    assert result.stdout.splitlines() == ["overlay True probable False", "free"], result.stderr
