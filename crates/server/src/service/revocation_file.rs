//! Revoked tokens, kept in a file.
//!
//! The file is one that `bulla keys export --revoked` reads: one revocation id in each line. Two
//! lines before an id say more of it, and a reader that does not know them refuses more: `# tenant
//! NAME` says whose token it is, and `# expires TIME` when that token expires. An id without a
//! tenant counts for every tenant. An id without a time stays for good.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bulla_files::{AtomicFile, IfExists, Visibility, folder_of, sync_folder};
use bulla_kms::token::Revocations;
use bulla_kms::{Code, KmsError, Name, Result, Timestamp};

use crate::access::{ExpiryClock, later_expiry};
use crate::cluster::Revocation;

const HEAD: &str = "# The revocation ids of tokens that bulla refuses. `bulla serve` writes this file.\n";
const TENANT: &str = "# tenant ";
const EXPIRES: &str = "# expires ";

/// The most revocations of a tenant while holders may add their own tokens. A holder can make as
/// many tokens as it likes.
const MAX_HOLDER_REVOCATIONS: usize = 10_000;

/// The caller that revokes a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevokedBy {
    /// Its holder.
    Holder,
    /// A caller who may revoke every token of its tenant.
    Minter,
}

/// Revoked tokens: for each tenant, the revocation ids and when the tokens expire. Ids without a
/// tenant count for every tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RevokedTokens(BTreeMap<Option<Name>, BTreeMap<String, Option<Timestamp>>>);

impl RevokedTokens {
    /// Whether a token of this tenant is revoked that has these ids.
    pub(super) fn has_any(&self, tenant: &Name, ids: &[String]) -> bool {
        self.lists(tenant).any(|list| ids.iter().any(|id| list.contains_key(id)))
    }

    /// The ids that count for a tenant.
    pub(crate) fn of(&self, tenant: &Name) -> Revocations {
        let mut ids = Revocations::default();
        self.lists(tenant).flat_map(BTreeMap::keys).for_each(|id| ids.add(id));
        ids
    }

    fn lists(&self, tenant: &Name) -> impl Iterator<Item = &BTreeMap<String, Option<Timestamp>>> {
        [None, Some(tenant.clone())].into_iter().filter_map(|whose| self.0.get(&whose))
    }

    /// Adds an id. What is known already is never shortened.
    fn add(&mut self, revocation: Revocation) {
        let Revocation { tenant, id, expires } = revocation;
        let known = self.0.entry(tenant).or_default().entry(id).or_insert(expires);
        *known = later_expiry(*known, expires);
    }

    /// Drops the tokens that ended before `passed`.
    fn drop_ended(&mut self, passed: Timestamp) {
        self.0.retain(|_, list| {
            list.retain(|_, expires| expires.is_none_or(|end| end >= passed));
            !list.is_empty()
        });
    }
}

/// The list of revoked tokens, and its file.
#[derive(Debug, Default)]
pub(super) struct RevocationFile {
    /// None: the list is in memory only.
    path: Option<PathBuf>,
    tokens: RevokedTokens,
    pub(super) clock: ExpiryClock,
}

impl RevocationFile {
    /// Reads the file, if it is there.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for a file that is not such a list; those of reading.
    pub(super) fn read(path: Option<PathBuf>) -> Result<Self> {
        let mut list = Self { path, ..Self::default() };
        list.read_again()?;
        Ok(list)
    }

    /// Adds the ids from the file, which another program may have written. Ids that are only in
    /// memory stay refused.
    ///
    /// # Errors
    /// Those of [`RevocationFile::read`]. Then the list does not change.
    pub(super) fn read_again(&mut self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(KmsError::new(Code::Io, format!("cannot read {}: {error}", path.display())));
            }
        };
        text.parse::<Revocations>().map_err(|error| {
            let message = format!("the list of revoked tokens {}: {}", path.display(), error.message);
            KmsError::new(error.code, message)
        })?;
        let (mut tenant, mut expires) = (None, None);
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix(TENANT) {
                tenant = name.parse().ok();
            } else if let Some(time) = line.strip_prefix(EXPIRES) {
                expires = time.parse().ok();
            } else if !line.is_empty() && !line.starts_with('#') {
                let id = line.to_owned();
                self.tokens.add(Revocation { tenant: tenant.take(), id, expires: expires.take() });
            }
        }
        Ok(())
    }

    /// Adds a token, and drops those that ended long ago.
    ///
    /// # Errors
    /// [`Code::Busy`] if there are too many to add one for its holder.
    pub(super) fn add(&mut self, revocation: Revocation, by: RevokedBy) -> Result<()> {
        self.tokens.drop_ended(self.clock.passed());
        let of_tenant = self.tokens.0.get(&revocation.tenant);
        let is_full = of_tenant
            .is_some_and(|list| list.len() >= MAX_HOLDER_REVOCATIONS && !list.contains_key(&revocation.id));
        if by == RevokedBy::Holder && is_full {
            let message = "too many tokens are revoked; ask somebody who may mint tokens to revoke this one";
            return Err(KmsError::new(Code::Busy, message));
        }
        self.tokens.add(revocation);
        Ok(())
    }

    pub(super) fn tokens(&self) -> &RevokedTokens {
        &self.tokens
    }

    /// Puts the list on the disk, if it has a file.
    ///
    /// # Errors
    /// Those of writing. Then the file does not change.
    pub(super) fn write(&self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        put(path, &self.text()).map_err(|error| {
            let message = format!(
                "the token is refused until the service ends, but {} was not written: {error}",
                path.display()
            );
            KmsError::new(Code::Io, message)
        })
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (tenant, list) in &self.tokens.0 {
            for (id, expires) in list {
                text.extend(tenant.iter().map(|tenant| format!("{TENANT}{tenant}\n")));
                text.extend(expires.iter().map(|time| format!("{EXPIRES}{time}\n")));
                text += id;
                text.push('\n');
            }
        }
        text
    }
}

fn put(path: &Path, text: &str) -> std::io::Result<()> {
    let mut draft = AtomicFile::create(folder_of(path), Visibility::OwnerOnly)?;
    draft.file()?.write_all(text.as_bytes())?;
    draft.persist(path, IfExists::Replace)?;
    sync_folder(folder_of(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Option<Timestamp> {
        Timestamp::from_unix_millis(millis).ok()
    }

    fn of(tenant: &str, id: &str, expires: Option<Timestamp>) -> Revocation {
        Revocation { tenant: Some(tenant.parse().unwrap()), id: id.to_owned(), expires }
    }

    /// The ids that count for a tenant.
    fn ids(list: &RevocationFile, tenant: &str) -> Vec<String> {
        list.tokens.of(&tenant.parse().unwrap()).ids().map(str::to_owned).collect()
    }

    fn without_grace() -> RevocationFile {
        RevocationFile { clock: ExpiryClock::without_grace(), ..RevocationFile::default() }
    }

    #[test]
    fn a_list_comes_back_from_its_file_which_only_its_owner_reads() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("revoked");
        let mut list = RevocationFile::read(Some(path.clone())).unwrap();
        for one in
            [of("a", "0a", at(1_000)), of("a", "0b", None), of("b", "0a", at(2_000)), of("b", "0c", None)]
        {
            list.add(one, RevokedBy::Minter).unwrap();
        }
        list.add(Revocation { tenant: None, id: "0d".to_owned(), expires: at(5) }, RevokedBy::Minter)
            .unwrap();
        list.write().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = RevocationFile::read(Some(path.clone())).unwrap();
        assert_eq!(again.tokens, list.tokens);
        let text = std::fs::read_to_string(&path).unwrap();
        let plain: Revocations = text.parse().unwrap();
        assert_eq!(
            plain.ids().collect::<Vec<_>>(),
            ["0a", "0b", "0c", "0d"],
            "the command reads the same ids"
        );
        std::fs::write(&path, "not an id\n").unwrap();
        assert_eq!(RevocationFile::read(Some(path)).unwrap_err().code, Code::InvalidArgument);
    }

    #[test]
    fn an_id_without_a_tenant_counts_for_all_and_an_id_with_one_for_that_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("revoked");
        let text = "0a\n# tenant a\n# expires 1970-01-01T00:00:01.000Z\n0b\n0c\n# tenant not a name\n0d\n";
        std::fs::write(&path, text).unwrap();
        let list = RevocationFile::read(Some(path)).unwrap();
        assert_eq!(ids(&list, "a"), ["0a", "0b", "0c", "0d"]);
        assert_eq!(ids(&list, "b"), ["0a", "0c", "0d"]);
        let known = |tenant: &str, id: &str| {
            list.tokens.has_any(&tenant.parse().unwrap(), &["ff".to_owned(), id.to_owned()])
        };
        assert!(known("a", "0a") && known("b", "0a") && known("a", "0b"));
        assert!(!known("b", "0b") && !known("a", "0e"));
    }

    #[test]
    fn no_tenant_changes_what_another_one_revoked() {
        let mut list = without_grace();
        list.add(of("a", "0a", None), RevokedBy::Minter).unwrap();
        list.add(of("b", "0a", at(1)), RevokedBy::Minter).unwrap();
        list.add(of("b", "0b", None), RevokedBy::Minter).unwrap();
        assert_eq!((ids(&list, "a"), ids(&list, "b")), (vec!["0a".to_owned()], vec!["0b".to_owned()]));
    }

    #[test]
    fn what_ended_long_ago_is_left_out_and_an_id_without_an_end_stays() {
        let mut list = without_grace();
        list.add(of("a", "0a", at(1_000)), RevokedBy::Holder).unwrap();
        list.add(of("a", "0b", None), RevokedBy::Holder).unwrap();
        list.add(of("a", "0b", at(1_000)), RevokedBy::Minter).unwrap();
        list.add(of("a", "0c", at(1_000)), RevokedBy::Minter).unwrap();
        list.add(of("a", "0c", None), RevokedBy::Minter).unwrap();
        list.add(of("a", "0d", None), RevokedBy::Holder).unwrap();
        assert_eq!(ids(&list, "a"), ["0b", "0c", "0d"]);
        assert!(!list.text().contains("expires 1970"), "{}", list.text());
        let mut list = RevocationFile::default();
        list.add(of("a", "0a", at(1_000)), RevokedBy::Holder).unwrap();
        list.add(of("a", "0b", None), RevokedBy::Holder).unwrap();
        assert_eq!(ids(&list, "a"), ["0a", "0b"], "a new service does not trust its clock yet");
    }

    #[test]
    fn a_later_end_counts_and_a_sooner_one_does_not() {
        let mut list = RevocationFile::default();
        let mut end_after = |expires| {
            list.add(of("a", "0a", expires), RevokedBy::Minter).unwrap();
            list.tokens.0.values().next().unwrap()["0a"]
        };
        assert_eq!(end_after(at(5_000)), at(5_000));
        assert_eq!(end_after(at(1_000)), at(5_000));
        assert_eq!(end_after(at(9_000)), at(9_000));
        assert_eq!(end_after(None), None);
        assert_eq!(end_after(at(9_000)), None);
    }

    #[test]
    fn holders_cannot_fill_the_list_so_that_minters_or_other_tenants_cannot_revoke() {
        let mut list = RevocationFile::default();
        for number in 0..MAX_HOLDER_REVOCATIONS {
            list.tokens.add(of("a", &format!("{number:08x}"), None));
        }
        assert_eq!(list.add(of("a", "aa", None), RevokedBy::Holder).unwrap_err().code, Code::Busy);
        list.add(of("a", "00000000", None), RevokedBy::Holder).unwrap();
        list.add(of("a", "aa", None), RevokedBy::Minter).unwrap();
        list.add(of("b", "bb", None), RevokedBy::Holder).unwrap();
        assert!(ids(&list, "a").contains(&"aa".to_owned()) && ids(&list, "b") == ["bb"]);
    }
}
