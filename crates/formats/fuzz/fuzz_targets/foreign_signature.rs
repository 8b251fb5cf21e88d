//! A signature that parses in a format is written in that format as the same signature, and
//! verifying it never panics.
#![no_main]

use bulla_formats::{ContentHasher, ForeignSignature, MessageKey};
use bulla_kms::{Algorithm, PublicKey};
use libfuzzer_sys::fuzz_target;

/// Envelopes, bundles and JSON Web Signatures have other texts that are the same signature.
fn json(signature: &ForeignSignature) {
    let text = match signature {
        ForeignSignature::Dsse(envelope) => envelope.to_string(),
        ForeignSignature::Sigstore(bundle) => bundle.to_string(),
        ForeignSignature::Jws(file) => file.to_string(),
        _ => return,
    };
    assert_eq!(ForeignSignature::parse(text.as_bytes()), Ok(Some(signature.clone())));
    for (algorithm, bytes) in [(Algorithm::Ed25519, vec![1; 32]), (Algorithm::EcdsaP256, vec![2; 33])] {
        let Ok(key) = PublicKey::from_bytes(algorithm, &bytes) else { continue };
        if let Some(envelope) = signature.envelope() {
            assert!(!envelope.is_signed_by(&envelope.message(), MessageKey::Kms(&key)));
        }
        if let ForeignSignature::Jws(file) = signature {
            let content = file.payload().unwrap_or(b"content");
            let message = file.message(content).expect("it is the payload, if there is one");
            assert!(!file.is_signed_by(&message, MessageKey::Kms(&key)));
        }
        if let ForeignSignature::Sigstore(bundle) = signature {
            assert!(!bundle.is_file_signed_by(b"content", MessageKey::Kms(&key)));
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(signature)) = ForeignSignature::parse(bytes) else { return };
    json(&signature);
    let (text, coverage) = match &signature {
        ForeignSignature::Minisign(file) => (file.to_string().into_bytes(), file.coverage()),
        ForeignSignature::Ssh(file) => (file.to_string().into_bytes(), file.coverage()),
        ForeignSignature::Signify(file) => {
            let message = file.message().unwrap_or_default();
            ([file.to_string().as_bytes(), message].concat(), bulla_formats::Coverage::Whole)
        }
        _ => return,
    };
    // The end of a line may have a carriage return, which belongs to no comment.
    if !bytes.contains(&b'\r') {
        assert_eq!(ForeignSignature::parse(&text), Ok(Some(signature.clone())));
    }
    if let ForeignSignature::Ssh(file) = &signature {
        let mut hasher = ContentHasher::new(coverage);
        hasher.update(b"content");
        file.verifies(&hasher.finish().unwrap());
    }
});
