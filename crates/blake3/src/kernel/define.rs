//! Makes the kernel of an instruction set: separate functions with the generic bodies inlined into
//! them.

use super::table::{KernelForm, KernelShape};
use bulla_simd::{Rows, Vector};

impl KernelShape {
    #[allow(dead_code, reason = "POWER has a kernel without rows")]
    pub(super) const fn rows<V: Rows>() -> KernelShape {
        KernelShape {
            form: KernelForm::Rows,
            inputs: V::STATES,
            bits: 32 * V::LANES / V::REGISTERS,
            registers: V::REGISTERS,
        }
    }

    pub(super) const fn columns<V: Vector>() -> KernelShape {
        KernelShape {
            form: KernelForm::Columns,
            inputs: V::LANES,
            bits: 32 * V::LANES / V::REGISTERS,
            registers: V::REGISTERS,
        }
    }
}

/// The functions for as many inputs as the widest registers have lanes: a module of functions for
/// the vector `$Column`, each with the attribute `$target`, a `target_feature`.
macro_rules! wide {
    ($module:ident, $target:meta, $Column:ty) => {
        mod $module {
            use super::*;
            use crate::generic::columns;
            use crate::plan::{Group, Prefetch};
            use crate::spec::Words;

            #[$target]
            pub(super) unsafe fn group(
                input: *const u8,
                key: &Words,
                counter: u64,
                flags: u32,
                prefetch: Prefetch,
                out: *mut Group,
            ) {
                // SAFETY: the table's caller promised it; so in all functions here.
                unsafe { columns::group::<$Column>(input, key, counter, flags, prefetch, out) }
            }

            #[$target]
            pub(super) unsafe fn merge(
                left: *const Group,
                right: *const Group,
                key: &Words,
                flags: u32,
                out: *mut Group,
            ) {
                // SAFETY: see `chunk`.
                unsafe { columns::merge::<$Column>(left, right, key, flags, out) }
            }

            #[$target]
            pub(super) unsafe fn transpose_out(group: *const Group, out: *mut u8) {
                // SAFETY: see `chunk`.
                unsafe { columns::transpose_out::<$Column>(group, out) }
            }

            #[$target]
            pub(super) unsafe fn output(
                value: &Words,
                block: *const u8,
                counter: u64,
                len_and_flags: (u32, u32),
                groups: usize,
                out: *mut u8,
            ) {
                // SAFETY: see `chunk`.
                unsafe { columns::output::<$Column>(value, block, counter, len_and_flags, groups, out) }
            }
        }
    };
}

/// A kernel: its table, and a module with the functions for any number of inputs, each with the
/// attribute `$target`; `$wide` has the rest.
///
/// `$Column` is the vector of the column form; `$One` that of the row form of one input. For 2, 4
/// and 8 inputs, the widths say which form is used: `rows::<V>` or `columns::<V>`.
#[allow(unused_macros, reason = "some architectures have only kernels of the other kind")]
macro_rules! kernel {
    (
        $TABLE:ident, $module:ident, $wide:ident, $isa:expr, $tuning:expr, $target:meta, $Column:ty, $One:ty,
        $(up to $n:literal => $form:ident::<$V:ty>,)*
    ) => {
        pub(super) static $TABLE: $crate::kernel::table::Functions = $crate::kernel::table::Functions {
            isa: $isa,
            tuning: $tuning,
            shapes: &[
                $crate::kernel::table::KernelShape::rows::<$One>(),
                $( $crate::kernel::table::KernelShape::$form::<$V>(), )*
                $crate::kernel::table::KernelShape::columns::<$Column>(),
            ],
            lanes: <$Column as bulla_simd::Vector>::LANES,
            serial_tail_max: 2 * $crate::spec::BLOCK_LEN,
            chunk: $module::chunk,
            block: $module::block,
            chunk_prefix: $module::chunk_prefix,
            group: $wide::group,
            two_groups: None,
            merge: $wide::merge,
            transpose_out: $wide::transpose_out,
            hash_lanes: $module::hash_lanes,
            hash_equal_len: $module::hash_equal_len,
            parents: $module::parents,
            output: $wide::output,
        };

        $( const _: () = assert!($crate::kernel::table::KernelShape::$form::<$V>().inputs == $n); )*

        mod $module {
            use super::*;
            use crate::generic::{columns, rows};
            use crate::plan::{Lane, MAX_LANES};
            use crate::spec::Words;
            use bulla_simd::Vector;

            #[$target]
            pub(super) unsafe fn chunk(
                input: *const u8,
                len: usize,
                key: &Words,
                counter: u64,
                flags: u32,
                last_flags: u32,
                out: *mut u8,
            ) {
                // SAFETY: the table's caller promised it; so in all functions here.
                unsafe { rows::chunk::<$One>(input, len, key, counter, flags, last_flags, out) }
            }

            #[$target]
            pub(super) unsafe fn block(
                value: &Words,
                block: *const u8,
                counter: u64,
                len: usize,
                flags: u32,
                out: *mut u8,
            ) {
                // SAFETY: see `chunk`.
                unsafe { rows::block::<$One>(value, block, counter, len, flags, out) }
            }

            #[$target]
            pub(super) unsafe fn chunk_prefix(
                input: *const u8,
                len: usize,
                key: &Words,
                counter: u64,
                flags: u32,
                value: &mut Words,
                block: *mut u8,
            ) {
                let bytes = value.as_mut_ptr().cast();
                // SAFETY: see `chunk`; eight words have as many bytes as a chaining value.
                unsafe { rows::chunk_prefix::<$One>(input, len, key, counter, flags, bytes, block) }
                for word in value {
                    *word = u32::from_le(*word);
                }
            }

            #[$target]
            pub(super) unsafe fn hash_lanes(inputs: &[Lane<'_>], key: &Words, flags: u32, out: *mut u8) {
                // SAFETY: see `chunk`.
                unsafe {
                    match inputs.len() {
                        1 => {
                            let lane = &inputs[0];
                            let (input, len) = (lane.input.as_ptr(), lane.input.len());
                            chunk(input, len, key, lane.counter, flags, lane.last_flags, out);
                        }
                        $( ..=$n => $form::hash_lanes::<$V, $n>(inputs, key, flags, out), )*
                        _ => columns::hash_lanes::<$Column, { <$Column>::LANES }>(inputs, key, flags, out),
                    }
                }
            }

            #[$target]
            pub(super) unsafe fn hash_equal_len(
                inputs: &[*const u8; MAX_LANES],
                n: usize,
                len: usize,
                key: &Words,
                counters: (u64, u64),
                flags: (u32, u32),
                out: *mut u8,
            ) {
                // SAFETY: see `chunk`.
                unsafe {
                    match n {
                        1 => rows::hash_equal_len::<$One, 1>(inputs, len, key, counters, flags, out),
                        $( ..=$n => $form::hash_equal_len::<$V, $n>(inputs, len, key, counters, flags, out), )*
                        _ => columns::hash_equal_len::<$Column, { <$Column>::LANES }>(inputs, len, key, counters, flags, out),
                    }
                }
            }

            #[$target]
            pub(super) unsafe fn parents(values: *const u8, n: usize, key: &Words, flags: u32, out: *mut u8) {
                // SAFETY: see `chunk`.
                unsafe {
                    match n {
                        1 => rows::parents::<$One>(values, n, key, flags, out),
                        $( ..=$n => $form::parents::<$V>(values, n, key, flags, out), )*
                        _ => columns::parents::<$Column>(values, n, key, flags, out),
                    }
                }
            }
        }
    };
}

/// A kernel whose vectors are for several inputs only: one input goes through general registers.
/// `$Column` is the vector for more inputs than `$V` has lanes. `$serial_tail_max` is the table's
/// field.
#[allow(unused_macros, reason = "some architectures have only kernels of the other kind")]
macro_rules! beside_scalar {
    (
        $TABLE:ident, $module:ident, $wide:ident, $isa:expr, $serial_tail_max:expr, $target:meta, $Column:ty,
        $(up to $n:literal => columns::<$V:ty>,)*
    ) => {
        pub(super) static $TABLE: $crate::kernel::table::Functions = $crate::kernel::table::Functions {
            isa: $isa,
            shapes: &[
                $crate::kernel::table::KernelShape::SCALAR,
                $( $crate::kernel::table::KernelShape::columns::<$V>(), )*
                $crate::kernel::table::KernelShape::columns::<$Column>(),
            ],
            lanes: <$Column as bulla_simd::Vector>::LANES,
            serial_tail_max: $serial_tail_max,
            group: $wide::group,
            two_groups: None,
            merge: $wide::merge,
            transpose_out: $wide::transpose_out,
            hash_lanes: $module::hash_lanes,
            hash_equal_len: $module::hash_equal_len,
            parents: $module::parents,
            output: $wide::output,
            ..$crate::kernel::portable::PORTABLE
        };

        mod $module {
            use super::*;
            use crate::generic::columns;
            use crate::kernel::portable::PORTABLE;
            use crate::plan::{Lane, MAX_LANES};
            use crate::spec::Words;
            use bulla_simd::Vector;

            #[$target]
            pub(super) unsafe fn hash_lanes(inputs: &[Lane<'_>], key: &Words, flags: u32, out: *mut u8) {
                // SAFETY: the table's caller promised it; so in all functions here.
                unsafe {
                    match inputs.len() {
                        1 => (PORTABLE.hash_lanes)(inputs, key, flags, out),
                        $( ..=$n => columns::hash_lanes::<$V, $n>(inputs, key, flags, out), )*
                        _ => columns::hash_lanes::<$Column, { <$Column>::LANES }>(inputs, key, flags, out),
                    }
                }
            }

            #[$target]
            pub(super) unsafe fn hash_equal_len(
                inputs: &[*const u8; MAX_LANES],
                n: usize,
                len: usize,
                key: &Words,
                counters: (u64, u64),
                flags: (u32, u32),
                out: *mut u8,
            ) {
                // SAFETY: see `hash_lanes`.
                unsafe {
                    match n {
                        1 => (PORTABLE.hash_equal_len)(inputs, n, len, key, counters, flags, out),
                        $( ..=$n => columns::hash_equal_len::<$V, $n>(inputs, len, key, counters, flags, out), )*
                        _ => columns::hash_equal_len::<$Column, { <$Column>::LANES }>(inputs, len, key, counters, flags, out),
                    }
                }
            }

            #[$target]
            pub(super) unsafe fn parents(values: *const u8, n: usize, key: &Words, flags: u32, out: *mut u8) {
                // SAFETY: see `hash_lanes`.
                unsafe {
                    match n {
                        1 => (PORTABLE.parents)(values, n, key, flags, out),
                        $( ..=$n => columns::parents::<$V>(values, n, key, flags, out), )*
                        _ => columns::parents::<$Column>(values, n, key, flags, out),
                    }
                }
            }
        }
    };
}

#[allow(unused_imports, reason = "as above")]
pub(super) use {beside_scalar, kernel, wide};
