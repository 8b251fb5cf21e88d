//! Keys of OpenSSH: lines of public keys, and private key files (`PROTOCOL.key` of OpenSSH).

use secrecy::{ExposeSecret as _, SecretString};
use ssh_key::public::{Ed25519PublicKey, KeyData};
use ssh_key::{Algorithm as SshAlgorithm, Cipher, LineEnding, PrivateKey};
use zeroize::Zeroizing;

use super::private_key::PrivateKeyData;
use super::public_key::{invalid_public, malformed, unsupported};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::public_key::PublicKey;

/// The most rounds of bcrypt-pbkdf that a private key may ask for; OpenSSH writes 16 or 24. Each
/// round costs some milliseconds.
const MAX_ROUNDS: u32 = 1024;

/// The ciphers of private keys that are read. ssh-keygen has others, which nobody should use.
const CIPHERS: [Cipher; 9] = [
    Cipher::Aes128Cbc,
    Cipher::Aes192Cbc,
    Cipher::Aes256Cbc,
    Cipher::Aes128Ctr,
    Cipher::Aes192Ctr,
    Cipher::Aes256Ctr,
    Cipher::Aes128Gcm,
    Cipher::Aes256Gcm,
    Cipher::ChaCha20Poly1305,
];

/// Writes a line as in `authorized_keys`, without a comment.
pub(super) fn public(key: &PublicKey) -> Result<String> {
    let (Algorithm::Ed25519, Ok(bytes)) = (key.algorithm(), key.as_bytes().try_into()) else {
        return Err(unsupported("OpenSSH", key.algorithm()));
    };
    let line = ssh_key::PublicKey::new(KeyData::Ed25519(Ed25519PublicKey(bytes)), "").to_openssh();
    let line = line.map_err(|_| unsupported("OpenSSH", key.algorithm()))?;
    Ok(line.trim_end().to_owned() + "\n")
}

pub(super) fn parse_public(text: &str) -> Result<PublicKey> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    if line.chars().any(crate::encoding::is_deceptive) {
        return Err(invalid_public("it is not one line of plain text"));
    }
    let read = ssh_key::PublicKey::from_openssh(line)
        .map_err(|_| invalid_public("it is not a line of the form `ssh-ed25519 BASE64 COMMENT`"))?;
    let KeyData::Ed25519(Ed25519PublicKey(bytes)) = read.key_data() else {
        return Err(invalid_public(format_args!(
            "OpenSSH keys of Ed25519 alone are read, not of {}",
            read.algorithm()
        )));
    };
    let key = PublicKey::from_bytes(Algorithm::Ed25519, bytes)?;
    let plain = public(&key)?;
    let is_plain =
        |plain: &str| line == plain || line.strip_prefix(plain).is_some_and(|rest| rest.starts_with(' '));
    if is_plain(plain.trim_end()) { Ok(key) } else { Err(invalid_public("the line has another form")) }
}

/// Reads a private key file. An encrypted one needs its passphrase.
pub(super) fn parse_private(text: &str, passphrase: Option<&SecretString>) -> Result<PrivateKeyData> {
    let key =
        PrivateKey::from_openssh(text).map_err(|_| malformed("it is not a private key file of OpenSSH"))?;
    let again = key.to_openssh(LineEnding::LF).map_err(|_| malformed("it cannot be written again"))?;
    if again.as_str() != text {
        return Err(malformed("its text has another form than the one that OpenSSH writes"));
    }
    if key.algorithm() != SshAlgorithm::Ed25519 {
        return Err(malformed(format_args!(
            "OpenSSH keys of Ed25519 alone are read, not of {}",
            key.algorithm()
        )));
    }
    let key = if key.is_encrypted() { decrypt(&key, passphrase)? } else { key };
    let pair = key.key_data().ed25519().ok_or_else(|| malformed("it is not a key of Ed25519"))?;
    let material = Zeroizing::new(pair.private.as_ref().to_vec());
    let outer = key.public_key().key_data().ed25519().map(|key| key.0);
    if outer != Some(pair.public.0) {
        return Err(malformed("the public key outside is not the one inside"));
    }
    PrivateKeyData::new(Algorithm::Ed25519, material, Some(&pair.public.0))
}

fn decrypt(key: &PrivateKey, passphrase: Option<&SecretString>) -> Result<PrivateKey> {
    if let ssh_key::Kdf::Bcrypt { rounds, .. } = key.kdf()
        && *rounds > MAX_ROUNDS
    {
        return Err(malformed(format_args!("it asks for more than {MAX_ROUNDS} rounds of bcrypt-pbkdf")));
    }
    if !CIPHERS.contains(&key.cipher()) {
        return Err(malformed(format_args!(
            "it is encrypted with {}, which is not read here; encrypt it anew: `ssh-keygen -p -Z aes256-ctr -f FILE`",
            key.cipher()
        )));
    }
    let passphrase = passphrase.ok_or_else(|| {
        KmsError::new(Code::WrongPassphrase, "the private key is encrypted: its passphrase is needed")
    })?;
    key.decrypt(passphrase.expose_secret()).map_err(|_| {
        KmsError::new(
            Code::WrongPassphrase,
            "the passphrase does not open the private key, or the file is damaged",
        )
    })
}
