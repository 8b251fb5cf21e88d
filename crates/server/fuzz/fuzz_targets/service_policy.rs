//! Policies of any form end in rules or in an error with a line.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| bulla_server::fuzzing::policy(text));
