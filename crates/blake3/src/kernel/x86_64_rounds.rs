//! The seven rounds of the column form in assembly, for instruction sets of sixteen registers.
//!
//! The state alone takes all sixteen, and a rotate by 12 or 7 bits needs one more. The compiler spills a dozen words a round over this;
//! here one word, v8, lives in memory, and its register serves the rotates. Measured on a Zen 4 machine at 1 MiB, against the same
//! rounds compiled: see `docs/decisions/0003-assembly-for-sixteen-registers.md`.

use crate::generic::columns::Rounds;
use bulla_simd::x86_64::{avx2, sse41};
use core::arch::asm;
use core::arch::x86_64::{__m128i, __m256i};
use core::mem::MaybeUninit;

/// Byte shuffles that rotate every word right by 16 and by 8 bits.
#[repr(C, align(32))]
struct Shuffles([[u8; 32]; 2]);

static SHUFFLES: Shuffles = Shuffles([rotate_bytes(2), rotate_bytes(1)]);

const fn rotate_bytes(by: usize) -> [u8; 32] {
    let mut from = [0; 32];
    let mut i = 0;
    while i < 32 {
        // Within a 128-bit half: the shuffles work on each by itself.
        from[i] = (i % 16 / 4 * 4 + (i + by) % 4) as u8;
        i += 1;
    }
    from
}

/// Room for v8.
#[repr(C, align(32))]
struct Spill<V>(MaybeUninit<V>);

/// Half a round in four quarter rounds side by side, each `[a b c d x y]`: state words, then message words. In all macros the
/// first word names the instruction set.
macro_rules! half_round {
    ($set:ident, $([$a:tt $b:tt $c:tt $d:tt $x:tt $y:tt])*) => {
        concat!(
            $( add_message!($set, $a, $x), )*
            $( add!($set, $a, $b), )*
            $( xor!($set, $d, $a), )*
            $( shuffle!($set, $d, 0), )*
            $( add_c!($set, $c, $d), )*
            $( xor!($set, $b, $c), )*
            $( rotate!($set, $b, 12, 20), )*
            $( add_message!($set, $a, $y), )*
            $( add!($set, $a, $b), )*
            $( xor!($set, $d, $a), )*
            $( shuffle!($set, $d, 32), )*
            $( add_c!($set, $c, $d), )*
            $( xor!($set, $b, $c), )*
            $( rotate!($set, $b, 7, 25), )*
        )
    };
}

/// One round with the message words of its schedule.
macro_rules! round {
    ($set:ident, $m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
     $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt) => {
        concat!(
            half_round!($set, [0 4 8 12 $m0 $m1] [1 5 9 13 $m2 $m3] [2 6 10 14 $m4 $m5] [3 7 11 15 $m6 $m7]),
            half_round!($set, [0 5 10 15 $m8 $m9] [1 6 11 12 $m10 $m11] [2 7 8 13 $m12 $m13] [3 4 9 14 $m14 $m15]),
        )
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

/// A rotate by shifts, by way of register 8.
macro_rules! rotate {
    (avx2, $b:tt, $right:tt, $left:tt) => {
        concat!(
            "vpsrld ymm8, ymm",
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
            ", ymm8\n",
        )
    };
    (sse41, $b:tt, $right:tt, $left:tt) => {
        concat!(
            "movdqa xmm8, xmm",
            $b,
            "\n",
            "psrld xmm8, ",
            $right,
            "\n",
            "pslld xmm",
            $b,
            ", ",
            $left,
            "\n",
            "por xmm",
            $b,
            ", xmm8\n",
        )
    };
}

/// The sum in row c; v8 is in memory, and in its register from here to the next rotate.
macro_rules! add_c {
    (avx2, 8, $d:tt) => {
        concat!("vpaddd ymm8, ymm", $d, ", ymmword ptr [{s}]\nvmovdqa ymmword ptr [{s}], ymm8\n")
    };
    (sse41, 8, $d:tt) => {
        concat!(
            "movdqa xmm8, xmmword ptr [{s}]\n",
            "paddd xmm8, xmm",
            $d,
            "\n",
            "movdqa xmmword ptr [{s}], xmm8\n",
        )
    };
    ($set:ident, $c:tt, $d:tt) => {
        add!($set, $c, $d)
    };
}

/// The function with the seven rounds of one instruction set.
macro_rules! rounds {
    ($set:ident, $features:literal, $Register:ty, $store:literal, $load:literal, $($name:tt $i:literal)*) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn $set(v: &mut [$Register; 16], m: &[$Register; 16]) {
            let mut spill = Spill::<$Register>(MaybeUninit::uninit());
            // SAFETY: reads the sixteen vectors at m and the table, reads and writes the spilled word, and changes the registers named;
            // all memory is aligned as the vectors are.
            unsafe {
                asm!(
                    $store,
                    round!($set, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
                    round!($set, 2 6 3 10 7 0 4 13 1 11 12 5 9 14 15 8),
                    round!($set, 3 4 10 12 13 2 7 14 6 5 9 0 11 15 8 1),
                    round!($set, 10 7 12 9 14 3 13 15 4 0 11 2 5 8 1 6),
                    round!($set, 12 13 9 11 15 10 14 8 7 2 5 3 0 1 6 4),
                    round!($set, 9 14 11 5 8 12 15 1 13 3 0 10 2 6 4 7),
                    round!($set, 11 15 5 0 1 9 8 6 14 10 2 12 3 4 7 13),
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
    avx2, "avx2", __m256i, "vmovdqa ymmword ptr [{s}], ymm8", "vmovdqa ymm8, ymmword ptr [{s}]",
    "ymm0" 0 "ymm1" 1 "ymm2" 2 "ymm3" 3 "ymm4" 4 "ymm5" 5 "ymm6" 6 "ymm7" 7
    "ymm8" 8 "ymm9" 9 "ymm10" 10 "ymm11" 11 "ymm12" 12 "ymm13" 13 "ymm14" 14 "ymm15" 15
);

rounds!(
    sse41, "sse4.1,ssse3", __m128i, "movdqa xmmword ptr [{s}], xmm8", "movdqa xmm8, xmmword ptr [{s}]",
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
