//! The headers by which a caller sees on every node what it wrote on one.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

use super::node::{ClusterNode, Freshness};
use crate::error::{ApiError, Result};
use crate::transit::ErrorForm;

/// In a request: the revision that the node must have.
const MIN_REVISION: HeaderName = HeaderName::from_static("bulla-min-revision");
/// In an answer: a revision that the node has.
const REVISION: HeaderName = HeaderName::from_static("bulla-revision");
/// In an answer: for how long the node has not asked for the newest state, in milliseconds.
const AGE: HeaderName = HeaderName::from_static("bulla-age");

/// Has a request wait for the revision that it names, and puts the node's own one into answers: to
/// requests that may change something, and to those that ask.
pub(crate) async fn require_revision(
    State(cluster): State<Arc<ClusterNode>>,
    request: Request,
    next: Next,
) -> Response {
    let min_revision = match min_revision(request.headers()) {
        Ok(None) if request.method().is_safe() => return next.run(request).await,
        Ok(min_revision) => min_revision,
        Err(error) => return ErrorForm::at(request.uri().path()).response(error),
    };
    if let Some(revision) = min_revision
        && let Err(error) = cluster.wait_for_revision(revision).await
    {
        return ErrorForm::at(request.uri().path()).response(error);
    }
    let mut response = next.run(request).await;
    if let Some(Freshness { revision, age, .. }) = cluster.freshness() {
        response.headers_mut().insert(REVISION, HeaderValue::from(revision));
        if min_revision.is_some() {
            let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            response.headers_mut().insert(AGE, HeaderValue::from(age));
        }
    }
    response
}

/// # Errors
/// The header is no number.
fn min_revision(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(value) = headers.get(MIN_REVISION) else { return Ok(None) };
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|text| text.parse().ok());
    let malformed = || ApiError::malformed("Bulla-Min-Revision is the number of an answer's Bulla-Revision");
    number.map(Some).ok_or_else(malformed)
}
