//! The service as clients of HashiCorp Vault and OpenBao see it: the part of their transit engine that signs, under `/v1`.
//!
//! A key's name there is its label here. `docs/vault.md` says endpoint by endpoint what is offered and what differs.

mod change;
mod envelope;
mod error;
mod extract;
mod key;
mod lenient;
mod not_offered;
mod read;
mod scheme;
mod sign;
mod signature;
mod sys;
mod token;
mod verify;
mod view;

use utoipa_axum::router::OpenApiRouter;

pub(crate) use self::error::VaultError;
use crate::service::App;

/// What the paths of these endpoints begin with.
pub(crate) const PREFIX: &str = "/v1/";

/// All endpoints, with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(read::routes())
        .merge(change::routes())
        .merge(sign::routes())
        .merge(verify::routes())
        .merge(sys::routes())
        .merge(token::routes())
        .merge(not_offered::routes())
}
