//! What is said on standard error: problems, what to do next, and remarks.

use crate::style;
use std::io::Write;

/// Prints `bulla: TEXT` on standard error. A closed standard error is nothing that could be reported.
pub(crate) fn error_line(text: &str) {
    let bad = style::BAD;
    let _ = writeln!(anstream::stderr(), "{bad}bulla:{bad:#} {text}");
}

/// Prints what to do next, under an error.
pub(crate) fn hint_line(text: &str) {
    let hint = style::HINT;
    let _ = writeln!(anstream::stderr(), "  {hint}hint:{hint:#} {text}");
}

/// Prints a remark that is no error.
pub(crate) fn note_line(text: &str) {
    let _ = writeln!(anstream::stderr(), "bulla: {text}");
}
