//! Nothing but a manifest: see decision 0175.
#![forbid(unsafe_code)]
