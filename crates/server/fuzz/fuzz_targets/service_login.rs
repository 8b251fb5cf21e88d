//! Keys of an issuer and JWTs of any form end in a verdict.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| bulla_server::fuzzing::login(text));
