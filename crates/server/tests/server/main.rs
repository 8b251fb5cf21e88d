//! The service as its callers see it: each test starts one, on a free port of this machine, with a
//! keystore in memory.

mod access;
mod attest;
mod audit_log;
mod backup;
mod batches;
mod bounds;
#[cfg(feature = "etcd")]
mod cluster;
mod conforms;
mod description;
mod encrypt;
mod import;
mod kem;
mod keys;
mod limits;
mod matrix;
#[cfg(feature = "etcd")]
mod metrics;
mod once;
mod operator;
mod prehash;
mod public;
mod reload;
mod sockets;
mod statement;
mod support;
mod tls;
mod tokens;
mod transit;
mod transit_any_json;
mod transit_clients;
mod transit_keys;
