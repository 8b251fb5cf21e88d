//! BLAKE2: ours compared with `blake2b_simd`, `blake2s_simd`, `rscrypto` and RustCrypto's `blake2`.
//! The first two have no code for AVX-512. Rscrypto has, and cannot be restricted: if one of our
//! kernels is forced, it does not take part.

use anyhow::{Context as _, Result};
use bulla_blake2::kernel;

use super::suite::{Active, Case, Make, Peer, Suite};
use crate::measure::{Input, Op, Subject};

/// The lengths of single inputs: around a block, and lengths at which the cost of the call is
/// small.
const SIZES: [usize; 12] = [0, 1, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536, 1 << 20];

/// The lengths of inputs of the parallel modes.
const PARALLEL: [usize; 5] = [64, 1024, 4096, 65536, 1 << 20];

/// The number of inputs that are hashed side by side.
const MANY: usize = 64;

/// Their lengths.
const MANY_LENGTHS: [usize; 5] = [64, 128, 1024, 4096, 16384];

/// The lengths of the updates of a stream of 64 KiB.
const UPDATES: [usize; 3] = [64, 1024, 16384];

pub(super) fn suite() -> Suite {
    Suite {
        name: "blake2",
        cases,
        active_kernel,
        kernels: || kernel::available().map(|kernel| kernel.to_string()).collect(),
    }
}

fn active_kernel() -> Result<Active> {
    let forced = kernel::forced().with_context(|| kernel::FORCE_VARIABLE.to_owned())?;
    Ok(Active { name: kernel::active().to_string(), forced: forced.is_some() })
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for bytes in SIZES {
        cases.push(case("2b", bytes, ours_2b::one(), all_peers_2b()));
        cases.push(case("2s", bytes, ours_2s::one(), all_peers_2s()));
    }
    for update in UPDATES {
        let stream = |group, ours, peer| Case {
            id: format!("{group}-stream/{update}"),
            ..case(group, 65536, ours, vec![peer])
        };
        cases.push(stream("2b", ours_2b::stream(update), peer_2b(peer_2b::stream(update))));
        cases.push(stream("2s", ours_2s::stream(update), peer_2s(peer_2s::stream(update))));
    }
    for bytes in PARALLEL {
        cases.push(case("2bp", bytes, ours_2b::parallel(), vec![peer_2b(peer_2b::parallel())]));
        cases.push(case("2sp", bytes, ours_2s::parallel(), vec![peer_2s(peer_2s::parallel())]));
    }
    for length in MANY_LENGTHS {
        let many = |group, ours, peer| Case {
            id: format!("{group}-many/{length}"),
            part: Some(length),
            ..case(group, MANY * length, ours, vec![peer])
        };
        cases.push(many("2b", ours_2b::many(), peer_2b(peer_2b::many())));
        cases.push(many("2s", ours_2s::many(), peer_2s(peer_2s::many())));
    }
    cases
}

fn case(group: &str, bytes: usize, ours: Make, peers: Vec<Peer>) -> Case {
    Case { id: format!("{group}/{bytes}"), bytes, input: bytes, part: None, threads: 1, ours, peers }
}

fn peer_2b(make: Make) -> Peer {
    Peer::of_package("blake2b_simd", make)
}

fn peer_2s(make: Make) -> Peer {
    Peer::of_package("blake2s_simd", make)
}

/// Rscrypto, only if our kernel is not forced: rscrypto always uses everything that the machine
/// has.
fn rscrypto(make: impl Fn() -> Box<dyn Subject> + 'static) -> Option<Peer> {
    matches!(kernel::forced(), Ok(None)).then(|| Peer::of_package("rscrypto", make))
}

fn all_peers_2b() -> Vec<Peer> {
    let blake2 = || digest_of(|input| <blake2::Blake2b512 as blake2::Digest>::digest(input).into());
    let rscrypto = rscrypto(|| digest_of(<rscrypto::Blake2b512 as rscrypto::Digest>::digest));
    let first = [peer_2b(peer_2b::one())].into_iter().chain(rscrypto);
    first.chain([Peer::of_package("blake2", blake2)]).collect()
}

fn all_peers_2s() -> Vec<Peer> {
    let blake2 = || digest_of(|input| <blake2::Blake2s256 as blake2::Digest>::digest(input).into());
    let rscrypto = rscrypto(|| digest_of(<rscrypto::Blake2s256 as rscrypto::Digest>::digest));
    let first = [peer_2s(peer_2s::one())].into_iter().chain(rscrypto);
    first.chain([Peer::of_package("blake2", blake2)]).collect()
}

/// The operation that makes a digest of the whole input.
fn digest_of<const N: usize>(run: impl Fn(&[u8]) -> [u8; N] + 'static) -> Box<dyn Subject> {
    Box::new(Op {
        result: [0; N],
        run: move |input: &Input<'_>, out: &mut [u8; N]| *out = run(input.whole),
        bytes: |out: &[u8; N]| out.to_vec(),
    })
}

/// The operations, written once for libraries with the same names, so that all get the same
/// treatment.
macro_rules! operations {
    ($name:ident, $library:path, $one:ident, $parallel:ident, $p:ident) => {
        mod $name {
            use $library as library;

            use super::{Input, MANY, Make, Op, digest_of};

            pub(super) fn one() -> Make {
                Box::new(|| digest_of(|input| *library::$one(input).as_array()))
            }

            pub(super) fn parallel() -> Make {
                Box::new(|| digest_of(|input| *library::$parallel::$p(input).as_array()))
            }

            pub(super) fn stream(update: usize) -> Make {
                Box::new(move || {
                    digest_of(move |input| {
                        let mut state = library::State::new();
                        for piece in input.chunks(update) {
                            state.update(piece);
                        }
                        *state.finalize().as_array()
                    })
                })
            }

            pub(super) fn many() -> Make {
                Box::new(|| {
                    Box::new(Op {
                        result: vec![library::$one(b""); MANY],
                        run: |input: &Input<'_>, out: &mut Vec<library::Hash>| {
                            let params = library::Params::new();
                            let jobs =
                                input.parts.iter().map(|part| library::many::HashManyJob::new(&params, part));
                            let mut jobs: Vec<_> = jobs.collect();
                            library::many::hash_many(&mut jobs);
                            for (job, hash) in jobs.iter().zip(out) {
                                *hash = job.to_hash();
                            }
                        },
                        bytes: |out: &Vec<library::Hash>| {
                            out.iter().flat_map(|hash| hash.as_bytes().to_vec()).collect()
                        },
                    })
                })
            }
        }
    };
}

operations!(ours_2b, bulla_blake2::blake2b, blake2b, blake2bp, blake2bp);
operations!(peer_2b, ::blake2b_simd, blake2b, blake2bp, blake2bp);
operations!(ours_2s, bulla_blake2::blake2s, blake2s, blake2sp, blake2sp);
operations!(peer_2s, ::blake2s_simd, blake2s, blake2sp, blake2sp);
