//! The instruction sets that this CPU and its operating system support.

/// An instruction set that has a backend here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust: every machine.
    Portable,
    /// x86-64 with SSSE3 and SSE4.1.
    Sse41,
    /// x86-64 with AVX2.
    Avx2,
    /// x86-64 with AVX2 and FMA: multiply-adds of doubles.
    Avx2Fma,
    /// x86-64 with AVX-512 F, VL, BW and DQ.
    Avx512,
    /// x86-64 with AVX-512 F, VL, BW, DQ and IFMA: multiply-adds of 52 bits.
    Avx512Ifma,
    /// AArch64 with NEON.
    Neon,
    /// Little-endian POWER with VSX.
    Vsx,
    /// IBM Z with the vector facility of z13.
    ZVector,
    /// WebAssembly with 128-bit vectors.
    Simd128,
}

impl Isa {
    /// The name by which a user forces the instruction set, and which reports show, for example
    /// `x86_64/avx2`.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Sse41 => "x86_64/sse4.1",
            Isa::Avx2 => "x86_64/avx2",
            Isa::Avx2Fma => "x86_64/avx2+fma",
            Isa::Avx512 => "x86_64/avx512",
            Isa::Avx512Ifma => "x86_64/avx512ifma",
            Isa::Neon => "aarch64/neon",
            Isa::Vsx => "powerpc64/vsx",
            Isa::ZVector => "s390x/vector",
            Isa::Simd128 => "wasm32/simd128",
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
cpufeatures::new!(has_sse41, "ssse3", "sse4.1");
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
cpufeatures::new!(has_avx2, "ssse3", "sse4.1", "avx2", "bmi1", "bmi2");
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
cpufeatures::new!(has_avx2_fma, "ssse3", "sse4.1", "avx2", "bmi1", "bmi2", "fma");
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
cpufeatures::new!(
    has_avx512, "ssse3", "sse4.1", "avx2", "bmi1", "bmi2", "avx512f", "avx512vl", "avx512bw", "avx512dq"
);

/// True on CPUs that run 512-bit operations as two halves and take two cycles for a rotate: AMD's
/// family 19h, Zen 4. Kernels choose their shapes by it. Both choices are correct on every CPU.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub fn has_half_width_avx512() -> bool {
    amd_family() == Some(0x19)
}

/// True on CPUs whose vector operations take two cycles each, while those on general registers take
/// one: AMD's family 1Ah, Zen 5. There, one input is faster without vectors. Both choices are
/// correct on every CPU.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub fn has_slow_vector_chains() -> bool {
    amd_family() == Some(0x1A)
}

/// The CPU's family, if AMD made it.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
fn amd_family() -> Option<u32> {
    use core::arch::x86_64::__cpuid;
    let vendor = __cpuid(0);
    let is_amd = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD";
    let signature = __cpuid(1).eax;
    is_amd.then_some((signature >> 8 & 0xF) + (signature >> 20 & 0xFF))
}

/// The size of a core's second-level cache in bytes, if the CPU reports it.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub fn second_level_cache() -> Option<usize> {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    if cfg!(miri) {
        // The CPU has no `cpuid` leaf for it.
        return None;
    }
    // Intel and AMD describe each cache in the same form, under different numbers.
    let tells = |leaf: &u32| __cpuid(leaf & 1 << 31).eax >= *leaf && __cpuid_count(*leaf, 0).eax & 0x1F != 0;
    let leaf = [4, 0x8000_001D].into_iter().find(tells)?;
    let caches = (0..16).map(|index| __cpuid_count(leaf, index)).take_while(|cache| cache.eax & 0x1F != 0);
    let second = caches.into_iter().find(|cache| cache.eax >> 5 & 7 == 2)?;
    let [ways, partitions, line] = [second.ebx >> 22, second.ebx >> 12 & 0x3FF, second.ebx & 0xFFF];
    Some([ways, partitions, line, second.ecx].into_iter().map(|count| count as usize + 1).product())
}

/// The size of a core's second-level cache in bytes: unknown, because only x86-64 CPUs report it.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub fn second_level_cache() -> Option<usize> {
    None
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
cpufeatures::new!(
    has_avx512ifma,
    "ssse3",
    "sse4.1",
    "avx2",
    "bmi1",
    "bmi2",
    "avx512f",
    "avx512vl",
    "avx512bw",
    "avx512dq",
    "avx512ifma"
);

/// Whether the CPU has the vector facility, and the operating system keeps its registers.
#[cfg(target_arch = "s390x")]
fn has_vector_facility() -> bool {
    if cfg!(target_feature = "vector") {
        return true;
    }
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use core::ffi::c_ulong;
        unsafe extern "C" {
            safe fn getauxval(kind: c_ulong) -> c_ulong;
        }
        // The names are those of Linux.
        const AT_HWCAP: c_ulong = 16;
        const HWCAP_S390_VXRS: c_ulong = 1 << 11;
        getauxval(AT_HWCAP) & HWCAP_S390_VXRS != 0
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    false
}

/// Whether code for `isa` may run here. It asks the CPU only on the first call, and needs no
/// standard library.
pub fn supports(isa: Isa) -> bool {
    match isa {
        Isa::Portable => true,
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        Isa::Sse41 => has_sse41::get(),
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        Isa::Avx2 => has_avx2::get(),
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        Isa::Avx2Fma => has_avx2_fma::get(),
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        Isa::Avx512 => has_avx512::get(),
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        Isa::Avx512Ifma => has_avx512ifma::get(),
        // The calling convention of these targets needs it.
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Isa::Neon => true,
        // So does that of this target.
        #[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
        Isa::Vsx => true,
        #[cfg(target_arch = "s390x")]
        Isa::ZVector => has_vector_facility(),
        // The build decides: an engine refuses to load code that it does not know.
        #[cfg(all(target_arch = "wasm32", any(target_feature = "simd128", feature = "wasm32_simd")))]
        Isa::Simd128 => true,
        #[allow(unreachable_patterns, reason = "on other architectures the rest is never there")]
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::second_level_cache;

    #[test]
    fn a_second_level_cache_that_is_told_has_a_size_that_one_can_have() {
        if let Some(bytes) = second_level_cache() {
            assert!((64 << 10..=64 << 20).contains(&bytes) && bytes.is_multiple_of(64), "{bytes}");
        }
    }
}
