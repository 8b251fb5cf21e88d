//! No input makes a reader of private keys panic, and a wrapped key that parses has exactly one
//! text.
#![no_main]

use bulla_kms::transfer::{PrivateFormat, PrivateKeyData, WrappedPrivateKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for format in
        [PrivateFormat::Pkcs8Pem, PrivateFormat::Pkcs8Der, PrivateFormat::OpenSsh, PrivateFormat::Vault]
    {
        let _ = PrivateKeyData::read(bytes, format, None, None);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(wrapped) = text.parse::<WrappedPrivateKey>()
    {
        assert_eq!(wrapped.to_string(), text);
    }
});
