"""Ed25519: signing, and the vectors of verification, which have every kind of signature on which verifiers disagree."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest
from support import error_of, vectors

from bulla_hash.ed25519 import SigningKey, Verdict, sign_many, verify, verify_many

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


# The examples of RFC 8410, section 10.3: without the public key, and with it and an attribute.
PEM = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
"""
PEM_WITH_PUBLIC_KEY = """-----BEGIN PRIVATE KEY-----
MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB
Z9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PRIVATE KEY-----
"""
PUBLIC_KEY = bytes.fromhex("19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1")
SEED = bytes.fromhex("d4ee72dbf913584ad5b6d8f1f769f8ad3afe7c28cbf1d4fbe097a88f44755842")


def test_signatures_are_those_of_the_rfc() -> None:
    cases = vectors("ed25519")["rfc8032"]
    items = []
    for case in cases:
        key = SigningKey(bytearray.fromhex(case["seed"]))
        message, signature = bytes.fromhex(case["message"]), bytes.fromhex(case["signature"])
        assert key.public_key == bytes.fromhex(case["public_key"])
        assert key.sign(memoryview(message)) == signature
        items.append((key, message, signature))
    many = items * 5
    assert sign_many((key, message) for key, message, _ in many) == [signature for _, _, signature in many]
    assert sign_many([]) == []


def test_a_new_key_signs_what_its_public_key_verifies() -> None:
    one, other = SigningKey.generate(), SigningKey.generate()
    assert one.public_key != other.public_key
    for message in (b"", b"a message", bytes(100_000)):
        assert verify(one.public_key, message, one.sign(message)) is Verdict.VALID
        assert verify(other.public_key, message, one.sign(message)) is Verdict.MISMATCH
    assert SigningKey(one.to_bytes()).public_key == one.public_key


def test_keys_are_those_of_pkcs8() -> None:
    for pem in (PEM, PEM_WITH_PUBLIC_KEY):
        key = SigningKey.from_pkcs8(pem)
        assert (key.public_key, key.to_bytes(), key.to_pem()) == (PUBLIC_KEY, SEED, PEM)
    key = SigningKey(SEED)
    assert key.to_pkcs8() == bytes.fromhex("302e020100300506032b657004220420") + SEED
    assert SigningKey.from_pkcs8(bytearray(key.to_pkcs8())).public_key == PUBLIC_KEY


def test_a_key_that_is_none_is_refused() -> None:
    der = SigningKey(SEED).to_pkcs8()
    other = SigningKey.generate().public_key
    lies = bytes.fromhex("3051020101300506032b657004220420") + SEED + bytes.fromhex("812100") + other
    honest = lies.replace(other, PUBLIC_KEY)
    assert SigningKey.from_pkcs8(honest).public_key == PUBLIC_KEY
    for call, argument in (
        (SigningKey, SEED[:31]),
        (SigningKey, b""),
        (SigningKey.from_pkcs8, der[:-1]),
        (SigningKey.from_pkcs8, der + b"\0"),
        (SigningKey.from_pkcs8, der.replace(bytes.fromhex("2b6570"), bytes.fromhex("2b656e"))),
        (SigningKey.from_pkcs8, lies),
        (SigningKey.from_pkcs8, PEM[:-40]),
        (SigningKey.from_pkcs8, PEM.replace("PRIVATE", "PUBLIC")),
        (SigningKey.from_pkcs8, ""),
    ):
        assert error_of(call, argument) is ValueError, argument
    for hostile in (None, 1, "text", ["x"] * 32):
        assert error_of(SigningKey, hostile) is TypeError
        assert error_of(SigningKey(SEED).sign, hostile) is TypeError
        assert error_of(sign_many, [(hostile, b"")]) is TypeError
        assert error_of(sign_many, [(SigningKey(SEED), hostile)]) is TypeError


def test_a_key_is_not_printed_and_not_pickled() -> None:
    key = SigningKey(SEED)
    assert repr(key) == str(key) == f"<SigningKey of the public key {PUBLIC_KEY.hex()}>"
    assert error_of(pickle.dumps, key) is TypeError
