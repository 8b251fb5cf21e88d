package kms

// A Code says what went wrong, for programs. Codes never change once they are released. A Code is
// an error to compare with:
//
//	if errors.Is(err, kms.CodeKeyNotFound) {
type Code string

// Error makes a Code a target of errors.Is.
func (c Code) Error() string { return "kms: " + string(c) }

// The codes of the service, as spec/http-api.md explains them.
const (
	CodeAlreadyExists          Code = "already_exists"
	CodeApprovalRequired       Code = "approval_required"
	CodeAuditLogCorrupt        Code = "audit_log_corrupt"
	CodeAuditLogTooNew         Code = "audit_log_too_new"
	CodeBodyTimeout            Code = "body_timeout"
	CodeBodyTooLarge           Code = "body_too_large"
	CodeBusy                   Code = "busy"
	CodeClockOutOfRange        Code = "clock_out_of_range"
	CodeConflict               Code = "conflict"
	CodeCrossSiteRequest       Code = "cross_site_request"
	CodeDestructionNotDue      Code = "destruction_not_due"
	CodeDeviceFailed           Code = "device_failed"
	CodeDeviceUnavailable      Code = "device_unavailable"
	CodeEncryptedFileCorrupt   Code = "encrypted_file_corrupt"
	CodeEncryptedFileTooNew    Code = "encrypted_file_too_new"
	CodeEndpointNotFound       Code = "endpoint_not_found"
	CodeForbidden              Code = "forbidden"
	CodeGuardMismatch          Code = "guard_mismatch"
	CodeIdempotencyKeyReused   Code = "idempotency_key_reused"
	CodeInternal               Code = "internal"
	CodeInvalidArgument        Code = "invalid_argument"
	CodeInvalidCiphertext      Code = "invalid_ciphertext"
	CodeInvalidID              Code = "invalid_id"
	CodeInvalidPublicKey       Code = "invalid_public_key"
	CodeInvalidToken           Code = "invalid_token"
	CodeIO                     Code = "io"
	CodeKeyDestroyed           Code = "key_destroyed"
	CodeKeyDisabled            Code = "key_disabled"
	CodeKeyFileMode            Code = "key_file_mode"
	CodeKeyFileOwner           Code = "key_file_owner"
	CodeKeyFileType            Code = "key_file_type"
	CodeKeyNotFound            Code = "key_not_found"
	CodeKeyPendingDestruction  Code = "key_pending_destruction"
	CodeKeyUsageMismatch       Code = "key_usage_mismatch"
	CodeKeystoreChanged        Code = "keystore_changed"
	CodeKeystoreCorrupt        Code = "keystore_corrupt"
	CodeKeystoreTooNew         Code = "keystore_too_new"
	CodeLabelTaken             Code = "label_taken"
	CodeLocked                 Code = "locked"
	CodeMalformedBackup        Code = "malformed_backup"
	CodeMalformedEncryptedFile Code = "malformed_encrypted_file"
	CodeMalformedKey           Code = "malformed_key"
	CodeMalformedKeyFile       Code = "malformed_key_file"
	CodeMalformedManifest      Code = "malformed_manifest"
	CodeMalformedProof         Code = "malformed_proof"
	CodeMalformedRequest       Code = "malformed_request"
	CodeMalformedSignature     Code = "malformed_signature"
	CodeMethodNotAllowed       Code = "method_not_allowed"
	CodeNoAuditLog             Code = "no_audit_log"
	CodeNoPrivateKey           Code = "no_private_key"
	CodeNotExportable          Code = "not_exportable"
	CodeNotFound               Code = "not_found"
	CodeNotLatestVersion       Code = "not_latest_version"
	CodeNotSupported           Code = "not_supported"
	CodeOutcomeUnknown         Code = "outcome_unknown"
	CodePermissionDenied       Code = "permission_denied"
	CodePINLocked              Code = "pin_locked"
	CodeQuotaExceeded          Code = "quota_exceeded"
	CodeRandomUnavailable      Code = "random_unavailable"
	CodeRateLimited            Code = "rate_limited"
	CodeReservedMessage        Code = "reserved_message"
	CodeRevisionUnavailable    Code = "revision_unavailable"
	CodeRolledBack             Code = "rolled_back"
	CodeSealed                 Code = "sealed"
	CodeShuttingDown           Code = "shutting_down"
	CodeSignatureTooNew        Code = "signature_too_new"
	CodeStorageFull            Code = "storage_full"
	CodeTooLarge               Code = "too_large"
	CodeTooManyItems           Code = "too_many_items"
	CodeUnauthenticated        Code = "unauthenticated"
	CodeUnavailable            Code = "unavailable"
	CodeUnknownVersion         Code = "unknown_version"
	CodeUnsupportedAlgorithm   Code = "unsupported_algorithm"
	CodeUnsupportedFormat      Code = "unsupported_format"
	CodeUsesExhausted          Code = "uses_exhausted"
	CodeVersionNotUsable       Code = "version_not_usable"
	CodeVersionsExhausted      Code = "versions_exhausted"
	CodeWrongDecryptionKey     Code = "wrong_decryption_key"
	CodeWrongKeyFile           Code = "wrong_key_file"
	CodeWrongPassphrase        Code = "wrong_passphrase"
	CodeWrongPIN               Code = "wrong_pin"
	CodeWrongUnlockMethod      Code = "wrong_unlock_method"
)

// The codes of this client.
const (
	// CodeHTTP: the answer is not one of the service. A proxy in between sent it, for example.
	CodeHTTP Code = "http"
	// CodeCertificate: the client does not trust the service's certificate, or the service refused
	// the client's.
	CodeCertificate Code = "certificate"
)
