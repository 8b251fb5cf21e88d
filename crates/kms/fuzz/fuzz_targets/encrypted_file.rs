//! An encrypted file from a stranger gives an error, never a panic, and never data that was not
//! encrypted.
#![no_main]

use bulla_kms::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::encrypted_file(bytes));
