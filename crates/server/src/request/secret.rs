//! Bodies with secrets in them. We wipe our own memory; the HTTP and TLS libraries do not wipe
//! their copies.

use std::borrow::Cow;
use std::ops::Deref;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use super::base64::decode_into;
use super::caller::Caller;
use super::content::{Needs, Whole};
use crate::error::{ApiError, Result};
use crate::service::Worker;

/// A whole body with a secret in it, of a caller whose credential was verified.
pub(crate) struct SecretContent(Whole);

impl FromRequest<Worker> for SecretContent {
    type Rejection = ApiError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let whole = Whole::read(&parts, body, Needs::Credential, worker).await?;
        Caller::verify_again(&parts, worker)?;
        Ok(Self(whole))
    }
}

/// A short body with a secret in it, which may be all that the caller shows.
pub(crate) struct SecretProof(SecretContent);

impl FromRequest<Worker> for SecretProof {
    type Rejection = ApiError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let whole = Whole::read(&parts, body, Needs::Nothing, worker).await?;
        Ok(Self(SecretContent(whole)))
    }
}

impl Deref for SecretProof {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for SecretContent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl Drop for SecretContent {
    fn drop(&mut self) {
        self.0.wipe();
    }
}

/// A secret text of a body. A text without escapes stays in the body; one with escapes is a copy,
/// which is wiped.
pub(crate) struct SecretText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for SecretText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Borrowing<'b>(#[serde(borrow)] Cow<'b, str>);
        Borrowing::deserialize(deserializer).map(|text| Self(text.0))
    }
}

impl Deref for SecretText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Drop for SecretText<'_> {
    fn drop(&mut self) {
        if let Cow::Owned(text) = &mut self.0 {
            text.zeroize();
        }
    }
}

/// Decodes base64 into memory that is wiped, also when the text turns out not to be base64.
///
/// # Errors
/// Those of [`decode_into`].
pub(crate) fn decode_secret(text: &str, what: &str) -> Result<Zeroizing<Vec<u8>>> {
    // As much as any text of this length encodes, so that the buffer never moves.
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len().div_ceil(4) * 3));
    decode_into(text, what, &mut bytes)?;
    Ok(bytes)
}

/// An answer of JSON with a secret in it, which no cache keeps. `length` is at least that of the
/// JSON: a buffer that grows leaves copies behind.
///
/// # Errors
/// The value has no JSON.
pub(crate) fn secret_json(value: &impl Serialize, length: usize) -> Result<Response> {
    let mut json = Zeroizing::new(Vec::with_capacity(length));
    serde_json::to_writer(&mut *json, value).map_err(|_| ApiError::internal("an answer has no JSON"))?;
    let mut response = no_store(Response::new(Body::from(Bytes::from_owner(json))));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// An answer that no cache keeps.
pub(crate) fn no_store(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_and_without_escapes_is_read() {
        let plain: SecretText<'_> = serde_json::from_str(r#""c2VjcmV0""#).unwrap();
        assert!(matches!(plain.0, Cow::Borrowed(_)) && &*plain == "c2VjcmV0");
        let escaped: SecretText<'_> = serde_json::from_str(r#""a\/b\n""#).unwrap();
        assert!(matches!(escaped.0, Cow::Owned(_)) && &*escaped == "a/b\n");
    }

    #[test]
    fn secrets_are_decoded_without_moving() {
        for length in 0..50 {
            let bytes = vec![7; length];
            let text = super::super::base64::encode(&bytes);
            let decoded = decode_secret(&text, "x").unwrap();
            assert_eq!(*decoded, bytes);
            assert_eq!(decoded.capacity(), text.len().div_ceil(4) * 3, "it was not allocated again");
        }
        assert!(decode_secret("no base64", "x").is_err());
    }
}
