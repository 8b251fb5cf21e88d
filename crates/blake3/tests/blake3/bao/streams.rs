//! Decoding by reading and seeking.

use super::{group, lengths, official};
use crate::support::{Random, input};
use bulla_blake3::Hash;
use bulla_blake3::bao::decode::{Decoder, Error, SliceDecoder};
use bulla_blake3::bao::encode::{
    SliceExtractor, encode, encode_with_group_size, outboard, outboard_with_group_size,
};
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};

/// Everything, read in pieces of random lengths.
fn read_in_pieces(mut reader: impl Read, seed: u64) -> Vec<u8> {
    let (mut random, mut all) = (Random::new(seed), Vec::new());
    loop {
        let mut piece = vec![0xEE; 1 + random.length(300_000)];
        let n = reader.read(&mut piece).expect("a right encoding");
        assert!(piece[n..].iter().all(|byte| *byte == 0xEE), "more was written than was read");
        if n == 0 {
            return all;
        }
        all.extend_from_slice(&piece[..n]);
    }
}

#[test]
fn gives_the_input_in_pieces_of_any_length() {
    for len in lengths() {
        let data = input(len);
        for group in [group(0), group(4), group(8)] {
            let (encoded, hash) = encode_with_group_size(&data, group);
            let decoder = Decoder::new(&encoded[..], &hash).with_group_size(group);
            assert!(read_in_pieces(decoder, len as u64) == data, "{len} bytes, {group:?}");
            let (tree, _) = outboard_with_group_size(&data, group);
            let decoder = Decoder::new_outboard(&data[..], &tree[..], &hash).with_group_size(group);
            assert!(read_in_pieces(decoder, len as u64) == data, "{len} bytes, {group:?}, outboard");
        }
    }
}

/// A source that gives a few bytes at a time, or says that it would block.
struct Trickle<'a> {
    rest: &'a [u8],
    random: Random,
}

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.random.below(4) == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let n = self.random.length(2000).min(out.len());
        self.rest.read(&mut out[..n.max(1)])
    }
}

#[test]
fn goes_on_after_a_reader_that_would_block() {
    let data = input(300_000);
    let (encoded, hash) = encode(&data);
    let mut decoder = Decoder::new(Trickle { rest: &encoded, random: Random::new(1) }, &hash);
    let (mut all, mut piece, mut blocked) = (Vec::new(), vec![0; 50_000], 0);
    loop {
        match decoder.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => all.extend_from_slice(&piece[..n]),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                blocked += 1;
            }
        }
    }
    assert!(all == data && blocked > 10, "{} bytes, blocked {blocked} times", all.len());
}

#[test]
fn reads_nothing_behind_the_encoding() {
    for len in lengths() {
        let data = input(len);
        let (mut encoded, hash) = encode(&data);
        encoded.extend_from_slice(b"what follows");
        let mut decoder = Decoder::new(&encoded[..], &hash);
        let mut all = Vec::new();
        decoder.read_to_end(&mut all).expect("a right encoding");
        assert!(all == data && decoder.into_inner().0 == b"what follows", "{len} bytes");
    }
}

#[test]
fn reads_to_the_end_behind_what_was_there_and_counts_only_what_it_read() {
    let data = input(50_000);
    let (encoded, hash) = encode(&data);
    let mut all = b"what was there".to_vec();
    assert_eq!(
        Decoder::new(&encoded[..], &hash).read_to_end(&mut all).expect("a right encoding"),
        data.len()
    );
    assert!(all.strip_prefix(b"what was there") == Some(&data[..]));
}

/// The same steps by a reader of the input, or of an encoding of it, and by ours.
fn compare_seeks(mut ours: impl Read + Seek, mut theirs: impl Read + Seek, len: u64, seed: u64) {
    let mut random = Random::new(seed);
    for step in 0..60 {
        let anywhere = random.below(len + len / 4 + 2000);
        let to = match random.below(4) {
            0 => SeekFrom::Start(anywhere),
            1 => SeekFrom::Start(anywhere / 1024 * 1024),
            2 => SeekFrom::End(anywhere as i64 - len as i64),
            _ => SeekFrom::Current(anywhere as i64 - len as i64 / 2),
        };
        // For the `bao` crate the current position is the end of the chunk that it has read, and a
        // seek that fails goes there.
        let to = match (to, ours.seek(to)) {
            (SeekFrom::Current(_), Ok(position)) => SeekFrom::Start(position),
            (SeekFrom::End(_), Err(_)) => {
                assert!(theirs.seek(to).is_err(), "{len} bytes, step {step}, {to:?}");
                SeekFrom::Start(0)
            }
            (_, Err(_)) => SeekFrom::Start(0),
            (to, Ok(_)) => to,
        };
        let positions = (ours.seek(to).ok(), theirs.seek(to).ok());
        assert!(positions.0.is_some() && positions.0 == positions.1, "{len} bytes, step {step}, {to:?}");
        let most = random.length(20_000) as u64;
        let read = |reader: &mut dyn Read| {
            let mut all = Vec::new();
            reader.take(most).read_to_end(&mut all).expect("a right encoding");
            all
        };
        assert!(read(&mut ours) == read(&mut theirs), "{len} bytes, step {step}, {to:?}, {most} bytes");
    }
}

#[test]
fn seeks_as_the_bao_crate_does() {
    for len in lengths() {
        let data = input(len);
        let ((encoded, hash), (tree, _)) = (encode(&data), outboard(&data));
        let (len, root) = (len as u64, official(&hash));
        compare_positions(Decoder::new(Cursor::new(&encoded), &hash), &data);
        let ours = Decoder::new(Cursor::new(&encoded), &hash);
        let theirs = bao::decode::Decoder::new(Cursor::new(&encoded), &root);
        compare_seeks(ours, theirs, len, len);
        let ours = Decoder::new_outboard(Cursor::new(&data), Cursor::new(&tree), &hash);
        let theirs = bao::decode::Decoder::new_outboard(Cursor::new(&data), Cursor::new(&tree), &root);
        compare_seeks(ours, theirs, len, len + 1);
    }
}

/// Positions relative to the current one, beside those of a reader of the input.
fn compare_positions(mut ours: impl Read + Seek, data: &[u8]) {
    let (mut theirs, mut random) = (Cursor::new(data), Random::new(data.len() as u64));
    for _ in 0..30 {
        let by = SeekFrom::Current(random.below(4000) as i64 - 2000);
        assert_eq!(ours.seek(by).ok(), theirs.seek(by).ok(), "{} bytes, {by:?}", data.len());
        let (mut a, mut b) = ([0; 300], [0; 300]);
        let n = ours.read(&mut a).expect("a right encoding");
        theirs.read_exact(&mut b[..n]).expect("as many bytes");
        assert!(a == b && (n > 0 || theirs.position() >= data.len() as u64));
    }
}

#[test]
fn seeks_in_groups() {
    let data = input(700_001);
    let (encoded, hash) = encode_with_group_size(&data, group(4));
    let decoder = Decoder::new(Cursor::new(&encoded), &hash).with_group_size(group(4));
    compare_seeks(decoder, Cursor::new(&data), data.len() as u64, 7);
}

#[test]
fn refuses_positions_that_are_none() {
    let (encoded, hash) = encode(b"some input");
    let mut decoder = Decoder::new(Cursor::new(&encoded), &hash);
    for to in [SeekFrom::Current(-1), SeekFrom::End(-11)] {
        assert_eq!(decoder.seek(to).expect_err("before the start").kind(), ErrorKind::InvalidInput);
    }
    decoder.seek(SeekFrom::Start(u64::MAX)).expect("beyond the end");
    assert_eq!(decoder.read(&mut [0; 10]).expect("the end"), 0);
    assert_eq!(decoder.seek(SeekFrom::Current(1)).expect_err("too far").kind(), ErrorKind::InvalidInput);
    assert_eq!(decoder.seek(SeekFrom::End(-5)).expect("inside"), 5);
    assert_eq!(read_in_pieces(decoder, 1), b"input");
}

/// A file that counts how often it was moved.
struct Counting<'a> {
    inner: Cursor<&'a [u8]>,
    seeks: u32,
}

impl Read for Counting<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.inner.read(out)
    }
}

impl Seek for Counting<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.seeks += 1;
        self.inner.seek(to)
    }
}

#[test]
fn moves_its_reader_only_for_what_it_does_not_hold() {
    let data = input(100_000);
    let (encoded, hash) = encode(&data);
    let mut decoder = Decoder::new(Counting { inner: Cursor::new(&encoded), seeks: 0 }, &hash);
    let mut seek_and_read = |to: u64, len: usize| {
        decoder.seek(SeekFrom::Start(to)).expect("a position");
        let mut out = vec![0; len];
        decoder.read_exact(&mut out).expect("a right encoding");
        assert!(out == data[to as usize..][..len]);
    };
    // Back inside the 8192 bytes that are verified at once, over their end, and on to where the
    // next ones begin.
    seek_and_read(0, 8192);
    seek_and_read(100, 50);
    seek_and_read(8000, 500);
    seek_and_read(8192 + 1024, 10);
    let Counting { seeks, .. } = decoder.into_inner().0;
    assert_eq!(seeks, 0);
}

/// The last leaf proves the length once, however often it is asked for.
#[test]
fn moves_its_reader_once_for_the_length() {
    let data = input(100_000);
    let (encoded, hash) = encode(&data);
    let seeks = |ends: &[i64]| {
        let mut decoder = Decoder::new(Counting { inner: Cursor::new(&encoded), seeks: 0 }, &hash);
        for end in ends {
            decoder.seek(SeekFrom::End(*end)).expect("inside");
        }
        decoder.into_inner().0.seeks
    };
    assert!(seeks(&[0]) > 0);
    assert_eq!(seeks(&[0, -1, -50_000, -100_000]), seeks(&[0]));
}

/// The length in the header becomes visible only by an end; every way there must verify the last
/// leaf.
#[test]
fn believes_no_length_before_the_last_leaf() {
    let data = input(10_000);
    let (encoded, hash) = encode(&data);
    for wrong in [0_u64, 1, 1024, 5000, 8192, 9999, 10_001, 10_240, 10_241, 1 << 40, u64::MAX] {
        let mut encoded = encoded.clone();
        encoded[..8].copy_from_slice(&wrong.to_le_bytes());
        let seek_end = Decoder::new(Cursor::new(&encoded), &hash).seek(SeekFrom::End(0));
        assert!(seek_end.is_err(), "{wrong}: {seek_end:?}");
        for beyond in [wrong, wrong.saturating_add(1), u64::MAX] {
            let mut decoder = Decoder::new(Cursor::new(&encoded), &hash);
            decoder.seek(SeekFrom::Start(beyond)).expect("says nothing about the end");
            let read = decoder.read(&mut [0; 1]);
            assert!(read.is_err(), "{wrong}, {beyond}: {read:?}");
        }
    }
    let empty = Hash::from_bytes([7; 32]);
    let error = Decoder::new(&[0; 8][..], &empty).read(&mut [0; 1]).expect_err("the wrong digest");
    let typed = error.get_ref().and_then(|inner| inner.downcast_ref());
    assert_eq!(typed, Some(&Error::HashMismatch));
}

/// A failed attempt to learn the length leaves the position where it was.
#[test]
fn keeps_its_position_when_the_end_is_corrupt() {
    let data = input(300_000);
    let (mut encoded, hash) = encode(&data);
    *encoded.last_mut().expect("a byte") ^= 1;
    let mut decoder = Decoder::new(Cursor::new(&encoded), &hash);
    let mut start = vec![0; 5000];
    decoder.read_exact(&mut start).expect("the start is right");
    assert!(decoder.seek(SeekFrom::End(0)).is_err());
    let mut more = vec![0; 5000];
    decoder.read_exact(&mut more).expect("the start is right");
    assert!(more == data[5000..10_000]);
}

/// Whatever prints a decoder or an extractor prints where it is, and nothing of the input, which
/// may be a secret.
#[test]
fn shows_positions_and_nothing_of_the_input() {
    let (encoded, hash) = encode_with_group_size(input(10_000), group(1));
    let mut decoder = Decoder::new(&encoded[..], &hash).with_group_size(group(1));
    decoder.read_exact(&mut [0; 3]).expect("a right encoding");
    assert_eq!(format!("{decoder:?}"), "Decoder { position: 3, group: GroupSize { chunk_log: 1 }, .. }");
    let decoder = SliceDecoder::new(&encoded[..], &hash, 5, 7);
    assert_eq!(format!("{decoder:?}"), "SliceDecoder { position: 5, group: GroupSize { chunk_log: 0 }, .. }");
    let mut extractor = SliceExtractor::new(Cursor::new(&encoded), 5, 7).with_group_size(group(1));
    extractor.read_exact(&mut [0; 9]).expect("a right encoding");
    let shown = "SliceExtractor { start: 5, len: 7, group: GroupSize { chunk_log: 1 }, .. }";
    assert_eq!(format!("{extractor:?}"), shown);
}
