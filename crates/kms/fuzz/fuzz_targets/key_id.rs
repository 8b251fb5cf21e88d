//! A key version id, a key id and a public key file that parse have exactly one text.
#![no_main]

use bulla_kms::{KeyId, KeyVersionId, NamedPublicKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(id) = text.parse::<KeyVersionId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(key_id) = text.parse::<KeyId>() {
        assert_eq!(key_id.to_string(), text);
    }
    if let Ok(key) = text.parse::<NamedPublicKey>() {
        assert_eq!(key.to_string(), text);
    }
});
