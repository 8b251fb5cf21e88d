//! Reading files: `bulla-sums` does it.

pub(crate) use bulla_sums::{HashMode, LARGE, Links, Pace, ReadError, Source, Stopped};
