//! Tests of cases that cannot be reached from outside: counters beyond any input that a test can
//! hash, against a slow, obvious reference.

use crate::generic::SIGMA;
use crate::job::Finalization;
use crate::kernel::{self, Kernel};
use crate::many::{HashManyJob, hash_many, update_many};
use crate::{Blake2b, Blake2s, Params, State, Variant, Word};

/// The compression function of RFC 7693, section 3.2, on words of either size.
trait Reference: Word {
    const ROTATES: [u32; 4];
    fn sum(self, other: Self) -> Self;
    fn rotated(self, by: u32) -> Self;

    fn compress(h: &mut [Self; 8], block: &[u8], counter: [Self; 2], last: Finalization) {
        let m: Vec<_> = block.chunks(Self::BYTES).map(Self::from_le_slice).collect();
        let mut v = [*h, Self::IV].concat();
        let flags = last.flags::<Self>();
        for (i, word) in [counter[0], counter[1], flags[0], flags[1]].into_iter().enumerate() {
            v[12 + i] = v[12 + i] ^ word;
        }
        for round in 0..Self::ROUNDS {
            let s = SIGMA[round % 10];
            let places = [
                [0, 4, 8, 12],
                [1, 5, 9, 13],
                [2, 6, 10, 14],
                [3, 7, 11, 15],
                [0, 5, 10, 15],
                [1, 6, 11, 12],
                [2, 7, 8, 13],
                [3, 4, 9, 14],
            ];
            for (i, [a, b, c, d]) in places.into_iter().enumerate() {
                for half in 0..2 {
                    v[a] = v[a].sum(v[b]).sum(m[s[2 * i + half]]);
                    v[d] = (v[d] ^ v[a]).rotated(Self::ROTATES[2 * half]);
                    v[c] = v[c].sum(v[d]);
                    v[b] = (v[b] ^ v[c]).rotated(Self::ROTATES[2 * half + 1]);
                }
            }
        }
        for i in 0..8 {
            h[i] = h[i] ^ v[i] ^ v[i + 8];
        }
    }
}

impl Reference for u64 {
    const ROTATES: [u32; 4] = [32, 24, 16, 63];
    fn sum(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    fn rotated(self, by: u32) -> Self {
        self.rotate_right(by)
    }
}

impl Reference for u32 {
    const ROTATES: [u32; 4] = [16, 12, 8, 7];
    fn sum(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    fn rotated(self, by: u32) -> Self {
        self.rotate_right(by)
    }
}

/// The final state after `input`, if `count` bytes came before it.
fn expected<V: Variant<Word: Reference>>(input: &[u8], mut count: u128) -> Vec<u8> {
    let mut h = V::PLAIN;
    let blocks = input.len().div_ceil(V::Word::BLOCK).max(1);
    for i in 0..blocks {
        let block = &input[V::Word::BLOCK * i..input.len().min(V::Word::BLOCK * (i + 1))];
        count = count.wrapping_add(block.len() as u128);
        let mut padded = block.to_vec();
        padded.resize(V::Word::BLOCK, 0);
        let last = if i + 1 == blocks { Finalization::LastBlock } else { Finalization::None };
        Reference::compress(&mut h, &padded, V::Word::split(count), last);
    }
    let mut bytes = vec![0; 8 * V::Word::BYTES];
    for (word, out) in h.iter().zip(bytes.chunks_mut(V::Word::BYTES)) {
        word.write_le(out);
    }
    bytes
}

fn state<V: Variant>(kernel: Kernel, count: u128) -> State<V> {
    let mut state = Params::<V>::new().kernel(kernel).to_state();
    state.count = count;
    state
}

/// Counters whose low word wraps before, at, and after every block, and one whose two words both
/// wrap.
fn counters<V: Variant<Word: Reference>>() {
    let bits = 8 * V::Word::BYTES as u32;
    let input: Vec<u8> = (0..20 * V::Word::BLOCK).map(|i| (i * 7 + i / 251) as u8).collect();
    for kernel in kernel::runnable() {
        for blocks in 0..=6u128 {
            for len in [0, 1, V::Word::BLOCK, 3 * V::Word::BLOCK + 1, 6 * V::Word::BLOCK, input.len()] {
                for end in [1u128 << bits, 5u128 << bits, 0] {
                    let count = end.wrapping_sub(blocks * V::Word::BLOCK as u128);
                    let expected = expected::<V>(&input[..len], count);
                    let mut one = state::<V>(kernel, count);
                    assert_eq!(one.update(&input[..len]).finalize().as_bytes(), expected, "{kernel}");

                    // Side by side with others that have other counters.
                    let mut states: Vec<_> = (0..19u32)
                        .map(|i| state::<V>(kernel, if i % 3 == 0 { count } else { u128::from(i) << 10 }))
                        .collect();
                    update_many(states.iter_mut().map(|state| (state, &input[..len])));
                    for state in states.iter().step_by(3) {
                        assert_eq!(
                            state.finalize().as_bytes(),
                            expected,
                            "{kernel}, {blocks} blocks, {len} bytes"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn counters_of_blake2b_carry() {
    counters::<Blake2b>();
}

#[test]
fn counters_of_blake2s_carry() {
    counters::<Blake2s>();
}

/// The portable kernel and all others against the reference, at every length up to four blocks.
fn reference<V: Variant<Word: Reference>>() {
    let input: Vec<u8> = (0..4 * V::Word::BLOCK).map(|i| (i * 7 + i / 251) as u8).collect();
    for kernel in kernel::runnable() {
        let mut params = Params::<V>::new();
        params.kernel(kernel);
        for len in 0..=input.len() {
            let expected = expected::<V>(&input[..len], 0);
            assert_eq!(params.hash(&input[..len]).as_bytes(), expected, "{kernel}, {len} bytes");
            let mut jobs = [HashManyJob::new(&params, &input[..len]), HashManyJob::new(&params, b"")];
            hash_many(&mut jobs);
            assert_eq!(jobs[0].to_hash().as_bytes(), expected, "{kernel}, {len} bytes");
        }
    }
}

#[test]
fn kernels_compute_what_the_rfc_says() {
    reference::<Blake2b>();
    reference::<Blake2s>();
}

fn states<V: Variant>() {
    let tree = || Params::<V>::of_tree(V::LEAVES as u8, 2, size_of::<V::Digest>() as u8);
    let (leaves, root) = V::PLAIN_TREE;
    for (i, words) in leaves[..V::LEAVES].iter().enumerate() {
        assert_eq!(*words, tree().node_offset(i as u64).words);
        assert_eq!(*words, tree().node(i as u64, 0));
    }
    assert_eq!(root, tree().node_depth(1).words);
    assert_eq!(root, tree().node(0, 1));
    assert_eq!(V::PLAIN, Params::<V>::new().fanout(1).words);
}

#[test]
fn states_that_are_constants_are_those_of_the_parameters() {
    states::<Blake2b>();
    states::<Blake2s>();
}

/// All implementations of the rounds of one row type, on the same rows and block.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
macro_rules! by_each {
    ($name:ident, $features:literal, $($Rounds:ident),*) => {
        #[target_feature(enable = $features)]
        unsafe fn $name<V: WordRows<Word: Word>>(rows: &[V::Word; 16], m: *const u8) -> Vec<[V::Word; 16]>
        where
            $( $Rounds<V>: Rounds<Row = V>, )*
        {
            // SAFETY: the test asked for the instruction set; the arrays have four rows, the block
            // is readable.
            unsafe {
                let rows = || [0, 4, 8, 12].map(|i| V::load(rows.as_ptr().add(i)));
                let results = [$( <$Rounds<V>>::rounds(rows(), m) ),*];
                let words = results.map(|result| {
                    let mut words = [V::Word::default(); 16];
                    for (i, row) in result.into_iter().enumerate() {
                        row.store(words.as_mut_ptr().add(4 * i));
                    }
                    words
                });
                words.to_vec()
            }
        }
    };
}

/// Whether all are the same.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
fn all_equal<T: PartialEq>(all: Vec<T>) -> bool {
    all.windows(2).all(|pair| pair[0] == pair[1])
}

/// The rounds in assembly, in every order, against the compiled ones.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[test]
fn rounds_in_assembly() {
    use crate::generic::rows::{CompiledRounds, Rounds};
    use crate::kernel::{FastRotate, NoRotate, SlowRotate};
    use bulla_simd::WordRows;
    use bulla_simd::x86_64::{avx2, avx512};

    by_each!(by_avx2, "ssse3,sse4.1,avx2,bmi1,bmi2", CompiledRounds, NoRotate);
    by_each!(
        by_avx512,
        "ssse3,sse4.1,avx2,bmi1,bmi2,avx512f,avx512vl,avx512bw,avx512dq",
        CompiledRounds,
        FastRotate,
        SlowRotate
    );

    let has = |name| Kernel::by_name(name).is_ok();
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..1000 {
        let block: [u8; 128] = core::array::from_fn(|_| random.u8(..));
        let (b, s) = (core::array::from_fn(|_| random.u64(..)), core::array::from_fn(|_| random.u32(..)));
        // SAFETY: this machine has the instruction set; a block has at most 128 bytes.
        unsafe {
            if has("x86_64/avx2") {
                assert!(all_equal(by_avx2::<avx2::U64x4>(&b, block.as_ptr())));
                assert!(all_equal(by_avx2::<avx2::U32x4>(&s, block.as_ptr())));
            }
            if has("x86_64/avx512") {
                assert!(all_equal(by_avx512::<avx512::U64x4>(&b, block.as_ptr())));
                assert!(all_equal(by_avx512::<avx512::U32x4>(&s, block.as_ptr())));
            }
        }
    }
}
