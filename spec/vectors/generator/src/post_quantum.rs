//! ML-DSA, SLH-DSA, their composite with Ed25519, ML-KEM and X-Wing. Signatures are the
//! deterministic ones, which every verifier accepts.

use crate::json::{Value, json};
use ed25519_dalek::{Signer as _, SigningKey};
use ml_dsa::{Keypair as _, MlDsa44, MlDsa65, MlDsa87, MlDsaParams, SignatureEncoding as _};
use ml_kem::kem::Decapsulator as _;
use ml_kem::{KeyExport as _, KeyInit as _, MlKem512, MlKem768, MlKem1024};
use sha2::{Digest as _, Sha512};
use slh_dsa::{ParameterSet, Sha2_128s, Shake128s};

const MESSAGE: &[u8] = b"a message";

/// Bytes that depend only on a name.
pub(crate) fn bytes(name: &str, length: usize) -> Vec<u8> {
    let mut out = vec![0; length];
    blake3::Hasher::new_derive_key("bulla vectors").update(name.as_bytes()).finalize_xof().fill(&mut out);
    out
}

pub(crate) fn cases() -> Value {
    json!({
        "ml_dsa": [ml_dsa::<MlDsa44>("ml-dsa-44"), ml_dsa::<MlDsa65>("ml-dsa-65"), ml_dsa::<MlDsa87>("ml-dsa-87")],
        "composite": [composite()],
        "slh_dsa": [slh_dsa::<Sha2_128s>("slh-dsa-sha2-128s"), slh_dsa::<Shake128s>("slh-dsa-shake-128s")],
        "kem": kem(),
    })
}

fn case(algorithm: &str, key: &[u8], public_key: &[u8], signature: &[u8]) -> Value {
    json!({
        "algorithm": algorithm,
        "private_key": hex::encode(key),
        "public_key": hex::encode(public_key),
        "message": hex::encode(MESSAGE),
        "signature": hex::encode(signature),
    })
}

fn ml_dsa_key<P: MlDsaParams>(name: &str) -> (Vec<u8>, ml_dsa::SigningKey<P>) {
    let seed = bytes(name, 32);
    let key = ml_dsa::SigningKey::<P>::from_seed(seed.as_slice().try_into().expect("32 bytes"));
    (seed, key)
}

fn ml_dsa<P: MlDsaParams>(algorithm: &str) -> Value {
    let (seed, key) = ml_dsa_key::<P>(algorithm);
    let signature = key.expanded_key().sign_deterministic(MESSAGE, b"").expect("an empty context");
    case(algorithm, &seed, &key.verifying_key().encode(), &signature.to_vec())
}

/// The public key of ML-DSA-65 and its seed.
pub(crate) fn ml_dsa_65() -> (Vec<u8>, Vec<u8>) {
    let (seed, key) = ml_dsa_key::<MlDsa65>("ml-dsa-65");
    (key.verifying_key().encode().to_vec(), seed)
}

/// draft-ietf-lamps-pq-composite-sigs, `id-MLDSA65-Ed25519-SHA512`.
fn composite() -> Value {
    let name = "ml-dsa-65-ed25519";
    let label = b"COMPSIG-MLDSA65-Ed25519-SHA512";
    let (seed, key) = ml_dsa_key::<MlDsa65>(name);
    let second = bytes("ml-dsa-65-ed25519, the second", 32);
    let ed25519 = SigningKey::from_bytes(second.as_slice().try_into().expect("32 bytes"));
    let signed =
        [b"CompositeAlgorithmSignatures2025".as_slice(), label, &[0], &Sha512::digest(MESSAGE)].concat();
    let first = key.expanded_key().sign_deterministic(&signed, label).expect("a short context").to_vec();
    case(
        name,
        &[seed, second].concat(),
        &[key.verifying_key().encode().as_slice(), &ed25519.verifying_key().to_bytes()].concat(),
        &[first.as_slice(), &ed25519.sign(&signed).to_bytes()].concat(),
    )
}

fn slh_dsa<P: ParameterSet>(algorithm: &str) -> Value {
    let seeds = bytes(algorithm, 48);
    let key = slh_dsa::SigningKey::<P>::slh_keygen_internal(&seeds[..16], &seeds[16..32], &seeds[32..]);
    let signature = key.try_sign_with_context(MESSAGE, b"", None).expect("an empty context");
    case(algorithm, &key.to_vec(), &key.verifying_key().to_vec(), &signature.to_vec())
}

fn kem() -> Vec<Value> {
    macro_rules! ml_kem {
        ($set:ty, $name:literal) => {{
            let seed = bytes($name, 64);
            let key = ml_kem::DecapsulationKey::<$set>::new_from_slice(&seed).expect("64 bytes");
            let random = bytes(concat!($name, ", what is encapsulated"), 32);
            let public = key.encapsulation_key().clone();
            let (ciphertext, shared) =
                public.encapsulate_deterministic(random.as_slice().try_into().expect("32 bytes"));
            kem_case($name, &seed, &public.to_bytes(), &ciphertext, &shared)
        }};
    }
    let (seed, public, ciphertext, shared) = x_wing();
    vec![
        ml_kem!(MlKem512, "ml-kem-512"),
        ml_kem!(MlKem768, "ml-kem-768"),
        ml_kem!(MlKem1024, "ml-kem-1024"),
        kem_case("x-wing", &seed, &public, &ciphertext, &shared),
    ]
}

fn kem_case(algorithm: &str, seed: &[u8], public_key: &[u8], ciphertext: &[u8], shared_key: &[u8]) -> Value {
    json!({
        "algorithm": algorithm,
        "private_key": hex::encode(seed),
        "public_key": hex::encode(public_key),
        "ciphertext": hex::encode(ciphertext),
        "shared_key": hex::encode(shared_key),
    })
}

/// Seed, public key, ciphertext, shared key.
pub(crate) fn x_wing() -> (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>) {
    let seed = bytes("x-wing", 32);
    let key = x_wing::DecapsulationKey::new_from_slice(&seed).expect("32 bytes");
    let random = bytes("x-wing, what is encapsulated", 64);
    let public = key.encapsulation_key().clone();
    let (ciphertext, shared) =
        public.encapsulate_deterministic(random.as_slice().try_into().expect("64 bytes"));
    (seed, public.to_bytes().to_vec(), ciphertext.to_vec(), shared.to_vec())
}
