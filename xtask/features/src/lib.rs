//! Nothing but a manifest: see decision 0175.
