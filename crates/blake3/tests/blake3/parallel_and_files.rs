//! Threads, memory maps and files.

use crate::random::Random;
use crate::support::{Beginnings, input};
use bulla_blake3::Hasher;
use std::fs::File;
use std::io::Write;

#[test]
fn threads_give_the_same_digest_after_any_beginning() {
    let data = input(9 << 20);
    let mut random = Random::new(5);
    let mut rounds: Vec<_> = (0..60)
        .map(|round| {
            let before = random.length(40_000 + 1000 * round);
            (before, random.below((data.len() - before) as u64) as usize)
        })
        .collect();
    rounds.sort_by_key(|(before, len)| before + len);
    let mut official = Beginnings::of(&data);
    for (before, len) in rounds {
        let (head, rest) = data[..before + len].split_at(before);
        let (middle, tail) = rest.split_at(rest.len() - random.length(rest.len()) / 8);
        let mut hasher = Hasher::new();
        hasher.update(head).update_rayon(middle).update(tail);
        let digest = *official.hasher("hash", before + len).finalize().as_bytes();
        assert_eq!(*hasher.finalize().as_bytes(), digest, "{before} and {len} bytes");
        assert_eq!(hasher.count(), (before + len) as u64);
        assert_eq!(Hasher::restore(&hasher.save()).expect("our own state").finalize(), hasher.finalize());
    }
}

#[test]
fn every_power_of_two_may_be_the_root() {
    let data = input(8 << 20);
    let mut official = Beginnings::of(&data);
    for shift in 15..=23 {
        for odd in [-1, 0, 1] {
            let input = &data[..((1 << shift) + odd as isize).min(data.len() as isize) as usize];
            let digest = *official.hasher("hash", input.len()).finalize().as_bytes();
            assert_eq!(
                *Hasher::new().update_rayon(input).finalize().as_bytes(),
                digest,
                "{} bytes",
                input.len()
            );
        }
    }
}

#[test]
fn files_are_mapped_or_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for len in [0, 1, 1000, 16_384, 196_607, 196_608, 196_609, 1 << 20, 3_000_001] {
        let path = folder.path().join(len.to_string());
        let data = input(len);
        File::create(&path).and_then(|mut file| file.write_all(&data)).expect("a written file");
        let digest = bulla_blake3::hash(&data);
        let mut hasher = Hasher::new();
        hasher.update_mmap(&path).expect("a file");
        assert_eq!(hasher.finalize(), digest, "{len} bytes, mapped");
        let mut hasher = Hasher::new();
        hasher.update_mmap_rayon(&path).expect("a file");
        assert_eq!(hasher.finalize(), digest, "{len} bytes, mapped, on threads");
    }
    let missing = Hasher::new().update_mmap(folder.path().join("missing")).err();
    assert_eq!(missing.map(|error| error.kind()), Some(std::io::ErrorKind::NotFound));
    assert!(Hasher::new().update_mmap(folder.path()).is_err(), "a folder is no file");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pseudo_file_without_a_length_is_read() {
    let mut hasher = Hasher::new();
    hasher.update_mmap("/proc/self/status").expect("Linux has it");
    assert!(hasher.count() > 0);
}
