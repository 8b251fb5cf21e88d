//! A file of an audit log, a checkpoint and a proof that parse have exactly one text.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bulla_kms::fuzzing::audit_log(bytes));
