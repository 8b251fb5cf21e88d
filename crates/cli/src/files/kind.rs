//! Kinds of files.

use bulla_sums::FileKind;
use std::fs::FileType;

/// The kind of a file, for an error message.
pub(crate) fn describe(kind: FileType) -> &'static str {
    FileKind::from(kind).describe()
}
