//! See the tests.
#![forbid(unsafe_code)]
