//! Encodings that are not right: nothing wrong comes out, and all that is right does.

use super::group;
use crate::support::input;
use bulla_blake3::Hash;
use bulla_blake3::bao::decode::{Decoder, Error, SliceDecoder, decode};
use bulla_blake3::bao::encode::{SliceExtractor, encode, encode_with_group_size, outboard};
use std::io::{self, Cursor, ErrorKind, Read};

/// The output in pieces of `room` bytes, and the error at the end.
fn read_until_error(mut reader: impl Read, room: usize) -> (Vec<u8>, Option<io::Error>) {
    let (mut all, mut piece) = (Vec::new(), vec![0; room]);
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return (all, None),
            Ok(n) => all.extend_from_slice(&piece[..n]),
            Err(error) => {
                let again = reader.read(&mut piece).expect_err("an error stays one");
                assert_eq!(again.kind(), error.kind());
                return (all, Some(error));
            }
        }
    }
}

fn typed(error: &io::Error) -> Option<Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref()).copied()
}

/// That a decoder of something wrong gives a part of `data`, and then an error; the error, and how
/// much came.
fn must_fail(reader: impl Read, data: &[u8], room: usize, what: &str) -> (Error, usize) {
    let (read, error) = read_until_error(reader, room);
    let error = error.unwrap_or_else(|| panic!("{what}: accepted"));
    assert!(data.starts_with(&read), "{what}: wrong bytes came out");
    (typed(&error).unwrap_or_else(|| panic!("{what}: {error}")), read.len())
}

#[test]
fn every_flipped_bit_of_a_combined_encoding_is_found() {
    for len in [0, 1, 64, 1024, 1025, 2049, 3073] {
        let data = input(len);
        for group in [group(0), group(1)] {
            let (mut encoded, hash) = encode_with_group_size(&data, group);
            for bit in 0..8 * encoded.len() {
                encoded[bit / 8] ^= 1 << (bit % 8);
                for room in [700, 100_000] {
                    let decoder = Decoder::new(&encoded[..], &hash).with_group_size(group);
                    must_fail(decoder, &data, room, &format!("bit {bit} of {len} bytes, {group:?}"));
                }
                encoded[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_an_outboard_encoding_or_its_input_is_found() {
    for len in [0, 1, 1024, 1025, 3073, 5000] {
        let data = input(len);
        let (mut tree, hash) = outboard(&data);
        for bit in 0..8 * tree.len() {
            tree[bit / 8] ^= 1 << (bit % 8);
            let decoder = Decoder::new_outboard(&data[..], &tree[..], &hash);
            must_fail(decoder, &data, 4096, &format!("bit {bit} of {len} bytes, outboard"));
            tree[bit / 8] ^= 1 << (bit % 8);
        }
        for bit in 0..8 * len {
            let mut wrong = data.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let decoder = Decoder::new_outboard(&wrong[..], &tree[..], &hash);
            let (error, read) = must_fail(decoder, &data, 4096, &format!("bit {bit} of the {len} bytes"));
            assert_eq!((error, read), (Error::HashMismatch, bit / 8 / 1024 * 1024));
        }
    }
}

#[test]
fn every_flipped_bit_of_a_slice_is_found() {
    let data = input(7000);
    let (encoded, hash) = encode(&data);
    for (start, len) in [(0, 1), (1500, 1000), (2048, 4096), (6500, 9999), (8000, 10), (3000, 0)] {
        let mut slice = Vec::new();
        SliceExtractor::new(Cursor::new(&encoded), start, len).read_to_end(&mut slice).expect("a slice");
        let right = data.get(start as usize..).unwrap_or_default();
        for bit in 0..8 * slice.len() {
            slice[bit / 8] ^= 1 << (bit % 8);
            let decoder = SliceDecoder::new(&slice[..], &hash, start, len);
            let (read, error) = read_until_error(decoder, 3000);
            // A changed length may show nowhere inside: it is no part of what is verified before
            // the end.
            let accepted = error.is_none() && bit < 64 && read == right[..right.len().min(len as usize)];
            assert!(error.is_some() || accepted, "bit {bit} of the slice of {len} from {start}");
            assert!(right.starts_with(&read));
            slice[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// All chunks before the first wrong byte come out, also when many are verified at a time.
#[test]
fn what_is_right_comes_out_before_the_error() {
    let data = input(600_000);
    let (encoded, hash) = encode(&data);
    for chunk in [0, 1, 15, 16, 100, 255, 256, 300, 585] {
        let mut wrong = data.clone();
        wrong[1024 * chunk + 5] ^= 1;
        let (tree, _) = outboard(&data);
        for room in [100, 1024, 16_384, 50_000, 1 << 20] {
            let decoder = Decoder::new_outboard(&wrong[..], &tree[..], &hash);
            let found = must_fail(decoder, &data, room, &format!("chunk {chunk}, {room} at a time"));
            assert_eq!(found, (Error::HashMismatch, 1024 * chunk));
        }
    }
    let (last, mut all) = (encoded.len() - 1, Vec::new());
    let error = Decoder::new(&encoded[..last], &hash).read_to_end(&mut all).expect_err("cut off");
    assert_eq!((typed(&error), all.len()), (Some(Error::Truncated), 585 * 1024));
}

#[test]
fn every_truncation_is_called_one() {
    for len in [0, 1, 1024, 1025, 3073, 5000, 17_000] {
        let data = input(len);
        let (encoded, hash) = encode(&data);
        for cut in 0..encoded.len() {
            let what = format!("{cut} bytes of the encoding of {len}");
            let decoder = Decoder::new(&encoded[..cut], &hash);
            assert_eq!(must_fail(decoder, &data, 10_000, &what).0, Error::Truncated, "{what}");
            let error = decode(&encoded[..cut], &hash).expect_err("cut off");
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{what}");
        }
    }
}

#[test]
fn nothing_comes_out_for_another_digest() {
    for len in [0, 1, 1024, 1025, 5000, 300_000] {
        let (encoded, _) = encode(input(len));
        let wrong = Hash::from_bytes([0x55; 32]);
        let found = must_fail(Decoder::new(&encoded[..], &wrong), &[], 4096, "the wrong digest");
        assert_eq!(found, (Error::HashMismatch, 0));
        let error = decode(&encoded, &wrong).expect_err("the wrong digest");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "the encoding is corrupt, or not of this digest");
    }
}

/// The group size is no part of the encoding: a wrong one is found as anything else that is wrong.
#[test]
fn another_group_size_is_refused() {
    let data = input(50_000);
    let (encoded, hash) = encode_with_group_size(&data, group(4));
    assert!(decode(&encoded, &hash).is_err());
    let decoder = Decoder::new(&encoded[..], &hash).with_group_size(group(3));
    must_fail(decoder, &data, 100_000, "groups of 8 instead of 16 chunks");
}

/// A reader that never ends, and counts.
struct Endless(u64);

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        out.fill(0xFF);
        self.0 += out.len() as u64;
        Ok(out.len())
    }
}

#[test]
fn a_length_that_is_a_lie_costs_nothing() {
    let hash = Hash::from_bytes([9; 32]);
    for len in [1_u64 << 20, 1 << 40, 1 << 63, u64::MAX] {
        let header = len.to_le_bytes();
        let error = decode(header, &hash).expect_err("nothing behind the header");
        assert_eq!(typed(&error), Some(Error::Truncated));
    }
    let mut decoder = Decoder::new(Endless(0), &hash);
    let error = decoder.read(&mut vec![0; 1 << 20]).expect_err("nothing of this digest");
    assert_eq!(typed(&error), Some(Error::HashMismatch));
    assert_eq!(decoder.into_inner().0.0, 8 + 64);
}
