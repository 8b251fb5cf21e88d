//! Keys and an audit log that a service has.

mod connection;
mod keys;
mod log;

pub use self::connection::Remote;
pub(crate) use self::connection::given_token;
