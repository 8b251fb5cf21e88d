//! No bytes make the reader of certificates of OpenSSH panic, and a policy permits exactly what it
//! names.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bulla_kms::fuzzing::ssh_certificate(bytes));
