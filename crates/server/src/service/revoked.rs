//! Revoked tokens, kept in a file.
//!
//! The file is one that `bulla keys export --revoked` reads: one revocation id in each line. A line `# expires TIME` says when the token of
//! the next line expires. From a day after that on it is refused anyway, and the next change leaves it out.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bulla_files::{Draft, Existing, Readers, folder_of, sync_folder};
use bulla_kms::token::Revocations;
use bulla_kms::{Code, KmsError, Result, Timestamp};

const HEAD: &str = "# The revocation ids of tokens that bulla refuses. `bulla serve` writes this file.\n";
const EXPIRES: &str = "# expires ";

/// How long an expired token stays in the list, in case a clock is set back.
const GRACE_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// The most revocations while holders may add their own tokens. A holder can make as many tokens as it likes.
const MOST_BY_HOLDERS: usize = 10_000;

/// Who revokes a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revoker {
    /// Its holder.
    Holder,
    /// A caller who may revoke every token.
    Minter,
}

/// Revoked tokens.
#[derive(Debug, Default)]
pub(super) struct Revoked {
    /// None: the list is in memory only.
    path: Option<PathBuf>,
    ids: Revocations,
    expires: BTreeMap<String, Timestamp>,
}

impl Revoked {
    /// Reads the file, if it is there.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for a file that is not such a list; those of reading.
    pub(super) fn read(path: Option<PathBuf>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(KmsError::new(Code::Io, format!("cannot read {}: {error}", path.display())));
            }
        };
        let about = |error: KmsError| {
            KmsError::new(
                error.code,
                format!("the list of revoked tokens {}: {}", path.display(), error.message),
            )
        };
        let ids: Revocations = text.parse().map_err(about)?;
        let mut expires = BTreeMap::new();
        let mut said = None;
        for line in text.lines().map(str::trim) {
            if let Some(time) = line.strip_prefix(EXPIRES) {
                said = time.parse::<Timestamp>().ok();
            } else if !line.is_empty() && !line.starts_with('#') {
                expires.extend(said.take().map(|time| (line.to_owned(), time)));
            }
        }
        Ok(Self { path: Some(path), ids, expires })
    }

    /// Adds the ids from the file, which another program may have written. Ids that are only in memory stay refused.
    ///
    /// # Errors
    /// Those of [`Revoked::read`]. Then the list does not change.
    pub(super) fn read_again(&mut self) -> Result<()> {
        let Self { ids, expires, .. } = Self::read(self.path.clone())?;
        ids.ids().for_each(|id| self.ids.add(id));
        for (id, time) in expires {
            let known = self.expires.entry(id).or_insert(time);
            *known = time.max(*known);
        }
        Ok(())
    }

    /// Adds a token, and drops those that expired long enough ago.
    ///
    /// # Errors
    /// [`Code::Busy`] if there are too many to add one for its holder.
    pub(super) fn add(
        &mut self,
        id: &str,
        expires: Option<Timestamp>,
        by: Revoker,
        now: Timestamp,
    ) -> Result<()> {
        let is_over = |time: &Timestamp| time.unix_millis().saturating_add(GRACE_MILLIS) < now.unix_millis();
        let ids = &mut self.ids;
        self.expires.retain(|id, time| {
            let keep = !is_over(time);
            if !keep {
                ids.remove(id);
            }
            keep
        });
        if by == Revoker::Holder && !ids.contains(id) && ids.ids().len() >= MOST_BY_HOLDERS {
            let message = "too many tokens are revoked; ask somebody who may mint tokens to revoke this one";
            return Err(KmsError::new(Code::Busy, message));
        }
        ids.add(id);
        // A time that the token proved is not shortened by a caller's later time.
        if let Some(expires) = expires {
            let known = self.expires.entry(id.to_owned()).or_insert(expires);
            *known = expires.max(*known);
        }
        Ok(())
    }

    pub(super) fn ids(&self) -> &Revocations {
        &self.ids
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
        for id in self.ids.ids() {
            if let Some(time) = self.expires.get(id) {
                text += &format!("{EXPIRES}{time}\n");
            }
            text += id;
            text.push('\n');
        }
        text
    }
}

fn put(path: &Path, text: &str) -> std::io::Result<()> {
    let mut draft = Draft::create(folder_of(path), Readers::Owner)?;
    draft.file()?.write_all(text.as_bytes())?;
    draft.persist(path, Existing::Replaced)?;
    sync_folder(folder_of(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_unix_millis(millis).unwrap()
    }

    #[test]
    fn a_list_comes_back_from_its_file_which_only_its_owner_reads() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("revoked");
        let mut list = Revoked::read(Some(path.clone())).unwrap();
        list.add("0a", Some(at(1_000)), Revoker::Holder, at(0)).unwrap();
        list.add("0b", None, Revoker::Minter, at(0)).unwrap();
        list.write().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Revoked::read(Some(path.clone())).unwrap();
        assert_eq!((&again.ids, &again.expires), (&list.ids, &list.expires));
        let text = std::fs::read_to_string(&path).unwrap();
        let plain: Revocations = text.parse().unwrap();
        assert_eq!(plain, list.ids, "the command reads the same list");
        std::fs::write(&path, "not an id\n").unwrap();
        assert_eq!(Revoked::read(Some(path)).unwrap_err().code, Code::InvalidArgument);
    }

    #[test]
    fn what_expired_more_than_a_day_ago_is_left_out() {
        let mut list = Revoked::default();
        list.add("0a", Some(at(1_000)), Revoker::Holder, at(0)).unwrap();
        list.add("0b", None, Revoker::Holder, at(0)).unwrap();
        list.add("0c", None, Revoker::Holder, at(1_000 + GRACE_MILLIS)).unwrap();
        assert_eq!(list.ids.ids().collect::<Vec<_>>(), ["0a", "0b", "0c"]);
        list.add("0d", None, Revoker::Holder, at(1_001 + GRACE_MILLIS)).unwrap();
        assert_eq!(list.ids.ids().collect::<Vec<_>>(), ["0b", "0c", "0d"]);
        assert!(!list.text().contains("expires 1970"), "{}", list.text());
    }

    #[test]
    fn a_later_end_counts_and_a_sooner_one_does_not() {
        let mut list = Revoked::default();
        list.add("0a", Some(at(5_000)), Revoker::Holder, at(0)).unwrap();
        list.add("0a", Some(at(1_000)), Revoker::Minter, at(0)).unwrap();
        assert_eq!(list.expires["0a"], at(5_000));
        list.add("0a", Some(at(9_000)), Revoker::Minter, at(0)).unwrap();
        assert_eq!(list.expires["0a"], at(9_000));
    }

    #[test]
    fn holders_cannot_fill_the_list_so_that_minters_cannot_revoke() {
        let mut list = Revoked::default();
        for number in 0..MOST_BY_HOLDERS {
            list.add(&format!("{number:08x}"), None, Revoker::Holder, at(0)).unwrap();
        }
        assert_eq!(list.add("aa", None, Revoker::Holder, at(0)).unwrap_err().code, Code::Busy);
        list.add("00000000", None, Revoker::Holder, at(0)).unwrap();
        list.add("aa", None, Revoker::Minter, at(0)).unwrap();
        assert!(list.ids.contains("aa"));
    }
}
