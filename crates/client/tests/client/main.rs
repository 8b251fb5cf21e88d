//! The client against a real service in the same process. In some tests a proxy with faults is
//! between the two.
#![cfg(unix)]

mod async_calls;
mod calls;
mod faults;
mod faulty;
mod log_and_backup;
mod reach;
#[cfg(feature = "tracing")]
mod spans;
#[path = "../../../server/tests/server/support/mod.rs"]
#[allow(
    dead_code,
    unexpected_cfgs,
    reason = "the tests of the service use the rest of it, and have features of their own"
)]
mod support;
mod symmetric;

use bulla_client::ClientBuilder;
use bulla_client::blocking::Client;

/// A client of a service.
fn client(url: &str) -> Client {
    blocking(builder(url))
}

fn builder(url: &str) -> ClientBuilder {
    bulla_client::Client::builder(url.parse().unwrap())
}

fn blocking(builder: ClientBuilder) -> Client {
    Client::new(builder.build().unwrap()).unwrap()
}
