//! The compact hasher: at every length, in any pieces, by every kernel, on threads.

use crate::support::{Beginnings, CONTEXT, input, is_near_chunk, modes, official, sample};
use bulla_blake3::hazmat::{HasherExt as _, Mode, hash_derive_key_context};
use bulla_blake3::{CompactHasher, Hasher, StateError, kernel};
use std::mem::MaybeUninit;

#[test]
fn every_length_by_every_kernel() {
    let context_key = hash_derive_key_context(CONTEXT);
    let all = input(40 << 10);
    let (mut official, mut room) = (Beginnings::of(&all), vec![0; all.len() + 61]);
    let (distance, step) = sample((70, 11), (2, 37));
    for kernel in kernel::runnable() {
        // The lengths around each multiple of 1024, and a sample of those between.
        let lengths = (0..=36 << 10).filter(|len| is_near_chunk(*len, distance) || len % step == 0);
        for len in lengths {
            let (name, mode) = modes(&context_key)[len % 3];
            // Another alignment at every length.
            let data = &mut room[len % 61..][..len];
            data.copy_from_slice(&all[..len]);
            let data = &*data;
            let theirs = official.hasher(name, len).finalize();
            let cut = len * (len % 7) / 7;
            let mut hasher = CompactHasher::new(mode);
            hasher.update_by(kernel, data);
            assert_eq!(hasher.finalize_by(kernel).as_bytes(), theirs.as_bytes(), "{kernel}, {len} bytes");
            assert_eq!(hasher.count(), len as u64);
            hasher.reset().update_by(kernel, &data[..cut]).update_by(kernel, &data[cut..]);
            assert_eq!(hasher.finalize_by(kernel).as_bytes(), theirs.as_bytes(), "{kernel}, {len} in two");
        }
    }
}

#[test]
fn pieces_of_every_size() {
    let data = input(3 << 20);
    let theirs = official("hash").update(&data).finalize();
    for piece in [1, 63, 64, 65, 1000, 1023, 1024, 1025, 3072, 5000, 11 << 10, 65_536, 100_000, 1 << 20] {
        let mut hasher = CompactHasher::new(Mode::Hash);
        for piece in data.chunks(piece) {
            hasher.update(piece);
        }
        assert_eq!(hasher.finalize().as_bytes(), theirs.as_bytes(), "pieces of {piece}");
    }
}

#[test]
fn growing_pieces_and_a_digest_after_each() {
    let data = input(2 << 20);
    let (mut hasher, mut theirs) = (CompactHasher::new(Mode::Hash), official("hash"));
    let (mut at, mut step) = (0, 1);
    while at < data.len() {
        let piece = &data[at..][..step.min(data.len() - at)];
        hasher.update(piece);
        theirs.update(piece);
        at += piece.len();
        step = step * 3 / 2 + 7;
        assert_eq!(hasher.finalize().as_bytes(), theirs.finalize().as_bytes(), "{at} bytes");
        let (mut ours, mut official) = ([0; 200], [0; 200]);
        let mut reader = hasher.finalize_xof();
        reader.set_position(77);
        reader.fill(&mut ours);
        let mut reader = theirs.finalize_xof();
        reader.set_position(77);
        reader.fill(&mut official);
        assert_eq!(ours, official, "output after {at} bytes");
    }
}

#[test]
fn threads_from_any_position() {
    let data = input(5 << 20);
    let kernel = kernel::active();
    for before in [0, 1, 64, 1024, 3000, 200 << 10, (1 << 20) + 5] {
        for len in [0, 100, 256 << 10, 300_000, 1 << 20, 4 << 20] {
            let mut hasher = CompactHasher::new(Mode::Hash);
            hasher
                .update(&data[..before])
                .update_rayon_by(kernel, &data[before..][..len.min(data.len() - before)]);
            let all = &data[..before + len.min(data.len() - before)];
            assert_eq!(hasher.finalize(), bulla_blake3::hash(all), "{before} bytes, then {len}");
        }
    }
}

#[test]
fn a_copy_of_the_bytes_is_another_hasher() {
    let data = input(70_000);
    let mut place = MaybeUninit::uninit();
    CompactHasher::init(&mut place, Mode::Hash).update(&data[..33_333]);
    let mut copy = MaybeUninit::<CompactHasher>::uninit();
    // SAFETY: both places have the size of a hasher, and the first one has a hasher.
    let (first, second) = unsafe {
        copy.as_mut_ptr().copy_from_nonoverlapping(place.as_ptr(), 1);
        (place.assume_init_mut(), copy.assume_init_mut())
    };
    first.update(&data[33_333..]);
    second.update(&data[..10]);
    assert_eq!(first.finalize(), bulla_blake3::hash(&data));
    assert_eq!(
        second.finalize(),
        *Hasher::new().update(&data[..33_333]).update(&data[..10]).finalize().as_bytes()
    );
}

#[test]
fn a_context_need_not_be_text() {
    let (mut raw, mut text) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let raw = CompactHasher::init_derive_key_raw(&mut raw, kernel::active(), CONTEXT.as_bytes());
    let key = hash_derive_key_context(CONTEXT);
    let text = CompactHasher::init(&mut text, Mode::DeriveKeyMaterial(&key));
    assert_eq!(raw.update(b"material").finalize(), text.update(b"material").finalize());
    let mut other = MaybeUninit::uninit();
    let other = CompactHasher::init_derive_key_raw(&mut other, kernel::active(), b"\xff\0");
    assert_ne!(other.update(b"material").finalize(), raw.finalize());
}

/// The lengths around each multiple of 1024, and a sample of those between.
fn lengths_of_states() -> impl Iterator<Item = usize> {
    let distance = sample(66, 2);
    (0..=35 << 10).filter(move |len| is_near_chunk(*len, distance) || len % 37 == 0)
}

#[test]
fn a_saved_state_goes_on_and_shows_no_cuts() {
    let context_key = hash_derive_key_context(CONTEXT);
    let data = input(70 << 10);
    let mut official = Beginnings::of(&data);
    for kernel in kernel::runnable() {
        // For each mode and size of pieces a hasher, and the whole pieces that it has.
        let mut in_pieces = modes(&context_key).map(|(_, mode)| {
            [64, 1000, 1024, 5 << 10, 16 << 10].map(|size| (size, CompactHasher::new(mode), 0))
        });
        for len in lengths_of_states() {
            let (name, mode) = modes(&context_key)[len % 3];
            let mut once = CompactHasher::new(mode);
            let state = once.update_by(kernel, &data[..len]).save();
            for (size, whole, pieces) in &mut in_pieces[len % 3] {
                while (*pieces + 1) * *size <= len {
                    whole.update_by(kernel, &data[*pieces * *size..][..*size]);
                    *pieces += 1;
                }
                let mut all = whole.clone();
                let rest = &data[*pieces * *size..len];
                if !rest.is_empty() {
                    all.update_by(kernel, rest);
                }
                assert_eq!(all.save(), state, "{kernel}, {len} bytes in pieces of {size}");
            }
            let mut restored = CompactHasher::restore(&state).expect("our own state");
            assert_eq!(restored.count(), len as u64);
            assert_eq!(restored.save(), state, "{kernel}, {len} bytes, saved again");
            assert_eq!(restored.finalize(), once.finalize(), "{kernel}, {len} bytes, at once");
            let more = len + 1 + len % 3000;
            restored.update(&data[len..more]);
            let theirs = official.hasher(name, len).clone().update(&data[len..more]).finalize();
            assert_eq!(restored.finalize().as_bytes(), theirs.as_bytes(), "{kernel}, {len} of {more} bytes");
        }
    }
}

#[test]
fn a_compact_hasher_restores_the_state_of_the_other() {
    let data = input(40 << 10);
    let context_key = hash_derive_key_context(CONTEXT);
    let mut official = Beginnings::of(&data);
    for len in lengths_of_states() {
        let (name, mode) = modes(&context_key)[len % 3];
        let mut hasher = kernel::active().hasher(mode);
        let state = hasher.update(&data[..len]).save();
        let mut restored = CompactHasher::restore(&state).expect("a state of ours");
        assert_eq!(restored.save(), CompactHasher::new(mode).update(&data[..len]).save(), "{len} bytes");
        let theirs = official.hasher(name, len).clone().update(&data[len..len + 3000]).finalize();
        restored.update(&data[len..len + 3000]);
        assert_eq!(restored.finalize().as_bytes(), theirs.as_bytes(), "{len} bytes and 3000");
    }
    let mut hasher = Hasher::new();
    let part = hasher.set_input_offset(2048).update(&data[..2000]).save();
    assert_eq!(CompactHasher::restore(&part).err(), Some(StateError::Offset));
}

#[test]
fn a_compact_state_has_the_bytes_of_the_specification() {
    let data = input(7000);
    let value = |range: std::ops::Range<usize>| {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(range.start as u64).update(&data[range]).finalize_non_root()
    };
    let state = CompactHasher::new(Mode::Hash).update(&data[..6 * 1024]).save();
    assert_eq!(state[..16], [&b"bullab3s"[..], &[2, 0, 0, 0], &128_u32.to_le_bytes()].concat());
    assert_eq!(state[16..32], [0_u64.to_le_bytes(), 6144_u64.to_le_bytes()].concat());
    assert_eq!(state[64..], [value(0..4096), value(4096..6144)].concat());
    // The parent of these two may be the root.
    let state = CompactHasher::new(Mode::Hash).update(&data[..4096]).save();
    assert_eq!(state[64..], [value(0..2048), value(2048..4096)].concat());
    // One block, and so no chaining value before it.
    let state = CompactHasher::new(Mode::Hash).update(&data[..64]).save();
    assert_eq!(state[64..], data[..64]);
    let state = CompactHasher::new(Mode::Hash).update(&data[..65]).save();
    assert_eq!((state.len(), &state[96..]), (97, &data[64..65]));
}

#[test]
fn a_damaged_compact_state_is_refused() {
    for len in [0, 64, 700, 1024, 2048, 5000, 6144] {
        let state = CompactHasher::new(Mode::Hash).update(&input(len)).save();
        for cut in 0..state.len() {
            assert_eq!(CompactHasher::restore(&state[..cut]).err(), Some(StateError::Length), "cut to {cut}");
        }
        let changed = |at: usize, to: u8| {
            let mut state = state.to_vec();
            state[at] = to;
            CompactHasher::restore(&state).err()
        };
        assert_eq!(changed(0, b'x'), Some(StateError::Magic));
        assert_eq!(changed(8, 3), Some(StateError::Version(3)));
        assert_eq!(changed(17, 4), Some(StateError::Offset));
        assert_eq!(changed(32, 0), Some(StateError::Key));
        assert_eq!(Hasher::restore(&state).err(), Some(StateError::Version(2)));
    }
}
