//! The parameters of a path and of a query, whose errors are like all others.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::{ApiError, Result};
use crate::service::Worker;

/// The parameters of a path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Worker> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, worker: &Worker) -> Result<Self> {
        match axum::extract::Path::from_request_parts(parts, worker).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(_) => Err(ApiError::malformed("a parameter of the path does not have the expected form")),
        }
    }
}

/// The parameters of a query.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Worker> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, worker: &Worker) -> Result<Self> {
        match axum::extract::Query::from_request_parts(parts, worker).await {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(_) => {
                let message = "a parameter of the query is unknown, or does not have the expected form";
                Err(ApiError::malformed(message))
            }
        }
    }
}
