"""Calls: their requests, and when to repeat them. Both clients send them, each in its own way."""

from __future__ import annotations

import random
import secrets
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from ._error import Code, KmsError
from ._model import (
    Answer,
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
    approval_of,
    ciphertext_of,
    data_key_of,
    entry_of,
    key_of,
    login_token_of,
    mac_of,
    plaintext_of,
    refusal_of,
    result_by,
    signature_of,
    signed_jwt_of,
    unexpected,
    verdict_of,
)

T = TypeVar("T")
Item = TypeVar("Item")

MAX_BATCH_ITEMS = 1000
"""The most items of one request; longer batches are several."""

MAX_PAUSE = 30.0
"""The longest pause for which an answer may ask, in seconds."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[Answer], T]
    body: dict[str, Any] | None = None
    idempotency_key: str | None = None


def changing(method: str, path: str, read: Callable[[Answer], T], body: dict[str, Any] | None = None) -> Call[T]:
    """A call that changes something: the service recognizes its repetitions."""
    return Call(method, path, read, body, secrets.token_urlsafe(16))


LOGIN_PATH = "/api/v1/login"


def log_in(role: str, jwt: str) -> Call[LoginToken]:
    """Logs in with a JWT."""
    return Call("POST", LOGIN_PATH, login_token_of, {"role": role, "jwt": jwt.strip()})


def renewal_of(login: LoginToken) -> float:
    """When the next login is due, in seconds by the monotonic clock."""
    return time.monotonic() + 0.75 * (login.expires.timestamp() - time.time())


def create_key(
    *,
    label: str | None,
    algorithm: str | None,
    purpose: str | None,
    exportable: bool,
    signs_digests: bool,
    derivation: str | None,
    rotation: Rotation | None,
    approval_rule: ApprovalRule | None,
    backend: str | None,
) -> Call[Key]:
    """Makes a key."""
    texts = {"label": label, "algorithm": algorithm, "purpose": purpose, "derivation": derivation, "backend": backend}
    body: dict[str, Any] = {name: text for name, text in texts.items() if text is not None}
    if exportable:
        body["exportable"] = True
    if signs_digests:
        body["signs_digests"] = True
    if rotation is not None:
        body["rotation"] = rotation.to_json()
    if approval_rule is not None:
        body["approval_rule"] = approval_rule.to_json()
    return changing("POST", "/api/v1/keys", key_of, body)


def read_key(key: str) -> Call[Key]:
    """Reads a key."""
    return Call("GET", _path(key), key_of)


def rotate(key: str) -> Call[Key]:
    """Adds a version to a key."""
    return changing("POST", _path(key, "/rotate"), key_of)


def set_enabled(key: str, enabled: bool) -> Call[Key]:
    """Enables or disables a key."""
    return changing("PATCH", _path(key), key_of, {"enabled": enabled})


def list_keys(after: str | None) -> Call[tuple[list[Key], str | None]]:
    """Reads a page of keys, and after which key the next one begins."""
    query = "" if after is None else f"&after={quote(after, safe='')}"
    return Call("GET", f"/api/v1/keys?limit=1000{query}", lambda said: (said.list("keys", key_of), said.optional("next", str)))


def list_entries(after: int | None) -> Call[tuple[list[AuditEntry], int | None]]:
    """Reads a page of the audit log, and after which entry the next one begins."""
    path = "/api/v1/audit-log/entries?limit=1000" + ("" if after is None else f"&after={after}")
    return Call("GET", path, lambda said: (said.list("entries", entry_of), said.optional("next", int)))


def sign(
    key: str, message: bytes, hash: HashFunction | None, padding: RsaPadding | None, approval: str | None
) -> Call[Signature]:
    """Signs a message."""
    body = {"message": _base64(message), **_scheme_json(hash, padding), **_approval_json(approval)}
    return Call("POST", _path(key, "/sign"), signature_of, body)


def sign_jwt(key: str, claims: Mapping[str, Any], lifetime: timedelta | None) -> Call[SignedJwt]:
    """Signs a JWT."""
    body: dict[str, Any] = {"claims": dict(claims)}
    if lifetime is not None:
        body["lifetime_seconds"] = lifetime // timedelta(seconds=1)
    return Call("POST", _path(key, "/sign-jwt"), signed_jwt_of, body)


def verify(
    key: str, message: bytes, signature: bytes, hash: HashFunction | None, padding: RsaPadding | None
) -> Call[bool]:
    """Verifies a signature."""
    body = {"message": _base64(message), "signature": _base64(signature), **_scheme_json(hash, padding)}
    return Call("POST", _path(key, "/verify"), lambda said: said.is_true("valid"), body)


def sign_many(items: Sequence[SignItem]) -> Iterator[Call[list[Signature | KmsError]]]:
    """Signs messages, in as many requests as they take."""
    for part in _parts(items):
        texts = [{"key": item.key, "message": _base64(item.message)} for item in part]
        yield Call("POST", "/api/v1/sign", _results(len(part), result_by(signature_of)), {"items": texts})


def verify_many(items: Sequence[VerifyItem]) -> Iterator[Call[list[Verdict]]]:
    """Verifies signatures, in as many requests as they take."""
    for part in _parts(items):
        texts = [
            {"key": item.key, "message": _base64(item.message), "signature": _base64(item.signature)} for item in part
        ]
        yield Call("POST", "/api/v1/verify", _results(len(part), verdict_of), {"items": texts})


def encrypt(key: str, item: EncryptItem) -> Call[Ciphertext]:
    """Encrypts a plaintext."""
    return Call("POST", _path(key, "/encrypt"), ciphertext_of, _encrypt_json(item))


def decrypt(key: str, item: DecryptItem, approval: str | None) -> Call[Plaintext]:
    """Decrypts a ciphertext."""
    body = {**_decrypt_json(item), **_approval_json(approval)}
    return Call("POST", _path(key, "/decrypt"), plaintext_of, body)


def rewrap(key: str, item: DecryptItem) -> Call[Ciphertext]:
    """Encrypts a ciphertext again."""
    return Call("POST", _path(key, "/rewrap"), ciphertext_of, _decrypt_json(item))


def generate_data_key(key: str, bits: int, associated_data: bytes, context: bytes) -> Call[DataKey]:
    """Makes a data key."""
    body = {"bits": bits, "plaintext": True, **_options_json(associated_data, context)}
    return Call("POST", _path(key, "/data-key"), data_key_of, body)


def generate_wrapped_data_key(key: str, bits: int, associated_data: bytes, context: bytes) -> Call[Ciphertext]:
    """Makes a data key, and shows it encrypted only."""
    body = {"bits": bits, "plaintext": False, **_options_json(associated_data, context)}
    return Call("POST", _path(key, "/data-key"), ciphertext_of, body)


def mac(key: str, message: bytes) -> Call[Mac]:
    """Makes a MAC."""
    return Call("POST", _path(key, "/mac"), mac_of, {"message": _base64(message)})


def verify_mac(key: str, message: bytes, code: bytes) -> Call[bool]:
    """Verifies a MAC."""
    body = {"message": _base64(message), "mac": _base64(code)}
    return Call("POST", _path(key, "/verify-mac"), lambda said: said.is_true("valid"), body)


def derive_shared_secret(key: str, peer: bytes) -> Call[bytes]:
    """Derives a shared secret."""
    body = {"public_key": {"format": "der", "data": _base64(peer)}}
    return Call("POST", _path(key, "/derive-shared-secret"), lambda said: said.bytes("shared_secret"), body)


def request_approval(key: str, subject: ApprovalSubject, reason: str, lifetime: timedelta | None) -> Call[Approval]:
    """Requests approvals."""
    body: dict[str, Any] = {"key": key, "subject": subject.to_json(), "reason": reason}
    if lifetime is not None:
        body["expires_in_seconds"] = lifetime // timedelta(seconds=1)
    return Call("POST", "/api/v1/approvals", approval_of, body)


def list_approvals(after: str | None) -> Call[tuple[list[Approval], str | None]]:
    """Reads a page of requests for approval, and after which of them the next one begins."""
    path = "/api/v1/approvals?limit=1000" + ("" if after is None else f"&after={quote(after, safe='')}")
    return Call("GET", path, lambda said: (said.list("approvals", approval_of), said.optional("next", str)))


def read_approval(id: str) -> Call[Approval]:
    """Reads a request for approval."""
    return Call("GET", _approval_path(id), approval_of)


def decide(decision: str, request: Approval, approver: str, sign: Callable[[bytes], bytes]) -> Call[Approval]:
    """Approves or rejects a request."""
    signature = sign(b"bulla approval\0v1\0" + decision.encode() + b"\0" + request.request.encode())
    body = {"approver": approver, "signature": _base64(signature)}
    return Call("POST", _approval_path(request.id, f"/{decision}"), approval_of, body)


def random_bytes(length: int) -> Call[bytes]:
    """Makes random bytes."""
    return Call("POST", "/api/v1/random", lambda said: said.bytes("random"), {"bytes": length})


def encrypt_many(key: str, items: Sequence[EncryptItem]) -> Iterator[Call[list[Ciphertext | KmsError]]]:
    """Encrypts plaintexts, in as many requests as they take."""
    return _batch(_path(key, "/encrypt/batch"), items, _encrypt_json, result_by(ciphertext_of))


def decrypt_many(key: str, items: Sequence[DecryptItem]) -> Iterator[Call[list[Plaintext | KmsError]]]:
    """Decrypts ciphertexts, in as many requests as they take."""
    return _batch(_path(key, "/decrypt/batch"), items, _decrypt_json, result_by(plaintext_of))


def rewrap_many(key: str, items: Sequence[DecryptItem]) -> Iterator[Call[list[Ciphertext | KmsError]]]:
    """Encrypts ciphertexts again, in as many requests as they take."""
    return _batch(_path(key, "/rewrap/batch"), items, _decrypt_json, result_by(ciphertext_of))


def mac_many(key: str, messages: Sequence[bytes]) -> Iterator[Call[list[Mac | KmsError]]]:
    """Makes MACs, in as many requests as they take."""
    return _batch(_path(key, "/mac/batch"), messages, lambda message: {"message": _base64(message)}, result_by(mac_of))


def verify_mac_many(key: str, items: Sequence[VerifyMacItem]) -> Iterator[Call[list[Verdict]]]:
    """Verifies MACs, in as many requests as they take."""

    def to_json(item: VerifyMacItem) -> dict[str, Any]:
        body: dict[str, Any] = {"message": _base64(item.message), "mac": _base64(item.mac)}
        return body if item.version is None else {**body, "version": item.version}

    return _batch(_path(key, "/verify-mac/batch"), items, to_json, verdict_of)


def _scheme_json(hash: HashFunction | None, padding: RsaPadding | None) -> dict[str, Any]:
    given = {"hash": hash, "padding": padding}
    return {name: value for name, value in given.items() if value is not None}


def _approval_json(approval: str | None) -> dict[str, str]:
    return {} if approval is None else {"approval": approval}


def _encrypt_json(item: EncryptItem) -> dict[str, Any]:
    return {"plaintext": _base64(item.plaintext), **_options_json(item.associated_data, item.context)}


def _decrypt_json(item: DecryptItem) -> dict[str, Any]:
    return {"ciphertext": _base64(item.ciphertext), **_options_json(item.associated_data, item.context)}


def _options_json(associated_data: bytes, context: bytes) -> dict[str, str]:
    named = {"associated_data": associated_data, "context": context}
    return {name: _base64(data) for name, data in named.items() if data}


def _batch(
    path: str, items: Sequence[Item], to_json: Callable[[Item], dict[str, Any]], read: Callable[[Answer], T]
) -> Iterator[Call[list[T]]]:
    for part in _parts(items):
        yield Call("POST", path, _results(len(part), read), {"items": [to_json(item) for item in part]})


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), MAX_BATCH_ITEMS):
        yield items[start : start + MAX_BATCH_ITEMS]


def _results(count: int, read: Callable[[Answer], T]) -> Callable[[Answer], list[T]]:
    def results(said: Answer) -> list[T]:
        found = said.list("results", read)
        if len(found) != count:
            raise unexpected(f"{count} results, but {len(found)}")
        return found

    return results


def _path(key: str, part: str = "") -> str:
    return f"/api/v1/keys/{quote(key, safe='')}{part}"


def _approval_path(id: str, part: str = "") -> str:
    return f"/api/v1/approvals/{quote(id, safe='')}{part}"


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service is."""

    base: str
    socket: str | None
    """The path of its Unix socket."""


def address_of(text: str) -> Address:
    """Reads an address: `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`."""
    if text.startswith("unix:"):
        return Address("http://localhost", text.removeprefix("unix:").removeprefix("//"))
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"{text!r} is not the address of a service: write http://HOST:PORT, https://HOST:PORT or unix:/PATH"
        raise ValueError(message)
    return Address(text.rstrip("/"), None)


def headers_of(call: Call[T], token: str | None) -> dict[str, str]:
    """The headers of a request that httpx does not know by itself."""
    headers = {}
    if token is not None:
        headers["Authorization"] = f"Bearer {token.strip()}"
    if call.idempotency_key is not None:
        headers["Idempotency-Key"] = call.idempotency_key
    return headers


def result_of(call: Call[T], response: httpx.Response) -> T:
    """What the call asked for.

    Raises:
        KmsError: the service refused it, or the answer is another than expected
    """
    try:
        said = response.json()
    except ValueError:
        said = None
    if response.is_success:
        return call.read(Answer(said))
    request_id = response.headers.get("X-Request-Id")
    status = response.status_code
    if isinstance(said, dict) and isinstance(said.get("code"), str):
        raise refusal_of(Answer(said), status, request_id)
    # A proxy in between, for example.
    message = f"a server that is not the service answered {status}"
    raise KmsError(message, Code.HTTP, retryable=status in (429, 503), status=status, request_id=request_id)


def error_of(error: httpx.HTTPError) -> KmsError:
    """The error of a request without an answer."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return KmsError(f"the client does not trust the service's certificate: {error}", Code.CERTIFICATE)
        if isinstance(cause, ssl.SSLError) and "ALERT" in str(cause) and _is_about_certificate(str(cause)):
            return KmsError(f"the service refused the client's certificate: {error}", Code.CERTIFICATE)
        cause = cause.__cause__ or cause.__context__
    return KmsError(f"there is no answer of the service: {error or type(error).__name__}", Code.UNREACHABLE, retryable=True)


def _is_about_certificate(text: str) -> bool:
    return "CERTIFICATE" in text.upper() or "UNKNOWN_CA" in text.upper()


def pause_before(attempt: int, backoff: float, error: KmsError, response: httpx.Response | None) -> float | None:
    """How long to wait before the next attempt, in seconds; None if it would not help."""
    if not error.retryable:
        return None
    # The service writes seconds. A time, as some proxies write it, does not count.
    text = "" if response is None else response.headers.get("Retry-After", "")
    asked = float(text) if text.isascii() and text.isdigit() else 0.0
    return None if asked > MAX_PAUSE else asked + random.uniform(0, backoff * 2**attempt)
