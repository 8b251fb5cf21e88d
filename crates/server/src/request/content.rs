//! The body of a request.

use axum::extract::{FromRequest, Request};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes};
use serde::Deserialize;
use tokio::time::timeout;

use crate::error::{ApiError, Problem, Result};
use crate::service::App;

/// A complete body, within the limits of length and time.
pub(crate) struct Content(pub(crate) Bytes);

impl FromRequest<App> for Content {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let limits = app.service.limits();
        let body = request.into_body();
        let too_large = || {
            let message = format!("the body is longer than {} bytes", limits.body_bytes);
            ApiError::new(Problem::BodyTooLarge, message)
        };
        if body.size_hint().lower() > limits.body_bytes as u64 {
            return Err(too_large());
        }
        let whole = timeout(limits.body_time(), Limited::new(body, limits.body_bytes).collect());
        match whole.await {
            Err(_) => Err(ApiError::new(Problem::Timeout, "the body did not arrive in time")),
            Ok(Ok(whole)) => Ok(Self(whole.to_bytes())),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(ApiError::malformed("the body ended before its end")),
        }
    }
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
            serde_json::error::Category::Data => data_error(&error),
            serde_json::error::Category::Eof => "the body ends too early".to_owned(),
            _ => "the body is not JSON".to_owned(),
        };
        ApiError::malformed(format!("{what} ({at})"))
    })
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
