//! Bytes that parse as a sealed envelope are the only bytes of it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bulla_kms::fuzzing::envelope(bytes));
