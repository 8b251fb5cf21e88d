//! The endpoints of version 1: `/api/v1`.

mod audit_log;
mod described;
mod health;
mod items;
mod keys;
mod metrics;
mod once;
mod operator;
mod scope;
mod sign;
mod tokens;
mod verify;
mod view;

use utoipa_axum::router::OpenApiRouter;

pub(crate) use self::described::complete;
pub(crate) use self::once::once;
use crate::service::App;

/// The endpoints of version 1 that change nothing in the keystore, with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(audit_log::routes())
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(operator::routes())
        .merge(sign::routes())
        .merge(tokens::routes())
        .merge(verify::routes())
}

/// Those that change something: they take an idempotency key, and [`once`] stands around them.
pub(crate) fn changes() -> OpenApiRouter<App> {
    let mut changes = OpenApiRouter::new().merge(keys::routes()).merge(tokens::changes());
    once::describe(changes.get_openapi_mut());
    changes
}
