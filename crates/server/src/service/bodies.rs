//! The memory that the bodies of requests take, all together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes of bodies there are.
#[derive(Debug, Default)]
pub(crate) struct Bodies(Arc<AtomicUsize>);

/// The bytes of one body. They count until it is dropped.
#[derive(Debug)]
pub(crate) struct BodyBytes {
    own: usize,
    all: Arc<AtomicUsize>,
}

impl Bodies {
    /// A body of which nothing has arrived.
    pub(crate) fn begin(&self) -> BodyBytes {
        BodyBytes { own: 0, all: Arc::clone(&self.0) }
    }
}

impl BodyBytes {
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

impl Drop for BodyBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_one_bound_and_give_back_what_they_had() {
        let bodies = Bodies::default();
        let (mut one, mut other) = (bodies.begin(), bodies.begin());
        assert!(one.grow(6, 10) && other.grow(4, 10));
        assert!(!other.grow(1, 10));
        drop(one);
        assert!(other.grow(6, 10) && !other.grow(1, 10), "what was refused was not counted");
        drop(other);
        assert_eq!(bodies.0.load(Ordering::Relaxed), 0);
    }
}
