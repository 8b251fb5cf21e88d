"""A client of bulla's key management service.

It signs, verifies, encrypts, decrypts and makes message authentication codes (MACs) with keys that
never leave the service.

`Client` is for programs without asyncio, and `AsyncClient` for those with it.

A call repeats its request in these cases:

- The service refused it and says that a repetition may help. It changed nothing then.
- There was no answer, or a proxy answered 429 or 503 instead of the service. Each request that
  changes something has a key of its own (`Idempotency-Key`), by which the service recognizes the
  repetition: it makes no change twice.

The pause is at least as long as the answer asks for (`Retry-After`). A call that would have to
pause for more than 30 seconds fails instead. A certificate that one side refuses stays refused.
"""

from ._async_client import AsyncClient
from ._client import Client
from ._error import BatchError, Code, KmsError
from ._model import (
    Approval,
    ApprovalRule,
    ApprovalStatement,
    ApprovalSubject,
    Approver,
    AuditEntry,
    Ciphertext,
    DataKey,
    DecryptItem,
    EncryptItem,
    HashFunction,
    Key,
    KeyVersion,
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

__all__ = [
    "Approval",
    "ApprovalRule",
    "ApprovalStatement",
    "ApprovalSubject",
    "Approver",
    "AsyncClient",
    "AuditEntry",
    "BatchError",
    "Ciphertext",
    "Client",
    "Code",
    "DataKey",
    "DecryptItem",
    "EncryptItem",
    "HashFunction",
    "Key",
    "KeyVersion",
    "KmsError",
    "Login",
    "LoginToken",
    "Mac",
    "Plaintext",
    "Rotation",
    "RsaPadding",
    "SignItem",
    "Signature",
    "SignedJwt",
    "Verdict",
    "VerifyItem",
    "VerifyMacItem",
]
