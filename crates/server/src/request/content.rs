//! The body of a request.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use bulla_kms::{Code, KmsError};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Bytes};
use serde::Deserialize;
use tokio::time::timeout;
use zeroize::Zeroize as _;

use super::caller::{Caller, Peer};
use super::list::AT_MOST;
use crate::error::{ApiError, ApiErrorCode, Result};
use crate::service::{BodyBytes, Worker};

/// The longest body of a request that needs no credential.
const ANONYMOUS: usize = 4 << 10;

/// The most bytes of all bodies of callers who have shown nothing. They cannot take the memory of
/// other callers.
const ALL_ANONYMOUS: usize = 256 * ANONYMOUS;

/// A complete body, within the limits of length, time and memory.
pub(crate) struct Content(pub(crate) Bytes);

impl FromRequest<Worker> for Content {
    type Rejection = ApiError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        let (parts, body) = request.into_parts();
        if body.is_end_stream() {
            return Ok(Self(Bytes::new()));
        }
        let whole = Whole::read(&parts, body, Needs::Credential, worker).await?;
        Caller::verify_again(&parts, worker)?;
        Ok(Self(Bytes::from_owner(whole)))
    }
}

/// Whether an endpoint needs a credential, which was verified before its body is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Credential,
    Nothing,
}

/// The bytes of a body, which count as long as they are there.
pub(super) struct Whole {
    bytes: Vec<u8>,
    _counted: BodyBytes,
}

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Whole {
    /// # Errors
    /// The body is too long or too slow, or all bodies together take too much memory.
    pub(super) async fn read(parts: &Parts, body: Body, needs: Needs, worker: &Worker) -> Result<Self> {
        let limits = worker.service.limits();
        let whole = timeout(limits.body_timeout(), Self::read_all(parts, body, needs, worker));
        whole
            .await
            .map_err(|_| ApiError::new(ApiErrorCode::BodyTimeout, "the body did not arrive in time"))?
    }

    async fn read_all(parts: &Parts, mut body: Body, needs: Needs, worker: &Worker) -> Result<Self> {
        let limits = worker.service.limits();
        let peer = parts.extensions.get::<Peer>();
        let most = match needs {
            Needs::Credential => limits.max_body_bytes,
            Needs::Nothing => limits.max_body_bytes.min(ANONYMOUS),
        };
        let is_anonymous = needs == Needs::Nothing && peer.is_none_or(|peer| peer.session().is_none());
        let (mut counted, all) = if is_anonymous {
            (worker.service.anonymous_bodies.begin(), ALL_ANONYMOUS)
        } else {
            (worker.service.bodies.begin(), limits.max_total_body_bytes)
        };
        // Whoever may use a Unix socket has room, however much others send.
        let all = if peer.is_some_and(Peer::is_local) { usize::MAX } else { all };
        let too_large =
            || ApiError::new(ApiErrorCode::BodyTooLarge, format!("the body is longer than {most} bytes"));
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > most {
            return Err(too_large());
        }
        let mut bytes = Vec::with_capacity(announced);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| ApiError::malformed("the body ended before its end"))?;
            let Ok(data) = frame.into_data() else { continue };
            if data.len() > most - bytes.len() {
                return Err(too_large());
            }
            if !counted.grow(data.len(), all) {
                let message = "the bodies of all requests take as much memory as they may: try again";
                return Err(KmsError::new(Code::Busy, message).into());
            }
            append(&mut bytes, &data);
        }
        Ok(Self { bytes, _counted: counted })
    }

    pub(super) fn wipe(&mut self) {
        self.bytes.zeroize();
    }
}

/// Appends bytes. A vector that moved would leave a copy behind, and the bytes may be secret.
fn append(bytes: &mut Vec<u8>, more: &[u8]) {
    let length = bytes.len() + more.len();
    if length > bytes.capacity() {
        let mut larger = Vec::with_capacity(length.max(2 * bytes.capacity()));
        larger.extend_from_slice(bytes);
        bytes.zeroize();
        *bytes = larger;
    }
    bytes.extend_from_slice(more);
}

/// Reads a body as JSON. Texts without escapes are borrowed from the body.
///
/// # Errors
/// It is not the JSON of a `T`.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| {
        // The library's error quotes the body, which may contain a secret.
        let at = format!("line {}, column {}", error.line(), error.column());
        let what = match error.classify() {
            serde_json::error::Category::Data => match too_long(&error.to_string()) {
                Some(what) => return ApiError::new(ApiErrorCode::TooManyItems, format!("{what} ({at})")),
                None => data_error(&error),
            },
            serde_json::error::Category::Eof => "the body ends too early".to_owned(),
            _ => "the body is not JSON".to_owned(),
        };
        ApiError::malformed(format!("{what} ({at})"))
    })
}

/// What is said of a [`List`](super::List) with more entries than it may have. Its error has no
/// text of the body.
fn too_long(error: &str) -> Option<String> {
    let (_, expected) = error.strip_prefix("invalid length ")?.split_once(", expected ")?;
    let expected = expected.rsplit_once(" at line").map_or(expected, |(expected, _)| expected);
    expected.starts_with(AT_MOST).then(|| format!("a list is too long: expected {expected}"))
}

/// Why JSON does not have the form that is expected, without the values in it.
fn data_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let field = |prefix: &str| {
        let rest = text.strip_prefix(prefix)?;
        rest.split_once('`').map(|(name, _)| name.to_owned())
    };
    if let Some(name) = field("missing field `") {
        return format!("the field `{name}` is missing");
    }
    match text.split_once(", expected ") {
        Some((_, expected)) => {
            let expected = expected.rsplit_once(" at line").map_or(expected, |(expected, _)| expected);
            format!("the body does not have the expected form: expected {expected}")
        }
        None => "the body does not have the expected form".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only whether it parses counts")]
    struct Form<'a> {
        #[serde(borrow)]
        name: std::borrow::Cow<'a, str>,
        number: u32,
    }

    #[test]
    fn errors_say_where_and_never_quote_a_value() {
        let said = |body: &str| parse::<Form<'_>>(body.as_bytes()).unwrap_err().body.message;
        assert_eq!(said(r#"{"name":"a"}"#), "the field `number` is missing (line 1, column 12)");
        for body in [
            r#"{"name":"a","number":"hunter2"}"#,
            r#"{"name":"a","number":1,"hunter2":3}"#,
            r#"{"name":"a","number":1}hunter2"#,
            r#""hunter2""#,
            r#"{"name":"hunter2"#,
        ] {
            assert!(!said(body).contains("hunter2"), "{}", said(body));
        }
        assert!(parse::<Form<'_>>(br#"{"name":"a\u0000","number":1}"#).is_ok());
        assert!(parse::<Form<'_>>(b"{\"name\":\"\xff\",\"number\":1}").is_err());
    }
}
