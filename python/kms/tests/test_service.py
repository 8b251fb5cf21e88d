"""The clients against a real service, whose address is in BULLA_ADDR and whose token is in BULLA_TOKEN."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import urlsafe_b64decode
from collections.abc import Callable
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bulla_kms import (
    ApprovalRule,
    ApprovalSubject,
    Approver,
    AsyncClient,
    Ciphertext,
    Client,
    Code,
    DecryptItem,
    EncryptItem,
    KmsError,
    Mac,
    Plaintext,
    SignItem,
    Signature,
    VerifyItem,
    VerifyMacItem,
)

ADDRESS, TOKEN = os.environ["BULLA_ADDR"], os.environ["BULLA_TOKEN"]
MESSAGE = b"a message"


def test_keys_sign_rotate_and_verify() -> None:
    label = f"python-client-{os.getpid()}"
    with Client(ADDRESS, token=TOKEN) as client:
        client.create_key(label=label)
        first = client.sign(label, MESSAGE)
        assert client.rotate(label).latest_version == 2
        assert client.verify(first.key, MESSAGE, first.signature)
        assert not client.verify(label, MESSAGE, first.signature), "the latest version did not sign it"
        made, refused = client.sign_many([SignItem(label, MESSAGE), SignItem("no-such-key", MESSAGE)])
        assert isinstance(refused, KmsError) and refused.code == Code.KEY_NOT_FOUND
        assert isinstance(made, Signature)
        items = [VerifyItem(made.key, MESSAGE, made.signature), VerifyItem(made.key, b"", made.signature)]
        assert [bool(verdict) for verdict in client.verify_many(items)] == [True, False]
        assert client.disable(label).state == "disabled"
        with pytest.raises(KmsError) as caught:
            client.sign(label, MESSAGE)
        assert caught.value.code == Code.KEY_DISABLED
        assert client.enable(label).state == "enabled"
        (noted,) = (entry for entry in client.audit_entries() if entry.key == made.key and entry.operation == "sign")
        assert noted.result == "ok" and next(iter(client.audit_entries(noted.number))) == noted
        (found,) = (key for key in client.keys() if key.label == label)
        assert found.versions[0].retired is not None and client.key(found.id) == found


def test_a_key_of_rsa_signs_as_the_caller_says() -> None:
    label = f"python-rsa-{os.getpid()}"
    with Client(ADDRESS, token=TOKEN) as client:
        key = client.create_key(label=label, algorithm="rsa-2048")
        made = client.sign(label, MESSAGE, hash="sha384", padding="pkcs1v15")
        verdicts = [
            client.verify(made.key, MESSAGE, made.signature, hash="sha384", padding="pkcs1v15"),
            client.verify(made.key, MESSAGE, made.signature, hash="sha384"),
            client.verify(made.key, MESSAGE, made.signature, padding="pkcs1v15"),
            client.verify(made.key, MESSAGE, made.signature),
        ]
        assert verdicts == [True, False, False, False]

    async def work() -> bool:
        async with AsyncClient(ADDRESS, token=TOKEN) as client:
            made = await client.sign(key.id, MESSAGE, hash="sha512")
            return await client.verify(made.key, MESSAGE, made.signature, hash="sha512", padding="pss")

    assert asyncio.run(work())


def test_a_key_is_used_with_approvals() -> None:
    anns, bobs = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    approvers = tuple(
        Approver(name, key.public_key().public_bytes_raw()) for name, key in (("ann", anns), ("bob", bobs))
    )
    rule = ApprovalRule(2, approvers, timedelta(hours=1))
    # The BLAKE3 digest of the message. The signed request has characters that JSON may write in two
    # ways.
    message, digest = b"hello", "ea8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f"
    subject = ApprovalSubject("sign", digest, len(message), "é&.txt")

    def refused(act: Callable[[], object], code: Code) -> None:
        with pytest.raises(KmsError) as caught:
            act()
        assert caught.value.code == code

    with Client(ADDRESS, token=TOKEN) as client:
        key = client.create_key(approval_rule=rule)
        assert key.approval_rule == rule
        refused(lambda: client.sign(key.id, message), Code.APPROVAL_REQUIRED)
        reason, lifetime = "why \"not\" \\ é<&>\U0007f510", timedelta(seconds=90)
        request = client.request_approval(key.id, subject, reason, lifetime=lifetime)
        assert (request.state, request.subject, request.reason) == ("waiting", subject, reason)
        assert request.expires - request.created == lifetime
        refused(lambda: client.approve(request, "ann", bobs.sign), Code.FORBIDDEN)
        client.approve(request, "ann", anns.sign)
        refused(lambda: client.sign(key.id, message, approval=request.id), Code.APPROVAL_REQUIRED)
        approved = client.approve(request, "bob", bobs.sign)
        assert approved.state == "approved" and [one.approver for one in approved.statements] == ["ann", "bob"]
        made = client.sign(key.id, message, approval=request.id)
        assert client.verify(made.key, message, made.signature)
        refused(lambda: client.sign(key.id, message, approval=request.id), Code.APPROVAL_REQUIRED)
        assert client.approval(request.id).state == "used"
        again = client.request_approval(key.id, subject, "again")
        assert client.reject(again, "bob", bobs.sign).state == "rejected"
        assert again.id in [one.id for one in client.approvals()]


def test_a_jwt_is_signed() -> None:
    # The service's settings name the key "client-jwt", with one audience.
    claims = {"sub": "job-7", "aud": "https://api.example.org"}
    with Client(ADDRESS, token=TOKEN) as client:
        made = client.sign_jwt("client-jwt", claims, lifetime=timedelta(seconds=30))
        message, _, signature = made.jwt.rpartition(".")
        assert client.verify(made.key, message.encode(), urlsafe_b64decode(signature + "=="))
        said = json.loads(urlsafe_b64decode(message.split(".")[1] + "=="))
        assert (said["sub"], said["jti"], said["exp"]) == ("job-7", made.id, int(made.expires.timestamp()))
        assert said["exp"] - said["iat"] == 30 and made.jwt not in repr(made)
        # As long as the settings permit.
        assert client.sign_jwt("client-jwt", claims).expires > made.expires
        with pytest.raises(KmsError) as caught:
            client.sign_jwt("client-jwt", {"aud": "https://other.example.org"})
        assert caught.value.code == Code.FORBIDDEN

    async def work() -> int:
        async with AsyncClient(ADDRESS, token=TOKEN) as client:
            return (await client.sign_jwt("client-jwt", claims)).version

    assert asyncio.run(work()) == 1


def test_asyncio_signs_many_at_once() -> None:
    async def work() -> list[Signature]:
        async with AsyncClient(ADDRESS, token=TOKEN) as client:
            key = await client.create_key()
            made = await asyncio.gather(*(client.sign(key.id, str(at).encode()) for at in range(50)))
            for at, signature in enumerate(made):
                assert await client.verify(signature.key, str(at).encode(), signature.signature)
            return made

    assert len(asyncio.run(work())) == 50


@pytest.mark.parametrize("algorithm", ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "xchacha20-poly1305"])
def test_values_are_encrypted_rewrapped_and_decrypted(algorithm: str) -> None:
    with Client(ADDRESS, token=TOKEN) as client:
        key = client.create_key(algorithm=algorithm)
        assert key.versions[0].public_key is None and key.derivation == "none"
        assert key in list(client.keys())
        made = client.encrypt(key.id, MESSAGE, associated_data=b"row 7")
        found = client.decrypt(key.id, made.ciphertext, associated_data=b"row 7")
        assert (found.plaintext, found.key) == (MESSAGE, made.key)
        assert "a message" not in repr(found)
        with pytest.raises(KmsError) as caught:
            client.decrypt(key.id, made.ciphertext)
        assert caught.value.code == Code.INVALID_CIPHERTEXT
        client.rotate(key.id)
        assert client.rewrap(key.id, made.ciphertext, associated_data=b"row 7").version == 2
        for bits in (128, 256, 512):
            data_key = client.generate_data_key(key.id, bits, associated_data=b"disk")
            assert len(data_key.plaintext) == bits // 8
            assert client.decrypt(key.id, data_key.wrapped.ciphertext, associated_data=b"disk").plaintext == data_key.plaintext
            assert len(client.generate_wrapped_data_key(key.id, bits).ciphertext) > bits // 8
        # Two requests.
        results = client.encrypt_many(key.id, [EncryptItem(str(at).encode()) for at in range(1001)])
        assert isinstance(results[1000], Ciphertext)
        items = [DecryptItem(results[1000].ciphertext), DecryptItem(b"altered")]
        good, bad = client.decrypt_many(key.id, items)
        assert isinstance(good, Plaintext) and good.plaintext == b"1000"
        assert isinstance(bad, KmsError) and bad.code == Code.INVALID_CIPHERTEXT
        again, bad_again = client.rewrap_many(key.id, items)
        assert isinstance(again, Ciphertext) and isinstance(bad_again, KmsError)


@pytest.mark.parametrize("derivation", ["per_context", "convergent"])
def test_keys_are_derived_from_a_context(derivation: str) -> None:
    with Client(ADDRESS, token=TOKEN) as client:
        key = client.create_key(algorithm="aes-256-gcm", derivation=derivation)
        assert key.derivation == derivation
        first, second = (client.encrypt(key.id, MESSAGE, context=b"customer 17").ciphertext for _ in range(2))
        assert (first == second) == (derivation == "convergent")
        assert client.decrypt(key.id, first, context=b"customer 17").plaintext == MESSAGE
        with pytest.raises(KmsError) as caught:
            client.decrypt(key.id, first, context=b"customer 18")
        assert caught.value.code == Code.INVALID_CIPHERTEXT


def test_a_secret_is_derived_with_the_public_key_of_a_peer() -> None:
    # A SubjectPublicKeyInfo of X25519 (RFC 8410) is these bytes and the key.
    prefix = bytes.fromhex("302a300506032b656e032100")

    async def derive_async(key: str, peer: bytes) -> bytes:
        async with AsyncClient(ADDRESS, token=TOKEN) as client:
            return await client.derive_shared_secret(key, peer)

    with Client(ADDRESS, token=TOKEN) as client:
        ours, theirs = (client.create_key(algorithm="x25519") for _ in range(2))
        our_peer, their_peer = (prefix + (key.versions[0].public_key or b"") for key in (theirs, ours))
        secret = client.derive_shared_secret(ours.id, our_peer)
        assert len(secret) == 32 and secret == asyncio.run(derive_async(theirs.id, their_peer))
        with pytest.raises(KmsError) as caught:
            client.derive_shared_secret(ours.id, prefix + bytes(32))
        assert caught.value.code == Code.INVALID_PUBLIC_KEY


def test_asyncio_makes_and_verifies_macs() -> None:
    async def work() -> None:
        async with AsyncClient(ADDRESS, token=TOKEN) as client:
            for algorithm, length in {"hmac-sha256": 32, "hmac-sha384": 48, "hmac-sha512": 64, "blake3": 32}.items():
                key = await client.create_key(algorithm=algorithm)
                mac = await client.mac(key.id, MESSAGE)
                assert len(mac.mac) == length
                assert await client.verify_mac(mac.key, MESSAGE, mac.mac)
                assert not await client.verify_mac(mac.key, b"another", mac.mac)
                await client.rotate(key.id)
                assert not await client.verify_mac(key.id, MESSAGE, mac.mac), "the latest version did not make it"
                (again,) = await client.mac_many(key.id, [MESSAGE])
                assert isinstance(again, Mac) and again.version == 2
                items = [VerifyMacItem(MESSAGE, mac.mac, 1), VerifyMacItem(MESSAGE, mac.mac), VerifyMacItem(b"", b"", 9)]
                verdicts = await client.verify_mac_many(key.id, items)
                assert [bool(verdict) for verdict in verdicts] == [True, False, False]
                assert verdicts[2].error is not None and verdicts[2].error.code == Code.UNKNOWN_VERSION
            assert len(await client.random(32)) == 32

    asyncio.run(work())
