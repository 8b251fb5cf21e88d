//! The service as its callers see it: each test starts one, on a free port of this machine, with a keystore in memory.

mod access;
mod audit_log;
mod batches;
mod description;
mod keys;
mod limits;
mod matrix;
mod once;
mod operator;
mod support;
mod tokens;
