//! The x86-64 backends.

pub mod avx2;
pub mod avx512;
pub mod full_width;
pub mod slow_rotate;
pub mod sse41;
pub mod words;

/// Trait methods that are nothing but one expression of intrinsics.
macro_rules! forward {
    ($(fn $name:ident $(<$(const $imm:ident: i32),+>)? ($($arg:ident: $type:ty),*) $(-> $ret:ty)? = $body:expr;)*) => { $(
        #[inline(always)]
        unsafe fn $name $(<$(const $imm: i32),+>)? ($($arg: $type),*) $(-> $ret)? {
            // SAFETY: the caller promised the CPU features of this backend, and of pointers what the trait asks.
            unsafe { $body }
        }
    )* };
}

/// A vector of which the optimiser knows nothing: no instruction, one register.
macro_rules! pin {
    ($features:literal, $class:ident, $register:ty) => {
        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn pin(mut a: $register) -> $register {
            // SAFETY: the template is a comment; the register is read and written by nobody.
            unsafe {
                core::arch::asm!("/* {0} */", inout($class) a, options(pure, nomem, nostack, preserves_flags));
            }
            a
        }
    };
}

/// The four-by-four transpose of words inside every 128-bit part of four vectors.
macro_rules! transpose4 {
    ($r:expr, $lo32:ident, $hi32:ident, $lo64:ident, $hi64:ident) => {{
        let r = $r;
        let (a, b) = ($lo32(r[0], r[1]), $hi32(r[0], r[1]));
        let (c, d) = ($lo32(r[2], r[3]), $hi32(r[2], r[3]));
        [$lo64(a, c), $hi64(a, c), $lo64(b, d), $hi64(b, d)]
    }};
}

pub(crate) use {forward, pin, transpose4};
