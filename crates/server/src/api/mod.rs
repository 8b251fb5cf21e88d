//! The endpoints of version 1: `/api/v1`.

mod attest;
mod audit_log;
mod backup;
mod described;
mod encrypt;
mod export;
mod health;
mod idempotency;
mod import;
pub(crate) mod items;
mod kem;
mod keys;
mod metrics;
pub(crate) mod operator;
mod prehash;
mod public;
pub(crate) mod scope;
mod sign;
mod statement;
mod tokens;
mod verify;
mod view;

use utoipa_axum::router::OpenApiRouter;

pub(crate) use self::described::complete;
pub(crate) use self::idempotency::once;
use crate::service::Worker;

/// The endpoints of version 1 that change nothing in the keystore, with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .merge(audit_log::routes())
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(operator::routes())
        .merge(sign::routes())
        .merge(tokens::routes())
        .merge(verify::routes())
        .merge(attest::routes())
        .merge(public::routes())
        .merge(prehash::routes())
        .merge(statement::routes())
        .merge(kem::routes())
        .merge(encrypt::routes())
        .merge(export::routes())
        .merge(backup::routes())
}

/// The endpoints that change something. They take an idempotency key: [`once`] wraps them.
pub(crate) fn changes() -> OpenApiRouter<Worker> {
    let mut changes =
        OpenApiRouter::new().merge(keys::routes()).merge(import::routes()).merge(tokens::changes());
    idempotency::describe(changes.get_openapi_mut());
    changes
}
