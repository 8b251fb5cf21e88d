//! The compiled kernels, those that the CPU supports, and the one in use.

use super::engine::{Engine, PreparedKey};
#[cfg(lanes)]
use super::lanes::LaneEngine;
#[cfg(feature = "model")]
use super::machine::Scalars;
use super::portable::Portable;
use crate::item::VerifyItem;
#[cfg(feature = "model")]
use crate::lanes::model::Model;
use crate::signing_key::SignItem;
use crate::verdict::Verdict;
use bulla_simd::DispatchCell;
use std::fmt;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use {
    super::fours::Fours,
    super::machine::{Avx2, Ifma},
    crate::lanes::{avx2, ifma},
    std::sync::LazyLock,
};

/// The environment variable that forces a kernel for the whole process.
pub const FORCE_VARIABLE: &str = "BULLA_ED25519_FORCE_KERNEL";

/// One implementation.
pub(crate) struct Entry {
    name: &'static str,
    /// The engine, if this machine has what it needs.
    engine: fn() -> Option<&'static dyn Engine>,
    choice: Choice,
}

/// How a kernel was chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// By detection: it is the first one that runs here.
    Detected,
    /// By name.
    Named,
}

/// Every kernel compiled for this architecture, best first.
static COMPILED: &[Entry] = &[
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Entry { name: "x86_64/avx512ifma", engine: ifma, choice: Choice::Detected },
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Entry { name: "x86_64/avx2", engine: avx2, choice: Choice::Detected },
    Entry { name: "portable", engine: || Some(&Portable::BEST), choice: Choice::Detected },
    Entry { name: "dalek", engine: || Some(&Portable::DALEK), choice: Choice::Named },
    #[cfg(feature = "model")]
    Entry { name: "model", engine: || Some(&MODEL), choice: Choice::Named },
];

#[cfg(feature = "model")]
static MODEL: LaneEngine<Model, Scalars> = LaneEngine::new(Scalars);

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
fn ifma() -> Option<&'static dyn Engine> {
    static ENGINE: LazyLock<Option<LaneEngine<ifma::Vector, Ifma>>> =
        LazyLock::new(|| Ifma::detect().map(LaneEngine::new));
    ENGINE.as_ref().map(|engine| engine as &dyn Engine)
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
fn avx2() -> Option<&'static dyn Engine> {
    static ENGINE: LazyLock<Option<Fours<avx2::Vector, Avx2>>> =
        LazyLock::new(|| Avx2::detect().map(Fours::new));
    ENGINE.as_ref().map(|engine| engine as &dyn Engine)
}

static CHOSEN: DispatchCell<Entry> = DispatchCell::new();

/// One implementation of all operations, which this machine supports.
#[derive(Clone, Copy)]
pub struct Kernel {
    entry: &'static Entry,
    engine: &'static dyn Engine,
}

impl Entry {
    fn kernel(&'static self) -> Option<Kernel> {
        Some(Kernel { entry: self, engine: (self.engine)()? })
    }
}

impl Kernel {
    /// Its name, for example `x86_64/avx512ifma`: a value of [`FORCE_VARIABLE`].
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry.name
    }

    /// The kernel of that name.
    ///
    /// # Errors
    ///
    /// [`UnknownKernel`] if there is no kernel of that name, or this machine does not support it.
    pub fn by_name(name: &str) -> Result<Self, UnknownKernel> {
        available().find(|kernel| kernel.name() == name).ok_or(UnknownKernel)
    }

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
        self.engine.verify(domain, items, out);
    }

    pub(crate) fn hash(self, messages: &[&[u8]], out: &mut [[u8; 64]]) {
        self.engine.hash(messages, out);
    }

    pub(crate) fn sign_in(self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        self.engine.sign(domain, items, out);
    }

    pub(crate) fn verify_cofactored(
        self,
        items: &[VerifyItem<'_>],
        random: &[[u8; 16]],
        out: &mut [Verdict],
    ) {
        self.engine.verify_cofactored(items, random, out);
    }

    pub(crate) fn prepare(self, keys: &[[u8; 32]], tables: usize) -> Vec<PreparedKey> {
        self.engine.prepare(keys, tables)
    }

    pub(crate) fn verify_prepared(
        self,
        items: &[VerifyItem<'_>],
        keys: &[&PreparedKey],
        out: &mut [Verdict],
    ) {
        self.engine.verify_prepared(items, keys, out);
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kernel {}

/// The error if no kernel of the wanted name runs on this machine. Its text lists the kernels that
/// do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownKernel;

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this machine has no such Ed25519 kernel; it has ")?;
        for (i, kernel) in available().enumerate() {
            write!(f, "{}{kernel}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownKernel {}

/// The kernels that this machine supports, best first. There is always `portable`. Two more are for
/// tests, and detection never chooses them: `dalek`, which verifies by ed25519-dalek, and with the
/// feature `model` the kernel of that name.
pub fn available() -> impl Iterator<Item = Kernel> {
    COMPILED.iter().filter_map(Entry::kernel)
}

/// The kernel in use.
///
/// # Panics
///
/// If [`FORCE_VARIABLE`] names a kernel that this machine does not have. Every other operation
/// panics then too. A program that wants to report this without a panic calls [`forced`] first.
#[must_use]
pub fn active() -> Kernel {
    CHOSEN.get(choose).kernel().expect("a kernel was chosen because it runs here")
}

/// The kernel that [`FORCE_VARIABLE`] names, if it is set and not empty.
///
/// # Errors
///
/// [`UnknownKernel`] if it names a kernel that this machine does not have.
pub fn forced() -> Result<Option<Kernel>, UnknownKernel> {
    match std::env::var_os(FORCE_VARIABLE) {
        Some(name) if !name.is_empty() => Kernel::by_name(name.to_str().ok_or(UnknownKernel)?).map(Some),
        _ => Ok(None),
    }
}

fn choose() -> &'static Entry {
    match forced() {
        Ok(Some(kernel)) => kernel.entry,
        Ok(None) => {
            let best = available().find(|kernel| kernel.entry.choice == Choice::Detected);
            best.expect("the portable kernel runs everywhere").entry
        }
        Err(unknown) => panic!("{FORCE_VARIABLE}: {unknown}"),
    }
}
