"""Whether a container is the lease's: name, label and, where recorded, id must all fit (leases.md sections 7 and 9). Pure.

The daemon's three answers are compared exactly: a name filter matches parts, a reference may be a prefix of an id or
another container's name, and a label may be anybody's. A name or a label alone never makes a container the lease's.
"""

from collections.abc import Iterator

from msgspec import Struct

from symbi_recover.core.codes import finding
from symbi_recover.core.findings import Finding
from symbi_recover.core.lease_records import LABEL, Created
from symbi_recover.core.leases import ContainerView, LeaseView
from symbi_recover.core.scalars import HEX_64
from symbi_recover.read.daemon.questions import STATES, Container, Listed


class Seen(Struct, frozen=True):
    """The three answers about one lease."""

    by_id: Container | None
    by_name: Container | None
    by_label: tuple[Listed, ...]


def judge_container(
    view: LeaseView, seen: Seen, where: str, *, supervised: bool
) -> tuple[str, list[Finding]]:
    """The verdict's code, and every finding.

    Args:
        view: a good container record.
        seen: the daemon's answers about it.
        where: the record's path.
        supervised: a helper is running.
    """
    state = view.record.state
    wanted_id = state.container_id if isinstance(state, Created) else None
    own = _own(seen, view.lease)
    refused = [finding(code, text, path=where) for code, text in _misfits(view, seen, wanted_id, own)]
    strange = [finding("container_state_unknown", text, path=where) for text in _strange_states(seen)]
    if refused:
        return refused[0].code, refused + strange
    target = wanted_id or next(iter(own), None)
    if target is None or target not in own:
        asked = f"id {wanted_id}" if wanted_id else f"name {view.record.name}"
        code, text = (
            "container_gone" if wanted_id else "container_absent",
            f"404 for {asked}, and no container has the label",
        )
    else:
        names = _names(seen, target)
        text = f"container {target}, named {', '.join(names) or 'nothing'}, state {_state(seen, target)}"
        code = "container_present" if view.record.name in names else "container_renamed"
        code = "container_supervised" if code == "container_present" and supervised else code
    return code, [finding(code, text, path=where), *strange]


def _own(seen: Seen, lease: str) -> set[str]:
    """Ids of all containers that carry the lease's label."""
    inspected: list[Container | Listed] = [one for one in (seen.by_id, seen.by_name) if one is not None]
    return {one.id for one in [*inspected, *seen.by_label] if one.labels.get(LABEL) == lease}


def _misfits(view: LeaseView, seen: Seen, wanted_id: str | None, own: set[str]) -> Iterator[tuple[str, str]]:
    """Every way in which the answers do not fit the record, as code and text."""
    by_id, by_name, name = seen.by_id, seen.by_name, view.record.name
    if by_id is not None and by_id.id != wanted_id:
        yield "container_mismatch", f"asked for id {wanted_id}, the daemon answered about {by_id.id}"
    elif by_id is not None and by_id.labels.get(LABEL) != view.lease:
        yield "container_mismatch", f"id {wanted_id} carries the label {by_id.labels.get(LABEL)!r}"
    if by_name is not None and by_name.name != name:
        yield "container_mismatch", f"asked for name {name}, the daemon answered about {by_name.name!r}"
    elif by_name is not None and by_name.labels.get(LABEL) != view.lease:
        label = by_name.labels.get(LABEL)
        yield "name_foreign", f"container {by_name.id} has the name and the label {label!r}"
    elif by_name is not None and wanted_id is not None and by_name.id != wanted_id:
        yield "name_foreign", f"container {by_name.id} has name and label, the record names {wanted_id}"
    elif wanted_id is not None and by_id is None and own:
        yield "container_mismatch", f"id {wanted_id} is not known, and {min(own)} carries the lease's label"
    if len(own) > 1:
        yield "container_several", ", ".join(sorted(own))
    ids = {one.id for one in (*seen.by_label, by_id, by_name) if one is not None}
    for one in sorted(ids):
        if not HEX_64.fullmatch(one):
            yield "container_mismatch", f"{one!r} is no full container id"


def _strange_states(seen: Seen) -> list[str]:
    states = {one.id: one.state for one in seen.by_label}
    states |= {one.id: one.state for one in (seen.by_id, seen.by_name) if one is not None}
    return [f"container {one} is {state!r}" for one, state in sorted(states.items()) if state not in STATES]


def _names(seen: Seen, container_id: str) -> tuple[str, ...]:
    names = [one.name for one in (seen.by_id, seen.by_name) if one is not None and one.id == container_id]
    names += [name for one in seen.by_label if one.id == container_id for name in one.names]
    return tuple(dict.fromkeys(names))


def _state(seen: Seen, container_id: str) -> str:
    inspected = [
        one.state for one in (seen.by_id, seen.by_name) if one is not None and one.id == container_id
    ]
    return next(iter(inspected + [one.state for one in seen.by_label if one.id == container_id]), "unknown")


def container_views(seen: Seen) -> tuple[ContainerView, ...]:
    """The containers as the report shows them, each once."""
    views: dict[str, ContainerView] = {}
    for how, one in (("id", seen.by_id), ("name", seen.by_name)):
        if one is not None and one.id not in views:
            views[one.id] = ContainerView(
                id=one.id,
                names=(one.name,),
                label=one.labels.get(LABEL),
                state=one.state,
                pid=one.pid or None,
                created=one.created,
                found_by="id" if how == "id" else "name",
            )
    for listed in seen.by_label:
        if listed.id not in views:
            views[listed.id] = ContainerView(
                id=listed.id,
                names=listed.names,
                label=listed.labels.get(LABEL),
                state=listed.state,
                found_by="label",
            )
    return tuple(views.values())
