//! Threads, memory maps and files.

use crate::support::{Beginnings, KEY, Random, input, sample};
use bulla_blake3::hazmat::{HasherExt as _, Mode};
use bulla_blake3::{CompactHasher, Hasher, kernel};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

#[test]
fn threads_give_the_same_digest_after_any_beginning() {
    let data = input(9 << 20);
    let mut random = Random::new(5);
    let mut rounds: Vec<_> = (0..sample(60, 12))
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

/// Pools of one thread, of few, of no power of two, and of more than there are processors.
fn pools() -> [ThreadPool; 5] {
    let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    [1, 2, 3, 8, 16].map(pool)
}

/// Lengths around those where threads begin, where the leaf of a pool doubles, and every mixture of
/// subtrees from the smallest leaf on.
fn lengths() -> Vec<usize> {
    const KIB: usize = 1024;
    let leaf_doubles = [2, 3, 8].map(|threads| 4 * threads * 16 * KIB);
    let mixtures = (3..=20).map(|leaves| leaves * 16 * KIB);
    let around = |border: usize| [border - KIB, border - 1, border, border + 1, border + KIB + 1];
    mixtures.chain(leaf_doubles).flat_map(around).collect()
}

#[test]
fn every_pool_hashes_alike_at_every_border() {
    let lengths = lengths();
    let data = input(lengths.iter().max().expect("lengths") + 100_000);
    let begins = [0, 1, 1024, 1025, 5 * 1024, 16 * 1024, 33 * 1024 + 7, 96 * 1024];
    let mut digests = BTreeMap::new();
    for total in begins.iter().flat_map(|before| lengths.iter().map(move |len| before + len)) {
        digests.insert(total, None);
    }
    let mut official = Beginnings::of(&data);
    for (total, digest) in &mut digests {
        *digest = Some(*official.hasher("keyed", *total).finalize().as_bytes());
    }
    let kernel = kernel::active();
    for pool in pools() {
        for (before, len) in begins.iter().flat_map(|before| lengths.iter().map(move |len| (before, len))) {
            let (head, tail) = data[..before + len].split_at(*before);
            let mut hasher = Hasher::new_keyed(&KEY);
            let mut compact = CompactHasher::new(Mode::KeyedHash(&KEY));
            pool.install(|| {
                hasher.update(head).update_rayon(tail);
                compact.update(head).update_rayon_by(kernel, tail);
            });
            let mut shared = Hasher::new_keyed(&KEY);
            shared.update(head).update_in_pool(&pool, tail);
            let mut compact_shared = CompactHasher::new(Mode::KeyedHash(&KEY));
            compact_shared.update(head).update_in_pool_by(kernel, &pool, tail);
            let threads = pool.current_num_threads();
            let what = || format!("{before} bytes, then {len} on {threads} threads");
            let digest = digests[&(before + len)];
            assert_eq!(Some(hasher.finalize().into()), digest, "{}", what());
            assert_eq!(Some(compact.finalize().into()), digest, "{}, in a compact hasher", what());
            assert_eq!(Some(shared.finalize().into()), digest, "{}, from outside of the pool", what());
            let shared = Some(compact_shared.finalize().into());
            assert_eq!(shared, digest, "{}, in a compact hasher, from outside", what());
        }
    }
}

/// The threads of the pool wait for something else: the caller hashes all, and waits for nobody.
#[test]
fn a_busy_pool_holds_nobody_up() {
    let data = input(1 << 20);
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = std::sync::Arc::new(std::sync::Mutex::new(ended));
    for _ in 0..2 {
        let ended = ended.clone();
        pool.spawn(move || _ = ended.lock().expect("no panic").recv());
    }
    let mut hasher = Hasher::new();
    hasher.update_in_pool(&pool, &data);
    assert_eq!(hasher.finalize(), bulla_blake3::hash(&data));
    drop(end);
}

#[test]
fn many_callers_share_one_pool() {
    let data = input(1 << 20);
    let digest = bulla_blake3::hash(&data);
    let pool = ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(Hasher::new().update_in_pool(&pool, &data).finalize(), digest);
                }
            });
        }
    });
}

#[test]
fn every_pool_gives_the_same_subtree() {
    let data = input(1 << 20);
    for pool in pools() {
        for len in [64 << 10, (96 << 10) + 5, 300_000, 1 << 20] {
            let (mut one, mut many) = (Hasher::new(), Hasher::new());
            one.set_input_offset(1 << 20).update(&data[..len]);
            pool.install(|| {
                many.set_input_offset(1 << 20).update(&data[..999]).update_rayon(&data[999..len])
            });
            assert_eq!(one.finalize_non_root(), many.finalize_non_root(), "{len} bytes");
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

/// Set in the process that `a_file_that_cannot_be_mapped_is_read` starts: the file to hash there.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const UNMAPPABLE: &str = "BULLA_TEST_UNMAPPABLE";

/// In a process that may have less memory than the file has bytes, so that the map fails.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_file_that_cannot_be_mapped_is_read() {
    if let Some(path) = std::env::var_os(UNMAPPABLE) {
        let file = File::open(&path).expect("the file");
        // SAFETY: nobody changes the file; the map is not read.
        assert!(unsafe { memmap2::Mmap::map(&file) }.is_err(), "the limit keeps it from being mapped");
        for hash in [Hasher::update_mmap, Hasher::update_mmap_rayon] {
            println!("{}", hash(&mut Hasher::new(), &path).expect("it is read").finalize());
        }
        return;
    }
    const LEN: u64 = 100 << 20;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("long");
    let mut file = File::create(&path).expect("a file");
    // The beginning differs from the end, the rest is a hole.
    file.write_all(b"the beginning").and_then(|()| file.set_len(LEN)).expect("a written file");
    let program = std::env::current_exe().expect("the path of this program");
    let run = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 98304 && exec \"$@\"", "sh"])
        .arg(program)
        .args(["--exact", "--nocapture", "parallel_and_files::a_file_that_cannot_be_mapped_is_read"])
        .env(UNMAPPABLE, &path)
        .output()
        .expect("a shell");
    let printed = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{printed}{}", String::from_utf8_lossy(&run.stderr));
    let digest = Hasher::new().update_reader(File::open(&path).expect("the file")).map(|h| h.finalize());
    let digest = digest.expect("it is read").to_hex();
    assert_eq!(printed.matches(&*digest).count(), 2, "{printed}");
}
