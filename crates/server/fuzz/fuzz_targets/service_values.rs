//! Base64, durations and Vault's signatures are read as what they say, or not at all.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| bulla_server::fuzzing::values(text));
