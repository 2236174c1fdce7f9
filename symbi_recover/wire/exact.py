"""The exact typed reader: every spelling that the runtime's reader takes, and nothing else (journal.md section 5).

It is built once for each type by walking `msgspec.inspect`, so that the structures in `core/` stay the only
description, and it alone refuses: the fast decoder may only say yes. It knows positional arrays, variant
spellings, member rules, number and UUID spellings, and counts nesting; see `core/shapes.py` for how a field's
annotation is read.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import NODEFAULT, UNSET, inspect

from symbi_recover.core.events import EVENTS, Event
from symbi_recover.core.scalars import HYPHENATED_UUID, UUID
from symbi_recover.core.shapes import Variant
from symbi_recover.core.values import ToolChoice
from symbi_recover.wire import timestamp
from symbi_recover.wire.strictjson import Scanner, number_value

Reader = Callable[[Scanner], Any]
T = TypeVar("T")

_UUID = re.compile(
    rf"[0-9a-fA-F]{{32}}|(?:urn:uuid:)?(?P<plain>{HYPHENATED_UUID})|\{{(?P<braced>{HYPHENATED_UUID})\}}"
)


def read(data: bytes, kind: type[T]) -> T:
    """Read one document as `kind`.

    Raises:
        JsonError: where the runtime's reader would refuse the bytes; its offset counts from the start of `data`.
    """
    scanner = Scanner(data)
    value: T = reader(kind)(scanner)  # type: ignore[arg-type]  # a type is hashable
    scanner.end()
    return value


def parse_uuid(text: str) -> UUID | None:
    """The UUID that `text` spells in one of the four forms of section 6.1, or None."""
    match = _UUID.fullmatch(text)
    return UUID(hex=match.group("plain") or match.group("braced") or text) if match else None


@cache
def reader(kind: Any) -> Reader:
    """The exact reader of a type from `core/`."""
    return _of(inspect.type_info(kind))


def _of(info: inspect.Type) -> Reader:
    if isinstance(info, inspect.Metadata):
        kind = (info.extra or {}).get("kind")
        return KINDS[kind] if kind else _bounded(info)
    if isinstance(info, inspect.StructType):
        return _structure(info.cls)
    if isinstance(info, inspect.UnionType):
        return _union(info)
    if isinstance(info, inspect.VarTupleType | inspect.ListType):
        return _array(_of(info.item_type))
    if isinstance(info, inspect.TupleType):
        return _fixed_array([_of(item) for item in info.item_types])
    if isinstance(info, inspect.DictType):
        return _map(_of(info.value_type))
    if isinstance(info, inspect.LiteralType):
        return _variant(frozenset(map(str, info.values)), {}, None)
    if isinstance(info, inspect.IntType):
        return _integer(info.le if info.le is not None else 2**64 - 1)
    return _PLAIN[type(info)]


def _bounded(info: inspect.Metadata) -> Reader:
    maximum = (info.extra or {}).get("maximum")
    return _of(info.type) if maximum is None else _integer(maximum)


def _string(scanner: Scanner) -> str:
    return scanner.string()


def _time(scanner: Scanner) -> str:
    start = scanner.position
    text = scanner.string()
    if timestamp.is_canonical(text) or timestamp.parse(text) is not None:
        return text
    scanner.fail("not a time", start)


def _uuid(scanner: Scanner) -> UUID:
    start = scanner.position
    value = parse_uuid(scanner.string())
    return scanner.fail("not a UUID", start) if value is None else value


def _bool(scanner: Scanner) -> bool:
    start = scanner.position
    value = scanner.word()
    return scanner.fail("expected true or false", start) if value is None else value


def _float(scanner: Scanner) -> float:
    start = scanner.position
    value = number_value(scanner.number())
    return scanner.fail("number out of range", start) if value is None else float(value)


KINDS: dict[str, Reader] = {"time": _time}
"""Readers by the `kind` that an annotation names; a format with spellings of its own adds them here."""


def _integer(maximum: int) -> Reader:
    digits = len(str(maximum))

    def read_integer(scanner: Scanner) -> int:
        scanner.peek()
        start = scanner.position
        text = scanner.number().group()
        if not text.isdigit() or len(text) > digits or int(text) > maximum:
            scanner.fail(f"expected an integer from 0 to {maximum}", start)
        return int(text)

    return read_integer


def _free(scanner: Scanner) -> Any:
    return scanner.free()


_PLAIN: dict[type, Reader] = {
    inspect.StrType: _string,
    inspect.UUIDType: _uuid,
    inspect.BoolType: _bool,
    inspect.FloatType: _float,
    inspect.AnyType: _free,
}


def _array(item: Reader) -> Reader:
    def read_array(scanner: Scanner) -> tuple[Any, ...]:
        items: list[Any] = []
        scanner.elements(lambda _: items.append(item(scanner)))
        return tuple(items)

    return read_array


def _fixed_array(items: list[Reader]) -> Reader:
    def read_fixed(scanner: Scanner) -> tuple[Any, ...]:
        values: list[Any] = []

        def element(index: int) -> None:
            if index >= len(items):
                scanner.fail(f"expected {len(items)} elements")
            values.append(items[index](scanner))

        if scanner.elements(element) != len(items):
            scanner.fail(f"expected {len(items)} elements")
        return tuple(values)

    return read_fixed


def _map(value: Reader) -> Reader:
    def read_map(scanner: Scanner) -> dict[str, Any]:
        entries: dict[str, Any] = {}

        def member(name: str) -> None:
            entries[name] = value(scanner)

        scanner.members(member)
        return entries

    return read_map


def _union(info: inspect.UnionType) -> Reader:
    kinds = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
    bare: frozenset[str] = frozenset()
    structures = []
    for kind in kinds:
        if isinstance(kind, inspect.LiteralType):
            bare = frozenset(map(str, kind.values))
        else:
            structures.append(kind)
    if bare and structures and isinstance(structures[0], inspect.StructType):
        cls = structures[0].cls
        return _variant(bare, _tags(cls), cls if issubclass(cls, Variant) else None)
    return _of(kinds[0])


def _tags(cls: type) -> dict[str, Reader]:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)  # noqa: S101 -- a Variant is a Struct
    return {f.encode_name: _of(f.type) for f in info.fields}


def _variant(bare: frozenset[str], tags: dict[str, Reader], cls: type[Variant] | None) -> Reader:
    """Section 5.4, tagged variants; `bare` names those without fields."""

    def body(scanner: Scanner, name: str) -> Any:
        if name in bare:
            return name if scanner.null() else scanner.fail(f"{name!r} has no fields")
        if name not in tags:
            scanner.fail(f"unknown variant {name!r}")
        value = tags[name](scanner)
        return value if cls is None else cls.of(name, value)

    def read_variant(scanner: Scanner) -> Any:
        start = scanner.position
        if scanner.peek() == b'"':
            name = scanner.string()
            return name if name in bare else scanner.fail(f"{name!r} is not a variant without fields", start)
        values: list[Any] = []

        def member(name: str) -> None:
            if values:
                scanner.fail("a variant has one member")
            values.append(body(scanner, name))

        scanner.members(member)
        return values[0] if values else scanner.fail("a variant has one member", start)

    return read_variant


def _structure(cls: type) -> Reader:
    if cls is Event:
        return _variant(frozenset(), _LazyEvents(), None)
    if cls is ToolChoice:
        return _tool_choice
    if issubclass(cls, Variant):
        return _variant(frozenset(), _tags(cls), cls)
    return _Structure(cls)


class _LazyEvents(dict[str, Reader]):
    """Readers of the events, each made when first met."""

    def __contains__(self, name: object) -> bool:
        return name in EVENTS

    def __missing__(self, name: str) -> Reader:
        return reader(EVENTS[name])


class _Field(msgspec.Struct, frozen=True):
    name: str
    read: Reader
    nullable: bool
    null: object
    """What an explicit null means."""
    default: object
    """What absence means; NODEFAULT if it is refused."""
    trailing: bool
    """Whether it may be left off the end of the positional form."""


class _Structure:
    """Reads one structure from its object or its positional form."""

    def __init__(self, cls: type) -> None:
        info = inspect.type_info(cls)
        assert isinstance(info, inspect.StructType)  # noqa: S101 -- only called for Structs
        self.cls = cls
        self.strict = info.forbid_unknown_fields
        self.fields = [_field(f) for f in info.fields]
        self.by_name = dict(zip([f.encode_name for f in info.fields], self.fields, strict=True))

    def __call__(self, scanner: Scanner) -> Any:
        scanner.peek()
        start = scanner.position
        values = self._positional(scanner) if scanner.peek() == b"[" else self._members(scanner)
        try:
            return self.cls(**values)
        except ValueError as error:
            scanner.fail(str(error), start)

    def _members(self, scanner: Scanner) -> dict[str, Any]:
        values: dict[str, Any] = {}

        def member(name: str) -> None:
            known = self.by_name.get(name)
            if known is None:
                if self.strict:
                    scanner.fail(f"unknown member {name!r}")
                scanner.skip()
            elif known.name in values:
                scanner.fail(f"member {name!r} is repeated")
            else:
                values[known.name] = _value(scanner, known)

        scanner.members(member)
        for name, known in self.by_name.items():
            if known.name not in values:
                values[known.name] = _absent(scanner, known, name)
        return values

    def _positional(self, scanner: Scanner) -> dict[str, Any]:
        values: dict[str, Any] = {}

        def element(index: int) -> None:
            if index >= len(self.fields):
                scanner.fail("too many elements")
            values[self.fields[index].name] = _value(scanner, self.fields[index])

        count = scanner.elements(element)
        for known in self.fields[count:]:
            if not known.trailing:
                scanner.fail(f"element for {known.name!r} is missing")
            values[known.name] = _absent(scanner, known, known.name)
        return values


def _field(info: inspect.Field) -> _Field:
    kinds = info.type.types if isinstance(info.type, inspect.UnionType) else ()
    has_none = any(isinstance(kind, inspect.NoneType) for kind in kinds)
    free_optional = isinstance(info.type, inspect.Metadata) and (info.type.extra or {}).get("optional", False)
    default = info.default_factory() if callable(info.default_factory) else info.default
    if default is NODEFAULT and not info.required:
        default = UNSET  # `inspect` reports a default of UNSET as none at all
    free_unset = isinstance(info.type, inspect.AnyType) and default is UNSET
    optional = default is NODEFAULT and (has_none or free_optional)
    return _Field(
        name=info.name,
        read=_of(info.type),
        nullable=has_none or free_optional or free_unset,
        null=UNSET if default is UNSET else None,
        default=None if optional else default,
        trailing=default is not NODEFAULT,
    )


def _value(scanner: Scanner, known: _Field) -> Any:
    return known.null if known.nullable and scanner.null() else known.read(scanner)


def _absent(scanner: Scanner, known: _Field, name: str) -> Any:
    return scanner.fail(f"member {name!r} is missing") if known.default is NODEFAULT else known.default


def _tool_choice(scanner: Scanner) -> ToolChoice:
    """Section 5.4: the internally tagged type; other members are read in full, known ones once."""
    start = scanner.position
    found: dict[str, Any] = {}

    def member(name: str) -> None:
        if name in ("type", "name") and name in found:
            scanner.fail(f"member {name!r} is repeated")
        found[name] = scanner.free()

    def element(index: int) -> None:
        found[("type", "name")[index] if index < 2 else scanner.fail("too many elements")] = scanner.free()

    if scanner.peek() == b"[":
        count = scanner.elements(element)
        if count != (2 if found.get("type") == "tool" else 1):
            scanner.fail("wrong number of elements", start)
    else:
        scanner.members(member)
    kind, name = found.get("type"), found.get("name")
    if kind == "tool" and isinstance(name, str):
        return ToolChoice(type=kind, name=name)
    if kind in ("auto", "any"):
        return ToolChoice(type=kind)
    return scanner.fail("not a tool choice", start)
