//! Connections: where they come from, which thread serves them, and how they end.

mod accept;
mod access_log;
mod activity;
mod connection;
mod live;
#[cfg(unix)]
mod local;
mod peers;
mod room;
mod server;
mod tls;
mod unread;
mod validity;

pub use self::access_log::ACCESS_LOG_TARGET;
pub use self::server::{Server, ServerHandle};
pub(crate) use self::validity::fuzz_certificate;
