//! Instruction sets: their decoders, and what the audit counts of an instruction.

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
