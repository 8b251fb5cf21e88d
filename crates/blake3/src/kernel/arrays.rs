//! Kernels over arrays instead of vector registers. With them, every machine, also Miri's, can run
//! the generic bodies and the dispatch over them.

use super::define::{kernel, wide};
use super::table::Tuning;
use crate::generic::columns::{LoadBetween, Rounds};
use crate::spec::SCHEDULE;
use bulla_simd::arrays::Array;
use bulla_simd::cpu::Isa;
use bulla_simd::{Pair, Vector, half_round};

impl<const N: usize> Rounds for Array<u32, N> {
    type Messages = LoadBetween<Self>;

    /// A loop, and one function for all kernels: seven rounds of arrays in each of them would be
    /// megabytes of code.
    #[inline(never)]
    unsafe fn rounds(v: &mut [Self; 16], m: &[Self; 16]) {
        for schedule in &SCHEDULE {
            // SAFETY: arrays need no instruction set.
            unsafe {
                half_round!(v, m, schedule, 0, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
                half_round!(v, m, schedule, 8, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
            }
        }
    }
}

/// The vectors of the kernels for architectures without vector types. Miri would take four times as
/// long for their rounds.
#[cfg(not(miri))]
type Narrow = bulla_simd::lanes::U32x4;
#[cfg(miri)]
type Narrow = Array<u32, 4>;

wide!(narrow_wide, inline, Narrow);
wide!(middle_wide, inline, Array<u32, 8>);
wide!(wide_wide, inline, Array<u32, 16>);

// The shapes are those of the kernels for SSE4.1, AVX2, and both kinds of AVX-512.

kernel!(
    NARROW, narrow_kernel, narrow_wide, Isa::Portable, Tuning::Only, inline,
    Narrow, Narrow,
    up to 2 => rows::<Pair<Array<u32, 4>>>,
);

kernel!(
    MIDDLE, middle_kernel, middle_wide, Isa::Portable, Tuning::Only, inline,
    Array<u32, 8>, Array<u32, 4>,
    up to 2 => rows::<Array<u32, 8>>,
    up to 4 => rows::<Pair<Array<u32, 8>>>,
);

kernel!(
    WIDE_ROWS, wide_rows_kernel, wide_wide, Isa::Portable, Tuning::Only, inline,
    Array<u32, 16>, Array<u32, 4>,
    up to 2 => rows::<Array<u32, 8>>,
    up to 4 => rows::<Array<u32, 16>>,
    up to 8 => rows::<Pair<Array<u32, 16>>>,
);

kernel!(
    WIDE_COLUMNS, wide_columns_kernel, wide_wide, Isa::Portable, Tuning::Only, inline,
    Array<u32, 16>, Array<u32, 4>,
    up to 2 => rows::<Array<u32, 8>>,
    up to 4 => rows::<Pair<Array<u32, 8>>>,
    up to 8 => columns::<Array<u32, 8>>,
);

/// Tests every path of the generic bodies, and of the tree above them, over arrays against the
/// portable kernel. Miri runs these tests too, with fewer sizes: the comparisons show wrong
/// results, and Miri shows invalid reads and writes that no result shows.
mod tests {
    use super::{MIDDLE, NARROW, WIDE_COLUMNS, WIDE_ROWS};
    use crate::hazmat::Mode;
    use crate::kernel::{Functions, Kernel, portable::PORTABLE};
    use crate::{BLOCK_LEN, CHUNK_LEN, Hash, Hasher, OutputReader};
    use std::{vec, vec::Vec};

    const KEY: [u8; 32] = *b"a key of the tests of the arrays";

    /// The kernels, and the number of chunks in their groups. Miri runs two of them, which together
    /// have all forms and widths.
    const KERNELS: &[(&Functions, usize)] = if cfg!(miri) {
        &[(&NARROW, 4), (&WIDE_COLUMNS, 16)]
    } else {
        &[(&NARROW, 4), (&MIDDLE, 8), (&WIDE_ROWS, 16), (&WIDE_COLUMNS, 16)]
    };

    fn input(len: usize) -> Vec<u8> {
        (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
    }

    /// The sizes `in_miri` under Miri, and `all` in other builds: Miri takes a hundred thousand
    /// times as long.
    fn sizes(in_miri: &[usize], all: impl Iterator<Item = usize>) -> Vec<usize> {
        if cfg!(miri) { in_miri.to_vec() } else { all.collect() }
    }

    fn by(functions: &'static Functions) -> Kernel {
        Kernel(functions)
    }

    /// Compares with the portable kernel; under Miri, only for short inputs. There, that kernel
    /// takes as long as all the others, and other builds compare the results of every size.
    fn check(ours: Hash, mode: Mode<'_>, data: &[u8]) {
        if !cfg!(miri) || data.len() <= 2 * BLOCK_LEN {
            assert_eq!(ours, by(&PORTABLE).hash_in(mode, data), "{} bytes", data.len());
        }
    }

    #[test]
    fn one_chunk_of_every_kind() {
        let data = input(CHUNK_LEN);
        for len in sizes(&[0, 1, 2, 5, 10, 17, 40, 63, 64, 65, 200], 0..=CHUNK_LEN) {
            let data = &data[..len];
            check(by(&NARROW).hash_in(Mode::KeyedHash(&KEY), data), Mode::KeyedHash(&KEY), data);
        }
    }

    /// Chunks one after the other, whole, ragged, in groups, and groups that merge.
    #[test]
    fn trees_of_every_shape() {
        let data = input(100 * CHUNK_LEN);
        for &(functions, lanes) in KERNELS {
            let group = lanes * CHUNK_LEN;
            let chunks = |n: usize, more: usize| n * CHUNK_LEN + more;
            let of_narrow = [chunks(1, 1), chunks(2, 0), chunks(2, 10), group, 2 * group + 1];
            let of_wide = [chunks(2, 700), chunks(4, 10)];
            let in_miri: &[usize] = if lanes == 4 { &of_narrow } else { &of_wide };
            let all =
                (1..=lanes + 3).flat_map(|n| [chunks(n, 0), chunks(n, 1), chunks(n, 130), chunks(n, 1000)]);
            for len in sizes(in_miri, all.chain([2 * group, 2 * group + 70, 4 * group, 6 * group + 3])) {
                let data = &data[..len];
                check(by(functions).hash_in(Mode::Hash, data), Mode::Hash, data);
            }
        }
    }

    /// Updates that fill the buffer, bypass it, and find it half full; then a copy, a saved state,
    /// and a reset.
    #[test]
    fn streams() {
        let data = input(40 * CHUNK_LEN);
        for pieces in [
            &[10, 1000, 14, 1, 4096][..],
            &[1, CHUNK_LEN, 3 * CHUNK_LEN, 20, 33, 65, 300],
            &[5 * CHUNK_LEN, 5],
            &[8 * CHUNK_LEN, 7 * CHUNK_LEN, 10 * CHUNK_LEN, 10],
        ]
        .into_iter()
        .skip(if cfg!(miri) { 1 } else { 0 })
        .take(if cfg!(miri) { 1 } else { 4 })
        {
            let (mut hasher, mut len) = (by(&NARROW).hasher(Mode::KeyedHash(&KEY)), 0);
            for piece in pieces {
                hasher.update(&data[len..len + piece]);
                len += piece;
            }
            let digest = hasher.finalize();
            check(digest, Mode::KeyedHash(&KEY), &data[..len]);
            assert_eq!(hasher.clone().finalize(), digest);
            let restored = Hasher::restore(&hasher.save()).expect("our own state");
            if !cfg!(miri) {
                assert_eq!(restored.finalize(), digest);
            }
            hasher.reset().update(&data[..2000]);
            check(hasher.finalize(), Mode::KeyedHash(&KEY), &data[..2000]);
        }
    }

    /// Inputs of one length, and of several: some lanes end before others, and some have no input
    /// of their own.
    #[test]
    fn many_inputs() {
        let data = input(20 * CHUNK_LEN);
        for &(functions, lanes) in KERNELS {
            let alike = sizes(
                if lanes == 4 { &[10, 64] } else { &[10] },
                [0, 1, 10, 63, 64, 65, 128, 500, 1024].into_iter(),
            );
            let mixed = [10, 150, 64, 0, 65, 1, 130, 20, 300, 64, 5, 63];
            let in_miri: &[usize] = if lanes == 4 { &[1, 2, 5] } else { &[3, 9] };
            for n in sizes(in_miri, 1..=20) {
                let mut inputs: Vec<Vec<&[u8]>> = alike.iter().map(|len| vec![&data[..*len]; n]).collect();
                inputs.push(
                    mixed.iter().cycle().take(n).enumerate().map(|(i, len)| &data[i..][..*len]).collect(),
                );
                if !cfg!(miri) || n == 5 {
                    // Trees of several chunks side by side, and one that is too long for that.
                    let lens = if cfg!(miri) {
                        [1030, 10, 2100, 64, 8300, 0]
                    } else {
                        [1030, 10, 2500, 64, 9000, 3072]
                    };
                    inputs.push(lens.iter().cycle().take(n).map(|len| &data[..*len]).collect());
                }
                for inputs in inputs {
                    let mut digests = vec![Hash::from_bytes([0; 32]); n];
                    by(functions).hash_many(&inputs, &mut digests);
                    for (digest, input) in digests.into_iter().zip(inputs) {
                        check(digest, Mode::Hash, input);
                    }
                }
            }
        }
    }

    /// Counters whose low words wrap within a group of lanes, for output and for chunks.
    #[test]
    fn counters_that_carry() {
        let data = input(3 * CHUNK_LEN);
        for &(functions, lanes) in KERNELS {
            for blocks in sizes(&[3], [1, 2, 3, lanes, lanes + 1, 3 * lanes + 2].into_iter()) {
                let [ours, theirs] = [functions, &PORTABLE].map(|functions| {
                    let mut reader: OutputReader = by(functions).hasher(Mode::KeyedHash(&KEY)).finalize_xof();
                    reader.set_position(((1 << 32) - 2) * 64 - 7);
                    let mut out = vec![0; 64 * blocks + 9];
                    reader.fill(&mut out);
                    out
                });
                assert_eq!(ours, theirs, "{lanes} lanes, {blocks} blocks");
            }
            for chunks in sizes(&[2], 2..4) {
                let [ours, theirs] = [functions, &PORTABLE].map(|functions| {
                    let mut hasher = by(functions).hasher(Mode::Hash);
                    hasher.offset = (1 << 32) - 4;
                    hasher.update(&data[..chunks * CHUNK_LEN - 100]).finalize_non_root()
                });
                assert_eq!(ours, theirs, "{lanes} lanes, {chunks} chunks");
            }
        }
    }

    #[cfg(feature = "bao")]
    #[test]
    fn encodings() {
        use crate::bao::{decode::Decoder, encode};
        use std::io::Read as _;

        let data = input(3 * CHUNK_LEN + 10);
        for len in sizes(&[10, 2 * CHUNK_LEN + 10], (0..data.len()).step_by(301)) {
            let (encoded, hash) = encode::encode(&data[..len]);
            let mut decoded = Vec::new();
            Decoder::new(&encoded[..], &hash).read_to_end(&mut decoded).expect("our own encoding");
            assert_eq!(decoded, data[..len]);
        }
    }
}
