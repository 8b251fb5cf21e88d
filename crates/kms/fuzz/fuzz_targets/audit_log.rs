//! Bytes that read as a file of an audit log, as a checkpoint or as a proof are the only text of it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bulla_kms::fuzzing::audit_log(bytes));
