//! The tests of `bulla-blake2` from outside.

mod digest_traits;
#[cfg(target_os = "linux")]
mod end_of_memory;
mod every_length;
mod interface;
mod kernels;
mod many;
mod parameters;
mod program;
mod streaming;
mod support;
mod vectors;
#[cfg(all(windows, target_arch = "x86_64"))]
mod windows;
