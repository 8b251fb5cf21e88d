//! Signatures as Vault writes them: `vault:vN:` and the bytes.

use std::io::Write as _;
use std::num::NonZeroU32;
use std::ops::Range;

use base64_simd::{STANDARD, URL_SAFE_NO_PAD};
use bulla_kms::{Algorithm, Code, KmsError, Signature};
use p256::ecdsa::Signature as Ecdsa;

use super::error::{Result, VaultError};
use super::lenient::{decode_into, joined};
use super::scheme::{Marshaling, Scheme};
use crate::error::ApiError;

const PREFIX: &str = "vault:v";

/// The error for a version below the minimum version.
pub(super) const TOO_OLD: &str = "ciphertext or signature version is disallowed by policy (too old)";

/// Appends a signature.
pub(super) fn write(out: &mut Vec<u8>, signature: &Signature, marshaling: Marshaling) {
    let version = signature.key.version();
    // Writing to a vector cannot fail.
    let _ = write!(out, "{PREFIX}{version}:");
    let algorithm = signature.key.key_id().algorithm();
    match (marshaling, algorithm) {
        (Marshaling::Jws, _) => URL_SAFE_NO_PAD.encode_append(&signature.bytes, out),
        (Marshaling::Asn1, Algorithm::EcdsaP256) => match Ecdsa::from_slice(&signature.bytes) {
            Ok(signature) => STANDARD.encode_append(signature.to_der().as_bytes(), out),
            Err(_) => STANDARD.encode_append(&signature.bytes, out),
        },
        (Marshaling::Asn1, _) => STANDARD.encode_append(&signature.bytes, out),
    }
}

/// Reads a signature: its version, and where its bytes are in `buffer`, to which they are appended.
///
/// Vault takes both values of s that verify in ECDSA, and so does this: it appends the lower one.
///
/// # Errors
/// The text is not a signature.
pub(super) fn read(text: &str, scheme: Scheme, buffer: &mut Vec<u8>) -> Result<(NonZeroU32, Range<usize>)> {
    let invalid = |words: &'static str| move || VaultError::invalid(words);
    let rest = text.strip_prefix(PREFIX).ok_or_else(invalid("invalid signature: no prefix"))?;
    let (version, bytes) =
        rest.split_once(':').ok_or_else(invalid("invalid signature: wrong number of fields"))?;
    let undecoded = invalid("invalid signature: version number could not be decoded");
    let version: i64 = version.parse().map_err(|_| undecoded())?;
    let begin = buffer.len();
    let decoded = match scheme.marshaling {
        Marshaling::Asn1 => decode_into(bytes, "signature", buffer).is_ok(),
        Marshaling::Jws => URL_SAFE_NO_PAD.decode_append(&*joined(bytes), buffer).is_ok(),
    };
    if !decoded {
        return Err(VaultError::invalid("invalid base64 signature value"));
    }
    if scheme.algorithm == Algorithm::EcdsaP256 {
        let ecdsa = match scheme.marshaling {
            Marshaling::Asn1 => {
                let read = Ecdsa::from_der(&buffer[begin..])
                    .map_err(|_| VaultError::invalid("supplied signature is invalid"));
                Some(read?)
            }
            Marshaling::Jws => Ecdsa::from_slice(&buffer[begin..]).ok(),
        };
        if let Some(ecdsa) = ecdsa {
            buffer.truncate(begin);
            buffer.extend_from_slice(&ecdsa.normalize_s().to_bytes());
        }
    }
    match u32::try_from(version).map(NonZeroU32::new) {
        Ok(Some(version)) => Ok((version, begin..buffer.len())),
        Err(_) if version > 0 => {
            let error = KmsError::new(Code::UnknownVersion, "no key has so many versions");
            Err(VaultError::in_words("invalid signature: version is too new", ApiError::from(error)))
        }
        _ => {
            let error = KmsError::new(Code::VersionNotUsable, "versions begin with 1");
            Err(VaultError::in_words(TOO_OLD, ApiError::from(error)))
        }
    }
}

#[cfg(test)]
mod tests {
    use bulla_kms::{KeyVersionId, Keystore, NewKey};
    use proptest::prelude::*;

    use super::super::scheme::Input;
    use super::*;

    fn scheme(algorithm: Algorithm, marshaling: Marshaling) -> Scheme {
        Scheme { algorithm, marshaling, input: Input::Message }
    }

    fn key(keystore: &Keystore, algorithm: Algorithm) -> KeyVersionId {
        let new = NewKey::new("local".parse().unwrap(), "transit".parse().unwrap(), algorithm);
        keystore.create_key(new).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let keystore = Keystore::in_memory();
        for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256, Algorithm::MlDsa44] {
            let key = key(&keystore, algorithm);
            for number in 0..40_u8 {
                let signature = keystore.sign(&key, &[number]).unwrap();
                for marshaling in [Marshaling::Asn1, Marshaling::Jws] {
                    let (mut text, mut buffer) = (Vec::new(), b"before".to_vec());
                    write(&mut text, &signature, marshaling);
                    let text = String::from_utf8(text).unwrap();
                    let (version, range) = read(&text, scheme(algorithm, marshaling), &mut buffer).unwrap();
                    assert_eq!((version.get(), &buffer[range]), (1, &signature.bytes[..]), "{text}");
                }
            }
        }
    }

    #[test]
    fn the_higher_s_of_ecdsa_is_read_as_the_lower_one() {
        let keystore = Keystore::in_memory();
        let signature = keystore.sign(&key(&keystore, Algorithm::EcdsaP256), b"x").unwrap();
        let low = Ecdsa::from_slice(&signature.bytes).unwrap();
        let (r, s) = low.split_scalars();
        let high = Ecdsa::from_scalars(r.to_bytes(), (-*s).to_bytes()).unwrap();
        assert_ne!(low, high);
        for (marshaling, bytes) in [
            (Marshaling::Asn1, high.to_der().as_bytes().to_vec()),
            (Marshaling::Jws, high.to_bytes().to_vec()),
        ] {
            let base64 = match marshaling {
                Marshaling::Asn1 => STANDARD.encode_to_string(&bytes),
                Marshaling::Jws => URL_SAFE_NO_PAD.encode_to_string(&bytes),
            };
            let mut buffer = Vec::new();
            read(&format!("vault:v1:{base64}"), scheme(Algorithm::EcdsaP256, marshaling), &mut buffer)
                .unwrap();
            assert_eq!(buffer, signature.bytes);
        }
    }

    #[test]
    fn what_is_no_signature_is_called_what_vault_calls_it() {
        let said = |text: &str, algorithm| {
            let error = read(text, scheme(algorithm, Marshaling::Asn1), &mut Vec::new()).unwrap_err();
            error.words().to_owned()
        };
        let cases = [
            ("", "invalid signature: no prefix"),
            ("bulla:v1:AAAA", "invalid signature: no prefix"),
            ("vault:v1", "invalid signature: wrong number of fields"),
            ("vault:vx:AAAA", "invalid signature: version number could not be decoded"),
            ("vault:v0:AAAA", TOO_OLD),
            ("vault:v-1:AAAA", TOO_OLD),
            ("vault:v4294967296:AAAA", "invalid signature: version is too new"),
            ("vault:v1:AAA", "invalid base64 signature value"),
            ("vault:v1:A-_A", "invalid base64 signature value"),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Algorithm::Ed25519), words, "{text}");
        }
        for text in ["vault:v1:AAAA", "vault:v1:", "vault:v1:MAYCAQACAQA=", "vault:v1:MAYCAQECAQEA"] {
            assert_eq!(said(text, Algorithm::EcdsaP256), "supplied signature is invalid", "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(vault:v)?[0-9:-]{0,12}[A-Za-z0-9+/=_\u{e9}-]{0,100}", jws: bool) {
            let marshaling = if jws { Marshaling::Jws } else { Marshaling::Asn1 };
            for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256] {
                let mut buffer = vec![1, 2];
                if let Ok((_, range)) = read(&text, scheme(algorithm, marshaling), &mut buffer) {
                    prop_assert!(range.start == 2 && range.end == buffer.len());
                }
            }
        }
    }
}
