"""Verification of Ed25519: the vectors, which have every kind of signature on which verifiers disagree."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support import error_of, vectors

from bulla_hash.ed25519 import Verdict, verify, verify_many

Item = tuple[bytes, bytes, bytes]


def item(case: dict[str, Any]) -> Item:
    return bytes.fromhex(case["public_key"]), bytes.fromhex(case["message"]), bytes.fromhex(case["signature"])


def valid() -> list[Item]:
    return [item(case) for case in vectors("ed25519")["rfc8032"]]


def test_the_vectors_of_the_rfc_and_changes_of_them() -> None:
    assert len(valid()) >= 4
    for key, message, signature in valid():
        assert verify(key, message, signature) is Verdict.VALID
        assert verify(bytearray(key), memoryview(message), bytearray(signature)) is Verdict.VALID
        for bit in range(0, 256, 7):
            changed = bytearray(signature)
            changed[bit // 8] ^= 1 << bit % 8
            assert not verify(key, message, changed)
        assert verify(key, message + b"x", signature) is Verdict.MISMATCH


def test_the_disputed_signatures_alone_and_among_others() -> None:
    cases = vectors("ed25519")["predicates"]
    assert len(cases) > 20
    items = [item(case) for case in cases]
    alone = [verify(*three) for three in items]
    assert [bool(verdict) for verdict in alone] == [case["strict"] for case in cases]
    for _ in range(3):
        order = random.sample(range(len(items)), len(items))
        assert verify_many([items[i] for i in order]) == [alone[i] for i in order]


def test_only_valid_is_true() -> None:
    assert [verdict for verdict in Verdict if verdict] == [Verdict.VALID]


def test_a_wrong_length_is_a_verdict_and_changes_no_other() -> None:
    key, message, signature = valid()[0]
    items = [
        (key, message, signature),
        (key[:31], message, signature),
        (key, message, signature + b"\0"),
        (b"", b"", b""),
        (key, message, signature),
    ]
    wrong = [Verdict.WRONG_LENGTH] * 3
    assert verify_many(items) == [Verdict.VALID, *wrong, Verdict.VALID]
    assert verify_many(iter(items)) == [Verdict.VALID, *wrong, Verdict.VALID]
    assert verify_many([]) == []


@pytest.mark.parametrize("hostile", [None, 1, [1], [(b"", b"")], [b"three"], [(b"", "text", b"")], [(b"", b"", memoryview(bytes(8))[::2])]])
def test_anything_else_is_refused(hostile: Any) -> None:
    assert error_of(verify_many, hostile) in (TypeError, ValueError, BufferError)
