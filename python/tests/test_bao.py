"""Bao: the vectors, and that a decoder returns nothing that the digest does not cover."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import error_of, pattern, vectors

import bulla_hash
from bulla_hash import bao


def check(encoded: bytes, expected: dict[str, Any]) -> None:
    assert (len(encoded), bulla_hash.blake3(encoded).hexdigest()) == (expected["len"], expected["hash"])


def test_the_vectors() -> None:
    cases = vectors("bao")["cases"]
    assert len(cases) > 5
    for case in cases:
        data = pattern(case["input_len"])
        encoded, digest = bao.encode(data)
        tree, same = bao.outboard(data)
        assert digest == same == bytes.fromhex(case["hash"]) == bulla_hash.blake3(data).digest()
        check(encoded, case["combined"])
        check(tree, case["outboard"])
        for wanted in case["slices"]:
            start, length = int(wanted["start"]), int(wanted["len"])
            part = bao.extract_slice(encoded, start, length)
            check(part, wanted["slice"])
            assert part == bao.extract_slice(data, start, length, outboard=tree)
            expected = data[start : start + length]
            # An empty range counts as one byte for the slice, and as none for its reader.
            assert bao.decode_slice(part, digest, start, length) == expected


@given(length=st.integers(0, 50_000), chunk_log=st.integers(0, 8), start=st.integers(0, 60_000), wanted=st.integers(0, 60_000))
def test_what_is_encoded_is_decoded(length: int, chunk_log: int, start: int, wanted: int) -> None:
    data = pattern(length)
    encoded, digest = bao.encode(bytearray(data), chunk_log=chunk_log)
    tree, same = bao.outboard(data, chunk_log=chunk_log)
    assert digest == same == bulla_hash.blake3(data).digest()
    assert bao.decode(encoded, digest, chunk_log=chunk_log) == data
    assert bao.decode(memoryview(data), digest, outboard=tree, chunk_log=chunk_log) == data
    part = bao.extract_slice(encoded, start, wanted, chunk_log=chunk_log)
    assert bao.decode_slice(part, digest, start, wanted, chunk_log=chunk_log) == data[start : start + wanted]


@given(length=st.integers(1, 5000), place=st.integers(0), bit=st.integers(0, 7))
def test_a_changed_or_cut_encoding_is_refused(length: int, place: int, bit: int) -> None:
    encoded, digest = bao.encode(pattern(length))
    changed = bytearray(encoded)
    changed[place % len(changed)] ^= 1 << bit
    assert error_of(bao.decode, changed, digest) is bao.DecodeError
    assert error_of(bao.decode, encoded[: place % len(encoded)], digest) is bao.DecodeError
    assert error_of(bao.decode, encoded, bytes(32)) is bao.DecodeError


def test_hostile_arguments_are_refused() -> None:
    encoded, digest = bao.encode(pattern(2000))
    assert issubclass(bao.DecodeError, ValueError)
    for call, error in (
        (lambda: bao.encode("text"), TypeError),  # type: ignore[arg-type]
        (lambda: bao.encode(b"", chunk_log=9), ValueError),
        (lambda: bao.encode(b"", chunk_log=-1), OverflowError),
        (lambda: bao.decode(encoded, digest[:31]), ValueError),
        (lambda: bao.decode(encoded, digest, chunk_log=1), bao.DecodeError),
        (lambda: bao.extract_slice(encoded, -1, 1), OverflowError),
        (lambda: bao.extract_slice(encoded[:7], 0, 1), bao.DecodeError),
        (lambda: bao.decode_slice(b"", digest, 0, 1), bao.DecodeError),
    ):
        with pytest.raises(error):
            call()


def test_a_false_length_takes_no_memory() -> None:
    claim = b"\xff" * 8
    assert error_of(bao.decode, claim, bytes(32)) is bao.DecodeError
    assert error_of(bao.extract_slice, claim, 0, 2**64 - 1) is bao.DecodeError
