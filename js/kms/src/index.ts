/**
 * A client of bulla's key management service (`bulla serve`). It signs, verifies, encrypts,
 * decrypts and makes message authentication codes (MACs) with keys that never leave the service.
 *
 * A key is named by its label, by its id (`TENANT/PURPOSE/ALGORITHM/UUID`), or by the id of one
 * version, as {@link Signature.key} has it.
 *
 * A call repeats its request, at most as often as {@link ClientOptions.retries} says, in these
 * cases:
 *
 * - The service refused it and says that a repetition may help ({@link KmsError.retryable}). It
 *   changed nothing then.
 * - There was no answer, or a proxy answered 429 or 503 instead of the service. Each request that
 *   changes something has a key of its own (`Idempotency-Key`), by which the service recognizes the
 *   repetition: it makes no change twice.
 *
 * The pause is at least as long as the answer asks for (`Retry-After`). A call that would have to
 * pause for more than 30 seconds fails instead. A certificate that one side refuses stays refused,
 * so that the request is not repeated.
 */
export type {
  Approval,
  ApprovalRule,
  ApprovalStatement,
  ApprovalSubject,
  Approver,
  AuditEntry,
  Ciphertext,
  DataKey,
  Key,
  KeyDerivation,
  KeyVersion,
  LoginToken,
  Mac,
  NewKey,
  Plaintext,
  Rotation,
  Signature,
  SignedJwt,
  Verdict,
} from "./answers.js";
export {
  type CallOptions,
  Client,
  type ClientOptions,
  type DataKeyOptions,
  type Decider,
  type DecryptItem,
  type DecryptOptions,
  type EncryptionOptions,
  type EncryptItem,
  type ItemResult,
  type JwtOptions,
  type LoginOptions,
  type NewApproval,
  type SignatureOptions,
  type SignItem,
  type SignOptions,
  type SignResult,
  type VerifyItem,
  type VerifyMacItem,
} from "./client.js";
export { BatchError, type ClientCode, type Code, type ErrorDetails, KmsError, type ServiceCode } from "./error.js";
