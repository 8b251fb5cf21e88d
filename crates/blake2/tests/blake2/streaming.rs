//! Input in pieces.

use crate::support::{for_both, input};
use bulla_blake2::kernel;

for_both! {
    /// Splits `data` at random places, which are often at, or next to, the ends of blocks.
    fn cuts(random: &mut fastrand::Rng, len: usize) -> Vec<usize> {
        let mut at = 0;
        let mut cuts = Vec::new();
        while at < len {
            let step = match random.u8(..4) {
                0 => random.usize(..10),
                1 => random.usize(..5) * ours::BLOCKBYTES,
                2 => (random.usize(..3) * MANY * ours::BLOCKBYTES + random.usize(..3)).saturating_sub(1),
                _ => random.usize(..2000),
            };
            at = (at + step).min(len);
            cuts.push(at);
        }
        cuts
    }

    #[test]
    fn random_cuts_and_the_count() {
        let mut random = fastrand::Rng::with_seed(11);
        let data = input(20_000);
        for kernel in kernel::runnable() {
            for _ in 0..300 {
                let data = &data[..random.usize(..data.len())];
                let mut params = ours::Params::new();
                let mut params_p = ours_p::Params::new();
                params.kernel(kernel);
                params_p.kernel(kernel);
                if random.bool() {
                    params.key(b"key");
                    params_p.key(b"key");
                }
                let (mut state, mut state_p) = (params.to_state(), params_p.to_state());
                let mut from = 0;
                for to in cuts(&mut random, data.len()) {
                    state.update(&data[from..to]);
                    state_p.update(&data[from..to]);
                    from = to;
                    assert_eq!(state.count() as usize, from);
                    assert_eq!(state_p.count() as usize, from);
                    if random.u8(..8) == 0 {
                        // It may go on afterwards.
                        assert_eq!(state.finalize(), params.hash(&data[..from]), "{kernel}");
                        assert_eq!(state_p.finalize(), params_p.hash(&data[..from]), "{kernel}");
                    }
                }
                assert_eq!(state.finalize(), params.hash(data), "{kernel}, {} bytes", data.len());
                assert_eq!(state_p.finalize(), params_p.hash(data), "{kernel}, {} bytes", data.len());
            }
        }
    }

    #[test]
    fn a_writer() {
        let data = input(5000);
        let (mut state, mut state_p) = (ours::State::new(), ours_p::State::new());
        std::io::copy(&mut &data[..], &mut state).expect("cannot fail");
        std::io::copy(&mut &data[..], &mut state_p).expect("cannot fail");
        assert_eq!(state.finalize(), ours_hash(&data));
        assert_eq!(state_p.finalize(), ours_p_hash(&data));
    }
}
