//! RSA in software, by `aws-lc-rs` (RFC 8017): signatures of PSS and of PKCS#1 v1.5, and encryption
//! by OAEP with SHA-256.
//!
//! The material is an `RSAPrivateKey` in DER, with two primes. The public key is an `RSAPublicKey`
//! in DER. The exponent is 65537 in all keys, so that each length of the modulus has one length of
//! public keys, and no key has a small exponent.

use std::sync::Arc;

use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{
    KeySize, OAEP_SHA256_MGF1SHA256, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
    PublicEncryptingKey,
};
use aws_lc_rs::signature::{
    KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
    RsaParameters, RsaPssSaltLength, RsaSignatureEncoding, VerificationAlgorithm as _,
};
use zeroize::Zeroizing;

use super::interface::{
    Backend, Capabilities, DecryptRequest, EncryptRequest, EncryptionMode, KeyMaterial, PrivateKey,
    RsaMessage, SOFTWARE, VerifyRequest, invalid_ciphertext,
};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::{EncodedKey, Prepared};
use crate::signature_scheme::{HashFunction, PssSaltLength, RsaPadding};

#[derive(Debug)]
pub(super) struct RsaBackend;

impl Backend for RsaBackend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        algorithm.is_rsa().then_some(Capabilities::default().material_is_key(true))
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        let size = match algorithm {
            Algorithm::Rsa2048 => KeySize::Rsa2048,
            Algorithm::Rsa3072 => KeySize::Rsa3072,
            _ => KeySize::Rsa4096,
        };
        let failed = |_| KmsError::new(Code::RandomUnavailable, "aws-lc made no key of RSA");
        let pkcs8 = RsaKeyPair::generate(size).and_then(|pair| pair.as_der()).map_err(failed)?;
        private_key_of(pkcs8.as_ref()).ok_or_else(|| failed(aws_lc_rs::error::Unspecified))
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        Ok(Arc::new(RsaPrivateKey::load(algorithm, material)?))
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        check_public_key(algorithm, public_key).map_err(|why| {
            let message = format!("not a public key of {algorithm}: {why}");
            KmsError::new(Code::InvalidPublicKey, message)
        })?;
        Ok(Box::new(()))
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        let digest = HashFunction::Sha256.hash(request.message);
        let message = RsaMessage::new(HashFunction::Sha256, RsaPadding::default(), &digest);
        self.verify_rsa(request.public_key, message, request.signature)
    }

    fn verify_rsa(&self, public_key: &EncodedKey, message: RsaMessage<'_>, signature: &[u8]) -> Verdict {
        let is_key = public_key.prepared::<()>().is_some();
        let has_length = signature.len() == public_key.algorithm().output_length();
        let Some(digest) = imported(&message).filter(|_| is_key && has_length) else {
            return Verdict::Invalid;
        };
        let is_valid = |scheme: &RsaParameters| {
            scheme.verify_digest_sig(public_key.as_bytes(), &digest, signature).is_ok()
        };
        match verification_schemes(&message).iter().any(is_valid) {
            true => Verdict::Valid,
            false => Verdict::Invalid,
        }
    }

    fn encrypt(&self, public_key: &EncodedKey, label: &[u8], plaintext: &[u8]) -> Result<Vec<u8>> {
        let algorithm = public_key.algorithm();
        let most = max_plaintext(algorithm);
        if plaintext.len() > most {
            let message = format!(
                "a key of {algorithm} encrypts at most {most} bytes: encrypt the data with a data key, and this with the RSA key"
            );
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        let failed = |_| KmsError::new(Code::RandomUnavailable, "aws-lc did not encrypt by RSA");
        let key = PublicEncryptingKey::from_der(&public_key_info(public_key.as_bytes()))
            .map_err(|_| KmsError::new(Code::InvalidPublicKey, "aws-lc does not read the public key"))?;
        let key = OaepPublicEncryptingKey::new(key).map_err(failed)?;
        let mut ciphertext = vec![0; key.ciphertext_size()];
        let label = (!label.is_empty()).then_some(label);
        key.encrypt(&OAEP_SHA256_MGF1SHA256, plaintext, &mut ciphertext, label).map_err(failed)?;
        Ok(ciphertext)
    }
}

/// The most bytes that a key encrypts by OAEP with SHA-256 (RFC 8017, section 7.1.1).
fn max_plaintext(algorithm: Algorithm) -> usize {
    algorithm.output_length() - 2 * 32 - 2
}

/// A key that is ready for both uses. `aws-lc` wipes its memory when it frees it.
struct RsaPrivateKey {
    algorithm: Algorithm,
    pair: RsaKeyPair,
    decrypting: OaepPrivateDecryptingKey,
}

impl RsaPrivateKey {
    fn load(algorithm: Algorithm, material: &KeyMaterial) -> Result<Self> {
        let invalid =
            || KmsError::corrupt(format!("a stored key of {algorithm} is not an RSAPrivateKey of it"));
        let pkcs8 = private_key_info(material).ok_or_else(invalid)?;
        // This checks that the parts of the key match.
        let pair = RsaKeyPair::from_pkcs8(&pkcs8).map_err(|_| invalid())?;
        check_public_key(algorithm, pair.public_key().as_ref()).map_err(|_| invalid())?;
        // Each key has one form.
        if pair.as_der().map_err(|_| invalid())?.as_ref() != pkcs8.as_slice() {
            return Err(invalid());
        }
        let decrypting = PrivateDecryptingKey::from_pkcs8(&pkcs8).map_err(|_| invalid())?;
        let decrypting = OaepPrivateDecryptingKey::new(decrypting).map_err(|_| invalid())?;
        Ok(Self { algorithm, pair, decrypting })
    }
}

impl PrivateKey for RsaPrivateKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.pair.public_key().as_ref().to_vec())
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let mut signature = vec![0; self.algorithm.output_length()];
        let signed = self.pair.sign(&RSA_PSS_SHA256, &SystemRandom::new(), message, &mut signature);
        signed.map(|()| signature).map_err(|_| not_signed())
    }

    fn sign_rsa(&self, message: RsaMessage<'_>) -> Result<Vec<u8>> {
        let wrong = || KmsError::new(Code::InvalidArgument, "the digest does not have the length of one");
        let digest = imported(&message).ok_or_else(wrong)?;
        let scheme = signing_scheme(self.algorithm, &message)?;
        let mut signature = vec![0; self.algorithm.output_length()];
        let signed = self.pair.sign_digest(scheme, &digest, &mut signature);
        signed.map(|()| signature).map_err(|_| not_signed())
    }

    fn encrypt(&self, _request: EncryptRequest<'_>, _output: &mut Vec<u8>) -> Result<()> {
        Err(KmsError::new(Code::KeyUsageMismatch, "the public key encrypts"))
    }

    fn decrypt(&self, request: DecryptRequest<'_>) -> Result<Zeroizing<Vec<u8>>> {
        if request.mode != EncryptionMode::Direct || !request.nonce.is_empty() {
            return Err(invalid_ciphertext());
        }
        let label = (!request.associated_data.is_empty()).then_some(request.associated_data);
        let mut buffer = Zeroizing::new(vec![0; self.decrypting.min_output_size()]);
        let opened = self.decrypting.decrypt(&OAEP_SHA256_MGF1SHA256, request.ciphertext, &mut buffer, label);
        let length = opened.map_err(|_| invalid_ciphertext())?.len();
        buffer.truncate(length);
        Ok(buffer)
    }
}

fn not_signed() -> KmsError {
    KmsError::new(Code::RandomUnavailable, "aws-lc did not sign by RSA")
}

fn function(hash: HashFunction) -> &'static digest::Algorithm {
    match hash {
        HashFunction::Sha256 => &digest::SHA256,
        HashFunction::Sha384 => &digest::SHA384,
        HashFunction::Sha512 => &digest::SHA512,
    }
}

/// The digest; none if it has the wrong length.
fn imported(message: &RsaMessage<'_>) -> Option<Digest> {
    Digest::import_less_safe(message.digest, function(message.hash)).ok()
}

/// The longest salt (RFC 8017, section 9.1.1): the modulus has a multiple of 8 bits.
fn max_salt(algorithm: Algorithm, hash: HashFunction) -> usize {
    algorithm.output_length() - hash.digest_length() - 2
}

static PSS: [RsaSignatureEncoding; 3] = [RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512];
static PSS_MAX: [RsaSignatureEncoding; 3] = [
    RSA_PSS_SHA256.with_pss_salt_length(RsaPssSaltLength::Max),
    RSA_PSS_SHA384.with_pss_salt_length(RsaPssSaltLength::Max),
    RSA_PSS_SHA512.with_pss_salt_length(RsaPssSaltLength::Max),
];
static PKCS1: [RsaSignatureEncoding; 3] = [RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512];

fn signing_scheme(algorithm: Algorithm, message: &RsaMessage<'_>) -> Result<&'static dyn RsaEncoding> {
    let hash = message.hash;
    let schemes = match message.padding {
        RsaPadding::Pkcs1v15 => &PKCS1,
        RsaPadding::Pss(PssSaltLength::Hash) => &PSS,
        RsaPadding::Pss(PssSaltLength::Max | PssSaltLength::Auto) => &PSS_MAX,
        RsaPadding::Pss(PssSaltLength::Bytes(length)) => match usize::from(length) {
            length if length == hash.digest_length() => &PSS,
            length if length == max_salt(algorithm, hash) => &PSS_MAX,
            length => {
                let (least, most) = (hash.digest_length(), max_salt(algorithm, hash));
                let message = format!(
                    "a key of {algorithm} signs digests of {hash} with a salt of {least} or {most} bytes, not {length}"
                );
                return Err(KmsError::new(Code::InvalidArgument, message));
            }
        },
    };
    Ok(&schemes[hash as usize])
}

/// The schemes of which one must verify.
fn verification_schemes(message: &RsaMessage<'_>) -> Vec<RsaParameters> {
    /// Lengths of salts that programs use beside that of the digest and the longest one.
    const SALT_LENGTHS: [u16; 5] = [32, 48, 64, 20, 0];
    let pss = |length| {
        let scheme = match message.hash {
            HashFunction::Sha256 => RSA_PSS_2048_8192_SHA256,
            HashFunction::Sha384 => RSA_PSS_2048_8192_SHA384,
            HashFunction::Sha512 => RSA_PSS_2048_8192_SHA512,
        };
        scheme.with_pss_salt_length(length)
    };
    match message.padding {
        RsaPadding::Pkcs1v15 => vec![match message.hash {
            HashFunction::Sha256 => RSA_PKCS1_2048_8192_SHA256,
            HashFunction::Sha384 => RSA_PKCS1_2048_8192_SHA384,
            HashFunction::Sha512 => RSA_PKCS1_2048_8192_SHA512,
        }],
        RsaPadding::Pss(PssSaltLength::Hash) => vec![pss(RsaPssSaltLength::Digest)],
        RsaPadding::Pss(PssSaltLength::Max) => vec![pss(RsaPssSaltLength::Max)],
        RsaPadding::Pss(PssSaltLength::Bytes(length)) => vec![pss(RsaPssSaltLength::Custom(length))],
        RsaPadding::Pss(PssSaltLength::Auto) => {
            let others = SALT_LENGTHS.map(|length| pss(RsaPssSaltLength::Custom(length)));
            [pss(RsaPssSaltLength::Max)].into_iter().chain(others).collect()
        }
    }
}

/// An error unless the bytes are the only form of a public key of this length: an `RSAPublicKey`
/// whose modulus has exactly this many bits and is odd, with the exponent 65537.
fn check_public_key(algorithm: Algorithm, bytes: &[u8]) -> Result<(), &'static str> {
    let length = algorithm.output_length();
    if bytes.len() != algorithm.public_key_length() {
        return Err("it is not an RSAPublicKey with a modulus of that length and the exponent 65537");
    }
    let be = |length: usize| u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    // A SEQUENCE of two INTEGERs. The modulus has a byte 0 before its first bit.
    let (whole, modulus) = (be(length + 10), be(length + 1));
    let begin = [0x30, 0x82, whole[0], whole[1], 0x02, 0x82, modulus[0], modulus[1], 0];
    let rest = bytes.strip_prefix(&begin).ok_or("it is not an RSAPublicKey in DER")?;
    let modulus =
        rest.strip_suffix(&[0x02, 0x03, 0x01, 0x00, 0x01]).ok_or("its public exponent is not 65537")?;
    match (modulus.first(), modulus.last()) {
        (Some(first), Some(last)) if first & 0x80 != 0 && last & 1 != 0 => Ok(()),
        _ => Err("its modulus is even, or too short"),
    }
}

/// The identifier of RSA keys (RFC 8017, appendix A.1): `rsaEncryption`, with NULL.
const IDENTIFIER: &[u8] =
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

/// A tag, the length in two bytes, and the content.
fn element(tag: u8, content: &[&[u8]]) -> Option<Vec<u8>> {
    let length = u16::try_from(content.iter().map(|part| part.len()).sum::<usize>()).ok()?;
    let [high, low] = length.to_be_bytes();
    let mut bytes = vec![tag, 0x82, high, low];
    content.iter().for_each(|part| bytes.extend_from_slice(part));
    (high > 0).then_some(bytes)
}

/// SubjectPublicKeyInfo of a valid public key.
fn public_key_info(public_key: &[u8]) -> Vec<u8> {
    let bits = element(0x03, &[&[0], public_key]).unwrap_or_default();
    element(0x30, &[IDENTIFIER, &bits]).unwrap_or_default()
}

/// PKCS#8 of an `RSAPrivateKey`; none if its length cannot be one.
fn private_key_info(material: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let octets = Zeroizing::new(element(0x04, &[material])?);
    element(0x30, &[&[0x02, 0x01, 0x00], IDENTIFIER, &octets]).map(Zeroizing::new)
}

/// The `RSAPrivateKey` in PKCS#8.
fn private_key_of(pkcs8: &[u8]) -> Option<KeyMaterial> {
    const BEGIN: usize = 4 + 3 + IDENTIFIER.len() + 4;
    let material = Zeroizing::new(pkcs8.get(BEGIN..)?.to_vec());
    (private_key_info(&material)?.as_slice() == pkcs8).then_some(material)
}
