//! The seven rounds of the column form in assembly, for instruction sets with sixteen registers.
//!
//! The state alone needs all sixteen registers, and a rotate by 12 or 7 bits needs one more. The compiler therefore spills a dozen words a
//! round. Here one word, v0, is in memory, and its register serves the rotates. It is idle while they run. In memory, the next word of the
//! message is already added to it, so that nothing waits for the store. Figures: `docs/decisions/0003-assembly-for-sixteen-registers.md`.

use crate::generic::columns::Rounds;
use bulla_simd::x86_64::{avx2, byte_rotation, sse41};
use core::arch::asm;
use core::arch::x86_64::{__m128i, __m256i};
use core::mem::MaybeUninit;

/// Byte shuffles that rotate every word right by 16 and by 8 bits.
#[repr(C, align(32))]
struct Shuffles([[u8; 32]; 2]);

static SHUFFLES: Shuffles = Shuffles([byte_rotation(4, 2), byte_rotation(4, 1)]);

/// Room for v0.
#[repr(C, align(32))]
struct Spill<V>(MaybeUninit<V>);

/// Half a round: four quarter rounds side by side, each `[a b c d x y]`: state words, then message words. In the first one, a is v0, x is
/// already added, and z is the next x or `none`. In all macros, the first word names the instruction set.
macro_rules! half_round {
    ($set:ident, [$b0:tt $c0:tt $d0:tt $y0:tt $z0:tt] $([$a:tt $b:tt $c:tt $d:tt $x:tt $y:tt])*) => {
        concat!(
            take!($set, $b0),
            $( add_message!($set, $a, $x), )*
            $( add!($set, $a, $b), )*
            xor!($set, $d0, 0),
            leave!($set, $y0),
            $( xor!($set, $d, $a), )*
            shuffle!($set, $d0, 0),
            $( shuffle!($set, $d, 0), )*
            add!($set, $c0, $d0),
            $( add!($set, $c, $d), )*
            xor!($set, $b0, $c0),
            $( xor!($set, $b, $c), )*
            rotate!($set, $b0, 12, 20),
            $( rotate!($set, $b, 12, 20), )*
            take!($set, $b0),
            $( add_message!($set, $a, $y), )*
            $( add!($set, $a, $b), )*
            xor!($set, $d0, 0),
            leave!($set, $z0),
            $( xor!($set, $d, $a), )*
            shuffle!($set, $d0, 32),
            $( shuffle!($set, $d, 32), )*
            add!($set, $c0, $d0),
            $( add!($set, $c, $d), )*
            xor!($set, $b0, $c0),
            $( xor!($set, $b, $c), )*
            rotate!($set, $b0, 7, 25),
            $( rotate!($set, $b, 7, 25), )*
        )
    };
}

/// One round with the message words of its schedule, and the first of the next round's.
macro_rules! round {
    ($set:ident, $m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
     $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt, $next:tt) => {
        concat!(
            half_round!($set, [4 8 12 $m1 $m8] [1 5 9 13 $m2 $m3] [2 6 10 14 $m4 $m5] [3 7 11 15 $m6 $m7]),
            half_round!($set, [5 10 15 $m9 $next] [1 6 11 12 $m10 $m11] [2 7 8 13 $m12 $m13] [3 4 9 14 $m14 $m15]),
        )
    };
}

/// The sum of b and v0, into the register of v0.
macro_rules! take {
    (avx2, $b:tt) => {
        concat!("vpaddd ymm0, ymm", $b, ", ymmword ptr [{s}]\n")
    };
    (sse41, $b:tt) => {
        concat!("movdqa xmm0, xmmword ptr [{s}]\npaddd xmm0, xmm", $b, "\n")
    };
}

/// Writes v0, plus its next message word if there is one, to memory.
macro_rules! leave {
    (avx2, none) => {
        "vmovdqa ymmword ptr [{s}], ymm0\n"
    };
    (sse41, none) => {
        "movdqa xmmword ptr [{s}], xmm0\n"
    };
    ($set:ident, $x:tt) => {
        concat!(add_message!($set, 0, $x), leave!($set, none))
    };
}

macro_rules! add_message {
    (avx2, $a:tt, $x:tt) => {
        concat!("vpaddd ymm", $a, ", ymm", $a, ", ymmword ptr [{m} + 32*", $x, "]\n")
    };
    (sse41, $a:tt, $x:tt) => {
        concat!("paddd xmm", $a, ", xmmword ptr [{m} + 16*", $x, "]\n")
    };
}

macro_rules! add {
    (avx2, $a:tt, $b:tt) => {
        concat!("vpaddd ymm", $a, ", ymm", $a, ", ymm", $b, "\n")
    };
    (sse41, $a:tt, $b:tt) => {
        concat!("paddd xmm", $a, ", xmm", $b, "\n")
    };
}

macro_rules! xor {
    (avx2, $a:tt, $b:tt) => {
        concat!("vpxor ymm", $a, ", ymm", $a, ", ymm", $b, "\n")
    };
    (sse41, $a:tt, $b:tt) => {
        concat!("pxor xmm", $a, ", xmm", $b, "\n")
    };
}

/// A rotate by whole bytes; the pattern is at `$at` in the table.
macro_rules! shuffle {
    (avx2, $a:tt, $at:tt) => {
        concat!("vpshufb ymm", $a, ", ymm", $a, ", ymmword ptr [{t} + ", $at, "]\n")
    };
    (sse41, $a:tt, $at:tt) => {
        concat!("pshufb xmm", $a, ", xmmword ptr [{t} + ", $at, "]\n")
    };
}

/// A rotate by shifts, by way of register 0.
macro_rules! rotate {
    (avx2, $b:tt, $right:tt, $left:tt) => {
        concat!(
            "vpsrld ymm0, ymm",
            $b,
            ", ",
            $right,
            "\n",
            "vpslld ymm",
            $b,
            ", ymm",
            $b,
            ", ",
            $left,
            "\n",
            "vpor ymm",
            $b,
            ", ymm",
            $b,
            ", ymm0\n",
        )
    };
    (sse41, $b:tt, $right:tt, $left:tt) => {
        concat!(
            "movdqa xmm0, xmm",
            $b,
            "\n",
            "psrld xmm0, ",
            $right,
            "\n",
            "pslld xmm",
            $b,
            ", ",
            $left,
            "\n",
            "por xmm",
            $b,
            ", xmm0\n",
        )
    };
}

/// The function with the seven rounds of one instruction set.
macro_rules! rounds {
    ($set:ident, $features:literal, $Register:ty, $load:literal, $($name:tt $i:literal)*) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn $set(v: &mut [$Register; 16], m: &[$Register; 16]) {
            let mut spill = Spill::<$Register>(MaybeUninit::uninit());
            // SAFETY: reads the sixteen vectors at m and the table, reads and writes the spilled word, and changes the registers named;
            // all memory is aligned as the vectors are.
            unsafe {
                asm!(
                    leave!($set, 0),
                    round!($set, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15, 2),
                    round!($set, 2 6 3 10 7 0 4 13 1 11 12 5 9 14 15 8, 3),
                    round!($set, 3 4 10 12 13 2 7 14 6 5 9 0 11 15 8 1, 10),
                    round!($set, 10 7 12 9 14 3 13 15 4 0 11 2 5 8 1 6, 12),
                    round!($set, 12 13 9 11 15 10 14 8 7 2 5 3 0 1 6 4, 9),
                    round!($set, 9 14 11 5 8 12 15 1 13 3 0 10 2 6 4 7, 11),
                    round!($set, 11 15 5 0 1 9 8 6 14 10 2 12 3 4 7 13, none),
                    $load,
                    m = in(reg) m,
                    t = in(reg) &raw const SHUFFLES,
                    s = in(reg) &raw mut spill,
                    $( inout($name) v[$i], )*
                    options(nostack, preserves_flags)
                );
            }
        }
    };
}

rounds!(
    avx2, "avx2", __m256i, "vmovdqa ymm0, ymmword ptr [{s}]",
    "ymm0" 0 "ymm1" 1 "ymm2" 2 "ymm3" 3 "ymm4" 4 "ymm5" 5 "ymm6" 6 "ymm7" 7
    "ymm8" 8 "ymm9" 9 "ymm10" 10 "ymm11" 11 "ymm12" 12 "ymm13" 13 "ymm14" 14 "ymm15" 15
);

rounds!(
    sse41, "sse4.1,ssse3", __m128i, "movdqa xmm0, xmmword ptr [{s}]",
    "xmm0" 0 "xmm1" 1 "xmm2" 2 "xmm3" 3 "xmm4" 4 "xmm5" 5 "xmm6" 6 "xmm7" 7
    "xmm8" 8 "xmm9" 9 "xmm10" 10 "xmm11" 11 "xmm12" 12 "xmm13" 13 "xmm14" 14 "xmm15" 15
);

impl Rounds for avx2::U32x8 {
    #[inline(always)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        // SAFETY: the caller has AVX2; the vector is transparent over its register.
        unsafe { avx2(&mut *core::ptr::from_mut(v).cast(), &*core::ptr::from_ref(m).cast()) }
    }
}

impl Rounds for sse41::U32x4 {
    #[inline(always)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        // SAFETY: the caller has SSE4.1; the vector is transparent over its register.
        unsafe { sse41(&mut *core::ptr::from_mut(v).cast(), &*core::ptr::from_ref(m).cast()) }
    }
}
