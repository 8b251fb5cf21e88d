//! The tests of `bulla-blake3` from outside.

mod bao;
mod every_length;
mod interface;
mod parallel_and_files;
mod random;
mod reference;
mod streaming;
mod support;
mod vectors;
