"""The runtime's reading and printing of numbers, written down once more for tests (journal.md sections 5.3 and 14.3).

It follows the numbered steps of the text digit by digit and shares nothing with the product.
"""

import json
import re
from decimal import Decimal
from typing import Any

_TOKEN = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?)([0-9]+))?")
_LIMIT = 2**64 - 1


def read_number(text: str) -> int | float | None:
    """The value of a JSON number; None where the runtime refuses it."""
    match = _TOKEN.fullmatch(text)
    assert match is not None
    minus, integer, fraction, sign, digits = match.groups()
    significand = exponent = 0
    dropping = False
    for digit in integer:
        dropping = dropping or significand * 10 + int(digit) > _LIMIT
        if dropping:
            exponent += 1
        else:
            significand = significand * 10 + int(digit)
    if fraction is None and digits is None and not dropping:
        if not minus:
            return significand
        return -significand if 0 < significand <= 2**63 else -float(significand)
    for digit in fraction or "":
        if significand * 10 + int(digit) > _LIMIT:
            break
        significand = significand * 10 + int(digit)
        exponent -= 1
    if digits is not None:
        given = Decimal(digits)
        if given > 2**31 - 1:
            if sign != "-" and significand:
                return None
            return -0.0 if minus else 0.0
        exponent += int(given) * (-1 if sign == "-" else 1)
    value = _scale(float(significand), exponent)
    return None if value is None else -value if minus else value


def _scale(value: float, exponent: int) -> float | None:
    while True:
        if abs(exponent) <= 308:
            power = float(Decimal(10) ** abs(exponent))
            value = value * power if exponent >= 0 else value / power
            return None if value == float("inf") else value
        if value == 0.0:
            return value
        if exponent > 0:
            return None
        value, exponent = value / 1e308, exponent + 308


def read_free(text: str | bytes) -> Any:
    """A JSON text as the runtime reads it, for texts whose numbers are all in range."""
    return json.loads(text, parse_float=read_number, parse_int=read_number)


def print_number(value: float) -> str:
    """A binary64 number by the rule of section 14.3, from its shortest digits."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    assert isinstance(exponent, int)
    leading = exponent + len(digits) - 1 if text != "0" else 0
    minus = "-" if sign else ""
    if -5 <= leading <= 15:
        if leading < 0:
            return f"{minus}0.{'0' * (-leading - 1)}{text}"
        whole = text.ljust(leading + 1, "0")
        return f"{minus}{whole[: leading + 1]}.{whole[leading + 1 :] or '0'}"
    mantissa = text[0] + ("." + text[1:] if text[1:] else "")
    return f"{minus}{mantissa}e{'+' if leading > 0 else '-'}{abs(leading)}"
