//! Settings that are read print as settings that read the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| bulla_server::fuzzing::settings(text));
