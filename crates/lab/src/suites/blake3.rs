//! BLAKE3: ours beside the official crate, built as its README says.

use anyhow::{Context as _, Result};
use bulla_blake3::kernel;

use super::{Active, Case, Contenders, Suite, locked_version};
use crate::measure::{Input, Op, Subject};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The lengths of single inputs: around a block, around a chunk, and every number of chunks up to sixteen, since
/// that is where kernels of different width take over from each other.
const SIZES: [usize; 29] = [
    0,
    1,
    63,
    64,
    65,
    128,
    256,
    512,
    1024,
    1025,
    2048,
    3072,
    4096,
    5120,
    6144,
    7168,
    8192,
    9216,
    10240,
    11264,
    12288,
    13312,
    14336,
    15360,
    16384,
    65536,
    MIB,
    16 * MIB,
    64 * MIB,
];

/// The lengths of the updates of a stream of 1 MiB.
const UPDATES: [usize; 6] = [64, 256, 1024, 4096, 16384, 65536];

/// How many inputs are hashed at once, and their lengths.
const MANY: usize = 64;
const MANY_LENGTHS: [usize; 5] = [11, 64, 256, 1024, 3000];

/// The lengths of extendable output.
const OUTPUTS: [usize; 4] = [64, KIB, 64 * KIB, MIB];

/// The lengths that are hashed with two threads.
const THREADED: [usize; 4] = [128 * KIB, MIB, 16 * MIB, 64 * MIB];

const KEY: [u8; 32] = *b"0123456789abcdefghijklmnopqrstuv";
const CONTEXT: &str = "bulla 2026-01-01 benchmark of derive_key";

pub(super) fn suite() -> Suite {
    Suite {
        name: "blake3",
        cases,
        active_kernel,
        kernels: || kernel::available().map(|kernel| kernel.to_string()).collect(),
        peer,
    }
}

fn active_kernel() -> Result<Active> {
    let forced = kernel::forced().with_context(|| kernel::FORCE_VARIABLE.to_owned())?;
    Ok(Active { name: kernel::active().to_string(), forced: forced.is_some() })
}

/// The official crate chooses its code by itself; the features of this package hold it back.
fn peer() -> String {
    let held: Vec<_> = [
        (cfg!(feature = "peer-no-avx512"), "no_avx512"),
        (cfg!(feature = "peer-no-avx2"), "no_avx2"),
        (cfg!(feature = "peer-no-sse41"), "no_sse41"),
        (cfg!(feature = "peer-no-sse2"), "no_sse2"),
        (cfg!(feature = "peer-no-neon"), "no_neon"),
    ]
    .into_iter()
    .filter_map(|(is_held, name)| is_held.then_some(name))
    .collect();
    let version = locked_version("blake3");
    if held.is_empty() {
        format!("blake3 {version}")
    } else {
        format!("blake3 {version} ({})", held.join(","))
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(SIZES.map(|bytes| case("oneshot", bytes, bytes, both(ours::oneshot, official::oneshot))));
    cases.extend(SIZES.map(|bytes| case("keyed", bytes, bytes, both(ours::keyed, official::keyed))));
    cases.push(case("derive_key", 64, 64, both(ours::derive_key, official::derive_key)));
    cases.extend(UPDATES.map(|update| Case {
        id: format!("stream/{update}"),
        ..case("stream", MIB, MIB, both(move || ours::stream(update), move || official::stream(update)))
    }));
    cases.extend(MANY_LENGTHS.map(|length| Case {
        id: format!("many/{length}"),
        part: Some(length),
        ..case("many", MANY * length, MANY * length, both(many_ours, many_official))
    }));
    cases.extend(
        OUTPUTS.map(|bytes| {
            case("xof", bytes, 64, both(move || ours::xof(bytes), move || official::xof(bytes)))
        }),
    );
    cases
        .extend(THREADED.map(|bytes| case("threads2", bytes, bytes, both(ours::threads, official::threads))));
    cases
}

fn case(group: &str, bytes: usize, input: usize, contenders: Box<dyn Fn() -> Contenders>) -> Case {
    Case { id: format!("{group}/{bytes}"), bytes, input, part: None, contenders }
}

type Boxed = Box<dyn Subject>;

fn both(
    ours: impl Fn() -> Boxed + 'static,
    peer: impl Fn() -> Boxed + 'static,
) -> Box<dyn Fn() -> Contenders> {
    Box::new(move || Contenders { ours: ours(), peer: peer(), control: peer() })
}

/// One call for all inputs.
fn many_ours() -> Boxed {
    Box::new(Op {
        result: vec![bulla_blake3::Hash::from_bytes([0; 32]); MANY],
        run: |input: &Input<'_>, out: &mut Vec<bulla_blake3::Hash>| {
            bulla_blake3::hash_many(&input.parts, out)
        },
        bytes: |out: &Vec<bulla_blake3::Hash>| out.iter().flat_map(|hash| *hash.as_bytes()).collect(),
    })
}

/// The official crate has no such call: one call for each input.
fn many_official() -> Boxed {
    Box::new(Op {
        result: vec![blake3::Hash::from_bytes([0; 32]); MANY],
        run: |input: &Input<'_>, out: &mut Vec<blake3::Hash>| {
            for (part, hash) in input.parts.iter().zip(out) {
                *hash = blake3::hash(part);
            }
        },
        bytes: |out: &Vec<blake3::Hash>| out.iter().flat_map(|hash| *hash.as_bytes()).collect(),
    })
}

/// Memory for long output. Where it begins within a cache line is worth 2 %, so it begins alike for all contenders.
struct PageAligned {
    memory: Vec<u8>,
    range: std::ops::Range<usize>,
}

impl PageAligned {
    const PAGE: usize = 4096;

    fn new(length: usize) -> Self {
        let memory = vec![0; length + Self::PAGE];
        let start = memory.as_ptr().align_offset(Self::PAGE);
        Self { memory, range: start..start + length }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.memory[self.range.clone()]
    }

    fn to_vec(&self) -> Vec<u8> {
        self.memory[self.range.clone()].to_vec()
    }
}

/// The operations, written once for the two crates, which have the same names: neither can get other treatment.
macro_rules! operations {
    ($name:ident, $library:ident) => {
        mod $name {
            use super::{Boxed, CONTEXT, KEY, PageAligned};
            use crate::measure::{Input, Op};

            fn digest(run: impl FnMut(&Input<'_>, &mut [u8; 32]) + 'static) -> Boxed {
                Box::new(Op { result: [0; 32], run, bytes: |out: &[u8; 32]| out.to_vec() })
            }

            pub(super) fn oneshot() -> Boxed {
                digest(|input, out| *out = *$library::hash(input.whole).as_bytes())
            }

            pub(super) fn keyed() -> Boxed {
                digest(|input, out| *out = *$library::keyed_hash(&KEY, input.whole).as_bytes())
            }

            pub(super) fn derive_key() -> Boxed {
                digest(|input, out| *out = $library::derive_key(CONTEXT, input.whole))
            }

            pub(super) fn stream(update: usize) -> Boxed {
                digest(move |input, out| {
                    let mut hasher = $library::Hasher::new();
                    for piece in input.whole.chunks(update) {
                        hasher.update(piece);
                    }
                    *out = *hasher.finalize().as_bytes();
                })
            }

            pub(super) fn xof(bytes: usize) -> Boxed {
                Box::new(Op {
                    result: PageAligned::new(bytes),
                    run: |input: &Input<'_>, out: &mut PageAligned| {
                        $library::Hasher::new().update(input.whole).finalize_xof().fill(out.get());
                    },
                    bytes: PageAligned::to_vec,
                })
            }

            /// In the pool of the process, which has two threads.
            pub(super) fn threads() -> Boxed {
                digest(|input, out| {
                    *out = *$library::Hasher::new().update_rayon(input.whole).finalize().as_bytes();
                })
            }
        }
    };
}

operations!(ours, bulla_blake3);
operations!(official, blake3);
