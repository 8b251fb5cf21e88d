//! The memory of what callers send before the service can answer: bodies, and heads that have not
//! ended.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes of bodies there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyMemory(Arc<AtomicUsize>);

/// The bytes of one body. They count until it is dropped.
#[derive(Debug)]
pub(crate) struct BodyReservation {
    own: usize,
    all: Arc<AtomicUsize>,
}

impl BodyMemory {
    /// A body of which nothing has arrived.
    pub(crate) fn begin(&self) -> BodyReservation {
        BodyReservation { own: 0, all: Arc::clone(&self.0) }
    }
}

impl BodyReservation {
    /// Counts more bytes, unless all bodies together would then have more than `most`. Returns
    /// whether it did.
    #[must_use]
    pub(crate) fn grow(&mut self, bytes: usize, most: usize) -> bool {
        let fits = self.all.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= most;
        if fits {
            self.own += bytes;
        } else {
            self.all.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

/// The most bytes from one address of callers who have shown nothing. So one that sends heads and
/// bodies without their end does not keep others from logging in.
const MAX_ADDRESS_BYTES: usize = 1 << 20;

/// The most bytes of all callers who have shown nothing. They cannot take the memory of others.
const MAX_ANONYMOUS_BYTES: usize = 32 * MAX_ADDRESS_BYTES;

/// The bytes of a caller who has shown nothing, among those of its address and those of all such
/// callers. They count until this is dropped.
#[derive(Debug)]
pub(crate) struct AnonymousBytes {
    of_all: BodyReservation,
    of_address: BodyReservation,
}

impl AnonymousBytes {
    /// Counts more bytes, unless there would be too many. Returns whether it did.
    #[must_use]
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        self.of_all.grow(bytes, MAX_ANONYMOUS_BYTES) && self.of_address.grow(bytes, MAX_ADDRESS_BYTES)
    }
}

/// The memory of all callers who have shown nothing.
#[derive(Debug, Default)]
pub(crate) struct AnonymousMemory {
    all: BodyMemory,
    by_origin: Mutex<HashMap<String, BodyMemory>>,
}

/// After so many addresses, those that have nothing there are forgotten.
const MAX_IDLE_ADDRESSES: usize = 1024;

impl AnonymousMemory {
    /// A caller from this address, of whom nothing has arrived.
    pub(crate) fn begin(&self, address: IpAddr) -> AnonymousBytes {
        let mut known = self.by_origin.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_IDLE_ADDRESSES {
            known.retain(|_, memory| Arc::strong_count(&memory.0) > 1);
        }
        let of_address = known.entry(origin_of(Some(address))).or_default().begin();
        AnonymousBytes { of_all: self.all.begin(), of_address }
    }
}

/// The name of an address for what callers from there share. Networks of IPv6 count as one address,
/// since their users have many.
pub(super) fn origin_of(address: Option<IpAddr>) -> String {
    match address.map(|address| address.to_canonical()) {
        None => "local".to_owned(),
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => format!("{:x?}", &address.segments()[..4]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_one_bound_and_give_back_what_they_had() {
        let bodies = BodyMemory::default();
        let (mut one, mut other) = (bodies.begin(), bodies.begin());
        assert!(one.grow(6, 10) && other.grow(4, 10));
        assert!(!other.grow(1, 10));
        drop(one);
        assert!(other.grow(6, 10) && !other.grow(1, 10), "what was refused was not counted");
        drop(other);
        assert_eq!(bodies.0.load(Ordering::Relaxed), 0);
    }
}
