//! Streaming, saved states, many inputs and extended output, by every kernel, with random shapes
//! from fixed seeds.

use crate::support::{CONTEXT, KEY, Random, input, modes, official, sample};
use bulla_blake3::hazmat::{Mode, hash_derive_key_context};
use bulla_blake3::kernel::{self, Kernel};
use bulla_blake3::{DeriveKey, Hash, Hasher, StateError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};

/// Runs a check by every kernel that this machine has, one after the other.
fn by_every_kernel(check: impl Fn(Kernel)) {
    kernel::runnable().for_each(check);
}

#[test]
fn random_cuts_do_not_matter() {
    let context_key = hash_derive_key_context(CONTEXT);
    let data = input(1 << 20);
    by_every_kernel(|kernel| {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let data = &data[..random.length(data.len())];
            // Some twenty updates or more of any size, but not millions.
            let most = 1 + data.len() / 100 + random.length(data.len() / 5);
            for (name, mode) in modes(&context_key) {
                let mut hasher = kernel.hasher(mode);
                let mut rest = data;
                while !rest.is_empty() {
                    let (now, later) = rest.split_at((1 + random.length(most)).min(rest.len()));
                    hasher.update(now);
                    rest = later;
                    if random.below(30) == 0 {
                        let so_far = &data[..data.len() - rest.len()];
                        assert_eq!(
                            hasher.finalize(),
                            kernel.hash_in(mode, so_far),
                            "{kernel}, {name}, on the way"
                        );
                    }
                }
                let theirs = official(name).update(data).finalize();
                assert_eq!(
                    hasher.finalize().as_bytes(),
                    theirs.as_bytes(),
                    "{kernel}, {name}, {}",
                    data.len()
                );
            }
        }
    });
}

#[test]
fn a_clone_and_a_reset_hasher_are_as_good_as_new() {
    let data = input(100_000);
    by_every_kernel(|kernel| {
        let mut hasher = kernel.hasher(Mode::KeyedHash(&KEY));
        for len in [0, 1, 64, 1023, 1024, 1025, 8192, 16_384, 16_385, 50_000, 100_000] {
            hasher.update(&data[..len]);
            let mut copy = hasher.clone();
            copy.update(b"more");
            hasher.update(b"more");
            assert_eq!(copy.finalize(), hasher.finalize(), "{kernel}, {len}");
            let whole = [&data[..len], b"more"].concat();
            assert_eq!(hasher.finalize(), kernel.hash_in(Mode::KeyedHash(&KEY), &whole), "{kernel}, {len}");
            hasher.reset();
            assert_eq!(hasher.count(), 0);
            assert_eq!(hasher.finalize(), kernel.hash_in(Mode::KeyedHash(&KEY), b""), "{kernel}, {len}");
        }
    });
}

#[test]
fn a_restored_state_goes_on_as_if_nothing_had_happened() {
    let context_key = hash_derive_key_context(CONTEXT);
    let data = input(2 << 20);
    by_every_kernel(|kernel| {
        let mut random = Random::new(2);
        for round in 0..sample(400, 60) {
            let len = random.length(data.len());
            // Every other state at a chunk boundary: there the format has a case of its own.
            let at = random.below(len as u64 + 1) as usize;
            let at = if round % 2 == 0 { at / 1024 * 1024 } else { at };
            let (name, mode) = modes(&context_key)[round % 3];
            let mut saved = kernel.hasher(mode);
            for piece in data[..at].chunks(500 + random.length(40_000)) {
                saved.update(piece);
            }
            let state = saved.save();
            let mut once = kernel.hasher(mode);
            once.update(&data[..at]);
            assert_eq!(state, once.save(), "{kernel}, {name}: the cuts show in the state of {at} bytes");
            let mut restored = Hasher::restore(&state).expect("our own state");
            assert_eq!(restored.count(), at as u64);
            assert_eq!(restored.finalize(), saved.finalize(), "{kernel}, {name}, {at} bytes, at once");
            assert_eq!(restored.save(), state, "{kernel}, {name}, {at} bytes, saved again");
            for piece in data[at..len].chunks(500 + random.length(40_000)) {
                restored.update(piece);
            }
            let whole = kernel.hash_in(mode, &data[..len]);
            assert_eq!(restored.finalize(), whole, "{kernel}, {name}, {at} of {len} bytes");
        }
    });
}

#[test]
fn a_damaged_state_is_refused() {
    let mut hasher = Hasher::new();
    hasher.update(&input(5000));
    let state = hasher.save();
    for len in 0..state.len() {
        assert_eq!(Hasher::restore(&state[..len]).err(), Some(StateError::Length), "cut to {len}");
    }
    let longer = [&state[..], &[0]].concat();
    assert_eq!(Hasher::restore(&longer).err(), Some(StateError::Length));
    let changed = |at: usize, to: u8| {
        let mut state = state.to_vec();
        state[at] = to;
        Hasher::restore(&state).err()
    };
    assert_eq!(changed(0, b'x'), Some(StateError::Magic));
    assert_eq!(changed(8, 2), Some(StateError::Version(2)));
    assert_eq!(changed(9, 3), Some(StateError::Mode(3)));
    assert_eq!(changed(10, 1), Some(StateError::Reserved));
    assert_eq!(changed(11, 1), Some(StateError::Reserved));
    assert_eq!(changed(12, 1), Some(StateError::Length));
    assert_eq!(changed(16, 1), Some(StateError::Offset));
    assert_eq!(changed(17, 4), Some(StateError::Offset), "5000 bytes do not fit a subtree at 1024");
    assert_eq!(changed(31, 255), Some(StateError::Length), "a count that does not fit the length");
    assert_eq!(changed(32, 0), Some(StateError::Key));
}

#[test]
fn a_state_has_the_bytes_of_the_specification() {
    let mut hasher = Hasher::new_keyed(&KEY);
    hasher.update(&input(3 * 1024 + 5));
    let state = hasher.save();
    assert_eq!(&state[..12], b"bullab3s\x01\x01\0\0");
    assert_eq!(state[12..16], (64u32 + 2 * 32 + 5).to_le_bytes());
    assert_eq!(state[16..32], [[0; 8], (3 * 1024 + 5u64).to_le_bytes()].concat());
    assert_eq!(state[32..64], KEY);
    assert_eq!(state[128..], input(3 * 1024 + 5)[3072..]);
    assert_eq!(state.len(), 133);
}

#[test]
fn many_inputs_are_hashed_as_each_alone() {
    let data = input(300_000);
    let derive = DeriveKey::new(CONTEXT);
    let mut random = Random::new(3);
    for round in 0..300 {
        let n = random.below(150) as usize;
        let most = [64, 1024, 1025, 9000, 40_000][round % 5];
        let inputs: Vec<&[u8]> = (0..n)
            .map(|_| {
                let len = random.length(most);
                let at = random.below((data.len() - len) as u64) as usize;
                &data[at..at + len]
            })
            .collect();
        let mut digests = vec![Hash::from_bytes([0; 32]); n];
        bulla_blake3::hash_many(&inputs, &mut digests);
        for (digest, input) in digests.iter().zip(&inputs) {
            assert_eq!(digest.as_bytes(), blake3::hash(input).as_bytes(), "{} bytes among {n}", input.len());
        }
        bulla_blake3::keyed_hash_many(&KEY, &inputs, &mut digests);
        for (digest, input) in digests.iter().zip(&inputs) {
            assert_eq!(digest.as_bytes(), blake3::keyed_hash(&KEY, input).as_bytes());
        }
        derive.derive_many(&inputs, &mut digests);
        for (digest, input) in digests.iter().zip(&inputs) {
            assert_eq!(digest.as_bytes(), &blake3::derive_key(CONTEXT, input));
        }
    }
}

#[test]
fn every_length_beside_every_other() {
    let data = input(4096);
    by_every_kernel(|kernel| {
        for len in (0..=3100).filter(|len| len % sample(1, 5) == 0 || (len + 1) % 64 <= 2) {
            // Neighbors of other lengths, longer and shorter, before and behind.
            let lens =
                [len, 0, 3100 - len, 1024, len / 2, 1, 2048, len, 63, 64, 65, 1025, len, 900, 17, 3000, len];
            let inputs = lens.map(|len| &data[len % 13..][..len]);
            let mut digests = [Hash::from_bytes([0; 32]); 17];
            kernel.hash_many(&inputs, &mut digests);
            for (digest, input) in digests.iter().zip(inputs) {
                assert_eq!(*digest, kernel.hash(input), "{kernel}: {} bytes beside {len}", input.len());
            }
        }
    });
}

#[test]
fn output_is_the_same_from_any_position_in_any_pieces() {
    let context_key = hash_derive_key_context(CONTEXT);
    let data = input(70_000);
    by_every_kernel(|kernel| {
        let mut random = Random::new(4);
        for len in [0, 1, 64, 65, 1024, 1025, 4096, 70_000] {
            for (name, mode) in modes(&context_key) {
                let mut whole = vec![0; 20_000];
                official(name).update(&data[..len]).finalize_xof().fill(&mut whole);
                let mut hasher = kernel.hasher(mode);
                let mut reader = hasher.update(&data[..len]).finalize_xof();
                for _ in 0..150 {
                    let at = random.length(whole.len());
                    let mut piece = vec![0; random.length(whole.len() - at)];
                    reader.set_position(at as u64);
                    reader.fill(&mut piece);
                    assert_eq!(piece, whole[at..][..piece.len()], "{kernel}, {name}, {len}: {at}");
                    assert_eq!(reader.position(), (at + piece.len()) as u64);
                }
            }
        }
    });
}

#[test]
fn counters_carry_into_their_high_word() {
    by_every_kernel(|kernel| {
        // Output blocks: the counter passes 2^32 inside one call of the widest kernel, and at its
        // edges.
        let mut hasher = kernel.hasher(Mode::Hash);
        let mut ours = hasher.update(b"far output").finalize_xof();
        let mut theirs = blake3::Hasher::new().update(b"far output").finalize_xof();
        for blocks_before in 0..20u64 {
            let position = ((1 << 32) - blocks_before) * 64 - 7;
            let (mut a, mut b) = ([0; 3000], [0; 3000]);
            ours.set_position(position);
            theirs.set_position(position);
            ours.fill(&mut a);
            theirs.fill(&mut b);
            assert_eq!(a, b, "{kernel}: output from {position}");
        }
        // Past the last position that the specification has: the next blocks follow, in calls of
        // any size.
        for (before, first) in [(1, 1), (1, 3000), (64, 700), (65, 64), (1000, 2), (3000, 3000)] {
            let (mut a, mut b) = ([0; 6000], [0; 6000]);
            ours.set_position(u64::MAX - before);
            theirs.set_position(u64::MAX - before);
            for reader in [0..first, first..first + 90, first + 90..6000] {
                ours.fill(&mut a[reader.clone()]);
                theirs.fill(&mut b[reader]);
            }
            assert_eq!(a, b, "{kernel}: output past the end from {before} before");
            assert_eq!(ours.position(), 5999 - before);
        }
        // Chunks: subtrees just before and at 2^32 chunks, and far beyond.
        let data = input(64 * 1024);
        for chunk in [(1u64 << 32) - 64, 1 << 32, (1 << 32) + 64, (1 << 40) + 64, (1 << 54) - 64] {
            for len in [1, 1024, 2048, 3000, 16 * 1024, 33 * 1024, 64 * 1024] {
                use blake3::hazmat::HasherExt as _;
                use bulla_blake3::hazmat::HasherExt as _;
                let mut ours = kernel.hasher(Mode::Hash);
                ours.set_input_offset(chunk * 1024).update(&data[..len]);
                let mut theirs = blake3::Hasher::new();
                theirs.set_input_offset(chunk * 1024).update(&data[..len]);
                let (ours, theirs) = (ours.finalize_non_root(), theirs.finalize_non_root());
                assert_eq!(ours, theirs, "{kernel}: {len} bytes at chunk {chunk}");
            }
        }
    });
}

#[test]
fn readers_and_writers() {
    let data = input(200_000);
    let digest = bulla_blake3::hash(&data);
    // Around the number of bytes that are read at a time, 64 KiB.
    for len in [0, 1, 65_535, 65_536, 65_537, 131_072, data.len()] {
        let mut hasher = Hasher::new();
        hasher
            .update_reader(Interrupting { rest: &data[..len], ..Interrupting::default() })
            .expect("interruptions are no errors");
        assert_eq!(hasher.finalize(), bulla_blake3::hash(&data[..len]), "{len}");
    }
    let mut hasher = Hasher::new();
    hasher.write_all(&data).expect("a hasher takes everything");
    assert_eq!(hasher.finalize(), digest);

    for len in [5000, 100_000] {
        let mut hasher = Hasher::new();
        let error = hasher.update_reader((&data[..len]).chain(Failing)).expect_err("the reader fails");
        assert_eq!(error.to_string(), "the disk failed");
        assert_eq!(hasher.finalize(), bulla_blake3::hash(&data[..len]), "input before an error stays hashed");
    }

    let mut reader = Hasher::new().finalize_xof();
    reader.seek(SeekFrom::Start(10)).expect("forwards");
    assert_eq!(reader.seek(SeekFrom::Current(-4)).expect("backwards"), 6);
    assert!(reader.seek(SeekFrom::Current(-7)).is_err(), "before the start");
    assert!(reader.seek(SeekFrom::End(0)).is_err(), "there is no end");
    let mut bytes = [0; 5];
    reader.read_exact(&mut bytes).expect("output never ends");
    assert_eq!(bytes, Hasher::new().finalize().as_bytes()[6..11]);
}

/// Gives at most 5000 bytes at a time, and is interrupted before each of them. Its end is read
/// once, as on a terminal.
#[derive(Default)]
struct Interrupting<'a> {
    rest: &'a [u8],
    interrupted: bool,
    ended: bool,
}

impl Read for Interrupting<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(ErrorKind::Interrupted.into());
        }
        assert!(!self.ended, "it was read again after its end");
        self.ended = self.rest.is_empty();
        let len = out.len().min(5000);
        self.rest.read(&mut out[..len])
    }
}

/// A reader that always fails.
struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the disk failed"))
    }
}
