//! Every length, by every kernel, against two independent crates.

use crate::support::{for_both, input, key};
use blake2::Digest;
use bulla_blake2::kernel;

for_both! {
    /// Four blocks past the widest kernel, were each of its lanes to take a block.
    const MAX_LEN: usize = (MANY + 4) * ours::BLOCKBYTES;

    #[test]
    fn one_input() {
        let data = input(MAX_LEN);
        let key = key(ours::KEYBYTES);
        for len in 0..=MAX_LEN {
            let data = &data[..len];
            let plain = peer::Params::new().hash(data);
            let keyed = peer::Params::new().key(&key).hash(data);
            assert_eq!(ours_hash(data).as_bytes(), plain.as_bytes(), "{len} bytes");
            for kernel in kernel::runnable() {
                let mut params = ours::Params::new();
                assert_eq!(params.kernel(kernel).hash(data).as_bytes(), plain.as_bytes(), "{len} bytes, {kernel}");
                assert_eq!(params.key(&key).hash(data).as_bytes(), keyed.as_bytes(), "{len} bytes, {kernel}, keyed");
            }
        }
    }

    #[test]
    fn the_parallel_mode() {
        let data = input(MAX_LEN);
        let key = key(ours::KEYBYTES);
        for len in 0..=MAX_LEN {
            let data = &data[..len];
            let plain = peer_p::Params::new().hash(data);
            let keyed = peer_p::Params::new().key(&key).hash(data);
            assert_eq!(ours_p_hash(data).as_bytes(), plain.as_bytes(), "{len} bytes");
            for kernel in kernel::runnable() {
                let mut params = ours_p::Params::new();
                assert_eq!(params.kernel(kernel).hash(data).as_bytes(), plain.as_bytes(), "{len} bytes, {kernel}");
                assert_eq!(params.to_state().update(data).finalize(), params.hash(data), "{len} bytes, {kernel}");
                assert_eq!(params.key(&key).hash(data).as_bytes(), keyed.as_bytes(), "{len} bytes, {kernel}, keyed");
            }
        }
    }
}

#[test]
fn a_second_independent_crate() {
    let data = input(2048);
    for len in 0..=data.len() {
        let data = &data[..len];
        assert_eq!(
            bulla_blake2::blake2b(data).as_bytes(),
            &blake2::Blake2b512::digest(data)[..],
            "{len} bytes"
        );
        assert_eq!(
            bulla_blake2::blake2s(data).as_bytes(),
            &blake2::Blake2s256::digest(data)[..],
            "{len} bytes"
        );
    }
}
