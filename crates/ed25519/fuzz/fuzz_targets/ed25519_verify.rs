//! For any batch, every kernel gives each item the verdict of ed25519-dalek's `verify_strict`. Under the cofactored predicate, batch and
//! single verification agree.
#![no_main]

use arbitrary::Arbitrary;
use bulla_ed25519::{Item, SigningKey, Verdict, cofactored, kernel};
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
}

fuzz_target!(|input: Vec<Signed>| {
    let parts: Vec<([u8; 32], [u8; 64])> = input
        .iter()
        .map(|signed| {
            let key = SigningKey::from_seed(&signed.seed);
            let mut both = [0; 96];
            both[..32].copy_from_slice(key.public_key());
            both[32..].copy_from_slice(&key.sign(&signed.message));
            if let Some(bytes) = signed.key {
                both[..32].copy_from_slice(&bytes);
            }
            if let Some(bytes) = signed.signature {
                both[32..64].copy_from_slice(&bytes);
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
        .map(|(signed, (public_key, signature))| Item { public_key, message: &signed.message, signature })
        .collect();
    for kernel in kernel::available().filter(|kernel| kernel.name() != "model") {
        let mut out = vec![Verdict::Valid; items.len()];
        kernel.verify_many_into(&items, &mut out);
        for (item, verdict) in items.iter().zip(&out) {
            let strict = VerifyingKey::from_bytes(item.public_key).is_ok_and(|key| {
                key.verify_strict(item.message, &Signature::from_bytes(item.signature)).is_ok()
            });
            assert_eq!(verdict.is_valid(), strict, "{kernel}: {item:x?}");
        }
        cofactored::verify_many_by(kernel, &items, &mut out);
        for (item, verdict) in items.iter().zip(&out) {
            assert_eq!(*verdict, cofactored::verify(item), "{kernel}: {item:x?}");
        }
    }
});
