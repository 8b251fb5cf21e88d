//! Dispatch: the choice of a kernel at run time, and the pointer that holds it.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The functions of one kernel, as far as the choice of a kernel needs to know them:
/// [`kernel_choice!`](crate::kernel_choice).
pub trait KernelTable: Sync + 'static {
    /// The name of the kernel, for example `x86_64/avx2`.
    fn name(&self) -> &'static str;

    /// Whether this machine can run the kernel.
    fn is_runnable(&self) -> bool;

    /// Whether the kernel suits this machine, among those that it can run. False for a kernel that
    /// is tuned for another kind of CPU.
    fn is_suitable(&self) -> bool {
        true
    }

    /// Whether detection may choose the kernel. If not, only its name does.
    fn is_detectable(&self) -> bool {
        true
    }
}

/// Makes the public items of a module `kernel`: the type `Kernel`, the functions `available`,
/// `active` and `forced`, the constant `FORCE_VARIABLE`, and the error `UnknownKernel`.
///
/// `table` is the type of a kernel's functions, a [`KernelTable`]. `kernels` are the tables that
/// were compiled, best first; the last one runs everywhere. `variable` is read where the attributes
/// before it allow that: a crate without the standard library has no environment.
///
/// ```text
/// bulla_simd::kernel_choice! {
///     algorithm: "BLAKE3",
///     variable: #[cfg(feature = "std")] "BULLA_BLAKE3_FORCE_KERNEL",
///     table: Functions,
///     kernels: COMPILED,
/// }
/// ```
#[macro_export]
macro_rules! kernel_choice {
    (
        algorithm: $algorithm:literal,
        variable: $(#[$environment:meta])* $variable:literal,
        table: $Table:ty,
        kernels: $kernels:expr,
    ) => {
        /// The environment variable that forces a kernel for the whole process.
        pub const FORCE_VARIABLE: &str = $variable;

        static CHOSEN: $crate::DispatchCell<$Table> = $crate::DispatchCell::new();

        /// One implementation of all operations, which this machine supports.
        #[derive(Clone, Copy)]
        pub struct Kernel(pub(crate) &'static $Table);

        impl Kernel {
            /// Its name, for example `x86_64/avx2`: a value of [`FORCE_VARIABLE`].
            #[must_use]
            pub fn name(self) -> &'static str {
                $crate::KernelTable::name(self.0)
            }

            /// The kernel of that name.
            ///
            /// # Errors
            ///
            /// [`UnknownKernel`] if there is no kernel of that name, or this machine does not
            /// support it.
            pub fn by_name(name: &str) -> ::core::result::Result<Kernel, UnknownKernel> {
                available().find(|kernel| kernel.name() == name).ok_or(UnknownKernel)
            }
        }

        impl ::core::fmt::Debug for Kernel {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::write!(f, "Kernel({})", self.name())
            }
        }

        impl ::core::fmt::Display for Kernel {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl PartialEq for Kernel {
            fn eq(&self, other: &Self) -> bool {
                ::core::ptr::eq(self.0, other.0)
            }
        }

        impl Eq for Kernel {}

        /// The error if no kernel of the wanted name runs on this machine. Its text lists the
        /// kernels that do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct UnknownKernel;

        impl ::core::fmt::Display for UnknownKernel {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(::core::concat!("this machine has no such ", $algorithm, " kernel; it has "))?;
                for (i, kernel) in available().enumerate() {
                    ::core::write!(f, "{}{kernel}", if i == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }

        impl ::core::error::Error for UnknownKernel {}

        /// The kernels that this machine supports, best first. There is always `portable`.
        pub fn available() -> impl Iterator<Item = Kernel> {
            runnable().filter(|kernel| $crate::KernelTable::is_suitable(kernel.0))
        }

        /// Like [`available`], with the kernels that are tuned for other kinds of CPU: tests use
        /// all of them.
        #[doc(hidden)]
        pub fn runnable() -> impl Iterator<Item = Kernel> {
            $kernels.iter().copied().filter(|table| $crate::KernelTable::is_runnable(*table)).map(Kernel)
        }

        /// The kernel in use. After the first call, this is a single load.
        ///
        /// # Panics
        ///
        /// If [`FORCE_VARIABLE`] names a kernel that this machine does not have. Every other
        /// operation panics then too. A program that wants to report this without a panic calls
        /// [`forced`] first.
        #[inline(always)]
        #[must_use]
        pub fn active() -> Kernel {
            Kernel(CHOSEN.get(choose))
        }

        /// The kernel that [`FORCE_VARIABLE`] names, if it is set and not empty. Always `None`
        /// without the standard library.
        ///
        /// # Errors
        ///
        /// [`UnknownKernel`] if it names a kernel that this machine does not have.
        pub fn forced() -> ::core::result::Result<Option<Kernel>, UnknownKernel> {
            $(#[$environment])*
            if let Some(name) = ::std::env::var_os(FORCE_VARIABLE)
                && !name.is_empty()
            {
                return Kernel::by_name(name.to_str().ok_or(UnknownKernel)?).map(Some);
            }
            Ok(None)
        }

        fn choose() -> &'static $Table {
            match forced() {
                Ok(Some(kernel)) => kernel.0,
                Ok(None) => {
                    let best = available().find(|kernel| $crate::KernelTable::is_detectable(kernel.0));
                    best.expect("the portable kernel runs everywhere").0
                }
                Err(unknown) => ::core::panic!("{FORCE_VARIABLE}: {unknown}"),
            }
        }
    };
}

/// Holds the kernel that was chosen at run time, as a pointer that no build flag resolves.
///
/// The optimizer cannot see through the atomic: link-time optimization and `-C target-cpu=native`
/// leave every kernel in the binary, and calls go through one load. Choosing twice in a race is
/// harmless, because detection gives every thread the same answer.
///
/// Every thread with the cell gets a reference to the value that one of them chose. So the cell
/// accepts only types that threads may share:
///
/// ```compile_fail,E0277
/// static CHOSEN: bulla_simd::DispatchCell<core::cell::Cell<u8>> = bulla_simd::DispatchCell::new();
/// ```
pub struct DispatchCell<T: Sync + 'static> {
    chosen: AtomicPtr<T>,
}

impl<T: Sync> DispatchCell<T> {
    /// A cell in which nothing has been chosen.
    pub const fn new() -> Self {
        DispatchCell { chosen: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The chosen value. The first call makes it by `choose`.
    #[inline(always)]
    pub fn get(&self, choose: fn() -> &'static T) -> &'static T {
        // Acquire pairs with the release in `set_first`: another thread may have made the
        // pointed-to value just before it stored the pointer.
        let chosen = self.chosen.load(Ordering::Acquire);
        if chosen.is_null() {
            return self.set_first(choose);
        }
        // SAFETY: the cell is private, and only `set_first` stores into it, from a `&'static T`,
        // which this thread may have because T is `Sync`.
        unsafe { &*chosen }
    }

    #[cold]
    #[inline(never)]
    fn set_first(&self, choose: fn() -> &'static T) -> &'static T {
        let chosen = choose();
        self.chosen.store(ptr::from_ref(chosen).cast_mut(), Ordering::Release);
        chosen
    }
}

impl<T: Sync> Default for DispatchCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::DispatchCell;
    use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
    use std::boxed::Box;
    use std::thread;

    static CELL: DispatchCell<[u64; 4]> = DispatchCell::new();

    /// The values that lost the race: without a pointer to them, they would be leaks to Miri.
    static MADE: [AtomicPtr<[u64; 4]>; 4] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 4];
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    /// Makes a value in whichever thread comes first. Only the cell orders these writes before the
    /// other threads' reads. Miri runs this too, and reports a data race if a pointer is passed on
    /// without that order.
    fn make() -> &'static [u64; 4] {
        let made = Box::leak(Box::new(core::array::from_fn(|i| i as u64 + 40)));
        MADE[COUNT.fetch_add(1, Relaxed)].store(&raw mut *made, Relaxed);
        made
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

    /// A module like those of the crates with kernels.
    #[allow(unreachable_pub, reason = "there the module is public")]
    mod kernel {
        use crate::KernelTable;

        pub(super) struct Table(&'static str, bool, bool, bool);

        impl KernelTable for Table {
            fn name(&self) -> &'static str {
                self.0
            }

            fn is_runnable(&self) -> bool {
                self.1
            }

            fn is_suitable(&self) -> bool {
                self.2
            }

            fn is_detectable(&self) -> bool {
                self.3
            }
        }

        static COMPILED: &[&Table] = &[
            &Table("of another machine", false, true, true),
            &Table("tuned for another machine", true, false, true),
            &Table("only by name", true, true, false),
            &Table("best", true, true, true),
            &Table("portable", true, true, true),
        ];

        crate::kernel_choice! {
            algorithm: "TEST",
            variable: #[cfg(any())] "BULLA_TEST_FORCE_KERNEL",
            table: Table,
            kernels: COMPILED,
        }
    }

    #[test]
    fn the_best_kernel_that_suits_the_machine_is_in_use() {
        use kernel::{Kernel, UnknownKernel, active, available, forced, runnable};
        use std::string::ToString as _;
        use std::vec::Vec;

        assert_eq!(active().name(), "best");
        assert_eq!(forced(), Ok(None));
        let names: Vec<_> = available().map(Kernel::name).collect();
        assert_eq!(names, ["only by name", "best", "portable"]);
        assert_eq!(runnable().count(), 4);
        assert_eq!(Kernel::by_name("only by name").map(Kernel::name), Ok("only by name"));
        assert_eq!(Kernel::by_name("tuned for another machine"), Err(UnknownKernel));
        let text = UnknownKernel.to_string();
        assert_eq!(text, "this machine has no such TEST kernel; it has only by name, best, portable");
        assert_eq!(kernel::FORCE_VARIABLE, "BULLA_TEST_FORCE_KERNEL");
    }
}
