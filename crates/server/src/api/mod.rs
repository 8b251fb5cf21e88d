//! The endpoints of version 1: `/api/v1`.

mod health;
pub(crate) mod items;
mod keys;
pub(crate) mod scope;
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
}
