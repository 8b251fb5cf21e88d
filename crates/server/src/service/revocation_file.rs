//! The list of revoked tokens of a running service, and its file.

use std::path::PathBuf;

use bulla_keystore::RevokedTokens;
use bulla_kms::{Code, KmsError, Result};

use crate::access::ExpiryClock;
use crate::cluster::Revocation;

/// The most revocations of a tenant while holders may add their own tokens. A holder can make as
/// many tokens as it likes.
const MAX_HOLDER_REVOCATIONS: usize = 10_000;

/// Who revokes a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevokedBy {
    Holder,
    /// A caller who may revoke every token of its tenant.
    Minter,
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
        self.tokens.add_all(RevokedTokens::read(path)?);
        Ok(())
    }

    /// Adds a token, and drops those that ended long ago.
    ///
    /// # Errors
    /// [`Code::Busy`] if there are too many to add one for its holder.
    pub(super) fn add(&mut self, revocation: Revocation, by: RevokedBy) -> Result<()> {
        self.tokens.remove_expired(self.clock.passed());
        let Revocation { tenant, id, expires } = revocation;
        let is_full = self.tokens.count(tenant.as_ref()) >= MAX_HOLDER_REVOCATIONS
            && self.tokens.expiry_of(tenant.as_ref(), &id).is_none();
        if by == RevokedBy::Holder && is_full {
            let message = "too many tokens are revoked; ask somebody who may mint tokens to revoke this one";
            return Err(KmsError::new(Code::Busy, message));
        }
        self.tokens.add(tenant, id, expires);
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
        self.tokens.write(path).map_err(|error| {
            let message = format!(
                "the token is refused until the service ends, but {} was not written: {error}",
                path.display()
            );
            KmsError::new(Code::Io, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_kms::Timestamp;
    use bulla_kms::token::Revocations;

    fn at(millis: u64) -> Option<Timestamp> {
        Timestamp::from_unix_millis(millis).ok()
    }

    fn of(tenant: &str, id: &str, expires: Option<Timestamp>) -> Revocation {
        Revocation { tenant: Some(tenant.parse().unwrap()), id: id.to_owned(), expires }
    }

    /// The ids that count for a tenant.
    fn ids(list: &RevocationFile, tenant: &str) -> Vec<String> {
        list.tokens.revocations_of(&tenant.parse().unwrap()).ids().map(str::to_owned).collect()
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
            list.tokens.contains_any(&tenant.parse().unwrap(), &["ff".to_owned(), id.to_owned()])
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
        assert!(!list.tokens.to_string().contains("expires 1970"), "{}", list.tokens.to_string());
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
            list.tokens.expiry_of(Some(&"a".parse().unwrap()), "0a").unwrap()
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
            list.tokens.add(Some("a".parse().unwrap()), format!("{number:08x}"), None);
        }
        assert_eq!(list.add(of("a", "aa", None), RevokedBy::Holder).unwrap_err().code, Code::Busy);
        list.add(of("a", "00000000", None), RevokedBy::Holder).unwrap();
        list.add(of("a", "aa", None), RevokedBy::Minter).unwrap();
        list.add(of("b", "bb", None), RevokedBy::Holder).unwrap();
        assert!(ids(&list, "a").contains(&"aa".to_owned()) && ids(&list, "b") == ["bb"]);
    }
}
