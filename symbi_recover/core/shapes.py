"""Bases for typed evidence: structures, and the runtime's externally tagged variants (journal.md section 5.4).

A field's annotation says how absence is read:

* `T | None` without default: required for the fast decoder, optional (`?`) for the exact one; written as `null`;
* `T | UnsetType | None = UNSET`: optional and left out when none (`?=`);
* any other default: absent means the default (`=`), `null` is refused.
"""

from typing import Any, Self

from msgspec import UNSET, Struct
from msgspec.structs import fields


class Lenient(Struct, frozen=True, gc=False):
    """A structure that ignores unknown members."""


class Strict(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A structure that refuses unknown members."""


class Variant(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """An externally tagged variant with fields: exactly one member is set."""

    def __post_init__(self) -> None:
        if sum(getattr(self, name) is not UNSET for name in self.__struct_fields__) != 1:
            raise ValueError("exactly one variant must be given")

    @property
    def value(self) -> Any:
        """The structure of the variant that is set."""
        return next(v for name in self.__struct_fields__ if (v := getattr(self, name)) is not UNSET)

    @property
    def tag(self) -> str:
        """The runtime's name of the variant that is set."""
        return next(f.encode_name for f in fields(self) if getattr(self, f.name) is not UNSET)

    @classmethod
    def of(cls, tag: str, value: object) -> Self:
        """The variant `tag` holding `value`; KeyError for an unknown tag."""
        names = {f.encode_name: f.name for f in fields(cls)}
        return cls(**{names[tag]: value})
