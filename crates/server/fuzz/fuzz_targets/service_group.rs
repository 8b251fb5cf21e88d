//! What nodes of a group say to each other, in any form, is read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bulla_server::fuzzing::group(bytes));
