//! The rounds of the column form in assembly. `cargo run -p bulla-blake3-rounds` writes it;
//! decision 0186 (`docs/decisions/0186-woven-rounds.md`) has the figures.
//!
//! There are two reasons for assembly:
//!
//! - AVX2 and SSE4.1 have sixteen registers. The state alone needs all of them, and a rotate by 12
//!   or 7 bits needs one more. The compiler would spill nine words a round. Here one word is in
//!   memory, v8 or v10, and its register serves the rotates (decision 0232).
//! - The message must be transposed, and shuffles take the units that the rounds need. So integer
//!   instructions between those of the rounds write the message of the next block, transposed, to a
//!   second buffer.

#[cfg(not(target_pointer_width = "64"))]
use crate::generic::columns::LoadBetween;
#[cfg(target_pointer_width = "64")]
use crate::generic::columns::{Messages, Rounds, TwoGroupRounds};
use crate::generic::lanes::Blocks;
use bulla_simd::Columns;
use bulla_simd::x86_64::avx512_by_cpu::FullWidth;
use bulla_simd::x86_64::{avx2, avx512, byte_rotation, sse41};
use core::arch::asm;
use core::arch::x86_64::{__m128i, __m256i, __m512i};
use core::mem::MaybeUninit;

/// Byte shuffles that rotate every word right by 16 and by 8 bits.
#[repr(C, align(32))]
struct Shuffles([[u8; 32]; 2]);

static SHUFFLES: Shuffles = Shuffles([byte_rotation(4, 2), byte_rotation(4, 1)]);

/// Memory with the alignment of the widest registers.
#[repr(C, align(64))]
pub(crate) struct Aligned<T>(T);

// The assembly reads pointers of 64 bits. The targets of x86-64 with pointers of 32 bits load
// messages in turn.
#[cfg(target_pointer_width = "64")]
type Preferred<V> = Woven<V>;
#[cfg(not(target_pointer_width = "64"))]
type Preferred<V> = LoadBetween<V>;

/// Loads a message while the rounds before it run.
#[cfg_attr(not(target_pointer_width = "64"), allow(dead_code, reason = "see `Preferred`"))]
pub(crate) struct Woven<V> {
    /// The message of the next rounds.
    message: *mut [V; 16],
    /// Room for the one after it.
    room: *mut [V; 16],
    /// The blocks of the next rounds.
    blocks: Blocks,
}

/// The function `$name`: the seven rounds of one instruction set on the registers of `$Register`.
/// `$file` has them with the transpose of the next message among them. Without enough registers,
/// `$spill` is a variable for two words.
macro_rules! woven {
    (
        $name:ident, $features:literal, [$Register:ty; $words:literal], $file:literal,
        $([$register:tt $i:literal])* $(, $spill:ident)?
    ) => {
        /// # Safety
        ///
        /// The message must be initialized, and the blocks readable.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $name(
            v: &mut [$Register; $words],
            message: *const [$Register; $words],
            next: *mut [$Register; $words],
            blocks: Blocks,
            ahead: usize,
        ) {
            $( let mut $spill = MaybeUninit::<Aligned<[$Register; 2]>>::uninit(); )?
            // SAFETY: reads the message, the shuffles, the blocks and the pointers to them, writes
            // the next message and the spilled words, and changes the registers named. Vectors in
            // memory are aligned. A prefetch never faults.
            unsafe {
                asm!(
                    include_str!(concat!("x86_64_rounds/", $file, "_woven.s")),
                    message = in(reg) message,
                    next = in(reg) next,
                    pointers = in(reg) blocks.pointers,
                    offset = in(reg) blocks.offset,
                    ahead = in(reg) ahead,
                    lane0 = out(reg) _,
                    lane1 = out(reg) _,
                    lane2 = out(reg) _,
                    lane3 = out(reg) _,
                    words = out(reg) _,
                    $( shuffles = in(reg) &raw const SHUFFLES, spill = in(reg) $spill.as_mut_ptr(), )?
                    $( inout($register) v[$i], )*
                    options(nostack)
                );
            }
        }
    };
}

/// The function `$name`: the seven rounds alone.
macro_rules! rounds {
    ($name:ident, $features:literal, $Register:ty, $file:literal, $([$register:tt $i:literal])*) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn $name(v: &mut [$Register; 16], message: &[$Register; 16]) {
            let mut spill = MaybeUninit::<Aligned<[$Register; 2]>>::uninit();
            // SAFETY: reads the message and the shuffles, reads and writes the spilled words, and
            // changes the registers named. Vectors in memory are aligned.
            unsafe {
                asm!(
                    include_str!(concat!("x86_64_rounds/", $file, ".s")),
                    message = in(reg) message,
                    shuffles = in(reg) &raw const SHUFFLES,
                    spill = in(reg) spill.as_mut_ptr(),
                    $( inout($register) v[$i], )*
                    options(nostack, preserves_flags)
                );
            }
        }
    };
}

/// [`Woven`] for the vector `$V`, transparent over a register, by the function `$woven`.
macro_rules! messages {
    ($V:ty, $woven:ident, $one_block_is_slower:literal) => {
        impl Messages<$V> for Woven<$V> {
            const ONE_BLOCK_IS_SLOWER: bool = $one_block_is_slower;
            type Buffer = Aligned<[[$V; 16]; 2]>;

            #[inline(always)]
            unsafe fn begin(room: *mut Self::Buffer, blocks: Blocks) -> Self {
                let message: *mut [$V; 16] = room.cast();
                // SAFETY: the caller has the instruction set, and the blocks are readable; there is
                // room for two messages.
                unsafe {
                    message.write(<$V>::load_blocks(blocks.pointers, blocks.offset));
                    Woven { message, room: message.add(1), blocks }
                }
            }

            #[inline(always)]
            unsafe fn rounds(&mut self, v: &mut [$V; 16], next: Option<Blocks>, ahead: usize) {
                // After the last blocks, these are read once more. That is faster than rounds
                // without the transpose, which would be more code.
                let next = next.unwrap_or(self.blocks);
                // SAFETY: as in `begin`; the call before this one has written the message.
                unsafe {
                    let v = &mut *core::ptr::from_mut(v).cast();
                    $woven(v, self.message.cast(), self.room.cast(), next, ahead);
                }
                core::mem::swap(&mut self.message, &mut self.room);
                self.blocks = next;
            }
        }
    };
}

messages!(FullWidth, avx512_woven, true);
messages!(avx512::U32x16, avx512_woven, true);
messages!(avx2::U32x8, avx2_woven, true);
messages!(sse41::U32x4, sse41_woven, false);

impl Rounds for FullWidth {
    type Messages = Preferred<Self>;
}

#[cfg(target_pointer_width = "64")]
impl TwoGroupRounds for FullWidth {
    #[inline(always)]
    unsafe fn rounds_of_two(
        v: &mut [Self; 32],
        message: *const [Self; 32],
        room: *mut [Self; 32],
        next: Blocks,
        ahead: usize,
    ) {
        // SAFETY: the caller has AVX-512, and promised the rest; the vector is transparent over its
        // register.
        unsafe {
            let v = &mut *core::ptr::from_mut(v).cast();
            avx512_two_woven(v, message.cast(), room.cast(), next, ahead);
        }
    }
}

impl Rounds for avx512::U32x16 {
    type Messages = Preferred<Self>;
}

impl Rounds for avx2::U32x8 {
    type Messages = Preferred<Self>;

    #[inline(always)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        // SAFETY: the caller has AVX2; the vector is transparent over its register.
        unsafe { avx2(&mut *core::ptr::from_mut(v).cast(), &*core::ptr::from_ref(m).cast()) }
    }
}

impl Rounds for sse41::U32x4 {
    type Messages = Preferred<Self>;

    #[inline(always)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        // SAFETY: the caller has SSE4.1; the vector is transparent over its register.
        unsafe { sse41(&mut *core::ptr::from_mut(v).cast(), &*core::ptr::from_ref(m).cast()) }
    }
}

woven!(
    avx512_woven, "avx512f", [__m512i; 16], "avx512",
    ["zmm0" 0] ["zmm1" 1] ["zmm2" 2] ["zmm3" 3] ["zmm4" 4] ["zmm5" 5] ["zmm6" 6] ["zmm7" 7]
    ["zmm8" 8] ["zmm9" 9] ["zmm10" 10] ["zmm11" 11] ["zmm12" 12] ["zmm13" 13] ["zmm14" 14] ["zmm15" 15]
);

// The states of two groups take all registers.
#[cfg(target_pointer_width = "64")]
woven!(
    avx512_two_woven, "avx512f", [__m512i; 32], "avx512_two",
    ["zmm0" 0] ["zmm1" 1] ["zmm2" 2] ["zmm3" 3] ["zmm4" 4] ["zmm5" 5] ["zmm6" 6] ["zmm7" 7]
    ["zmm8" 8] ["zmm9" 9] ["zmm10" 10] ["zmm11" 11] ["zmm12" 12] ["zmm13" 13] ["zmm14" 14] ["zmm15" 15]
    ["zmm16" 16] ["zmm17" 17] ["zmm18" 18] ["zmm19" 19] ["zmm20" 20] ["zmm21" 21] ["zmm22" 22] ["zmm23" 23]
    ["zmm24" 24] ["zmm25" 25] ["zmm26" 26] ["zmm27" 27] ["zmm28" 28] ["zmm29" 29] ["zmm30" 30] ["zmm31" 31]
);

rounds!(
    avx2, "avx2", __m256i, "avx2",
    ["ymm0" 0] ["ymm1" 1] ["ymm2" 2] ["ymm3" 3] ["ymm4" 4] ["ymm5" 5] ["ymm6" 6] ["ymm7" 7]
    ["ymm8" 8] ["ymm9" 9] ["ymm10" 10] ["ymm11" 11] ["ymm12" 12] ["ymm13" 13] ["ymm14" 14] ["ymm15" 15]
);
woven!(
    avx2_woven, "avx2", [__m256i; 16], "avx2",
    ["ymm0" 0] ["ymm1" 1] ["ymm2" 2] ["ymm3" 3] ["ymm4" 4] ["ymm5" 5] ["ymm6" 6] ["ymm7" 7]
    ["ymm8" 8] ["ymm9" 9] ["ymm10" 10] ["ymm11" 11] ["ymm12" 12] ["ymm13" 13] ["ymm14" 14] ["ymm15" 15],
    spill
);

rounds!(
    sse41, "sse4.1,ssse3", __m128i, "sse41",
    ["xmm0" 0] ["xmm1" 1] ["xmm2" 2] ["xmm3" 3] ["xmm4" 4] ["xmm5" 5] ["xmm6" 6] ["xmm7" 7]
    ["xmm8" 8] ["xmm9" 9] ["xmm10" 10] ["xmm11" 11] ["xmm12" 12] ["xmm13" 13] ["xmm14" 14] ["xmm15" 15]
);
woven!(
    sse41_woven, "sse4.1,ssse3", [__m128i; 16], "sse41",
    ["xmm0" 0] ["xmm1" 1] ["xmm2" 2] ["xmm3" 3] ["xmm4" 4] ["xmm5" 5] ["xmm6" 6] ["xmm7" 7]
    ["xmm8" 8] ["xmm9" 9] ["xmm10" 10] ["xmm11" 11] ["xmm12" 12] ["xmm13" 13] ["xmm14" 14] ["xmm15" 15],
    spill
);
