"""What the daemon double knows: containers, images, versions, and how an engine answers about them.

`World.answer` maps one request to status and JSON as Engine 20.10 does (texts and codes were read off that
version). It holds no socket and plays no faults; those are in ``daemon_double.py``. It does not run anything:
a container has the state the test gives it.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tests.support.daemon_wire import Request

STATES = ("created", "running", "paused", "restarting", "removing", "exited", "dead")
"""Every ``State.Status`` of Engine 20.10."""
NEVER = "0001-01-01T00:00:00Z"
STARTED = "2026-11-29T10:00:00.000000001Z"
DATA_ROOT = "/var/lib/docker"


class Container(msgspec.Struct):
    """A container of the double; the test may change it at any time.

    ``hidden_for`` counts down with every question about containers; while it is positive the container is
    neither inspected nor listed, but its name is taken, as during a slow create.
    """

    id: str
    name: str
    labels: dict[str, str] = {}
    status: str = "created"
    image: str = "empty:latest"
    pid: int = 0
    hidden_for: int = 0
    env: list[str] = []


class Image(msgspec.Struct):
    """An image of the double: ``id`` starts with ``sha256:``; ``tag`` is NAME:TAG or empty."""

    id: str
    tag: str
    labels: dict[str, str] = {}


class JsonError(Exception):
    """Ends the answering of a request with an engine's error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def identity(text: str) -> str:
    """Give 64 hexadecimal digits that depend on ``text`` alone."""
    return hashlib.sha256(text.encode()).hexdigest()


class World:
    """State of the engine that the double plays."""

    def __init__(self, api: str = "1.41", minimum: str = "1.12", engine: str = "20.10.24") -> None:
        self.api = api
        self.minimum = minimum
        self.containers: list[Container] = []
        self.reserved: dict[str, str] = {}
        self.images: list[Image] = []
        self.events: list[dict[str, Any]] = []
        details = {"ApiVersion": api, "MinAPIVersion": minimum, "Os": "linux", "Arch": "amd64"}
        parts = [("Engine", engine), ("containerd", "1.6.20"), ("runc", "1.1.5"), ("docker-init", "0.19.0")]
        self.version: dict[str, Any] = {
            "Platform": {"Name": ""},
            "Components": [
                {"Name": name, "Version": number, "Details": details if name == "Engine" else {}}
                for name, number in parts
            ],
            "Version": engine,
            **details,
        }
        self.info: dict[str, Any] = {
            "ID": "AAAA:BBBB:CCCC:DDDD:EEEE:FFFF:GGGG:HHHH:IIII:JJJJ:KKKK:LLLL",
            "Name": "double",
            "DockerRootDir": DATA_ROOT,
            "ServerVersion": engine,
            "Driver": "vfs",
            "OSType": "linux",
            "LiveRestoreEnabled": False,
        }
        self._born = 0

    def add(self, name: str, labels: dict[str, str] | None = None, **facts: Any) -> Container:
        """Put a container there; without ``id=`` its id follows from its name and its number."""
        self._born += 1
        facts.setdefault("id", identity(f"{self._born}/{name}"))
        container = Container(name=name, labels=labels or {}, **facts)
        self.containers.append(container)
        return container

    def reserve(self, name: str) -> str:
        """Take a name as a half-done create does: 404 for inspect, 409 for create. Gives the quoted id."""
        self.reserved[name] = identity(f"reserved/{name}")
        return self.reserved[name]

    def add_image(self, tag: str, labels: dict[str, str] | None = None) -> Image:
        """Put an image there."""
        self._born += 1
        image = Image(id="sha256:" + identity(f"{self._born}/{tag}"), tag=tag, labels=labels or {})
        self.images.append(image)
        return image

    def check_version(self, request: Request) -> None:
        """Refuse a version prefix outside the range, in the engine's words.

        Raises:
            JsonError: the version is too new or too old.
        """
        if request.version is None:
            return
        asked, lowest, highest = (_number(one) for one in (request.version, self.minimum, self.api))
        said = f"client version {request.version} is too"
        if asked > highest:
            raise JsonError(400, f"{said} new. Maximum supported API version is {self.api}")
        if asked < lowest:
            raise JsonError(
                400,
                f"{said} old. Minimum supported API version is {self.minimum}, "
                "please upgrade your client to a newer version",
            )

    def answer(self, request: Request) -> tuple[int, Any]:
        """Give status and JSON value (None: no body) as an engine would.

        Raises:
            JsonError: the engine would answer with an error.
        """
        for method, pattern, answerer in _ROUTES:
            found = re.fullmatch(pattern, request.path)
            if found and request.method in method:
                status, value = answerer(self, request, *found.groups())
                return status, value
        raise JsonError(404, "page not found")

    def find(self, reference: str) -> Container:
        """Resolve as the engine does: full id, then name, then unambiguous prefix of an id.

        Raises:
            JsonError: 404 for none, 500 for several.
        """
        seen = [one for one in self.containers if one.hidden_for <= 0]
        for one in seen:
            if one.id == reference:
                return one
        for one in seen:
            if one.name == reference:
                return one
        matching = [one for one in seen if reference and one.id.startswith(reference)]
        if not matching:
            raise JsonError(404, f"No such container: {reference}")
        if len(matching) > 1:
            raise JsonError(500, f"Multiple IDs found with provided prefix: {reference}")
        return matching[0]

    def find_image(self, reference: str) -> Image:
        """Resolve an image by id, short id or tag; 404 for none."""
        tagged = reference if ":" in reference else f"{reference}:latest"
        for image in self.images:
            if image.tag == tagged or image.id in {reference, f"sha256:{reference}"}:
                return image
        raise JsonError(404, f"No such image: {tagged}")

    def ask(self) -> None:
        """Count one question about containers, which lets hidden ones come nearer."""
        for one in self.containers:
            one.hidden_for -= 1


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _matches(wanted: Iterable[str], *candidates: str) -> bool:
    """Match as the engine's name filter: a regular expression found anywhere, or the very text."""
    for text in wanted:
        for candidate in candidates:
            try:
                if text == candidate or re.search(text, candidate):
                    return True
            except re.error:
                continue
    return False


def _has_label(labels: dict[str, str], wanted: str) -> bool:
    key, equals, value = wanted.partition("=")
    return key in labels and (not equals or labels[key] == value)


def _state(one: Container) -> dict[str, Any]:
    began = one.status in {"running", "paused", "restarting", "exited"}
    return {
        "Status": one.status,
        "Running": one.status in {"running", "paused", "restarting"},
        "Paused": one.status == "paused",
        "Restarting": one.status == "restarting",
        "OOMKilled": False,
        "Dead": one.status == "dead",
        "Pid": one.pid,
        "ExitCode": 0,
        "Error": "",
        "StartedAt": STARTED if began else NEVER,
        "FinishedAt": STARTED if one.status == "exited" else NEVER,
    }


def _inspect(world: World, _request: Request, reference: str) -> tuple[int, Any]:
    world.ask()
    one = world.find(reference)
    return 200, {
        "Id": one.id,
        "Created": STARTED,
        "Path": "none",
        "Args": [],
        "State": _state(one),
        "Image": "sha256:" + identity(one.image),
        "Name": f"/{one.name}",
        "RestartCount": 0,
        "Driver": "vfs",
        "HostConfig": {"NetworkMode": "none", "Memory": 0, "NanoCpus": 0, "AutoRemove": False},
        "Mounts": [],
        "Config": {"Image": one.image, "Cmd": ["none"], "Env": one.env, "Labels": one.labels},
        "NetworkSettings": {"Networks": {}},
    }


def _list(world: World, request: Request) -> tuple[int, Any]:
    world.ask()
    filters = request.filters()
    unknown = set(filters) - {"name", "label", "id", "status"}
    if unknown:
        raise JsonError(400, f"Invalid filter '{min(unknown)}'")
    everything = request.value("all", "0") in {"1", "true", "True"} or "status" in filters
    listed = []
    for one in world.containers:
        if one.hidden_for > 0 or not (everything or _state(one)["Running"]):
            continue
        if "name" in filters and not _matches(filters["name"], one.name, f"/{one.name}"):
            continue
        if "id" in filters and not _matches(filters["id"], one.id):
            continue
        if "status" in filters and one.status not in filters["status"]:
            continue
        if all(_has_label(one.labels, wanted) for wanted in filters.get("label", ())):
            listed.append(_summary(one))
    return 200, listed


def _summary(one: Container) -> dict[str, Any]:
    return {
        "Id": one.id,
        "Names": [f"/{one.name}"],
        "Image": one.image,
        "ImageID": "sha256:" + identity(one.image),
        "Command": "none",
        "Created": 1795946400,
        "Ports": [],
        "Labels": one.labels,
        "State": one.status,
        "Status": one.status.capitalize(),
        "HostConfig": {"NetworkMode": "none"},
        "NetworkSettings": {"Networks": {}},
        "Mounts": [],
    }


def _create(world: World, request: Request) -> tuple[int, Any]:
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise JsonError(
            400,
            f"Content-Type specified ({request.headers.get('content-type', '')}) must be 'application/json'",
        )
    wanted = json.loads(request.body)
    image = world.find_image(wanted.get("Image") or "")
    if not wanted.get("Cmd") and not wanted.get("Entrypoint"):
        raise JsonError(400, "No command specified")
    name = request.value("name") or f"unnamed_{len(world.containers)}"
    taken = {one.name: one.id for one in world.containers} | world.reserved
    if name in taken:
        raise JsonError(
            409,
            f'Conflict. The container name "/{name}" is already in use by container "{taken[name]}". '
            "You have to remove (or rename) that container to be able to reuse that name.",
        )
    labels = image.labels | (wanted.get("Labels") or {})
    made = world.add(name, labels, image=wanted["Image"], env=wanted.get("Env") or [])
    return 201, {"Id": made.id, "Warnings": []}


def _remove(world: World, request: Request, reference: str) -> tuple[int, Any]:
    one = world.find(reference)
    forced = request.value("force", "0") in {"1", "true", "True"}
    if one.status == "removing":
        raise JsonError(409, f"removal of container {reference} is already in progress")
    if one.status in {"running", "restarting"} and not forced:
        raise JsonError(
            409,
            f"You cannot remove a {one.status} container {one.id}. "
            "Stop the container before attempting removal or force remove",
        )
    if one.status == "paused" and not forced:
        raise JsonError(
            409,
            f"You cannot remove a paused container {one.id}. "
            "Unpause and then stop the container before attempting removal or force remove",
        )
    world.containers.remove(one)
    return 204, None


def _import(world: World, request: Request) -> tuple[int, Any]:
    labels = {}
    for change in request.query.get("changes", ()):
        for line in change.splitlines():
            word, _, rest = line.strip().partition(" ")
            if word.upper() == "LABEL":
                key, _, value = rest.partition("=")
                labels[key.strip('"')] = value.strip('"')
    tag = f"{request.value('repo')}:{request.value('tag', 'latest')}"
    return 200, {"status": world.add_image(tag, labels).id}


def _images(world: World, request: Request) -> tuple[int, Any]:
    wanted = request.filters().get("label", ())
    return 200, [
        {
            "Id": one.id,
            "RepoTags": [one.tag] if one.tag else [],
            "Labels": one.labels,
            "Size": 0,
            "Containers": -1,
        }
        for one in world.images
        if all(_has_label(one.labels, label) for label in wanted)
    ]


def _inspect_image(world: World, _request: Request, reference: str) -> tuple[int, Any]:
    one = world.find_image(reference)
    return 200, {"Id": one.id, "RepoTags": [one.tag], "Size": 0, "Config": {"Labels": one.labels}}


def _remove_image(world: World, request: Request, reference: str) -> tuple[int, Any]:
    image = world.find_image(reference)
    for one in world.containers:
        if one.image in {image.tag, image.id}:
            raise JsonError(
                409,
                f"conflict: unable to delete {image.id[7:19]} (must be forced) - "
                f"image is being used by stopped container {one.id[:12]}",
            )
    world.images.remove(image)
    return 200, [{"Untagged": image.tag}, {"Deleted": image.id}]


_Answerer = Callable[..., tuple[int, Any]]
_ROUTES: tuple[tuple[tuple[str, ...], str, _Answerer], ...] = (
    (("GET", "HEAD"), "/_ping", lambda _w, _r: (200, "OK")),
    (("GET",), "/version", lambda w, _r: (200, w.version)),
    (("GET",), "/info", lambda w, _r: (200, w.info | {"Containers": len(w.containers)})),
    (("GET",), "/events", lambda w, _r: (200, w.events)),
    (("GET",), "/containers/json", _list),
    (("POST",), "/containers/create", _create),
    (("GET",), "/containers/([^/]+)/json", _inspect),
    (("DELETE",), "/containers/([^/]+)", _remove),
    (("POST",), "/images/create", _import),
    (("GET",), "/images/json", _images),
    (("GET",), "/images/(.+)/json", _inspect_image),
    (("DELETE",), "/images/(.+)", _remove_image),
    (("GET",), "/networks", lambda _w, _r: (200, [])),
    (("GET",), "/volumes", lambda _w, _r: (200, {"Volumes": [], "Warnings": None})),
)
