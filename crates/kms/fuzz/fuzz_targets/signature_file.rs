//! A signature file that parses has exactly one text.
#![no_main]

use bulla_kms::SignatureFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = SignatureFile::parse(bytes) {
        assert_eq!(file.to_string().as_bytes(), bytes);
        let _ = file.verify_with(&file.public_key);
    }
});
