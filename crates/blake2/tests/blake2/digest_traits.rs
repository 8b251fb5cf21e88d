//! The traits of the `digest` crate, against the crate whose types have them too, under the same
//! names.

use crate::support::input;
use bulla_blake2::digest_traits as ours;
use digest::consts::{U1, U7, U20, U33};
use digest::{Digest, FixedOutputReset, KeyInit, Mac, Reset, Update};

/// The same calls on a type of ours and on theirs.
macro_rules! same {
    ($($name:ident $(<$size:ty>)?),*; $make:expr) => { $( {
        type Ours = ours::$name $(<$size>)?;
        type Theirs = blake2::$name $(<$size>)?;
        for len in [0, 1, 63, 64, 65, 128, 129, 700] {
            let data = input(len);
            let digests = [$make(Ours::default, &data), $make(Theirs::default, &data)];
            assert_eq!(digests[0], digests[1], "{}, {len} bytes", stringify!($name));
        }
    } )* };
}

/// The digest, after another one, in pieces, by hashers that the function makes.
fn reset_and_pieces<D: Digest + FixedOutputReset + Update>(new: impl Fn() -> D, data: &[u8]) -> Vec<u8> {
    let mut hasher = new();
    Update::update(&mut hasher, b"something else");
    hasher.finalize_fixed_reset();
    for piece in data.chunks(50) {
        Update::update(&mut hasher, piece);
    }
    let digest = hasher.finalize_fixed_reset().to_vec();
    assert_eq!(digest, D::digest(data).to_vec());
    assert_eq!(digest.len(), <D as Digest>::output_size());
    digest
}

#[test]
fn digests() {
    same!(Blake2b128, Blake2b256, Blake2b512, Blake2s128, Blake2s256; reset_and_pieces);
    same!(Blake2b<U1>, Blake2b<U20>, Blake2b<U33>, Blake2s<U1>, Blake2s<U20>; reset_and_pieces);
}

#[test]
fn customized_digests() {
    use digest::CustomizedInit;
    for purpose in [&b""[..], b"p", b"8 bytes.", b"sixteen bytes it"] {
        let ours = ours::Blake2b512::new_customized(purpose).chain_update(b"abc").finalize();
        assert_eq!(ours, blake2::Blake2b512::new_customized(purpose).chain_update(b"abc").finalize());
        let by_params = bulla_blake2::blake2b::Params::new().personal(purpose).hash(b"abc");
        assert_eq!(ours[..], *by_params.as_bytes());
        if purpose.len() <= 8 {
            let ours = ours::Blake2s256::new_customized(purpose).chain_update(b"abc").finalize();
            assert_eq!(ours, blake2::Blake2s256::new_customized(purpose).chain_update(b"abc").finalize());
        }
    }
}

#[test]
fn tags() {
    for len in [0, 1, 20, 32] {
        let key = &[7; 32][..len];
        let mut mac = ours::Blake2bMac512::new_from_slice(key).expect("short enough");
        let theirs = blake2::Blake2bMac512::new_from_slice(key).expect("short enough");
        let tag = theirs.chain_update(b"message").finalize().into_bytes();
        Mac::update(&mut mac, b"another message");
        Reset::reset(&mut mac);
        Mac::update(&mut mac, b"message");
        mac.clone().verify_slice(&tag).expect("the right tag");
        assert!(mac.verify_slice(&[0; 64]).is_err());

        let mac = ours::Blake2sMac::<U7>::new_from_slice(key).expect("short enough").chain_update(b"message");
        let theirs = blake2::Blake2sMac::<U7>::new_from_slice(key).expect("short enough");
        let tag = theirs.chain_update(b"message").finalize().into_bytes();
        mac.verify_slice(&tag).expect("the right tag");
    }
    let tag = bulla_blake2::blake2b::Params::new().key(&[7; 64]).hash(b"message");
    let mac = ours::Blake2bMac512::new(&[7; 64].into()).chain_update(b"message");
    mac.verify_slice(tag.as_bytes()).expect("the right tag");
    assert!(ours::Blake2bMac512::new_from_slice(&[0; 65]).is_err());
    assert!(ours::Blake2sMac256::new_from_slice(&[0; 33]).is_err());
}

#[test]
fn tags_with_salt_and_personalization() {
    for key in [None, Some(&[7; 20][..])] {
        let ours = ours::Blake2bMac512::new_with_salt_and_personal(key, b"salt", b"persona");
        let theirs = blake2::Blake2bMac512::new_with_salt_and_personal(key, b"salt", b"persona");
        let ours = ours.expect("short enough").chain_update(b"message").finalize().into_bytes();
        assert_eq!(ours, theirs.expect("short enough").chain_update(b"message").finalize().into_bytes());
    }
    let refused =
        |key, salt, persona| ours::Blake2sMac256::new_with_salt_and_personal(key, salt, persona).is_err();
    assert!(refused(Some(&[]), &[], &[]) && refused(Some(&[0; 33]), &[], &[]));
    assert!(refused(None, &[0; 9], &[]) && refused(None, &[], &[0; 9]));
    assert!(!refused(None, &[0; 8], &[0; 8]));
}

#[test]
fn nothing_shows_a_secret() {
    let mac = ours::Blake2bMac512::new_from_slice(&[0xAA; 4]).expect("short enough");
    let shown = format!("{mac:?} {:?}", ours::Blake2s256::new().chain_update(b"secret"));
    assert!(!shown.contains("170") && !shown.contains("words") && !shown.contains("secret"), "{shown}");
}

/// The core on which programs build that buffer by themselves.
#[test]
fn cores() {
    use digest::block_api::{UpdateCore, VariableOutputCore};
    use digest::block_buffer::LazyBuffer;

    macro_rules! by_core {
        ($Core:ty, $data:expr) => {{
            let mut core = <$Core>::new(11).expect("a length that there is");
            let mut buffer = LazyBuffer::default();
            buffer.digest_blocks($data, |blocks| core.update_blocks(blocks));
            let mut out = Default::default();
            core.finalize_variable_core(&mut buffer, &mut out);
            out
        }};
    }
    for len in [0, 64, 128, 129, 1000] {
        let data = input(len);
        assert_eq!(by_core!(ours::Blake2bVarCore, &data), by_core!(blake2::Blake2bVarCore, &data));
        assert_eq!(by_core!(ours::Blake2sVarCore, &data), by_core!(blake2::Blake2sVarCore, &data));
    }
    assert!(ours::Blake2bVarCore::new(0).is_err() && ours::Blake2bVarCore::new(65).is_err());
}
