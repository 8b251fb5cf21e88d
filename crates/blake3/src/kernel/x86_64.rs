//! The x86-64 kernels: for each instruction set, separate functions with the generic bodies inlined
//! into them.

use super::define::{kernel, wide};
use super::table::Tuning;
use crate::generic::column_rounds::{LoadBetween, Rounds};
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
pub(super) mod avx512_two {
    use super::*;
    use crate::generic::columns;
    use crate::plan::{Group, Prefetch};
    use crate::spec::Words;

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,bmi1,bmi2")]
    pub(in crate::kernel) unsafe fn two_groups(
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
