//! Kernels over arrays instead of vector registers. With them, every machine, also Miri's, can run
//! the generic bodies. The shapes are those of the kernels for SSE4.1 and AVX-512.

use super::{Functions, Tables, Tuning};
use crate::generic::SIGMA;
use crate::generic::columns::{self, Rounds};
use crate::generic::rows::{self, CompiledRounds};
use crate::word::Word;
use bulla_simd::arrays::Array;
use bulla_simd::cpu::Isa;
use bulla_simd::{Vector, half_round};

/// A loop over the rounds: all rounds of arrays, one after another, would be a third of a megabyte
/// of code.
macro_rules! in_a_loop {
    ($word:ty) => {
        impl<const N: usize> Rounds for Array<$word, N> {
            #[inline(never)]
            unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
                for schedule in SIGMA.iter().cycle().take(<$word>::ROUNDS) {
                    // SAFETY: arrays need no instruction set.
                    unsafe {
                        half_round!(v, m, schedule, 0, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
                        half_round!(v, m, schedule, 8, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
                    }
                }
            }
        }
    };
}

in_a_loop!(u32);
in_a_loop!(u64);

/// The vectors of the kernels for architectures without vector types. Miri would take four times as
/// long for their rounds.
#[cfg(not(miri))]
type Narrow<W> = bulla_simd::lanes::Lanes<W, 4>;
#[cfg(miri)]
type Narrow<W> = Array<W, 4>;

pub(crate) static NARROW: Tables = Tables {
    isa: Isa::Portable,
    tuning: Tuning::Only,
    blake2b: &Functions {
        lanes: 4,
        compress: rows::compress_input::<CompiledRounds<Narrow<u64>>>,
        compress_lanes: columns::compress_lanes::<Narrow<u64>, 4>,
    },
    blake2s: &Functions {
        lanes: 4,
        compress: rows::compress_input::<CompiledRounds<Narrow<u32>>>,
        compress_lanes: columns::compress_lanes::<Narrow<u32>, 4>,
    },
};

pub(crate) static WIDE: Tables = Tables {
    isa: Isa::Portable,
    tuning: Tuning::Only,
    blake2b: &Functions {
        lanes: 8,
        compress: rows::compress_input::<CompiledRounds<Array<u64, 4>>>,
        compress_lanes: columns::compress_lanes::<Array<u64, 8>, 8>,
    },
    blake2s: &Functions {
        lanes: 16,
        compress: rows::compress_input::<CompiledRounds<Array<u32, 4>>>,
        compress_lanes: columns::compress_lanes::<Array<u32, 16>, 16>,
    },
};

/// Tests every path of the generic bodies, and of the code above them, over arrays against the
/// portable kernel. Miri runs these tests too, with fewer sizes: the comparisons show wrong
/// results, and Miri shows invalid reads and writes that no result shows.
mod tests {
    use super::{NARROW, WIDE};
    use crate::kernel::Kernel;
    use crate::kernel::Tables;
    use crate::kernel::portable::PORTABLE;
    use crate::many::{HashManyJob, hash_many, update_many};
    use crate::{Blake2b, Blake2s, Params, State, Variant, Word, parallel};

    const KERNELS: [&Tables; 2] = [&NARROW, &WIDE];

    fn input(len: usize) -> Vec<u8> {
        (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
    }

    /// The sizes `in_miri` under Miri, and `all` in other builds: Miri takes a hundred thousand
    /// times as long.
    fn sizes(in_miri: &[usize], all: impl Iterator<Item = usize>) -> Vec<usize> {
        if cfg!(miri) { in_miri.to_vec() } else { all.collect() }
    }

    /// Whether results for `data` are compared with the portable kernel: under Miri, only those of
    /// short inputs. There, that kernel takes as long as the others, `one_input` runs it, and other
    /// builds compare the results of every size.
    fn is_compared<V: Variant>(data: &[u8]) -> bool {
        !cfg!(miri) || data.len() <= V::Word::BLOCK
    }

    fn params<V: Variant>(tables: &'static Tables, key: &[u8]) -> Params<V> {
        let mut params = Params::new();
        params.kernel(Kernel(tables)).key(key);
        params
    }

    fn one<V: Variant>() {
        let block = V::Word::BLOCK;
        let data = input(3 * block);
        for len in sizes(&[0, 1, 3, 6, 12, 20, 40, block - 1, block, block + 1], 0..=3 * block) {
            let data = &data[..len];
            for key in [&b""[..], b"a key"] {
                if cfg!(miri) && key.is_empty() != (len % 3 == 0) {
                    continue;
                }
                let expected = params::<V>(&PORTABLE, key).hash(data);
                assert_eq!(params::<V>(&NARROW, key).hash(data), expected, "{len} bytes");
                let mut state = params::<V>(&NARROW, key).to_state();
                for piece in data.chunks(50) {
                    state.update(piece);
                }
                assert_eq!(state.finalize(), expected, "{len} bytes in pieces");
            }
        }
    }

    #[test]
    fn one_input() {
        one::<Blake2b>();
        one::<Blake2s>();
    }

    /// Inputs of one length, and of several, so that some end before others; more inputs than
    /// lanes, and fewer.
    fn many<V: Variant>(kernel: &'static Tables) {
        let block = V::Word::BLOCK;
        let data = input(6 * block);
        let lens = [block + 1, 0, 10, 2 * block, 2 * block - 1, 1, block, 3 * block];
        let lanes = V::functions(Kernel(kernel)).lanes;
        for n in sizes(&[if lanes > 4 { 3 } else { 6 }], 1..=20) {
            for alike in [true, false] {
                if cfg!(miri) && alike && lanes > 4 {
                    continue;
                }
                let lens = lens.iter().map(|len| if alike { block + 1 } else { *len });
                let inputs: Vec<_> =
                    lens.cycle().take(n).enumerate().map(|(i, len)| &data[i..][..len]).collect();
                let mut jobs: Vec<_> =
                    inputs.iter().map(|input| HashManyJob::new(&params::<V>(kernel, b""), input)).collect();
                hash_many(&mut jobs);
                let mut states = vec![State::<V>::with_params(&params(kernel, b"key")); n];
                update_many(states.iter_mut().zip(&inputs));
                for ((job, state), input) in jobs.iter().zip(&states).zip(&inputs) {
                    let (digest, of_state) = (job.to_hash(), state.finalize());
                    if is_compared::<V>(input) {
                        assert_eq!(digest, params::<V>(&PORTABLE, b"").hash(input), "{n} inputs");
                        assert_eq!(of_state, params::<V>(&PORTABLE, b"key").hash(input), "{n} inputs");
                    }
                }
            }
        }
    }

    #[test]
    fn many_inputs() {
        for kernel in KERNELS {
            many::<Blake2b>(kernel);
            many::<Blake2s>(kernel);
        }
    }

    fn leaves<V: Variant>() {
        let data = input(5000);
        for len in sizes(&[0, 1100], (0..data.len()).step_by(61)) {
            let [ours, theirs] = [&NARROW, &PORTABLE].map(|tables| {
                let mut params = parallel::Params::<V>::new();
                params.kernel(Kernel(tables));
                let mut state = params.to_state();
                for piece in data[..len].chunks(300) {
                    state.update(piece);
                }
                (params.hash(&data[..len]), state.finalize())
            });
            assert!(ours == theirs && ours.0 == ours.1, "{len} bytes");
        }
    }

    #[test]
    fn parallel_modes() {
        leaves::<Blake2b>();
        leaves::<Blake2s>();
    }

    /// Counters whose low words wrap in some lanes. The tests of the crate cover every place.
    #[test]
    fn counters_that_carry() {
        let data = input(5 * 64);
        let states = |tables: &'static Tables| {
            let mut states = vec![params::<Blake2s>(tables, b"").to_state(); 3];
            states[1].count = (1 << 32) - 2 * 64;
            update_many(states.iter_mut().map(|state| (state, &data)));
            states.iter().map(State::finalize).collect::<Vec<_>>()
        };
        assert_eq!(states(&NARROW), states(&PORTABLE));
    }
}
