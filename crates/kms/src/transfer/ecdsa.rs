//! Signatures of ECDSA in DER, as X.509, TLS and Vault have them: an ECDSA-Sig-Value (RFC 3279,
//! section 2.2.3).

use pkcs8::der::asn1::{AnyRef, UintRef};
use pkcs8::der::{Decode, Encode, Reader, SliceReader, Tag};

use crate::algorithm::Algorithm;
#[cfg(feature = "nist")]
use crate::backend::nist_curves;
use crate::backend::p256;

/// A signature of ECDSA as DER, from r and s in the form of
/// [`Keystore::sign`](crate::Keystore::sign). None if it does not have the algorithm's length.
///
/// ```
/// use bulla_kms::transfer::{ecdsa_from_der, ecdsa_to_der};
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::EcdsaP256);
/// let signature = keystore.sign(&keystore.create_key(new)?, b"a message")?.bytes;
/// let der = ecdsa_to_der(Algorithm::EcdsaP256, &signature).unwrap();
/// assert_eq!(ecdsa_from_der(Algorithm::EcdsaP256, &der), Some(signature));
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub fn ecdsa_to_der(algorithm: Algorithm, signature: &[u8]) -> Option<Vec<u8>> {
    if !algorithm.is_ecdsa() || signature.len() != algorithm.output_length() {
        return None;
    }
    let (r, s) = signature.split_at(signature.len() / 2);
    let [r, s] = [r, s].map(|number| UintRef::new(number).and_then(|number| number.to_der()));
    let both = [r.ok()?, s.ok()?].concat();
    AnyRef::new(Tag::Sequence, &both).and_then(|sequence| sequence.to_der()).ok()
}

/// A signature of ECDSA from DER, with the lower one of two values of s that verify, which is the
/// only one that [`Keystore::verify`](crate::Keystore::verify) takes. None if the bytes are not a
/// signature of the algorithm in DER.
pub fn ecdsa_from_der(algorithm: Algorithm, der: &[u8]) -> Option<Vec<u8>> {
    let read = || {
        let mut reader = SliceReader::new(der)?;
        let both = reader
            .sequence(|reader| Ok::<_, der::Error>([UintRef::decode(reader)?, UintRef::decode(reader)?]))?;
        reader.finish()?;
        Ok::<_, der::Error>(both)
    };
    let numbers: [UintRef<'_>; 2] = read().ok()?;
    let length = algorithm.output_length() / 2;
    let mut signature = vec![0; 2 * length];
    for (place, number) in numbers.into_iter().enumerate() {
        let end = (place + 1) * length;
        let begin = end.checked_sub(number.as_bytes().len()).filter(|begin| *begin >= place * length)?;
        signature[begin..end].copy_from_slice(number.as_bytes());
    }
    with_lower_s(algorithm, &signature)
}

/// The signature with the lower one of two values of s that verify. None if the bytes are not an r
/// and an s of the algorithm.
///
/// ```
/// use bulla_kms::transfer::with_lower_s;
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::EcdsaP256);
/// let signature = keystore.sign(&keystore.create_key(new)?, b"a message")?.bytes;
/// assert_eq!(with_lower_s(Algorithm::EcdsaP256, &signature), Some(signature));
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub fn with_lower_s(algorithm: Algorithm, signature: &[u8]) -> Option<Vec<u8>> {
    match algorithm {
        Algorithm::EcdsaP256 => p256::normalize(signature),
        #[cfg(feature = "nist")]
        _ => nist_curves::normalize(algorithm, signature),
        #[cfg(not(feature = "nist"))]
        _ => None,
    }
}
