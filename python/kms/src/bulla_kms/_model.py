"""Keys, versions and signatures, as the service's answers have them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

from ._error import Code, KmsError

T = TypeVar("T")

HashFunction = Literal["sha256", "sha384", "sha512"]
"""A hash function by which keys of ECDSA and RSA sign."""

RsaPadding = Literal["pss", "pkcs1v15"]
"""How an RSA key pads a digest. The salt of PSS is as long as the digest."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """When the service rotates a key by itself; None is no bound."""

    max_age: timedelta | None = None
    max_uses: int | None = None

    def to_json(self) -> dict[str, int]:
        """The settings that are bounds."""
        seconds = None if self.max_age is None else int(self.max_age.total_seconds())
        named = {"max_age_seconds": seconds, "max_uses": self.max_uses}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Approver:
    """A person whose approval counts."""

    name: str
    """The name by which the service knows the person: the holder of their tokens."""
    public_key: bytes
    """The key of Ed25519 that signs their approvals: 32 bytes."""


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """Who must approve each use of a key."""

    threshold: int
    """How many people must approve."""
    approvers: tuple[Approver, ...]
    max_age: timedelta
    """For how long approvals count after the request was made, in whole seconds."""
    requester_may_approve: bool = False
    """Whether the person who made a request may be one of those who approve it."""

    def to_json(self) -> dict[str, Any]:
        """The rule as the service reads it."""
        approvers = [{"name": one.name, "public_key": b64encode(one.public_key).decode()} for one in self.approvers]
        seconds = self.max_age // timedelta(seconds=1)
        named = {"threshold": self.threshold, "approvers": approvers, "max_seconds": seconds}
        return {**named, "requester_may_approve": True} if self.requester_may_approve else named


@dataclass(frozen=True, slots=True)
class ApprovalSubject:
    """What a key is to be used for, once."""

    operation: str
    """`sign` or `decrypt`."""
    digest: str
    """The BLAKE3 digest of the message or the ciphertext: 64 hexadecimal digits."""
    size: int
    """Its length in bytes."""
    name: str | None = None
    """The name of the file, if the message is one. Nobody can check it."""

    def to_json(self) -> dict[str, Any]:
        """The subject as the service reads it."""
        named = {"operation": self.operation, "digest": self.digest, "size": self.size}
        return named if self.name is None else {**named, "name": self.name}


@dataclass(frozen=True, slots=True)
class ApprovalStatement:
    """What an approver said."""

    approver: str
    decision: str
    """`approve` or `reject`."""
    signature: bytes


@dataclass(frozen=True, slots=True)
class Approval:
    """A request for approval, and who has decided about it."""

    id: str
    """What `sign` and `decrypt` take as `approval`."""
    key: str
    """The key version to use."""
    subject: ApprovalSubject
    requester: str
    reason: str
    """Why, in the words of the requester."""
    created: datetime
    expires: datetime
    state: str
    """`waiting`, `approved`, `rejected` or `used`."""
    threshold: int
    """How many people must approve."""
    statements: tuple[ApprovalStatement, ...]
    """The decisions, the first one first."""
    request: str = field(repr=False)
    """What approvers sign: the request as the service wrote it."""


@dataclass(frozen=True, slots=True)
class KeyVersion:
    """One version of a key. The latest signs, encrypts or makes MACs, and all verify or decrypt."""

    id: str
    """The key version id: the key id, and `/vN`."""
    version: int
    public_key: bytes | None
    """None if the algorithm is symmetric."""
    created: datetime
    retired: datetime | None
    """When the next version took its place; None for the latest."""
    state: str
    """`usable`, `revoked` or `destroyed`."""
    origin: str
    """`generated`, `imported` or `public_only`."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key, without its private keys."""

    id: str
    """`TENANT/PURPOSE/ALGORITHM/UUID`."""
    label: str | None
    algorithm: str
    state: str
    """`enabled`, `disabled`, `pending_destruction` or `destroyed`."""
    revision: int
    backend: str
    exportable: bool
    signs_digests: bool
    """Whether it signs digests, and so no statements."""
    minimum_version: int
    derivation: str
    """`none`; `per_context` or `convergent` for a key that encrypts with keys derived from a context."""
    rotation: Rotation
    approval_rule: ApprovalRule | None
    """Who must approve each use of the key; None if nobody must."""
    latest_version: int
    """The number of the version that signs, encrypts or makes MACs."""
    versions: tuple[KeyVersion, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature, and the key version that made it."""

    key: str
    """The key version id: `verify` takes it as a key."""
    version: int
    signature: bytes


@dataclass(frozen=True, slots=True)
class SignedJwt:
    """A JWT that the service signed."""

    key: str
    """The key version id of the version that signed, which is also the JWT's `kid`."""
    version: int
    jwt: str = field(repr=False)
    """The JWT in the compact form. It works for anyone who holds it."""
    id: str
    """Its claim `jti`."""
    expires: datetime


@dataclass(frozen=True, slots=True)
class Login:
    """How a client logs in with a JWT of its platform.

    It logs in before its first request, and again when three quarters of the token's lifetime have
    passed.
    """

    role: str
    """A role in the service's configuration, which says which JWTs give it."""
    jwt: Callable[[], str]
    """Returns a JWT that is valid now, for example the content of the file that Kubernetes renews.

    What it raises, the call raises.
    """


@dataclass(frozen=True, slots=True)
class LoginToken:
    """What the service gave for a JWT."""

    token: str = field(repr=False)
    """A token for a client. The service does not keep it."""
    revocation_id: str
    """The id that revokes the token, and all tokens that are made from it."""
    expires: datetime
    holder: str
    """The caller's name in the audit log."""
    operations: list[str]
    """What the token permits."""


@dataclass(frozen=True, slots=True)
class SignItem:
    """One message of a batch."""

    key: str
    message: bytes


@dataclass(frozen=True, slots=True)
class VerifyItem:
    """One signature of a batch."""

    key: str
    message: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a signature or a MAC is valid. Where nothing could be verified, it is not, and `error` says why."""

    valid: bool
    error: KmsError | None = None

    def __bool__(self) -> bool:
        return self.valid


@dataclass(frozen=True, slots=True)
class Ciphertext:
    """A ciphertext, and the key version that made it."""

    key: str
    """The key version id."""
    version: int
    ciphertext: bytes


@dataclass(frozen=True, slots=True)
class Plaintext:
    """A decrypted plaintext, and the key version that decrypted it. Its `repr` does not show it."""

    key: str
    """The key version id."""
    version: int
    plaintext: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class DataKey:
    """A key that encrypts data outside the service, and the same key encrypted.

    Its `repr` does not show the data key.
    """

    wrapped: Ciphertext
    """The data key encrypted: keep it beside the data. `decrypt` decrypts it."""
    plaintext: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Mac:
    """A message authentication code (MAC), and the key version that made it."""

    key: str
    """The key version id: `verify_mac` takes it as a key."""
    version: int
    mac: bytes


@dataclass(frozen=True, slots=True)
class EncryptItem:
    """One plaintext of a batch."""

    plaintext: bytes = field(repr=False)
    associated_data: bytes = b""
    context: bytes = b""


@dataclass(frozen=True, slots=True)
class DecryptItem:
    """One ciphertext of a batch, to decrypt or to encrypt again."""

    ciphertext: bytes
    associated_data: bytes = b""
    context: bytes = b""


@dataclass(frozen=True, slots=True)
class VerifyMacItem:
    """One message authentication code (MAC) of a batch."""

    message: bytes
    mac: bytes
    version: int | None = None
    """The number of the version that made it; the latest if it is None."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of the audit log."""

    number: int
    """Entries have numbers from 0 without gaps."""
    time: datetime
    actor: str
    """The caller, person or program on whose behalf it was done."""
    operation: str
    key: str | None
    """The key or the key version that was used."""
    digest: str | None
    """The BLAKE3 digest of the message, in hexadecimal."""
    result: str
    """`ok`, a verdict, or the code of an error."""
    line: str
    """The entry's line in the log."""


class Answer:
    """An object in JSON. Its readers refuse values of other types."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, Mapping):
            raise unexpected("an object")
        self._fields: Mapping[str, Any] = value

    def get(self, name: str, kind: type[T]) -> T:
        """The field with this name."""
        value = self._fields.get(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise unexpected(f"a value of the type {kind.__name__} in {name}")
        return value

    def optional(self, name: str, kind: type[T]) -> T | None:
        """The field with this name, if it is there."""
        return None if self._fields.get(name) is None else self.get(name, kind)

    def is_true(self, name: str) -> bool:
        """Nothing but `true` is true."""
        return self._fields.get(name) is True

    def bytes(self, name: str) -> bytes:
        """The bytes whose base64 the field has."""
        try:
            return b64decode(self.get(name, str), validate=True)
        except ValueError as error:
            raise unexpected(f"base64 in {name}") from error

    def time(self, name: str) -> datetime | None:
        """The moment that the field names."""
        text = self.optional(name, str)
        try:
            return None if text is None else datetime.fromisoformat(text)
        except ValueError as error:
            raise unexpected(f"a time in {name}") from error

    def present_time(self, name: str) -> datetime:
        """The moment that the field names, which must be there."""
        time = self.time(name)
        if time is None:
            raise unexpected(f"a time in {name}")
        return time

    def texts(self, name: str) -> list[str]:
        """The texts in a list."""
        value = self.get(name, list)
        if not all(isinstance(item, str) for item in value):
            raise unexpected(f"texts in {name}")
        return value

    def list(self, name: str, read: Callable[[Answer], T]) -> list[T]:
        """The objects in a list."""
        return [read(Answer(item)) for item in self.get(name, list)]

    def present(self, name: str) -> Answer:
        """An object in the object."""
        return Answer(self._fields.get(name))

    def json(self) -> str:
        """The object as JSON without white space, its fields in the order of the answer."""
        return json.dumps(self._fields, ensure_ascii=False, separators=(",", ":"))

    def part(self, name: str) -> Answer | None:
        """An object in the object, if it is there."""
        value = self._fields.get(name)
        return None if value is None else Answer(value)


def unexpected(expected: str) -> KmsError:
    """The error for an answer without what this client expects."""
    return KmsError(f"the service's answer is not what this client expects: it has not {expected}", Code.UNEXPECTED_ANSWER)


def key_of(said: Answer) -> Key:
    """A key."""
    rotation = said.part("rotation")
    seconds = rotation.optional("max_age_seconds", int) if rotation else None
    uses = rotation.optional("max_uses", int) if rotation else None
    return Key(
        id=said.get("key", str),
        label=said.optional("label", str),
        algorithm=said.get("algorithm", str),
        state=said.get("state", str),
        revision=said.get("revision", int),
        backend=said.get("backend", str),
        exportable=said.is_true("exportable"),
        signs_digests=said.is_true("signs_digests"),
        minimum_version=said.get("minimum_version", int),
        derivation=said.optional("derivation", str) or "none",
        rotation=Rotation(None if seconds is None else timedelta(seconds=seconds), uses),
        approval_rule=approval_rule_of(said.part("approval_rule")),
        latest_version=said.get("head", int),
        versions=tuple(said.list("versions", version_of)),
    )


def approval_rule_of(said: Answer | None) -> ApprovalRule | None:
    """The rule of a key, if it has one."""
    if said is None:
        return None
    approvers = said.list("approvers", lambda one: Approver(one.get("name", str), one.bytes("public_key")))
    max_age = timedelta(seconds=said.get("max_seconds", int))
    return ApprovalRule(said.get("threshold", int), tuple(approvers), max_age, said.is_true("requester_may_approve"))


def approval_of(said: Answer) -> Approval:
    """A request for approval."""
    request = said.present("request")
    subject = request.present("subject")
    return Approval(
        id=request.get("id", str),
        key=request.get("key", str),
        subject=ApprovalSubject(
            operation=subject.get("operation", str),
            digest=subject.optional("digest", str) or "",
            size=subject.optional("size", int) or 0,
            name=subject.optional("name", str),
        ),
        requester=request.get("requester", str),
        reason=request.get("reason", str),
        created=request.present_time("created"),
        expires=request.present_time("expires"),
        state=said.get("state", str),
        threshold=said.get("threshold", int),
        statements=tuple(said.list("statements", statement_of)),
        request=request.json(),
    )


def statement_of(said: Answer) -> ApprovalStatement:
    """What an approver said."""
    return ApprovalStatement(said.get("approver", str), said.get("decision", str), said.bytes("signature"))


def version_of(said: Answer) -> KeyVersion:
    """A version of a key."""
    return KeyVersion(
        id=said.get("id", str),
        version=said.get("version", int),
        public_key=None if said.optional("public_key", str) is None else said.bytes("public_key"),
        created=said.present_time("created"),
        retired=said.time("retired"),
        state=said.get("state", str),
        origin=said.get("origin", str),
    )


def entry_of(said: Answer) -> AuditEntry:
    """An entry of the audit log."""
    return AuditEntry(
        number=said.get("number", int),
        time=said.present_time("time"),
        actor=said.get("who", str),
        operation=said.get("operation", str),
        key=said.optional("key", str),
        digest=said.optional("digest", str),
        result=said.get("result", str),
        line=said.get("line", str),
    )


def signature_of(said: Answer) -> Signature:
    """A signature."""
    return Signature(said.get("key", str), said.get("version", int), said.bytes("signature"))


def login_token_of(said: Answer) -> LoginToken:
    """The token of a login."""
    token, revocation_id, holder = (said.get(name, str) for name in ("token", "revocation_id", "holder"))
    return LoginToken(token, revocation_id, said.present_time("expires"), holder, said.texts("operations"))


def signed_jwt_of(said: Answer) -> SignedJwt:
    """A signed JWT."""
    key, jwt, id = (said.get(name, str) for name in ("key", "jwt", "id"))
    return SignedJwt(key, said.get("version", int), jwt, id, said.present_time("expires"))


def ciphertext_of(said: Answer) -> Ciphertext:
    """A ciphertext."""
    return Ciphertext(said.get("key", str), said.get("version", int), said.bytes("ciphertext"))


def plaintext_of(said: Answer) -> Plaintext:
    """A plaintext."""
    return Plaintext(said.get("key", str), said.get("version", int), said.bytes("plaintext"))


def data_key_of(said: Answer) -> DataKey:
    """A data key."""
    return DataKey(ciphertext_of(said), said.bytes("plaintext"))


def mac_of(said: Answer) -> Mac:
    """A message authentication code."""
    return Mac(said.get("key", str), said.get("version", int), said.bytes("mac"))


def refusal_of(said: Answer, status: int = 200, request_id: str | None = None) -> KmsError:
    """The error in an answer."""
    code = said.get("code", str)
    message = said.optional("message", str) or code
    return KmsError(message, code, retryable=said.is_true("retryable"), status=status, request_id=request_id)


def result_by(read: Callable[[Answer], T]) -> Callable[[Answer], T | KmsError]:
    """What reads one result of a batch: a value or an error."""

    def result(said: Answer) -> T | KmsError:
        error = said.part("error")
        return read(said) if error is None else refusal_of(error)

    return result


def verdict_of(said: Answer) -> Verdict:
    """One result of a batch of signatures or MACs."""
    error = said.part("error")
    return Verdict(said.is_true("valid")) if error is None else Verdict(False, refusal_of(error))
