//! The API for clients of HashiCorp Vault and OpenBao: their transit engine, under `/v1`.
//!
//! Vault's name of a key is its label. `docs/vault.md` lists the offered endpoints and the
//! differences.

mod answer;
mod approle;
mod auth;
mod backup;
mod batch;
mod capabilities;
mod certificates;
mod change;
mod encryption;
mod export;
mod form;
mod hmac;
mod import;
mod keys;
mod login;
mod new_token;
mod policies;
mod request;
mod scheme;
mod signatures;
mod sys;
mod tokens;
mod utilities;
mod wrapping;

use axum::http::Uri;
use axum::routing::any;
use bulla_kms::Algorithm;
use bulla_kms::prehash::RsaPadding;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa_axum::router::OpenApiRouter;

pub(crate) use self::answer::{ErrorForm, VaultError};
use self::request::{OptionalText, Seconds, flag, lenient, number, seconds};
use self::scheme::{Marshaling, SaltLength, Scheme, SignedInput, read_signature};
pub(crate) use self::wrapping::wrap_answers;
use crate::error::{ApiError, ApiErrorCode};
use crate::service::Worker;

/// How the paths of these endpoints begin.
pub(crate) const PREFIX: &str = "/v1/";

/// All endpoints, with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .merge(keys::routes())
        .merge(login::routes())
        .merge(approle::routes())
        .merge(change::routes())
        .merge(signatures::routes())
        .merge(encryption::routes())
        .merge(hmac::routes())
        .merge(import::routes())
        .merge(export::routes())
        .merge(backup::routes())
        .merge(certificates::routes())
        .merge(capabilities::routes())
        .merge(sys::routes())
        .merge(policies::routes())
        .merge(tokens::routes())
        .merge(wrapping::routes())
        .merge(new_token::routes())
        .merge(utilities::routes())
        .merge(unsupported_routes())
}

/// Endpoints of Vault that bulla does not offer. The answer says so, instead of 404.
fn unsupported_routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .route("/v1/transit/{*rest}", any(unsupported_transit))
        .route("/v1/auth/token/{*rest}", any(unsupported_token))
}

/// How the paths below `/v1/transit/` begin, and what to use instead.
const UNSUPPORTED_PATHS: [(&str, &str); 2] = [
    ("derived-keys", "bulla derives no keys from the keys of others"),
    ("cmac", "bulla has no keys for CMAC: use hmac"),
];

async fn unsupported_transit(uri: Uri) -> VaultError {
    let path = uri.path().strip_prefix("/v1/transit/").unwrap_or_default();
    let first = path.split('/').next().unwrap_or_default();
    if let Some((_, instead)) = UNSUPPORTED_PATHS.iter().find(|(name, _)| *name == first) {
        return VaultError::not_supported(*instead);
    }
    no_handler()
}

async fn unsupported_token() -> VaultError {
    VaultError::not_supported(
        "bulla has no roles for tokens and lists none: of this path there are create, create-orphan, lookup, \
         renew and revoke",
    )
}

fn no_handler() -> VaultError {
    ApiError::new(ApiErrorCode::EndpointNotFound, "no handler for route").into()
}

/// Every kind of lenient value, read from one text or number.
#[derive(Debug, Deserialize)]
struct Values<'a> {
    #[serde(default, deserialize_with = "flag")]
    flag: Option<bool>,
    #[serde(default, deserialize_with = "number")]
    number: Option<i64>,
    #[serde(default, deserialize_with = "seconds")]
    seconds: Option<Seconds>,
    #[serde(default, deserialize_with = "lenient")]
    salt: Option<SaltLength>,
    #[serde(borrow, default)]
    text: OptionalText<'a>,
}

/// Reads a text as each value, alone and as JSON, and as a signature; for the fuzzers.
pub(crate) fn fuzz(text: &str) {
    // The text may itself be such a body.
    let _ = serde_json::from_str::<Values<'_>>(text);
    let body = |name: &str| json!({ name: text }).to_string();
    if let Ok(values) = serde_json::from_str::<Values<'_>>(&body("text")) {
        assert_eq!(values.text.as_deref(), Some(text), "a text is itself");
    }
    if let Ok(Values { flag: Some(read), .. }) = serde_json::from_str(&body("flag")) {
        assert!(text.len() <= 5, "{text} is {read}");
    }
    if let Ok(Values { number: Some(read), .. }) = serde_json::from_str(&body("number")) {
        let again = json!({ "number": read }).to_string();
        assert_eq!(
            serde_json::from_str::<Values<'_>>(&again).ok().and_then(|again| again.number),
            Some(read)
        );
    }
    if let Ok(Values { seconds: Some(Seconds(read)), .. }) = serde_json::from_str(&body("seconds")) {
        let again = json!({ "seconds": read.to_string() }).to_string();
        let again = serde_json::from_str::<Values<'_>>(&again).ok().and_then(|again| again.seconds);
        assert_eq!(again, Some(Seconds(read)), "{text}");
    }
    if let Ok(Values { salt: Some(_), .. }) = serde_json::from_str(&body("salt")) {
        let is_word = ["auto", "hash"].iter().any(|word| text.eq_ignore_ascii_case(word));
        assert!(is_word || text.parse::<i64>().is_ok(), "{text}");
    }
    certificates::fuzz(text);
    if let Ok(Some(json)) = form::json_of_form(text.as_bytes()) {
        assert!(serde_json::from_slice::<Map<String, Value>>(&json).is_ok(), "{text}");
    }
    for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256, Algorithm::EcdsaP521, Algorithm::Rsa2048] {
        for marshaling in [Marshaling::Asn1, Marshaling::Jws] {
            let (input, padding, mut buffer) = (SignedInput::Message, RsaPadding::default(), vec![1, 2]);
            let scheme = Scheme { algorithm, marshaling, input, padding };
            if let Ok((_, range)) = read_signature(text, scheme, &mut buffer) {
                assert_eq!((range.start, range.end), (2, buffer.len()), "{text}");
            }
            assert_eq!(buffer[..2], [1, 2], "what was there stays");
        }
    }
}
