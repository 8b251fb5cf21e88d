"""Verified streaming: the Bao format over BLAKE3's tree.

An encoding contains the input and the chaining values of the tree. A reader that knows the 32 bytes of the digest can verify any part of it, and
need not trust where it came from. The bytes are those of the `bao` crate.

>>> from bulla_hash import bao
>>> encoded, digest = bao.encode(b"some input")
>>> bao.decode(encoded, digest)
b'some input'

An outboard encoding leaves the input out: give it as `outboard`, beside the input.

>>> tree, digest = bao.outboard(b"some input")
>>> bao.decode(b"some input", digest, outboard=tree)
b'some input'

What is too large for memory goes through files. `Encoder` is written to, and `Decoder` is read from; each needs less than 1 MiB of memory.

>>> import io
>>> file = io.BytesIO()
>>> encoder = bao.Encoder(file)
>>> encoder.write(b"x" * 100_000)
100000
>>> digest = encoder.finalize()
>>> decoder = bao.Decoder(file, digest)
>>> decoder.seek(99_998), decoder.read(10)
(99998, b'xx')

In every function and class, `chunk_log` says how long a leaf of the tree is: 2 ** `chunk_log` KiB, from 0 to 8. The Bao format has 0. Larger leaves make the tree
smaller, the digest stays the same, and the decoder must use the same number. `ValueError` says that it is too large, and `OverflowError` that
a number is negative.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Protocol

from ._native import BaoReader, BaoWriter, DecodeError, bao_decode, bao_decode_slice, bao_encode, bao_outboard, bao_slice

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

__all__ = [
    "DecodeError",
    "Decoder",
    "Encoder",
    "ReadableFile",
    "SeekableFile",
    "SliceDecoder",
    "SliceExtractor",
    "WritableFile",
    "decode",
    "decode_slice",
    "encode",
    "extract_slice",
    "outboard",
]


class ReadableFile(Protocol):
    """A file object in binary mode that is read from, such as `open(path, "rb")` or a pipe."""

    def read(self, size: int, /) -> bytes | None: ...


class SeekableFile(ReadableFile, Protocol):
    """A file object in binary mode that is read from at any position."""

    def seek(self, offset: int, whence: int, /) -> int: ...


class WritableFile(SeekableFile, Protocol):
    """A file object in binary mode that is written to and read from, such as `open(path, "w+b")`."""

    def write(self, data: bytes, /) -> int | None: ...
    def flush(self) -> object: ...


def encode(data: Buffer, *, chunk_log: int = 0) -> tuple[bytes, bytes]:
    """The encoding of `data`, with the input in it, and the digest."""
    return bao_encode(data, chunk_log)


def outboard(data: Buffer, *, chunk_log: int = 0) -> tuple[bytes, bytes]:
    """The encoding of `data` without the input, and the digest."""
    return bao_outboard(data, chunk_log)


def decode(encoded: Buffer, digest: Buffer, *, outboard: Buffer | None = None, chunk_log: int = 0) -> bytes:
    """The input, verified: from its encoding, or `encoded` is the input itself and `outboard` its outboard encoding.

    Raises `DecodeError` if any byte is not what the digest says, and `ValueError` if the digest does not have 32 bytes.
    """
    return bao_decode(encoded, digest, outboard, chunk_log)


def extract_slice(
    encoded: Buffer, start: int, length: int, *, outboard: Buffer | None = None, chunk_log: int = 0
) -> bytes:
    """The part of an encoding that is needed to verify `length` bytes of the input from `start` on. It verifies nothing.

    The range is cut off at the end of the input. An empty range counts as one byte.

    Raises `DecodeError` if the encoding is truncated.
    """
    return bao_slice(encoded, start, length, outboard, chunk_log)


def decode_slice(slice: Buffer, digest: Buffer, start: int, length: int, *, chunk_log: int = 0) -> bytes:
    """The bytes of the input that a slice has, verified. `start` and `length` are those with which it was extracted.

    Raises `DecodeError` if any byte is not what the digest says, and `ValueError` if the digest does not have 32 bytes.
    """
    return bao_decode_slice(slice, digest, start, length, chunk_log)


class Encoder(io.RawIOBase):
    """A file that encodes what is written to it into `file`, which should be empty. The length need not be known before.

    It writes from the start of `file`. At the end, `finalize` reads and writes the encoding once more, unless it has at most 256 KiB of input.
    Then `file` is at its start again.
    Errors of `file` pass through. After one, the encoding is useless.
    """

    def __init__(self, file: WritableFile, *, chunk_log: int = 0) -> None:
        self._writer, self._file = BaoWriter.combined(file, chunk_log), file

    @classmethod
    def outboard(cls, file: WritableFile, *, chunk_log: int = 0) -> Self:
        """An encoder that leaves the input out: `file` gets the outboard encoding."""
        encoder = cls.__new__(cls)
        encoder._writer, encoder._file = BaoWriter.outboard(file, chunk_log), file
        return encoder

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        """Encodes all of `data`, and returns its number of bytes."""
        self._check_open()
        return self._writer.write(data)

    def finalize(self) -> bytes:
        """Completes the encoding, and returns the digest of the input. Nothing can be written afterwards."""
        self._check_open()
        digest = self._writer.finalize()
        self._file.seek(0, os.SEEK_SET)
        return digest

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the encoder is closed")


class _Reader(io.RawIOBase):
    """A file that is read from. It does not close the files below it."""

    _reader: BaoReader

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads `size` bytes, and fewer only at the end. Reads everything if `size` is negative or None."""
        if self.closed:
            raise ValueError("the reader is closed")
        return self._reader.read(2**64 - 1 if size is None or size < 0 else size)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Buffer, /) -> int:
        with memoryview(buffer).cast("B") as place:
            data = self.read(len(place))
            place[: len(data)] = data
        return len(data)


class Decoder(_Reader):
    """A file with the input of an encoding, verified: no byte is returned that is not what the digest says.

    `file` has the encoding, or the input itself if `outboard` has its outboard encoding. It is read from its current position, a pipe too.
    To seek, `file` and `outboard` must be able to, and the encoding must begin at their starts. Seeking verifies nothing, except from the end,
    which verifies the length.

    Reading raises `DecodeError` if any byte is not what the digest says, and `ValueError` says that the digest does not have 32 bytes.
    """

    def __init__(
        self, file: ReadableFile, digest: Buffer, *, outboard: ReadableFile | None = None, chunk_log: int = 0
    ) -> None:
        self._reader = BaoReader.decoder(file, digest, outboard, chunk_log)
        self._files = (file,) if outboard is None else (file, outboard)

    def seekable(self) -> bool:
        return all(getattr(file, "seekable", lambda: False)() for file in self._files)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Moves to another position of the input, and returns it."""
        if self.closed:
            raise ValueError("the reader is closed")
        if not self.seekable():
            raise io.UnsupportedOperation("the encoding is in a file that cannot seek")
        return self._reader.seek(offset, whence)

    def tell(self) -> int:
        """The position in the input."""
        return self.seek(0, os.SEEK_CUR)


class SliceExtractor(_Reader):
    """A file with the part of an encoding that is needed to verify `length` bytes of the input from `start` on. It verifies nothing.

    `file` has the encoding, or the input itself if `outboard` has its outboard encoding. The range is cut off at the end of the input.
    An empty range counts as one byte. A slice of everything is the combined encoding.
    """

    def __init__(
        self, file: SeekableFile, start: int, length: int, *, outboard: SeekableFile | None = None, chunk_log: int = 0
    ) -> None:
        self._reader = BaoReader.slice_extractor(file, start, length, outboard, chunk_log)


class SliceDecoder(_Reader):
    """A file with the bytes of the input that a slice has, verified. `start` and `length` are those with which it was extracted.

    Reading raises `DecodeError` if any byte is not what the digest says.
    """

    def __init__(self, file: ReadableFile, digest: Buffer, start: int, length: int, *, chunk_log: int = 0) -> None:
        self._reader = BaoReader.slice_decoder(file, digest, start, length, chunk_log)
