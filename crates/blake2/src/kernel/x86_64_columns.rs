//! The rounds of the column form in assembly, for AVX2.
//!
//! Sixteen registers hold the sixteen words of the states, and a rotate by shifts needs one more.
//! The compiler then keeps half of the state in memory. Here the words of the message and the masks
//! of byte shuffles are operands in memory. One word of the state (v8) goes to memory while its
//! register is the spare one: one store, and the load is part of an addition.
//!
//! Measured in `docs/decisions/0076-blake2-avx2-in-assembly.md`.

use super::x86_64::schedule;
use crate::generic::columns::Rounds;
use bulla_simd::x86_64::{avx2, byte_rotation};
use core::arch::asm;

/// Masks for `vpshufb`: each word rotated right by the distances of rotate number 0 and 2 of
/// BLAKE2s, or 1 and 2 of BLAKE2b.
#[repr(align(32))]
struct Masks {
    _bytes: [[u8; 32]; 2],
}

static MASKS_S: Masks = Masks { _bytes: [byte_rotation(4, 2), byte_rotation(4, 1)] };
static MASKS_B: Masks = Masks { _bytes: [byte_rotation(8, 3), byte_rotation(8, 2)] };

/// One operation on three registers. The set gives the word: `b` is 64 bits, `s` is 32.
macro_rules! op {
    (b, $name:literal, $to:tt $x:tt $y:tt) => {
        concat!($name, "q ymm", $to, ", ymm", $x, ", ymm", $y, "\n")
    };
    (s, $name:literal, $to:tt $x:tt $y:tt) => {
        concat!($name, "d ymm", $to, ", ymm", $x, ", ymm", $y, "\n")
    };
}

/// Adds a word of the message.
macro_rules! add_message {
    (b, $to:tt $word:tt) => {
        concat!("vpaddq ymm", $to, ", ymm", $to, ", [{m} + 32*", $word, "]\n")
    };
    (s, $to:tt $word:tt) => {
        concat!("vpaddd ymm", $to, ", ymm", $to, ", [{m} + 32*", $word, "]\n")
    };
}

/// c + d, where v8 may be in memory.
macro_rules! add_c {
    (b, 0, 8 $d:tt) => {
        concat!("vpaddq ymm8, ymm", $d, ", [{v} + 32*8]\n")
    };
    (s, $half:tt, 8 $d:tt) => {
        concat!("vpaddd ymm8, ymm", $d, ", [{v} + 32*8]\n")
    };
    ($set:ident, $half:tt, $c:tt $d:tt) => {
        op!($set, "vpadd", $c $c $d)
    };
}

/// Stores v8 to memory, if a rotate needs its register.
macro_rules! spare_v8 {
    (b, 0) => {
        ""
    };
    ($set:ident, $half:tt) => {
        "vmovdqa [{v} + 32*8], ymm8\n"
    };
}

/// Exclusive or.
macro_rules! xor {
    ($to:tt $from:tt) => {
        concat!("vpxor ymm", $to, ", ymm", $to, ", ymm", $from, "\n")
    };
}

/// A rotate of d: number 0 or 2.
macro_rules! rotate_d {
    (b, 0, $d:tt) => {
        concat!("vpshufd ymm", $d, ", ymm", $d, ", 0xB1\n")
    };
    (s, 0, $d:tt) => {
        concat!("vpshufb ymm", $d, ", ymm", $d, ", [{masks}]\n")
    };
    ($set:ident, 1, $d:tt) => {
        concat!("vpshufb ymm", $d, ", ymm", $d, ", [{masks} + 32]\n")
    };
}

/// A rotate of b: number 1 or 3.
macro_rules! rotate_b {
    (b, 0, $b:tt) => {
        concat!("vpshufb ymm", $b, ", ymm", $b, ", [{masks}]\n")
    };
    (b, 1, $b:tt) => {
        concat!(
            op!(b, "vpadd", 8 $b $b),
            concat!("vpsrlq ymm", $b, ", ymm", $b, ", 63\n"),
            xor!($b 8),
        )
    };
    (s, 0, $b:tt) => {
        rotate_b!(shifts $b, 12, 20)
    };
    (s, 1, $b:tt) => {
        rotate_b!(shifts $b, 7, 25)
    };
    (shifts $b:tt, $right:tt, $left:tt) => {
        concat!(
            concat!("vpsrld ymm8, ymm", $b, ", ", $right, "\n"),
            concat!("vpslld ymm", $b, ", ymm", $b, ", ", $left, "\n"),
            xor!($b 8),
        )
    };
}

/// The first or second half of four quarter rounds side by side: words a, b, c and d of each, and
/// its word of the message.
macro_rules! halves {
    ($set:ident, $half:tt, $([$a:tt $b:tt $c:tt $d:tt, $m:tt])*) => {
        concat!(
            $( add_message!($set, $a $m), )*
            $( op!($set, "vpadd", $a $a $b), )*
            $( xor!($d $a), )*
            $( rotate_d!($set, $half, $d), )*
            $( add_c!($set, $half, $c $d), )*
            $( xor!($b $c), )*
            spare_v8!($set, $half),
            $( rotate_b!($set, $half, $b), )*
        )
    };
}

/// All rounds, each with the message words of its schedule.
macro_rules! rounds {
    ($set:ident, $([
        $m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
        $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt
    ])*) => {
        concat!($(
            halves!($set, 0, [0 4 8 12, $m0] [1 5 9 13, $m2] [2 6 10 14, $m4] [3 7 11 15, $m6]),
            halves!($set, 1, [0 4 8 12, $m1] [1 5 9 13, $m3] [2 6 10 14, $m5] [3 7 11 15, $m7]),
            halves!($set, 0, [0 5 10 15, $m8] [1 6 11 12, $m10] [2 7 8 13, $m12] [3 4 9 14, $m14]),
            halves!($set, 1, [0 5 10 15, $m9] [1 6 11 12, $m11] [2 7 8 13, $m13] [3 4 9 14, $m15]),
        )*)
    };
}

/// Loads or stores all words of the state except v8.
macro_rules! all_but_v8 {
    (load) => { all_but_v8!(load 0 1 2 3 4 5 6 7 9 10 11 12 13 14 15) };
    (store) => { all_but_v8!(store 0 1 2 3 4 5 6 7 9 10 11 12 13 14 15) };
    (load $($i:tt)*) => { concat!($( "vmovdqa ymm", $i, ", [{v} + 32*", $i, "]\n", )*) };
    (store $($i:tt)*) => { concat!($( "vmovdqa [{v} + 32*", $i, "], ymm", $i, "\n", )*) };
}

macro_rules! column_rounds {
    ($Type:ty, $set:ident, $masks:expr) => {
        impl Rounds for $Type {
            #[inline(always)]
            unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
                // SAFETY: reads m and the masks, reads and writes v, all of which are vectors in
                // memory, aligned as such; and changes the registers named.
                unsafe {
                    asm!(
                        all_but_v8!(load),
                        schedule!($set, rounds!($set,)),
                        all_but_v8!(store),
                        v = in(reg) v,
                        m = in(reg) m,
                        masks = in(reg) &raw const $masks,
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                        out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                        out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                        out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                        options(nostack, preserves_flags)
                    );
                }
            }
        }
    };
}

column_rounds!(avx2::U32x8, s, MASKS_S);
column_rounds!(avx2::U64x4, b, MASKS_B);
