//! The bytes of encodings.

use super::{Reference, group, lengths, official};
use crate::support::{Random, input, sample};
use bulla_blake3::bao::encode::{
    Encoder, encode, encode_with_group_size, encoded_size, outboard, outboard_size, outboard_with_group_size,
};
use bulla_blake3::bao::{GroupSize, decode::decode};
use bulla_blake3::kernel;
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom, Write};

#[test]
fn are_those_of_the_bao_crate_at_every_length_to_20_chunks() {
    let data = input(20 * 1024 + 1);
    for len in 0..=data.len() {
        let data = &data[..len];
        let ((combined, hash), (tree, _)) = (encode(data), outboard(data));
        assert_eq!(hash, bulla_blake3::hash(data), "{len} bytes");
        assert!((combined.clone(), official(&hash)) == bao::encode::encode(data), "{len} bytes");
        assert!((tree, official(&hash)) == bao::encode::outboard(data), "{len} bytes, outboard");
        assert!(decode(&combined, &hash).expect("our own encoding") == data, "{len} bytes, decoded");
    }
}

fn large_lengths() -> impl Iterator<Item = usize> {
    [3 << 20, (4 << 20) - 1023, (8 << 20) + 1, 9 << 20].into_iter().take(sample(4, 1))
}

#[test]
fn are_those_of_the_bao_crate_at_larger_lengths() {
    let data = input(9 << 20);
    for len in lengths().chain(large_lengths()) {
        let data = &data[..len];
        let ((combined, hash), (tree, _)) = (encode(data), outboard(data));
        assert!((combined.clone(), official(&hash)) == bao::encode::encode(data), "{len} bytes");
        assert!((tree, official(&hash)) == bao::encode::outboard(data), "{len} bytes, outboard");
        assert_eq!(bao::decode::decode(&combined, &official(&hash)).expect("our encoding"), data);
    }
}

#[test]
fn with_groups_are_those_of_the_naive_encoder() {
    let data = input(1030 * 1024 + 1);
    for len in lengths() {
        for chunk_log in 0..=8 {
            let (data, group) = (&data[..len], group(chunk_log));
            let reference = Reference::new(data, group);
            let (combined, hash) = encode_with_group_size(data, group);
            assert!(combined == reference.combined, "{len} bytes, {group:?}");
            assert_eq!(*hash.as_bytes(), reference.hash);
            assert!(outboard_with_group_size(data, group).0 == reference.outboard, "{len} bytes, {group:?}");
        }
    }
}

#[test]
fn have_the_sizes_that_are_said() {
    for len in lengths() {
        let data = input(len);
        assert_eq!(encode(&data).0.len() as u128, encoded_size(len as u64));
        assert_eq!(outboard(&data).0.len() as u128, outboard_size(len as u64));
        let group = group(4);
        assert_eq!(outboard_with_group_size(&data, group).0.len() as u128, group.outboard_size(len as u64));
    }
    assert_eq!(encoded_size(u64::MAX), bao::encode::encoded_size(u64::MAX));
    assert_eq!(GroupSize::from_chunk_log(8), Some(GroupSize::MAX));
    assert_eq!(GroupSize::from_chunk_log(9), None);
    assert_eq!(GroupSize::default(), GroupSize::CHUNK);
}

/// Runs this program again under each kernel: the process has one.
/// A digest over the encodings that the tests above compare with those of the bao crate. They are
/// decoded too.
fn digest_of_encodings() -> blake3::Hash {
    let data = input(9 << 20);
    let mut all = blake3::Hasher::new();
    for len in (0..=20 * 1024 + 1).chain(lengths()).chain(large_lengths()) {
        let data = &data[..len];
        let ((combined, hash), (tree, _)) = (encode(data), outboard(data));
        assert!(decode(&combined, &hash).expect("our own encoding") == data, "{len} bytes, decoded");
        all.update(&combined).update(&tree).update(hash.as_bytes());
    }
    all.finalize()
}

#[test]
fn are_the_same_by_every_kernel() {
    const CHILD: &str = "BULLA_TEST_BAO_KERNEL";
    const ENCODINGS: &str = "BULLA_TEST_BAO_ENCODINGS";
    let encodings = digest_of_encodings();
    if let Ok(expected) = std::env::var(CHILD) {
        assert_eq!(kernel::active().name(), expected);
        return assert_eq!(std::env::var(ENCODINGS), Ok(encodings.to_string()));
    }
    for kernel in kernel::available() {
        let output = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "bao::encodings::are_the_same_by_every_kernel"])
            .env(kernel::FORCE_VARIABLE, kernel.name())
            .env(CHILD, kernel.name())
            .env(ENCODINGS, encodings.to_string())
            .output()
            .expect("this program runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{kernel}: {said}");
    }
}

/// Writes `data` in pieces of random lengths.
fn encode_in_pieces<T: Read + Write + Seek>(mut encoder: Encoder<T>, data: &[u8]) -> (T, bulla_blake3::Hash) {
    let mut random = Random::new(data.len() as u64);
    let mut rest = data;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(random.length(600_000).min(rest.len()));
        encoder.write_all(now).expect("room");
        rest = later;
    }
    let hash = encoder.finalize().expect("room");
    (encoder.into_inner(), hash)
}

#[test]
fn of_an_encoder_are_the_same() {
    let data = input(5 << 20);
    let large = [(2 << 20) + 5, (3 << 20) + 1, 5 << 20];
    for len in lengths().chain(large.into_iter().take(sample(3, 1))) {
        for group in [group(0), group(3), group(8)] {
            let data = &data[..len];
            let combined = Encoder::new(Cursor::new(Vec::new())).with_group_size(group);
            let (encoded, hash) = encode_in_pieces(combined, data);
            assert!(
                (encoded.into_inner(), hash) == encode_with_group_size(data, group),
                "{len} bytes, {group:?}"
            );
            let tree = Encoder::new_outboard(Cursor::new(Vec::new())).with_group_size(group);
            let (encoded, hash) = encode_in_pieces(tree, data);
            assert!(
                (encoded.into_inner(), hash) == outboard_with_group_size(data, group),
                "{len} bytes, {group:?}"
            );
        }
    }
}

#[test]
fn of_an_encoder_go_to_a_file() {
    let data = input((2 << 20) + 12_345);
    let (file, hash) = encode_in_pieces(Encoder::new(tempfile::tempfile().expect("a file")), &data);
    let (mut file, mut written) = (file, Vec::new());
    file.seek(SeekFrom::Start(0)).expect("a file seeks");
    file.read_to_end(&mut written).expect("a file reads");
    assert!((written, hash) == encode(&data));
}

/// A file that is full at times: then a write takes a few bytes, and the next one fails.
#[derive(Default)]
struct Full {
    inner: Cursor<Vec<u8>>,
    writes: u32,
    /// Writes to come that may fail.
    tight: u32,
}

impl Read for Full {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.inner.read(out)
    }
}

impl Seek for Full {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        match self.writes % 3 {
            1 if self.writes < self.tight => self.inner.write(&bytes[..bytes.len().min(100)]),
            2 if self.writes < self.tight => Err(ErrorKind::StorageFull.into()),
            _ => self.inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn survive_writes_that_fail() {
    let data = input((2 << 20) + 999);
    let mut encoder = Encoder::new(Full { tight: 15, ..Full::default() });
    let (mut rest, mut failures) = (&data[..], 0);
    while !rest.is_empty() {
        match encoder.write(rest) {
            Ok(n) => rest = &rest[n..],
            Err(error) if error.kind() == ErrorKind::StorageFull => failures += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(failures, 5);
    let hash = encoder.finalize().expect("room");
    assert!((encoder.into_inner().inner.into_inner(), hash) == encode(&data));
}

#[test]
fn are_finished_once() {
    let mut encoder = Encoder::new(Cursor::new(Vec::new()));
    encoder.write_all(b"all").expect("room");
    encoder.finalize().expect("room");
    assert!(encoder.write(b"more").is_err());
    assert!(encoder.finalize().is_err());
    assert_eq!(encoder.into_inner().into_inner(), encode(b"all").0);
}

#[test]
#[should_panic(expected = "before anything is written")]
fn have_one_group_size() {
    let mut encoder = Encoder::new(Cursor::new(Vec::new()));
    encoder.write_all(b"something").expect("room");
    let _ = encoder.with_group_size(GroupSize::MAX);
}
