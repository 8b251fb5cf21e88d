//! The audit as its users call it, on binaries made here and on those that the machine has.

mod archives;
mod bad_input;
mod comparison;
mod formats;
mod objdump;
mod own;
mod programs;
mod rules;
mod support;
