//! The kernels of this machine, the kernel in use, and how to force one.
//!
//! The crate chooses the kernel once, at the first use in the process: the best that the CPU
//! supports, or the one that the environment variable `BULLA_ED25519_FORCE_KERNEL` names. All
//! kernels give the same verdicts and signatures.
//!
//! Two kernels are for tests, and only their names choose them: `dalek`, which verifies by
//! curve25519-dalek, and with the feature `scalar-model` the kernel of that name.

// `lane_steps` has the functions that are compiled once for each instruction set, and `lane_engine`
// calls them for groups of signatures. The impls of an engine are in the files around it: few
// signatures (`halved`, `halved_lanes`), keys with tables (`prepared`), `signing`, and the other
// predicate (`cofactored`). `portable` is the kernel without vectors.
#[cfg(any(test, lanes))]
mod cofactored;
mod halved;
#[cfg(any(test, lanes))]
mod halved_lanes;
#[cfg(any(test, lanes))]
mod lane_engine;
#[cfg(any(test, lanes))]
pub(crate) mod lane_steps;
pub(crate) mod portable;
#[cfg(any(test, lanes))]
mod prepared;
#[cfg(any(test, lanes))]
mod signing;

use crate::generic::pair_sums::KeyRows;
use crate::generic::table::KeyTable;
use crate::signing_key::SignItem;
use crate::verdict::{InvalidReason, Verdict, VerifyItem};
#[cfg(lanes)]
use lane_engine::LaneEngine;
use portable::Portable;
#[cfg(feature = "scalar-model")]
use {crate::lanes::model::Model, lane_steps::ModelSteps};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use {
    crate::lanes::{avx2, ifma},
    lane_engine::FourLaneEngine,
    lane_steps::{Avx2Steps, IfmaSteps},
    std::sync::LazyLock,
};

/// One kernel, as it was compiled.
pub(crate) struct CompiledKernel {
    name: &'static str,
    /// The engine, if this machine has the instructions that it needs.
    engine: fn() -> Option<&'static dyn Engine>,
    /// Whether detection may choose the kernel. If not, only its name does.
    is_detectable: bool,
}

/// Every kernel compiled for this architecture, best first.
static COMPILED: &[&CompiledKernel] = &[
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &CompiledKernel { name: "x86_64/avx512ifma", engine: ifma_engine, is_detectable: true },
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    &CompiledKernel { name: "x86_64/avx2", engine: avx2_engine, is_detectable: true },
    &CompiledKernel { name: "portable", engine: || Some(&Portable::BEST), is_detectable: true },
    &CompiledKernel { name: "dalek", engine: || Some(&Portable::DALEK), is_detectable: false },
    #[cfg(feature = "scalar-model")]
    &CompiledKernel { name: "scalar-model", engine: || Some(&SCALAR_MODEL), is_detectable: false },
];

#[cfg(feature = "scalar-model")]
static SCALAR_MODEL: LaneEngine<Model, ModelSteps> = LaneEngine::new(ModelSteps);

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
fn ifma_engine() -> Option<&'static dyn Engine> {
    static ENGINE: LazyLock<Option<LaneEngine<ifma::Vector, IfmaSteps>>> =
        LazyLock::new(|| IfmaSteps::detect().map(LaneEngine::new));
    ENGINE.as_ref().map(|engine| engine as &dyn Engine)
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
fn avx2_engine() -> Option<&'static dyn Engine> {
    static ENGINE: LazyLock<Option<FourLaneEngine<avx2::Vector, Avx2Steps>>> =
        LazyLock::new(|| Avx2Steps::detect().map(FourLaneEngine::new));
    ENGINE.as_ref().map(|engine| engine as &dyn Engine)
}

impl bulla_simd::KernelTable for CompiledKernel {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_runnable(&self) -> bool {
        (self.engine)().is_some()
    }

    fn is_detectable(&self) -> bool {
        self.is_detectable
    }
}

bulla_simd::kernel_choice! {
    algorithm: "Ed25519",
    variable: #[cfg(all())] "BULLA_ED25519_FORCE_KERNEL",
    table: CompiledKernel,
    kernels: COMPILED,
}

impl Kernel {
    /// Like [`verify_many_into`](crate::verify_many_into), but by this kernel instead of the
    /// process's kernel.
    ///
    /// # Panics
    ///
    /// If `out` is not as long as `items`.
    pub fn verify_many_into(self, items: &[VerifyItem<'_>], out: &mut [Verdict]) {
        assert_eq!(items.len(), out.len(), "one verdict for each item");
        self.verify_in(&[], items, out);
    }

    /// Like [`sign_many_into`](crate::sign_many_into), but by this kernel instead of the process's
    /// kernel.
    ///
    /// # Panics
    ///
    /// If `out` is not as long as `items`.
    pub fn sign_many_into(self, items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        assert_eq!(items.len(), out.len(), "one signature for each item");
        self.sign_in(&[], items, out);
    }

    pub(crate) fn verify_in(self, domain: &[u8], items: &[VerifyItem<'_>], out: &mut [Verdict]) {
        self.engine().verify(domain, items, out);
    }

    pub(crate) fn hash(self, messages: &[&[u8]], out: &mut [[u8; 64]]) {
        self.engine().hash(messages, out);
    }

    pub(crate) fn sign_in(self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        self.engine().sign(domain, items, out);
    }

    pub(crate) fn verify_cofactored(
        self,
        items: &[VerifyItem<'_>],
        random: &[[u8; 16]],
        out: &mut [Verdict],
    ) {
        self.engine().verify_cofactored(items, random, out);
    }

    pub(crate) fn prepare(self, keys: &[[u8; 32]], tables: usize) -> Vec<EngineKey> {
        self.engine().prepare(keys, tables)
    }

    pub(crate) fn verify_prepared(self, items: &[VerifyItem<'_>], keys: &[&EngineKey], out: &mut [Verdict]) {
        self.engine().verify_prepared(items, keys, out);
    }

    fn engine(self) -> &'static dyn Engine {
        (self.0.engine)().expect("a kernel exists only where its engine runs")
    }
}

/// The operations of a kernel. `out` must be as long as `items`. `domain` precedes everything that
/// is hashed; it is empty in Ed25519 itself.
pub(crate) trait Engine: Sync {
    /// Strict verdicts.
    fn verify(&self, domain: &[u8], items: &[VerifyItem<'_>], out: &mut [Verdict]);
    /// Keys with `tables` tables each: 1, 2 or 4.
    fn prepare(&self, keys: &[[u8; 32]], tables: usize) -> Vec<EngineKey>;
    /// Strict verdicts: `keys[i]` is that of item i, prepared by the same engine.
    fn verify_prepared(&self, items: &[VerifyItem<'_>], keys: &[&EngineKey], out: &mut [Verdict]);
    /// Verdicts of the cofactored predicate; 16 random bytes for every item.
    fn verify_cofactored(&self, items: &[VerifyItem<'_>], random: &[[u8; 16]], out: &mut [Verdict]);
    /// SHA-512 of every message.
    fn hash(&self, messages: &[&[u8]], out: &mut [[u8; 64]]);
    /// Signatures.
    fn sign(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]);
}

/// A key as an engine prepared it, with its tables if it is a usable one.
#[derive(Clone)]
#[cfg_attr(not(any(test, lanes)), expect(dead_code, reason = "no vectors to compute with"))]
pub(crate) struct EngineKey {
    /// The reason why no signature under the key is valid, if there is one.
    pub(crate) fault: Option<InvalidReason>,
    /// As many tables as the key was prepared with; none for kernels without tables.
    pub(super) tables: Box<[KeyTable]>,
    /// The tables for one signature, if the key was prepared with four tables.
    pub(super) rows: Option<Box<KeyRows>>,
}

impl EngineKey {
    /// A key without tables.
    pub(crate) fn bare(fault: Option<InvalidReason>) -> Self {
        Self { fault, tables: Box::default(), rows: None }
    }
}

#[cfg(test)]
mod tests {
    use crate::{KeyCache, PrecomputedTables, SignItem, SigningKey, Verdict, VerifyItem, cofactored, kernel};

    /// As much as the first thread of a program has on Windows. A thread of Rust has twice as much.
    const STACK: usize = 1 << 20;

    /// A stack that is too small ends the program.
    #[test]
    fn a_small_stack_is_enough() {
        let work = || {
            let signer = SigningKey::from_bytes(&[7; 32]);
            for kernel in kernel::available() {
                for count in [1, 2, 3, 8, 20] {
                    let mut signatures = vec![[0; 64]; count];
                    kernel.sign_many_into(
                        &vec![SignItem { key: &signer, message: b"a" }; count],
                        &mut signatures,
                    );
                    let (public_key, message) = (signer.public_key(), b"a".as_slice());
                    let items: Vec<_> = signatures
                        .iter()
                        .map(|signature| VerifyItem { public_key, message, signature })
                        .collect();
                    let mut verdicts = vec![Verdict::Valid; count];
                    kernel.verify_many_into(&items, &mut verdicts);
                    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Valid), "{kernel}, {count}");
                    cofactored::verify_many_by(kernel, &items, &mut verdicts);
                    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Valid), "{kernel}, {count}");
                    for tables in [PrecomputedTables::One, PrecomputedTables::Two, PrecomputedTables::Four] {
                        let verdicts =
                            KeyCache::with_kernel(kernel, &[*public_key], tables).verify_many(&items);
                        assert!(
                            verdicts.iter().all(|verdict| *verdict == Verdict::Valid),
                            "{kernel}, {count}"
                        );
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, work).unwrap().join().unwrap();
        });
    }
}
