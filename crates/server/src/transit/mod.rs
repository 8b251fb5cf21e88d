//! The API for clients of HashiCorp Vault and OpenBao: the part of their transit engine that signs,
//! under `/v1`.
//!
//! Vault's name of a key is its label. `docs/vault.md` lists the offered endpoints and the
//! differences.

mod change;
mod envelope;
mod error;
mod extract;
mod fuzz;
mod key;
mod lenient;
mod namespace;
mod not_offered;
mod read;
mod scheme;
mod sign;
mod signature;
mod sys;
mod token;
mod verify;
mod view;

use axum::middleware::from_fn;
use utoipa_axum::router::OpenApiRouter;

pub(crate) use self::error::VaultError;
pub(crate) use self::fuzz::fuzz;
use crate::service::Worker;

/// How the paths of these endpoints begin.
pub(crate) const PREFIX: &str = "/v1/";

/// All endpoints, with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .merge(read::routes())
        .merge(change::routes())
        .merge(sign::routes())
        .merge(verify::routes())
        .merge(sys::routes())
        .merge(token::routes())
        .merge(not_offered::routes())
        .layer(from_fn(namespace::root_only))
}
