//! A kernel as the rest of the crate sees it: a table of functions.

use crate::plan::{Group, Lane, MAX_LANES, Prefetch};
use crate::spec::Words;
use bulla_simd::KernelTable;
use bulla_simd::cpu::{self, Isa};
use core::fmt;

/// The functions of one kernel. All are unsafe for the same reasons: the CPU must support `isa`
/// (every reference to a table comes from [`super::available`]), and pointers must be valid as each
/// function says.
///
/// `flags` are those of the mode; the functions add the flags for the place in the tree.
pub(crate) struct Functions {
    pub(crate) isa: Isa,
    pub(crate) tuning: Tuning,
    /// The shapes that `hash_lanes`, `hash_equal_len` and `parents` use, narrowest first: they take
    /// the first one that is wide enough for the number of inputs. `chunk` and `block` have the
    /// shape of the first; `group`, `merge` and `output` the shape of the last.
    pub(crate) shapes: &'static [KernelShape],
    /// The number of chunks in a group, and of inputs that the widest function takes. A power of
    /// two from 2 to 16.
    pub(crate) lanes: usize,
    /// A second chunk of at most this many bytes is hashed after the first one: hashing both side
    /// by side would cost more than it saves.
    pub(crate) serial_tail_max: usize,
    /// The chaining value of one input of at most 1024 bytes: `(input, length, key, counter, flags,
    /// last_flags, out)`. The last block gets `last_flags` too. Reads `length` bytes, writes 32.
    pub(crate) chunk: unsafe fn(*const u8, usize, &Words, u64, u32, u32, *mut u8),
    /// One compression `(value, block, counter, length, flags, out)`: the next chaining value is
    /// the first half of the 64 bytes at `out`; all of them are an output block. Reads 64 bytes.
    pub(crate) block: unsafe fn(&Words, *const u8, u64, usize, u32, *mut u8),
    /// Like `chunk`, but it stops before the last block: `(input, length, key, counter, flags,
    /// value, block)`. Writes the chaining value at that point, and the last block, padded with
    /// zeros to 64 bytes.
    pub(crate) chunk_prefix: unsafe fn(*const u8, usize, &Words, u64, u32, &mut Words, *mut u8),
    /// `lanes` whole chunks `(input, key, counter, flags, prefetch, out)`, the first with that
    /// counter.
    pub(crate) group: unsafe fn(*const u8, &Words, u64, u32, Prefetch, *mut Group),
    /// Like `group`, for `2 * lanes` whole chunks and the places of two groups, where that is
    /// faster.
    pub(crate) two_groups: Option<TwoGroups>,
    /// The parents `(left, right, key, flags, out)` of the neighbors in two groups; `out` may be
    /// one of them.
    pub(crate) merge: unsafe fn(*const Group, *const Group, &Words, u32, *mut Group),
    /// The chaining values of a group, 32 bytes each, in order.
    pub(crate) transpose_out: unsafe fn(*const Group, *mut u8),
    /// `(inputs, key, flags, out)`: the chaining values of 1 to `lanes` inputs, 32 bytes each. May
    /// write up to `lanes` values.
    pub(crate) hash_lanes: unsafe fn(&[Lane<'_>], &Words, u32, *mut u8),
    /// `(inputs, n, length, key, (counter, step), (flags, last_flags), out)`: the chaining values
    /// of the first n inputs, 1 to `lanes`, all of one length, at most 1024 bytes; input i has the
    /// counter `counter + i * step`, where `step` is 0 or 1. All pointers, also those beyond n,
    /// must be readable for that length. May write up to `lanes` values.
    pub(crate) hash_equal_len: Uniform,
    /// `(values, n, key, flags, out)`: the n parents, 1 to `lanes`, of 2 n chaining values, 32
    /// bytes each. May write the next power of two values, never more than 2 n; `out` may be
    /// `values`.
    pub(crate) parents: unsafe fn(*const u8, usize, &Words, u32, *mut u8),
    /// `lanes * groups` output blocks of 64 bytes: `(value, block, counter, (length, flags),
    /// groups, out)`, the first with that counter. Reads 64 bytes.
    pub(crate) output: unsafe fn(&Words, *const u8, u64, (u32, u32), usize, *mut u8),
}

impl Functions {
    /// The shape of `hash_lanes`, `hash_equal_len` and `parents` for n inputs.
    pub(crate) fn shape(&self, n: usize) -> KernelShape {
        let widest = self.shapes[self.shapes.len() - 1];
        self.shapes.iter().copied().find(|shape| n <= shape.inputs).unwrap_or(widest)
    }

    /// The shape of `two_groups`.
    pub(crate) fn shape_of_two(&self) -> Option<KernelShape> {
        let widest = self.shapes[self.shapes.len() - 1];
        self.two_groups.map(|_| KernelShape {
            inputs: 2 * widest.inputs,
            registers: 2 * widest.registers,
            ..widest
        })
    }
}

impl KernelTable for Functions {
    fn name(&self) -> &'static str {
        self.isa.name()
    }

    fn is_runnable(&self) -> bool {
        cpu::supports(self.isa)
    }

    fn is_suitable(&self) -> bool {
        self.tuning.fits()
    }
}

/// See [`Functions::two_groups`].
type TwoGroups = unsafe fn(*const u8, &Words, u64, u32, Prefetch, [*mut Group; 2]);

/// See [`Functions::hash_equal_len`].
type Uniform = unsafe fn(&[*const u8; MAX_LANES], usize, usize, &Words, (u64, u64), (u32, u32), *mut u8);

/// The kind of CPU for which a kernel is the right one, if there are several for one instruction
/// set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tuning {
    /// The kernel is the only one for its instruction set.
    Only,
    /// AVX-512 on registers of full width, rotates in one cycle.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    FullWidth,
    /// AVX-512 in two halves, rotates in two cycles.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    HalfWidth,
    /// AVX-512 on registers of full width, but a chain of vector operations takes twice as long as
    /// one on general registers.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    SlowVectorChains,
}

impl Tuning {
    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tuning::Only => "",
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::FullWidth => "for registers of full width and rotates in one cycle",
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::HalfWidth => "for 512-bit operations in two halves and rotates in two cycles",
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::SlowVectorChains => "for vector operations of two cycles",
        }
    }

    /// Whether this CPU is of that kind.
    pub(crate) fn fits(self) -> bool {
        match self {
            Tuning::Only => true,
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::FullWidth => !cpu::has_half_width_avx512() && !cpu::has_slow_vector_chains(),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::HalfWidth => cpu::has_half_width_avx512(),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Tuning::SlowVectorChains => cpu::has_slow_vector_chains(),
        }
    }
}

/// How a kernel lays out its inputs in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KernelForm {
    /// No vectors: one input at a time.
    Scalar,
    /// Register i holds row i of the states of one or more inputs.
    Rows,
    /// Register i holds word i of the states of as many inputs as it has lanes.
    Columns,
}

/// The form of a kernel's loop, and how wide it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelShape {
    /// How registers hold the inputs.
    pub form: KernelForm,
    /// The number of inputs side by side.
    pub inputs: usize,
    /// The width of the registers in bits; 0 without vectors.
    pub bits: usize,
    /// How many registers replace one register of the narrowest kernel: two mean two independent
    /// chains of instructions.
    pub registers: usize,
}

impl KernelShape {
    pub(crate) const SCALAR: KernelShape =
        KernelShape { form: KernelForm::Scalar, inputs: 1, bits: 0, registers: 1 };
}

/// `rows x4 2*256` and the like.
impl fmt::Display for KernelShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KernelShape { form, inputs, bits, registers } = self;
        match form {
            KernelForm::Scalar => return f.pad("scalar"),
            KernelForm::Rows => write!(f, "rows x{inputs} ")?,
            KernelForm::Columns => write!(f, "columns x{inputs} ")?,
        }
        if *registers > 1 {
            write!(f, "{registers}*")?;
        }
        write!(f, "{bits}")
    }
}
