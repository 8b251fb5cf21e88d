//! Endpoints of Vault's transit engine that bulla does not offer. The answer says so, instead of
//! 404.

use axum::http::Uri;
use axum::routing::any;
use utoipa_axum::router::OpenApiRouter;

use super::error::VaultError;
use crate::error::{ApiError, ApiErrorCode};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .route("/v1/transit/{*rest}", any(not_offered))
        .route("/v1/auth/token/{*rest}", any(no_tokens))
}

/// How the paths below `/v1/transit/` begin, and what to use instead.
const ELSEWHERE: [(&str, &str); 16] = [
    ("encrypt", "bulla has keys that sign, and encrypts nothing for clients of Vault"),
    ("decrypt", "bulla has keys that sign, and decrypts nothing for clients of Vault"),
    ("rewrap", "bulla has keys that sign, and encrypts nothing for clients of Vault"),
    ("datakey", "bulla makes no data keys for clients of Vault"),
    ("derived-keys", "bulla derives no keys"),
    ("hmac", "bulla has no keys for HMAC: sign with an ed25519 key"),
    ("cmac", "bulla has no keys for CMAC: sign with an ed25519 key"),
    ("random", "bulla gives out no random bytes"),
    ("hash", "bulla hashes nothing for clients"),
    ("export", "private keys are exported by bulla's own API alone, wrapped for a recipient"),
    ("byok-export", "private keys are exported by bulla's own API alone, wrapped for a recipient"),
    ("backup", "bulla's own API makes backups, of the whole keystore"),
    ("restore", "bulla's own API restores backups, of the whole keystore"),
    ("wrapping_key", "keys are imported by bulla's own API alone"),
    ("cache-config", "bulla has no such cache"),
    ("config", "bulla makes no key unless it is asked to"),
];

async fn not_offered(uri: Uri) -> VaultError {
    let path = uri.path().strip_prefix("/v1/transit/").unwrap_or_default();
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or_default();
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(name, _)| *name == first) {
        return VaultError::not_supported(*instead);
    }
    match (first, parts.nth(1)) {
        ("keys", Some("import" | "import_version")) => {
            VaultError::not_supported("keys are imported by bulla's own API alone")
        }
        ("keys", Some("csr" | "set-certificate")) => VaultError::not_supported("bulla has no certificates"),
        _ => no_handler(),
    }
}

async fn no_tokens() -> VaultError {
    let message =
        "bulla's tokens are minted and revoked by its own API alone; of this path there is lookup-self";
    VaultError::not_supported(message)
}

fn no_handler() -> VaultError {
    ApiError::new(ApiErrorCode::EndpointNotFound, "no handler for route").into()
}
