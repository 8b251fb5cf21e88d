//! The finding of a rule.

/// One problem, at a line counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) line: usize,
    pub(super) message: String,
}
