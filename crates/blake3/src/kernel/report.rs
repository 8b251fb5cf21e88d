//! A report of the shape that a kernel uses for each operation and size.

use super::table::{Functions, KernelShape};
use super::{FORCE_VARIABLE, Kernel, active, forced};
use crate::plan::{ChunkPlan, MAX_SERIAL_BLOCKS, MIN_PREFETCH_LEN};
use crate::spec::{BLOCK_LEN, CHUNK_LEN};
use core::fmt;

/// An operation of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// [`hash`](crate::hash), by bytes of input.
    OneShot,
    /// [`keyed_hash`](crate::keyed_hash), by bytes of input.
    Keyed,
    /// [`derive_key`](crate::derive_key), by bytes of key material.
    DeriveKey,
    /// [`Hasher`](crate::Hasher) with small updates, by bytes of input.
    Stream,
    /// [`hash_many`](crate::hash_many) of inputs of at most a chunk, by the number of inputs that
    /// are left.
    Many,
    /// [`OutputReader`](crate::OutputReader), by bytes of output in one call.
    Xof,
    /// Parents in the tree, by how many there are side by side.
    Parents,
}

impl Operation {
    /// All of them, in the order of the report.
    pub const ALL: [Operation; 7] = [
        Operation::OneShot,
        Operation::Keyed,
        Operation::DeriveKey,
        Operation::Stream,
        Operation::Many,
        Operation::Xof,
        Operation::Parents,
    ];

    /// Its name in the report, for example `one-shot`.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::OneShot => "one-shot",
            Operation::Keyed => "keyed",
            Operation::DeriveKey => "derive-key",
            Operation::Stream => "stream",
            Operation::Many => "many",
            Operation::Xof => "xof",
            Operation::Parents => "parents",
        }
    }

    /// The unit of its sizes.
    pub const fn unit(self) -> &'static str {
        match self {
            Operation::OneShot | Operation::Keyed | Operation::DeriveKey | Operation::Stream => "bytes",
            Operation::Many => "inputs",
            Operation::Xof => "bytes of output",
            Operation::Parents => "parents",
        }
    }
}

/// A range of sizes that an operation computes in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportLine {
    /// The operation.
    pub operation: Operation,
    /// The smallest size, in [`Operation::unit`].
    pub from: usize,
    /// The largest size; `None` if there is no limit. For such sizes, the line applies to full
    /// groups; the rest is hashed like an input of its size.
    pub to: Option<usize>,
    /// How it is computed.
    pub shape: KernelShape,
    /// Whether input is prefetched.
    pub prefetch: bool,
}

/// The shape that a kernel uses for each operation and size. `Display` prints a table.
///
/// It is computed from the kernel's own table, and from the plan by which the tree absorbs chunks.
#[derive(Clone, Copy, Debug)]
pub struct KernelReport {
    /// The kernel that the report is about.
    pub kernel: Kernel,
}

impl KernelReport {
    /// The lines: operations in the order of [`Operation::ALL`], sizes ascending.
    pub fn lines(&self) -> impl Iterator<Item = ReportLine> {
        let functions = self.kernel.0;
        Operation::ALL.into_iter().flat_map(move |operation| lines(functions, operation))
    }
}

/// The report about the kernel in use.
///
/// # Panics
///
/// If [`active`] panics.
pub fn report() -> KernelReport {
    active().report()
}

impl Kernel {
    /// The report about this kernel.
    pub fn report(self) -> KernelReport {
        KernelReport { kernel: self }
    }
}

/// The lines of one operation: runs of sizes with the same shape.
fn lines(functions: &'static Functions, operation: Operation) -> impl Iterator<Item = ReportLine> {
    let far = matches!(operation, Operation::OneShot | Operation::Keyed | Operation::DeriveKey);
    let (mut from, last) = sizes(functions, operation);
    let mut next_is_far = far;
    core::iter::from_fn(move || {
        if from > last {
            // Far input is computed like other long input.
            let shape = shape(functions, operation, last);
            return core::mem::take(&mut next_is_far).then_some(ReportLine {
                operation,
                from: MIN_PREFETCH_LEN,
                to: None,
                shape,
                prefetch: true,
            });
        }
        let shape_here = shape(functions, operation, from);
        let end = (from..=last).find(|size| shape(functions, operation, *size) != shape_here);
        let to = match end {
            Some(end) => Some(end - 1),
            None if far => Some(MIN_PREFETCH_LEN - 1),
            None if matches!(operation, Operation::Many | Operation::Parents) => Some(last),
            None => None,
        };
        let line = ReportLine { operation, from, to, shape: shape_here, prefetch: false };
        from = end.unwrap_or(last + 1);
        Some(line)
    })
}

/// The smallest size, and a size from which on nothing changes.
fn sizes(functions: &Functions, operation: Operation) -> (usize, usize) {
    match operation {
        Operation::Many | Operation::Parents => (1, functions.lanes),
        Operation::Xof => (0, functions.lanes * BLOCK_LEN),
        Operation::Stream => (0, functions.lanes * CHUNK_LEN + 1),
        _ if functions.shape_of_two().is_some() => (0, 2 * functions.lanes * CHUNK_LEN),
        _ => (0, functions.lanes * CHUNK_LEN + 1),
    }
}

/// The shape for an operation of one size, apart from prefetching.
fn shape(functions: &Functions, operation: Operation, size: usize) -> KernelShape {
    let widest = functions.shapes[functions.shapes.len() - 1];
    match operation {
        Operation::Many | Operation::Parents => functions.shape(size),
        Operation::Xof if size / BLOCK_LEN <= MAX_SERIAL_BLOCKS => functions.shape(1),
        Operation::Xof => widest,
        _ if size <= CHUNK_LEN => functions.shape(1),
        // A buffer holds one group.
        _ if size >= 2 * functions.lanes * CHUNK_LEN && operation != Operation::Stream => {
            functions.shape_of_two().unwrap_or(widest)
        }
        _ if size > functions.lanes * CHUNK_LEN => widest,
        _ => match ChunkPlan::new(functions.lanes, functions.serial_tail_max, size) {
            ChunkPlan::Serial => functions.shape(1),
            ChunkPlan::EqualLen(n) | ChunkPlan::Lanes(n) => functions.shape(n),
            ChunkPlan::Group => widest,
        },
    }
}

impl fmt::Display for KernelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = self.kernel;
        let how = match forced() {
            Ok(Some(forced)) if forced == kernel => " (forced)",
            _ => "",
        };
        let tuning = kernel.0.tuning.name();
        writeln!(f, "kernel {kernel}{how}{}{tuning}\n", if tuning.is_empty() { "" } else { ", " })?;
        writeln!(f, "{:<11} {:>9}   {:<9} {:<16} shape", "operation", "from", "to", "unit")?;
        let mut previous = None;
        for ReportLine { operation, from, to, shape, prefetch } in self.lines() {
            let name = if previous == Some(operation) { "" } else { operation.name() };
            previous = Some(operation);
            write!(f, "{name:<11} {from:>9}   ")?;
            match to {
                Some(to) => write!(f, "{to:<9} ")?,
                None => write!(f, "{:<9} ", "any")?,
            }
            writeln!(f, "{:<16} {shape}{}", operation.unit(), if prefetch { ", prefetching" } else { "" })?;
        }
        write!(
            f,
            "\nAbove a group of {} chunks, whole groups are hashed like one group, and the rest like an input of its size.",
            kernel.0.lanes
        )?;
        write!(f, "\n{FORCE_VARIABLE} forces a kernel for every operation.")
    }
}

#[cfg(test)]
mod tests;
