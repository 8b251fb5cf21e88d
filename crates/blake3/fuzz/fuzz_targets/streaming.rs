//! Input in pieces, with saving and restoring in between, has the digest of the official crate.
#![no_main]

use arbitrary::Arbitrary;
use bulla_blake3::Hasher;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Mode {
    Hash,
    Keyed([u8; 32]),
    Derive(String),
}

#[derive(Arbitrary, Debug)]
enum Step {
    Update(Vec<u8>),
    /// A long piece: groups of chunks bypass the buffer.
    Run {
        byte: u8,
        len: u16,
        times: u8,
    },
    Finalize,
    SaveAndRestore,
    Clone,
    Reset,
}

fuzz_target!(|input: (Mode, Vec<Step>)| {
    let (mode, steps) = input;
    let (mut ours, mut official) = match &mode {
        Mode::Hash => (Hasher::new(), blake3::Hasher::new()),
        Mode::Keyed(key) => (Hasher::new_keyed(key), blake3::Hasher::new_keyed(key)),
        Mode::Derive(context) => (Hasher::new_derive_key(context), blake3::Hasher::new_derive_key(context)),
    };
    for step in steps.iter().take(64) {
        match step {
            Step::Update(piece) => {
                ours.update(piece);
                official.update(piece);
            }
            Step::Run { byte, len, times } => {
                // Equal chunks would hide a wrong counter; these differ.
                let piece: Vec<u8> = (0..*len).map(|i| byte.wrapping_add((i / 7) as u8)).collect();
                for _ in 0..times % 8 {
                    ours.update(&piece);
                    official.update(&piece);
                }
            }
            Step::Finalize => assert_eq!(ours.finalize().as_bytes(), official.finalize().as_bytes()),
            Step::SaveAndRestore => ours = Hasher::restore(&ours.save()).expect("a state just saved"),
            Step::Clone => ours = ours.clone(),
            Step::Reset => {
                ours.reset();
                official.reset();
            }
        }
        assert_eq!(ours.count(), official.count());
    }
    let (mut output, mut expected) = ([0; 100], [0; 100]);
    ours.finalize_xof().fill(&mut output);
    official.finalize_xof().fill(&mut expected);
    assert_eq!(output, expected);
    assert_eq!(ours.finalize().as_bytes()[..], output[..32]);
});
