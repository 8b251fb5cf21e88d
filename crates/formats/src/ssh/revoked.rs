//! Lists of revoked keys, as `ssh-keygen -Y verify -r` takes them: a public key on each line, or a
//! key revocation list in OpenSSH's binary form.

use super::key::{SshKey, SshSigner};
use super::krl::RevocationList;
use crate::error::FormatError;

/// Keys that nobody trusts any more.
///
/// ```
/// use bulla_formats::ssh::RevokedKeys;
///
/// let revoked = RevokedKeys::parse(b"# none yet\n")?;
/// # let _ = revoked;
/// assert!(RevokedKeys::parse(b"not a key\n").is_err());
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RevokedKeys {
    keys: Vec<SshKey>,
    list: RevocationList,
}

impl RevokedKeys {
    /// Reads a list. Empty lines and lines that begin with `#` are skipped. The binary form is what
    /// `ssh-keygen -k` writes: keys, fingerprints, and certificates by serial number or name.
    ///
    /// # Errors
    /// A line is no public key, or the binary list is malformed or has something critical that is
    /// unknown here: a list that is half understood would let keys pass.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        if RevocationList::begins_like_one(bytes) {
            return Ok(Self { keys: Vec::new(), list: RevocationList::parse(bytes)? });
        }
        let text = str::from_utf8(bytes).map_err(|_| FormatError::new("it is not UTF-8"))?;
        let lines = text.lines().enumerate().map(|(number, line)| (number, line.trim()));
        let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let key = |(number, line): (usize, &str)| {
            SshKey::parse(line).map_err(|error| FormatError::new(format!("line {}: {error}", number + 1)))
        };
        Ok(Self { keys: keys.map(key).collect::<Result<_, _>>()?, list: RevocationList::default() })
    }

    /// Whether the list has the signer's key, its certificate, or the key of the authority that
    /// vouches for it.
    pub fn revokes(&self, signer: &SshSigner) -> bool {
        let is_in = |key: &SshKey| self.keys.contains(key);
        is_in(signer.key()) || signer.authority().is_some_and(is_in) || self.list.revokes(signer)
    }
}
