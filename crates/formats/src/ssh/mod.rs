//! The signatures of `ssh-keygen -Y sign` (OpenSSH's `PROTOCOL.sshsig`), which git makes too, and
//! the files that say whose they may be.
//!
//! A signature has the signer's public key or certificate, a *namespace*, and a digest. The
//! namespace says what the signature is for, so that none passes for one with another purpose.

mod allowed_signers;
mod certificate;
mod key;
mod krl;
mod login;
mod patterns;
mod revoked;

pub use self::allowed_signers::{AllowedSigners, Refusal, parse_time};
pub use self::certificate::NewSshCertificate;
pub use self::key::{SshCertificate, SshKey, SshSigner, rsa_signature_blob, signature_blob};
pub use self::login::is_login_request;
pub use self::patterns::MAX_PRINCIPAL_LEN;
pub use self::revoked::RevokedKeys;

use std::fmt;

use base64ct::{Base64, Encoding as _};
use ssh_encoding::{Decode, Encode};
use ssh_key::Signature;

use crate::content::Coverage;
use crate::error::{FormatError, MessageSigner};

/// What the signed bytes and the file begin with.
const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
/// The length of a line of base64 that OpenSSH writes.
const LINE_LEN: usize = 70;
/// The most bytes of a namespace.
const MAX_NAMESPACE_LEN: usize = 255;

/// The namespace of files, by convention.
pub const FILE_NAMESPACE: &str = "file";

pub(crate) fn begins_like_one(bytes: &[u8]) -> bool {
    bytes.starts_with(BEGIN.as_bytes())
}

/// A signature. `Display` writes it as OpenSSH does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshSignature {
    signer: SshSigner,
    namespace: String,
    reserved: Vec<u8>,
    coverage: Coverage,
    /// The algorithm and the bytes of the signature, as they are in the file.
    signature: Vec<u8>,
}

/// A namespace in one line without control characters.
///
/// # Errors
/// It is empty, longer than 255 bytes, or has a control character.
///
/// ```
/// use bulla_formats::ssh;
///
/// assert!(ssh::check_namespace(ssh::FILE_NAMESPACE).is_ok());
/// assert!(ssh::check_namespace("").is_err());
/// ```
pub fn check_namespace(namespace: &str) -> Result<(), FormatError> {
    if namespace.is_empty() {
        return Err(FormatError::new("the namespace is empty"));
    }
    if namespace.len() > MAX_NAMESPACE_LEN {
        return Err(FormatError::new(format!("the namespace is longer than {MAX_NAMESPACE_LEN} bytes")));
    }
    if namespace.chars().any(char::is_control) {
        return Err(FormatError::new("the namespace has a control character"));
    }
    Ok(())
}

/// Signs the SHA-512 digest of a file in a namespace, and writes the signature.
///
/// # Errors
/// The signer's key is neither one of Ed25519 nor of ECDSA; the namespace is not possible; the
/// errors of the signer.
///
/// ```
/// use bulla_formats::ssh::{self, SshKey, SshSignature};
/// use bulla_formats::{ContentHasher, Coverage, MessageSigner};
/// # use bulla_kms::{Algorithm, Keystore, KeyVersionId, NewKey, PublicKey};
/// # struct KeystoreSigner<'a>(&'a Keystore, &'a KeyVersionId);
/// # impl MessageSigner for KeystoreSigner<'_> {
/// #     type Error = Box<dyn std::error::Error>;
/// #     fn sign(&mut self, message: &[u8]) -> Result<(PublicKey, Vec<u8>), Self::Error> {
/// #         Ok((self.0.public_key(self.1)?, self.0.sign(self.1, message)?.bytes))
/// #     }
/// # }
/// # let keystore = Keystore::in_memory()?;
/// # let key = keystore.create_key(NewKey::new("a".parse()?, "b".parse()?, Algorithm::EcdsaP256))?;
/// let mut hasher = ContentHasher::new(Coverage::Sha512);
/// hasher.update(b"a file");
/// let digest = hasher.finish()?;
/// let mut signer = KeystoreSigner(&keystore, &key);
/// let text = ssh::sign(&mut signer, "file", &digest)?;
///
/// let signature = SshSignature::parse(&text)?;
/// assert_eq!(signature.coverage(), Coverage::Sha512);
/// assert_eq!(signature.namespace(), "file");
/// assert_eq!(signature.signer().key(), &SshKey::of(&keystore.public_key(&key)?)?);
/// assert!(signature.verifies(&digest));
/// assert_eq!(signature.to_string(), text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sign<S: MessageSigner>(signer: &mut S, namespace: &str, digest: &[u8]) -> Result<String, S::Error> {
    check_namespace(namespace)?;
    let message = signed_bytes(namespace, &[], Coverage::Sha512, digest)?;
    let (public_key, signature) = signer.sign(&message)?;
    let file = SshSignature {
        signer: SshSigner::Key(SshKey::of(&public_key)?),
        namespace: namespace.to_owned(),
        reserved: Vec::new(),
        coverage: Coverage::Sha512,
        signature: key::signature(&public_key, &signature)?
            .try_into()
            .map_err(|_| FormatError::new("the signature is too long"))?,
    };
    Ok(file.to_string())
}

/// Signs the SHA-512 digest of a file in a namespace, by whatever has the signer's private key,
/// such as an agent of OpenSSH. `sign` gets the bytes to sign, and returns the signature as the
/// protocols of SSH have it ([`signature_blob`]).
///
/// # Errors
/// The namespace is not possible; the errors of `sign`; the signature does not verify.
///
/// ```
/// use bulla_formats::FormatError;
/// use bulla_formats::ssh::{self, SshKey, SshSigner};
/// # use bulla_kms::{Algorithm, Keystore, NewKey};
/// # let keystore = Keystore::in_memory()?;
/// # let id = keystore.create_key(NewKey::new("a".parse()?, "b".parse()?, Algorithm::Ed25519))?;
/// let public_key = keystore.public_key(&id)?;
/// let signer = SshSigner::Key(SshKey::of(&public_key)?);
/// let signature = ssh::sign_with(signer.clone(), "git", &[7; 64], |message| {
///     let signature = keystore.sign(&id, message).map_err(|error| error.to_string()).unwrap();
///     ssh::signature_blob(&public_key, &signature.bytes)
/// })?;
/// assert!(signature.verifies(&[7; 64]));
/// let wrong = ssh::sign_with(signer, "git", &[7; 64], |_| ssh::signature_blob(&public_key, &[1; 64]));
/// assert!(wrong.is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sign_with<E: From<FormatError>>(
    signer: SshSigner,
    namespace: &str,
    digest: &[u8],
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
) -> Result<SshSignature, E> {
    check_namespace(namespace)?;
    let message = signed_bytes(namespace, &[], Coverage::Sha512, digest)?;
    let signature = SshSignature {
        signer,
        namespace: namespace.to_owned(),
        reserved: Vec::new(),
        coverage: Coverage::Sha512,
        signature: sign(&message)?,
    };
    if !signature.verifies(digest) {
        return Err(FormatError::new("the signature that was made does not verify").into());
    }
    Ok(signature)
}

/// The bytes that a signature signs.
fn signed_bytes(
    namespace: &str,
    reserved: &[u8],
    coverage: Coverage,
    digest: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let mut message = MAGIC.to_vec();
    for field in [namespace.as_bytes(), reserved, hash_name(coverage).as_bytes(), digest] {
        field.encode(&mut message).map_err(|_| FormatError::new("a field is too long"))?;
    }
    Ok(message)
}

fn hash_name(coverage: Coverage) -> &'static str {
    if coverage == Coverage::Sha256 { "sha256" } else { "sha512" }
}

impl SshSignature {
    /// Reads a signature.
    ///
    /// # Errors
    /// The text is not a signature: the error says what is wrong. Keys of hardware tokens
    /// (`sk-...`) are read, and do not verify.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let bytes = dearmor(text)?;
        let malformed = |what: &str| FormatError::new(format!("{what} is malformed"));
        let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| malformed("the beginning of its bytes"))?;
        let reader = &mut rest;
        let version = u32::decode(reader).map_err(|_| malformed("its version"))?;
        if version != VERSION {
            return Err(FormatError::new(format!("it has version {version} of the format, and not 1")));
        }
        let mut field = |what: &str| Vec::<u8>::decode(reader).map_err(|_| malformed(what));
        let signer = SshSigner::parse(&field("its public key")?)?;
        let namespace = String::from_utf8(field("its namespace")?).map_err(|_| malformed("its namespace"))?;
        check_namespace(&namespace)?;
        let reserved = field("its reserved field")?;
        let coverage = match &field("the name of its hash function")?[..] {
            b"sha256" => Coverage::Sha256,
            b"sha512" => Coverage::Sha512,
            _ => return Err(FormatError::new("its hash function is neither sha256 nor sha512")),
        };
        let signature = field("the signature in it")?;
        Signature::try_from(&signature[..]).map_err(|_| malformed("the signature in it"))?;
        if !rest.is_empty() {
            return Err(FormatError::new("there are bytes after its end"));
        }
        Ok(Self { signer, namespace, reserved, coverage, signature })
    }

    /// The key or the certificate that the signature names. It proves nothing.
    pub fn signer(&self) -> &SshSigner {
        &self.signer
    }

    /// What the signature is for.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Which digest of the file is signed.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// Whether the key that the signature names signed the file with this digest, in the namespace
    /// of the signature. This does not say whose key it is.
    pub fn verifies(&self, digest: &[u8]) -> bool {
        let message = signed_bytes(&self.namespace, &self.reserved, self.coverage, digest);
        match (message, Signature::try_from(&self.signature[..])) {
            (Ok(message), Ok(signature)) => self.signer.key().verifies(&message, &signature),
            _ => false,
        }
    }

    fn to_bytes(&self) -> Result<Vec<u8>, ssh_encoding::Error> {
        let mut bytes = MAGIC.to_vec();
        VERSION.encode(&mut bytes)?;
        self.signer.blob().encode(&mut bytes)?;
        let hash = hash_name(self.coverage).as_bytes();
        for field in [self.namespace.as_bytes(), &self.reserved, hash, &self.signature] {
            field.encode(&mut bytes)?;
        }
        Ok(bytes)
    }
}

impl fmt::Display for SshSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.to_bytes().map_err(|_| fmt::Error)?;
        let text = Base64::encode_string(&bytes);
        writeln!(f, "{BEGIN}")?;
        for line in text.as_bytes().chunks(LINE_LEN) {
            writeln!(f, "{}", str::from_utf8(line).map_err(|_| fmt::Error)?)?;
        }
        writeln!(f, "{END}")
    }
}

/// The bytes between the two lines of dashes.
fn dearmor(text: &str) -> Result<Vec<u8>, FormatError> {
    let mut lines = text.lines().map(str::trim_end);
    if lines.next() != Some(BEGIN) {
        return Err(FormatError::new(format!("line 1 is not `{BEGIN}`")));
    }
    let mut base64 = String::new();
    let is_cut = loop {
        match lines.next() {
            None => break true,
            Some(END) => break false,
            Some(line) => base64.push_str(line),
        }
    };
    if is_cut {
        return Err(FormatError::new(format!("it is cut: there is no line `{END}`")));
    }
    if lines.any(|line| !line.is_empty()) {
        return Err(FormatError::new("there is text after its last line"));
    }
    Base64::decode_vec(&base64).map_err(|_| FormatError::new("its lines are not base64"))
}
