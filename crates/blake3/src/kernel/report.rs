//! A report of the shape that a kernel uses for each operation and size.

use super::table::{Functions, KernelShape};
use super::{FORCE_VARIABLE, Kernel, active, forced};
use crate::plan::{ChunkPlan, MAX_SERIAL_BLOCKS, MIN_PREFETCH_LEN};
use crate::spec::{BLOCK_LEN, CHUNK_LEN};
use core::fmt;

/// An operation of a kernel.
///
/// ```
/// use bulla_blake3::kernel::Operation;
///
/// for operation in Operation::ALL {
///     println!("{} is measured in {}", operation.name(), operation.unit());
/// }
/// ```
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
/// The shapes are computed from the kernel's own table, and from the plan by which the tree absorbs
/// chunks.
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
///
/// ```
/// for line in bulla_blake3::kernel::report().lines() {
///     println!("{line:?}");
/// }
/// ```
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

/// Compares the report with the functions that run, by a kernel whose functions record their calls
/// and call another kernel's functions.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::hazmat::Mode;
    use crate::kernel::runnable;
    use crate::plan::{Group, Lane, MAX_LANES, Prefetch};
    use crate::spec::{IV, Words};
    use crate::{Hash, Hasher, many, oneshot};
    use std::cell::{Cell, RefCell};
    use std::vec::Vec;

    /// A call of a kernel's function.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Call {
        /// A call for a leaf, for output blocks, or for inputs side by side.
        Leaf(KernelShape),
        Prefetched(KernelShape),
        Parents(usize),
        /// A call for something without a size.
        Other,
    }

    std::thread_local! {
        static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
        static REAL: Cell<Option<&'static Functions>> = const { Cell::new(None) };
    }

    fn real() -> &'static Functions {
        REAL.get().expect("a kernel to hand over to")
    }

    fn one() -> KernelShape {
        real().shape(1)
    }

    fn widest() -> KernelShape {
        real().shape(real().lanes)
    }

    macro_rules! recorder {
        ($($name:ident($($argument:ident: $type:ty),*) => $call:expr;)*) => { $(
            unsafe fn $name($($argument: $type),*) {
                CALLS.with_borrow_mut(|calls| calls.push($call));
                // SAFETY: the table's caller promised what the real function requires.
                unsafe { (real().$name)($($argument),*) }
            }
        )* };
    }

    recorder! {
        chunk(input: *const u8, len: usize, key: &Words, counter: u64, flags: u32, last: u32, out: *mut u8) => Call::Leaf(one());
        block(value: &Words, block: *const u8, counter: u64, len: usize, flags: u32, out: *mut u8) => Call::Leaf(one());
        group(input: *const u8, key: &Words, counter: u64, flags: u32, prefetch: Prefetch, out: *mut Group) => match prefetch {
            Prefetch::Off => Call::Leaf(widest()),
            Prefetch::On => Call::Prefetched(widest()),
        };
        merge(left: *const Group, right: *const Group, key: &Words, flags: u32, out: *mut Group) => Call::Other;
        transpose_out(group: *const Group, out: *mut u8) => Call::Other;
        hash_lanes(inputs: &[Lane<'_>], key: &Words, flags: u32, out: *mut u8) => Call::Leaf(real().shape(inputs.len()));
        hash_equal_len(
            inputs: &[*const u8; MAX_LANES], n: usize, len: usize, key: &Words, counters: (u64, u64), flags: (u32, u32),
            out: *mut u8
        ) => Call::Leaf(real().shape(n));
        parents(values: *const u8, n: usize, key: &Words, flags: u32, out: *mut u8) => Call::Parents(n);
        output(value: &Words, block: *const u8, counter: u64, flags: (u32, u32), groups: usize, out: *mut u8)
            => Call::Leaf(widest());
    }

    unsafe fn two_groups(
        input: *const u8,
        key: &Words,
        counter: u64,
        flags: u32,
        prefetch: Prefetch,
        out: [*mut Group; 2],
    ) {
        let shape = real().shape_of_two().expect("a kernel that hashes two groups at once");
        let call = if prefetch == Prefetch::On { Call::Prefetched(shape) } else { Call::Leaf(shape) };
        CALLS.with_borrow_mut(|calls| calls.push(call));
        let function = real().two_groups.expect("see above");
        // SAFETY: the table's caller promised what the real function requires.
        unsafe { function(input, key, counter, flags, prefetch, out) }
    }

    /// A kernel that records its calls and computes by `functions`.
    fn recorder(functions: &'static Functions) -> &'static Functions {
        REAL.set(Some(functions));
        let Functions { isa, tuning, shapes, lanes, serial_tail_max, .. } = *functions;
        Box::leak(Box::new(Functions {
            isa,
            tuning,
            shapes,
            lanes,
            serial_tail_max,
            chunk,
            block,
            chunk_prefix: functions.chunk_prefix,
            group,
            two_groups: functions.two_groups.map(|_| two_groups as _),
            merge,
            transpose_out,
            hash_lanes,
            hash_equal_len,
            parents,
            output,
        }))
    }

    /// The calls that `run` makes.
    fn calls(run: impl FnOnce()) -> Vec<Call> {
        CALLS.take();
        run();
        CALLS.take()
    }

    /// Runs an operation for one size.
    fn run(functions: &'static Functions, operation: Operation, size: usize) -> Vec<Call> {
        let data = std::vec![7; size];
        let key = [1; 32];
        let hash =
            |mode: Mode<'_>| calls(|| _ = oneshot::digest(functions, &data, &mode.key_words(), mode.flags()));
        match operation {
            Operation::OneShot => hash(Mode::Hash),
            Operation::Keyed => hash(Mode::KeyedHash(&key)),
            Operation::DeriveKey => hash(Mode::DeriveKeyMaterial(&key)),
            Operation::Stream => calls(|| {
                let mut hasher = Hasher::with(functions, &IV, 0);
                data.chunks(100).for_each(|piece| _ = hasher.update(piece));
                hasher.finalize();
            }),
            Operation::Many => calls(|| {
                let inputs = std::vec![&data[..]; size];
                many::hash_many_in(functions, &IV, 0, &inputs, &mut std::vec![Hash::from_bytes(key); size]);
            }),
            Operation::Xof => {
                let mut output = Hasher::with(functions, &IV, 0).finalize_xof();
                calls(|| output.fill(&mut std::vec![0; size]))
            }
            Operation::Parents => {
                let values = std::vec![[3; 64]; size];
                let mut out = [[0; 32]; MAX_LANES];
                // SAFETY: there are as many pairs; there is room for the most lanes of any kernel.
                calls(|| unsafe {
                    (functions.parents)(values.as_ptr().cast(), size, &IV, 0, out.as_mut_ptr().cast());
                })
            }
        }
    }

    /// The first call shows the shape for the size: nothing runs before it. Later calls on a longer
    /// input are for the rest, which has its own line.
    #[test]
    fn what_runs_is_what_the_report_says() {
        for kernel in runnable() {
            let functions = recorder(kernel.0);
            let mut seen = 0;
            for line in kernel.report().lines() {
                let last = line.to.unwrap_or(line.from + 5000);
                for size in [line.from, line.from.midpoint(last), last] {
                    let calls = run(functions, line.operation, size);
                    let expected = match line {
                        ReportLine { operation: Operation::Parents, .. } => Call::Parents(size),
                        ReportLine { prefetch: true, shape, .. } => Call::Prefetched(shape),
                        ReportLine { shape, .. } => Call::Leaf(shape),
                    };
                    if line.operation == Operation::Xof && size == 0 {
                        assert!(calls.is_empty());
                        continue;
                    }
                    assert_eq!(calls[0], expected, "{kernel}: {line:?} at {size}");
                    if line.to.is_some() && size <= functions.lanes * CHUNK_LEN {
                        let leaves = calls.iter().filter(|call| matches!(call, Call::Leaf(_)));
                        assert!(
                            leaves.into_iter().all(|call| *call == expected),
                            "{kernel}: {line:?} at {size}: {calls:?}"
                        );
                    }
                    seen += 1;
                }
            }
            assert!(seen >= 20, "{kernel}: {seen}");
        }
    }

    #[test]
    fn the_lines_of_an_operation_have_no_gap_and_no_overlap() {
        for kernel in runnable() {
            for operation in Operation::ALL {
                let lines: Vec<_> =
                    kernel.report().lines().filter(|line| line.operation == operation).collect();
                assert!(lines[0].from <= 1, "{kernel}: {operation:?}");
                for pair in lines.windows(2) {
                    assert_eq!(pair[0].to, Some(pair[1].from - 1), "{kernel}: {operation:?}");
                }
            }
        }
    }

    #[test]
    fn the_table_names_the_kernel_and_every_operation() {
        let text = std::format!("{}", report());
        assert!(text.starts_with(&std::format!("kernel {}", active())), "{text}");
        for operation in Operation::ALL {
            assert!(text.lines().any(|line| line.starts_with(operation.name())), "{text}");
        }
    }
}
