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
    /// The self-test of RFC 7693, appendix E: plain and keyed digests of many lengths, hashed together.
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
