//! The target of request spans.

/// The target of the spans. Only traces subscribe to it.
pub const SPAN_TARGET: &str = "bulla::request";
