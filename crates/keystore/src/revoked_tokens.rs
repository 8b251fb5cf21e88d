//! The list of revoked tokens in a keystore's folder.
//!
//! The file is one that `bulla keys export --revoked` reads: one revocation id in each line. Two
//! lines before an id say more of it, and a reader that does not know them refuses more: `# tenant
//! NAME` says whose token it is, and `# expires TIME` when that token expires. An id without a
//! tenant counts for every tenant. An id without a time stays for good.

use crate::error::{Error, Result};
use bulla_files::{AtomicFile, IfExists, Visibility, escape_path, folder_of, sync_folder};
use bulla_kms::token::Revocations;
use bulla_kms::{KmsError, Name, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::str::FromStr;

const HEAD: &str = "# The revocation ids of tokens that bulla refuses. `bulla serve` writes this file.\n";
const TENANT: &str = "# tenant ";
const EXPIRES: &str = "# expires ";

/// Revoked tokens: for each tenant, the revocation ids and when the tokens expire. Ids without a
/// tenant count for every tenant.
///
/// ```
/// use bulla_keystore::RevokedTokens;
/// use bulla_kms::{Name, Timestamp};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("revoked");
/// let tenant: Name = "local".parse()?;
/// let mut revoked = RevokedTokens::read(&path)?;
/// revoked.add(Some(tenant.clone()), "0badc0de".to_owned(), Some(Timestamp::now()?));
/// revoked.write(&path)?;
///
/// let mut again = RevokedTokens::read(&path)?;
/// assert!(again.contains_any(&tenant, &["0badc0de".to_owned()]));
/// assert!(again.revocations_of(&tenant).contains("0badc0de"));
/// assert!(again.expiry_of(Some(&tenant), "0badc0de").is_some());
/// again.add_all(revoked);
/// assert_eq!(again.count(Some(&tenant)), 1);
///
/// let tomorrow = Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + 86_400_000)?;
/// again.remove_expired(tomorrow);
/// assert_eq!(again.count(Some(&tenant)), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevokedTokens(BTreeMap<Option<Name>, BTreeMap<String, Option<Timestamp>>>);

impl RevokedTokens {
    /// Reads the file, which is [`KeystoreFolder::revoked_tokens_file`]. Without a file, no token
    /// is revoked.
    ///
    /// [`KeystoreFolder::revoked_tokens_file`]: crate::KeystoreFolder::revoked_tokens_file
    ///
    /// # Errors
    /// [`Code::InvalidArgument`](bulla_kms::Code::InvalidArgument) for a file that is not such a
    /// list; those of reading.
    pub fn read(path: &Path) -> Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Error::io("cannot read", error).about_path(path)),
        };
        text.parse().map_err(|error| {
            Error::from(error).about(format!("the list of revoked tokens {}", escape_path(path)))
        })
    }

    /// Writes the file, which only its owner may read. When this returns, it is complete and on the
    /// disk.
    ///
    /// # Errors
    /// Those of writing. Then the file does not change.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = AtomicFile::create(folder_of(path), Visibility::OwnerOnly)?;
        file.file()?.write_all(self.to_string().as_bytes())?;
        file.persist(path, IfExists::Replace)?;
        sync_folder(folder_of(path))
    }

    /// Whether a token of this tenant is revoked that has any of these ids.
    pub fn contains_any(&self, tenant: &Name, ids: &[String]) -> bool {
        self.lists_for(tenant).any(|list| ids.iter().any(|id| list.contains_key(id)))
    }

    /// Returns the ids that count for a tenant.
    pub fn revocations_of(&self, tenant: &Name) -> Revocations {
        let mut ids = Revocations::default();
        self.lists_for(tenant).flat_map(BTreeMap::keys).for_each(|id| ids.add(id));
        ids
    }

    fn lists_for(&self, tenant: &Name) -> impl Iterator<Item = &BTreeMap<String, Option<Timestamp>>> {
        [None, Some(tenant.clone())].into_iter().filter_map(|owner| self.0.get(&owner))
    }

    /// Returns how many ids are listed for exactly this tenant, or for every tenant.
    pub fn count(&self, tenant: Option<&Name>) -> usize {
        self.0.get(&tenant.cloned()).map_or(0, BTreeMap::len)
    }

    /// Returns the expiry of an id that is listed for exactly this tenant, or for every tenant:
    /// `Some(None)` if it is listed for good.
    pub fn expiry_of(&self, tenant: Option<&Name>, id: &str) -> Option<Option<Timestamp>> {
        self.0.get(&tenant.cloned())?.get(id).copied()
    }

    /// Adds an id. An expiry that is known already is never brought forward.
    pub fn add(&mut self, tenant: Option<Name>, id: String, expires: Option<Timestamp>) {
        let known = self.0.entry(tenant).or_default().entry(id).or_insert(expires);
        *known = known.zip(expires).map(|(one, other)| one.max(other));
    }

    /// Adds all ids of another list.
    pub fn add_all(&mut self, others: Self) {
        for (tenant, list) in others.0 {
            for (id, expires) in list {
                self.add(tenant.clone(), id, expires);
            }
        }
    }

    /// Removes the tokens that expired before `time`.
    pub fn remove_expired(&mut self, time: Timestamp) {
        self.0.retain(|_, list| {
            list.retain(|_, expires| expires.is_none_or(|end| end >= time));
            !list.is_empty()
        });
    }
}

impl FromStr for RevokedTokens {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self, KmsError> {
        // This refuses everything that is not an id or a comment.
        text.parse::<Revocations>()?;
        let mut tokens = Self::default();
        let (mut tenant, mut expires) = (None, None);
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix(TENANT) {
                tenant = name.parse().ok();
            } else if let Some(time) = line.strip_prefix(EXPIRES) {
                expires = time.parse().ok();
            } else if !line.is_empty() && !line.starts_with('#') {
                tokens.add(tenant.take(), line.to_owned(), expires.take());
            }
        }
        Ok(tokens)
    }
}

/// The text of the file.
impl fmt::Display for RevokedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for (tenant, list) in &self.0 {
            for (id, expires) in list {
                tenant.iter().try_for_each(|tenant| writeln!(f, "{TENANT}{tenant}"))?;
                expires.iter().try_for_each(|time| writeln!(f, "{EXPIRES}{time}"))?;
                writeln!(f, "{id}")?;
            }
        }
        Ok(())
    }
}
