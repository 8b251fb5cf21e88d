//! The x86-64 kernels: for each instruction set, separate functions with the generic bodies inlined
//! into them.

use super::define::{kernel, wide};
use super::portable::PORTABLE;
use super::table::{Functions, KernelShape, Tuning};
use crate::generic::columns::{LoadBetween, Rounds};
use crate::spec::BLOCK_LEN;
use bulla_simd::Pair;
use bulla_simd::cpu::Isa;
use bulla_simd::x86_64::avx512_by_cpu::FullWidth;
use bulla_simd::x86_64::avx512_by_cpu::SlowRotate;
use bulla_simd::x86_64::{avx2, avx512, sse41};

impl Rounds for avx512::U32x8 {
    type Messages = LoadBetween<Self>;
}

wide!(
    avx512_full_wide,
    target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,bmi1,bmi2"),
    FullWidth
);
wide!(
    avx512_half_wide,
    target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,bmi1,bmi2"),
    avx512::U32x16
);
wide!(avx2_wide, target_feature(enable = "avx2,bmi1,bmi2"), avx2::U32x8);
wide!(sse41_wide, target_feature(enable = "sse4.1,ssse3"), sse41::U32x4);

/// Two groups side by side: see `docs/decisions/0233-zen-5-two-groups.md`.
#[cfg(target_pointer_width = "64")]
mod avx512_two {
    use super::*;
    use crate::generic::columns;
    use crate::plan::{Group, Prefetch};
    use crate::spec::Words;

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,bmi1,bmi2")]
    pub(super) unsafe fn two_groups(
        input: *const u8,
        key: &Words,
        counter: u64,
        flags: u32,
        prefetch: Prefetch,
        out: [*mut Group; 2],
    ) {
        // SAFETY: the table's caller promised it.
        unsafe { columns::two_groups::<FullWidth>(input, key, counter, flags, prefetch, out) }
    }
}

// Two kernels for AVX-512, because the best one depends on the CPU: see
// `docs/decisions/0006-avx-512-by-cpu.md`.

kernel!(
    AVX512_FULL, avx512_full_kernel, avx512_full_wide, Isa::Avx512, Tuning::FullWidth,
    target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,bmi1,bmi2"),
    FullWidth, avx512::U32x4,
    up to 2 => rows::<avx512::U32x8>,
    up to 4 => rows::<avx512::U32x16>,
    up to 8 => rows::<Pair<avx512::U32x16>>,
);

kernel!(
    AVX512_HALF, avx512_half_kernel, avx512_half_wide, Isa::Avx512, Tuning::HalfWidth,
    target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,bmi1,bmi2"),
    avx512::U32x16, SlowRotate<avx512::U32x4>,
    up to 2 => rows::<SlowRotate<avx512::U32x8>>,
    up to 4 => rows::<Pair<avx512::U32x8>>,
    up to 8 => columns::<avx512::U32x8>,
);

kernel!(
    AVX2, avx2_kernel, avx2_wide, Isa::Avx2, Tuning::Only, target_feature(enable = "avx2,bmi1,bmi2"),
    avx2::U32x8, sse41::U32x4,
    up to 2 => rows::<avx2::U32x8>,
    up to 4 => rows::<Pair<avx2::U32x8>>,
);

kernel!(
    SSE41, sse41_kernel, sse41_wide, Isa::Sse41, Tuning::Only, target_feature(enable = "sse4.1,ssse3"),
    sse41::U32x4, sse41::U32x4,
    up to 2 => rows::<Pair<sse41::U32x4>>,
);

/// The kernel for CPUs on which a chain of vector operations takes longer than the same chain on
/// general registers: one input goes through general registers, several through vectors. See
/// `docs/decisions/0196-zen-5-one-input-without-vectors.md`.
///
/// For the same reason two groups go side by side: one group has only four chains. See
/// `docs/decisions/0233-zen-5-two-groups.md`.
pub(super) static AVX512_SLOW_CHAINS: Functions = Functions {
    tuning: Tuning::SlowVectorChains,
    shapes: &SLOW_CHAINS_SHAPES,
    serial_tail_max: 10 * BLOCK_LEN,
    chunk: PORTABLE.chunk,
    block: PORTABLE.block,
    chunk_prefix: PORTABLE.chunk_prefix,
    #[cfg(target_pointer_width = "64")]
    two_groups: Some(avx512_two::two_groups),
    hash_lanes: avx512_slow_chains_kernel::hash_lanes,
    hash_equal_len: avx512_slow_chains_kernel::hash_equal_len,
    parents: avx512_slow_chains_kernel::parents,
    ..AVX512_FULL
};

/// The scalar shape, and those of [`AVX512_FULL`] for several inputs.
const SLOW_CHAINS_SHAPES: [KernelShape; AVX512_FULL.shapes.len()] = {
    let mut shapes = [KernelShape::SCALAR; AVX512_FULL.shapes.len()];
    let mut i = 1;
    while i < shapes.len() {
        shapes[i] = AVX512_FULL.shapes[i];
        i += 1;
    }
    shapes
};

mod avx512_slow_chains_kernel {
    use super::*;
    use crate::plan::{Lane, MAX_LANES};
    use crate::spec::Words;

    pub(super) unsafe fn hash_lanes(inputs: &[Lane<'_>], key: &Words, flags: u32, out: *mut u8) {
        // SAFETY: the table's caller promised it; so in all functions here.
        unsafe {
            if let [lane] = inputs {
                let (input, len) = (lane.input.as_ptr(), lane.input.len());
                return (PORTABLE.chunk)(input, len, key, lane.counter, flags, lane.last_flags, out);
            }
            (AVX512_FULL.hash_lanes)(inputs, key, flags, out);
        }
    }

    pub(super) unsafe fn hash_equal_len(
        inputs: &[*const u8; MAX_LANES],
        n: usize,
        len: usize,
        key: &Words,
        counters: (u64, u64),
        (flags, last_flags): (u32, u32),
        out: *mut u8,
    ) {
        // SAFETY: see `hash_lanes`.
        unsafe {
            if n == 1 {
                return (PORTABLE.chunk)(inputs[0], len, key, counters.0, flags, last_flags, out);
            }
            (AVX512_FULL.hash_equal_len)(inputs, n, len, key, counters, (flags, last_flags), out);
        }
    }

    pub(super) unsafe fn parents(values: *const u8, n: usize, key: &Words, flags: u32, out: *mut u8) {
        // SAFETY: see `hash_lanes`.
        unsafe {
            if n == 1 {
                return (PORTABLE.parents)(values, 1, key, flags, out);
            }
            (AVX512_FULL.parents)(values, n, key, flags, out);
        }
    }
}
