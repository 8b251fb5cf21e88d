//! The x86-64 kernels: for each instruction set, the generic bodies inlined into functions of its own.

use super::define::kernel;
use crate::generic::columns::Rounds;
use bulla_simd::Pair;
use bulla_simd::cpu::Isa;
use bulla_simd::x86_64::{avx2, avx512, sse41};

impl Rounds for avx512::U32x8 {}
impl Rounds for avx512::U32x16 {}

kernel!(
    AVX512, avx512_kernel, Isa::Avx512, "avx512f,avx512vl,avx512bw,avx512dq,avx2,bmi1,bmi2",
    avx512::U32x16, avx512::U32x4,
    up to 2 => rows::<avx512::U32x8>,
    up to 4 => rows::<Pair<avx512::U32x8>>,
    up to 8 => columns::<avx512::U32x8>,
);

kernel!(
    AVX2, avx2_kernel, Isa::Avx2, "avx2,bmi1,bmi2",
    avx2::U32x8, sse41::U32x4,
    up to 2 => rows::<avx2::U32x8>,
    up to 4 => rows::<Pair<avx2::U32x8>>,
);

kernel!(
    SSE41, sse41_kernel, Isa::Sse41, "sse4.1,ssse3",
    sse41::U32x4, sse41::U32x4,
    up to 2 => rows::<Pair<sse41::U32x4>>,
);
