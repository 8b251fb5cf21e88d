//! Calls of every function in any order, with arguments as wrong as a hostile program's.
#![no_main]

#[path = "../src/calls.rs"]
mod calls;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| calls::run(bytes));
