//! Lists of revoked keys: a public key on each line, as `ssh-keygen -Y verify -r` takes them.

use super::key::{SshKey, SshSigner};
use crate::error::FormatError;

/// What OpenSSH's binary lists begin with.
const KRL: &[u8] = b"SSHKRL\n\0";

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
}

impl RevokedKeys {
    /// Reads a list. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// A line is no public key: a list that is half understood would let keys pass.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.starts_with(KRL) {
            let message = "it is a key revocation list in OpenSSH's binary form, which bulla does not read: \
                give a list with a public key on each line";
            return Err(FormatError::new(message));
        }
        let text = str::from_utf8(bytes).map_err(|_| FormatError::new("it is not UTF-8"))?;
        let lines = text.lines().enumerate().map(|(number, line)| (number, line.trim()));
        let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let key = |(number, line): (usize, &str)| {
            SshKey::parse(line).map_err(|error| FormatError::new(format!("line {}: {error}", number + 1)))
        };
        Ok(Self { keys: keys.map(key).collect::<Result<_, _>>()? })
    }

    /// Whether the list has the signer's key, or the key of the authority that vouches for it.
    pub fn revokes(&self, signer: &SshSigner) -> bool {
        let is_in = |key: &SshKey| self.keys.contains(key);
        is_in(signer.key()) || signer.authority().is_some_and(is_in)
    }
}
