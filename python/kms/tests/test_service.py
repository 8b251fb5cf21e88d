"""The clients against a real service, whose address is in BULLA_ADDR and whose token is in BULLA_TOKEN."""

from __future__ import annotations

import asyncio
import os

import pytest

from bulla_kms import AsyncClient, Client, Code, KmsError, SignItem, Signature, VerifyItem

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


def test_asyncio_signs_many_at_once() -> None:
    async def work() -> list[Signature]:
        async with AsyncClient(ADDRESS, token=TOKEN) as client:
            key = await client.create_key()
            made = await asyncio.gather(*(client.sign(key.id, str(at).encode()) for at in range(50)))
            for at, signature in enumerate(made):
                assert await client.verify(signature.key, str(at).encode(), signature.signature)
            return made

    assert len(asyncio.run(work())) == 50
