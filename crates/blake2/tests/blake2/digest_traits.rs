//! The traits of the `digest` crate, against the crate whose types have them too.

use bulla_blake2::digest_traits::{Blake2b256, Blake2b512, Blake2bMac512, Blake2s256, Blake2sMac256};
use digest::{Digest, FixedOutputReset, KeyInit, Mac, Update};

#[test]
fn digests() {
    assert_eq!(Blake2b512::digest(b"abc"), blake2::Blake2b512::digest(b"abc"));
    assert_eq!(Blake2b256::digest(b"abc"), blake2::Blake2b256::digest(b"abc"));
    assert_eq!(Blake2s256::digest(b"abc"), blake2::Blake2s256::digest(b"abc"));
    let mut hasher = Blake2s256::new();
    Update::update(&mut hasher, b"something else");
    hasher.finalize_fixed_reset();
    Update::update(&mut hasher, b"abc");
    assert_eq!(hasher.finalize(), Blake2s256::digest(b"abc"));
}

#[test]
fn tags() {
    for len in [1, 20, 32] {
        let key = &[7; 32][..len];
        let tag = bulla_blake2::blake2b::Params::new().key(key).hash(b"message");
        let mut mac = Blake2bMac512::new_from_slice(key).expect("short enough");
        Mac::update(&mut mac, b"message");
        mac.clone().verify_slice(tag.as_bytes()).expect("the right tag");
        assert!(mac.verify_slice(&[0; 64]).is_err());

        let tag = bulla_blake2::blake2s::Params::new().key(key).hash(b"message");
        let mac = Blake2sMac256::new_from_slice(key).expect("short enough").chain_update(b"message");
        mac.verify_slice(tag.as_bytes()).expect("the right tag");
    }
    assert!(Blake2bMac512::new_from_slice(&[0; 65]).is_err());
    assert!(Blake2sMac256::new_from_slice(&[0; 33]).is_err());
}
