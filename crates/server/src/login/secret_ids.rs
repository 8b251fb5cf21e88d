//! Secret ids of AppRoles: what a program shows together with the role's id.
//!
//! A secret id is not kept. It is found by its accessor, a keyed digest of the role and the secret
//! id: so no secret is compared byte by byte, and what is kept is of no use to anybody who reads
//! it. A use is counted by changing the row, which of several nodes one does.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bulla_kms::{Code, Keystore, KmsError, Result, Timestamp};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::config::AppRoleConfig;
use crate::service::{RowFolder, RowInsertion, RowKind, ServiceRow, ServiceRows};

/// The fewest characters of a secret id that a caller chooses: one that is guessed in a year has
/// fewer.
pub(crate) const MIN_SECRET_ID_LEN: usize = 20;
/// The most characters of a secret id.
pub(crate) const MAX_SECRET_ID_LEN: usize = 1024;
/// How often a use is counted again that other logins count at the same time.
const MAX_COUNT_TRIES: usize = 64;

/// What is kept of a secret id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretId {
    /// By which a caller who may mint finds it.
    pub(crate) accessor: String,
    /// The logins that are left; none if they are not counted.
    pub(crate) uses_left: Option<u32>,
    /// The networks from which it is accepted; all if there are none.
    pub(crate) cidrs: Vec<IpNet>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) created: Timestamp,
    pub(crate) expires: Option<Timestamp>,
}

/// What a new secret id is for.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewSecretId {
    /// None counts no logins.
    pub(crate) uses: Option<u32>,
    pub(crate) ttl_seconds: Option<u64>,
    pub(crate) cidrs: Vec<IpNet>,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// The secret ids of one role.
pub(crate) struct SecretIds<'a> {
    rows: &'a ServiceRows,
    keystore: &'a Keystore,
    role: &'a AppRoleConfig,
    folder: RowFolder,
}

/// The id of a role: the one in the settings, or one that only the keystore can compute.
pub(crate) fn role_id(keystore: &Keystore, role: &AppRoleConfig) -> String {
    let derive = || {
        let text = format!("role id\n{}\n{}", role.tenant, role.name);
        uuid(&keystore.data_cipher().keyed_digest(text.as_bytes()))
    };
    role.role_id.clone().unwrap_or_else(derive)
}

/// The first 16 bytes as a UUID.
fn uuid(digest: &[u8]) -> String {
    let text = hex::encode(&digest[..16]);
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

/// A new secret id of 128 random bits.
///
/// # Errors
/// [`Code::RandomUnavailable`].
pub(crate) fn random_secret_id() -> Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new([0; 16]);
    getrandom::fill(&mut *bytes)
        .map_err(|error| KmsError::new(Code::RandomUnavailable, format!("no random bytes: {error}")))?;
    Ok(Zeroizing::new(uuid(&*bytes)))
}

impl<'a> SecretIds<'a> {
    pub(crate) fn new(rows: &'a ServiceRows, keystore: &'a Keystore, role: &'a AppRoleConfig) -> Self {
        // A role of another tenant or with another id has other secret ids, also under the same
        // name.
        let owner = format!("{}\n{}\n{}", role.tenant, role.name, role_id(keystore, role));
        Self { rows, keystore, role, folder: RowFolder::new(keystore, RowKind::SecretId, &owner) }
    }

    /// The accessor of a secret id.
    pub(crate) fn accessor(&self, secret_id: &str) -> String {
        let role = role_id(self.keystore, self.role);
        let text = Zeroizing::new(format!("secret id\n{}\n{role}\n{secret_id}", self.role.tenant));
        uuid(&self.keystore.data_cipher().keyed_digest(text.as_bytes()))
    }

    /// Keeps a new secret id.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`]: the role has it already. Those of writing, and of etcd.
    pub(crate) fn add(&self, secret_id: &str, new: &NewSecretId) -> Result<SecretId> {
        let created = Timestamp::now()?;
        let end = |seconds: u64| created.unix_millis().saturating_add(seconds.saturating_mul(1000));
        let expires = new.ttl_seconds.map(|ttl| Timestamp::from_unix_millis(end(ttl))).transpose()?;
        let accessor = self.accessor(secret_id);
        let NewSecretId { uses: uses_left, cidrs, metadata, .. } = new.clone();
        let kept = SecretId { accessor, uses_left, cidrs, metadata, created, expires };
        match self.rows.insert(self.keystore, &self.folder, &kept.accessor, &text(&kept), expires)? {
            RowInsertion::Added => Ok(kept),
            RowInsertion::Exists => {
                Err(KmsError::new(Code::AlreadyExists, "the role has this secret id already"))
            }
        }
    }

    /// The secret id with an accessor.
    ///
    /// # Errors
    /// Those of reading, and of etcd.
    pub(crate) fn find(&self, accessor: &str) -> Result<Option<SecretId>> {
        let row = self.rows.get(self.keystore, &self.folder, accessor)?;
        row.map(|row| read(&row)).transpose()
    }

    /// All secret ids of the role.
    ///
    /// # Errors
    /// Those of reading, and of etcd.
    pub(crate) fn all(&self) -> Result<Vec<SecretId>> {
        self.rows.all(self.keystore, &self.folder)?.iter().map(read).collect()
    }

    /// Removes a secret id. Returns whether it was there.
    ///
    /// # Errors
    /// Those of writing, and of etcd; [`Code::Busy`]: others use it all the time.
    pub(crate) fn destroy(&self, accessor: &str) -> Result<bool> {
        for _ in 0..MAX_COUNT_TRIES {
            let Some(row) = self.rows.get(self.keystore, &self.folder, accessor)? else { return Ok(false) };
            if self.rows.remove(self.keystore, &row)? {
                return Ok(true);
            }
        }
        Err(busy())
    }

    /// Uses a secret id for one login from an address, and returns it as it was before. None if it
    /// is not one of the role, is not accepted from there, or has no use left.
    ///
    /// # Errors
    /// Those of writing, and of etcd. The use may be counted nonetheless.
    pub(crate) fn take(&self, secret_id: &str, address: Option<IpAddr>) -> Result<Option<SecretId>> {
        let accessor = self.accessor(secret_id);
        for _ in 0..MAX_COUNT_TRIES {
            let Some(row) = self.rows.get(self.keystore, &self.folder, &accessor)? else { return Ok(None) };
            let kept = read(&row)?;
            if !is_in(&kept.cidrs, address) {
                tracing::info!(role = %self.role.name, accessor, "a secret id is not accepted from this address");
                return Ok(None);
            }
            let is_taken = match kept.uses_left {
                None => true,
                Some(0 | 1) => self.rows.remove(self.keystore, &row)?,
                Some(uses) => {
                    let fewer = SecretId { uses_left: Some(uses - 1), ..kept.clone() };
                    self.rows.replace(self.keystore, &row, &text(&fewer))?
                }
            };
            if is_taken {
                return Ok(Some(kept));
            }
        }
        Err(busy())
    }
}

fn busy() -> KmsError {
    KmsError::new(Code::Busy, "others use the same secret id all the time: try again")
}

fn text(secret_id: &SecretId) -> Vec<u8> {
    serde_json::to_vec(secret_id).unwrap_or_default()
}

fn read(row: &ServiceRow) -> Result<SecretId> {
    serde_json::from_slice(&row.content)
        .map_err(|error| KmsError::new(Code::KeystoreCorrupt, format!("a secret id is malformed: {error}")))
}

/// Whether an address is in one of the networks; also if there are none. A caller without an
/// address, by a Unix socket, is in none.
pub(crate) fn is_in(networks: &[IpNet], address: Option<IpAddr>) -> bool {
    networks.is_empty()
        || address.is_some_and(|address| {
            let address = address.to_canonical();
            networks.iter().any(|network| network.contains(&address))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(tenant: &str, id: Option<&str>) -> AppRoleConfig {
        AppRoleConfig {
            name: "build".parse().unwrap(),
            role_id: id.map(str::to_owned),
            bind_secret_id: true,
            secret_id_num_uses: 0,
            secret_id_ttl_seconds: 0,
            secret_id_bound_cidrs: Vec::new(),
            tenant: tenant.parse().unwrap(),
            operations: vec![bulla_kms::token::TokenOperation::Sign],
            policies: Vec::new(),
            keys: None,
            lifetime_seconds: 60,
        }
    }

    #[test]
    fn of_many_who_use_a_secret_id_at_once_as_many_get_in_as_it_has_uses() {
        let folder = tempfile::tempdir().unwrap();
        let (keystore, role) = (Keystore::in_memory().unwrap(), role("local", None));
        for path in [None, Some(folder.path().to_owned())] {
            let rows = ServiceRows::new(None, path);
            let ids = SecretIds::new(&rows, &keystore, &role);
            let new = NewSecretId { uses: Some(5), ..NewSecretId::default() };
            ids.add("secret", &new).unwrap();
            let taken: usize = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| (0..4).filter(|_| ids.take("secret", None).unwrap().is_some()).count())
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(taken, 5);
            assert_eq!(ids.all().unwrap(), []);
        }
    }

    #[test]
    fn a_secret_id_is_one_of_its_role_and_its_tenant_alone() {
        let (keystore, rows) = (Keystore::in_memory().unwrap(), ServiceRows::new(None, None));
        let roles = [role("local", None), role("other", None), role("local", Some("id"))];
        let ids = roles.each_ref().map(|role| SecretIds::new(&rows, &keystore, role));
        let kept = ids[0].add("secret", &NewSecretId::default()).unwrap();
        assert!(ids[0].take("secret", None).unwrap().is_some());
        assert!(ids[0].take("Secret", None).unwrap().is_none());
        for other in &ids[1..] {
            assert!(other.take("secret", None).unwrap().is_none());
            assert!(other.find(&kept.accessor).unwrap().is_none() && !other.destroy(&kept.accessor).unwrap());
        }
        assert_eq!(ids[0].add("secret", &NewSecretId::default()).unwrap_err().code, Code::AlreadyExists);
        assert!(ids[0].destroy(&kept.accessor).unwrap() && !ids[0].destroy(&kept.accessor).unwrap());
        assert!(ids[0].take("secret", None).unwrap().is_none());
    }

    #[test]
    fn networks_hold_addresses_of_both_kinds() {
        let networks: Vec<IpNet> = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().unwrap()).into();
        for (address, expected) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("11.1.2.3", false),
            ("2001:db8::1", true),
            ("2001:db9::1", false),
        ] {
            assert_eq!(is_in(&networks, Some(address.parse().unwrap())), expected, "{address}");
        }
        assert!(!is_in(&networks, None) && is_in(&[], None));
    }
}
