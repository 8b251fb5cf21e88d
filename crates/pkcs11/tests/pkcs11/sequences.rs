//! Sequences of calls with hostile arguments, as the fuzzer makes them. The fuzzer looks for the
//! bytes that lead into rare places; here they are random, and the same each time.

#[path = "../../fuzz/src/calls.rs"]
mod calls;

/// How many sequences there are. The variable asks for more.
const SEQUENCES: u64 = 300;
const MORE: &str = "BULLA_PKCS11_SEQUENCES";

/// The next number of a sequence that looks random (xorshift64).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn each_call_of_a_random_sequence_gives_a_code_and_touches_no_other_memory() {
    let more = std::env::var(MORE).ok().map(|text| text.parse().expect("a number"));
    for sequence in 0..more.unwrap_or(SEQUENCES) {
        let mut state = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let length = next(&mut state) % 512;
        let bytes: Vec<_> = (0..length).map(|_| next(&mut state).to_le_bytes()[4]).collect();
        calls::run(&bytes);
    }
}
