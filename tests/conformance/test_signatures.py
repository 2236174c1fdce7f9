"""Ed25519 is checked by the runtime's strict rule and no other (journal.md section 7)."""

from collections.abc import Sequence

import pytest

from symbi_recover.wire import ed25519
from tests.support import vectors
from tests.support.vectors import SignatureVector


def wrong(questions: Sequence[SignatureVector]) -> list[str]:
    """The names of the vectors on which our answer differs."""
    return [
        question.name
        for question in questions
        if ed25519.verify(question.public_key, question.message, question.signature) is not question.accepted
    ]


def test_all_151_wycheproof_vectors_are_judged_as_marked() -> None:
    questions = vectors.wycheproof()
    assert len(questions) == 151
    assert sum(question.accepted for question in questions) == 88
    assert wrong(questions) == []


def test_of_the_12_speccheck_cases_only_number_3_is_accepted() -> None:
    questions = vectors.speccheck()
    assert len(questions) == 12
    assert [question.name for question in questions if question.accepted] == ["case 3"]
    assert wrong(questions) == []


def test_all_914_cctv_edge_cases_are_judged_as_the_runtime_judges_them() -> None:
    questions = vectors.cctv()
    assert len(questions) == 914
    assert sum(question.accepted for question in questions) == 43
    assert wrong(questions) == []


@pytest.mark.parametrize("question", vectors.self_test(), ids=lambda question: question.name)
def test_self_test_vectors_are_judged_as_listed(question: SignatureVector) -> None:
    assert wrong([question]) == []


def test_a_flipped_bit_anywhere_in_an_accepted_vector_is_refused() -> None:
    honest = vectors.self_test()[0]
    for position in range(len(honest.signature) * 8):
        changed = bytearray(honest.signature)
        changed[position // 8] ^= 1 << position % 8
        assert not ed25519.verify(honest.public_key, honest.message, bytes(changed)), f"bit {position}"
    assert not ed25519.verify(honest.public_key, honest.message + b" ", honest.signature)


@pytest.mark.parametrize("length", [0, 1, 32, 63, 65, 128])
def test_signatures_of_other_lengths_are_refused_without_an_error(length: int) -> None:
    honest = vectors.self_test()[0]
    signature = (honest.signature * 2)[:length]
    assert ed25519.verify(honest.public_key, honest.message, signature) is False
