//! Compares the report with the functions that run, by a kernel whose functions record their calls
//! and call another kernel's functions.

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
            let lines: Vec<_> = kernel.report().lines().filter(|line| line.operation == operation).collect();
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
