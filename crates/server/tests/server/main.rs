//! The service as its callers see it: each test starts one, on a free port of this machine, with a keystore in memory.

mod access;
mod batches;
mod keys;
mod limits;
mod reload;
mod sockets;
mod support;
mod tls;
