//! No bytes make the reader of X.509 certificates panic, and a policy permits exactly what it
//! names.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bulla_kms::fuzzing::x509_certificate(bytes));
