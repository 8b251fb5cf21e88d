//! The service as its callers see it: each test starts one, on a free port of this machine, with a keystore in memory.

mod access;
mod attest;
mod backup;
mod batches;
mod import;
mod kem;
mod keys;
mod limits;
mod prehash;
mod public;
mod seal;
mod support;
mod transit;
mod transit_any_json;
mod transit_keys;
