"""The runtime's own way to write JSON (journal.md section 14.3, invocation.md section 2.1).

* compact: no space, members in the order given;
* canonical: compact, members of every object sorted by name;
* pretty: what commands print, two spaces of indentation and a final line feed.

Floats follow the runtime (`1e+16`, `0.00001`), which differs from both Python and msgspec.
"""

import hashlib
import re
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="sorted")
_EXPONENT = re.compile(r"([^e]+)e([+-]?)0*([0-9]+)")


def number(value: float) -> str:
    """A binary64 number as the runtime prints it: shortest digits, positional from 1e-5 to below 1e16."""
    text = repr(value)
    match = _EXPONENT.fullmatch(text)
    if match is None:
        return text
    mantissa, sign, exponent = match.groups()
    if sign == "-" and int(exponent) == 5:
        negative = "-" if mantissa.startswith("-") else ""
        return f"{negative}0.0000{mantissa.lstrip('-').replace('.', '')}"
    return f"{mantissa}e{'-' if sign == '-' else '+'}{exponent}"


def compact(value: Any) -> bytes:
    r"""`value` as compact JSON; Structs in field order, free values in their own order.

    Names of files that are not UTF-8 show their odd bytes as `\xNN`; the rest of a name is the same in any locale.
    """
    try:
        return _ENCODER.encode(_floats_as_text(value))
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, enc_hook=msgspec.json.decode)  # of a Raw, which is JSON
        return _ENCODER.encode(_floats_as_text(_encodable(plain)))


def canonical(value: Any) -> bytes:
    """`value` as compact JSON with all members sorted; the text that digests are made over."""
    return _SORTED.encode(_floats_as_text(value))


def pretty(value: Any) -> bytes:
    """`value` as the runtime's commands print it, final line feed included."""
    return msgspec.json.format(compact(value), indent=2) + b"\n"


def digest(value: Any) -> str:
    """`sha256:` and the hash of the canonical form (invocation.md section 2.2)."""
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"


def _floats_as_text(value: Any) -> Any:
    """Replace floats in free values by raw JSON text, so that the encoder need not know the runtime's rule.

    Structs are left alone: the few that hold free values keep them as `msgspec.Raw`, made by `free`.
    """
    if isinstance(value, dict):
        return {name: _floats_as_text(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_floats_as_text(item) for item in value]
    if isinstance(value, float):
        return msgspec.Raw(number(value).encode())
    return value


def _encodable(value: Any) -> Any:
    """The same value, with text that came from undecodable names made text that can be encoded."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {_encodable(name): _encodable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


def free(value: Any) -> msgspec.Raw:
    """A free value as raw compact JSON, to be put into a Struct that will be printed."""
    return msgspec.Raw(compact(value))
