//! Recipients of age (age-encryption.org/v1, native X25519 recipients).

mod file;

use std::fmt;
use std::str::FromStr;

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::provider::{KeyEncryptionKey, KeyProvider, WrappingParams, malformed_identity, only_encrypts};
use crate::error::{Code, KmsError, Result};
use crate::random;

const METHOD: &str = "age-x25519";
const RECIPIENT: Hrp = Hrp::parse_unchecked("age");
const IDENTITY: Hrp = Hrp::parse_unchecked("age-secret-key-");

/// The length of an identity's text. It is reserved at once: a growing string would leave parts of
/// the secret behind in memory.
const IDENTITY_LEN: usize = 74;
const ENCODES: &str = "32 bytes are within the length that Bech32 allows";

/// The public half: `age1...`, as `age-keygen` prints it.
///
/// The wrapping parameters are a complete age file with the 32 bytes of the key; the program `age`
/// can decrypt it.
#[derive(Clone, PartialEq, Eq)]
pub struct AgeRecipient(PublicKey);

/// The private half: `AGE-SECRET-KEY-1...`.
#[derive(Clone)]
pub struct AgeIdentity(StaticSecret);

impl AgeIdentity {
    /// A new identity.
    ///
    /// # Errors
    /// [`Code::RandomUnavailable`].
    pub fn generate() -> Result<Self> {
        let mut secret = Zeroizing::new([0; 32]);
        random::fill(&mut *secret)?;
        Ok(Self(StaticSecret::from(*secret)))
    }

    /// The recipient that others encrypt to.
    pub fn recipient(&self) -> AgeRecipient {
        AgeRecipient(PublicKey::from(&self.0))
    }

    /// The secret text.
    pub(super) fn secret(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(IDENTITY_LEN));
        bech32::encode_upper_to_fmt::<Bech32, _>(&mut *text, IDENTITY, self.0.as_bytes()).expect(ENCODES);
        text
    }
}

impl KeyProvider for AgeRecipient {
    fn method(&self) -> &str {
        METHOD
    }

    fn key_name(&self) -> String {
        self.to_string()
    }

    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        let mut key = Zeroizing::new([0; 32]);
        random::fill(&mut *key)?;
        let params = file::encrypt(&self.0, &key)?.ok_or_else(|| {
            KmsError::new(
                Code::InvalidPublicKey,
                format!("{self} is of low order: anybody could decrypt what is encrypted to it"),
            )
        })?;
        Ok((key, params))
    }

    fn recover_kek(&self, _params: &WrappingParams) -> Result<KeyEncryptionKey> {
        Err(only_encrypts(self))
    }
}

impl KeyProvider for AgeIdentity {
    fn method(&self) -> &str {
        METHOD
    }

    fn key_name(&self) -> String {
        self.recipient().to_string()
    }

    fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
        self.recipient().new_kek()
    }

    fn recover_kek(&self, params: &WrappingParams) -> Result<KeyEncryptionKey> {
        file::decrypt(&self.0, params.bytes()).ok_or_else(|| self.wrong_key())
    }
}

impl fmt::Display for AgeRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bech32::encode_lower_to_fmt::<Bech32, _>(f, RECIPIENT, self.0.as_bytes()).map_err(|_| fmt::Error)
    }
}

impl fmt::Debug for AgeRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgeRecipient({self})")
    }
}

/// Shows the public half.
impl fmt::Debug for AgeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgeIdentity({})", self.recipient())
    }
}

impl FromStr for AgeRecipient {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let bytes = decode(text, RECIPIENT).filter(|_| !text.bytes().any(|byte| byte.is_ascii_uppercase()));
        bytes.map(|bytes| Self(PublicKey::from(*bytes))).ok_or_else(|| {
            // Plugins and newer kinds of age have names between `age1` and another `1`.
            let kind = text.strip_prefix("age1").and_then(|rest| rest.rsplit_once('1')).map(|(kind, _)| kind);
            let message = match kind.filter(|kind| kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')) {
                Some(kind) => format!(
                    "this is a recipient age1{kind}1..., of an age plugin or of a newer kind, and bulla encrypts only to \
                     age1... without such a name: use `age --encrypt`, or ask for another recipient"
                ),
                None => "not a recipient of age, which is of the form age1...: it is cut or has a typing error".to_owned(),
            };
            KmsError::new(Code::InvalidPublicKey, message)
        })
    }
}

impl FromStr for AgeIdentity {
    type Err = KmsError;

    /// The error quotes nothing of the text.
    fn from_str(text: &str) -> Result<Self> {
        let bytes = decode(text, IDENTITY).filter(|_| !text.bytes().any(|byte| byte.is_ascii_lowercase()));
        bytes.map(|bytes| Self(StaticSecret::from(*bytes))).ok_or_else(malformed_identity)
    }
}

/// Reads bytes as a file of age, as a recipient and as an identity; for the fuzzers.
pub(crate) fn fuzz(bytes: &[u8]) {
    file::fuzz(bytes);
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(recipient) = text.parse::<AgeRecipient>() {
        assert_eq!(recipient.to_string(), text, "a recipient has one text");
    }
    if let Ok(identity) = text.parse::<AgeIdentity>() {
        assert_eq!(*identity.secret(), text, "an identity has one text");
    }
}

/// The 32 bytes of a Bech32 text with this prefix. The specification of age has recipients in lower
/// case and identities in upper case.
fn decode(text: &str, prefix: Hrp) -> Option<Zeroizing<[u8; 32]>> {
    let checked = CheckedHrpstring::new::<Bech32>(text).ok()?;
    // The bits after the last byte must be zero, as in segwit, or one key would have sixteen texts.
    if checked.hrp() != prefix || checked.validate_segwit_padding().is_err() {
        return None;
    }
    let mut bytes = Zeroizing::new([0; 32]);
    let mut given = checked.byte_iter();
    for byte in bytes.iter_mut() {
        *byte = given.next()?;
    }
    given.next().is_none().then_some(bytes)
}
