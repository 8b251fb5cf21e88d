//! Slices.

use super::{group, official};
use crate::support::{Random, input, sample};
use bulla_blake3::Hash;
use bulla_blake3::bao::GroupSize;
use bulla_blake3::bao::decode::SliceDecoder;
use bulla_blake3::bao::encode::{
    SliceExtractor, encode, encode_with_group_size, outboard, outboard_with_group_size,
};
use std::io::{Cursor, Read, copy, sink};

fn all(mut reader: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("a right encoding");
    bytes
}

/// The part of `data` that a slice stands for.
fn part(data: &[u8], start: u64, len: u64) -> &[u8] {
    let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(data.len());
    &data[at(start)..at(start.saturating_add(len))]
}

/// Starts and lengths at all kinds of positions.
fn ranges(len: u64, n: usize) -> Vec<(u64, u64)> {
    let edges = [0, 1, 1023, 1024, 1025, 2048, 3071, 16_384, len / 2, len.saturating_sub(1), len, len + 1];
    let mut ranges: Vec<_> = edges.iter().flat_map(|start| edges.map(|len| (*start, len))).collect();
    ranges.extend([(u64::MAX, 1), (0, u64::MAX), (u64::MAX, u64::MAX), (len, 0), (len / 3, u64::MAX)]);
    let mut random = Random::new(len);
    ranges.extend((0..n).map(|_| (random.below(len + 2000), random.below(len + 2000))));
    ranges
}

#[test]
fn are_those_of_the_bao_crate() {
    let lengths = [0, 1, 1023, 1024, 1025, 2048, 2049, 3073, 5000, 16_384, 17_409, 65_537, 270_000, 600_001];
    for len in lengths.into_iter().take(sample(14, 13)) {
        let data = input(len);
        let ((encoded, hash), (tree, _)) = (encode(&data), outboard(&data));
        for (start, slice_len) in ranges(len as u64, 40) {
            let what = format!("{slice_len} bytes from {start} of {len}");
            let slice = all(SliceExtractor::new(Cursor::new(&encoded), start, slice_len));
            let theirs = all(bao::encode::SliceExtractor::new(Cursor::new(&encoded), start, slice_len));
            assert!(slice == theirs, "{what}");
            let (content, tree) = (Cursor::new(&data), Cursor::new(&tree));
            let of_outboard = all(SliceExtractor::new_outboard(content, tree, start, slice_len));
            assert!(slice == of_outboard, "{what}, outboard");
            let decoded = all(SliceDecoder::new(&slice[..], &hash, start, slice_len));
            assert!(decoded == part(&data, start, slice_len), "{what}, decoded");
            let theirs = all(bao::decode::SliceDecoder::new(&slice[..], &official(&hash), start, slice_len));
            assert!(theirs == decoded, "{what}, decoded by the bao crate");
        }
    }
}

#[test]
fn of_groups_give_the_range() {
    for (len, group) in [(5000, group(1)), (100_000, group(4)), (300_001, group(2)), (800_000, group(8))] {
        let data = input(len);
        let (encoded, hash) = encode_with_group_size(&data, group);
        let (tree, _) = outboard_with_group_size(&data, group);
        for (start, slice_len) in ranges(len as u64, 40) {
            let extractor = SliceExtractor::new(Cursor::new(&encoded), start, slice_len);
            let slice = all(extractor.with_group_size(group));
            let (content, tree) = (Cursor::new(&data), Cursor::new(&tree));
            let extractor = SliceExtractor::new_outboard(content, tree, start, slice_len);
            assert!(all(extractor.with_group_size(group)) == slice);
            let decoder = SliceDecoder::new(&slice[..], &hash, start, slice_len).with_group_size(group);
            assert!(all(decoder) == part(&data, start, slice_len), "{slice_len} from {start} of {len}");
        }
    }
}

#[test]
fn of_everything_are_the_combined_encoding() {
    for (len, group) in [(0, GroupSize::CHUNK), (1_000_000, GroupSize::CHUNK), (1_000_000, group(4))] {
        let data = input(len);
        let (tree, _) = outboard_with_group_size(&data, group);
        let extractor = SliceExtractor::new_outboard(Cursor::new(&data), Cursor::new(&tree), 0, len as u64);
        assert!(all(extractor.with_group_size(group)) == encode_with_group_size(&data, group).0);
    }
}

#[test]
fn of_length_0_are_verified_too() {
    let (encoded, hash) = encode(input(5000));
    let slice = all(SliceExtractor::new(Cursor::new(&encoded), 2000, 0));
    assert_eq!(all(SliceDecoder::new(&slice[..], &hash, 2000, 0)), b"");
    let wrong = Hash::from_bytes([1; 32]);
    assert!(SliceDecoder::new(&slice[..], &wrong, 2000, 0).read(&mut [0; 1]).is_err());
}

#[test]
fn end_where_the_slice_does_and_leave_the_reader_there() {
    for len in [0, 1, 1025, 5000, 65_537] {
        let (encoded, hash) = encode(input(len));
        for (start, slice_len) in ranges(len as u64, 10) {
            let mut slice = all(SliceExtractor::new(Cursor::new(&encoded), start, slice_len));
            slice.extend_from_slice(b"what follows");
            let mut decoder = SliceDecoder::new(&slice[..], &hash, start, slice_len);
            decoder.read_to_end(&mut Vec::new()).expect("a right slice");
            assert!(decoder.into_inner() == b"what follows", "{slice_len} bytes from {start} of {len}");
        }
    }
}

/// Whatever an encoding holds, cutting it ends, and is no longer than a right slice would be.
#[test]
fn of_corrupt_encodings_end() {
    let mut random = Random::new(3);
    for round in 0..2000 {
        let data = input(random.length(20_000));
        let (mut encoded, hash) = encode(&data);
        for _ in 0..random.below(4) {
            let at = random.below(encoded.len() as u64) as usize;
            encoded[at] ^= 1 << random.below(8);
        }
        if round % 3 == 0 {
            // A length that leads far away.
            let len = u64::MAX >> random.below(64);
            encoded[..8].copy_from_slice(&len.to_le_bytes());
        }
        encoded.truncate(random.length(encoded.len() + 5000));
        let (start, len) = (u64::MAX >> random.below(64), u64::MAX >> random.below(64));
        let mut slice = Vec::new();
        let cut = SliceExtractor::new(Cursor::new(&encoded), start, len).read_to_end(&mut slice);
        assert!(slice.len() <= encoded.len(), "{cut:?}");
        let mut decoded = Vec::new();
        let verified = SliceDecoder::new(&slice[..], &hash, start, len).read_to_end(&mut decoded);
        let right = part(&data, start, len);
        assert!(right.starts_with(&decoded) && (verified.is_err() || decoded == right), "{verified:?}");
        let _ = copy(
            &mut SliceExtractor::new_outboard(Cursor::new(&data), Cursor::new(&encoded), start, len),
            &mut sink(),
        );
    }
}
