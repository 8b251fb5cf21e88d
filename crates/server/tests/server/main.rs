//! The service as its callers see it: each test starts one, on a free port of this machine, with a keystore in memory.

mod access;
mod batches;
mod keys;
mod limits;
mod support;
mod transit;
mod transit_any_json;
mod transit_keys;
