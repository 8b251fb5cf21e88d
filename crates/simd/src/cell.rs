use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Holds the implementation that was chosen at run time, as a pointer that no build flag resolves.
///
/// The optimiser cannot see through the atomic: link-time optimisation and `-C target-cpu=native` leave every kernel in
/// the binary, and calls go through one relaxed load. Choosing twice in a race is harmless, because detection gives every thread the
/// same answer.
pub struct Cell<T: 'static> {
    chosen: AtomicPtr<T>,
}

impl<T> Cell<T> {
    /// A cell in which nothing has been chosen.
    pub const fn new() -> Self {
        Cell { chosen: AtomicPtr::new(ptr::null_mut()) }
    }

    /// What was chosen; on the first call, what `choose` returns.
    #[inline(always)]
    pub fn get(&self, choose: fn() -> &'static T) -> &'static T {
        let chosen = self.chosen.load(Ordering::Relaxed);
        if chosen.is_null() {
            return self.first(choose);
        }
        // SAFETY: the cell is private, and only `first` stores into it, from a `&'static T`.
        unsafe { &*chosen }
    }

    #[cold]
    #[inline(never)]
    fn first(&self, choose: fn() -> &'static T) -> &'static T {
        let chosen = choose();
        self.chosen.store(ptr::from_ref(chosen).cast_mut(), Ordering::Relaxed);
        chosen
    }
}

impl<T> Default for Cell<T> {
    fn default() -> Self {
        Self::new()
    }
}
