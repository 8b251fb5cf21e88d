//! No decoder returns a byte that is not the input's, whatever it reads and wherever it seeks.
#![no_main]

use arbitrary::Arbitrary;
use bulla_blake3::Hash;
use bulla_blake3::bao::GroupSize;
use bulla_blake3::bao::decode::{Decoder, SliceDecoder};
use bulla_blake3::bao::encode::{SliceExtractor, encode_with_group_size, outboard_with_group_size};
use libfuzzer_sys::fuzz_target;
use std::io::{Cursor, Read, Seek, SeekFrom};

#[derive(Arbitrary, Debug)]
enum EncodingForm {
    Combined,
    Outboard { content_changes: Vec<(u32, u8)> },
    Slice { start: u64, len: u64 },
}

#[derive(Arbitrary, Debug)]
enum Encoding {
    /// Only the fuzzer's bytes.
    Bytes(Vec<u8>),
    Right,
    Changed {
        header: Option<u64>,
        changes: Vec<(u32, u8)>,
        new_len: Option<u32>,
    },
}

#[derive(Arbitrary, Debug)]
enum Step {
    Read(u16),
    Start(u32),
    FarStart(u64),
    Current(i32),
    End(i32),
}

#[derive(Arbitrary, Debug)]
struct Case {
    piece: Vec<u8>,
    times: u16,
    chunk_log: u8,
    form: EncodingForm,
    encoding: Encoding,
    root_is_right: bool,
    steps: Vec<Step>,
}

fn change(bytes: &mut [u8], changes: &[(u32, u8)]) {
    for (at, by) in changes {
        let len = bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(*at as usize % len) {
            *byte ^= by;
        }
    }
}

impl Encoding {
    fn of(&self, right: Vec<u8>) -> Vec<u8> {
        match self {
            Encoding::Bytes(bytes) => bytes.clone(),
            Encoding::Right => right,
            Encoding::Changed { header, changes, new_len } => {
                let mut bytes = right;
                if let (Some(header), Some(place)) = (header, bytes.first_chunk_mut()) {
                    *place = header.to_le_bytes();
                }
                change(&mut bytes, changes);
                if let Some(len) = new_len {
                    bytes.resize(*len as usize % 100_000, 0);
                }
                bytes
            }
        }
    }
}

/// The part of the input from `start` on, at most `len` bytes.
fn part(input: &[u8], start: u64, len: u64) -> &[u8] {
    let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(input.len());
    &input[at(start)..at(start.saturating_add(len))]
}

/// Does the steps. Every byte must be the input's, and so must every end.
fn go<T: Read + Seek, O: Read + Seek>(mut decoder: Decoder<T, O>, input: &[u8], steps: &[Step]) {
    let mut position = 0;
    for step in steps.iter().take(64) {
        let to = match step {
            Step::Read(room) => {
                let mut out = vec![0; usize::from(*room)];
                let Ok(n) = decoder.read(&mut out) else { continue };
                assert_eq!(out[..n], *part(input, position, n as u64));
                assert!(n > 0 || out.is_empty() || position >= input.len() as u64, "an end too early");
                position += n as u64;
                continue;
            }
            Step::Start(position) => SeekFrom::Start((*position).into()),
            Step::FarStart(position) => SeekFrom::Start(*position),
            Step::Current(by) => SeekFrom::Current((*by).into()),
            Step::End(by) => SeekFrom::End((*by).into()),
        };
        let Ok(reached) = decoder.seek(to) else { continue };
        position = match to {
            SeekFrom::Start(position) => position,
            SeekFrom::Current(by) => position.saturating_add_signed(by),
            SeekFrom::End(by) => (input.len() as u64).saturating_add_signed(by),
        };
        assert_eq!(reached, position);
    }
}

/// Reading to the end gives the expected bytes, or a part of them and an error.
fn read_all(mut reader: impl Read, expected: &[u8], must_be_right: bool) {
    let mut all = Vec::new();
    let result = reader.read_to_end(&mut all);
    assert!(expected.starts_with(&all));
    if must_be_right || result.is_ok() {
        result.expect("a right encoding");
        assert_eq!(all, expected);
    }
}

fuzz_target!(|case: Case| {
    let times = usize::from(case.times).min(300_000 / case.piece.len().max(1));
    let mut input = case.piece.repeat(times);
    // Equal chunks would hide that one replaces another.
    input.chunks_mut(1000).enumerate().for_each(|(i, chunk)| chunk[0] ^= i as u8);
    let group = GroupSize::from_chunk_log(case.chunk_log % 9).expect("0 to 8");
    let (combined, mut root) = encode_with_group_size(&input, group);
    let is_right = case.root_is_right && matches!(case.encoding, Encoding::Right);
    if !case.root_is_right {
        let mut bytes = *root.as_bytes();
        bytes[case.times as usize % 32] ^= 1;
        root = Hash::from_bytes(bytes);
    }
    match &case.form {
        EncodingForm::Combined => {
            let bytes = case.encoding.of(combined);
            let decoder = || Decoder::new(Cursor::new(&bytes), &root).with_group_size(group);
            read_all(decoder(), &input, is_right);
            go(decoder(), &input, &case.steps);
        }
        EncodingForm::Outboard { content_changes } => {
            let tree = case.encoding.of(outboard_with_group_size(&input, group).0);
            let mut content = input.clone();
            change(&mut content, content_changes);
            let decoder = || {
                let (content, tree) = (Cursor::new(&content), Cursor::new(&tree));
                Decoder::new_outboard(content, tree, &root).with_group_size(group)
            };
            read_all(decoder(), &input, is_right && content == input);
            go(decoder(), &input, &case.steps);
        }
        EncodingForm::Slice { start, len } => {
            // The wrong bytes are cut, and the right ones: of the slice then some may be wrong.
            let cut = |encoded: &[u8]| {
                let mut slice = Vec::new();
                let extractor = SliceExtractor::new(Cursor::new(encoded), *start, *len);
                let _ = extractor.with_group_size(group).read_to_end(&mut slice);
                assert!(slice.len() <= encoded.len());
                slice
            };
            let expected = part(&input, *start, *len);
            for slice in [cut(&case.encoding.of(combined.clone())), case.encoding.of(cut(&combined))] {
                let decoder = SliceDecoder::new(&slice[..], &root, *start, *len).with_group_size(group);
                read_all(decoder, expected, is_right);
            }
        }
    }
});
