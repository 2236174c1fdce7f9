"""Ed25519 verification by the runtime's strict rule (journal.md section 7): verify only, never sign.

libsodium decides. It refuses what the runtime refuses, provided that the build checks the equation without
cofactor, which `self_test` proves with six vectors before the first signature is believed. Two things it does
not tell apart are worked out here: whether a key is a curve point at all, and which rule a signature broke.
"""

from collections.abc import Iterable
from functools import cache, lru_cache

from nacl.bindings import crypto_sign_open
from nacl.exceptions import BadSignatureError

from symbi_recover.core.errors import RecoverError

_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
_L = 2**252 + 27742317777372353535851937790883648493


_ORDER_8_Y = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
_SMALL_ORDER_Y = frozenset({0, 1, _P - 1, _P, _P + 1, _ORDER_8_Y, _P - _ORDER_8_Y})

_VECTORS = (
    (
        "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
        "8ca73cc620d20f20737b1c37ce38efceaf21d15f7ab627fddbb5fbd2f96fd568"
        "ee2364e07f7f7c273630a49bd576d18be7b1d74be0293a803c62274db30e340c",
        True,
    ),
    (
        "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
        "271f79b79294466785a5fce97fe77fdb55a33aee608ae450c941eaeb3689bbdd"
        "1784e031566baba472fef9953fbd2118a23c1091cfbbd7bb19d6a062fe11380b",
        False,
    ),
    (
        "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
        "cf5f3049c01f02b9e090f7145fa4099e8c93cfc26e22cad71ebb322190c14dc1"
        "9f3b22e60da24740332eb5b9ebab04b715bf8d0127f728c4adf01ce07973cf1d",
        False,
    ),
    (
        "01" + "00" * 31,
        "cf5f3049c01f02b9e090f7145fa4099e8c93cfc26e22cad71ebb322190c14dc1"
        "cb444271764eb6429d0200000000000000000000000000000000000000000000",
        False,
    ),
    (
        "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
        "0100000000000000000000000000000000000000000000000000000000000000"
        "01032a203c49c2b850b9f255c3ae6c7d079d146af442257c79582597630d3702",
        False,
    ),
    (
        "b502ff3d92e31d8190b4aa4ea0414005167fad089c4de9dac8a2fc850fed4f58",
        "69914e8b6b1820958369418ede85178de525b1b305c4ddb93c47b40f55efed1f"
        "6983d8af4f8c910de2115529261c5161927ccd9ed6c2e42de826ba35eec95b08",
        True,
    ),
)
_MESSAGE = b'{"x":1}'


@lru_cache(maxsize=64)
def is_point(public_key: bytes) -> bool:
    """Whether 32 bytes decode to a curve point as the runtime decodes them; small order is not looked at."""
    y = int.from_bytes(public_key, "little") & (2**255 - 1)
    y2 = y * y % _P
    x2 = (y2 - 1) * pow(_D * y2 + 1, -1, _P) % _P
    return x2 == 0 or pow(x2, (_P - 1) // 2, _P) == 1


def is_weak(public_key: bytes) -> bool:
    """Whether a key has small order, in any of its 14 encodings; every signature under it is refused."""
    return int.from_bytes(public_key, "little") & (2**255 - 1) in _SMALL_ORDER_Y


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` (64 bytes) over `message` holds under `public_key` (32 bytes) by the strict rule."""
    if len(signature) != 64 or len(public_key) != 32:
        return False
    self_test()
    return _holds(public_key, message, signature)


def all_hold(public_key: bytes, signed: Iterable[tuple[bytes, bytes, bool]]) -> bool:
    """Whether `verify` holds for all of (message, signature of 64 bytes, anything); one tight loop."""
    self_test()
    try:
        for message, signature, _ in signed:
            crypto_sign_open(signature + message, public_key)
    except BadSignatureError:
        return False
    return True


def reason(signature: bytes) -> str:
    """The code of a signature that `verify` refused; `core/refusals.py` has the runtime's words for it."""
    if len(signature) != 64:
        return "signature_length"
    scalar = int.from_bytes(signature[32:], "little")
    return "signature_scalar" if scalar >= _L else "signature_invalid"


@cache
def self_test() -> None:
    """Prove once that libsodium follows the strict rule.

    Raises:
        RecoverError: `signature_library_unsuitable`, where it does not.
    """
    for key, signature, expected in _VECTORS:
        if _holds(bytes.fromhex(key), _MESSAGE, bytes.fromhex(signature)) is not expected:
            raise RecoverError(
                "signature_library_unsuitable",
                "the installed libsodium does not follow the strict Ed25519 rule, so no signature can be judged",
            )


def _holds(public_key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        crypto_sign_open(signature + message, public_key)
    except BadSignatureError:
        return False
    return True
