//! Capsules of age recipients, recipients and identities from a stranger: an error, never a panic,
//! and one form of each.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bulla_kms::fuzzing::age(bytes));
