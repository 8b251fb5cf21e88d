/**
 * What went wrong, for programs: the codes of the service, as `spec/http-api.md` explains them.
 * Codes never change once they are released.
 */
export type ServiceCode =
  | "already_exists"
  | "approval_required"
  | "audit_log_corrupt"
  | "audit_log_too_new"
  | "body_timeout"
  | "body_too_large"
  | "busy"
  | "clock_out_of_range"
  | "conflict"
  | "cross_site_request"
  | "destruction_not_due"
  | "device_failed"
  | "device_unavailable"
  | "encrypted_file_corrupt"
  | "encrypted_file_too_new"
  | "endpoint_not_found"
  | "forbidden"
  | "guard_mismatch"
  | "idempotency_key_reused"
  | "internal"
  | "invalid_argument"
  | "invalid_ciphertext"
  | "invalid_id"
  | "invalid_public_key"
  | "invalid_token"
  | "io"
  | "key_destroyed"
  | "key_disabled"
  | "key_file_mode"
  | "key_file_owner"
  | "key_file_type"
  | "key_not_found"
  | "key_pending_destruction"
  | "key_usage_mismatch"
  | "keystore_changed"
  | "keystore_corrupt"
  | "keystore_too_new"
  | "label_taken"
  | "locked"
  | "malformed_backup"
  | "malformed_encrypted_file"
  | "malformed_key"
  | "malformed_key_file"
  | "malformed_manifest"
  | "malformed_proof"
  | "malformed_request"
  | "malformed_signature"
  | "method_not_allowed"
  | "no_audit_log"
  | "no_private_key"
  | "not_exportable"
  | "not_found"
  | "not_latest_version"
  | "not_supported"
  | "outcome_unknown"
  | "permission_denied"
  | "pin_locked"
  | "quota_exceeded"
  | "random_unavailable"
  | "rate_limited"
  | "reserved_message"
  | "revision_unavailable"
  | "rolled_back"
  | "sealed"
  | "shutting_down"
  | "signature_too_new"
  | "storage_full"
  | "too_large"
  | "too_many_items"
  | "unauthenticated"
  | "unavailable"
  | "unknown_version"
  | "unsupported_algorithm"
  | "unsupported_format"
  | "uses_exhausted"
  | "version_not_usable"
  | "versions_exhausted"
  | "wrong_decryption_key"
  | "wrong_key_file"
  | "wrong_passphrase"
  | "wrong_pin"
  | "wrong_unlock_method";

/**
 * The codes of this client:
 *
 * - `http`: the answer with this status is not one of the service. A proxy in between sent it, for
 *   example.
 * - `certificate`: the client does not trust the service's certificate, or the service refused the
 *   client's.
 * - `unreachable`: there was no answer.
 * - `timeout`: there was none in time.
 * - `unexpected_answer`: the answer is not what this client expects.
 * - `closed`: the client was closed.
 */
export type ClientCode = "http" | "certificate" | "unreachable" | "timeout" | "unexpected_answer" | "closed";

/** A code of this client or of the service, also one that a newer service has. */
export type Code = ServiceCode | ClientCode | (string & {});

/** The details of a {@link KmsError}. */
export interface ErrorDetails {
  code: Code;
  retryable?: boolean | undefined;
  status?: number | undefined;
  requestId?: string | undefined;
  cause?: unknown;
}

/**
 * The error of every call that fails, except those that the caller's signal ends. `cause` is the
 * error of `fetch`, if there was one.
 *
 * Some platforms do not say that a certificate is the reason, and the code is `unreachable`:
 * browsers, and Node if the service refuses the client's certificate in TLS 1.3.
 */
export class KmsError extends Error {
  override readonly name: string = "KmsError";

  readonly code: Code;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** The HTTP status; 200 for one item of a batch, and 0 without an answer. */
  readonly status: number;
  /** The name of the request in the service's log. */
  readonly requestId: string | undefined;

  constructor(message: string, { code, retryable = false, status = 0, requestId, cause }: ErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = retryable;
    this.status = status;
    this.requestId = requestId;
  }
}

/**
 * The error of {@link Client.signMany} and {@link Client.verifyMany}. A long batch is several
 * requests: `results` are those of the requests before the one that failed, and belong to the first
 * items. `cause` is the error of that request.
 */
export class BatchError<T = unknown> extends KmsError {
  override readonly name = "BatchError";

  readonly results: readonly T[];

  constructor(results: readonly T[], cause: KmsError) {
    const { code, retryable, status, requestId } = cause;
    super(cause.message, { code, retryable, status, requestId, cause });
    this.results = results;
  }
}
