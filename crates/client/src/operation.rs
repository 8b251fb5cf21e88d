//! The service's operations: their names, methods and paths.

use hyper::Method;

/// What a request does to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes nothing, so that a repetition does no harm.
    None,
    /// It changes something, and carries an idempotency key.
    Change,
}

macro_rules! operations {
    ($($variant:ident => $id:literal, $method:ident $path:literal, $effect:ident;)*) => {
        /// An operation of the service, as `spec/openapi.json` describes it.
        ///
        /// ```
        /// use bulla_client::Operation;
        ///
        /// for operation in Operation::ALL.iter().filter(|operation| operation.is_change()) {
        ///     println!("{}: {} {}", operation.id(), operation.method(), operation.path());
        /// }
        /// ```
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Operation {
            $(
                #[doc = concat!("`", stringify!($method), " ", $path, "`")]
                $variant,
            )*
        }

        impl Operation {
            /// All operations that this client calls.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The operation's id in `spec/openapi.json`: `signatures_sign`.
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$variant => $id,)*
                }
            }

            /// The HTTP method.
            pub const fn method(self) -> Method {
                match self {
                    $(Self::$variant => Method::$method,)*
                }
            }

            /// The path with its parameters: `/api/v1/keys/{key}/sign`. It names no key.
            pub const fn path(self) -> &'static str {
                match self {
                    $(Self::$variant => $path,)*
                }
            }

            pub(crate) const fn effect(self) -> Effect {
                match self {
                    $(Self::$variant => Effect::$effect,)*
                }
            }
        }
    };
}

operations! {
    Health => "health_health", GET "/api/v1/health", None;
    Readiness => "health_ready", GET "/api/v1/ready", None;
    Approvals => "approvals_list", GET "/api/v1/approvals", None;
    RequestApproval => "approvals_request", POST "/api/v1/approvals", None;
    Approval => "approvals_read", GET "/api/v1/approvals/{id}", None;
    Approve => "approvals_approve", POST "/api/v1/approvals/{id}/approve", None;
    Reject => "approvals_reject", POST "/api/v1/approvals/{id}/reject", None;
    ImportKey => "keys_import", POST "/api/v1/import", Change;
    JsonWebKeySet => "keys_jwks", GET "/api/v1/jwks", None;
    Keys => "keys_list", GET "/api/v1/keys", None;
    CreateKey => "keys_create", POST "/api/v1/keys", Change;
    Key => "keys_read", GET "/api/v1/keys/{key}", None;
    DestroyKey => "keys_destroy", DELETE "/api/v1/keys/{key}", Change;
    UpdateKey => "keys_update", PATCH "/api/v1/keys/{key}", Change;
    AttestKey => "keys_attest", POST "/api/v1/keys/{key}/attest", None;
    CancelDestruction => "keys_cancel_destruction", POST "/api/v1/keys/{key}/cancel-destruction", Change;
    ExportKey => "keys_export", POST "/api/v1/keys/{key}/export", None;
    ImportVersion => "keys_import_version", POST "/api/v1/keys/{key}/import", Change;
    PublicKey => "keys_public", GET "/api/v1/keys/{key}/public", None;
    RotateKey => "keys_rotate", POST "/api/v1/keys/{key}/rotate", Change;
    RefreshShares => "keys_refresh_shares", POST "/api/v1/keys/{key}/refresh-shares", Change;
    RepairShares => "keys_repair_shares", POST "/api/v1/keys/{key}/repair-shares", Change;
    ScheduleDestruction => "keys_schedule", POST "/api/v1/keys/{key}/schedule-destruction", Change;
    Successions => "keys_successions", GET "/api/v1/keys/{key}/successions", None;
    DestroyVersion => "keys_destroy_version", POST "/api/v1/keys/{key}/versions/{version}/destroy", Change;
    RevokeVersion => "keys_revoke_version", POST "/api/v1/keys/{key}/versions/{version}/revoke", Change;
    Sign => "signatures_sign", POST "/api/v1/keys/{key}/sign", None;
    SignDigest => "signatures_sign_digest", POST "/api/v1/keys/{key}/sign-digest", None;
    SignJwt => "jwt_sign", POST "/api/v1/keys/{key}/sign-jwt", None;
    SignStatement => "signatures_sign_statement", POST "/api/v1/keys/{key}/sign-statement", None;
    Verify => "signatures_verify", POST "/api/v1/keys/{key}/verify", None;
    VerifyDigest => "signatures_verify_digest", POST "/api/v1/keys/{key}/verify-digest", None;
    SignMany => "signatures_sign_many", POST "/api/v1/sign", None;
    VerifyMany => "signatures_verify_many", POST "/api/v1/verify", None;
    DecryptAsRecipient => "encryption_decrypt", POST "/api/v1/decrypt", None;
    EncryptToRecipients => "encryption_encrypt", POST "/api/v1/encrypt", None;
    Decapsulate => "encryption_decapsulate", POST "/api/v1/keys/{key}/decapsulate", None;
    DeriveSharedSecret => "agreement_derive_shared_secret", POST "/api/v1/keys/{key}/derive-shared-secret", None;
    Encapsulate => "encryption_encapsulate", POST "/api/v1/keys/{key}/encapsulate", None;
    Encrypt => "symmetric_encrypt", POST "/api/v1/keys/{key}/encrypt", None;
    EncryptMany => "symmetric_encrypt_many", POST "/api/v1/keys/{key}/encrypt/batch", None;
    Decrypt => "symmetric_decrypt", POST "/api/v1/keys/{key}/decrypt", None;
    DecryptMany => "symmetric_decrypt_many", POST "/api/v1/keys/{key}/decrypt/batch", None;
    Rewrap => "symmetric_rewrap", POST "/api/v1/keys/{key}/rewrap", None;
    RewrapMany => "symmetric_rewrap_many", POST "/api/v1/keys/{key}/rewrap/batch", None;
    GenerateDataKey => "symmetric_generate_data_key", POST "/api/v1/keys/{key}/data-key", None;
    Mac => "symmetric_mac", POST "/api/v1/keys/{key}/mac", None;
    MacMany => "symmetric_mac_many", POST "/api/v1/keys/{key}/mac/batch", None;
    VerifyMac => "symmetric_verify_mac", POST "/api/v1/keys/{key}/verify-mac", None;
    VerifyMacMany => "symmetric_verify_mac_many", POST "/api/v1/keys/{key}/verify-mac/batch", None;
    Random => "symmetric_random", POST "/api/v1/random", None;
    MintToken => "tokens_mint", POST "/api/v1/tokens", Change;
    LogIn => "tokens_login", POST "/api/v1/login", None;
    AttenuateToken => "tokens_attenuate", POST "/api/v1/tokens/attenuate", None;
    RevokeToken => "tokens_revoke", POST "/api/v1/tokens/revoke", Change;
    Permissions => "tokens_own", GET "/api/v1/tokens/self", None;
    Checkpoint => "audit_log_checkpoint", GET "/api/v1/audit-log/checkpoint", None;
    MakeCheckpoint => "audit_log_make_checkpoint", POST "/api/v1/audit-log/checkpoint", None;
    ConsistencyProof => "audit_log_consistency", POST "/api/v1/audit-log/consistency", None;
    AuditEntries => "audit_log_entries", GET "/api/v1/audit-log/entries", None;
    InclusionProof => "audit_log_inclusion", GET "/api/v1/audit-log/entries/{number}/proof", None;
    VerifyAuditLog => "audit_log_verify", POST "/api/v1/audit-log/verify", None;
    Backup => "operator_backup", POST "/api/v1/backup", None;
    SealService => "operator_seal", POST "/api/v1/operator/seal", None;
    UnsealService => "operator_unseal", POST "/api/v1/operator/unseal", None;
    Metrics => "metrics_metrics", GET "/metrics", None;
}

impl Operation {
    /// Whether the operation changes something. Such a request carries an idempotency key.
    pub const fn is_change(self) -> bool {
        matches!(self.effect(), Effect::Change)
    }
}
