//! Messages on standard error: problems, hints, and remarks.

use crate::color;
use std::io::Write;

/// Prints `bulla: TEXT` on standard error. If standard error is closed, there is no way to report
/// that.
pub fn error_line(text: &str) {
    let bad = color::BAD;
    let _ = writeln!(anstream::stderr(), "{bad}bulla:{bad:#} {text}");
}

/// Prints what to do next, under an error.
pub fn hint_line(text: &str) {
    let hint = color::HINT;
    let _ = writeln!(anstream::stderr(), "  {hint}hint:{hint:#} {text}");
}

/// Prints a remark that is not an error.
pub fn note_line(text: &str) {
    let _ = writeln!(anstream::stderr(), "bulla: {text}");
}
