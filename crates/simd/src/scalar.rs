//! One word as a vector of one lane: the column form of one input is the plain scalar algorithm.

use crate::vector::{Columns, Vector, WordColumns};

/// A vector of one lane. Its methods are safe in fact: they need no instruction set.
#[derive(Clone, Copy)]
pub struct U32x1(u32);

macro_rules! forward {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)? = $body:expr;)*) => { $(
        #[inline(always)]
        unsafe fn $name($($arg: $type),*) $(-> $ret)? {
            $body
        }
    )* };
}

impl Columns for U32x1 {
    #[inline(always)]
    unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
        let mut words = [U32x1(0); 16];
        // SAFETY: the caller promised one pointer, with 64 readable bytes at the offset.
        unsafe {
            let block = (*blocks).wrapping_add(offset).cast::<u32>();
            let mut i = 0;
            while i < 16 {
                words[i] = U32x1(u32::from_le(block.add(i).read_unaligned()));
                i += 1;
            }
        }
        words
    }

    #[inline(always)]
    unsafe fn store_chaining_values(words: [Self; 8], to: *mut u8) {
        // SAFETY: the caller promised 32 writable bytes.
        unsafe { store_words(&words, to) }
    }

    #[inline(always)]
    unsafe fn store_blocks(words: [Self; 16], to: *mut u8) {
        // SAFETY: the caller promised 64 writable bytes.
        unsafe { store_words(&words, to) }
    }

    forward! {
        fn unzip(left: Self, right: Self) -> (Self, Self) = (left, right);
        fn equal(a: Self, b: Self) -> u32 = u32::from(a.0 == b.0);
        fn select(mask: u32, yes: Self, no: Self) -> Self = if mask & 1 == 1 { yes } else { no };
    }
}

/// # Safety
///
/// `to` must be writable for four bytes a word.
#[inline(always)]
unsafe fn store_words<const N: usize>(words: &[U32x1; N], to: *mut u8) {
    let mut i = 0;
    while i < N {
        // SAFETY: i < N, and the caller promised N words.
        unsafe { to.cast::<u32>().add(i).write_unaligned(words[i].0.to_le()) };
        i += 1;
    }
}

/// One word of 64 bits as a vector of one lane.
#[derive(Clone, Copy)]
pub struct U64x1(u64);

/// The word traits of a vector of one lane.
macro_rules! words {
    ($type:ident, $word:ty, $rotates:expr) => {
        impl Vector for $type {
            type Word = $word;
            const LANES: usize = 1;

            forward! {
                fn splat(word: $word) -> Self = $type(word);
                fn add(a: Self, b: Self) -> Self = $type(a.0.wrapping_add(b.0));
                fn xor(a: Self, b: Self) -> Self = $type(a.0 ^ b.0);
                fn opaque(a: Self) -> Self = a;
            }

            #[inline(always)]
            unsafe fn rotate<const I: usize>(a: Self) -> Self {
                const ROTATES: [u32; 4] = $rotates;
                $type(a.0.rotate_right(ROTATES[I]))
            }

            #[inline(always)]
            unsafe fn load(from: *const $word) -> Self {
                // SAFETY: the caller promised a readable word.
                unsafe { $type(from.read_unaligned()) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $word) {
                // SAFETY: the caller promised a writable word.
                unsafe { to.write_unaligned(self.0) }
            }
        }

        impl WordColumns for $type {
            #[inline(always)]
            unsafe fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] {
                let mut words = [$type(0); 16];
                let mut i = 0;
                while i < 16 {
                    // SAFETY: the caller promised one pointer, with a block readable at the offset.
                    unsafe {
                        let word = (*blocks).wrapping_add(offset).cast::<$word>().add(i);
                        words[i] = $type(<$word>::from_le(word.read_unaligned()));
                    }
                    i += 1;
                }
                words
            }

            #[inline(always)]
            unsafe fn load_states(states: *const *mut $word) -> [Self; 8] {
                let mut words = [$type(0); 8];
                let mut i = 0;
                while i < 8 {
                    // SAFETY: the caller promised one pointer, at eight words.
                    words[i] = unsafe { $type(*(*states).add(i)) };
                    i += 1;
                }
                words
            }

            #[inline(always)]
            unsafe fn store_states(words: [Self; 8], states: *const *mut $word) {
                let mut i = 0;
                while i < 8 {
                    // SAFETY: the caller promised one pointer, at eight words.
                    unsafe { *(*states).add(i) = words[i].0 };
                    i += 1;
                }
            }
        }
    };
}

words!(U32x1, u32, [16, 12, 8, 7]);
words!(U64x1, u64, [32, 24, 16, 63]);
