//! The names of ed25519-dalek: the same bytes and the same answers as the original.

use crate::cases::{self, Case};
use bulla_ed25519 as ours;
use bulla_ed25519::{Signer as _, Verifier as _};
use ed25519_dalek as dalek;

/// What the original says about a case: by `verify`, and by `verify_strict`.
fn of_dalek(case: &Case) -> [bool; 2] {
    let Ok(key) = dalek::VerifyingKey::from_bytes(&case.public_key) else { return [false; 2] };
    let signature = dalek::Signature::from_bytes(&case.signature);
    [key.verify(&case.message, &signature).is_ok(), key.verify_strict(&case.message, &signature).is_ok()]
}

fn of_ours(case: &Case) -> [bool; 2] {
    let Ok(key) = ours::VerifyingKey::from_bytes(&case.public_key) else { return [false; 2] };
    let signature = ours::Signature::from_bytes(&case.signature);
    [key.verify(&case.message, &signature).is_ok(), key.verify_strict(&case.message, &signature).is_ok()]
}

/// With `legacy_compatibility`, S that is not reduced is another question.
fn is_comparable(case: &Case) -> bool {
    !cfg!(feature = "legacy_compatibility") || case.signature[63] <= 0x10
}

#[test]
fn verify_and_verify_strict_answer_as_dalek_on_every_kind_of_case() {
    let mut accepted = [0; 2];
    for case in cases::cases(3000, 60, 41).iter().filter(|case| is_comparable(case)) {
        let answers = of_ours(case);
        assert_eq!(answers, of_dalek(case), "{case:x?}");
        accepted = [0, 1].map(|n| accepted[n] + usize::from(answers[n]));
    }
    assert!(accepted[0] > accepted[1] && accepted[1] > 0, "{accepted:?}");
}

#[test]
fn points_of_small_order_and_torsion_are_answered_as_by_dalek() {
    let mut random = fastrand::Rng::with_seed(42);
    for on_a in 0..8 {
        for on_r in 0..8 {
            let (a, r) = (cases::scalar(&mut random), cases::scalar(&mut random));
            let case = Case::with_torsion("", a, on_a, r, on_r, vec![on_a as u8, on_r as u8]);
            assert_eq!(of_ours(&case), of_dalek(&case), "{on_a} {on_r}");
        }
    }
    for encoding in cases::odd_encodings() {
        for other in cases::odd_encodings() {
            let mut case = cases::cases(1, 3, 43).remove(0);
            case.public_key = encoding;
            case.signature[..32].copy_from_slice(&other);
            case.signature[32..].fill(0);
            for message in 0..8 {
                case.message = vec![message];
                assert_eq!(of_ours(&case), of_dalek(&case), "{case:x?}");
            }
        }
    }
}

#[test]
fn s_of_the_order_or_more_is_refused_but_for_legacy_compatibility() {
    /// l, little-endian.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let key = ours::SigningKey::from_bytes(&[7; 32]);
    let mut bytes = key.sign(b"message").to_bytes();
    let mut carry = 0;
    for (byte, order) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    let signature = ours::Signature::from_bytes(&bytes);
    let is_legacy = cfg!(feature = "legacy_compatibility");
    assert_eq!(key.verify(b"message", &signature).is_ok(), is_legacy);
    assert_eq!(key.verify_strict(b"message", &signature).is_ok(), is_legacy);
    let public_key = key.verifying_key();
    let item = ours::VerifyItem { public_key: public_key.as_bytes(), message: b"message", signature: &bytes };
    assert!(!ours::verify_strict(&item).is_valid(), "what is ours is never relaxed");
}

#[test]
fn keys_and_signatures_have_the_bytes_of_dalek() {
    let mut random = fastrand::Rng::with_seed(44);
    for length in 0..100 {
        let (mut seed, mut message) = ([0; 32], vec![0; length]);
        random.fill(&mut seed);
        random.fill(&mut message);
        let (ours, theirs) = (ours::SigningKey::from_bytes(&seed), dalek::SigningKey::from_bytes(&seed));
        assert_eq!(ours.to_keypair_bytes(), theirs.to_keypair_bytes());
        assert_eq!(ours.to_scalar(), theirs.to_scalar());
        assert_eq!(ours.to_scalar_bytes(), theirs.to_scalar_bytes());
        assert_eq!(ours.verifying_key().to_montgomery(), theirs.verifying_key().to_montgomery());
        let signature = ours.sign(&message);
        assert_eq!(signature, dalek::Signer::sign(&theirs, &message));
        use ours::ed25519::signature::{MultipartSigner as _, MultipartVerifier as _};
        let parts = [&message[..length / 2], &message[length / 2..], &[]];
        assert_eq!(ours.multipart_sign(&parts), signature);
        assert!(ours.verifying_key().multipart_verify(&parts, &signature).is_ok());
        assert!(ours.verifying_key().multipart_verify(&parts[1..], &signature).is_ok() == (length < 2));
    }
}

#[test]
fn slices_of_other_lengths_are_no_keys() {
    for length in (0..100).filter(|length| *length != 32) {
        let bytes = vec![1; length];
        assert!(ours::SigningKey::try_from(&bytes[..]).is_err(), "{length}");
        assert!(ours::VerifyingKey::try_from(&bytes[..]).is_err(), "{length}");
    }
    let key = ours::SigningKey::from_bytes(&[7; 32]);
    assert_eq!(ours::SigningKey::try_from(&[7; 32][..]).unwrap(), key);
    assert_eq!(
        ours::VerifyingKey::try_from(&key.verifying_key().to_bytes()[..]).unwrap(),
        key.verifying_key()
    );
    assert_eq!(key.clone(), key);
    assert_ne!(key, ours::SigningKey::from_bytes(&[8; 32]));
}

#[cfg(feature = "digest")]
#[test]
fn contexts_have_at_most_255_bytes_and_give_the_signatures_of_dalek() {
    use sha2::{Digest as _, Sha512};
    let (ours, theirs) = (ours::SigningKey::from_bytes(&[7; 32]), dalek::SigningKey::from_bytes(&[7; 32]));
    let digest = Sha512::new_with_prefix(b"message");
    for length in [0, 1, 254, 255] {
        let context = vec![9; length];
        let signature = ours.sign_prehashed(digest.clone(), Some(&context)).unwrap();
        assert_eq!(signature, theirs.sign_prehashed(digest.clone(), Some(&context)).unwrap());
        assert!(ours.verify_prehashed(digest.clone(), Some(&context), &signature).is_ok());
        let key = ours.verifying_key();
        assert!(key.verify_prehashed_strict(digest.clone(), Some(&context), &signature).is_ok());
        assert!(key.verify_prehashed_strict(digest.clone(), Some(b"other"), &signature).is_err());
    }
    let signature = ours.sign_prehashed(digest.clone(), None).unwrap();
    let long = Some([0; 256]);
    let long = long.as_ref().map(|context| &context[..]);
    assert!(ours.sign_prehashed(digest.clone(), long).is_err());
    assert!(ours.verify_prehashed(digest.clone(), long, &signature).is_err());
    assert!(ours.verifying_key().verify_prehashed_strict(digest, long, &signature).is_err());
}

#[cfg(feature = "pem")]
#[test]
fn keys_in_pkcs8_are_those_of_dalek() {
    use ours::pkcs8::{
        DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _,
    };
    use ours::pkcs8::{KeypairBytes, spki::der::pem::LineEnding};
    let (ours, theirs) = (ours::SigningKey::from_bytes(&[7; 32]), dalek::SigningKey::from_bytes(&[7; 32]));
    let pem = ours.to_pkcs8_pem(LineEnding::LF).unwrap();
    assert_eq!(*pem, *theirs.to_pkcs8_pem(LineEnding::LF).unwrap());
    assert_eq!(ours::SigningKey::from_pkcs8_pem(&pem).unwrap(), ours);
    // Version 1 has no public key.
    let v1 = KeypairBytes { secret_key: [7; 32], public_key: None }.to_pkcs8_der().unwrap();
    assert_eq!(ours::SigningKey::from_pkcs8_der(v1.as_bytes()).unwrap(), ours);
    let other = ours::SigningKey::from_bytes(&[8; 32]).verifying_key();
    let wrong = KeypairBytes { secret_key: [7; 32], public_key: Some(other.into()) }.to_pkcs8_der().unwrap();
    assert!(ours::SigningKey::from_pkcs8_der(wrong.as_bytes()).is_err(), "the public key of another");
    let public = ours.verifying_key().to_public_key_pem(LineEnding::LF).unwrap();
    assert_eq!(ours::VerifyingKey::from_public_key_pem(&public).unwrap(), ours.verifying_key());
    for broken in ["", &public[1..], &public.replace("PUBLIC", "PRIVATE"), &public.replace("MC", "MD")] {
        assert!(ours::VerifyingKey::from_public_key_pem(broken).is_err(), "{broken}");
    }
    assert!(ours::SigningKey::from_pkcs8_pem(&public).is_err());
}

#[cfg(feature = "serde")]
#[test]
fn serde_has_the_form_of_dalek_and_refuses_other_lengths() {
    let (ours, theirs) = (ours::SigningKey::from_bytes(&[7; 32]), dalek::SigningKey::from_bytes(&[7; 32]));
    let text = serde_json::to_string(&ours).unwrap();
    assert_eq!(text, serde_json::to_string(&theirs).unwrap());
    assert_eq!(serde_json::from_str::<ours::SigningKey>(&text).unwrap(), ours);
    let public = serde_json::to_string(&ours.verifying_key()).unwrap();
    assert_eq!(public, serde_json::to_string(&theirs.verifying_key()).unwrap());
    assert_eq!(serde_json::from_str::<ours::VerifyingKey>(&public).unwrap(), ours.verifying_key());
    for text in [text, public] {
        for wrong in
            [text.replace(']', ",1]"), text.replacen(',', ",256,", 1), text.replacen("[", "[1000,", 1)]
        {
            assert!(serde_json::from_str::<ours::SigningKey>(&wrong).is_err(), "{wrong}");
            assert!(serde_json::from_str::<ours::VerifyingKey>(&wrong).is_err(), "{wrong}");
        }
        let short = format!("{}]", text.rsplit_once(',').unwrap().0);
        assert!(serde_json::from_str::<ours::SigningKey>(&short).is_err());
        assert!(serde_json::from_str::<ours::VerifyingKey>(&short).is_err());
    }
}
