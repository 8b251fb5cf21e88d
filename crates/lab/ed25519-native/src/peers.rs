//! The peers that require a build for one machine: they have code only for AVX-512 IFMA, chosen
//! when they are compiled.

use bulla_lab::suites::{
    Make, Peer,
    ed25519::{Group, Signed, verifies},
};
use commonware_codec::{Copying, DecodeExt as _};
use commonware_cryptography::{BatchEntry, BatchVerifier as _};
use commonware_cryptography_curve25519::signing;
use commonware_parallel::Sequential;
use ed25519_simd::{DalekVerifier, VerifyInput};

/// The peers that can do the work of a group.
pub(crate) fn of(group: Group, count: usize) -> Vec<Peer> {
    let peer = |name, make| Peer { name, version: String::new(), isa_limit: "", make };
    let simd = || peer("ed25519-simd", simd(count));
    let commonware = || peer("commonware-cryptography-curve25519", commonware(count));
    match group {
        Group::Strict | Group::Prepared => vec![simd(), commonware()],
        Group::Cofactored => vec![commonware()],
        Group::Sign | Group::Parallel => vec![],
    }
}

fn simd(count: usize) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let mut verifier = DalekVerifier::new();
        let inputs: Vec<_> = (0..count)
            .map(|i| VerifyInput {
                public_key: signed.public_keys[i],
                signature: signed.signatures[i],
                message: &signed.messages[i],
            })
            .collect();
        verifies(count, move |out| verifier.verify_batch(&inputs, out))
    })
}

/// Its batch, with one verdict for all. Its messages begin with the length of an empty name, a zero
/// byte, like all messages here.
fn commonware(count: usize) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let items: Vec<_> = (0..count)
            .map(|i| {
                let key = signing::VerifyingKey::decode(Copying(&signed.public_keys[i])).expect("a key");
                let signature =
                    signing::Signature::decode(Copying(&signed.signatures[i])).expect("a signature");
                (key, signature, &signed.messages[i][1..])
            })
            .collect();
        verifies(count, move |out| {
            let valid = signing::VerifyingKey::verify_batch(
                &mut rand::rng(),
                &items,
                |_, (public_key, signature, message)| BatchEntry {
                    namespace: b"",
                    message,
                    public_key,
                    signature,
                },
                &Sequential,
            );
            out.fill(valid);
        })
    })
}
