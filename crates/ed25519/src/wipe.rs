//! Wipes secrets from the stack and from registers.

/// The bytes of stack that signing one by one, and expanding a seed, may use below the function
/// that wipes.
#[cfg(feature = "std")]
pub(crate) const SERIAL_STACK_LEN: usize = 48 << 10;
/// The bytes of stack that one signature, or one group in lanes, may use.
#[cfg(any(test, lanes))]
pub(crate) const GROUP_STACK_LEN: usize = if cfg!(unoptimized) { UNOPTIMIZED_STACK_LEN } else { 24 << 10 };
/// The bytes of stack that as many groups as share an inversion may use.
#[cfg(any(test, lanes))]
pub(crate) const GROUPS_STACK_LEN: usize = if cfg!(unoptimized) { UNOPTIMIZED_STACK_LEN } else { 48 << 10 };
/// Without optimization each operation on lanes has a frame of its own with copies of its operands:
/// 389 KiB for one signature.
#[cfg(any(test, lanes))]
const UNOPTIMIZED_STACK_LEN: usize = 512 << 10;

/// Computes with secrets, and wipes the stack below. Without the standard library it wipes nothing:
/// small machines do not have that much stack.
pub(crate) fn wiping_stack<T>(compute: impl FnOnce() -> T) -> T {
    let result = in_own_frame(compute);
    #[cfg(feature = "std")]
    zeroize::zeroize_stack::<SERIAL_STACK_LEN>();
    result
}

#[inline(never)]
fn in_own_frame<T>(compute: impl FnOnce() -> T) -> T {
    compute()
}

/// Zeroes all vector registers.
///
/// # Safety
///
/// The CPU has AVX-512 F.
#[cfg(all(feature = "std", target_arch = "x86_64", target_feature = "sse2"))]
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

#[cfg(test)]
mod tests {
    use crate::{SignItem, SigningKey, kernel};
    use curve25519_dalek::Scalar;
    use sha2::{Digest as _, Sha512};
    use std::io::Write as _;
    use std::sync::Mutex;
    use zeroize::zeroize_stack;

    /// How much of the stack below a function the search covers: more than twice the most that is
    /// wiped.
    const DEPTH: usize = 1 << 20;

    /// Words that occur only in secrets. They are on the heap, and complemented, so that the search
    /// itself never puts one on the stack.
    struct Needles(Vec<(&'static str, u64)>);

    impl Needles {
        /// Adds bytes, eight at a time, in both orders: hashes load them as big-endian words.
        fn bytes(&mut self, name: &'static str, bytes: &[u8]) {
            for chunk in bytes.as_chunks().0 {
                for word in [u64::from_le_bytes(*chunk), u64::from_be_bytes(*chunk)] {
                    self.0.push((name, !word));
                }
            }
        }

        /// Adds a scalar as bytes, and as the limbs of 52 bits that the computation uses.
        fn scalar(&mut self, name: &'static str, scalar: &Scalar) {
            self.bytes(name, scalar.as_bytes());
            let half = |at: usize| u128::from_le_bytes(*scalar.as_bytes()[at..].first_chunk().unwrap());
            let (low, high) = (half(0), half(16));
            let limbs = [low, low >> 52, low >> 104 | high << 24, high >> 28, high >> 80];
            self.0.extend(limbs.map(|limb| (name, !(limb as u64 & ((1 << 52) - 1)))));
        }

        /// All secrets of a signature under a seed.
        fn of(seed: &[u8; 32], domain: &[u8], message: &[u8]) -> Self {
            let mut needles = Self(Vec::new());
            let digest: [u8; 64] = Sha512::digest(seed).into();
            needles.bytes("seed", seed);
            needles.bytes("expanded seed", &digest);
            needles.scalar("key", &Scalar::from_bytes_mod_order(clamped(&digest)));
            needles.bytes("clamped key", &clamped(&digest));
            let nonce: [u8; 64] = Sha512::new()
                .chain_update(domain)
                .chain_update(&digest[32..])
                .chain_update(message)
                .finalize()
                .into();
            needles.bytes("digest of the nonce", &nonce);
            needles.scalar("nonce", &Scalar::from_bytes_mod_order_wide(&nonce));
            needles
        }

        /// The needles that are on the stack below the caller, with their depths.
        #[inline(never)]
        fn find(&self) -> Vec<(&'static str, usize)> {
            let here = 0_u64;
            let top = (&raw const here).expose_provenance();
            let (mut found, mut above) = (Vec::new(), 0);
            for depth in (4..DEPTH).step_by(4) {
                // SAFETY: the thread has four times as much stack, mapped as a whole and aligned;
                // volatile, because the compiler knows of no object there.
                let half = unsafe { std::ptr::with_exposed_provenance::<u32>(top - depth).read_volatile() };
                // Little-endian machines have the lower half at the lower address.
                let (low, high) = if cfg!(target_endian = "little") { (half, above) } else { (above, half) };
                let masked = !(u64::from(high) << 32 | u64::from(low));
                found.extend(
                    self.0.iter().filter(|needle| needle.1 == masked).map(|needle| (needle.0, depth)),
                );
                above = half;
            }
            found
        }
    }

    fn clamped(digest: &[u8; 64]) -> [u8; 32] {
        curve25519_dalek::scalar::clamp_integer(*digest.first_chunk().unwrap())
    }

    /// The needles found after `run`, on a stack that had none before.
    fn left_by(needles: &Needles, run: impl Fn() + Send + Sync) -> Vec<(&'static str, usize)> {
        // Call it through a pointer, so that it has its own frame.
        let run: &(dyn Fn() + Send + Sync) = &run;
        let search = || {
            zeroize_stack::<{ 2 * DEPTH }>();
            run();
            needles.find()
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(4 * DEPTH);
            thread.spawn_scoped(scope, search).unwrap().join().unwrap()
        })
    }

    /// Asserts that nothing was found, and reports the deepest place of each secret.
    fn assert_clean(what: &str, found: &[(&'static str, usize)]) {
        let deepest = found.iter().max_by_key(|(_, depth)| depth);
        let names: std::collections::BTreeSet<_> = found.iter().map(|(name, _)| name).collect();
        assert!(found.is_empty(), "{what} leaves {names:?} on the stack, {deepest:?} is the deepest");
    }

    const MESSAGE: &[u8] = b"a message";

    fn seed() -> Box<[u8; 32]> {
        let mut seed = Box::new([0; 32]);
        fastrand::Rng::with_seed(21).fill(&mut *seed);
        seed
    }

    #[test]
    fn a_secret_that_is_left_on_purpose_is_found() {
        let seed = seed();
        let needles = Needles::of(&seed, &[], MESSAGE);
        let found = left_by(&needles, || {
            // So many that the frames of the search, which are large without optimization, do not
            // cover all.
            std::hint::black_box([*seed; 64]);
        });
        assert!(found.iter().any(|(name, _)| *name == "seed"), "{found:?}");
        let found = left_by(&needles, || drop(SigningKey::expand(&seed)));
        assert!(found.iter().any(|(name, _)| name.contains("key")), "{found:?}");
    }

    #[test]
    fn expanding_a_seed_leaves_nothing_on_the_stack() {
        let seed = seed();
        let needles = Needles::of(&seed, &[], MESSAGE);
        let found = left_by(&needles, || {
            let key = SigningKey::from_bytes(&seed);
            let moved = std::hint::black_box(key);
            drop(moved);
        });
        assert_clean("from_bytes", &found);
    }

    #[test]
    fn signing_leaves_nothing_on_the_stack() {
        let seed = seed();
        let key = SigningKey::from_bytes(&seed);
        for kernel in kernel::available() {
            for domain in [b"".as_slice(), b"a domain"] {
                let needles = Needles::of(&seed, domain, MESSAGE);
                for count in [1, 3, 9, 64] {
                    let items = vec![SignItem { key: &key, message: MESSAGE }; count];
                    let out = Mutex::new(vec![[0; 64]; count]);
                    let found =
                        left_by(&needles, || kernel.sign_in(domain, &items, &mut out.lock().unwrap()));
                    assert_clean(&format!("{kernel}, {count} signatures, domain {domain:?}"), &found);
                }
            }
        }
    }

    /// Vector registers, as words.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    type Registers = [[u64; 8]; 32];

    /// Sets all bits of all vector registers.
    ///
    /// # Safety
    ///
    /// The CPU has AVX-512 F.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    #[rustfmt::skip]
    unsafe fn fill_registers() {
        // SAFETY: the registers that are written are named.
        unsafe {
            core::arch::asm!(
                "vpternlogd zmm0, zmm0, zmm0, 255", "vpternlogd zmm1, zmm1, zmm1, 255", "vpternlogd zmm2, zmm2, zmm2, 255", "vpternlogd zmm3, zmm3, zmm3, 255",
                "vpternlogd zmm4, zmm4, zmm4, 255", "vpternlogd zmm5, zmm5, zmm5, 255", "vpternlogd zmm6, zmm6, zmm6, 255", "vpternlogd zmm7, zmm7, zmm7, 255",
                "vpternlogd zmm8, zmm8, zmm8, 255", "vpternlogd zmm9, zmm9, zmm9, 255", "vpternlogd zmm10, zmm10, zmm10, 255", "vpternlogd zmm11, zmm11, zmm11, 255",
                "vpternlogd zmm12, zmm12, zmm12, 255", "vpternlogd zmm13, zmm13, zmm13, 255", "vpternlogd zmm14, zmm14, zmm14, 255", "vpternlogd zmm15, zmm15, zmm15, 255",
                "vpternlogd zmm16, zmm16, zmm16, 255", "vpternlogd zmm17, zmm17, zmm17, 255", "vpternlogd zmm18, zmm18, zmm18, 255", "vpternlogd zmm19, zmm19, zmm19, 255",
                "vpternlogd zmm20, zmm20, zmm20, 255", "vpternlogd zmm21, zmm21, zmm21, 255", "vpternlogd zmm22, zmm22, zmm22, 255", "vpternlogd zmm23, zmm23, zmm23, 255",
                "vpternlogd zmm24, zmm24, zmm24, 255", "vpternlogd zmm25, zmm25, zmm25, 255", "vpternlogd zmm26, zmm26, zmm26, 255", "vpternlogd zmm27, zmm27, zmm27, 255",
                "vpternlogd zmm28, zmm28, zmm28, 255", "vpternlogd zmm29, zmm29, zmm29, 255", "vpternlogd zmm30, zmm30, zmm30, 255", "vpternlogd zmm31, zmm31, zmm31, 255",
                out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _,
                out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
                out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _,
                out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _,
                out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
                out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
                out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _,
                out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
                options(nomem, nostack, preserves_flags)
            );
        }
    }

    /// The vector registers, except the parts that any code of this CPU's baseline may have used
    /// since: the lower 128 bits of the first sixteen.
    ///
    /// # Safety
    ///
    /// The CPU has AVX-512 F.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    #[rustfmt::skip]
    unsafe fn read_registers(out: &mut Registers) {
        // SAFETY: there is room for all of them.
        unsafe {
            core::arch::asm!(
                "vmovdqu64 [{at} + 0], zmm0", "vmovdqu64 [{at} + 64], zmm1",
                "vmovdqu64 [{at} + 128], zmm2", "vmovdqu64 [{at} + 192], zmm3",
                "vmovdqu64 [{at} + 256], zmm4", "vmovdqu64 [{at} + 320], zmm5",
                "vmovdqu64 [{at} + 384], zmm6", "vmovdqu64 [{at} + 448], zmm7",
                "vmovdqu64 [{at} + 512], zmm8", "vmovdqu64 [{at} + 576], zmm9",
                "vmovdqu64 [{at} + 640], zmm10", "vmovdqu64 [{at} + 704], zmm11",
                "vmovdqu64 [{at} + 768], zmm12", "vmovdqu64 [{at} + 832], zmm13",
                "vmovdqu64 [{at} + 896], zmm14", "vmovdqu64 [{at} + 960], zmm15",
                "vmovdqu64 [{at} + 1024], zmm16", "vmovdqu64 [{at} + 1088], zmm17",
                "vmovdqu64 [{at} + 1152], zmm18", "vmovdqu64 [{at} + 1216], zmm19",
                "vmovdqu64 [{at} + 1280], zmm20", "vmovdqu64 [{at} + 1344], zmm21",
                "vmovdqu64 [{at} + 1408], zmm22", "vmovdqu64 [{at} + 1472], zmm23",
                "vmovdqu64 [{at} + 1536], zmm24", "vmovdqu64 [{at} + 1600], zmm25",
                "vmovdqu64 [{at} + 1664], zmm26", "vmovdqu64 [{at} + 1728], zmm27",
                "vmovdqu64 [{at} + 1792], zmm28", "vmovdqu64 [{at} + 1856], zmm29",
                "vmovdqu64 [{at} + 1920], zmm30", "vmovdqu64 [{at} + 1984], zmm31",
                at = in(reg) out.as_mut_ptr(),
                options(nostack, preserves_flags)
            );
        }
        for register in &mut out[..16] {
            register[..2].fill(0);
        }
    }

    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[test]
    fn signing_leaves_nothing_in_the_vector_registers() {
        const CLEAN: Registers = [[0; 8]; 32];
        let Ok(kernel) = kernel::Kernel::by_name("x86_64/avx512ifma") else {
            assert!(!std::is_x86_feature_detected!("avx512ifma"), "this processor must have the kernel");
            // Past the runner of the tests, which shows nothing of a test that passes.
            let missing = "not tested: the kernel x86_64/avx512ifma, which this processor cannot run\n";
            return std::io::stdout().write_all(missing.as_bytes()).expect("standard output");
        };
        let key = SigningKey::from_bytes(&seed());
        let mut registers = Box::new(CLEAN);
        // SAFETY: that kernel needs AVX-512 F, and is there.
        unsafe {
            fill_registers();
            read_registers(&mut registers);
        }
        assert!(*registers != CLEAN, "what is there is found");
        for count in [1, 3, 9, 64, 65] {
            let items = vec![SignItem { key: &key, message: MESSAGE }; count];
            let mut out = vec![[0; 64]; count];
            // SAFETY: as above.
            unsafe {
                fill_registers();
                kernel.sign_in(&[], &items, &mut out);
                read_registers(&mut registers);
            }
            // A failure must not print them.
            assert!(*registers == CLEAN, "{count} signatures");
        }
    }
}
