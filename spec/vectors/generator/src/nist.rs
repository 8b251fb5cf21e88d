//! RSA, and ECDSA on P-384 and P-521. Salts and seeds of RSA come from names, so that the file is
//! the same each time, and nonces of ECDSA are those of RFC 6979.

use crate::json::{Value, json};
use crate::keys::der;
use base64ct::{Base64, Encoding as _};
use chacha20::ChaCha20Rng;
use rsa::oaep::Oaep;
use rsa::pss::Pss;
use rsa::rand_core::SeedableRng as _;
use rsa::signature::hazmat::PrehashSigner as _;
use rsa::{BoxedUint, Pkcs1v15Sign, PrivateKey};
use sha2::{Digest, Sha256, Sha384, Sha512};

const MESSAGE: &[u8] = b"a message";

pub(crate) fn cases() -> Value {
    let keys = [
        RsaKey::read("rsa-2048", include_str!("../keys/rsa-2048.base64")),
        RsaKey::read("rsa-3072", include_str!("../keys/rsa-3072.base64")),
        RsaKey::read("rsa-4096", include_str!("../keys/rsa-4096.base64")),
    ];
    let mut signatures = Vec::new();
    // All schemes with the shortest key, and the usual one with each.
    for padding in [Padding::Pss, Padding::PssLongestSalt, Padding::Pkcs1v15] {
        signatures.push(keys[0].signature::<Sha256>("sha2-256", padding));
        signatures.push(keys[0].signature::<Sha384>("sha2-384", padding));
        signatures.push(keys[0].signature::<Sha512>("sha2-512", padding));
    }
    signatures.extend(keys[1..].iter().map(|key| key.signature::<Sha256>("sha2-256", Padding::Pss)));
    let mut ciphertexts = Vec::new();
    for key in &keys {
        ciphertexts.push(key.ciphertext(b"", b"a plaintext"));
        ciphertexts.push(key.ciphertext(b"a label", b""));
    }
    json!({
        "rsa_keys": keys.iter().map(RsaKey::value).collect::<Vec<_>>(),
        "rsa_signatures": signatures,
        "rsa_oaep": ciphertexts,
        "ecdsa": ecdsa(),
    })
}

/// How a message is signed by RSA.
#[derive(Clone, Copy)]
enum Padding {
    /// With a salt as long as the digest.
    Pss,
    PssLongestSalt,
    Pkcs1v15,
}

/// A key that OpenSSL made: an `RSAPrivateKey` of RFC 8017, section A.1.2.
struct RsaKey {
    algorithm: &'static str,
    private: Vec<u8>,
    public: Vec<u8>,
    bytes: usize,
    key: PrivateKey,
}

impl RsaKey {
    fn read(algorithm: &'static str, base64: &str) -> Self {
        let text: String = base64.split_whitespace().collect();
        let private = Base64::decode_vec(&text).expect("base64");
        // The version, n, e, d, p, q, and more.
        let [_, n, e, _, p, q, ..] = &integers(&private)[..] else { panic!("not an RSAPrivateKey") };
        let public = der(0x30, &[der(2, n), der(2, e)].concat());
        let [p, q, e] = [p, q, e].map(|bytes| BoxedUint::from_be_slice_vartime(bytes));
        let key = PrivateKey::from_p_q(p, q, e).expect("a key of RSA");
        Self { algorithm, public, bytes: n.len() - 1, private, key }
    }

    fn value(&self) -> Value {
        json!({
            "algorithm": self.algorithm,
            "private_key": hex::encode(&self.private),
            "public_key": hex::encode(&self.public),
        })
    }

    /// Random numbers that depend only on a name.
    fn random(&self, name: &str) -> ChaCha20Rng {
        ChaCha20Rng::from_seed(blake3::derive_key(
            "bulla vectors",
            format!("{} {name}", self.algorithm).as_bytes(),
        ))
    }

    fn signature<D>(&self, hash: &str, padding: Padding) -> Value
    where
        D: Digest + sha2::digest::FixedOutputReset + sha2::digest::const_oid::AssociatedOid,
    {
        let length = <D as Digest>::output_size();
        let digest = D::digest(MESSAGE);
        let (name, salt) = match padding {
            Padding::Pss => ("pss", Some(length)),
            // RFC 8017, section 9.1.1, with a modulus of a whole number of bytes.
            Padding::PssLongestSalt => ("pss", Some(self.bytes - length - 2)),
            Padding::Pkcs1v15 => ("pkcs1v15", None),
        };
        let rng = &mut self.random(&format!("{name} {hash} {salt:?}"));
        let made = match salt {
            Some(salt) => self.key.sign_with_rng(rng, Pss::<D>::new_with_salt(salt), &digest),
            None => self.key.sign_with_rng(rng, Pkcs1v15Sign::new::<D>(), &digest),
        };
        json!({
            "algorithm": self.algorithm,
            "hash": hash,
            "padding": name,
            "salt_length": salt.unwrap_or(0),
            "message": hex::encode(MESSAGE),
            "signature": hex::encode(made.expect("a signature")),
        })
    }

    /// By OAEP with SHA-256 and MGF1 with SHA-256.
    fn ciphertext(&self, label: &[u8], plaintext: &[u8]) -> Value {
        let rng = &mut self.random(&format!("oaep {}", hex::encode(label)));
        let padding = Oaep::<Sha256>::new_with_label(label);
        let made = self.key.to_public_key().encrypt(rng, padding, plaintext).expect("a ciphertext");
        json!({
            "algorithm": self.algorithm,
            "label": hex::encode(label),
            "plaintext": hex::encode(plaintext),
            "ciphertext": hex::encode(made),
        })
    }
}

/// The contents of the integers in a sequence in DER.
fn integers(sequence: &[u8]) -> Vec<&[u8]> {
    let (0x30, mut rest, []) = element(sequence) else { panic!("not a sequence") };
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (2, content, after) = element(rest) else { panic!("not an integer") };
        all.push(content);
        rest = after;
    }
    all
}

/// The tag and the content of the first element in DER, and what follows.
fn element(bytes: &[u8]) -> (u8, &[u8], &[u8]) {
    let [tag, first, rest @ ..] = bytes else { panic!("too short") };
    let (length, rest) = match first.checked_sub(0x80) {
        None => (usize::from(*first), rest),
        Some(count) => {
            let (length, rest) = rest.split_at(count.into());
            (length.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)), rest)
        }
    };
    let (content, after) = rest.split_at(length);
    (*tag, content, after)
}

/// The keys of RFC 6979, sections A.2.6 and A.2.7. Public keys are uncompressed points.
fn ecdsa() -> Vec<Value> {
    macro_rules! cases {
        ($curve:ident, $name:literal, $scalar:expr, $hash:literal, $digest:ty, $known:literal) => {{
            use $curve::ecdsa::{Signature, SigningKey};

            let key = SigningKey::from_slice(&hex::decode($scalar).expect("hex")).expect("a scalar");
            let case = |message: &str, hash: &str, digest: &[u8]| {
                let signature: Signature = key.sign_prehash(digest).expect("a digest");
                let lower = signature.normalize_s();
                json!({
                    "algorithm": $name,
                    "hash": hash,
                    "private_key": hex::encode(key.to_bytes()),
                    "public_key": hex::encode(key.verifying_key().to_sec1_point(false).as_bytes()),
                    "message": hex::encode(message),
                    "signature": hex::encode(lower.to_bytes()),
                })
            };
            let own = case("sample", $hash, &<$digest>::digest("sample"));
            let known = own.member("signature").and_then(Value::as_str);
            assert!(known.is_some_and(|text| text.starts_with($known)), "RFC 6979, A.2.6 and A.2.7");
            let other = match $hash {
                "sha2-384" => case("test", "sha2-512", &Sha512::digest("test")),
                _ => case("test", "sha2-256", &Sha256::digest("test")),
            };
            [own, other, case("", $hash, &<$digest>::digest(""))]
        }};
    }
    let p384 = cases!(
        p384,
        "ecdsa-p384",
        "6b9d3dad2e1b8c1c05b19875b6659f4de23c3b667bf297ba9aa47740787137d896d5724e4c70a825f872c9ea60d2edf5",
        "sha2-384",
        Sha384,
        "94edbb92a5ecb8aa"
    );
    let p521 = cases!(
        p521,
        "ecdsa-p521",
        concat!(
            "00fad06daa62ba3b25d2fb40133da757205de67f5bb0018fee8c86e1b68c7e75caa896eb32f1f47c70855836a6d16fcc1466f6d8",
            "fbec67db89ec0c08b0e996b83538"
        ),
        "sha2-512",
        Sha512,
        "00c328fafcbd79dd"
    );
    p384.into_iter().chain(p521).collect()
}
