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

In every function, `chunk_log` says how long a leaf of the tree is: 2 ** `chunk_log` KiB, from 0 to 8. The Bao format has 0. Larger leaves make the tree
smaller, the digest stays the same, and whoever decodes must use the same number. `ValueError` says that it is too large, and `OverflowError` that
a number is negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._native import DecodeError, bao_decode, bao_decode_slice, bao_encode, bao_outboard, bao_slice

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["DecodeError", "decode", "decode_slice", "encode", "extract_slice", "outboard"]


def encode(data: Buffer, *, chunk_log: int = 0) -> tuple[bytes, bytes]:
    """The encoding of `data`, with the input in it, and the digest."""
    return bao_encode(data, chunk_log)


def outboard(data: Buffer, *, chunk_log: int = 0) -> tuple[bytes, bytes]:
    """The encoding of `data` without the input, and the digest."""
    return bao_outboard(data, chunk_log)


def decode(encoded: Buffer, digest: Buffer, *, outboard: Buffer | None = None, chunk_log: int = 0) -> bytes:
    """The input, verified: from its encoding, or `encoded` is the input itself and `outboard` its outboard encoding.

    Raises `DecodeError` if any byte is not what the digest says, and `ValueError` if the digest has not 32 bytes.
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

    Raises `DecodeError` if any byte is not what the digest says, and `ValueError` if the digest has not 32 bytes.
    """
    return bao_decode_slice(slice, digest, start, length, chunk_log)
