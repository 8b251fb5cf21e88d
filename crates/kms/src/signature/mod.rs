//! Signature files: who signed which content, when and with which words, as text that a person can read.
//!
//! The format stands in `spec/signature.md`. What is signed is a prefix that names the format and the [`Kind`], then
//! every line before the signature, so that no line can be changed and no signature passes for one of another kind.

mod file;
pub mod manifest;
mod parse;

pub use self::file::{Comment, Kind, MAX_COMMENT, SignatureFile, Statement};
pub use crate::reserved::{RESERVED_PREFIX, RESERVED_PREFIXES};
