//! The client against a real service in the same process. In some tests a proxy with faults is
//! between the two.
#![cfg(unix)]

mod calls;
mod faults;
mod faulty;
mod log_and_backup;
mod reach;
#[path = "../../../server/tests/server/support/mod.rs"]
#[allow(
    dead_code,
    unexpected_cfgs,
    reason = "the tests of the service use the rest of it, and have features of their own"
)]
mod support;

use bulla_client::{Address, Blocking, Client, Settings};

/// A client of a service, which waits.
fn client(url: &str) -> Blocking {
    of(Settings::new(address(url)))
}

fn address(url: &str) -> Address {
    url.parse().unwrap()
}

fn of(settings: Settings) -> Blocking {
    Blocking::new(Client::new(settings).unwrap()).unwrap()
}
