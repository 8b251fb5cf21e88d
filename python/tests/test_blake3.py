"""The class `blake3`: the vectors, the package `blake3`, and hashlib's protocol."""

from __future__ import annotations

import array
import hashlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import blake3 as official
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import error_of, pattern, vectors

import bulla_hash

LENGTHS = [0, 1, 63, 64, 65, 127, 128, 255, 256, 257, 1023, 1024, 1025, 4096, 8191, 8192, 16384, 16385, 65537, 262144, 1_000_001]


def test_the_vectors_of_every_mode() -> None:
    file = vectors("blake3")
    modes: dict[str, dict[str, Any]] = {
        "hash": {},
        "keyed_hash": {"key": file["key"].encode()},
        "derive_key": {"derive_key_context": file["context_string"]},
    }
    assert len(file["cases"]) > 30
    for case in file["cases"]:
        data = pattern(case["input_len"])
        for mode, named in modes.items():
            expected = case[mode]
            hasher = bulla_hash.blake3(data, **named)
            assert hasher.hexdigest(len(expected) // 2) == expected
            assert hasher.digest() == bytes.fromhex(expected)[:32]
            halves = bulla_hash.blake3(**named)
            assert halves.update(data[: len(data) // 2]).update(data[len(data) // 2 :]) is halves
            assert halves.hexdigest() == expected[:64]


def test_every_length_of_the_vectors() -> None:
    file = vectors("blake3-lengths")
    data = pattern(file["runs"][8]["to"])
    for run in file["runs"][:8]:
        every = (bulla_hash.blake3(data[:length]).digest() for length in range(run["from"], run["to"] + 1))
        assert bulla_hash.blake3(b"".join(every)).hexdigest() == run["hash"]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", [bytes, bytearray, lambda data: memoryview(bytearray(data))])
def test_every_kind_of_object_has_the_official_digest(length: int, kind: Callable[[bytes], Any]) -> None:
    data = pattern(length)
    expected = official.blake3(data)
    for threads in (1, 2, bulla_hash.blake3.AUTO):
        hasher = bulla_hash.blake3(kind(data), max_threads=threads)
        assert hasher.digest() == expected.digest()
        assert hasher.hexdigest() == expected.hexdigest()
        assert hasher.digest(200, seek=17) == expected.digest(200, seek=17)
        later = bulla_hash.blake3(b"first", max_threads=threads).update(kind(data))
        assert later.digest() == official.blake3(b"first" + data).digest()


@given(
    pieces=st.lists(st.integers(0, 3000)),
    first=st.none() | st.integers(0, 20000),
    key=st.none() | st.binary(min_size=32, max_size=32),
    length=st.integers(0, 300),
    seek=st.integers(0, 2**64 - 1),
)
def test_pieces_copies_and_output_are_the_official_ones(
    pieces: list[int], first: int | None, key: bytes | None, length: int, seek: int
) -> None:
    start = () if first is None else (pattern(first),)
    named: dict[str, Any] = {} if key is None else {"key": key}
    ours, theirs = bulla_hash.blake3(*start, key=key), official.blake3(*start, **named)
    for piece in pieces:
        copy, before = ours.copy(), theirs.digest()
        ours.update(pattern(piece))
        theirs.update(pattern(piece))
        assert copy.digest() == before
    assert ours.digest() == theirs.digest()
    seek = min(seek, 2**64 - 1 - length)
    assert ours.digest(length, seek=seek) == theirs.digest(length, seek=seek)
    assert ours.hexdigest(length, seek=seek) == theirs.hexdigest(length, seek=seek)
    ours.reset()
    theirs.reset()
    assert ours.digest() == theirs.digest()


@given(context=st.text(), material=st.binary())
def test_a_derived_key_is_the_official_one(context: str, material: bytes) -> None:
    expected = official.blake3(material, derive_key_context=context).digest()
    assert bulla_hash.blake3(material, derive_key_context=context).digest() == expected
    assert bulla_hash.blake3(derive_key_context=context).update(material).digest() == expected


def test_a_digest_changes_nothing() -> None:
    for length in LENGTHS:
        hasher = bulla_hash.blake3(pattern(length))
        assert [hasher.digest() for _ in range(3)] == [official.blake3(pattern(length)).digest()] * 3
        hasher.update(b"more")
        assert hasher.digest() == official.blake3(pattern(length) + b"more").digest()


def test_constants_are_of_the_class_and_of_its_objects() -> None:
    for owner in (bulla_hash.blake3, bulla_hash.blake3()):
        assert (owner.name, owner.digest_size, owner.block_size, owner.key_size, owner.AUTO) == ("blake3", 32, 64, 32, -1)
    assert (bulla_hash.blake3.__name__, bulla_hash.blake3.__module__) == ("blake3", "bulla_hash")
    assert bulla_hash.__version__.count(".") == 2


def test_hashlib_digests_files_with_it(tmp_path: Path) -> None:
    path, data = tmp_path / "file", pattern(1_000_000)
    path.write_bytes(data)
    make: Any = bulla_hash.blake3
    with path.open("rb") as file:
        # Its annotation wants an update that returns nothing. Ours returns the hasher, as the
        # official one does.
        assert hashlib.file_digest(file, make).digest() == official.blake3(data).digest()
    assert hashlib.file_digest(io.BytesIO(data), make).digest() == official.blake3(data).digest()


@pytest.mark.parametrize("length", [0, 1, 16383, 16384, 300_000, 2_000_000])
@pytest.mark.parametrize("threads", [1, 2, -1])
def test_files_are_mapped(tmp_path: Path, length: int, threads: int) -> None:
    path, data = tmp_path / "file", pattern(length)
    path.write_bytes(data)
    hasher = bulla_hash.blake3(b"before", max_threads=threads)
    assert hasher.update_mmap(path) is hasher
    hasher.update_mmap(path=str(path)).update(b"after")
    assert hasher.digest() == official.blake3(b"before" + data + data + b"after").digest()


def test_a_file_that_cannot_be_read_leaves_the_hasher_as_it_was(tmp_path: Path) -> None:
    hasher = bulla_hash.blake3(b"before")
    for path in (tmp_path / "none", tmp_path, Path("a\0b")):
        error = error_of(hasher.update_mmap, path)
        assert error is not None and error is error_of(official.blake3().update_mmap, path)
    assert hasher.digest() == official.blake3(b"before").digest()


STRIDED = memoryview(bytes(8))[::2]
HOSTILE: list[Any] = [
    None,
    "text",
    1,
    1.5,
    [1, 2],
    object(),
    array.array("i", [1]),
    array.array("d", [1]),
    array.array("b", [-1]),
    array.array("B", [255]),
    STRIDED,
    numpy.zeros(4, numpy.uint16),
    numpy.zeros((4, 4), numpy.uint8)[:, 1],
    numpy.zeros((4, 4), numpy.uint8),
    memoryview(b"1234").cast("?"),
    memoryview(b"1234").cast("c"),
    memoryview(bytearray()),
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: type(hostile).__name__)
def test_objects_are_refused_as_the_official_package_refuses_them(hostile: Any) -> None:
    calls: list[Callable[[Any], bytes]] = [
        lambda module: module.blake3(hostile).digest(),
        lambda module: module.blake3().update(hostile).digest(),
        lambda module: module.blake3(key=hostile).digest(),
    ]
    for call in calls:
        expected = error_of(call, official)
        assert error_of(call, bulla_hash) is expected
        if expected is None:
            assert call(bulla_hash) == call(official)


ARGUMENTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((b"", b""), {}),
    ((), {"data": b""}),
    ((), {"nothing": 1}),
    ((), {"key": b"short"}),
    ((), {"key": bytes(33)}),
    ((), {"key": bytes(32), "derive_key_context": ""}),
    ((), {"derive_key_context": b"bytes"}),
    ((), {"derive_key_context": "\ud800"}),
    ((), {"max_threads": 0}),
    ((), {"max_threads": -2}),
    ((), {"max_threads": 2**63}),
    ((), {"max_threads": "2"}),
    ((), {"max_threads": 1.0}),
    ((), {"usedforsecurity": 1}),
]


@pytest.mark.parametrize(("args", "named"), ARGUMENTS)
def test_arguments_are_refused_as_the_official_package_refuses_them(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    expected = error_of(official.blake3, *args, **named)
    assert expected is not None
    assert error_of(bulla_hash.blake3, *args, **named) is expected


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((-1,), {}),
        ((2**64,), {}),
        ((sys.maxsize + 1,), {}),
        ((sys.maxsize,), {}),
        ((2**62,), {}),
        ((32, 0), {}),
        ((), {"seek": -1}),
        ((), {"seek": 2**64}),
        ((), {"length": "32"}),
        ((), {"length": 1.0}),
    ],
)
@pytest.mark.parametrize("method", ["digest", "hexdigest"])
def test_lengths_are_refused_as_the_official_package_refuses_them(
    method: str, args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    expected = error_of(getattr(official.blake3(b"x"), method), *args, **named)
    assert expected is not None
    assert error_of(getattr(bulla_hash.blake3(b"x"), method), *args, **named) is expected


def test_more_threads_than_there_can_be_are_no_error() -> None:
    data = pattern(1_000_000)
    assert bulla_hash.blake3(data, max_threads=sys.maxsize).digest() == official.blake3(data).digest()


def test_buffers_are_released() -> None:
    data, key = bytearray(pattern(300_000)), bytearray(32)
    hasher = bulla_hash.blake3(data, key=key)
    hasher.update(data)
    bulla_hash.hash_many([data], key=key)
    error_of(bulla_hash.blake3, data, key=data)
    data.append(0)
    key.append(0)


def test_an_object_that_is_kept_is_not_the_callers_array() -> None:
    data = bytearray(b"before")
    hasher = bulla_hash.blake3(data)
    data[:] = b"after!"
    assert hasher.digest() == official.blake3(b"before").digest()


def test_what_a_hasher_keeps_is_freed() -> None:
    data = bytes(bytearray(10_000))
    before = sys.getrefcount(data)
    hashers = [bulla_hash.blake3(data) for _ in range(10)] + [bulla_hash.blake3(data).copy() for _ in range(10)]
    hashers[0].update(b"more")
    hashers[1].reset()
    hashers[2].digest(100)
    del hashers
    bulla_hash.hash_many([data] * 10)
    assert sys.getrefcount(data) == before


@pytest.mark.parametrize("first", [0, 1, 64, 257, 16384, 16385])
def test_more_input_after_a_digest_of_the_first_piece(first: int) -> None:
    data = pattern(first + 300)
    modes: list[dict[str, Any]] = [{}, {"key": bytes(32)}, {"derive_key_context": "context"}]
    for named in modes:
        hasher = bulla_hash.blake3(data[:first], **named)
        before = hasher.digest()
        assert before == bulla_hash.blake3(bytearray(data[:first]), **named).digest() == bytes.fromhex(hasher.hexdigest())
        copy = hasher.copy()
        assert hasher.update(data[first:]).digest() == bulla_hash.blake3(bytearray(data), **named).digest()
        assert copy.digest() == before and copy.update(data[first:]).digest() == hasher.digest()
        hasher.reset()
        assert hasher.digest() == bulla_hash.blake3(**named).digest()
