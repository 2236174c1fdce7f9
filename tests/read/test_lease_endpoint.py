"""Where the recorded client would have connected, from the record alone; what clients read differently is unresolved."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.read.daemon.endpoint import (
    ConfigFile,
    Endpoint,
    changed_since,
    read_configuration,
    resolve,
)

HOME = "/home/agent"
DEFAULT = "/var/run/docker.sock"


def look(
    environment: dict[str, str], files: dict[str, Any] | None = None, home: str | None = HOME
) -> Endpoint:
    given = files or {}

    def read(path: str) -> ConfigFile:
        value = given.get(path)
        data = value if isinstance(value, bytes | None) else json.dumps(value).encode()
        return ConfigFile(data=data, changed_ns=5)

    return resolve(environment, home=home, read=read)


def meta(name: str, folder: str = f"{HOME}/.docker") -> str:
    return f"{folder}/contexts/meta/{hashlib.sha256(name.encode()).hexdigest()}/meta.json"


def context(host: Any) -> dict[str, Any]:
    return {"Name": "x", "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": False}}}


@pytest.mark.parametrize(
    ("environment", "socket"),
    [
        ({}, DEFAULT),
        ({"HOME": ""}, DEFAULT),
        ({"DOCKER_HOST": "unix:///srv/a.sock"}, "/srv/a.sock"),
        ({"DOCKER_HOST": "unix://"}, DEFAULT),
        ({"DOCKER_HOST": "unix:///srv/a.sock", "DOCKER_CONTEXT": "other"}, "/srv/a.sock"),
        ({"DOCKER_HOST": "unix:///srv/a.sock", "DOCKER_CONTEXT": ""}, "/srv/a.sock"),
        ({"DOCKER_CONTEXT": "default"}, DEFAULT),
        ({"DOCKER_CONFIG": "relative", "DOCKER_CONTEXT": "default"}, DEFAULT),
    ],
)
def test_settings_that_need_no_file(environment: dict[str, str], socket: str) -> None:
    assert look(environment).socket == socket


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("tcp://10.0.0.1:2375", "remote"),
        ("ssh://ops@host", "remote"),
        ("/var/run/docker.sock", "remote"),
        ("localhost:2375", "remote"),
        ("fd://", "remote"),
        ("unix://x.sock", "unresolved"),
        ("", "unresolved"),
    ],
)
def test_other_addresses_are_named_as_what_they_are(host: str, kind: str) -> None:
    view = look({"DOCKER_HOST": host}).view
    assert view.kind == kind
    assert view.code == f"endpoint_{kind}"
    assert view.reason


def test_an_empty_context_is_read_in_two_ways() -> None:
    assert look({"DOCKER_CONTEXT": ""}).view.kind == "unresolved"


def test_the_current_context_leads_to_its_endpoint() -> None:
    files = {
        f"{HOME}/.docker/config.json": {"currentContext": "lab"},
        meta("lab"): context("unix:///lab.sock"),
    }
    seen = look({}, files)
    assert seen.socket == "/lab.sock"
    assert seen.view.files == (f"{HOME}/.docker/config.json", meta("lab"))
    assert look({"DOCKER_CONTEXT": "lab"}, files).socket == "/lab.sock"
    assert look({}, {**files, meta("lab"): context("tcp://1.2.3.4:5")}).view.code == "endpoint_remote"


def test_the_recorded_folder_counts_and_an_empty_setting_is_unset() -> None:
    files = {"/cfg/config.json": {"currentContext": "lab"}, meta("lab", "/cfg"): context("unix:///lab.sock")}
    assert look({"DOCKER_CONFIG": "/cfg", "HOME": "/elsewhere"}, files).socket == "/lab.sock"
    own = {"/h/.docker/config.json": {"currentContext": "default"}}
    assert look({"DOCKER_CONFIG": "", "HOME": "/h"}, own).socket == DEFAULT


def test_without_home_the_accounts_home_counts() -> None:
    files = {
        "/acc/.docker/config.json": {"currentContext": "lab"},
        meta("lab", "/acc/.docker"): context("unix:///l"),
    }
    assert look({}, files, home="/acc").socket == "/l"
    assert look({}, files, home=None).view.kind == "unresolved"
    assert look({"HOME": "relative"}, files).view.kind == "unresolved"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'{"currentContext":"a","currentContext":"default"}',
        b'{"CurrentContext":"lab"}',
        b'{"currentcontext":"lab","currentContext":"default"}',
        b'{"currentContext":1}',
        b'{"currentContext":{"a":1}}',
        b"\xff",
    ],
)
def test_a_configuration_that_clients_read_differently_is_unresolved(data: bytes) -> None:
    view = look({}, {f"{HOME}/.docker/config.json": data}).view
    assert (view.kind, view.code) == ("unresolved", "endpoint_unresolved")


@pytest.mark.parametrize("value", [None, "", "default"])
def test_no_context_means_the_default_socket(value: Any) -> None:
    assert look({}, {f"{HOME}/.docker/config.json": {"currentContext": value}}).socket == DEFAULT


@pytest.mark.parametrize(
    "described",
    [
        None,
        b"{",
        {"Endpoints": {}},
        {"Endpoints": {"docker": {}}},
        {"Endpoints": {"docker": {"Host": ""}}},
        {"Endpoints": {"docker": {"Host": 1}}},
        {"Endpoints": {"docker": {"host": "unix:///a"}}},
        {"endpoints": {"docker": {"Host": "unix:///a"}}},
        {"Endpoints": [1]},
        b'{"Endpoints":{"docker":{"Host":"unix:///a","Host":"unix:///b"}}}',
    ],
)
def test_a_context_without_a_clear_host_is_unresolved(described: Any) -> None:
    assert look({"DOCKER_CONTEXT": "lab"}, {meta("lab"): described}).view.kind == "unresolved"


def test_a_configuration_changed_after_the_record_settles_nothing() -> None:
    seen = look({}, {f"{HOME}/.docker/config.json": {}})
    assert changed_since(seen, 6).socket == DEFAULT
    later = changed_since(seen, 5)
    assert later.view.kind == "unresolved"
    assert later.socket is None
    fixed = look({"DOCKER_HOST": "unix:///a"})
    assert changed_since(fixed, 0).socket == "/a", "no file took part"


def test_files_are_read_with_their_times_and_links_are_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    absent = read_configuration(str(path))
    assert absent.data is None
    assert absent.unreadable is None
    assert absent.changed_ns == max(tmp_path.stat().st_mtime_ns, tmp_path.stat().st_ctime_ns)
    path.write_bytes(b"{}")
    os.utime(tmp_path, ns=(0, 1))
    seen = read_configuration(str(path))
    assert seen.data == b"{}"
    assert seen.changed_ns == max(tmp_path.stat().st_ctime_ns, path.stat().st_ctime_ns)
    other = tmp_path / "link.json"
    other.symlink_to(path)
    assert read_configuration(str(other)).unreadable
    assert read_configuration(str(tmp_path)).unreadable
    with path.open("wb") as file:
        file.truncate(1 << 21)
    assert read_configuration(str(path)).unreadable


def docker_config(home: Path, *, linked: bool = False) -> Path:
    """A folder with a configuration that names another context."""
    folder = home / ("real" if linked else ".docker")
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"currentContext": "far"}')
    if linked:
        (home / ".docker").symlink_to("real")
    return folder


def later_than(*paths: Path) -> int:
    return max(max(one.lstat().st_mtime_ns, one.lstat().st_ctime_ns) for one in paths) + 1


@pytest.mark.parametrize("linked", [True, False])
def test_a_configuration_removed_after_the_record_settles_nothing(tmp_path: Path, linked: bool) -> None:
    folder = docker_config(tmp_path / "h", linked=linked)
    record = later_than(folder, tmp_path / "h", tmp_path)
    while folder.stat().st_mtime_ns < record:
        (folder / "config.json").write_text('{"currentContext": "far"}')
        (folder / "config.json").unlink()
    seen = resolve({"HOME": str(tmp_path / "h")}, home=None, read=read_configuration)
    assert changed_since(seen, record).view.code == "endpoint_unresolved"


def test_a_folder_of_configuration_that_may_have_been_removed_since_is_told(tmp_path: Path) -> None:
    """The folder above changes for many reasons, so this is no refusal."""
    home = tmp_path / "h"
    home.mkdir()
    environment = {"HOME": str(home)}
    seen = resolve(environment, home=None, read=read_configuration)
    after = later_than(home)
    assert changed_since(seen, after).view.reason is None
    told = changed_since(seen, after - 1).view
    assert (told.kind, told.code, told.address) == ("unix", None, DEFAULT)
    assert told.reason == (
        f"{home}/.docker/config.json is not there; whether it was removed after the record is not known"
    )


def test_a_younger_link_on_the_way_to_the_configuration_counts_as_a_change(tmp_path: Path) -> None:
    docker_config(tmp_path / "h", linked=True)
    link = tmp_path / "h" / ".docker"
    seen = resolve({"HOME": str(tmp_path / "h"), "DOCKER_CONTEXT": ""}, home=None, read=read_configuration)
    assert seen.view.kind == "unresolved"
    config = tmp_path / "h" / "real" / "config.json"
    config.write_text("{}")
    old = later_than(config, config.parent)
    while link.lstat().st_ctime_ns < old:
        link.unlink()
        link.symlink_to("real")
    found = resolve({"HOME": str(tmp_path / "h")}, home=None, read=read_configuration)
    assert found.socket == DEFAULT
    assert changed_since(found, old).view.code == "endpoint_unresolved"
