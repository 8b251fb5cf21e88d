//! The files that released versions of the library wrote, in `tests/released/VERSION`: this version
//! reads every one. Each folder is a link to `spec/released/VERSION/blake3`, so that the package
//! has the files. To write those of a new release, run the last test with
//! `BULLA_RELEASED_TO=FOLDER`.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{Cursor, Read},
    path::Path,
};

use bulla_blake3::{
    Hasher,
    bao::{GroupSize, decode, encode},
};

/// The input of all files: bytes 0, 1, ... 250, 0, 1, ...
fn input() -> Vec<u8> {
    (0..50_000_u32).map(|i| (i % 251) as u8).collect()
}

/// How much of the input the saved hashers have absorbed: many subtrees, and a part of a chunk.
const ABSORBED: usize = 23_456;

/// Where the slices begin, and how long they are.
const SLICE: (u64, u64) = (20_000, 3_000);

const KEY: &[u8; 32] = b"the key of the released hashers.";
const CONTEXT: &str = "bulla 2026-11-25 the released hashers";

/// The hashers of all modes, each with its name.
fn hashers() -> [(&'static str, Hasher); 3] {
    [("hash", Hasher::new()), ("keyed", Hasher::new_keyed(KEY)), ("derived", Hasher::new_derive_key(CONTEXT))]
}

/// The sizes of groups, each with its name.
fn groups() -> [(&'static str, GroupSize); 2] {
    [("chunk", GroupSize::CHUNK), ("16-chunks", GroupSize::from_chunk_log(4).expect("a size of groups"))]
}

/// Writes one file of each kind.
fn write(folder: &Path) {
    let input = input();
    let keep = |name: String, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("a file is written");
    for (mode, mut hasher) in hashers() {
        hasher.update(&input[..ABSORBED]);
        keep(format!("{mode}.state"), hasher.save().as_ref());
    }
    for (name, group) in groups() {
        let (outboard, _) = encode::outboard_with_group_size(&input, group);
        keep(format!("{name}.obao"), &outboard);
        let (start, len) = SLICE;
        let slices =
            encode::SliceExtractor::new_outboard(Cursor::new(&input), Cursor::new(outboard), start, len);
        let mut slice = Vec::new();
        slices.with_group_size(group).read_to_end(&mut slice).expect("a slice is taken");
        keep(format!("{name}.slice"), &slice);
    }
    keep("encoded.bao".to_owned(), &encode::encode(&input[..5_000]).0);
}

/// Reads every file.
fn read(folder: &Path) {
    let input = input();
    let kept = |name: String| fs::read(folder.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (mode, mut hasher) in hashers() {
        let mut restored = Hasher::restore(&kept(format!("{mode}.state"))).expect("a state is restored");
        restored.update(&input[ABSORBED..]);
        assert_eq!(restored.finalize(), hasher.update(&input).finalize(), "{mode}");
    }
    let hash = bulla_blake3::hash(&input);
    for (name, group) in groups() {
        let mut decoded = Vec::new();
        decode::Decoder::new_outboard(&input[..], Cursor::new(kept(format!("{name}.obao"))), &hash)
            .with_group_size(group)
            .read_to_end(&mut decoded)
            .expect("an outboard encoding is decoded");
        assert_eq!(decoded, input, "{name}");
        let (start, len) = SLICE;
        let mut slice = Vec::new();
        decode::SliceDecoder::new(Cursor::new(kept(format!("{name}.slice"))), &hash, start, len)
            .with_group_size(group)
            .read_to_end(&mut slice)
            .expect("a slice is decoded");
        assert_eq!(slice, &input[start as usize..(start + len) as usize], "{name}");
    }
    let (part, hash) = (&input[..5_000], bulla_blake3::hash(&input[..5_000]));
    assert_eq!(decode::decode(kept("encoded.bao".to_owned()), &hash).expect("an encoding is decoded"), part);
}

#[test]
fn files_of_every_release_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let releases = versions(&root.join("tests/released"));
    assert!(!releases.is_empty(), "tests/released has no release");
    for release in &releases {
        read(&root.join("tests/released").join(release));
    }
    // The package is without it.
    let all = root.join("../../spec/released");
    if all.exists() {
        assert_eq!(releases, versions(&all), "tests/released has a link for each release");
    }
}

/// The names of the folders in a folder, in their order.
fn versions(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).expect("the folder of the releases is read");
    let folders = entries.map(|entry| entry.expect("an entry")).filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

#[test]
fn the_files_of_this_version_are_read() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = env::var_os("BULLA_RELEASED_TO").map_or(temporary.path().to_owned(), Into::into);
    fs::create_dir_all(&folder).expect("the folder is made");
    write(&folder);
    read(&folder);
}
