//! Crates of others do on ours what they do on the crates that they name: what is expected here
//! they gave on those.
#![forbid(unsafe_code)]

use std::io::Read as _;

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn input() -> Vec<u8> {
    (0..5000_u32).map(|i| (i % 251) as u8).collect()
}

#[test]
fn bao_on_blake3() {
    let (encoded, hash) = bao::encode::encode(input());
    assert_eq!(hash.to_hex().as_str(), "ee78d92070de3df1c57c37002abf0a6b1a6589acdeef4d8ffac7cf3d9e8f2836");
    let mut decoded = Vec::new();
    bao::decode::Decoder::new(&encoded[..], &hash).read_to_end(&mut decoded).expect("an encoding of its own");
    assert_eq!(decoded, input());
}

#[test]
fn bao_tree_on_blake3() {
    use bao_tree::{BlockSize, io::outboard::PreOrderMemOutboard};
    let outboard = PreOrderMemOutboard::create(input(), BlockSize::from_chunk_log(0));
    assert_eq!(
        outboard.root.to_hex().as_str(),
        "ee78d92070de3df1c57c37002abf0a6b1a6589acdeef4d8ffac7cf3d9e8f2836"
    );
}

#[test]
fn multihash_on_blake3_and_both_of_blake2() {
    use multihash_codetable::{Code, MultihashDigest as _};
    let digest = |code: Code| hex(code.digest(&input()).digest());
    assert_eq!(digest(Code::Blake3_256), "ee78d92070de3df1c57c37002abf0a6b1a6589acdeef4d8ffac7cf3d9e8f2836");
    assert_eq!(
        digest(Code::Blake2b512),
        "e0544a2083f83329af4c725e0cf8805ce26d686a6bc33bfd2e29d5c1b5f9a889c44f1769e496e3586dae86e56c195908d6aa1d0e2cadad635902a37e812681ca"
    );
    assert_eq!(digest(Code::Blake2b256), "380a35589ac0b8796076c76b284d2e0dd0842d3eac226475610946e0c2277b8b");
    assert_eq!(digest(Code::Blake2s256), "5b73fde71a575695f52be841b2673288e9e797465cec0ae40c231d97810d8da5");
}

#[test]
fn f4jumble_on_blake2b() {
    let jumbled = f4jumble::f4jumble(&input()).expect("a length that it takes");
    assert_eq!(hex(&jumbled[..32]), "f0bd3c23a9c98dfce666dbd3676783bc9133b6ee807b669323a2f1f8ffa391e3");
    assert_eq!(f4jumble::f4jumble_inv(&jumbled).expect("a length that it takes"), input());
}

#[test]
fn zip32_on_blake2b() {
    use zip32::registered;
    let key = registered::SecretKey::from_subpath(b"bulla", &[7; 32], 1, &[]);
    let key = key.expect("a seed of a length that it takes");
    assert_eq!(hex(key.data()), "56033ddd8178ac7861d88d5c00037d9a8b454767a3bc4107769b2ad495e14edf");
}

#[test]
fn bellman_on_blake2s() {
    use bellman::{
        ConstraintSystem as _,
        gadgets::test::TestConstraintSystem,
        gadgets::{blake2s, boolean},
    };
    let mut circuit = TestConstraintSystem::<bls12_381::Scalar>::new();
    let mut bit = |number: u32| {
        let name = circuit.namespace(|| format!("bit {number}"));
        boolean::Boolean::from(boolean::AllocatedBit::alloc(name, Some(number % 3 == 0)).expect("a bit"))
    };
    let bits: Vec<_> = (0..16).map(&mut bit).collect();
    blake2s::blake2s(&mut circuit, &bits, b"12345678").expect("whole bytes");
    assert!(circuit.is_satisfied());
    assert_eq!(circuit.hash(), "353550c84ad3157a6fdbd601c50a8335650d38ccb7e98e9afa521eff012d688e");
}

#[test]
fn sapling_on_both_of_blake2() {
    let (index, address) = sapling_crypto::zip32::ExtendedSpendingKey::master(&[7; 32])
        .expect("a seed of a length that it takes")
        .default_address();
    assert_eq!(u128::try_from(index).expect("88 bits"), 5);
    assert_eq!(
        hex(address.to_bytes()),
        "4bccf5bda89848b7f79477dfa4789f989dd9de140e5160f1939fc9afd7b9ee17f7342aaf8b3ceae7133810"
    );
}

#[test]
fn paseto_on_blake2() {
    use paseto_core::version::{Local, SealingVersion};
    use paseto_v4::core::{LocalKey, V4};
    // The first of PASERK's vectors of the type k4.lid.
    let key: paseto_v4::LocalKey = [0; 32].into();
    assert_eq!(key.id().to_string(), "k4.lid.bqltbNc4JLUAmc9Xtpok-fBuI0dQN5_m3CD9W_nbh559");
    let (key, payload) = (LocalKey::from_raw_bytes([7; 32]), [&[1; 32][..], b"a message"].concat());
    let sealed = <V4 as SealingVersion<Local>>::dangerous_seal_with_nonce(&key, "", payload, b"", b"");
    assert_eq!(
        hex(sealed.expect("it is sealed")),
        "010101010101010101010101010101010101010101010101010101010101010113919bd7fff30c2d4f9b2dc99a5db6d117069ee693929fc707c560e20e626b08e451fb717ea44e98bb"
    );
}

#[test]
fn sphinx_on_blake2() {
    use sphinx_packet::payload::Payload;
    let key = std::array::from_fn(|i| i as u8);
    let payload = Payload::encapsulate_message(b"a message", &[key], 64).expect("a length that it takes");
    assert_eq!(
        hex(payload.as_bytes()),
        "6f305309fadb98e45df80a78550a059cb041af202dda8d4a12aa425449208f955081428c17d75e47d70aded80fc57f7208470cd6b2dde40e0115f006eb8174f7"
    );
    let opened = payload.unwrap(&key).and_then(Payload::recover_plaintext).expect("its own key");
    assert_eq!(opened, b"a message");
}

#[test]
fn argon2_on_blake2() {
    let mut out = [0; 80];
    let params = argon2::Params::new(64, 2, 1, Some(80)).expect("parameters that it takes");
    argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params)
        .hash_password_into(b"password", b"somesalt", &mut out)
        .expect("lengths that it takes");
    assert_eq!(
        hex(out),
        "0ec3a545a479a0928df9390e3ef494925fafdb7aefb1ecf8e1a2de9a452a3b93b64254f3fae7b07446c732903eb1072c2d145046f578e23bbaae839e35694f9d2a677cba2129c41ef2625a82c444d481"
    );
}

#[test]
fn hmac_on_blake2() {
    use hmac::{KeyInit as _, Mac as _, SimpleHmac};
    let mac = SimpleHmac::<blake2::Blake2s256>::new_from_slice(b"key").expect("any length");
    assert_eq!(
        hex(mac.chain_update(input()).finalize().into_bytes()),
        "b1b827c4e73d3d42f8737b86b69d2bcc6b4739eb76674d5f878324f6937a385d"
    );
}

#[test]
fn hkdf_on_blake2() {
    let mut out = [0; 100];
    let hkdf = hkdf::SimpleHkdf::<blake2::Blake2b512>::new(Some(b"salt"), &input());
    hkdf.expand(b"info", &mut out).expect("a length that it gives");
    assert_eq!(
        hex(out),
        "e19bf0c6c5c226657a53b57eee652000e6461fe9e0420ae497fdc148c2324ca248882392164db45e85354a6bcc3519e33a624bf3aacefcc7043e194b518f7d8496413a6a81fa2cea0da568f20abc3f1aac771ee33cd43291de5456d1706389df1fd7cefc"
    );
}
