//! Any method, path, query and header is answered, tokens and idempotency keys among them, and the
//! service never fails.
#![no_main]

use std::cell::RefCell;

use bulla_server::fuzzing::Fuzzed;
use libfuzzer_sys::fuzz_target;

thread_local!(static SERVICE: RefCell<Fuzzed> = RefCell::default());

fuzz_target!(|bytes: &[u8]| {
    SERVICE.with_borrow_mut(|service| {
        if service.is_worn() {
            *service = Fuzzed::new();
        }
        service.head(bytes);
    });
});
