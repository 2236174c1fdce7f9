"""Changes a daemon's world, in four ways: import an empty image, create a fence, remove a container, remove an image.

Each change goes through the SDK over the bounded connection of `read/daemon/engine.py`: one connection, one deadline
and one budget of bytes for each, closed at once, so that a census sees none of ours. Containers and images are named
by their full ids alone when they are removed. Nothing of the operator's own Docker configuration takes part: proxies
of `config.json` would else enter the fence's environment.

Importing this module loads the SDK; commands import it when they need it.
"""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from docker import APIClient
from docker.errors import APIError
from msgspec import Struct

from symbi_recover.core.fences import FENCE_LABEL, FENCE_REPOSITORY, NONCE_LABEL
from symbi_recover.core.scalars import HEX_64
from symbi_recover.read.daemon.events import RememberingEngine
from symbi_recover.read.daemon.questions import DaemonError, Listed

T = TypeVar("T")
EMPTY_TAR = bytes(1024)
_IMAGE_ID = re.compile(r"sha256:[0-9a-f]{64}")
_QUOTED_ID = re.compile(r'by container "([0-9a-f]{64})"')
_COMMAND = ["none"]


class NameTaken(Struct, frozen=True):
    """The name belongs to somebody."""

    container_id: str | None
    """As the engine quoted it."""
    message: str


class FenceImage(Struct, frozen=True, kw_only=True):
    """An image that carries the fence's labels."""

    id: str
    tags: tuple[str, ...]
    labels: dict[str, str]


class EngineHand(RememberingEngine):
    """A daemon that can be asked, and changed in four ways."""

    def import_image(self, lease: str, nonce: str) -> str:
        """Import an empty image with the fence's labels, and give its id.

        Raises:
            DaemonError: it was not done, or nobody knows.
        """
        changes = [f"LABEL {FENCE_LABEL}={lease}", f"LABEL {NONCE_LABEL}={nonce}"]
        answer = self._do(
            lambda client: client.import_image_from_data(
                EMPTY_TAR, repository=FENCE_REPOSITORY, tag=nonce, changes=changes
            )
        )
        try:
            said = str(json.loads(answer)["status"])
        except (ValueError, KeyError, TypeError) as error:
            raise self._malformed("the import names no image") from error
        if not _IMAGE_ID.fullmatch(said):
            raise self._malformed(f"the import names no image, but {said[:80]!r}")
        return said

    def create_fence(self, name: str, image: str, lease: str, nonce: str) -> str | NameTaken:
        """Create an unstarted container, and give its id.

        Raises:
            DaemonError: it was not done, or nobody knows.
        """

        def create(client: APIClient) -> Any:
            return client.create_container(
                image,
                command=_COMMAND,
                name=name,
                labels={FENCE_LABEL: lease, NONCE_LABEL: nonce},
                network_disabled=True,
                host_config=client.create_host_config(network_mode="none", restart_policy={"Name": "no"}),
                use_config_proxy=False,
            )

        try:
            made = self._do(create)
        except _ConflictError as error:
            match = _QUOTED_ID.search(error.text)
            return NameTaken(match.group(1) if match else None, error.text)
        answer = made.get("Id") if isinstance(made, dict) else None
        if not isinstance(answer, str) or not HEX_64.fullmatch(answer):
            raise self._malformed("the create names no container")
        return answer

    def remove_container(self, container_id: str, *, force: bool, volumes: bool) -> bool:
        """Remove a container by its full id; False if the daemon says that there is none.

        Raises:
            DaemonError: it was not done, or nobody knows.
        """
        _need(HEX_64, container_id)
        try:
            self._do(lambda client: client.remove_container(container_id, force=force, v=volumes))
        except _AbsentError:
            return False
        return True

    def remove_image(self, image_id: str) -> bool:
        """Remove an image by its full id, never by force; False if there is none.

        Raises:
            DaemonError: it was not done (also while a container uses it), or nobody knows.
        """
        _need(_IMAGE_ID, image_id)
        try:
            self._do(lambda client: client.remove_image(image_id, force=False))
        except _AbsentError:
            return False
        return True

    def fences(self) -> tuple[Listed, ...]:
        """Every container that carries the fence's label, ended ones included."""
        return tuple(one for one in self._listed(FENCE_LABEL) if FENCE_LABEL in one.labels)

    def fence_images(self) -> tuple[FenceImage, ...]:
        """Every image that carries the fence's label."""
        said = self._do(lambda client: client.images(filters={"label": [FENCE_LABEL]}))
        if not isinstance(said, list):
            raise self._malformed("the list of images is none")
        found = []
        for one in said:
            labels = one.get("Labels") if isinstance(one, dict) else None
            if not isinstance(labels, dict) or FENCE_LABEL not in labels:
                continue
            tags = tuple(str(tag) for tag in one.get("RepoTags") or ())
            found.append(
                FenceImage(
                    id=str(one.get("Id")), tags=tags, labels={str(k): str(v) for k, v in labels.items()}
                )
            )
        return tuple(found)

    def _do(self, act: Callable[[APIClient], T]) -> T:
        """One change, over one connection, within one budget."""
        version = self.facts().asked_api_version
        with self._question():
            try:
                return act(self._new_client(version))
            except APIError as error:
                raise self._refusal(error) from error

    def _refusal(self, error: APIError) -> DaemonError:
        text = str(error.explanation or error)[:500]
        status = error.status_code
        kind = {404: _AbsentError, 409: _ConflictError}.get(int(status or 0), DaemonError)
        if kind is _AbsentError and not re.search(r"no such (container|image)", text, re.IGNORECASE):
            kind = DaemonError
        refusal = kind("daemon_failed", f"status {status}: {text}", stage="answer", path=self.path)
        refusal.text = text  # type: ignore[attr-defined]
        return refusal

    def _malformed(self, message: str) -> DaemonError:
        return DaemonError("daemon_malformed", message, stage="answer", path=self.path)


class _AbsentError(DaemonError):
    """There is no such container or image."""


class _ConflictError(DaemonError):
    """The name is taken, or the thing is in use."""

    text: str


def _need(form: re.Pattern[str], text: str) -> None:
    """Names and parts of ids are never used to remove anything."""
    if not form.fullmatch(text):
        raise DaemonError("daemon_malformed", f"{text[:80]!r} is no full id", stage="send")
