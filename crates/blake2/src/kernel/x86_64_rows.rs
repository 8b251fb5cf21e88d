//! The rounds of the row form in assembly, for AVX-512 and AVX2.
//!
//! In the row form, everything waits for one chain of operations: additions, exclusive ors and
//! rotates, each of which needs the result of the one before. So the order of the instructions
//! matters, and the compiler does not keep it. There are three orders here, for three kinds of CPU:
//! - [`FastRotate`]: a rotate takes one cycle, so the chain is that of the specification, and
//!   everything else comes after it.
//! - [`SlowRotate`]: a rotate takes two cycles. `rotate(xor(early, late))` then costs three cycles,
//!   but `late >> k ^ late << (bits - k) ^ rotate(early)` costs two after `late`: the two shifts
//!   run side by side, and one `vpternlog` joins them. They run side by side if they are neighbors
//!   in the code.
//! - [`NoRotate`]: AVX2, which has no rotate. The order is that of `FastRotate`, with byte
//!   shuffles, and shifts if the distance is not whole bytes.
//!
//! In all three, broadcast loads fetch the words of the message, and masks or blends merge them: no
//! shuffles are needed. The loads for the next half round come after the chain of this one.
//!
//! Measured on machines of both kinds: see `docs/decisions/0070-blake2-rows.md` and
//! `0073-blake2-by-cpu.md`.

use super::x86_64::schedule;
use crate::generic::rows::Rounds;
use bulla_simd::x86_64::{avx2, avx512};
use core::arch::asm;
use core::marker::PhantomData;

/// The order for CPUs whose rotates take one cycle.
#[derive(Clone, Copy)]
pub(crate) struct FastRotate<V>(PhantomData<V>);

/// The order for CPUs whose rotates take two cycles.
#[derive(Clone, Copy)]
pub(crate) struct SlowRotate<V>(PhantomData<V>);

/// The order for AVX2.
#[derive(Clone, Copy)]
pub(crate) struct NoRotate<V>(PhantomData<V>);

/// The names of registers and instructions; the first word says which set: `b` has four 64-bit
/// words in ymm registers, `s` four 32-bit words in xmm registers.
///
/// Registers 0 to 3 are the rows a to d; others hold them for a while. Message words are in 6 and 7
/// for the columns, in 8 and 9 for the diagonals.
macro_rules! op {
    (b, $name:literal, $to:tt $($from:tt)*) => {
        concat!($name, "q ymm", $to, $( ", ymm", $from, )* "\n")
    };
    (s, $name:literal, $to:tt $($from:tt)*) => {
        concat!($name, "d xmm", $to, $( ", xmm", $from, )* "\n")
    };
}

/// An operation with an immediate.
macro_rules! op_by {
    (b, $name:literal, $to:tt $from:tt, $by:tt) => {
        concat!($name, "q ymm", $to, ", ymm", $from, ", ", $by, "\n")
    };
    (s, $name:literal, $to:tt $from:tt, $by:tt) => {
        concat!($name, "d xmm", $to, ", xmm", $from, ", ", $by, "\n")
    };
}

/// Exclusive or of three.
macro_rules! join {
    (b, $to:tt $x:tt $y:tt) => {
        concat!("vpternlogq ymm", $to, ", ymm", $x, ", ymm", $y, ", 0x96\n")
    };
    (s, $to:tt $x:tt $y:tt) => {
        concat!("vpternlogd xmm", $to, ", xmm", $x, ", xmm", $y, ", 0x96\n")
    };
}

/// Four words of the message.
macro_rules! gather {
    (b, $to:tt, $w0:tt $w1:tt $w2:tt $w3:tt) => {
        concat!(
            "vmovq xmm",
            $to,
            ", qword ptr [{m} + 8*",
            $w0,
            "]\n",
            "vpbroadcastq ymm",
            $to,
            "{{k1}}, qword ptr [{m} + 8*",
            $w1,
            "]\n",
            "vpbroadcastq ymm",
            $to,
            "{{k2}}, qword ptr [{m} + 8*",
            $w2,
            "]\n",
            "vpbroadcastq ymm",
            $to,
            "{{k3}}, qword ptr [{m} + 8*",
            $w3,
            "]\n",
        )
    };
    (s, $to:tt, $w0:tt $w1:tt $w2:tt $w3:tt) => {
        concat!(
            "vmovd xmm",
            $to,
            ", dword ptr [{m} + 4*",
            $w0,
            "]\n",
            "vpbroadcastd xmm",
            $to,
            "{{k1}}, dword ptr [{m} + 4*",
            $w1,
            "]\n",
            "vpbroadcastd xmm",
            $to,
            "{{k2}}, dword ptr [{m} + 4*",
            $w2,
            "]\n",
            "vpbroadcastd xmm",
            $to,
            "{{k3}}, dword ptr [{m} + 4*",
            $w3,
            "]\n",
        )
    };
}

/// Turns a row by n words.
macro_rules! turn {
    (b, $to:tt $from:tt, $n:tt) => {
        concat!("vpermq ymm", $to, ", ymm", $from, ", ", turn!($n), "\n")
    };
    (s, $to:tt $from:tt, $n:tt) => {
        concat!("vpshufd xmm", $to, ", xmm", $from, ", ", turn!($n), "\n")
    };
    (1) => {
        "0x39"
    };
    (2) => {
        "0x4E"
    };
    (3) => {
        "0x93"
    };
}

/// Turns a row before a half round, if the half round is not the first.
macro_rules! turned {
    ($set:ident, $from:tt $to:tt, first) => { "" };
    ($set:ident, 0 0, diagonal) => { turn!($set, 0 0, 3) };
    ($set:ident, 2 2, diagonal) => { turn!($set, 2 2, 1) };
    ($set:ident, 0 0, column) => { turn!($set, 0 0, 1) };
    ($set:ident, 2 2, column) => { turn!($set, 2 2, 3) };
    ($set:ident, 5 3, $half:ident) => { turn!($set, 3 5, 2) };
}

/// The distance of one of the four rotates.
macro_rules! rotate {
    (b, 0, $row:tt) => { op_by!(b, "vpror", $row $row, 32) };
    (b, 1, $row:tt) => { op_by!(b, "vpror", $row $row, 24) };
    (b, 2, $row:tt) => { op_by!(b, "vpror", $row $row, 16) };
    (b, 3, $row:tt) => { op_by!(b, "vpror", $row $row, 63) };
    (s, 0, $row:tt) => { op_by!(s, "vpror", $row $row, 16) };
    (s, 1, $row:tt) => { op_by!(s, "vpror", $row $row, 12) };
    (s, 2, $row:tt) => { op_by!(s, "vpror", $row $row, 8) };
    (s, 3, $row:tt) => { op_by!(s, "vpror", $row $row, 7) };
}

/// Four quarter rounds side by side, with the message words in `$x` and `$y`, and then the turns
/// for the next half round.
macro_rules! half_round_fast {
    ($set:ident, $half:ident, $x:tt $y:tt) => {
        concat!(
            op!($set, "vpadd", 4 0 $x),
            op!($set, "vpadd", 4 4 1),
            op!($set, "vpxor", 16 3 4),
            rotate!($set, 0, 16),
            op!($set, "vpadd", 5 2 16),
            op!($set, "vpxor", 1 1 5),
            rotate!($set, 1, 1),
            op!($set, "vpadd", 17 4 $y),
            op!($set, "vpadd", 17 17 1),
            op!($set, "vpxor", 16 16 17),
            rotate!($set, 2, 16),
            op!($set, "vpadd", 5 5 16),
            op!($set, "vpxor", 1 1 5),
            rotate!($set, 3, 1),
            turn_after!($set, $half, a 0 17),
            turn_after!($set, $half, c 2 5),
            turn_after!($set, $half, d 3 16),
        )
    };
}

/// Turns a row after a half round, for the next one.
macro_rules! turn_after {
    ($set:ident, column, a $to:tt $from:tt) => { turn!($set, $to $from, 3) };
    ($set:ident, column, c $to:tt $from:tt) => { turn!($set, $to $from, 1) };
    ($set:ident, diagonal, a $to:tt $from:tt) => { turn!($set, $to $from, 1) };
    ($set:ident, diagonal, c $to:tt $from:tt) => { turn!($set, $to $from, 3) };
    ($set:ident, $half:ident, d $to:tt $from:tt) => { turn!($set, $to $from, 2) };
}

/// All rounds, each with the message words of its schedule.
macro_rules! rounds_fast {
    ($set:ident, $([
        $m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
        $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt
    ])*) => {
        concat!($(
            gather!($set, 6, $m0 $m2 $m4 $m6),
            gather!($set, 7, $m1 $m3 $m5 $m7),
            half_round_fast!($set, column, 6 7),
            gather!($set, 8, $m14 $m8 $m10 $m12),
            gather!($set, 9, $m15 $m9 $m11 $m13),
            half_round_fast!($set, diagonal, 8 9),
        )*)
    };
}

/// Four quarter rounds side by side, with the message words in `$x` and `$y`, and before them the
/// turns for this half round.
macro_rules! half_round_slow {
    (b, $half:ident, $x:tt $y:tt) => {
        concat!(
            turned!(b, 0 0, $half),
            op!(b, "vpadd", 0 0 $x),
            turned!(b, 2 2, $half),
            op!(b, "vpadd", 0 0 1),
            turned!(b, 5 3, $half),
            op!(b, "vpxor", 10 3 0),
            "vpshufd ymm3, ymm10, 0xB1\n",
            op_by!(b, "vpror", 5 3, 16),
            op!(b, "vpadd", 2 2 3),
            op_by!(b, "vpror", 4 1, 24),
            op_by!(b, "vpsrl", 12 2, 24),
            op_by!(b, "vpsll", 13 2, 40),
            join!(b, 4 12 13),
            op!(b, "vpadd", 0 0 $y),
            op!(b, "vpadd", 0 0 4),
            op_by!(b, "vpsrl", 14 0, 16),
            op_by!(b, "vpsll", 15 0, 48),
            join!(b, 5 14 15),
            op!(b, "vpadd", 2 2 5),
            op_by!(b, "vpror", 1 4, 63),
            op_by!(b, "vpsrl", 16 2, 63),
            op!(b, "vpadd", 17 2 2),
            join!(b, 1 16 17),
        )
    };
    (s, $half:ident, $x:tt $y:tt) => {
        concat!(
            turned!(s, 0 0, $half),
            turned!(s, 2 2, $half),
            turned!(s, 5 3, $half),
            op!(s, "vpadd", 0 0 $x),
            op_by!(s, "vpror", 18 3, 16),
            op!(s, "vpadd", 0 0 1),
            op_by!(s, "vpsrl", 10 0, 16),
            op_by!(s, "vpsll", 11 0, 16),
            join!(s, 18 10 11),
            op_by!(s, "vpror", 4 1, 12),
            op!(s, "vpadd", 2 2 18),
            op_by!(s, "vpsrl", 12 2, 12),
            op_by!(s, "vpsll", 13 2, 20),
            join!(s, 4 12 13),
            op!(s, "vpadd", 0 0 $y),
            op_by!(s, "vpror", 1 4, 7),
            op!(s, "vpadd", 0 0 4),
            op_by!(s, "vpror", 5 18, 8),
            op_by!(s, "vpsll", 15 0, 24),
            op_by!(s, "vpsrl", 14 0, 8),
            join!(s, 5 14 15),
            op!(s, "vpadd", 2 2 5),
            op_by!(s, "vpsrl", 16 2, 7),
            op_by!(s, "vpsll", 17 2, 25),
            join!(s, 1 16 17),
        )
    };
}

/// All rounds, each with the message words of its schedule. `$half` is `first` for the first round,
/// then `column`.
macro_rules! rounds_slow {
    ($set:ident, $half:ident,
     [$m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
      $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt] $($more:tt)*) => {
        concat!(
            gather!($set, 6, $m0 $m2 $m4 $m6),
            gather!($set, 7, $m1 $m3 $m5 $m7),
            half_round_slow!($set, $half, 6 7),
            gather!($set, 8, $m14 $m8 $m10 $m12),
            gather!($set, 9, $m15 $m9 $m11 $m13),
            half_round_slow!($set, diagonal, 8 9),
            rounds_slow!($set, column, $($more)*),
        )
    };
    ($set:ident, column,) => {
        concat!(turn!($set, 0 0, 1), turn!($set, 2 2, 3), turn!($set, 3 5, 2))
    };
}

/// Exclusive or in AVX2.
macro_rules! xor {
    (b, $to:tt $x:tt $y:tt) => {
        concat!("vpxor ymm", $to, ", ymm", $x, ", ymm", $y, "\n")
    };
    (s, $to:tt $x:tt $y:tt) => {
        concat!("vpxor xmm", $to, ", xmm", $x, ", xmm", $y, "\n")
    };
}

/// Four words of the message, through register 10.
macro_rules! gather_by_blends {
    ($set:ident, $to:tt, $w0:tt $w1:tt $w2:tt $w3:tt) => {
        concat!(
            gather_by_blends!($set first $to $w0),
            gather_by_blends!($set $to $w1, 1),
            gather_by_blends!($set $to $w2, 2),
            gather_by_blends!($set $to $w3, 3),
        )
    };
    (b first $to:tt $word:tt) => {
        concat!("vmovq xmm", $to, ", qword ptr [{m} + 8*", $word, "]\n")
    };
    (s first $to:tt $word:tt) => {
        concat!("vmovd xmm", $to, ", dword ptr [{m} + 4*", $word, "]\n")
    };
    (b $to:tt $word:tt, $place:tt) => {
        concat!(
            concat!("vpbroadcastq ymm10, qword ptr [{m} + 8*", $word, "]\n"),
            concat!("vpblendd ymm", $to, ", ymm", $to, ", ymm10, 3 << 2*", $place, "\n"),
        )
    };
    (s $to:tt $word:tt, $place:tt) => {
        concat!(
            concat!("vpbroadcastd xmm10, dword ptr [{m} + 4*", $word, "]\n"),
            concat!("vpblendd xmm", $to, ", xmm", $to, ", xmm10, 1 << ", $place, "\n"),
        )
    };
}

/// A rotate in place, through register 11; registers 12 and 13 hold masks for byte shuffles.
macro_rules! rotate_by_shuffle {
    (b, 0, $row:tt) => { concat!("vpshufd ymm", $row, ", ymm", $row, ", 0xB1\n") };
    (b, 1, $row:tt) => { concat!("vpshufb ymm", $row, ", ymm", $row, ", ymm12\n") };
    (b, 2, $row:tt) => { concat!("vpshufb ymm", $row, ", ymm", $row, ", ymm13\n") };
    (b, 3, $row:tt) => {
        concat!(op!(b, "vpadd", 11 $row $row), op_by!(b, "vpsrl", $row $row, 63), xor!(b, $row $row 11))
    };
    (s, 0, $row:tt) => { concat!("vpshufb xmm", $row, ", xmm", $row, ", xmm12\n") };
    (s, 1, $row:tt) => {
        concat!(op_by!(s, "vpsll", 11 $row, 20), op_by!(s, "vpsrl", $row $row, 12), xor!(s, $row $row 11))
    };
    (s, 2, $row:tt) => { concat!("vpshufb xmm", $row, ", xmm", $row, ", xmm13\n") };
    (s, 3, $row:tt) => {
        concat!(op_by!(s, "vpsll", 11 $row, 25), op_by!(s, "vpsrl", $row $row, 7), xor!(s, $row $row 11))
    };
}

/// Like [`half_round_fast`], without instructions of AVX-512.
macro_rules! half_round_without_rotates {
    ($set:ident, $half:ident, $x:tt $y:tt) => {
        concat!(
            op!($set, "vpadd", 4 0 $x),
            op!($set, "vpadd", 4 4 1),
            xor!($set, 14 3 4),
            rotate_by_shuffle!($set, 0, 14),
            op!($set, "vpadd", 5 2 14),
            xor!($set, 1 1 5),
            rotate_by_shuffle!($set, 1, 1),
            op!($set, "vpadd", 15 4 $y),
            op!($set, "vpadd", 15 15 1),
            xor!($set, 14 14 15),
            rotate_by_shuffle!($set, 2, 14),
            op!($set, "vpadd", 5 5 14),
            xor!($set, 1 1 5),
            rotate_by_shuffle!($set, 3, 1),
            turn_after!($set, $half, a 0 15),
            turn_after!($set, $half, c 2 5),
            turn_after!($set, $half, d 3 14),
        )
    };
}

/// All rounds, each with the message words of its schedule.
macro_rules! rounds_without_rotates {
    ($set:ident, $([
        $m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
        $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt
    ])*) => {
        concat!($(
            gather_by_blends!($set, 6, $m0 $m2 $m4 $m6),
            gather_by_blends!($set, 7, $m1 $m3 $m5 $m7),
            half_round_without_rotates!($set, column, 6 7),
            gather_by_blends!($set, 8, $m14 $m8 $m10 $m12),
            gather_by_blends!($set, 9, $m15 $m9 $m11 $m13),
            half_round_without_rotates!($set, diagonal, 8 9),
        )*)
    };
}

/// The rounds of a vector type in one order: its registers for the rows, and the other operands of
/// the assembly.
macro_rules! row_rounds {
    (
        $Order:ident, $Type:ty, $features:literal, $a:tt $b:tt $c:tt $d:tt, $rounds:expr,
        in $($in:tt = $value:expr),*; out $($out:tt)*
    ) => {
        impl Rounds for $Order<$Type> {
            type Row = $Type;

            #[inline(always)]
            unsafe fn rounds(rows: [$Type; 4], m: *const u8) -> [$Type; 4] {
                #[inline]
                #[target_feature(enable = $features)]
                unsafe fn rounds(rows: [$Type; 4], m: *const u8) -> [$Type; 4] {
                    let [a, b, c, d] = rows;
                    let (a1, b1, c1, d1);
                    // SAFETY: reads the block at m, and changes the registers named.
                    unsafe {
                        asm!(
                            $rounds,
                            m = in(reg) m,
                            $( in($in) $value, )*
                            inlateout($a) a.register() => a1,
                            inlateout($b) b.register() => b1,
                            inlateout($c) c.register() => c1,
                            inlateout($d) d.register() => d1,
                            $( out($out) _, )*
                            options(pure, readonly, nostack, preserves_flags)
                        );
                    }
                    [
                        <$Type>::from_register(a1),
                        <$Type>::from_register(b1),
                        <$Type>::from_register(c1),
                        <$Type>::from_register(d1),
                    ]
                }
                // SAFETY: the caller has the instruction set, and a readable block.
                unsafe { rounds(rows, m) }
            }
        }
    };
}

/// The rounds of a vector type in both orders of AVX-512.
macro_rules! avx512_rounds {
    ($Type:ty, $set:ident, $($row:tt)*) => {
        avx512_rounds!(in FastRotate, $Type, $($row)*, schedule!($set, rounds_fast!($set,)));
        avx512_rounds!(in SlowRotate, $Type, $($row)*, schedule!($set, rounds_slow!($set, first,)));
    };
    (in $Order:ident, $Type:ty, $a:tt $b:tt $c:tt $d:tt, $rounds:expr) => {
        row_rounds!(
            $Order, $Type, "avx512f,avx512vl", $a $b $c $d, $rounds,
            in "k1" = 2u8, "k2" = 4u8, "k3" = 8u8;
            out "xmm4" "xmm5" "xmm6" "xmm7" "xmm8" "xmm9" "xmm10" "xmm11" "xmm12" "xmm13" "xmm14" "xmm15" "xmm16" "xmm17" "xmm18"
        );
    };
}

avx512_rounds!(avx512::U64x4, b, "ymm0" "ymm1" "ymm2" "ymm3");
avx512_rounds!(avx512::U32x4, s, "xmm0" "xmm1" "xmm2" "xmm3");

row_rounds!(
    NoRotate, avx2::U64x4, "avx2", "ymm0" "ymm1" "ymm2" "ymm3", schedule!(b, rounds_without_rotates!(b,)),
    in "ymm12" = avx2::U64x4::mask1(), "ymm13" = avx2::U64x4::mask2();
    out "xmm4" "xmm5" "xmm6" "xmm7" "xmm8" "xmm9" "xmm10" "xmm11" "xmm14" "xmm15"
);

row_rounds!(
    NoRotate, avx2::U32x4, "avx2", "xmm0" "xmm1" "xmm2" "xmm3", schedule!(s, rounds_without_rotates!(s,)),
    in "xmm12" = avx2::U32x4::mask0(), "xmm13" = avx2::U32x4::mask2();
    out "xmm4" "xmm5" "xmm6" "xmm7" "xmm8" "xmm9" "xmm10" "xmm11" "xmm14" "xmm15"
);
