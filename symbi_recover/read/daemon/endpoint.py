"""Where the recorded client would connect: the endpoint of leases.md section 18.4, from the record alone.

`resolve` is pure: the record's environment, the account's home and a reader of configuration files come as arguments,
and nothing of this process's own environment takes part. In order:

1. `DOCKER_HOST`, else `DOCKER_CONTEXT`; either set but empty is unresolved, since clients differ;
2. else `currentContext` in `config.json` under `DOCKER_CONFIG`, or under `.docker` in `HOME`;
3. a context other than `default` names its endpoint in `contexts/meta/<SHA-256 of its name>/meta.json`.

Only `unix://` with an absolute path can be asked or proven; everything else is named as what it is. A file that
clients could read in two ways is unresolved rather than guessed.
"""

import hashlib
import os
import pwd
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.leases import EndpointView
from symbi_recover.core.words import counted
from symbi_recover.read.daemon.listener import links_changed_ns
from symbi_recover.read.evidence.opener import OpenedFile, facts_of
from symbi_recover.wire.strictjson import JsonError, Scanner

DEFAULT_SOCKET = "/var/run/docker.sock"
_MOST_CONFIGURATION = 1 << 20
_SCHEME = "unix://"


class ConfigFile(Struct, frozen=True, kw_only=True):
    """One configuration file of the client."""

    data: bytes | None
    """None if it is not there."""
    changed_ns: int | None = None
    """The latest change of the file, of the folder that holds it, or of a link on the way to that."""
    above_changed_ns: int | None = None
    """If the folder is not there either: the latest change of the nearest folder above."""
    unreadable: str | None = None


Reader = Callable[[str], ConfigFile]


class Endpoint(Struct, frozen=True, kw_only=True):
    """The endpoint, and the latest change of the files that led to it."""

    view: EndpointView
    changed_ns: int | None = None
    above_changed_ns: int | None = None
    """Set if there is no folder of configuration at all: when one can have been removed at the latest."""

    @property
    def socket(self) -> str | None:
        """Path of the Unix socket, or None for what cannot be asked."""
        return self.view.address if self.view.kind == "unix" else None


def account_home(uid: int) -> str | None:
    """The home of an account, for a client that was started without `HOME`."""
    try:
        return pwd.getpwuid(uid).pw_dir or None
    except (KeyError, OverflowError):
        return None


def resolve(environment: Mapping[str, str], *, home: str | None, read: Reader) -> Endpoint:
    """Resolve as the recorded client does.

    Args:
        environment: `docker_environment` of the record.
        home: the account's home, for a client without `HOME`.
        read: gives a configuration file; never raises.
    """
    host, context = environment.get("DOCKER_HOST"), environment.get("DOCKER_CONTEXT")
    if host is not None:
        return (
            _unclear("DOCKER_HOST", "DOCKER_HOST is set and empty")
            if not host
            else _address(host, "DOCKER_HOST")
        )
    if context is not None and not context:
        return _unclear("DOCKER_CONTEXT", "DOCKER_CONTEXT is set and empty")
    folder = environment.get("DOCKER_CONFIG") or ""
    if not folder:
        above = environment.get("HOME") or home or ""
        folder = f"{above.rstrip('/')}/.docker" if above else ""
    if context == "default":
        return _address(_SCHEME, "DOCKER_CONTEXT")
    if not folder.startswith("/"):
        return _unclear("config.json", f"the configuration folder {folder!r} is not an absolute path")
    if context is not None:
        return _of_context(context, folder, "DOCKER_CONTEXT", read, ())
    return _of_configuration(folder, read)


def _of_configuration(folder: str, read: Reader) -> Endpoint:
    path = f"{folder}/config.json"
    file = read(path)
    if file.unreadable is not None:
        return _unclear("config.json", file.unreadable, (path,))
    if file.data is None:
        found = _with_files(_address(_SCHEME, "default socket"), (path,), file.changed_ns)
        return replace(found, above_changed_ns=file.above_changed_ns)
    members, problem = _members(file.data, ("currentContext",))
    current = members.get("currentContext")
    if problem is None and current is not None and not isinstance(current, str):
        problem = "currentContext is not a string"
    if problem is not None:
        return _unclear("config.json", problem, (path,))
    if not current or current == "default":
        return _with_files(_address(_SCHEME, "default socket"), (path,), file.changed_ns)
    return _with_files(
        _of_context(str(current), folder, "config.json", read, (path,)), (path,), file.changed_ns
    )


def _of_context(name: str, folder: str, source: str, read: Reader, before: tuple[str, ...]) -> Endpoint:
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
    path = f"{folder}/contexts/meta/{digest}/meta.json"
    files = (*before, path)
    file = read(path)
    if file.unreadable is not None or file.data is None:
        return _unclear(source, file.unreadable or f"there is no context {name!r}", files)
    members, problem = _members(file.data, ("Endpoints",))
    for part in ("Endpoints", "docker", "Host"):
        if problem is None and part != "Endpoints":
            members, problem = _nested(members, part)
    value = members.get("Host")
    if problem is None and (not isinstance(value, str) or not value):
        problem = f"the context {name!r} names no host"
    if problem is not None:
        return _unclear(source, problem, files)
    return _with_files(_address(str(value), f"context {name}"), files, file.changed_ns)


def _nested(members: Mapping[str, Any], wanted: str) -> tuple[dict[str, Any], str | None]:
    above = {"docker": "Endpoints", "Host": "docker"}[wanted]
    value = members.get(above)
    if not isinstance(value, _Pairs):
        return {}, f"{above} is missing, or no JSON object"
    return _chosen(value, (wanted,))


class _Pairs(list[tuple[str, Any]]):
    """An object with its repetitions."""


def _members(data: bytes, wanted: tuple[str, ...]) -> tuple[dict[str, Any], str | None]:
    """The wanted members of a document, or why clients may read it in different ways."""
    try:
        scanner = Scanner(data)
        value = _pairs(scanner)
        scanner.end()
    except JsonError as error:
        return {}, f"not JSON: {error.message}"
    if not isinstance(value, _Pairs):
        return {}, "not a JSON object"
    return _chosen(value, wanted)


def _pairs(scanner: Scanner) -> Any:
    if scanner.peek() != b"{":
        return scanner.free()
    found = _Pairs()
    scanner.members(lambda name: found.append((name, _pairs(scanner))))
    return found


def _chosen(pairs: _Pairs, wanted: tuple[str, ...]) -> tuple[dict[str, Any], str | None]:
    names = [name for name, _ in pairs]
    for one in wanted:
        alike = [name for name in names if name.casefold() == one.casefold()]
        if len(alike) > 1:
            return {}, f"{one} is there more than once"
        if alike and alike[0] != one:
            return {}, f"{one} is spelled {alike[0]!r}"
    return dict(pairs), None


def _address(text: str, source: str) -> Endpoint:
    if text.startswith(_SCHEME):
        path = text.removeprefix(_SCHEME) or DEFAULT_SOCKET
        if not path.startswith("/"):
            return _unclear(source, f"{text!r} is relative to the client's folder")
        if "\0" in path:
            return _unclear(source, "the path holds a NUL")
        return Endpoint(view=EndpointView(kind="unix", address=path, source=source))
    scheme = text.partition("://")[0] if "://" in text else "tcp"
    view = EndpointView(
        kind="remote",
        address=text,
        source=source,
        code="endpoint_remote",
        reason=f"{scheme} leads away from this host's kernel, so neither queue nor engine can be seen",
    )
    return Endpoint(view=view)


def _unclear(source: str, reason: str, files: tuple[str, ...] = ()) -> Endpoint:
    view = EndpointView(
        kind="unresolved", address=None, source=source, code="endpoint_unresolved", reason=reason, files=files
    )
    return Endpoint(view=view)


def _with_files(endpoint: Endpoint, files: tuple[str, ...], changed_ns: int | None) -> Endpoint:
    view = endpoint.view
    merged = tuple(dict.fromkeys((*files, *view.files)))
    times = [time for time in (changed_ns, endpoint.changed_ns) if time is not None]
    return Endpoint(
        view=EndpointView(
            kind=view.kind,
            address=view.address,
            source=view.source,
            code=view.code,
            reason=view.reason,
            files=merged,
        ),
        changed_ns=max(times, default=None),
    )


def changed_since(endpoint: Endpoint, record_ns: int) -> Endpoint:
    """The same endpoint, unresolved if the files that led to it may have changed after the record did.

    Args:
        endpoint: from `resolve`.
        record_ns: the later of the record's mtime and ctime.
    """
    above = endpoint.above_changed_ns
    if above is not None and above >= record_ns:
        # The folder above changes for many reasons: no cause to refuse, but to say so.
        remark = (
            f"{endpoint.view.files[0]} is not there; whether it was removed after the record is not known"
        )
        endpoint = replace(endpoint, view=replace(endpoint.view, reason=remark))
    # File times move in steps of some milliseconds, so an equal one may be later.
    if endpoint.changed_ns is None or endpoint.changed_ns < record_ns or endpoint.view.kind == "unresolved":
        return endpoint
    reason = "the client's configuration changed after the record, so it may have led elsewhere then"
    return _unclear(endpoint.view.source, reason, endpoint.view.files)


def read_configuration(path: str) -> ConfigFile:
    """Read one configuration file; its folder's changes count as well, since a file may have been removed from it."""
    folder = path.rpartition("/")[0] or "/"
    changed = _folder_changed_ns(folder)
    links = links_changed_ns(folder)
    times = [one for one in (changed, links) if one is not None]
    try:
        with OpenedFile.open(path) as file:
            if file.facts.kind != "file" or file.facts.size > _MOST_CONFIGURATION:
                return ConfigFile(
                    data=None, unreadable=f"a {file.facts.kind} of {counted(file.facts.size, 'byte')}"
                )
            times += [file.facts.mtime_ns, file.facts.ctime_ns]
            data = file.read(_MOST_CONFIGURATION)
            if not file.unchanged():
                return ConfigFile(data=None, unreadable="it changed while being read")
            return ConfigFile(data=data, changed_ns=max(times))
    except UnexaminedError as error:
        if error.code != "file_missing":
            return ConfigFile(data=None, unreadable=error.message)
        above = folder
        while changed is None and above != "/":
            above = os.path.dirname(above)
            changed = _folder_changed_ns(above)
        missing = changed if above != folder else None
        return ConfigFile(data=None, changed_ns=max(times, default=None), above_changed_ns=missing)


def _folder_changed_ns(path: str) -> int | None:
    """The latest change of a folder, links followed; None if nothing can be seen there."""
    try:
        facts = facts_of(os.stat(path))
    except (OSError, ValueError):
        return None
    return max(facts.mtime_ns, facts.ctime_ns)
