//! Instruction sets: their decoders, and the properties of an instruction that the audit counts.

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
