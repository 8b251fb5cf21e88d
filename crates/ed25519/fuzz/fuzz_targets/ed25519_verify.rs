//! Every kernel gives each item the verdict of ed25519-dalek's `verify_strict`: among others,
//! alone, and under a prepared key. Under the cofactored predicate, batch and single verification
//! agree.
#![no_main]

use arbitrary::Arbitrary;
use bulla_ed25519::{PreparedKey, Signer as _, SigningKey, Verdict, VerifyItem, cofactored, kernel};
use curve25519_dalek::{constants::EIGHT_TORSION, edwards::CompressedEdwardsY};
use ed25519_dalek::{Signature, VerifyingKey};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Signed {
    seed: [u8; 32],
    message: Vec<u8>,
    /// Changes to bytes of the key and the signature.
    changes: Vec<(u8, u8)>,
    /// Replaces the key or the signature.
    key: Option<[u8; 32]>,
    signature: Option<[u8; 32]>,
    /// The points of small order that are added to the key and to R.
    torsion: [u8; 2],
}

/// The encoding of the sum with a point of small order. What is no point stays as it is.
fn moved(bytes: &[u8], torsion: u8) -> [u8; 32] {
    let encoding = CompressedEdwardsY(bytes.try_into().unwrap());
    let small = EIGHT_TORSION[usize::from(torsion) % 8];
    encoding.decompress().map_or(encoding, |point| (point + small).compress()).0
}

fuzz_target!(|input: Vec<Signed>| {
    let parts: Vec<([u8; 32], [u8; 64])> = input
        .iter()
        .map(|signed| {
            let key = SigningKey::from_bytes(&signed.seed);
            let mut both = [0; 96];
            both[..32].copy_from_slice(key.as_ref().as_bytes());
            both[32..].copy_from_slice(&key.sign(&signed.message).to_bytes());
            if let Some(bytes) = signed.key {
                both[..32].copy_from_slice(&bytes);
            }
            if let Some(bytes) = signed.signature {
                both[32..64].copy_from_slice(&bytes);
            }
            for (n, torsion) in signed.torsion.into_iter().enumerate().filter(|(_, torsion)| torsion % 8 != 0)
            {
                let bytes = &mut both[32 * n..32 * n + 32];
                let sum = moved(bytes, torsion);
                bytes.copy_from_slice(&sum);
            }
            for (at, value) in &signed.changes {
                both[usize::from(*at) % 96] ^= value;
            }
            (both[..32].try_into().unwrap(), both[32..].try_into().unwrap())
        })
        .collect();
    let items: Vec<_> = input
        .iter()
        .zip(&parts)
        .map(|(signed, (public_key, signature))| VerifyItem {
            public_key,
            message: &signed.message,
            signature,
        })
        .collect();
    for kernel in kernel::available().filter(|kernel| kernel.name() != "scalar-model") {
        let mut out = vec![Verdict::Valid; items.len()];
        kernel.verify_many_into(&items, &mut out);
        for (item, verdict) in items.iter().zip(&out) {
            let strict = VerifyingKey::from_bytes(item.public_key).is_ok_and(|key| {
                key.verify_strict(item.message, &Signature::from_bytes(item.signature)).is_ok()
            });
            assert_eq!(verdict.is_valid(), strict, "{kernel}: {item:x?}");
            let mut alone = [Verdict::Valid];
            kernel.verify_many_into(&[*item], &mut alone);
            assert_eq!(alone[0], *verdict, "{kernel}, alone: {item:x?}");
            let key = PreparedKey::with_kernel(kernel, item.public_key);
            assert_eq!(key.verify(item.message, item.signature), *verdict, "{kernel}, prepared: {item:x?}");
        }
        cofactored::verify_many_by(kernel, &items, &mut out);
        for (item, verdict) in items.iter().zip(&out) {
            assert_eq!(*verdict, cofactored::verify(item), "{kernel}: {item:x?}");
        }
    }
});
