//! A key id, a family and a public key file that parse have exactly one text.
#![no_main]

use bulla_kms::{KeyFamily, KeyId, NamedPublicKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(id) = text.parse::<KeyId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(family) = text.parse::<KeyFamily>() {
        assert_eq!(family.to_string(), text);
    }
    if let Ok(key) = text.parse::<NamedPublicKey>() {
        assert_eq!(key.to_string(), text);
    }
});
