//! The name under which spans of requests are found.

/// The target of the spans. Nothing but traces asks for it.
pub(super) const TARGET: &str = "bulla::request";
