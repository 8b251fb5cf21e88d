//! No bytes make the reader of certificates' times panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bulla_server::fuzzing::certificate(bytes));
