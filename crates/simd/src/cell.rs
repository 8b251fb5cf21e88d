use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Holds the implementation that was chosen at run time, as a pointer that no build flag resolves.
///
/// The optimiser cannot see through the atomic: link-time optimisation and `-C target-cpu=native`
/// leave every kernel in the binary, and calls go through one load. Choosing twice in a race is
/// harmless, because detection gives every thread the same answer.
///
/// Every thread with the cell gets a reference to the value that one of them chose. So the cell
/// accepts only types that threads may share:
///
/// ```compile_fail,E0277
/// static CHOSEN: bulla_simd::Cell<core::cell::Cell<u8>> = bulla_simd::Cell::new();
/// ```
pub struct Cell<T: Sync + 'static> {
    chosen: AtomicPtr<T>,
}

impl<T: Sync> Cell<T> {
    /// A cell in which nothing has been chosen.
    pub const fn new() -> Self {
        Cell { chosen: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The chosen value. The first call makes it by `choose`.
    #[inline(always)]
    pub fn get(&self, choose: fn() -> &'static T) -> &'static T {
        // Acquire pairs with the release in `first`: another thread may have made the pointed-to
        // value just before it stored the pointer.
        let chosen = self.chosen.load(Ordering::Acquire);
        if chosen.is_null() {
            return self.first(choose);
        }
        // SAFETY: the cell is private, and only `first` stores into it, from a `&'static T`, which
        // this thread may have because T is `Sync`.
        unsafe { &*chosen }
    }

    #[cold]
    #[inline(never)]
    fn first(&self, choose: fn() -> &'static T) -> &'static T {
        let chosen = choose();
        self.chosen.store(ptr::from_ref(chosen).cast_mut(), Ordering::Release);
        chosen
    }
}

impl<T: Sync> Default for Cell<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::Cell;
    use std::boxed::Box;
    use std::thread;

    static CELL: Cell<[u64; 4]> = Cell::new();

    /// Makes a value in whichever thread comes first. Only the cell orders these writes before the
    /// other threads' reads. Miri runs this too, and reports a data race if a pointer is passed on
    /// without that order.
    fn make() -> &'static [u64; 4] {
        Box::leak(Box::new(core::array::from_fn(|i| i as u64 + 40)))
    }

    #[test]
    fn what_one_thread_chose_others_may_read() {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    thread::yield_now();
                    assert_eq!(CELL.get(make).iter().sum::<u64>(), 40 + 41 + 42 + 43);
                });
            }
        });
    }
}
