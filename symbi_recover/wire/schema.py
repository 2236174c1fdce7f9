"""JSON Schemas (draft 2020-12) of the typed structures in `core/`, so that each is described once.

`document` makes one self-contained schema: the structure at its root, everything it uses under `$defs`. Scalars are
described by msgspec; shapes are not, because its schemas do not tell what the runtime's reader takes:

1. evidence, in object form (journal.md sections 5.4 and 6): optional members may be left out, tagged variants have
   exactly one member, variants without fields may be a bare string or hold null, UUIDs have four spellings;
2. output, as we print it: every member is there unless it is left out on purpose, and there are no others.

What a schema cannot say (positional arrays, repeated members, number spellings, calendars) is listed in
`docs/schemas.md`. The exact reader in `wire/exact.py` decides; a test compares both over all recorded cases.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import FieldInfo, fields

from symbi_recover.core.events import EVENTS, Event
from symbi_recover.core.scalars import CANONICAL_UUID, HYPHENATED_UUID, UUID
from symbi_recover.core.shapes import Variant
from symbi_recover.core.values import ToolChoice

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Python's `$` also matches before a final line feed; this one does not, and means the same elsewhere.
_END = r"$(?!\n)"
_UUID = rf"^(?:[0-9a-fA-F]{{32}}|(?:urn:uuid:)?{HYPHENATED_UUID}|\{{{HYPHENATED_UUID}\}}){_END}"
_PRINTED_UUID = f"^{CANONICAL_UUID}{_END}"
_SPACE = r"[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_TIME = (
    r"^{ws}(?:[0-9]{{1,4}}|[+-]0*[0-9]{{1,6}}){ws}-{ws}(?:0?[1-9]|1[0-2]){ws}-{ws}(?:0?[1-9]|[12][0-9]|3[01])[Tt ]"
    r"{ws}(?:[01]?[0-9]|2[0-3]){ws}:{ws}[0-5]?[0-9]{ws}:{ws}(?:[0-5]?[0-9]|60)(?:\.[0-9]+)?"
    r"{ws}(?:[Zz]|[Uu][Tt][Cc]|[+\-\u2212](?:[01][0-9]|2[0-3]){mix}[0-5][0-9]){ws}{end}"
).format(ws=f"{_SPACE}]*", mix=f"{_SPACE}:]*", end=_END)

_SPELLINGS: dict[str, tuple[str, Schema]] = {
    "time": ("Time", {"type": "string", "pattern": _TIME}),
    "lease_uuid": ("Uuid", {"type": "string", "pattern": _UUID}),
}
"""What evidence may hold where an annotation names a kind, and the name of its definition."""

_TOOL_CHOICE: Schema = {
    "type": "object",
    "properties": {"type": {"enum": ["auto", "any", "tool"]}},
    "required": ["type"],
    "if": {"properties": {"type": {"const": "tool"}}},
    "then": {"properties": {"name": {"type": "string"}}, "required": ["name"]},
}
_SECTION = re.compile(r" \((?:[a-z-]+\.md )?sections? [^)]*\)")
"""Where a docstring names the format's description, which is not shipped."""
_NULL: Schema = {"type": "null"}


def document(name: str, kind: Any, *, output: bool = False, lines: bool = False) -> Schema:
    """The schema of `kind`, a structure or a union of structures.

    Args:
        name: its name with version, such as `journal-record.v1`.
        kind: the type.
        output: whether it is a document of ours rather than evidence.
        lines: whether each line of a file is one document, which the keyword `x-lines` then says.
    """
    writer = _Writer(output=output)
    root = writer.structure(kind) if isinstance(kind, type) else writer.of(kind)
    head: Schema = {"$schema": DIALECT, "$id": f"urn:symbi-recover:schema:{name}", "title": name}
    if lines:
        head["x-lines"] = True
    return head | root | {"$defs": dict(sorted(writer.definitions.items()))}


def event_documents() -> dict[str, tuple[str, type[Event]]]:
    """Every event: schema name, the runtime's name, and structure."""
    return {f"event-{_dashed(name)}": (name, kind) for name, kind in EVENTS.items()}


class _Writer:
    """Describes types, collecting structures under their names."""

    def __init__(self, *, output: bool) -> None:
        self.output = output
        self.definitions: dict[str, Schema] = {}
        self._owners: dict[str, type] = {}

    def of(self, kind: Any) -> Schema:
        """The schema of any annotation."""
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(kind, arguments[0], arguments[1:])
        if origin in (Union, UnionType):
            return self._union(arguments)
        if origin is Literal:
            return self._names(arguments)
        if origin is tuple and arguments[-1] is not Ellipsis:
            items = [self.of(item) for item in arguments]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if origin in (tuple, list):
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        return self._named(kind)

    def _named(self, kind: Any) -> Schema:
        if kind in (Any, Raw):
            return {}
        if kind is NoneType:
            return _NULL
        if kind is UUID:
            return self._scalar(
                "Uuid", {"type": "string", "pattern": _PRINTED_UUID if self.output else _UUID}
            )
        if issubclass(kind, Struct):
            return self._reference(kind)
        if issubclass(kind, Enum):
            return {"enum": [member.value for member in kind]}
        return msgspec.json.schema(kind)

    def structure(self, cls: type[Struct]) -> Schema:
        """The schema of a structure, in place."""
        about: Schema = {"description": _text(cls.__doc__ or "")}
        if cls is Event:
            return about | _one_of_members({name: self.of(event) for name, event in EVENTS.items()})
        if cls is ToolChoice and not self.output:
            return about | _TOOL_CHOICE
        if issubclass(cls, Variant):
            return about | _one_of_members(self._members(cls))
        config = cls.__struct_config__
        if config.tag_field and cls.__subclasses__():
            return about | {"oneOf": [self.of(kind) for kind in cls.__subclasses__()]}
        tag: Schema = {config.tag_field: {"const": config.tag}} if config.tag_field else {}
        required = [f.encode_name for f in fields(cls) if self._required(f, omitted=config.omit_defaults)]
        body: Schema = {"type": "object", "properties": tag | self._members(cls)}
        if tag or required:
            body["required"] = [*tag, *required]
        # a tagged variant without fields is read for its tag alone (leases.md section 4.2)
        closed = config.forbid_unknown_fields and (bool(fields(cls)) or not tag)
        if self.output or closed:
            body["additionalProperties"] = False
        return about | body

    def _members(self, cls: type[Struct]) -> Schema:
        members = {}
        for f in fields(cls):
            members[f.encode_name] = self.of(f.type)
            if self.output and f.name == "schema" and isinstance(f.default, str):
                members[f.encode_name] = {"const": f.default}
            if not self.output and isinstance(f.default, str | int | float | tuple):
                members[f.encode_name] |= {"default": f.default}
        return members

    def _required(self, f: FieldInfo, *, omitted: bool) -> bool:
        has_default = not f.required
        if self.output:
            return f.default is not UNSET and not (omitted and has_default)
        return not has_default and not _optional(f.type)

    def _reference(self, cls: type[Struct]) -> Schema:
        name = cls.__name__
        if self._owners.setdefault(name, cls) is not cls:
            raise ValueError(f"two structures are named {name}")
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self.structure(cls)
        return {"$ref": f"#/$defs/{name}"}

    def _scalar(self, name: str, schema: Schema) -> Schema:
        self.definitions[name] = schema
        return {"$ref": f"#/$defs/{name}"}

    def _annotated(self, kind: Any, base: Any, notes: tuple[Any, ...]) -> Schema:
        extra: dict[str, Any] = {}
        described: Schema = {}
        for note in notes:
            if isinstance(note, Meta):
                extra |= note.extra or {}
                described |= {"description": _text(note.description)} if note.description else {}
        spelling = _SPELLINGS.get(extra.get("kind", ""))
        if spelling and not (self.output and extra["kind"] == "lease_uuid"):
            return described | self._scalar(*spelling)
        if base not in (str, int):
            return described | self.of(base)
        schema: Schema = msgspec.json.schema(kind)
        return schema | ({"maximum": extra["maximum"]} if "maximum" in extra else {})

    def _union(self, kinds: Iterable[Any]) -> Schema:
        kinds = [kind for kind in kinds if kind is not UnsetType]
        bare: tuple[str, ...] = ()
        choices = []
        for kind in kinds:
            if get_origin(kind) is Literal and not self.output:
                bare = get_args(kind)
            elif isinstance(kind, type) and issubclass(kind, Variant) and not self.output:
                choices += self._variant(bare, kind)
                bare = ()
            else:
                choices.append(self.of(kind))
        if bare:
            choices.insert(0, self._names(bare))
        return choices[0] if len(choices) == 1 else {"anyOf": choices}

    def _variant(self, bare: tuple[str, ...], cls: type[Struct]) -> list[Schema]:
        members = dict.fromkeys(bare, _NULL) | self._members(cls)
        return [*([{"enum": [*bare]}] if bare else []), _one_of_members(members)]

    def _names(self, names: tuple[Any, ...]) -> Schema:
        """Variants without fields; a single name is a tag, which has one spelling."""
        if len(names) == 1:
            return {"const": names[0]}
        listed: Schema = {"enum": [*names]}
        return listed if self.output else {"anyOf": [listed, _one_of_members(dict.fromkeys(names, _NULL))]}


def _one_of_members(members: Mapping[str, Schema]) -> Schema:
    """An externally tagged variant: exactly one of the members."""
    return {
        "type": "object",
        "properties": dict(members),
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    }


def _optional(kind: Any) -> bool:
    """Whether a member without default may be left out of evidence (see `core/shapes.py`)."""
    if get_origin(kind) is Annotated:
        return any(isinstance(note, Meta) and (note.extra or {}).get("optional") for note in get_args(kind))
    return NoneType in get_args(kind)


def _text(described: str) -> str:
    return _SECTION.sub("", " ".join(described.split()))


def _dashed(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
