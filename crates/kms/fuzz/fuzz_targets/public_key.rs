//! A public key that parses in a format is written in that format as the same key and, if the
//! format has one form, as the same bytes.
#![no_main]

use bulla_kms::Algorithm;
use bulla_kms::transfer::{PublicFormat, export_public, import_public};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for format in [PublicFormat::Pem, PublicFormat::Der] {
        if let Ok(key) = import_public(bytes, format, None) {
            let written = export_public(&key, format).unwrap();
            // A point of P-256 has two forms, and we write one of them.
            assert!(written == bytes || key.algorithm() == Algorithm::EcdsaP256);
            assert_eq!(import_public(&written, format, None).unwrap(), key);
        }
    }
    for format in [PublicFormat::OpenSsh, PublicFormat::Jwk, PublicFormat::Minisign] {
        if let Ok(key) = import_public(bytes, format, None) {
            let written = export_public(&key, format).unwrap();
            assert_eq!(import_public(&written, format, None).unwrap(), key);
        }
    }
});
