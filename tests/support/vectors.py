"""The published test vectors of `fixtures/vectors/`, in one shape for all."""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.evidence import FIXTURES

VECTORS = FIXTURES / "vectors"
JSON_SUITE = VECTORS / "jsontestsuite"

JSON_LEFT_OPEN_BUT_READ = frozenset(
    f"i_number_{name}.json"
    for name in (
        "double_huge_neg_exp",
        "real_underflow",
        "too_big_neg_int",
        "too_big_pos_int",
        "very_big_negative_int",
    )
)
"""Of the files the JSON suite leaves to the reader, those that the runtime reads."""


class SignatureVector(NamedTuple):
    """One question to a verifier and the runtime's answer."""

    name: str
    public_key: bytes
    message: bytes
    signature: bytes
    accepted: bool


def _hex(name: str, public_key: str, message: bytes, signature: str, *, accepted: bool) -> SignatureVector:
    return SignatureVector(name, bytes.fromhex(public_key), message, bytes.fromhex(signature), accepted)


@cache
def wycheproof() -> tuple[SignatureVector, ...]:
    """151 vectors with the verdict they come with."""
    document = json.loads((VECTORS / "wycheproof/ed25519_test.json").read_text("utf-8"))
    return tuple(
        _hex(
            f"tcId {test['tcId']}",
            group["publicKey"]["pk"],
            bytes.fromhex(test["msg"]),
            test["sig"],
            accepted=test["result"] == "valid",
        )
        for group in document["testGroups"]
        for test in group["tests"]
    )


@cache
def speccheck() -> tuple[SignatureVector, ...]:
    """12 vectors, of which the runtime accepts only number 3."""
    document = json.loads((VECTORS / "ed25519-speccheck/cases.json").read_text("utf-8"))
    return tuple(
        _hex(
            f"case {number}",
            case["pub_key"],
            bytes.fromhex(case["message"]),
            case["signature"],
            accepted=number == 3,
        )
        for number, case in enumerate(document)
    )


@cache
def cctv() -> tuple[SignatureVector, ...]:
    """914 edge cases, of which the runtime accepts those that `expected.json` lists."""
    folder = VECTORS / "cctv-ed25519"
    document = json.loads((folder / "ed25519vectors.json").read_text("utf-8"))
    accepted = set(json.loads((folder / "expected.json").read_text("utf-8"))["accepted_by_strict_rule"])
    return tuple(
        _hex(
            f"number {case['number']}",
            case["key"],
            case["msg"].encode(),
            case["sig"],
            accepted=case["number"] in accepted,
        )
        for case in document
    )


_HONEST_KEY = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
_HONEST_R = "cf5f3049c01f02b9e090f7145fa4099e8c93cfc26e22cad71ebb322190c14dc1"


def self_test() -> tuple[SignatureVector, ...]:
    """The six vectors V1 to V6 of journal.md section 7, made with the test seed 00 01 … 1f."""
    rows = (
        (
            "V1 honest",
            _HONEST_KEY,
            "8ca73cc620d20f20737b1c37ce38efceaf21d15f7ab627fddbb5fbd2f96fd568"
            "ee2364e07f7f7c273630a49bd576d18be7b1d74be0293a803c62274db30e340c",
            True,
        ),
        (
            "V2 R off by a point of order 8",
            _HONEST_KEY,
            "271f79b79294466785a5fce97fe77fdb55a33aee608ae450c941eaeb3689bbdd"
            "1784e031566baba472fef9953fbd2118a23c1091cfbbd7bb19d6a062fe11380b",
            False,
        ),
        (
            "V3 S plus the group order",
            _HONEST_KEY,
            _HONEST_R + "9f3b22e60da24740332eb5b9ebab04b715bf8d0127f728c4adf01ce07973cf1d",
            False,
        ),
        (
            "V4 small-order key",
            "01" + "00" * 31,
            _HONEST_R + "cb444271764eb6429d0200000000000000000000000000000000000000000000",
            False,
        ),
        (
            "V5 small-order R",
            _HONEST_KEY,
            "01" + "00" * 31 + "01032a203c49c2b850b9f255c3ae6c7d079d146af442257c79582597630d3702",
            False,
        ),
        (
            "V6 mixed-order key",
            "b502ff3d92e31d8190b4aa4ea0414005167fad089c4de9dac8a2fc850fed4f58",
            "69914e8b6b1820958369418ede85178de525b1b305c4ddb93c47b40f55efed1f"
            "6983d8af4f8c910de2115529261c5161927ccd9ed6c2e42de826ba35eec95b08",
            True,
        ),
    )
    return tuple(_hex(name, key, b'{"x":1}', signature, accepted=good) for name, key, signature, good in rows)


def json_parsing() -> tuple[Path, ...]:
    """The 318 files of the JSON suite that ask: read or refuse."""
    return tuple(sorted((JSON_SUITE / "test_parsing").iterdir()))


def json_is_read(path: Path) -> bool:
    """Whether the runtime reads this file of the JSON suite."""
    return path.name.startswith("y_") or path.name in JSON_LEFT_OPEN_BUT_READ
