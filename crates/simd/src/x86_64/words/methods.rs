//! Shared methods of vectors of several instruction sets: by one instruction, or by the inner
//! 32-bit vector.

/// `WordRows::turn1` to `turn3` by one instruction that takes an immediate.
macro_rules! turns {
    ($type:ident, $shuffle:ident) => {
        forward! {
            fn turn1(a: Self) -> Self = $type($shuffle::<0x39>(a.0));
            fn turn2(a: Self) -> Self = $type($shuffle::<0x4E>(a.0));
            fn turn3(a: Self) -> Self = $type($shuffle::<0x93>(a.0));
        }
    };
}

/// Implements `WordColumns` for a vector of 32-bit words, by its `Columns` and functions that load
/// and store states.
macro_rules! columns32 {
    ($type:ty, $register:ty, $load_halves:path, $store_halves:path) => {
        impl WordColumns for $type {
            forward! {
                fn load_blocks(blocks: *const *const u8, offset: usize) -> [Self; 16] =
                    <$type as Columns>::load_blocks(blocks, offset);
                fn load_halves(halves: *const *mut u32) -> [Self; 8] =
                    core::mem::transmute::<[$register; 8], [$type; 8]>($load_halves(halves));
                fn store_halves(words: [Self; 8], halves: *const *mut u32) =
                    $store_halves(core::mem::transmute::<[$type; 8], [$register; 8]>(words), halves);
            }
        }
    };
}

pub(super) use {columns32, turns};
