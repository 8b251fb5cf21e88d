"""The classes of BLAKE2: the vectors, and hashlib."""

from __future__ import annotations

import array
import ctypes
import hashlib
import mmap
import pickle
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import error_of, pattern, vectors

import bulla_hash

CLASSES = {name: getattr(bulla_hash, name) for name in ("blake2b", "blake2s", "blake2bp", "blake2sp")}
SEQUENTIAL = ("blake2b", "blake2s")


@pytest.mark.parametrize("name", CLASSES)
def test_the_vectors(name: str) -> None:
    file = vectors("blake2")[name]
    make = CLASSES[name]
    key = bytes(range(make.MAX_KEY_SIZE))
    for mode, named in (("hash", {}), ("keyed_hash", {"key": key})):
        assert len(file[mode]) == 256
        for length, expected in enumerate(file[mode]):
            data = bytes(range(length))
            assert make(data, **named).hexdigest() == expected
            assert make(data, **named).digest() == bytes.fromhex(expected)
            pieces = make(**named)
            for at in range(0, length, 50):
                assert pieces.update(bytearray(data[at : at + 50])) is None
            assert pieces.hexdigest() == expected


@given(
    name=st.sampled_from(SEQUENTIAL),
    pieces=st.lists(st.integers(0, 1000), max_size=8),
    size=st.integers(-1, 66),
    key=st.binary(max_size=66),
    salt=st.binary(max_size=18),
    person=st.binary(max_size=18),
    last=st.booleans(),
)
def test_parameters_are_those_of_hashlib(
    name: str, pieces: list[int], size: int, key: bytes, salt: bytes, person: bytes, last: bool
) -> None:
    named: dict[str, Any] = {"digest_size": size, "key": key, "salt": salt, "person": person, "last_node": last}
    expected = error_of(getattr(hashlib, name), **named)
    assert error_of(CLASSES[name], **named) is expected
    if expected is not None:
        return
    ours, theirs = CLASSES[name](**named), getattr(hashlib, name)(**named)
    for piece in pieces:
        copy, before = ours.copy(), theirs.digest()
        ours.update(pattern(piece))
        theirs.update(pattern(piece))
        assert copy.digest() == before
    assert (ours.digest(), ours.hexdigest()) == (theirs.digest(), theirs.hexdigest())
    assert (ours.digest_size, ours.block_size, ours.name) == (theirs.digest_size, theirs.block_size, theirs.name)


NUMBERS = [-(2**70), -1, 0, 1, 2, 32, 33, 64, 65, 255, 256, 2**32 - 1, 2**32, 2**48 - 1, 2**48, 2**64 - 1, 2**64, 2**70, "1", 1.5, None]


@pytest.mark.parametrize("name", SEQUENTIAL)
@pytest.mark.parametrize("parameter", ["digest_size", "fanout", "depth", "leaf_size", "node_offset", "node_depth", "inner_size"])
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_those_of_hashlib(name: str, parameter: str, number: Any) -> None:
    if number is None and parameter in ("digest_size", "leaf_size", "node_offset"):
        assert CLASSES[name](**{parameter: None}).digest() == CLASSES[name]().digest()
        return
    make = getattr(hashlib, name)
    expected = error_of(make, b"x", **{parameter: number})
    assert error_of(CLASSES[name], b"x", **{parameter: number}) is expected
    if expected is None:
        assert CLASSES[name](b"x", **{parameter: number}).digest() == make(b"x", **{parameter: number}).digest()


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("first", [0, 1, 64, 129, 16384, 16385])
def test_more_input_after_a_digest_of_the_first_piece(name: str, first: int) -> None:
    data, make = pattern(first + 300), CLASSES[name]
    hasher = make(data[:first])
    before = hasher.digest()
    assert before == make(bytearray(data[:first])).digest() == bytes.fromhex(hasher.hexdigest())
    copy = hasher.copy()
    for start, end in ((first, first + 100), (first + 100, first + 300)):
        hasher.update(data[start:end])
        assert hasher.digest() == make(bytearray(data[:end])).digest()
    assert copy.digest() == before
    copy.update(data[first:])
    assert copy.digest() == hasher.digest()
    once = make()
    once.update(data)
    assert once.digest() == hasher.digest() == once.copy().digest()


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_constants_are_those_of_hashlib(name: str) -> None:
    for constant in ("SALT_SIZE", "PERSON_SIZE", "MAX_KEY_SIZE", "MAX_DIGEST_SIZE"):
        assert getattr(CLASSES[name], constant) == getattr(getattr(hashlib, name), constant)


@pytest.mark.parametrize("name", CLASSES)
def test_hostile_arguments_are_refused(name: str) -> None:
    make = CLASSES[name]
    for args, named, error in (
        (("text",), {}, TypeError),
        ((1,), {}, TypeError),
        ((memoryview(bytes(8))[::2],), {}, BufferError),
        ((b"", b""), {}, TypeError),
        ((), {"digest_size": 0}, ValueError),
        ((), {"digest_size": make.MAX_DIGEST_SIZE + 1}, ValueError),
        ((), {"digest_size": 2**40}, OverflowError),
        ((), {"key": bytes(make.MAX_KEY_SIZE + 1)}, ValueError),
        ((), {"key": "text"}, TypeError),
        ((), {"salt": bytes(17)}, ValueError if name in SEQUENTIAL else TypeError),
        ((), {"person": bytes(17)}, ValueError if name in SEQUENTIAL else TypeError),
    ):
        assert error_of(make, *args, **named) is error, (args, named)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 1025, 8192, 100_000])
def test_long_inputs_in_one_and_in_many_pieces(name: str, length: int) -> None:
    data, make = pattern(length), CLASSES[name]
    whole, pieces = make(data), make()
    for at in range(0, length, 777):
        pieces.update(memoryview(data)[at : at + 777])
    assert pieces.digest() == whole.digest()
    if name in SEQUENTIAL:
        assert whole.digest() == getattr(hashlib, name)(data).digest()


class Pair(ctypes.Structure):
    _fields_ = (("first", ctypes.c_uint16), ("second", ctypes.c_uint32))


class Bytes(bytes):
    pass


def objects() -> dict[str, Any]:
    """Objects with and without a buffer, of every kind of shape and of elements."""
    table = numpy.arange(12, dtype=numpy.uint8).reshape(3, 4)
    mapped = mmap.mmap(-1, 100)
    mapped.write(pattern(100))
    made = {
        "ctypes array": (ctypes.c_ubyte * 10)(*range(10)),
        "ctypes array of numbers": (ctypes.c_int * 3)(1, 2, 3),
        "ctypes array of nothing": (ctypes.c_ubyte * 0)(),
        "ctypes number": ctypes.c_double(1.5),
        "ctypes structure": Pair(1, 2),
        "ctypes string": ctypes.create_string_buffer(b"text"),
        "array of numbers": array.array("d", [1.5, 2.5]),
        "array of nothing": array.array("i"),
        "subclass": Bytes(b"text"),
        "map": mapped,
        "pickle": pickle.PickleBuffer(b"text"),
        "view of numbers": memoryview(bytes(16)).cast("i"),
        "view of a scalar": memoryview(bytes(1)).cast("B", []),
        "view with gaps": memoryview(bytes(16))[::2],
        "view backwards": memoryview(bytes(16))[::-1],
        "released view": memoryview(b"text"),
        "column": table[:, 1],
        "row": table[1],
        "array of structures": numpy.zeros(3, dtype=[("a", "u1"), ("b", "<f4")]),
        "array without dimensions": numpy.array(7, dtype=numpy.int16),
        "array of objects": numpy.array([None, 1]),
        "array of times": numpy.array(["2026-01-31"], dtype="datetime64[D]"),
        "none": None,
        "number": 5,
        "list": [1, 2],
        "text": "text",
    }
    made["released view"].release()
    for scalar in (numpy.uint8(5), numpy.float64(1.5), numpy.bool_(True), numpy.complex64(1j), numpy.bytes_(b"text"), numpy.str_("text")):
        made[f"numpy {type(scalar).__name__}"] = scalar
    return made


@pytest.mark.parametrize("name", SEQUENTIAL)
@pytest.mark.parametrize("kind", objects())
def test_objects_are_those_of_hashlib(name: str, kind: str) -> None:
    thing, ours, theirs = objects()[kind], CLASSES[name], getattr(hashlib, name)
    error = error_of(theirs().update, thing)
    assert error_of(ours().update, thing) is error
    if error is None:
        hasher, other = ours(thing), theirs(thing)
        hasher.update(thing)
        other.update(thing)
        assert hasher.digest() == other.digest()
        parallel = CLASSES[f"{name}p"]
        memory = thing if hasattr(thing, "tobytes") else memoryview(thing)
        assert parallel(thing).digest() == parallel(memory.tobytes()).digest()
    # There, hashlib takes a text of numpy.
    for parameter in () if isinstance(thing, str) else ("key", "salt", "person"):
        error = error_of(theirs, **{parameter: thing})
        if thing is not None:
            assert error_of(ours, **{parameter: thing}) is error, parameter
        if error is None:
            assert ours(b"x", **{parameter: thing}).digest() == theirs(b"x", **{parameter: thing}).digest(), parameter


@pytest.mark.parametrize("name", SEQUENTIAL)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_table_which_hashlib_refuses_is_hashed_if_it_is_in_order(name: str, order: Any) -> None:
    table = numpy.array([[1, 2], [3, 4]], dtype=numpy.uint8, order=order)
    if order == "C":
        assert CLASSES[name](table).digest() == getattr(hashlib, name)(table.tobytes()).digest()
    else:
        assert error_of(CLASSES[name], table) is not None


@pytest.mark.parametrize("name", SEQUENTIAL)
@pytest.mark.parametrize("value", [0, 1, 2, -1, 0.0, 1.5, "", "no", [], [0], None, numpy.bool_(True), numpy.zeros(2)])
def test_truths_are_those_of_hashlib(name: str, value: Any) -> None:
    for parameter in ("last_node", "usedforsecurity"):
        error = error_of(getattr(hashlib, name), b"x", **{parameter: value})
        assert error_of(CLASSES[name], b"x", **{parameter: value}) is error
        if error is None:
            expected = getattr(hashlib, name)(b"x", **{parameter: value}).digest()
            assert CLASSES[name](b"x", **{parameter: value}).digest() == expected
