//! Instruction sets: their decoders, and what of an instruction is counted.

pub(crate) mod aarch64;
mod class;
mod decode;
mod instruction_set;
mod mnemonics;
pub(crate) mod x86_64;

pub use self::{class::Class, instruction_set::Arch};
pub(crate) use self::{
    decode::{Decode, Token},
    instruction_set::{WIDTHS, widest},
};
