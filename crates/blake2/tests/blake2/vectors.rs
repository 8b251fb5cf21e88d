//! Published vectors, by every kernel.

use crate::support::for_both;
use bulla_blake2::{blake2b, blake2bp, blake2s, blake2sp, kernel};

/// The byte sequence of the self-test in RFC 7693, appendix E.
fn sequence(len: usize, seed: u32) -> Vec<u8> {
    let (mut a, mut b) = (0xDEAD_4BAD_u32.wrapping_mul(seed), 1u32);
    (0..len)
        .map(|_| {
            let sum = a.wrapping_add(b);
            (a, b) = (b, sum);
            (sum >> 24) as u8
        })
        .collect()
}

for_both! {
    /// The self-test of RFC 7693, appendix E: plain and keyed digests of many lengths, hashed
    /// together.
    fn self_test(output_lengths: [usize; 4], input_lengths: [usize; 6]) -> Vec<String> {
        let by_kernel = |kernel| {
            let mut all = ours::Params::new().kernel(kernel).hash_length(32).to_state();
            for output in output_lengths {
                for input in input_lengths {
                    let data = sequence(input, input as u32);
                    let mut params = ours::Params::new();
                    params.kernel(kernel).hash_length(output);
                    all.update(params.hash(&data).as_bytes());
                    all.update(params.key(&sequence(output, output as u32)).hash(&data).as_bytes());
                }
            }
            all.finalize().to_hex().to_string()
        };
        kernel::runnable().map(by_kernel).collect()
    }

    #[test]
    fn the_self_test_of_the_rfc() {
        let (digests, expected) = if ours::OUTBYTES == 64 {
            (
                self_test([20, 32, 48, 64], [0, 3, 128, 129, 255, 1024]),
                "c23a7800d98123bd10f506c61e29da5603d763b8bbad2e737f5e765a7bccd475",
            )
        } else {
            (
                self_test([16, 20, 28, 32], [0, 3, 64, 65, 255, 1024]),
                "6a411f08ce25adcdfb02aba641451cec53c598b24f4fc787fbdc88797f4c1dfe",
            )
        };
        assert!(digests.iter().all(|digest| digest == expected), "{digests:?}");
    }
}

/// All known answers of the reference code, by every kernel, in one call and in two pieces.
#[test]
fn the_known_answers_of_the_reference_code() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/blake2.json");
    let known: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path).expect("the vectors")).expect("they are JSON");
    let bytes: Vec<u8> = (0..=255).collect();
    let mut compared = 0;
    macro_rules! compare {
        ($name:literal, $params:path, $key_len:expr) => {
            for (list, key) in [("hash", &bytes[..0]), ("keyed_hash", &bytes[..$key_len])] {
                let digests = known[$name][list].as_array().expect("a list of digests");
                assert_eq!(digests.len(), 256);
                for (n, digest) in digests.iter().enumerate() {
                    for kernel in kernel::runnable() {
                        let mut params = <$params>::new();
                        params.kernel(kernel).key(key);
                        let whole = params.hash(&bytes[..n]);
                        assert_eq!(
                            Some(&*whole.to_hex()),
                            digest.as_str(),
                            "{} {list}, {n} bytes, {kernel}",
                            $name
                        );
                        let (first, second) = bytes[..n].split_at(n / 3);
                        assert_eq!(params.to_state().update(first).update(second).finalize(), whole);
                        compared += 1;
                    }
                }
            }
        };
    }
    compare!("blake2b", blake2b::Params, blake2b::KEYBYTES);
    compare!("blake2s", blake2s::Params, blake2s::KEYBYTES);
    compare!("blake2bp", blake2bp::Params, blake2b::KEYBYTES);
    compare!("blake2sp", blake2sp::Params, blake2s::KEYBYTES);
    assert_eq!(compared, 4 * 2 * 256 * kernel::runnable().count());
}

/// Answers as they stand in the published file itself: the last of each keyed list.
#[test]
fn the_last_known_answers_as_published() {
    let bytes: Vec<u8> = (0..=254).collect();
    let keyed = blake2b::Params::new().key(&bytes[..64]).hash(&bytes);
    assert_eq!(
        &keyed.to_hex(),
        "142709d62e28fcccd0af97fad0f8465b971e82201dc51070faa0372aa43e9248\
         4be1c1e73ba10906d5d1853db6a4106e0a7bf9800d373d6dee2d46d62ef2a461"
    );
    let keyed = blake2s::Params::new().key(&bytes[..32]).hash(&bytes);
    assert_eq!(&keyed.to_hex(), "3fb735061abc519dfe979e54c1ee5bfad0a9d858b3315bad34bde999efd724dd");
}

/// The digests of no bytes in the `blake2-kat.json` of the reference code.
#[test]
fn digests_of_nothing() {
    assert_eq!(
        &blake2b(b"").to_hex(),
        "786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419\
         d25e1031afee585313896444934eb04b903a685b1448b755d56f701afe9be2ce"
    );
    assert_eq!(&blake2s(b"").to_hex(), "69217a3079908094e11121d042354a7c1f55b6482ca1a51e1b250dfd1ed0eef9");
    assert_eq!(
        &blake2bp::blake2bp(b"").to_hex(),
        "b5ef811a8038f70b628fa8b294daae7492b1ebe343a80eaabbf1f6ae664dd67b\
         9d90b0120791eab81dc96985f28849f6a305186a85501b405114bfa678df9380"
    );
    assert_eq!(
        &blake2sp::blake2sp(b"").to_hex(),
        "dd0e891776933f43c7d032b08a917e25741f8aa9a12c12e1cac8801500f2ca4f"
    );
}
