//! The compact hasher: at every length, in any pieces, by every kernel, on threads.

use crate::support::{CONTEXT, input, modes, official};
use bulla_blake3::hazmat::{Mode, hash_derive_key_context};
use bulla_blake3::{CompactHasher, Hasher, kernel};
use std::mem::MaybeUninit;

#[test]
fn every_length_by_every_kernel() {
    let context_key = hash_derive_key_context(CONTEXT);
    let data = input(40 << 10);
    for kernel in kernel::runnable() {
        // The lengths around each multiple of 1024, and a sample of those between.
        let lengths = (0..=36 << 10).filter(|len| (len + 70) % 1024 <= 140 || len % 11 == 0);
        for len in lengths {
            let (name, mode) = modes(&context_key)[len % 3];
            let data = &data[len % 61..][..len];
            let theirs = official(name).update(data).finalize();
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
