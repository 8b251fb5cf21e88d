//! One case and its peers: the official crate, restricted by the build's features, and rscrypto.

use super::operations::Boxed;
use crate::suites::suite::{Case, Peer};

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
    Case { id: format!("{group}/{bytes}"), bytes, input: bytes, part: None, ours: Box::new(ours), peers }
}
