//! Signature files: text that a person can read, with the signing key, the content, the time and
//! the comment.
//!
//! `spec/signature.md` describes the format. The signed bytes are a prefix that names the format
//! and the [`StatementKind`], and then every line before the signature. So nobody can change a
//! line, and no signature passes for one of another kind.

mod file;
pub mod manifest;
mod name;
mod signing;
mod statement;

pub use self::file::SignatureFile;
pub use self::name::SignedName;
pub use self::statement::{Comment, MAX_COMMENT_LEN, Statement, StatementKind};
pub use crate::reserved::{RESERVED_PREFIX, RESERVED_PREFIXES};
