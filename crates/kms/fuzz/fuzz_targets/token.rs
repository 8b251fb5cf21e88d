//! No token makes its reader panic, and none that the fuzzer makes up is honoured.
#![no_main]

use std::str::FromStr as _;

use bulla_kms::token::{Operation, Request, Revocations, Token};
use bulla_kms::{Algorithm, PublicKey, Timestamp};
use libfuzzer_sys::fuzz_target;

/// RFC 8032, section 7.1, test 1: a key whose signatures the fuzzer does not make.
const ROOT: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

fuzz_target!(|text: &str| {
    let Ok(token) = Token::from_str(text) else { return };
    let _ = token.inspect();
    let root: PublicKey = ROOT.parse().unwrap();
    assert_eq!(root.algorithm(), Algorithm::Ed25519);
    let tenant = "local".parse().unwrap();
    let request = Request::in_tenant(Operation::Export, &tenant, Timestamp::now());
    assert!(token.authorize(|_| Some(root.clone()), &request, &Revocations::default()).is_err());
});
