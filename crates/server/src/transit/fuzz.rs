//! The fuzzers' entry point to the readers of values.

use bulla_kms::Algorithm;
use serde::Deserialize;
use serde_json::json;

use super::lenient::{Seconds, Text, flag, number, seconds};
use super::scheme::{Input, Marshaling, Scheme};
use super::signature;

/// Every kind of lenient value, read from one text or number.
#[derive(Debug, Deserialize)]
struct Values<'a> {
    #[serde(default, deserialize_with = "flag")]
    flag: Option<bool>,
    #[serde(default, deserialize_with = "number")]
    number: Option<i64>,
    #[serde(default, deserialize_with = "seconds")]
    seconds: Option<Seconds>,
    #[serde(borrow, default)]
    text: Text<'a>,
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
    for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256] {
        for marshaling in [Marshaling::Asn1, Marshaling::Jws] {
            let (scheme, mut buffer) = (Scheme { algorithm, marshaling, input: Input::Message }, vec![1, 2]);
            if let Ok((_, range)) = signature::read(text, scheme, &mut buffer) {
                assert_eq!((range.start, range.end), (2, buffer.len()), "{text}");
            }
            assert_eq!(buffer[..2], [1, 2], "what was there stays");
        }
    }
}
