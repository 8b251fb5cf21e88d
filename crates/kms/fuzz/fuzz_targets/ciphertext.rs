//! A ciphertext that parses has exactly one encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bulla_kms::fuzzing::ciphertext(bytes));
