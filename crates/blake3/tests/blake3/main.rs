//! The tests of `bulla-blake3` from outside.

mod bao;
mod compact;
#[cfg(target_os = "linux")]
mod end_of_memory;
mod every_length;
mod interface;
mod parallel_and_files;
mod reference;
mod released;
mod streaming;
mod support;
mod vectors;
#[cfg(all(windows, target_arch = "x86_64"))]
mod windows;
