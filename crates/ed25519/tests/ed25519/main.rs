//! Tests of the public interface, by every kernel that the machine has.

mod cases;
mod dalek;
mod differential;
mod interface;
mod neighbors;
mod predicates;
mod prehash;
mod signing;
mod vectors;
#[cfg(all(windows, target_arch = "x86_64"))]
mod windows;
