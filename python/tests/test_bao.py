"""Bao: the vectors, and that a decoder returns nothing that the digest does not cover."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
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


def encoded_by_file(data: bytes, chunk_log: int = 0, piece: int = 7000) -> tuple[io.BytesIO, io.BytesIO, bytes]:
    """The encoding and the outboard encoding that the encoders write, and the digest."""
    combined, tree = io.BytesIO(), io.BytesIO()
    digests = []
    for encoder in (bao.Encoder(combined, chunk_log=chunk_log), bao.Encoder.outboard(tree, chunk_log=chunk_log)):
        for at in range(0, len(data), piece):
            part = data[at : at + piece]
            assert encoder.write(part) == len(part)
        digests.append(encoder.finalize())
    assert digests[0] == digests[1]
    return combined, tree, digests[0]


@given(length=st.one_of(st.integers(0, 5000), st.integers(0, 1_100_000)), chunk_log=st.integers(0, 8), piece=st.integers(500, 400_000))
def test_files_have_the_same_encodings(length: int, chunk_log: int, piece: int) -> None:
    data = pattern(length)
    combined, tree, digest = encoded_by_file(data, chunk_log, piece)
    assert (combined.getvalue(), digest) == bao.encode(data, chunk_log=chunk_log)
    assert (tree.getvalue(), digest) == bao.outboard(data, chunk_log=chunk_log)
    assert bao.Decoder(combined, digest, chunk_log=chunk_log).read() == data
    assert bao.Decoder(io.BytesIO(data), digest, outboard=tree, chunk_log=chunk_log).read() == data


@given(positions=st.lists(st.tuples(st.integers(0, 350_000), st.integers(0, 100_000)), min_size=1, max_size=5), chunk_log=st.integers(0, 8))
def test_a_decoder_reads_from_any_position(positions: list[tuple[int, int]], chunk_log: int) -> None:
    data = pattern(300_000)
    combined, tree, digest = encoded_by_file(data, chunk_log)
    for decoder in (
        bao.Decoder(combined, digest, chunk_log=chunk_log),
        bao.Decoder(io.BytesIO(data), digest, outboard=tree, chunk_log=chunk_log),
    ):
        assert decoder.seekable() and decoder.readable() and not decoder.writable()
        for position, size in positions:
            assert decoder.seek(position) == position == decoder.tell()
            assert decoder.read(size) == data[position : position + size]
        assert decoder.seek(-5, io.SEEK_END) == len(data) - 5
        assert decoder.seek(2, io.SEEK_CUR) == len(data) - 3
        assert decoder.read() == data[-3:] and decoder.read(1) == b""


@given(start=st.integers(0, 350_000), length=st.integers(0, 350_000), chunk_log=st.integers(0, 8))
def test_slices_go_through_files(start: int, length: int, chunk_log: int) -> None:
    data = pattern(300_000)
    combined, tree, digest = encoded_by_file(data, chunk_log)
    part = bao.SliceExtractor(combined, start, length, chunk_log=chunk_log).read()
    assert part == bao.extract_slice(combined.getvalue(), start, length, chunk_log=chunk_log)
    assert part == bao.SliceExtractor(io.BytesIO(data), start, length, outboard=tree, chunk_log=chunk_log).read()
    decoder = bao.SliceDecoder(io.BytesIO(part), digest, start, length, chunk_log=chunk_log)
    assert decoder.read() == data[start : start + length]
    assert not decoder.seekable()


class Pipe:
    """A file that can only be read from, in pieces of at most 999 bytes."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, 999))


def test_a_pipe_is_decoded_and_cannot_seek() -> None:
    data = pattern(100_000)
    encoded, digest = bao.encode(data)
    decoder = bao.Decoder(Pipe(encoded), digest)
    assert decoder.read() == data
    assert not decoder.seekable()
    assert error_of(decoder.seek, 0) is io.UnsupportedOperation


def test_pythons_own_files_work_above_a_decoder() -> None:
    data = "a line\n".encode() * 20_000
    encoded, digest = bao.encode(data)
    text = io.TextIOWrapper(io.BufferedReader(bao.Decoder(io.BytesIO(encoded), digest)), encoding="utf-8")
    assert sum(line == "a line\n" for line in text) == 20_000
    place = bytearray(50)
    assert bao.Decoder(io.BytesIO(encoded), digest).readinto(place) == 50
    assert place == data[:50]


@given(place=st.integers(0), bit=st.integers(0, 7))
def test_a_decoder_returns_only_what_the_digest_covers(place: int, bit: int) -> None:
    data = pattern(20_000)
    encoded, digest = bao.encode(data)
    changed = bytearray(encoded)
    changed[place % len(changed)] ^= 1 << bit
    decoder, at = bao.Decoder(io.BytesIO(changed), digest), 0
    with pytest.raises(bao.DecodeError):
        while part := decoder.read(1024):
            assert part == data[at : at + len(part)]
            at += len(part)
        assert at < len(data), "the change was not noticed"
    assert error_of(bao.Decoder(io.BytesIO(encoded[: place % len(encoded)]), digest).read) is bao.DecodeError


class BrokenFile(io.BytesIO):
    """A file whose methods do what a test says."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self._result = result

    def read(self, size: int | None = -1, /) -> bytes:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result(size)  # type: ignore[no-any-return]

    def write(self, data: Any, /) -> int:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result(len(data))  # type: ignore[no-any-return]


def test_the_errors_of_a_file_pass_through() -> None:
    class OwnError(Exception):
        pass

    own = OwnError("the network is gone")
    for result, error in (
        (own, OwnError),
        (lambda _: None, BlockingIOError),
        (lambda size: bytes(size + 1), OSError),
        (lambda _: "text", TypeError),
    ):
        assert error_of(bao.Decoder(BrokenFile(result), bytes(32)).read) is error
    for result, error in ((own, OwnError), (lambda _: None, BlockingIOError), (lambda size: size + 1, OSError), (lambda _: "1", TypeError)):
        encoder = bao.Encoder(BrokenFile(result))
        encoder.write(b"some input")
        assert error_of(encoder.finalize) is error
    with pytest.raises(OwnError) as caught:
        bao.Decoder(BrokenFile(own), bytes(32)).read()
    assert caught.value is own


def test_what_is_finished_or_closed_takes_nothing() -> None:
    encoder = bao.Encoder(io.BytesIO())
    encoder.finalize()
    assert error_of(encoder.write, b"more") is OSError and error_of(encoder.finalize) is OSError
    encoder.close()
    assert error_of(encoder.write, b"more") is ValueError
    decoder = bao.Decoder(io.BytesIO(), bytes(32))
    decoder.close()
    assert error_of(decoder.read) is ValueError and error_of(decoder.seek, 0) is ValueError


MEMORY = """
import resource, sys
from bulla_hash import bao
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open(sys.argv[1], "w+b") as file:
    encoder, piece = bao.Encoder(file), bytes(1 << 20)
    encoder.write(piece)
    before = peak()
    for _ in range(127):
        encoder.write(piece)
    decoder, count = bao.Decoder(file, encoder.finalize()), 0
    while part := decoder.read(1 << 20):
        count += len(part)
assert count == 128 << 20, count
print(peak() - before)
"""


def test_long_input_needs_no_more_memory(tmp_path: Path) -> None:
    said = subprocess.run([sys.executable, "-c", MEMORY, tmp_path / "encoded"], check=True, capture_output=True, text=True)
    assert int(said.stdout) < 16 * 1024, f"{said.stdout} KiB"


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
        (lambda: bao.Encoder(io.BytesIO(), chunk_log=9), ValueError),
        (lambda: bao.Encoder(io.BytesIO()).write("text"), TypeError),  # type: ignore[arg-type]
        (lambda: bao.Decoder(io.BytesIO(encoded), digest[:31]), ValueError),
        (lambda: bao.Decoder(io.BytesIO(encoded), digest).seek(-1), ValueError),
        (lambda: bao.Decoder(io.BytesIO(encoded), digest).seek(0, 3), ValueError),
        (lambda: bao.Decoder(object(), digest).read(), AttributeError),  # type: ignore[arg-type]
        (lambda: bao.SliceExtractor(io.BytesIO(encoded), -1, 1), OverflowError),
        (lambda: bao.SliceDecoder(io.BytesIO(), digest, 0, 1).read(), bao.DecodeError),
    ):
        with pytest.raises(error):
            call()


def test_a_false_length_takes_no_memory() -> None:
    claim = b"\xff" * 8
    assert error_of(bao.decode, claim, bytes(32)) is bao.DecodeError
    assert error_of(bao.extract_slice, claim, 0, 2**64 - 1) is bao.DecodeError
