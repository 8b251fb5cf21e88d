//! Extractors for requests of Vault's clients: those of the other endpoints, with errors in Vault's
//! form.

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use hyper::body::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::{Result, VaultError};
use crate::error::ApiError;
use crate::request::{Caller, Content, SecretProof, parse};
use crate::service::Worker;

/// The verified caller.
pub(super) struct By(pub(super) Caller);

impl FromRequestParts<Worker> for By {
    type Rejection = VaultError;

    async fn from_request_parts(parts: &mut Parts, worker: &Worker) -> Result<Self> {
        Ok(Self(Caller::from_request_parts(parts, worker).await?))
    }
}

/// A whole body.
pub(super) struct Body(Bytes);

impl FromRequest<Worker> for Body {
    type Rejection = VaultError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        let Content(body) = Content::from_request(request, worker).await?;
        Ok(Self(body))
    }
}

impl Body {
    /// Reads the body as JSON. An empty body and `null` count as an empty object.
    ///
    /// # Errors
    /// It is not the JSON of a `T`.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        object(&self.0)
    }
}

/// A short body with a secret in it, which is wiped. It may be all that the caller shows.
pub(super) struct SecretBody(SecretProof);

impl FromRequest<Worker> for SecretBody {
    type Rejection = VaultError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        Ok(Self(SecretProof::from_request(request, worker).await?))
    }
}

impl SecretBody {
    /// Reads the body as JSON. An empty body and `null` count as an empty object.
    ///
    /// # Errors
    /// It is not the JSON of a `T`.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        object(&self.0)
    }
}

/// Reads JSON. Nothing and `null` count as an empty object. The library would take a list for an
/// object.
fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    match body.trim_ascii() {
        b"" | b"null" => Ok(parse(b"{}")?),
        [b'{', ..] => Ok(parse(body)?),
        _ => Err(ApiError::malformed("failed to decode JSON input: the body is not an object").into()),
    }
}

/// What the path names.
pub(super) struct Named<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Worker> for Named<T> {
    type Rejection = VaultError;

    async fn from_request_parts(parts: &mut Parts, worker: &Worker) -> Result<Self> {
        let named = Path::<T>::from_request_parts(parts, worker).await;
        let Path(named) = named.map_err(|_| ApiError::malformed("the path is not one of this endpoint"))?;
        Ok(Self(named))
    }
}
