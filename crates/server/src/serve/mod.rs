//! Connections: where they come from, which thread serves them, and how they end.

mod connection;
mod listener;
mod named_callers;
mod reload;
mod server;
mod tls;
mod unfinished;

pub use self::connection::ACCESS_LOG_TARGET;
pub use self::server::{Server, ServerHandle};
pub(crate) use self::tls::fuzz_certificate;
