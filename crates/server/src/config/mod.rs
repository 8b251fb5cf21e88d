//! The configuration: one TOML file, with environment variables over it.

mod approle;
mod certificate_role;
#[cfg(test)]
mod documented;
mod etcd;
mod group;
mod jwt;
mod limits;
mod listen;
mod log;
mod login;
mod mount;
mod policy;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bulla_client::Address;
use bulla_kms::audit_log::WitnessKey;
use bulla_kms::encryption::Recipient;
use bulla_kms::token::TokenOperation;
use bulla_kms::{Code, KeyId, KmsError, Name, Result};
use serde::{Deserialize, Serialize};

pub use self::approle::AppRoleConfig;
pub use self::certificate_role::CertificateRoleConfig;
pub use self::etcd::{EtcdConfig, StoreKind};
pub(crate) use self::group::digest as group_digest;
pub use self::group::{GroupConfig, GroupPeerConfig};
pub use self::jwt::{JwtConfig, JwtKeyConfig};
pub use self::limits::LimitsConfig;
pub(crate) use self::limits::MAX_ITEMS;
pub use self::listen::{ListenConfig, SocketMode, TlsConfig};
pub use self::log::{LogConfig, LogFormat, LogLevel, TraceConfig};
pub(crate) use self::login::RoleToken;
pub(crate) use self::login::is_protected;
pub use self::login::{IssuerConfig, JwtUse, RoleConfig, TokenReviewConfig};
pub(crate) use self::mount::ENGINE_PATHS;
pub use self::mount::MountConfig;
pub use self::policy::PolicyConfig;
pub use crate::access::{ByteRate, QuotaConfig, RequestRate};

/// Everything that `bulla serve` can be told. Each table of the file is a field here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The keystore, and what opens it.
    pub keystore: KeystoreConfig,
    /// The etcd cluster with the keystore, if nodes share it.
    pub etcd: EtcdConfig,
    /// The nodes that have keys together, if this node is one of them.
    pub group: Option<GroupConfig>,
    /// Where the service listens.
    pub listen: Vec<ListenConfig>,
    /// The limits of requests.
    pub limits: LimitsConfig,
    /// What each tenant may use of the service.
    pub quota: Vec<QuotaConfig>,
    /// The audit log.
    pub audit: AuditConfig,
    /// The witnesses that cosign the audit log's checkpoints.
    pub witness: Vec<WitnessConfig>,
    /// Callers who prove themselves by a client certificate or as a user of this machine.
    pub caller: Vec<CallerConfig>,
    /// Issuers of JWTs, with which callers log in.
    pub issuer: Vec<IssuerConfig>,
    /// What the JWTs of an issuer give.
    pub role: Vec<RoleConfig>,
    /// What a role id with a secret id gives.
    pub approle: Vec<AppRoleConfig>,
    /// What a client certificate gives.
    pub certificate_role: Vec<CertificateRoleConfig>,
    /// Mounts of the transit engine beside `transit/`.
    pub mount: Vec<MountConfig>,
    /// Files with policies, which roles and tokens name.
    pub policy: Vec<PolicyConfig>,
    /// The JWTs that the service signs, if it is an issuer.
    pub jwt: Option<JwtConfig>,
    /// How the service runs.
    pub service: ServiceConfig,
    /// What the service writes to standard error.
    pub log: LogConfig,
    /// Where traces of requests go.
    pub trace: TraceConfig,
}

/// The keystore, and what opens it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeystoreConfig {
    /// Where the keystore is stored: in a file of its folder, or in the etcd cluster of the table
    /// `[etcd]`.
    pub store: StoreKind,
    /// The file of the rollback guard of a keystore in etcd. It detects that the cluster was
    /// restored from an older copy.
    pub guard: Option<PathBuf>,
    /// The keystore's folder, as for the other commands; the platform's place for data by default.
    pub folder: Option<PathBuf>,
    /// A file with the passphrase; its first line counts. Without one, a key file in the folder
    /// opens the keystore, and a keystore with a passphrase starts sealed.
    pub passphrase_file: Option<PathBuf>,
    /// The number of an open file descriptor from which the service reads the passphrase when it
    /// starts.
    pub passphrase_fd: Option<u32>,
    /// The name of a systemd credential with the passphrase (`LoadCredential=`).
    pub credential: Option<String>,
}

/// How a keystore's audit log is written, if the keystore has one: `bulla log init` begins
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Whether an entry is on the disk before its answer is sent (`grouped`), or with the next
    /// checkpoint (`at-checkpoints`).
    pub durability: AuditDurability,
    /// Whether verifications are recorded too.
    pub record_verifications: bool,
    /// How many witnesses must cosign a checkpoint; all by default.
    pub cosignature_quorum: Option<usize>,
    /// How often, in seconds, witnesses are asked to cosign a new checkpoint.
    pub witness_interval_seconds: u64,
}

/// A witness: somebody else's service that cosigns the checkpoints of the audit log, if the log
/// only grew (C2SP `tlog-witness`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WitnessConfig {
    /// Its submission prefix, `https://HOST/PATH`.
    pub url: String,
    /// Its public key, `NAME+HASH+KEY`.
    pub key: WitnessKey,
}

/// When an entry is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditDurability {
    /// Before the answer is sent.
    #[default]
    Grouped,
    /// With the next checkpoint: a machine that loses its power loses the entries since the last
    /// one.
    AtCheckpoints,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            durability: AuditDurability::Grouped,
            record_verifications: false,
            cosignature_quorum: None,
            witness_interval_seconds: 60,
        }
    }
}

/// A caller without a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallerConfig {
    /// The caller's name in the audit log.
    pub name: String,
    /// The user id of a peer on a Unix socket.
    pub uid: Option<u32>,
    /// The SHA-256 of a client certificate (DER), in lower-case hexadecimal digits.
    pub certificate_sha256: Option<String>,
    /// The tenant whose keys the caller uses.
    pub tenant: Name,
    /// What the caller may do; by default everything except `export_plaintext` and
    /// `override_approval`.
    pub operations: Option<Vec<TokenOperation>>,
    /// The keys; all of the tenant by default.
    pub keys: Option<Vec<KeyId>>,
    /// Whether the caller may mint tokens and revoke those of others.
    #[serde(default)]
    pub can_mint_tokens: bool,
}

/// How the service runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceConfig {
    /// How many threads serve; one for each processor by default.
    pub threads: Option<NonZeroUsize>,
    /// The tenant whose callers may also do what concerns the whole service: read the audit log and
    /// the metrics, make backups, seal.
    pub operator_tenant: Name,
    /// The recipients that a token's holder may have backups made for: `age1...` or `x-wing:...`. A
    /// caller who may mint tokens names any.
    pub backup_recipients: Vec<String>,
    /// Whether callers with the permission `override_approval` may use keys without the approvals
    /// that these need. The audit log says it each time.
    pub allow_approval_override: bool,
    /// How many seconds a shutdown takes at most. Requests that are being answered have until
    /// shortly before.
    pub shutdown_timeout_seconds: u64,
    /// Whether every caller may do everything: for trying the service out, with a keystore in
    /// memory. Only the command line can say so.
    #[serde(skip)]
    pub development: bool,
}

/// Names that no namespace has, and so no tenant.
const NO_NAMESPACES: [&str; 4] = ["auth", "root", "sys", "transit"];

/// The tenant of all keys that the command line makes.
const DEFAULT_TENANT: &str = "local";

impl Default for ServiceConfig {
    fn default() -> Self {
        let operator_tenant = DEFAULT_TENANT.parse().expect("the name is one");
        Self {
            threads: None,
            operator_tenant,
            backup_recipients: Vec::new(),
            allow_approval_override: false,
            shutdown_timeout_seconds: 30,
            development: false,
        }
    }
}

impl ServiceConfig {
    /// How long a shutdown takes at most.
    pub(crate) fn shutdown_timeout(&self) -> Duration {
        Duration::from_secs(self.shutdown_timeout_seconds)
    }

    /// How long of it requests are answered. The rest is for the end of what cannot be interrupted.
    pub(crate) fn request_drain_time(&self) -> Duration {
        let all = self.shutdown_timeout();
        all - (all / 10).min(Duration::from_secs(2))
    }
}

impl Config {
    /// Reads a file, if one is named, puts the environment over it, and checks it.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Io`]; [`Code::InvalidArgument`] for a file or a variable that
    /// says nothing the service knows.
    pub fn load(path: Option<&Path>, variables: impl Iterator<Item = (String, String)>) -> Result<Self> {
        let table = match path {
            None => toml::Table::new(),
            Some(path) => parse(path)?,
        };
        let file = path.map_or_else(String::new, |path| format!("{}: ", path.display()));
        Self::of(table, &mut { variables }, &file)
    }

    /// Reads settings from a text, puts the environment over them, and checks them.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`], as for [`Config::load`].
    pub(crate) fn read(text: &str, variables: impl Iterator<Item = (String, String)>) -> Result<Self> {
        let table = text.parse().map_err(|error: toml::de::Error| invalid(error.message()))?;
        Self::of(table, &mut { variables }, "")
    }

    // Without a type parameter: a generic function would be compiled in each crate that calls it,
    // and here that is all of serde and TOML.
    fn of(
        mut table: toml::Table,
        variables: &mut dyn Iterator<Item = (String, String)>,
        file: &str,
    ) -> Result<Self> {
        apply_environment(&mut table, variables)?;
        let wrong = |error: toml::de::Error| invalid(format!("{file}{}", error.message()));
        let config: Self = table.try_into().map_err(wrong)?;
        config.check()?;
        Ok(config)
    }

    /// # Errors
    /// [`Code::InvalidArgument`] for settings that contradict each other.
    pub fn check(&self) -> Result<()> {
        self.listen.iter().try_for_each(ListenConfig::check)?;
        self.keystore.check()?;
        self.etcd.check(self.keystore.store)?;
        self.group.as_ref().map_or(Ok(()), |group| group.check(self.keystore.store))?;
        login::check(&self.issuer, &self.role)?;
        approle::check(&self.approle)?;
        certificate_role::check(&self.certificate_role)?;
        policy::check(&self.policy)?;
        limits::check_quotas(&self.quota, &self.limits)?;
        mount::check(&self.mount, &NO_NAMESPACES)?;
        self.jwt.as_ref().map_or(Ok(()), JwtConfig::check)?;
        let (mut users, mut certificates) = (HashSet::new(), HashSet::new());
        for caller in &self.caller {
            if caller.uid.is_some() == caller.certificate_sha256.is_some() {
                let message =
                    format!("the caller {} needs either `uid` or `certificate_sha256`", caller.name);
                return Err(invalid(message));
            }
            let is_digest = |text: &String| {
                text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            };
            if !caller.certificate_sha256.as_ref().is_none_or(is_digest) {
                let message = "is not the SHA-256 of a certificate: that is 64 lower-case hexadecimal digits";
                return Err(invalid(format!("the certificate of the caller {} {message}", caller.name)));
            }
            caller.name.parse::<bulla_kms::audit_log::Actor>()?;
            let is_new = caller.uid.is_none_or(|uid| users.insert(uid))
                && caller.certificate_sha256.as_ref().is_none_or(|digest| certificates.insert(digest));
            if !is_new {
                let message =
                    format!("the caller {} has the user or the certificate of another", caller.name);
                return Err(invalid(message));
            }
        }
        for recipient in &self.service.backup_recipients {
            let wrong = |error: KmsError| invalid(format!("[service] backup_recipients: {}", error.message));
            recipient.parse::<Recipient>().map_err(wrong)?;
        }
        self.check_tenants()?;
        self.check_witnesses()?;
        self.trace.check()?;
        self.limits.check()
    }

    /// The tenants that settings name.
    fn tenants(&self) -> impl Iterator<Item = &Name> {
        let callers = self.caller.iter().map(|caller| &caller.tenant);
        let roles = self.role.iter().map(|role| &role.tenant);
        let approles = self.approle.iter().map(|role| &role.tenant);
        let certificates = self.certificate_role.iter().map(|role| &role.tenant);
        let policies = self.policy.iter().map(|policy| &policy.tenant);
        let quotas = self.quota.iter().filter_map(|quota| quota.tenant.as_ref());
        let mounts = self.mount.iter().flat_map(|mount| [&mount.tenant, &mount.keys_tenant]);
        let others = policies.chain(quotas).chain(mounts).chain([&self.service.operator_tenant]);
        callers.chain(roles).chain(approles).chain(certificates).chain(others)
    }

    /// # Errors
    /// A tenant has the name of something else in the paths of Vault's clients.
    fn check_tenants(&self) -> Result<()> {
        let Some(tenant) = self.tenants().find(|tenant| NO_NAMESPACES.contains(&tenant.as_str())) else {
            return Ok(());
        };
        let all = NO_NAMESPACES.map(|name| format!("`{name}`")).join(", ");
        let message = "have another meaning in the paths of Vault's clients: give it another name";
        Err(invalid(format!("the tenant {tenant}: {all} {message}")))
    }

    fn check_witnesses(&self) -> Result<()> {
        let mut keys = HashSet::new();
        for WitnessConfig { url, key } in &self.witness {
            let wrong = |why: &str| invalid(format!("the witness {}: {why}", key.name()));
            url.parse::<Address>().map_err(|_| wrong("`url` is not https://HOST/PATH"))?;
            // Two keys of one witness would count as two witnesses.
            if !keys.insert(key.name()) {
                return Err(wrong("it is named twice"));
            }
        }
        if self.cosignature_quorum() > self.witness.len() {
            return Err(invalid("[audit] cosignature_quorum: there are fewer witnesses"));
        }
        if self.audit.witness_interval_seconds == 0 {
            return Err(invalid("[audit] witness_interval_seconds must be at least 1"));
        }
        Ok(())
    }

    /// The tokens of all roles, with the names of the roles for errors.
    pub(crate) fn role_tokens(&self) -> impl Iterator<Item = (String, RoleToken)> {
        let roles = self.role.iter().map(|role| (format!("the role {}", role.name), role.token()));
        let approles = self.approle.iter().map(|role| (format!("the AppRole {}", role.name), role.token()));
        let certificates = self.certificate_role.iter();
        let certificates =
            certificates.map(|role| (format!("the certificate role {}", role.name), role.token()));
        roles.chain(approles).chain(certificates)
    }

    /// How many witnesses must cosign a checkpoint.
    pub fn cosignature_quorum(&self) -> usize {
        self.audit.cosignature_quorum.unwrap_or(self.witness.len())
    }

    /// The settings as TOML, with every default. It contains no secret: settings only say where
    /// secrets are.
    ///
    /// # Errors
    /// [`Code::Internal`]: a setting has no form in TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| KmsError::new(Code::Internal, format!("no TOML: {error}")))
    }

    /// The settings of `new` that differ from these and take effect only when the service starts.
    pub(crate) fn needing_restart(&self, new: &Self) -> Vec<&'static str> {
        let differs = [
            ("keystore", self.keystore != new.keystore),
            ("etcd", self.etcd != new.etcd),
            ("group", self.group != new.group),
            (
                "listen",
                !self.listen.iter().map(ListenConfig::socket).eq(new.listen.iter().map(ListenConfig::socket)),
            ),
            ("audit", self.audit != new.audit),
            ("witness", self.witness != new.witness),
            ("service", self.service != new.service),
            ("log", self.log != new.log),
            ("trace", self.trace != new.trace),
        ];
        differs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }
}

impl KeystoreConfig {
    fn check(&self) -> Result<()> {
        if self.guard.is_some() && self.store == StoreKind::File {
            return Err(invalid(
                "[keystore]: `guard` is for a keystore in etcd; a file names its guard itself",
            ));
        }
        let sources =
            [self.passphrase_file.is_some(), self.passphrase_fd.is_some(), self.credential.is_some()];
        if sources.into_iter().filter(|is_set| *is_set).count() > 1 {
            return Err(invalid(
                "[keystore]: name only one of `passphrase_file`, `passphrase_fd` and `credential`",
            ));
        }
        // A path would lead out of the folder of credentials.
        let is_name =
            |name: &String| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
        match &self.credential {
            Some(name) if !is_name(name) => Err(invalid("[keystore]: `credential` is a name, not a path")),
            _ => Ok(()),
        }
    }
}

fn parse(path: &Path) -> Result<toml::Table> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let code = if error.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::Io };
        KmsError::new(code, format!("cannot read the configuration {}: {error}", path.display()))
    })?;
    text.parse().map_err(|error: toml::de::Error| invalid(format!("{}: {error}", path.display())))
}

fn invalid(message: impl Into<String>) -> KmsError {
    KmsError::new(Code::InvalidArgument, message)
}

/// The prefix of environment variables that override the file: `BULLA_SERVE__TABLE__KEY=value`.
const VARIABLE_PREFIX: &str = "BULLA_SERVE__";

/// Puts the variables with our prefix into the table. A value is TOML where it parses as such, and
/// text otherwise.
fn apply_environment(
    table: &mut toml::Table,
    variables: &mut dyn Iterator<Item = (String, String)>,
) -> Result<()> {
    for (name, value) in variables {
        let Some(path) = name.strip_prefix(VARIABLE_PREFIX) else { continue };
        let path = path.to_ascii_lowercase();
        let keys: Vec<_> = path.split("__").collect();
        set_value(table, &keys, parse_value(&value)).ok_or_else(|| {
            KmsError::new(Code::InvalidArgument, format!("the variable {name} names no setting"))
        })?;
    }
    Ok(())
}

fn set_value(table: &mut toml::Table, keys: &[&str], value: toml::Value) -> Option<()> {
    match keys {
        [] => None,
        [key] => {
            table.insert((*key).to_owned(), value);
            Some(())
        }
        [key, rest @ ..] => {
            let inner = table.entry(*key).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            set_value(inner.as_table_mut()?, rest, value)
        }
    }
}

fn parse_value(value: &str) -> toml::Value {
    let line = format!("value = {value}");
    let table: Option<toml::Table> = line.parse().ok();
    table.and_then(|mut table| table.remove("value")).unwrap_or_else(|| toml::Value::String(value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.toml");
        std::fs::write(&path, text).unwrap();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(Some(&path), variables)
    }

    /// An issuer and a role, with more lines at the end, and another line in place of one.
    fn role(more: &str, to: &str, from: &str) -> String {
        let text = "[[issuer]]\nname = \"ci\"\nissuer = \"https://ci.example.org\"\n\
                    [[role]]\nname = \"release\"\nissuer = \"ci\"\naudiences = [\"bulla\"]\nsubjects = [\"*\"]\n\
                    tenant = \"local\"\noperations = [\"sign\"]\n";
        let (issuer, role) = text.split_once("[[role]]").unwrap();
        let role = if from.is_empty() { role.to_owned() } else { role.replace(from, to) };
        format!("{issuer}[[role]]{role}{more}\n")
    }

    /// A role of another kind, with more lines at the end.
    fn other_role(table: &str, more: &str) -> String {
        format!("[[{table}]]\nname = \"one\"\ntenant = \"local\"\noperations = [\"sign\"]\n{more}\n")
    }

    #[test]
    fn the_settings_in_the_document_about_logins_are_settings() {
        let document = include_str!("../../../../docs/login.md");
        let blocks = document.split("```toml\n").skip(1).map(|block| block.split_once("```").unwrap().0);
        let config = load(&blocks.collect::<String>(), &[]).unwrap();
        assert_eq!((config.issuer.len(), config.role.len()), (2, 2));
        assert!(config.issuer[1].token_review.is_some());
        assert_eq!((config.approle.len(), config.certificate_role.len()), (1, 1));
    }

    #[test]
    fn a_role_binds_claims_of_an_issuer() {
        let config = load(&role("[role.claims]\nref = [\"refs/tags/*\"]", "", ""), &[]).unwrap();
        assert_eq!((config.issuer[0].leeway_seconds, config.role[0].lifetime_seconds), (30, 600));
    }

    #[test]
    fn nothing_is_a_configuration() {
        let config = load("", &[]).unwrap();
        assert!(config.listen.is_empty() && config.caller.is_empty());
        assert_eq!(config.service.operator_tenant.as_str(), "local");
    }

    #[test]
    fn what_is_unknown_or_contradicts_itself_is_refused() {
        for text in [
            "color = 1",
            "[service]\nthread = 2",
            "[service]\nthreads = 0",
            "[[listen]]",
            "[[listen]]\naddress = \"localhost\"",
            "[[listen]]\naddress = \"127.0.0.1:1\"\nunix = \"/x\"",
            "[[listen]]\nunix = \"/x\"\ntls = { certificate = \"a\", key = \"b\" }",
            "[[caller]]\nname = \"a\"\ntenant = \"local\"",
            "[[caller]]\nname = \"a\"\ntenant = \"local\"\nuid = 1\ncertificate_sha256 = \"aa\"",
            "[[caller]]\nname = \"a\"\ntenant = \"local\"\ncertificate_sha256 = \"aa\"",
            "[[caller]]\nname = \"a\"\ntenant = \"LOCAL\"\nuid = 1",
            "[[caller]]\nname = \"a\"\ntenant = \"local\"\nuid = 1\noperations = [\"fly\"]",
            "[[caller]]\nname = \"a\"\ntenant = \"transit\"\nuid = 1",
            "[service]\noperator_tenant = \"sys\"",
            "[service]\nbackup_recipients = [\"age1nobody\"]",
            "[[listen]]\nunix = \"/x\"\nmode = \"0888\"",
            "[[listen]]\nunix = \"/x\"\nmode = \"01777\"",
            "[[listen]]\nunix = \"/x\"\nmode = 0o600",
            "[[listen]]\nunix = \"\\u0000x\"",
            "[[listen]]\nunix = \"\"",
            "[[listen]]\naddress = \"127.0.0.1:1\"\nmode = \"0600\"",
            "[keystore]\npassphrase_file = \"a\"\npassphrase_fd = 3",
            "[keystore]\npassphrase_fd = -1",
            "[keystore]\ncredential = \"../a\"",
            "[keystore]\ncredential = \"\"",
            "[[caller]]\nname = \"a\"\ntenant = \"local\"\nuid = 1\n[[caller]]\nname = \"b\"\ntenant = \"local\"\nuid = 1",
            "[log]\nlevel = \"loud\"",
            "[trace]\notlp_endpoint = \"127.0.0.1:4318\"",
            "[audit]\ncosignature_quorum = 1",
            "[audit]\nwitness_interval_seconds = 0",
            "[[witness]]\nurl = \"https://a\"\nkey = \"a+00000000+BA==\"",
            "[limits]\nmax_body_bytes = 0",
            // Issuers and roles.
            "[[issuer]]\nname = \"a\"\nissuer = \"http://a.example.org\"",
            "[[issuer]]\nname = \"a\"\nissuer = \"a\"",
            "[[issuer]]\nname = \"a\"\nissuer = \"\"\nkeys_file = \"a\"",
            "[[issuer]]\nname = \"a\"\nissuer = \"https://a\"\nkeys_file = \"a\"\njwks_url = \"https://a\"",
            "[[issuer]]\nname = \"a\"\nissuer = \"https://a\"\nkeys_file = \"a\"\nca = \"a\"",
            "[[issuer]]\nname = \"a\"\nissuer = \"https://a\"\njwks_url = \"http://a\"",
            "[[issuer]]\nname = \"a\"\nissuer = \"https://a\"\nleeway_seconds = 601",
            "[[issuer]]\nname = \"a\"\nissuer = \"https://a\"\n\
             token_review = { url = \"http://a\", token_file = \"a\" }",
            "[[issuer]]\nname = \"a\"\nissuer = \"https://a\"\ntoken_review = { url = \"https://a\" }",
            "[[issuer]]\nname = \"a\"\nissuer = \"https://a\"\n[[issuer]]\nname = \"a\"\nissuer = \"https://b\"",
            "[[issuer]]\nname = \"a\"\nissuer = \"https://a\"\n[[issuer]]\nname = \"b\"\nissuer = \"https://a\"",
            &role("", "issuer = \"nobody\"", "issuer = \"ci\""),
            &role("", "audiences = []", "audiences = [\"bulla\"]"),
            &role("", "", "subjects = [\"*\"]"),
            &role("[role.claims]\nref = []", "", ""),
            &role("[role.claims]\nsub = [\"a\"]", "", ""),
            &role("lifetime_seconds = 0", "", ""),
            &role("lifetime_seconds = 86401", "", ""),
            &role("", "operations = []", "operations = [\"sign\"]"),
            &role("keys = []", "", ""),
            &role("keys = [\"A B\"]", "", ""),
            &role("keys = [\"other/files/ed25519/00000000-0000-7000-8000-000000000001\"]", "", ""),
            &(role("", "", "") + &role("", "", "")),
            &role("", "tenant = \"root\"", "tenant = \"local\""),
            "not toml",
        ] {
            assert_eq!(load(text, &[]).unwrap_err().code, Code::InvalidArgument, "{text}");
        }
        assert_eq!(
            Config::load(Some(Path::new("/nowhere")), std::iter::empty()).unwrap_err().code,
            Code::NotFound
        );
    }

    #[test]
    fn two_tenants_may_have_roles_of_one_name() {
        let two = |table: &str, more: &str| {
            let one = other_role(table, more);
            let other = one.replace("\"local\"", "\"other\"");
            one + &other
        };
        let roles = role("", "", "");
        let (_, second) = roles.split_once("[[role]]").unwrap();
        let second = format!("[[role]]{}", second.replace("\"local\"", "\"other\""));
        let certificates = two("certificate_role", "uris = [\"a\"]");
        let config = load(&(roles.clone() + &second + &two("approle", "") + &certificates), &[]).unwrap();
        assert_eq!((config.role.len(), config.approle.len(), config.certificate_role.len()), (2, 2, 2));
    }

    #[test]
    fn a_role_of_another_kind_that_binds_nothing_or_is_there_twice_is_refused() {
        let certificates = |more: &str| other_role("certificate_role", more);
        load(&(other_role("approle", "") + &certificates("uris = [\"a\"]")), &[]).unwrap();
        for text in [
            &other_role("approle", "bind_secret_id = false"),
            &other_role("approle", "role_id = \"\""),
            &other_role("approle", "role_id = \"a b\""),
            &other_role("approle", "secret_id_bound_cidrs = [\"10.0.0.1\"]"),
            &other_role("approle", "secret_id_ttl_seconds = 315360001"),
            &other_role("approle", "lifetime_seconds = 0"),
            &(other_role("approle", "") + &other_role("approle", "")),
            &(other_role("approle", "role_id = \"a\"")
                + &other_role("approle", "role_id = \"a\"").replace("one", "two")),
            &certificates(""),
            &certificates("common_names = [\"a\"]\nkeys = []"),
            &(certificates("uris = [\"a\"]") + &certificates("uris = [\"a\"]")),
        ] {
            assert_eq!(load(text, &[]).unwrap_err().code, Code::InvalidArgument, "{text}");
        }
    }

    #[test]
    fn a_quota_or_a_mount_that_contradicts_itself_is_refused() {
        let mount = |path: &str, keys: &str| {
            format!("[[mount]]\ntenant = \"a\"\npath = \"{path}\"\nkeys_tenant = \"{keys}\"\n")
        };
        let rate = "byte_rate = { per_second = 1000, burst = 33554432 }";
        load(&(mount("x", "b") + &mount("y", "c") + "[[quota]]\n" + rate), &[]).unwrap();
        for text in [
            "[[quota]]",
            "[[quota]]\ntenant = \"auth\"\nmax_keys = 1",
            "[[quota]]\nmax_keys = 1\n[[quota]]\nmax_keys = 2",
            "[[quota]]\ntenant = \"a\"\nmax_keys = 1\n[[quota]]\ntenant = \"a\"\nmax_keys = 1",
            "[[quota]]\nmax_slow_jobs = 0",
            "[[quota]]\nrequest_rate = { per_second = 0, burst = 1 }",
            "[[quota]]\nbyte_rate = { per_second = 1000, burst = 1000 }",
            &mount("sys", "b"),
            &mount("sign", "b"),
            &mount("x/y", "b"),
            &mount("x", "a"),
            &mount("x", "transit"),
            &(mount("x", "b") + &mount("x", "c")),
            &(mount("x", "b") + &mount("y", "b")),
        ] {
            assert_eq!(load(text, &[]).unwrap_err().code, Code::InvalidArgument, "{text}");
        }
    }

    #[test]
    fn the_environment_overrides_the_file() {
        let text = "[service]\nthreads = 2\n[[listen]]\naddress = \"127.0.0.1:1\"";
        let config = load(text, &[("BULLA_SERVE__SERVICE__THREADS", "3"), ("BULLA_ADDR", "other")]).unwrap();
        assert_eq!(config.service.threads.unwrap().get(), 3);
        let listen = [("BULLA_SERVE__LISTEN", "[{ address = \"127.0.0.1:2\" }, { unix = \"/x\" }]")];
        let config = load(text, &listen).unwrap();
        assert_eq!(config.listen.len(), 2);
        let wrong = load("", &[("BULLA_SERVE__SERVICE__COLOR", "red")]).unwrap_err();
        assert_eq!(wrong.code, Code::InvalidArgument);
        let text = load("", &[("BULLA_SERVE__KEYSTORE__FOLDER", "/a/b")]).unwrap();
        assert_eq!(text.keystore.folder, Some(PathBuf::from("/a/b")));
    }
}
