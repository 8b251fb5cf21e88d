# Code generated from _async_client.py by generate.py. DO NOT EDIT.

"""The client for programs without asyncio."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from . import _call
from ._call import Call, address_of, error_of, headers_of, pause_before, result_of
from ._error import BatchError, KmsError
from ._model import (
    Approval,
    ApprovalRule,
    ApprovalSubject,
    AuditEntry,
    Ciphertext,
    DataKey,
    DecryptItem,
    EncryptItem,
    HashFunction,
    Key,
    Login,
    LoginToken,
    Mac,
    Plaintext,
    Rotation,
    RsaPadding,
    Signature,
    SignedJwt,
    SignItem,
    Verdict,
    VerifyItem,
    VerifyMacItem,
)

T = TypeVar("T")


class Client:
    """A client of one service. All methods may be called by many threads at once.

    Every method raises `KmsError` if the call fails.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        login: Login | None = None,
        retries: int = 3,
        backoff: float = 0.05,
        timeout: float = 30.0,
        http: httpx.Client | None = None,
    ) -> None:
        """Makes a client. It does not connect yet.

        Args:
            address: `http://HOST:PORT`, `https://HOST:PORT`, or `unix:/PATH` for a Unix socket
            token: a capability token, sent with each request
            login: how the client gets its tokens itself, instead of `token`
            retries: how often a request is repeated at most
            backoff: the longest first pause before a repetition, in seconds; it doubles each time
            timeout: how long one attempt may take, in seconds
            http: another HTTP client, with its own time-out, authorities and client certificate;
                the caller closes it

        Raises:
            ValueError: the address is not one
        """
        found = address_of(address)
        self._base = found.base
        self._token = token
        self._login = login
        self._renew = 0.0
        # One login at a time.
        self._turn = threading.Lock()
        self._retries = retries
        self._backoff = backoff
        self._owned = http is None
        if http is None:
            transport = httpx.HTTPTransport(uds=found.socket) if found.socket else None
            http = httpx.Client(timeout=timeout, transport=transport)
        self._http = http

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        if self._owned:
            self._http.close()

    def log_in(self, role: str, jwt: str) -> LoginToken:
        """Gives a JWT of the platform on which the program runs for a token.

        The client goes on with its own one: a client with `login` logs in by itself.

        Args:
            role: a role in the service's configuration, which says which JWTs give it
            jwt: the JWT
        """
        return self._make(_call.log_in(role, jwt))

    def create_key(
        self,
        *,
        label: str | None = None,
        algorithm: str | None = None,
        purpose: str | None = None,
        exportable: bool = False,
        signs_digests: bool = False,
        derivation: str | None = None,
        rotation: Rotation | None = None,
        approval_rule: ApprovalRule | None = None,
        backend: str | None = None,
    ) -> Key:
        """Makes a key with its version 1: of Ed25519, unless `algorithm` names another one.

        Args:
            label: a name that is unique in the tenant
            algorithm: for example `ml-dsa-65-ed25519`, `aes-256-gcm` or `hmac-sha256`
            purpose: the second part of the key's id
            exportable: whether its private keys may leave the service, wrapped for a recipient
            signs_digests: whether it signs digests that callers hash themselves, for `ecdsa-p256`;
                such a key signs no statements
            derivation: for a key that encrypts, `per_context` or `convergent` derives the key that
                encrypts from the context of each call; it cannot be changed later
            rotation: when the service rotates it by itself
            approval_rule: who must approve each use of it; such a key never loses its rule
            backend: what makes and keeps the private keys: `pkcs11` is the device with which the
                service was started, `group` the nodes of its settings, of which none has the whole
                key
        """
        call = _call.create_key(
            label=label,
            algorithm=algorithm,
            purpose=purpose,
            exportable=exportable,
            signs_digests=signs_digests,
            derivation=derivation,
            rotation=rotation,
            approval_rule=approval_rule,
            backend=backend,
        )
        return self._make(call)

    def key(self, key: str) -> Key:
        """Reads a key."""
        return self._make(_call.read_key(key))

    def keys(self) -> Iterator[Key]:
        """The keys that the caller may read, sorted by id."""
        after: str | None = None
        while True:
            page, after = self._make(_call.list_keys(after))
            for key in page:
                yield key
            if not after:
                return

    def audit_entries(self, first: int = 0) -> Iterator[AuditEntry]:
        """The entries of the service's audit log, the oldest first.

        Only callers of the operators' tenant may read them.

        Args:
            first: the number of the first entry to read
        """
        after = first - 1 if first > 0 else None
        while True:
            page, after = self._make(_call.list_entries(after))
            for entry in page:
                yield entry
            if after is None:
                return

    def rotate(self, key: str) -> Key:
        """Adds a version to a key. The new version signs, encrypts or makes MACs from now on."""
        return self._make(_call.rotate(key))

    def enable(self, key: str) -> Key:
        """Lets a disabled key be used again."""
        return self._make(_call.set_enabled(key, True))

    def disable(self, key: str) -> Key:
        """Keeps a key from being used. What it signed still verifies."""
        return self._make(_call.set_enabled(key, False))

    def sign(
        self,
        key: str,
        message: bytes,
        *,
        hash: HashFunction | None = None,
        padding: RsaPadding | None = None,
        approval: str | None = None,
    ) -> Signature:
        """Signs a message with the latest version of a key.

        `hash` and `padding` are for keys of ECDSA and RSA. Without them, they are the hash function
        of the curve, `sha256` for RSA, and `pss`.
        `approval` is the id of an approved request of this caller, for a key that is used with
        approvals.
        """
        return self._make(_call.sign(key, message, hash, padding, approval))

    def verify(
        self,
        key: str,
        message: bytes,
        signature: bytes,
        *,
        hash: HashFunction | None = None,
        padding: RsaPadding | None = None,
    ) -> bool:
        """Whether the key made the signature of the message, with this hash function and padding.

        The key is best the one that `Signature.key` names; a label means the latest version.
        """
        return self._make(_call.verify(key, message, signature, hash, padding))

    def sign_jwt(
        self, key: str, claims: Mapping[str, Any], *, lifetime: timedelta | None = None
    ) -> SignedJwt:
        """Signs a JWT with the latest version of a key that the service's settings name for that.

        Args:
            key: a key of the purpose `jwt-issuer`
            claims: what the JWT says, with an audience (`aud`) that the settings permit; the service
                sets `iss`, `iat`, `nbf`, `exp` and `jti`
            lifetime: how long the JWT is valid, in whole seconds; as long as the settings permit if
                it is None
        """
        return self._make(_call.sign_jwt(key, claims, lifetime))

    def sign_many(self, items: Sequence[SignItem]) -> list[Signature | KmsError]:
        """Signs many messages: a signature or an error for each, in their order.

        One item's error does not touch the others. If a request fails, the `BatchError` has the
        results of those before it.
        """
        return self._make_all(_call.sign_many(items))

    def verify_many(self, items: Sequence[VerifyItem]) -> list[Verdict]:
        """Verifies many signatures: a verdict for each, in their order.

        No verdict depends on another item. If a request fails, the `BatchError` has the verdicts of
        those before it.
        """
        return self._make_all(_call.verify_many(items))

    def encrypt(
        self, key: str, plaintext: bytes, *, associated_data: bytes = b"", context: bytes = b""
    ) -> Ciphertext:
        """Encrypts a plaintext with the latest version of a key.

        Args:
            key: a key whose algorithm encrypts
            plaintext: up to 64 MiB
            associated_data: what must be the same when the ciphertext is decrypted, for example the
                id of the row that it is in; it is not secret, and not part of the ciphertext
            context: what the key is derived from, for a key that was made for that
        """
        return self._make(_call.encrypt(key, EncryptItem(plaintext, associated_data, context)))

    def decrypt(
        self,
        key: str,
        ciphertext: bytes,
        *,
        associated_data: bytes = b"",
        context: bytes = b"",
        approval: str | None = None,
    ) -> Plaintext:
        """Decrypts a ciphertext of any version of a key.

        `Code.INVALID_CIPHERTEXT` does not say whether the ciphertext was changed, or belongs to
        another key, version, context or associated data.
        `approval` is the id of an approved request of this caller, for a key that is used with
        approvals.
        """
        return self._make(_call.decrypt(key, DecryptItem(ciphertext, associated_data, context), approval))

    def rewrap(
        self, key: str, ciphertext: bytes, *, associated_data: bytes = b"", context: bytes = b""
    ) -> Ciphertext:
        """Encrypts a ciphertext again with the latest version of a key.

        The plaintext does not leave the service.
        """
        return self._make(_call.rewrap(key, DecryptItem(ciphertext, associated_data, context)))

    def generate_data_key(
        self, key: str, bits: int = 256, *, associated_data: bytes = b"", context: bytes = b""
    ) -> DataKey:
        """Makes a random key of 128, 256 or 512 bits for data, and encrypts it with a key's latest version."""
        return self._make(_call.generate_data_key(key, bits, associated_data, context))

    def generate_wrapped_data_key(
        self, key: str, bits: int = 256, *, associated_data: bytes = b"", context: bytes = b""
    ) -> Ciphertext:
        """Makes a random key for data, and returns it encrypted only.

        This is for programs that encrypt later, or elsewhere.
        """
        return self._make(_call.generate_wrapped_data_key(key, bits, associated_data, context))

    def mac(self, key: str, message: bytes) -> Mac:
        """Makes the message authentication code (MAC) of a message with the latest version of a key."""
        return self._make(_call.mac(key, message))

    def verify_mac(self, key: str, message: bytes, mac: bytes) -> bool:
        """Whether the key made the MAC of the message.

        The key is best the one that `Mac.key` names; a label means the latest version.
        """
        return self._make(_call.verify_mac(key, message, mac))

    def derive_shared_secret(self, key: str, peer: bytes) -> bytes:
        """Derives the secret that a key shares with the holder of a peer's private key, by Diffie-Hellman.

        It is no key: derive one from it, for example by HKDF.

        Args:
            key: best the key version whose public key the peer has; a label means the latest version
            peer: the peer's public key as DER of a SubjectPublicKeyInfo
        """
        return self._make(_call.derive_shared_secret(key, peer))

    def request_approval(
        self, key: str, subject: ApprovalSubject, reason: str, *, lifetime: timedelta | None = None
    ) -> Approval:
        """Requests the approvals that one use of a key needs.

        When enough people have approved, the same caller signs or decrypts, with `Approval.id`.

        Args:
            key: the key
            subject: what it is to be used for
            reason: why, in one line; approvers and the audit log see it
            lifetime: for how long the request counts, in whole seconds; as long as the key's rule
                says if it is None
        """
        return self._make(_call.request_approval(key, subject, reason, lifetime))

    def approvals(self) -> Iterator[Approval]:
        """The requests that have not expired, about keys that the caller may read, the oldest first."""
        after: str | None = None
        while True:
            page, after = self._make(_call.list_approvals(after))
            for approval in page:
                yield approval
            if not after:
                return

    def approval(self, id: str) -> Approval:
        """Reads a request for approval."""
        return self._make(_call.read_approval(id))

    def approve(self, request: Approval, approver: str, sign: Callable[[bytes], bytes]) -> Approval:
        """Approves a request in the name of an approver.

        Args:
            request: a request whose `subject` you have compared with a copy of your own
            approver: the name in the key's rule
            sign: signs bytes with the approver's key of Ed25519
        """
        return self._make(_call.decide("approve", request, approver, sign))

    def reject(self, request: Approval, approver: str, sign: Callable[[bytes], bytes]) -> Approval:
        """Rejects a request in the name of an approver, as `approve` approves it."""
        return self._make(_call.decide("reject", request, approver, sign))

    def random(self, length: int) -> bytes:
        """Makes up to 65,536 random bytes, from the service's operating system."""
        return self._make(_call.random_bytes(length))

    def encrypt_many(self, key: str, items: Sequence[EncryptItem]) -> list[Ciphertext | KmsError]:
        """Encrypts many plaintexts with one key: a ciphertext or an error for each, as `sign_many` does."""
        return self._make_all(_call.encrypt_many(key, items))

    def decrypt_many(self, key: str, items: Sequence[DecryptItem]) -> list[Plaintext | KmsError]:
        """Decrypts many ciphertexts of one key: a plaintext or an error for each, as `sign_many` does."""
        return self._make_all(_call.decrypt_many(key, items))

    def rewrap_many(self, key: str, items: Sequence[DecryptItem]) -> list[Ciphertext | KmsError]:
        """Encrypts many ciphertexts again with the latest version of their key, as `rewrap` does."""
        return self._make_all(_call.rewrap_many(key, items))

    def mac_many(self, key: str, messages: Sequence[bytes]) -> list[Mac | KmsError]:
        """Makes the MACs of many messages with one key: a MAC or an error for each, as `sign_many` does."""
        return self._make_all(_call.mac_many(key, messages))

    def verify_mac_many(self, key: str, items: Sequence[VerifyMacItem]) -> list[Verdict]:
        """Verifies many MACs of one key: a verdict for each, as `verify_many` does."""
        return self._make_all(_call.verify_mac_many(key, items))

    def _make_all(self, calls: Iterable[Call[list[T]]]) -> list[T]:
        """Makes the requests of a batch, one after another."""
        results: list[T] = []
        for call in calls:
            try:
                part: list[T] = self._make(call)
            except KmsError as error:
                raise BatchError(results, error) from error
            results += part
        return results

    def _bearer(self, call: Call[T]) -> str | None:
        """The token of a request; none for a login."""
        if call.path == _call.LOGIN_PATH:
            return None
        if self._login is None:
            return self._token
        with self._turn:
            if self._token is None or time.monotonic() >= self._renew:
                login = self.log_in(self._login.role, self._login.jwt())
                self._token, self._renew = login.token, _call.renewal_of(login)
            return self._token

    def _make(self, call: Call[T]) -> T:
        """Makes a request, again where that helps."""
        attempt = 0
        while True:
            token = self._bearer(call)
            response: httpx.Response | None = None
            try:
                response = self._http.request(
                    call.method, self._base + call.path, json=call.body, headers=headers_of(call, token)
                )
                return result_of(call, response)
            except httpx.HTTPError as cause:
                failed = error_of(cause)
                failed.__cause__ = cause
            except KmsError as error:
                failed = error
            pause = pause_before(attempt, self._backoff, failed, response)
            if attempt >= self._retries or pause is None:
                raise failed
            time.sleep(pause)
            attempt += 1
