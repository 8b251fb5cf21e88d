//! Every parameter, against the peers.

use crate::support::{for_both, input, key};
use bulla_blake2::kernel;

for_both! {
    #[test]
    fn every_key_length_and_every_output_length() {
        let data = input(3 * ours::BLOCKBYTES + 5);
        for kernel in kernel::runnable() {
            for key_len in 0..=ours::KEYBYTES {
                for out_len in 1..=ours::OUTBYTES {
                    let key = key(key_len);
                    let len = (key_len * 31 + out_len * 17) % data.len();
                    let data = &data[..len];
                    let expected = peer::Params::new().key(&key).hash_length(out_len).hash(data);
                    let mut params = ours::Params::new();
                    params.kernel(kernel).key(&key).hash_length(out_len);
                    let hash = params.hash(data);
                    assert_eq!(hash.as_bytes(), expected.as_bytes(), "{kernel}: key {key_len}, output {out_len}");
                    assert_eq!(params.to_state().update(data).finalize(), hash);

                    let expected = peer_p::Params::new().key(&key).hash_length(out_len).hash(data);
                    let mut params = ours_p::Params::new();
                    let hash = params.kernel(kernel).key(&key).hash_length(out_len).hash(data);
                    assert_eq!(hash.as_bytes(), expected.as_bytes(), "{kernel}: key {key_len}, output {out_len}");
                }
            }
        }
    }

    #[test]
    fn every_length_of_salt_and_personalization() {
        let bytes = input(ours::SALTBYTES);
        for salt in 0..=ours::SALTBYTES {
            for personal in 0..=ours::PERSONALBYTES {
                let expected = peer::Params::new().salt(&bytes[..salt]).personal(&bytes[..personal]).hash(b"abc");
                let hash = ours::Params::new().salt(&bytes[..salt]).personal(&bytes[..personal]).hash(b"abc");
                assert_eq!(hash.as_bytes(), expected.as_bytes(), "salt {salt}, personalization {personal}");
            }
        }
    }

    #[test]
    fn any_parameters_together() {
        let mut random = fastrand::Rng::with_seed(7);
        let data = input(1000);
        for _ in 0..3000 {
            let (hash_length, key_length) = (random.usize(1..=ours::OUTBYTES), random.usize(..=ours::KEYBYTES));
            let (salt, personal) = (input(random.usize(..=ours::SALTBYTES)), input(random.usize(..=ours::PERSONALBYTES)));
            let (fanout, depth, leaf, node_depth) = (random.u8(..), random.u8(..), random.u32(..), random.u8(..));
            let (offset, inner) = (random.u64(..) >> random.u32(16..64), random.usize(..=ours::OUTBYTES));
            let (last, len) = (random.bool(), random.usize(..data.len()));
            /// The same calls on either crate's parameters.
            macro_rules! hash {
                ($library:ident) => {{
                    let mut params = $library::Params::new();
                    params.hash_length(hash_length).key(&key(key_length)).salt(&salt).personal(&personal);
                    params.fanout(fanout).max_depth(depth).max_leaf_length(leaf).node_depth(node_depth);
                    params.node_offset(offset).inner_hash_length(inner).last_node(last);
                    params.hash(&data[..len])
                }};
            }
            assert_eq!(hash!(ours).as_bytes(), hash!(peer).as_bytes());
        }
    }

    #[test]
    fn the_last_node_can_be_told_late() {
        let told = *ours::Params::new().last_node(true).hash(b"leaf").as_array();
        let mut state = ours::State::new();
        state.update(b"leaf");
        let not_last = state.finalize();
        assert_eq!(*state.set_last_node(true).finalize().as_array(), told);
        assert_eq!(state.set_last_node(false).finalize(), not_last);
        assert_ne!(*not_last.as_array(), told);
    }

    /// A tree of two levels, made by hand.
    #[test]
    fn tree_mode() {
        let data = input(10_000);
        macro_rules! tree {
            ($library:ident) => {{
                let node = |depth: u8, offset: u64, last: bool| {
                    let mut params = $library::Params::new();
                    params.fanout(0).max_depth(2).max_leaf_length(4096).inner_hash_length($library::OUTBYTES);
                    params.node_depth(depth).node_offset(offset).last_node(last);
                    params
                };
                let mut root = node(1, 0, true).to_state();
                for (i, leaf) in data.chunks(4096).enumerate() {
                    root.update(node(0, i as u64, i == 2).hash(leaf).as_bytes());
                }
                root.finalize()
            }};
        }
        assert_eq!(tree!(ours).as_bytes(), tree!(peer).as_bytes());
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let refused = |call: fn()| assert!(std::panic::catch_unwind(call).is_err());
        refused(|| drop(ours::Params::new().hash_length(0).clone()));
        refused(|| drop(ours::Params::new().hash_length(ours::OUTBYTES + 1).clone()));
        refused(|| drop(ours::Params::new().key(&[0; ours::KEYBYTES + 1]).clone()));
        refused(|| drop(ours::Params::new().salt(&[0; ours::SALTBYTES + 1]).clone()));
        refused(|| drop(ours::Params::new().personal(&[0; ours::PERSONALBYTES + 1]).clone()));
        refused(|| drop(ours::Params::new().inner_hash_length(ours::OUTBYTES + 1).clone()));
        refused(|| drop(ours_p::Params::new().hash_length(0).clone()));
        refused(|| drop(ours_p::Params::new().key(&[0; ours::KEYBYTES + 1]).clone()));
    }
}

#[test]
fn node_offsets_of_blake2s_have_48_bits() {
    bulla_blake2::blake2b::Params::new().node_offset(u64::MAX);
    bulla_blake2::blake2s::Params::new().node_offset((1 << 48) - 1);
    let refused = std::panic::catch_unwind(|| {
        bulla_blake2::blake2s::Params::new().node_offset(1 << 48);
    });
    assert!(refused.is_err());
}
