//! Ed25519: the vectors of RFC 8032, and signatures of every kind that verifiers disagree on.

use crate::json::{Value, json};
use curve25519_dalek::{EdwardsPoint, Scalar, constants::EIGHT_TORSION, traits::IsIdentity as _};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha512};

/// RFC 8032, section 7.1: the tests 1, 2, 3, 1024 and SHA(abc). Seed and message; the rest is
/// computed, and compared with the beginning of the RFC's signature.
const RFC_8032: [(&str, &str, &str, &str); 5] = [
    ("TEST 1", "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "", "e5564300c360ac72"),
    ("TEST 2", "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "72", "92a009a9f0d4cab8"),
    (
        "TEST 3",
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "af82",
        "6291d657deec2402",
    ),
    (
        "TEST 1024",
        "f5e5767cf153319517630f226876b86c8160cc583bc013744c6bf255f5cc0ee5",
        "\
     08b8b2b733424243760fe426a4b54908632110a66c2f6591eabd3345e3e4eb98fa6e264bf09efe12ee50f8f54e9f77b1e355\
     f6c50544e23fb1433ddf73be84d879de7c0046dc4996d9e773f4bc9efe5738829adb26c81b37c93a1b270b20329d658675fc\
     6ea534e0810a4432826bf58c941efb65d57a338bbd2e26640f89ffbc1a858efcb8550ee3a5e1998bd177e93a7363c344fe6b\
     199ee5d02e82d522c4feba15452f80288a821a579116ec6dad2b3b310da903401aa62100ab5d1a36553e06203b33890cc9b8\
     32f79ef80560ccb9a39ce767967ed628c6ad573cb116dbefefd75499da96bd68a8a97b928a8bbc103b6621fcde2beca1231d\
     206be6cd9ec7aff6f6c94fcd7204ed3455c68c83f4a41da4af2b74ef5c53f1d8ac70bdcb7ed185ce81bd84359d44254d9562\
     9e9855a94a7c1958d1f8ada5d0532ed8a5aa3fb2d17ba70eb6248e594e1a2297acbbb39d502f1a8c6eb6f1ce22b3de1a1f40\
     cc24554119a831a9aad6079cad88425de6bde1a9187ebb6092cf67bf2b13fd65f27088d78b7e883c8759d2c4f5c65adb7553\
     878ad575f9fad878e80a0c9ba63bcbcc2732e69485bbc9c90bfbd62481d9089beccf80cfe2df16a2cf65bd92dd597b0707e0\
     917af48bbb75fed413d238f5555a7a569d80c3414a8d0859dc65a46128bab27af87a71314f318c782b23ebfe808b82b0ce26\
     401d2e22f04d83d1255dc51addd3b75a2b1ae0784504df543af8969be3ea7082ff7fc9888c144da2af58429ec96031dbcad3\
     dad9af0dcbaaaf268cb8fcffead94f3c7ca495e056a9b47acdb751fb73e666c6c655ade8297297d07ad1ba5e43f1bca32301\
     651339e22904cc8c42f58c30c04aafdb038dda0847dd988dcda6f3bfd15c4b4c4525004aa06eeff8ca61783aacec57fb3d1f\
     92b0fe2fd1a85f6724517b65e614ad6808d6f6ee34dff7310fdc82aebfd904b01e1dc54b2927094b2db68d6f903b68401ade\
     bf5a7e08d78ff4ef5d63653a65040cf9bfd4aca7984a74d37145986780fc0b16ac451649de6188a7dbdf191f64b5fc5e2ab4\
     7b57f7f7276cd419c17a3ca8e1b939ae49e488acba6b965610b5480109c8b17b80e1b7b750dfc7598d5d5011fd2dcc5600a3\
     2ef5b52a1ecc820e308aa342721aac0943bf6686b64b2579376504ccc493d97e6aed3fb0f9cd71a43dd497f01f17c0e2cb37\
     97aa2a2f256656168e6c496afc5fb93246f6b1116398a346f1a641f3b041e989f7914f90cc2c7fff357876e506b50d334ba7\
     7c225bc307ba537152f3f1610e4eafe595f6d9d90d11faa933a15ef1369546868a7f3a45a96768d40fd9d03412c091c6315c\
     f4fde7cb68606937380db2eaaa707b4c4185c32eddcdd306705e4dc1ffc872eeee475a64dfac86aba41c0618983f8741c5ef\
     68d3a101e8a3b8cac60c905c15fc910840b94c00a0b9d0",
        "0aab4c900501b3e2",
    ),
    (
        "TEST SHA(abc)",
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633",
    ),
];

/// l, little-endian.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

pub(crate) fn cases() -> Value {
    json!({ "rfc8032": RFC_8032.map(rfc_8032), "predicates": predicates() })
}

fn rfc_8032((name, seed, message, begins): (&str, &str, &str, &str)) -> Value {
    let seed: [u8; 32] = hex::decode(seed).expect("hex").try_into().expect("32 bytes");
    let message = hex::decode(message).expect("hex");
    let key = SigningKey::from_bytes(&seed);
    let signature = hex::encode(key.sign(&message).to_bytes());
    assert!(signature.starts_with(begins), "{name}");
    json!({
        "name": name,
        "seed": hex::encode(seed),
        "public_key": hex::encode(key.verifying_key().to_bytes()),
        "message": hex::encode(message),
        "signature": signature,
    })
}

/// An unfinished signature: the encodings, and their secret scalars.
struct Parts {
    public_key: [u8; 32],
    a: Scalar,
    r_bytes: [u8; 32],
    r: Scalar,
    message: Vec<u8>,
}

fn challenge(parts: &Parts) -> Scalar {
    let hash =
        Sha512::new().chain_update(parts.r_bytes).chain_update(parts.public_key).chain_update(&parts.message);
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

fn sign(parts: &Parts) -> [u8; 64] {
    let s = parts.r + challenge(parts) * parts.a;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&parts.r_bytes);
    signature[32..].copy_from_slice(s.as_bytes());
    signature
}

/// Secret scalars that depend only on a number.
fn scalar(number: u8) -> Scalar {
    Scalar::from_bytes_mod_order_wide(
        &Sha512::digest([b"bulla vectors".as_slice(), &[number]].concat()).into(),
    )
}

fn with_torsion(on_a: usize, on_r: usize, message: &[u8]) -> Parts {
    let encode = |scalar: Scalar, torsion: usize| {
        (EdwardsPoint::mul_base(&scalar) + EIGHT_TORSION[torsion]).compress().to_bytes()
    };
    let (a, r) = (scalar(1), scalar(2));
    Parts { public_key: encode(a, on_a), a, r_bytes: encode(r, on_r), r, message: message.to_vec() }
}

/// A message for which the parts of small order cancel, or do not.
fn searched(on_a: usize, on_r: usize, cancel: bool) -> Parts {
    (0..=u16::MAX)
        .map(|number| with_torsion(on_a, on_r, &number.to_le_bytes()))
        .find(|parts| {
            let sum = EIGHT_TORSION[on_a] * challenge(parts) + EIGHT_TORSION[on_r];
            sum.is_identity() == cancel
        })
        .expect("one message in eight will do")
}

fn plus_order(mut signature: [u8; 64], times: u32) -> [u8; 64] {
    for _ in 0..times {
        let mut carry = 0;
        for (byte, order) in signature[32..].iter_mut().zip(ORDER) {
            let sum = u16::from(*byte) + u16::from(order) + carry;
            *byte = sum as u8;
            carry = sum >> 8;
        }
    }
    signature
}

/// The y that is p + `above`, with either sign.
fn unreduced(above: u8, sign: u8) -> [u8; 32] {
    let mut bytes = [0xff; 32];
    (bytes[0], bytes[31]) = (0xed + above, 0x7f | sign);
    bytes
}

fn predicates() -> Vec<Value> {
    let honest = with_torsion(0, 0, b"honest");
    let small = |point: usize| EIGHT_TORSION[point].compress().to_bytes();
    let mut all = Vec::new();
    let mut push =
        |name: &str, parts: &Parts, signature: [u8; 64]| all.push(predicate(name, parts, signature));
    push("honest", &honest, sign(&honest));
    let both = Parts {
        public_key: small(1),
        a: Scalar::ZERO,
        r_bytes: small(2),
        r: Scalar::ZERO,
        ..with_torsion(0, 0, b"")
    };
    push("S = 0, A and R of small order", &both, sign(&both));
    let key = Parts { public_key: small(3), a: Scalar::ZERO, ..with_torsion(0, 0, b"A of small order") };
    push("A of small order", &key, sign(&key));
    let key =
        Parts { public_key: small(3), a: Scalar::ZERO, ..with_torsion(0, 5, b"A of small order, R mixed") };
    push("A of small order, R mixed", &key, sign(&key));
    let r = Parts { r_bytes: small(5), r: Scalar::ZERO, ..with_torsion(0, 0, b"R of small order") };
    push("R of small order", &r, sign(&r));
    let r = Parts { r_bytes: small(5), r: Scalar::ZERO, ..with_torsion(3, 0, b"A mixed, R of small order") };
    push("A mixed, R of small order", &r, sign(&r));
    for (name, parts) in [
        ("A and R mixed, cancelling", searched(1, 3, true)),
        ("A and R mixed, not cancelling", searched(1, 3, false)),
        ("A mixed, cancelling", searched(4, 0, true)),
        ("A mixed, not cancelling", searched(4, 0, false)),
        ("R mixed by order 2", with_torsion(0, 4, b"order 2")),
        ("R mixed by order 4", with_torsion(0, 2, b"order 4")),
        ("R mixed by order 8", with_torsion(0, 1, b"order 8")),
    ] {
        push(name, &parts, sign(&parts));
    }
    push("S + l", &honest, plus_order(sign(&honest), 1));
    push("S + 14 l", &honest, plus_order(sign(&honest), 14));
    for above in 0..19 {
        for sign_bit in [0, 0x80] {
            let bytes = unreduced(above, sign_bit);
            let r = Parts { r_bytes: bytes, r: Scalar::ZERO, ..with_torsion(0, 0, b"R unreduced") };
            push(&format!("y of R is p + {above}, sign {}", sign_bit >> 7), &r, sign(&r));
            let key = Parts { public_key: bytes, a: Scalar::ZERO, ..with_torsion(0, 0, b"A unreduced") };
            push(&format!("y of A is p + {above}, sign {}", sign_bit >> 7), &key, sign(&key));
        }
    }
    for point in 0..8 {
        let mut bytes = small(point);
        bytes[31] ^= 0x80;
        let key = Parts { public_key: bytes, a: Scalar::ZERO, ..with_torsion(0, 0, b"the other sign") };
        push(&format!("A of small order {point}, the other sign"), &key, sign(&key));
    }
    let mut other = with_torsion(0, 0, b"R with the other sign");
    other.r_bytes[31] ^= 0x80;
    push("R with the other sign, S made for it", &other, sign(&other));
    for (key, multiple) in OFF_THE_CURVE {
        for (sign_bit, message) in [(0, b"not a point 0"), (0x80, b"not a point 1")] {
            let mut bytes: [u8; 32] = hex::decode(key).expect("hex").try_into().expect("32 bytes");
            bytes[31] |= sign_bit;
            let parts =
                Parts { public_key: bytes, a: Scalar::ZERO, ..with_torsion(0, 0, message.as_slice()) };
            push(&format!("A is no point, multiple {multiple}, sign {}", sign_bit >> 7), &parts, [0; 64]);
        }
    }
    all
}

/// Values of y that no point has. A verifier that continues with the x from decoding gets Z = 0,
/// and with it an inverse of 0, at the given multiple of the key.
const OFF_THE_CURVE: [(&str, u8); 8] = [
    ("ef2945cc5383c154c6af5956a5d72edc9afe26305e08b955b5aef94077b8e608", 4),
    ("fed5ba33ac7c3eab3950a6a95a28d1236501d9cfa1f746aa4a5106bf88471977", 4),
    ("6dbfc9ea7849cc72b7d70fb4fd49aa189769049ba67ccbc9c7ed596911dd730d", 5),
    ("8040361587b6338d4828f04b02b655e76896fb64598334363812a696ee228c72", 5),
    ("68acc41a1d0e859ef75444b9387110d3c2b9958d4a05487da84b85e9f48f2c0d", 6),
    ("85533be5e2f17a6108abbb46c78eef2c3d466a72b5fab78257b47a160b70d372", 6),
    ("334afcc91ed442efdcee2aa91b37f1ddb747e2bc894c907ee4449d672afb2327", 7),
    ("bab50336e12bbd102311d556e4c80e2248b81d4376b36f811bbb6298d504dc58", 7),
];

fn predicate(name: &str, parts: &Parts, signature: [u8; 64]) -> Value {
    let key = VerifyingKey::from_bytes(&parts.public_key);
    let strict =
        key.is_ok_and(|key| key.verify_strict(&parts.message, &Signature::from_bytes(&signature)).is_ok());
    json!({
        "name": name,
        "public_key": hex::encode(parts.public_key),
        "message": hex::encode(&parts.message),
        "signature": hex::encode(signature),
        "strict": strict,
        "cofactored": cofactored(parts, signature),
    })
}

/// The point of a canonical encoding that is not of small order.
fn large_point(bytes: &[u8; 32]) -> Option<EdwardsPoint> {
    let point = curve25519_dalek::edwards::CompressedEdwardsY(*bytes).decompress()?;
    (point.compress().to_bytes() == *bytes && !point.is_small_order()).then_some(point)
}

fn cofactored(parts: &Parts, signature: [u8; 64]) -> bool {
    let (Some(a), Some(r)) = (large_point(&parts.public_key), large_point(&parts.r_bytes)) else {
        return false;
    };
    let s: [u8; 32] = signature[32..].try_into().expect("32 bytes");
    let Some(s) = Option::<Scalar>::from(Scalar::from_canonical_bytes(s)) else { return false };
    (EdwardsPoint::mul_base(&s) - r - a * challenge(parts)).mul_by_cofactor().is_identity()
}
