//! BLAKE3: ours compared with the official crate and rscrypto. `lab/BIAS.md` says how each is used.

mod files;
mod operations;
mod rscrypto;

use anyhow::{Context as _, Result};
use bulla_blake3::kernel;

use self::operations::{Boxed, MANY, Mode, official, ours};
use super::suite::{Active, Case, Peer, Suite, THREAD_SCALING, THREADS, thread_counts};

/// The lengths of single inputs: around a block, around a chunk, and every number of chunks up to
/// sixteen, because kernels of different width take over from each other there.
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

/// Input larger than any cache: measured only once, not in every mode.
const HUGE: usize = 16 * MIB;

/// The lengths of the updates of a stream of 1 MiB.
const UPDATES: [usize; 6] = [64, 256, 1024, 4096, 16384, 65536];

/// Streams that end after one update: here the buffer must cost nothing.
const SINGLE_UPDATES: [usize; 7] = [64, 256, 1024, 2048, 4096, 16384, 65536];

/// The lengths for which the cost of a short input is divided into steps.
const SHORT: [usize; 5] = [64, 128, 256, 512, 1024];

/// The numbers of chunks of an input, around the powers of two, where the number of parents and
/// their levels change.
const FOLDED: [usize; 14] = [2, 3, 4, 8, 15, 16, 17, 31, 32, 33, 64, 65, 256, 257];

/// The lengths of inputs that are hashed side by side.
const MANY_LENGTHS: [usize; 6] = [11, 64, 256, 1024, 3000, 16384];

/// The lengths of extendable output.
const OUTPUTS: [usize; 6] = [32, 64, KIB, 16 * KIB, 64 * KIB, MIB];

/// The lengths that are hashed with two threads.
const THREADED: [usize; 5] = [128 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB];

/// The lengths that are hashed with each number of threads: from the shortest input that is worth
/// more than one thread to one that is larger than any cache. 96 KiB are two subtrees.
const SCALED: [(&str, usize); 9] = [
    ("64K", 64 * KIB),
    ("96K", 96 * KIB),
    ("128K", 128 * KIB),
    ("256K", 256 * KIB),
    ("512K", 512 * KIB),
    ("1M", MIB),
    ("4M", 4 * MIB),
    ("16M", 16 * MIB),
    ("1G", 1024 * MIB),
];

/// The lengths at which every kernel is compared: around a block, a chunk, and the widths of the
/// kernels.
const KERNEL_SIZES: [usize; 14] =
    [1, 64, 128, 256, 512, 1024, 2048, 3072, 4096, 7168, 8192, 15360, 16384, 65536];

pub(super) fn suites() -> [Suite; 10] {
    let suite = |name, cases| Suite { name, cases, active_kernel, kernels };
    [
        suite("oneshot", oneshot),
        suite("streaming-dispatch", streaming_dispatch),
        suite("parent-folding", parent_folding),
        suite("short-input-attribution", short_input_attribution),
        suite("many", many),
        suite("xof", xof),
        suite("threads", threads),
        suite(THREAD_SCALING, thread_scaling),
        suite("files", files::cases),
        suite("kernel-ab", kernel_ab),
    ]
}

fn kernels() -> Vec<String> {
    kernel::available().map(|kernel| kernel.to_string()).collect()
}

fn active_kernel() -> Result<Active> {
    let forced = kernel::forced().with_context(|| kernel::FORCE_VARIABLE.to_owned())?;
    Ok(Active { name: kernel::active().to_string(), forced: forced.is_some() })
}

fn oneshot() -> Vec<Case> {
    let modes = [(Mode::Hash, &SIZES[..]), (Mode::Keyed, short_of_huge()), (Mode::DeriveKey, &[64, 1024])];
    let of_mode = |(mode, sizes): (Mode, &'static [usize])| {
        sizes.iter().map(move |bytes| {
            let peers = both(move || official::oneshot(mode), move || rscrypto::oneshot(mode));
            case(mode.name(), *bytes, move || ours::oneshot(mode), peers)
        })
    };
    modes.into_iter().flat_map(of_mode).collect()
}

fn short_of_huge() -> &'static [usize] {
    let end = SIZES.iter().position(|bytes| *bytes >= HUGE).unwrap_or(SIZES.len());
    &SIZES[..end]
}

/// A megabyte in updates of one length, and streams of a single update, in every mode.
fn streaming_dispatch() -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in Mode::ALL {
        let name = mode.name();
        let peers = move |update| {
            both(move || official::stream(mode, update), move || rscrypto::stream(mode, update))
        };
        cases.extend(UPDATES.map(|update| Case {
            id: format!("{name}/1M-by/{update}"),
            ..case(name, MIB, move || ours::stream(mode, update), peers(update))
        }));
        cases.extend(SINGLE_UPDATES.map(|bytes| {
            case(&format!("{name}/single"), bytes, move || ours::stream(mode, usize::MAX), peers(usize::MAX))
        }));
    }
    cases
}

/// One parent of two chaining values, and whole inputs around the sizes at which the shape of the
/// tree changes.
fn parent_folding() -> Vec<Case> {
    let merge = |id: &str, ours: fn() -> Boxed, theirs: fn() -> Boxed| Case {
        id: id.to_owned(),
        ..case("", 64, ours, vec![peer(theirs)])
    };
    let mut cases = vec![
        merge("merge/parent", ours::merge_parent, official::merge_parent),
        merge("merge/root", ours::merge_root, official::merge_root),
    ];
    cases.extend(FOLDED.map(|chunks| {
        let peers = both(|| official::oneshot(Mode::Hash), || rscrypto::oneshot(Mode::Hash));
        let id = format!("chunks/{chunks}");
        Case { id, ..case("", chunks * KIB, || ours::oneshot(Mode::Hash), peers) }
    }));
    cases
}

/// Where the time of a short input goes: the object, the update, the end, the mode, and choosing
/// the kernel.
fn short_input_attribution() -> Vec<Case> {
    let mut cases = vec![
        case("new", 0, ours::new, both(official::new, rscrypto::new)),
        case("new-keyed", 0, ours::new_keyed, both(official::new_keyed, rscrypto::new_keyed)),
        case(
            "new-derive-key",
            0,
            ours::new_derive_key,
            both(official::new_derive_key, rscrypto::new_derive_key),
        ),
    ];
    for mode in Mode::ALL {
        cases.extend(SHORT.map(|bytes| {
            let peers = both(move || official::oneshot(mode), move || rscrypto::oneshot(mode));
            case(mode.name(), bytes, move || ours::oneshot(mode), peers)
        }));
    }
    for bytes in SHORT {
        cases.extend([
            case("update", bytes, ours::update, both(official::update, rscrypto::update)),
            case(
                "finalize",
                bytes,
                move || ours::finalize(bytes),
                both(move || official::finalize(bytes), move || rscrypto::finalize(bytes)),
            ),
            case(
                "stream",
                bytes,
                || ours::stream(Mode::Hash, usize::MAX),
                both(
                    || official::stream(Mode::Hash, usize::MAX),
                    || rscrypto::stream(Mode::Hash, usize::MAX),
                ),
            ),
            case(
                "derive_key-context-hashed",
                bytes,
                operations::derive_reused_ours,
                vec![peer(operations::derive_reused_official)],
            ),
            // Ours against itself: the cost of choosing the kernel.
            case("dispatch", bytes, || ours::oneshot(Mode::Hash), vec![direct()]),
        ]);
    }
    cases
}

/// Ours with the kernel chosen beforehand.
fn direct() -> Peer {
    Peer {
        name: "bulla, kernel named",
        version: env!("CARGO_PKG_VERSION").to_owned(),
        isa_limit: "",
        make: Box::new(operations::direct),
    }
}

/// Many inputs of one length: one call for ours, and one call per input for peers, which have no
/// other call.
fn many() -> Vec<Case> {
    let of_length = |length: usize| Case {
        id: format!("{MANY}x/{length}"),
        part: Some(length),
        ..case("", MANY * length, operations::many_ours, both(operations::many_official, rscrypto::many))
    };
    MANY_LENGTHS.map(of_length).into()
}

fn xof() -> Vec<Case> {
    let of_length = |bytes: usize| Case {
        input: 64,
        ..case(
            "output",
            bytes,
            move || ours::xof(bytes),
            both(move || official::xof(bytes), move || rscrypto::xof(bytes)),
        )
    };
    OUTPUTS.map(of_length).into()
}

/// rscrypto uses threads only in a build that uses them in every call, so it is not a peer here.
fn threads() -> Vec<Case> {
    let of_length =
        |bytes| Case { threads: THREADS, ..case("two", bytes, ours::threads, vec![peer(official::threads)]) };
    THREADED.map(of_length).into()
}

/// Each length with each number of threads, in the pool of the process: it has as many threads as
/// the cases that are measured ask for.
fn thread_scaling() -> Vec<Case> {
    let of = |(name, bytes, threads)| Case {
        id: format!("{name}-threads/{threads}"),
        threads,
        ..case("", bytes, ours::threads, vec![peer(official::threads)])
    };
    let with_each = |(name, bytes)| thread_counts().into_iter().map(move |threads| (name, bytes, threads));
    SCALED.into_iter().flat_map(with_each).map(of).collect()
}

/// The kernel in use against the official crate at the same instruction set. `cargo xtask bench`
/// forces one after the other.
fn kernel_ab() -> Vec<Case> {
    let name = active_kernel().map(|kernel| kernel.name).unwrap_or_default();
    let peers = || vec![peer(|| official::oneshot(Mode::Hash))];
    KERNEL_SIZES.map(|bytes| case(&name, bytes, || ours::oneshot(Mode::Hash), peers())).into()
}

pub(super) const KIB: usize = 1024;
pub(super) const MIB: usize = 1024 * KIB;

/// The instruction set to which this build's features restrict the official crate.
fn isa_limit() -> &'static str {
    let held = [
        (cfg!(feature = "peer-no-sse2") || cfg!(feature = "peer-no-neon"), "portable"),
        (cfg!(feature = "peer-no-sse41"), "sse2"),
        (cfg!(feature = "peer-no-avx2"), "sse4.1"),
        (cfg!(feature = "peer-no-avx512"), "avx2"),
    ];
    held.into_iter().find(|(is_held, _)| *is_held).map_or("", |(_, set)| set)
}

/// The official crate, as restricted in this build.
pub(super) fn peer(make: impl Fn() -> Boxed + 'static) -> Peer {
    Peer { isa_limit: isa_limit(), ..Peer::of_package("blake3", make) }
}

/// The official crate and rscrypto. No feature restricts rscrypto: if the official crate is
/// restricted, rscrypto does not take part.
pub(super) fn both(first: impl Fn() -> Boxed + 'static, second: impl Fn() -> Boxed + 'static) -> Vec<Peer> {
    let second = isa_limit().is_empty().then(|| Peer::of_package("rscrypto", second));
    [peer(first)].into_iter().chain(second).collect()
}

/// A case that reads `bytes` in one piece.
pub(super) fn case(group: &str, bytes: usize, ours: impl Fn() -> Boxed + 'static, peers: Vec<Peer>) -> Case {
    Case {
        id: format!("{group}/{bytes}"),
        bytes,
        input: bytes,
        part: None,
        threads: 1,
        ours: Box::new(ours),
        peers,
    }
}
