"""The error of every call that fails."""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class Code(StrEnum):
    """What went wrong, for programs. Codes never change once they are released.

    The service may have newer ones than this client: `KmsError.code` is then a plain string.
    """

    # The codes of the service, as spec/http-api.md explains them.
    ALREADY_EXISTS = "already_exists"
    APPROVAL_REQUIRED = "approval_required"
    AUDIT_LOG_CORRUPT = "audit_log_corrupt"
    AUDIT_LOG_TOO_NEW = "audit_log_too_new"
    BODY_TIMEOUT = "body_timeout"
    BODY_TOO_LARGE = "body_too_large"
    BUSY = "busy"
    CLOCK_OUT_OF_RANGE = "clock_out_of_range"
    CONFLICT = "conflict"
    CROSS_SITE_REQUEST = "cross_site_request"
    DESTRUCTION_NOT_DUE = "destruction_not_due"
    DEVICE_FAILED = "device_failed"
    DEVICE_UNAVAILABLE = "device_unavailable"
    ENCRYPTED_FILE_CORRUPT = "encrypted_file_corrupt"
    ENCRYPTED_FILE_TOO_NEW = "encrypted_file_too_new"
    ENDPOINT_NOT_FOUND = "endpoint_not_found"
    FORBIDDEN = "forbidden"
    GUARD_MISMATCH = "guard_mismatch"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    INTERNAL = "internal"
    INVALID_ARGUMENT = "invalid_argument"
    INVALID_CIPHERTEXT = "invalid_ciphertext"
    INVALID_ID = "invalid_id"
    INVALID_PUBLIC_KEY = "invalid_public_key"
    INVALID_TOKEN = "invalid_token"
    IO = "io"
    KEY_DESTROYED = "key_destroyed"
    KEY_DISABLED = "key_disabled"
    KEY_FILE_MODE = "key_file_mode"
    KEY_FILE_OWNER = "key_file_owner"
    KEY_FILE_TYPE = "key_file_type"
    KEY_NOT_FOUND = "key_not_found"
    KEY_PENDING_DESTRUCTION = "key_pending_destruction"
    KEY_USAGE_MISMATCH = "key_usage_mismatch"
    KEYSTORE_CHANGED = "keystore_changed"
    KEYSTORE_CORRUPT = "keystore_corrupt"
    KEYSTORE_TOO_NEW = "keystore_too_new"
    LABEL_TAKEN = "label_taken"
    LOCKED = "locked"
    MALFORMED_BACKUP = "malformed_backup"
    MALFORMED_ENCRYPTED_FILE = "malformed_encrypted_file"
    MALFORMED_KEY = "malformed_key"
    MALFORMED_KEY_FILE = "malformed_key_file"
    MALFORMED_MANIFEST = "malformed_manifest"
    MALFORMED_PROOF = "malformed_proof"
    MALFORMED_REQUEST = "malformed_request"
    MALFORMED_SIGNATURE = "malformed_signature"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    NO_AUDIT_LOG = "no_audit_log"
    NO_PRIVATE_KEY = "no_private_key"
    NOT_EXPORTABLE = "not_exportable"
    NOT_FOUND = "not_found"
    NOT_LATEST_VERSION = "not_latest_version"
    NOT_SUPPORTED = "not_supported"
    OUTCOME_UNKNOWN = "outcome_unknown"
    PERMISSION_DENIED = "permission_denied"
    PIN_LOCKED = "pin_locked"
    QUOTA_EXCEEDED = "quota_exceeded"
    RANDOM_UNAVAILABLE = "random_unavailable"
    RATE_LIMITED = "rate_limited"
    RESERVED_MESSAGE = "reserved_message"
    REVISION_UNAVAILABLE = "revision_unavailable"
    ROLLED_BACK = "rolled_back"
    SEALED = "sealed"
    SHUTTING_DOWN = "shutting_down"
    SIGNATURE_TOO_NEW = "signature_too_new"
    STORAGE_FULL = "storage_full"
    TOO_LARGE = "too_large"
    TOO_MANY_ITEMS = "too_many_items"
    UNAUTHENTICATED = "unauthenticated"
    UNAVAILABLE = "unavailable"
    UNKNOWN_VERSION = "unknown_version"
    UNSUPPORTED_ALGORITHM = "unsupported_algorithm"
    UNSUPPORTED_FORMAT = "unsupported_format"
    USES_EXHAUSTED = "uses_exhausted"
    VERSION_NOT_USABLE = "version_not_usable"
    VERSIONS_EXHAUSTED = "versions_exhausted"
    WRONG_DECRYPTION_KEY = "wrong_decryption_key"
    WRONG_KEY_FILE = "wrong_key_file"
    WRONG_PASSPHRASE = "wrong_passphrase"
    WRONG_PIN = "wrong_pin"
    WRONG_UNLOCK_METHOD = "wrong_unlock_method"

    # The codes of this client.
    HTTP = "http"
    """The answer is not one of the service. A proxy in between sent it, for example."""
    CERTIFICATE = "certificate"
    """The client does not trust the service's certificate, or the service refused the client's."""
    UNREACHABLE = "unreachable"
    """There was no answer."""
    UNEXPECTED_ANSWER = "unexpected_answer"
    """The answer is not what this client expects."""


class KmsError(Exception):
    """A call failed. `__cause__` is the error of httpx, if there was one."""

    code: str
    """What went wrong, for programs: one of `Code`, or a newer one."""
    message: str
    """What went wrong, for people."""
    retryable: bool
    """Whether the same request may succeed later."""
    status: int
    """The HTTP status; 200 for one item of a batch, and 0 without an answer."""
    request_id: str | None
    """The name of the request in the service's log."""

    def __init__(
        self, message: str, code: str, *, retryable: bool = False, status: int = 0, request_id: str | None = None
    ) -> None:
        named = f"{code}, request {request_id}" if request_id else code
        super().__init__(f"{message} ({named})")
        self.code = code
        self.message = message
        self.retryable = retryable
        self.status = status
        self.request_id = request_id


class BatchError(KmsError, Generic[T]):
    """A request of `sign_many` or `verify_many` failed. `__cause__` is its error.

    A long batch is several requests.
    """

    results: list[T]
    """The results of the requests before the one that failed. They belong to the first items."""

    def __init__(self, results: list[T], error: KmsError) -> None:
        super().__init__(
            error.message, error.code, retryable=error.retryable, status=error.status, request_id=error.request_id
        )
        self.results = results
