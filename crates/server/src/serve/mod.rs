//! Connections: where they come from, which thread serves them, and how they end.

mod accept;
mod connection;
mod peers;
mod server;
mod unread;

pub use self::server::{Handle, Server};
