//! Connections: where they come from, which thread serves them, and how they end.

mod accept;
mod access_log;
mod connection;
mod live;
mod peers;
mod server;
mod tls;
mod unread;
mod validity;

pub use self::server::{Handle, Server};
