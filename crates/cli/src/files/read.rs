//! Reading files: `bulla-sums` does it.

pub(crate) use bulla_sums::{HashMode, Links, MIN_SHARED_LEN, ReadError, ReadMode, Source, StreamError};
