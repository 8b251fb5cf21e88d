"""Ed25519 (RFC 8032): signing, and strict verification of many signatures at once, with one verdict each.

>>> from bulla_hash import ed25519
>>> key = ed25519.SigningKey(bytes(range(32)))
>>> ed25519.verify(key.public_key, b"a message", key.sign(b"a message"))
<Verdict.VALID: 0>

>>> ed25519.verify(bytes(32), b"any message", bytes(64))
<Verdict.KEY_OF_SMALL_ORDER: 3>

The verdict does not depend on the batch. The rules are those of `verify_strict` of the crate ed25519-dalek.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ._native import SigningKey, ed25519_sign_many, ed25519_verify_many

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["SigningKey", "Verdict", "sign_many", "verify", "verify_many"]


class Verdict(enum.Enum):
    """The result of verifying one signature. Only `VALID` is true. If several others apply, it is the first of them, after `WRONG_LENGTH`."""

    VALID = 0
    """The signature is valid for this message under this key."""

    SCALAR_NOT_CANONICAL = 1
    """S is not below the order of the group, so that a second signature could be made from a valid one."""

    KEY_NOT_A_POINT = 2
    """The public key is not a point of the curve."""

    KEY_OF_SMALL_ORDER = 3
    """The public key has small order: one signature would fit almost every message."""

    R_OF_SMALL_ORDER = 4
    """R, the first half of the signature, has small order."""

    MISMATCH = 5
    """The signature is not one of this message under this key."""

    WRONG_LENGTH = 6
    """The public key does not have 32 bytes, or the signature does not have 64."""

    def __bool__(self) -> bool:
        return self is Verdict.VALID


_VERDICTS = tuple(Verdict)


def verify(public_key: Buffer, message: Buffer, signature: Buffer) -> Verdict:
    """The verdict on one signature. Raises `TypeError` for anything without bytes, and nothing for bad bytes."""
    (verdict,) = ed25519_verify_many(((public_key, message, signature),))
    return _VERDICTS[verdict]


def verify_many(items: Iterable[tuple[Buffer, Buffer, Buffer]]) -> list[Verdict]:
    """The verdict on each item, which is a tuple of a public key, a message and a signature.

    One bad item changes no other verdict. Several signatures in one call take less time than one call each.
    Raises `TypeError` for an item that is no such tuple, or has anything without bytes.
    """
    return [_VERDICTS[verdict] for verdict in ed25519_verify_many(items)]


def sign_many(items: Iterable[tuple[SigningKey, Buffer]]) -> list[bytes]:
    """The signature of each item, which is a tuple of a key and a message. The signatures are those of `SigningKey.sign`.

    Several signatures in one call take less time than one call each.
    Raises `TypeError` for an item that is no such tuple.
    """
    return ed25519_sign_many(items)
