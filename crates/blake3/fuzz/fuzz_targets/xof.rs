//! Output from any position, in pieces of any length, equals the official crate's.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    Fill(u16),
    Seek(u64),
    /// Around the places where a counter passes 32 bits.
    SeekNear {
        chunk: u8,
        by: i16,
    },
}

#[derive(Arbitrary, Debug)]
struct Input {
    key: Option<[u8; 32]>,
    input: Vec<u8>,
    times: u8,
    steps: Vec<Step>,
}

/// Output stays before this position: the official crate's counter is not defined beyond 2^64
/// bytes.
const LAST: u64 = u64::MAX - (64 << 16);

fuzz_target!(|case: Input| {
    let input = case.input.repeat(usize::from(case.times % 32));
    let (mut ours, mut official) = match &case.key {
        Some(key) => (bulla_blake3::Hasher::new_keyed(key), blake3::Hasher::new_keyed(key)),
        None => (bulla_blake3::Hasher::new(), blake3::Hasher::new()),
    };
    ours.update(&input);
    official.update(&input);
    let (mut ours, mut official) = (ours.finalize_xof(), official.finalize_xof());
    for step in case.steps.iter().take(64) {
        let position = match step {
            Step::Fill(len) => {
                let (mut output, mut expected) = (vec![0; usize::from(*len)], vec![1; usize::from(*len)]);
                ours.fill(&mut output);
                official.fill(&mut expected);
                assert_eq!(output, expected);
                ours.position()
            }
            Step::Seek(position) => *position,
            Step::SeekNear { chunk, by } => (u64::from(*chunk) << 38).saturating_add_signed(i64::from(*by)),
        };
        ours.set_position(position.min(LAST));
        official.set_position(position.min(LAST));
    }
});
