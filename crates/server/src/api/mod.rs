//! The endpoints of version 1: `/api/v1`.

mod attest;
mod backup;
mod export;
mod health;
mod import;
pub(crate) mod items;
mod kem;
mod keys;
mod prehash;
mod public;
pub(crate) mod scope;
mod seal;
mod sign;
mod verify;
mod view;

use utoipa_axum::router::OpenApiRouter;

use crate::service::App;

/// All endpoints of version 1, with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(health::routes())
        .merge(keys::routes())
        .merge(sign::routes())
        .merge(verify::routes())
        .merge(attest::routes())
        .merge(public::routes())
        .merge(prehash::routes())
        .merge(kem::routes())
        .merge(seal::routes())
        .merge(import::routes())
        .merge(export::routes())
        .merge(backup::routes())
}
