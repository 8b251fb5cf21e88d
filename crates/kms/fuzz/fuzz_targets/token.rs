//! No token makes its reader panic, and no token that the fuzzer invents is accepted: the tokens of
//! the test vectors, with which it begins, have expired.
#![no_main]

use std::str::FromStr as _;

use bulla_kms::token::{Revocations, Token, TokenOperation, TokenRequest};
use bulla_kms::{Algorithm, PublicKey, Timestamp};
use libfuzzer_sys::fuzz_target;

/// RFC 8032, section 7.1, test 1: the root of the test vectors, whose signatures the fuzzer does
/// not make.
const ROOT: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/// A time at which every token of the test vectors has expired.
const LATER: &str = "2031-01-01T00:00:00.000Z";

fuzz_target!(|text: &str| {
    let Ok(token) = Token::from_str(text) else { return };
    let _ = token.inspect();
    let root: PublicKey = ROOT.parse().unwrap();
    assert_eq!(root.algorithm(), Algorithm::Ed25519);
    let tenant = "local".parse().unwrap();
    let request =
        TokenRequest::in_tenant(TokenOperation::Export, &tenant, LATER.parse::<Timestamp>().unwrap());
    assert!(token.authorize(|_| Some(root.clone()), &request, &Revocations::default()).is_err());
});
