//! The interface that the ecosystem knows.

use crate::support::for_both;
use bulla_blake2::{blake2b, blake2s};

const FOO: &str = "ca002330e69d3e6b84a46a56a6533fd79d51d97a3bb7cad6c2ff43b354185d6d\
                   c1e723fb3db4ae0737e120378424c714bb982d9dc5bbd7a0ab318240ddd18f8d";

#[test]
fn digests_are_text() {
    let digest = blake2b(b"foo");
    assert_eq!(&digest.to_hex(), FOO);
    assert_eq!(format!("{digest:?}"), format!("Hash(0x{FOO})"));
    assert_eq!(&blake2s(b"foo").to_hex(), "08d6cad88075de8f192db097573d0e829411cd91eb6ec65e8fc16c017edfdb74");
}

for_both! {
    #[test]
    fn constants_are_those_of_the_peer() {
        assert_eq!(ours::OUTBYTES, peer::OUTBYTES);
        assert_eq!(ours::KEYBYTES, peer::KEYBYTES);
        assert_eq!(ours::SALTBYTES, peer::SALTBYTES);
        assert_eq!(ours::PERSONALBYTES, peer::PERSONALBYTES);
        assert_eq!(ours::BLOCKBYTES, peer::BLOCKBYTES);
    }

    #[test]
    fn digests_compare_and_convert() {
        let digest = ours_hash(b"foo");
        assert_eq!(digest, ours::Hash::from(digest.as_array()));
        assert_eq!(digest, ours::Hash::from(*digest.as_array()));
        assert_eq!(digest, *digest.as_bytes());
        assert_eq!(digest.as_ref(), digest.as_bytes());
        assert_ne!(digest, ours_hash(b"bar"));
        assert_ne!(digest, *ours::Params::new().hash_length(8).hash(b"foo").as_bytes());
    }

    #[test]
    fn nothing_shows_a_secret() {
        let mut params = ours::Params::new();
        params.key(b"\xAA\xAA\xAA\xAA");
        let mut params_p = ours_p::Params::new();
        params_p.key(b"\xAA\xAA\xAA\xAA");
        let job = ours::many::HashManyJob::new(&params, b"input");
        let (state, state_p) = (params.to_state(), params_p.to_state());
        let shown = format!("{params:?} {params_p:?} {state:?} {state_p:?} {job:?}");
        assert!(!shown.contains("170") && !shown.contains("words"), "{shown}");
        assert!(shown.contains("key_length: 4"), "{shown}");
    }

    #[test]
    fn secrets_can_be_cleared() {
        use zeroize::Zeroize;
        let mut params = ours::Params::new();
        params.key(b"key").zeroize();
        assert_eq!(params.hash(b"foo"), ours_hash(b"foo"));
        let mut state = ours::Params::new().key(b"key").to_state();
        state.update(b"input").zeroize();
        assert_eq!(state.count(), 0);
        let mut digest = ours_hash(b"foo");
        digest.zeroize();
        assert_eq!(digest, [0; ours::OUTBYTES][..]);
    }
}
