//! The x86-64 backends.

pub mod avx2;
pub mod avx512;
pub mod avx512_by_cpu;
pub mod sse41;

/// The source of each byte when words of `word` bytes are rotated right by `by` bytes: for byte
/// shuffles within each sixteen bytes, as the instructions for registers of 32 bytes do them too.
pub const fn byte_rotation(word: usize, by: usize) -> [u8; 32] {
    let mut from = [0; 32];
    let mut i = 0;
    while i < 32 {
        from[i] = (i % 16 / word * word + (i + by) % word) as u8;
        i += 1;
    }
    from
}

/// Trait methods that consist of one expression of intrinsics.
macro_rules! forward {
    ($(fn $name:ident $(<$(const $imm:ident: i32),+>)? ($($arg:ident: $type:ty),*) $(-> $ret:ty)? = $body:expr;)*) => { $(
        #[inline(always)]
        unsafe fn $name $(<$(const $imm: i32),+>)? ($($arg: $type),*) $(-> $ret)? {
            // SAFETY: the caller promised this backend's CPU features, and valid pointers as the
            // trait requires.
            unsafe { $body }
        }
    )* };
}

/// [`Vector`](crate::Vector) for a wrapper, from the vector within: `wrapper!(Wrapper, Inner)`,
/// generic over what follows.
macro_rules! wrapper {
    ($Wrapper:ty, $Inner:ty $(, $($generics:tt)+)?) => {
        impl $(<$($generics)+>)? crate::vector::Vector for $Wrapper {
            type Word = u32;
            const LANES: usize = <$Inner>::LANES;

            super::forward! {
                fn splat(word: u32) -> Self = Self(<$Inner>::splat(word));
                fn load(from: *const u32) -> Self = Self(<$Inner>::load(from));
                fn add(a: Self, b: Self) -> Self = Self(<$Inner>::add(a.0, b.0));
                fn xor(a: Self, b: Self) -> Self = Self(<$Inner>::xor(a.0, b.0));
                fn opaque(a: Self) -> Self = Self(<$Inner>::opaque(a.0));
                fn copy_padded(from: *const u8, n: usize, to: *mut u8) = <$Inner>::copy_padded(from, n, to);
            }

            #[inline(always)]
            unsafe fn rotate<const I: usize>(a: Self) -> Self {
                // SAFETY: as the caller promised.
                unsafe { Self(<$Inner>::rotate::<I>(a.0)) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u32) {
                // SAFETY: as the caller promised.
                unsafe { self.0.store(to) }
            }
        }
    };
}

/// Hides a vector's value from the optimizer: no instruction, one register.
macro_rules! opaque {
    ($features:literal, $class:ident, $register:ty) => {
        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn opaque(mut a: $register) -> $register {
            // SAFETY: the template is a comment; it neither reads nor writes the register.
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

/// Implements `WordColumns` for a vector of 32-bit words, by its `Columns` and functions that load
/// and store states.
macro_rules! columns32 {
    ($type:ty, $register:ty, $load_states:path, $store_states:path) => {
        impl WordColumns for $type {
            forward! {
                fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
                    <$type as Columns>::load_blocks(blocks, offset);
                fn load_states(states: *const *mut u32) -> [Self; 8] =
                    core::mem::transmute::<[$register; 8], [$type; 8]>($load_states(states));
                fn store_states(words: [Self; 8], states: *const *mut u32) =
                    $store_states(core::mem::transmute::<[$type; 8], [$register; 8]>(words), states);
            }
        }
    };
}

/// The words of a row in each 128-bit part of `$a`, or of a row of four 64-bit words, rotated left
/// by `$N` words, by a shuffle that takes an immediate.
macro_rules! rotate_words_left {
    ($N:ident, $shuffle:ident, $a:expr) => {
        match $N {
            1 => $shuffle::<0x39>($a),
            2 => $shuffle::<0x4E>($a),
            _ => $shuffle::<0x93>($a),
        }
    };
}

pub(crate) use {columns32, forward, opaque, rotate_words_left, transpose4, wrapper};
