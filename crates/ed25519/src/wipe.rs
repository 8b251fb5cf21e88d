//! Leaves nothing secret on the stack.

use std::sync::atomic::{Ordering, compiler_fence};

/// Overwrites the `N` bytes of stack below the caller's frame, where functions that it called had theirs.
#[inline(never)]
pub(crate) fn stack<const N: usize>() {
    let mut below = [0u8; N];
    for chunk in below.as_chunks_mut::<64>().0 {
        // SAFETY: an exclusive reference is valid for writes; volatile, so that the compiler does not leave it out.
        unsafe { std::ptr::write_volatile(chunk, [0; 64]) };
    }
    compiler_fence(Ordering::SeqCst);
}

/// Zeroes all registers of vectors.
///
/// # Safety
///
/// The CPU has AVX-512 F.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(never)]
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn vector_registers() {
    // SAFETY: the registers that are written are named.
    unsafe {
        core::arch::asm!(
            "vzeroall",
            "vpxorq zmm16, zmm16, zmm16", "vpxorq zmm17, zmm17, zmm17",
            "vpxorq zmm18, zmm18, zmm18", "vpxorq zmm19, zmm19, zmm19",
            "vpxorq zmm20, zmm20, zmm20", "vpxorq zmm21, zmm21, zmm21",
            "vpxorq zmm22, zmm22, zmm22", "vpxorq zmm23, zmm23, zmm23",
            "vpxorq zmm24, zmm24, zmm24", "vpxorq zmm25, zmm25, zmm25",
            "vpxorq zmm26, zmm26, zmm26", "vpxorq zmm27, zmm27, zmm27",
            "vpxorq zmm28, zmm28, zmm28", "vpxorq zmm29, zmm29, zmm29",
            "vpxorq zmm30, zmm30, zmm30", "vpxorq zmm31, zmm31, zmm31",
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _, out("zmm5") _,
            out("zmm6") _, out("zmm7") _, out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _,
            out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _, out("zmm16") _, out("zmm17") _,
            out("zmm18") _, out("zmm19") _, out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
            out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _, out("zmm28") _, out("zmm29") _,
            out("zmm30") _, out("zmm31") _,
            options(nomem, nostack, preserves_flags)
        );
    }
}
