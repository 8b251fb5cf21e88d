//! The configuration: which services and keystores are slots.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use bulla_client::{Address, BoxError, BoxFuture, ClientBuilder, ClientCertificate, RootCertificates};
use bulla_client::{Client, Token, TokenProvider};
use bulla_keystore::KeystoreFolder;
use bulla_kms::UnlockMethod;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::backend::Source;
use crate::backend::connection::Service;
use crate::backend::local::Folder;
use crate::ffi::rights::has_more_rights;
use crate::object::certificate::Certificate;

/// The variable that names the file.
const CONFIG: &str = "BULLA_PKCS11_CONFIG";
/// The file of all users.
const SYSTEM_FILE: &str = "/etc/bulla/pkcs11.toml";
/// The most bytes of a token's label, which PKCS #11 sets.
const MAX_LABEL_LEN: usize = 32;
/// Who uses a keystore, in its audit log.
const ACTOR: &str = "PKCS #11";
/// Longer than any token.
const MAX_TOKEN_LEN: usize = 64 << 10;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    slot: Vec<SlotEntry>,
}

/// One slot of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlotEntry {
    label: String,
    url: Option<String>,
    keystore: Option<PathBuf>,
    passphrase_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
    login_required: Option<bool>,
    ca: Option<PathBuf>,
    client_certificate: Option<PathBuf>,
    client_key: Option<PathBuf>,
    certificates: Option<PathBuf>,
}

/// Whether a program logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    /// The PIN is a token of the service, or the keystore's passphrase.
    Pin,
    /// A token file, a client certificate or the user of a Unix socket says who asks. A key file or
    /// a file with the passphrase opens the keystore.
    NotRequired,
}

/// A slot.
pub(crate) struct SlotConfig {
    /// The label of its token.
    pub(crate) label: String,
    pub(crate) login: Login,
    /// The service's address, or the keystore's folder.
    pub(crate) address: String,
    /// The certificates that the token shows.
    pub(crate) certificates: Vec<Certificate>,
    /// Where the keys are.
    pub(crate) source: Box<dyn Source>,
}

/// The variables of the process.
#[derive(Clone, Copy)]
enum Variables {
    Read,
    /// They are those of somebody with fewer rights than the program has. That user may choose
    /// neither its keys nor a file that it reads: an error shows a line of it.
    Ignored,
}

impl Variables {
    fn get(self, name: &str) -> Option<String> {
        match self {
            Self::Read => env::var(name).ok().filter(|value| !value.is_empty()),
            Self::Ignored => None,
        }
    }
}

/// Reads the configuration: the file that the variable names, the user's, the system's, or the
/// variables of the command. A program with more rights than its user reads the system's alone.
///
/// # Errors
/// The reason, for people.
pub(crate) fn read() -> Result<Vec<SlotConfig>, String> {
    read_with(if has_more_rights() { Variables::Ignored } else { Variables::Read })
}

fn read_with(variables: Variables) -> Result<Vec<SlotConfig>, String> {
    let variable = |name| variables.get(name);
    if let Some(path) = variable(CONFIG) {
        return read_file(Path::new(&path));
    }
    for path in [user_file(variables), Some(SYSTEM_FILE.into())].into_iter().flatten() {
        if path.exists() {
            return read_file(&path);
        }
    }
    let url = variable("BULLA_ADDR").ok_or_else(|| {
        format!("no service is configured: name a file in {CONFIG}, or a service in BULLA_ADDR")
    })?;
    let entry = SlotEntry {
        label: "bulla".to_owned(),
        url: Some(url),
        token_file: variable("BULLA_TOKEN_FILE").map(Into::into),
        ca: variable("BULLA_CACERT").map(Into::into),
        client_certificate: variable("BULLA_CLIENT_CERTIFICATE").map(Into::into),
        client_key: variable("BULLA_CLIENT_KEY").map(Into::into),
        ..SlotEntry::default()
    };
    let token = match &entry.token_file {
        Some(_) => None,
        None => variable("BULLA_TOKEN").map(Zeroizing::new),
    };
    Ok(vec![slot(entry, token)?])
}

fn user_file(variables: Variables) -> Option<PathBuf> {
    let folder = variables.get("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = folder.or_else(|| variables.get("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(folder.join("bulla/pkcs11.toml"))
}

fn read_file(path: &Path) -> Result<Vec<SlotConfig>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|reason| format!("{}: {reason}", path.display()))
}

fn parse(text: &str) -> Result<Vec<SlotConfig>, String> {
    let ConfigFile { slot: entries } = toml::from_str(text).map_err(|error| error.to_string())?;
    if entries.is_empty() {
        return Err("there is no [[slot]]".to_owned());
    }
    let labels: Vec<_> = entries.iter().map(|entry| entry.label.clone()).collect();
    if let Some(label) = labels.iter().enumerate().find(|(place, label)| labels[..*place].contains(label)) {
        return Err(format!("two slots have the label {:?}", label.1));
    }
    entries.into_iter().map(|entry| slot(entry, None)).collect()
}

fn slot(entry: SlotEntry, token: Option<Zeroizing<String>>) -> Result<SlotConfig, String> {
    let label = entry.label.clone();
    if label.is_empty() || label.len() > MAX_LABEL_LEN {
        return Err(format!("the label {label:?} does not have 1 to {MAX_LABEL_LEN} bytes"));
    }
    let about = |reason: String| format!("slot {label:?}: {reason}");
    let certificates = match &entry.certificates {
        Some(path) => Certificate::read_all(&read_pem(path)?)
            .map_err(|error| about(format!("{}: {error}", path.display())))?,
        None => Vec::new(),
    };
    let (address, login, source) = match (entry.url.clone(), entry.keystore.clone()) {
        (Some(url), None) => service(&url, entry, token),
        (None, Some(folder)) => keystore(folder, entry),
        _ => Err("name either a service as `url` or a folder as `keystore`".to_owned()),
    }
    .map_err(about)?;
    Ok(SlotConfig { label, login, address, certificates, source })
}

/// What a slot is made of, beside its label and its certificates.
type SlotParts = (String, Login, Box<dyn Source>);

/// A slot whose keys a service has.
fn service(url: &str, entry: SlotEntry, token: Option<Zeroizing<String>>) -> Result<SlotParts, String> {
    let SlotEntry { token_file, login_required, ca, client_certificate, client_key, .. } = entry;
    if entry.passphrase_file.is_some() {
        return Err("a `passphrase_file` is for a `keystore`".to_owned());
    }
    let address: Address = url.parse().map_err(text_of)?;
    let mut builder = Client::builder(address.clone());
    let is_known = token_file.is_some() || token.is_some() || client_certificate.is_some();
    let login = match login_required.unwrap_or(!is_known) {
        true => Login::Pin,
        false => Login::NotRequired,
    };
    if let Some(token) = token {
        builder = builder.token(Token::new(&token).map_err(text_of)?);
    }
    if let Some(path) = token_file {
        if login_required == Some(true) {
            return Err("with a `token_file`, no login is required".to_owned());
        }
        builder = builder.token_provider(TokenFile(path));
    }
    if let Some(path) = ca {
        let roots = RootCertificates::from_pem(&read_pem(&path)?).map_err(text_of)?;
        builder = builder.root_certificates(roots);
    }
    let client = with_certificate(builder, client_certificate, client_key)?;
    // What is wrong with the settings is told at once.
    client.clone().build().map_err(text_of)?;
    Ok((address.to_string(), login, Box::new(Service { client })))
}

/// A slot whose keys are in a keystore's folder.
fn keystore(folder: PathBuf, entry: SlotEntry) -> Result<SlotParts, String> {
    let SlotEntry { passphrase_file, login_required, token_file, ca, client_certificate, client_key, .. } =
        entry;
    if [token_file, ca, client_certificate, client_key].iter().any(Option::is_some) {
        return Err("a token file, an authority and a certificate are for a service".to_owned());
    }
    // The folder that a program runs in is not the user's choice.
    if !folder.is_absolute() {
        return Err(format!("the path of the keystore does not begin with /: {}", folder.display()));
    }
    let address = folder.display().to_string();
    let actor = ACTOR.parse().map_err(text_of)?;
    let folder = KeystoreFolder::at(folder).on_behalf_of(Some(actor));
    let login = match folder.unlock_method().map_err(text_of)? {
        UnlockMethod::Passphrase if passphrase_file.is_none() => Login::Pin,
        UnlockMethod::Passphrase => Login::NotRequired,
        UnlockMethod::KeyFile if passphrase_file.is_none() => Login::NotRequired,
        UnlockMethod::KeyFile => return Err("a key file opens the keystore, and no passphrase".to_owned()),
        _ => return Err("neither a passphrase nor a key file opens the keystore".to_owned()),
    };
    if login_required.is_some_and(|required| required != (login == Login::Pin)) {
        let reason = "`login_required` is not what opens the keystore: a passphrase without a \
                      `passphrase_file` is the PIN";
        return Err(reason.to_owned());
    }
    Ok((address, login, Box::new(Folder { folder, passphrase_file })))
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn with_certificate(
    builder: ClientBuilder,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<ClientBuilder, String> {
    match (certificate, key) {
        (None, None) => Ok(builder),
        (Some(certificate), Some(key)) => {
            let (chain, key) = (read_pem(&certificate)?, Zeroizing::new(read_pem(&key)?));
            let certificate = ClientCertificate::from_pem(&chain, &key).map_err(|error| error.to_string())?;
            Ok(builder.client_certificate(certificate))
        }
        _ => Err("`client_certificate` and `client_key` go together".to_owned()),
    }
}

fn read_pem(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A token in a file, which is read again for each request, so that another program can replace it.
struct TokenFile(PathBuf);

impl TokenFile {
    fn read(&self) -> Result<Token, BoxError> {
        let text = fs::read(&self.0).map(Zeroizing::new);
        let text = text.map_err(|error| format!("{}: {error}", self.0.display()))?;
        if text.len() > MAX_TOKEN_LEN {
            return Err(format!("{}: it is not a token", self.0.display()).into());
        }
        let text = std::str::from_utf8(&text).map_err(|_| "the token file is not text")?;
        Ok(Token::new(text)?)
    }
}

impl TokenProvider for TokenFile {
    fn token(&self) -> BoxFuture<'_, Result<Token, BoxError>> {
        Box::pin(async { self.read() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(text: &str) -> Result<Vec<(String, Login)>, String> {
        Ok(parse(text)?.into_iter().map(|slot| (slot.label, slot.login)).collect())
    }

    #[test]
    fn a_slot_without_a_token_file_takes_the_token_as_its_pin() {
        let text = "
            [[slot]]
            label = \"releases\"
            url = \"unix:/run/bulla/socket\"
            [[slot]]
            label = \"builds\"
            url = \"https://keys.example.org\"
            token_file = \"/run/secrets/bulla\"
            [[slot]]
            label = \"users\"
            url = \"unix:/run/bulla/socket\"
            login_required = false";
        let expected = [
            ("releases".to_owned(), Login::Pin),
            ("builds".to_owned(), Login::NotRequired),
            ("users".to_owned(), Login::NotRequired),
        ];
        assert_eq!(slots(text), Ok(expected.to_vec()));
    }

    #[test]
    fn a_program_with_more_rights_than_its_user_ignores_the_variables() {
        assert!(!has_more_rights());
        assert!(Variables::Read.get("PATH").is_some());
        assert_eq!(Variables::Ignored.get("PATH"), None);
        assert_eq!(user_file(Variables::Ignored), None);
    }

    #[test]
    fn mistakes_are_named() {
        let slot = |rest: &str| format!("[[slot]]\nlabel = \"a\"\nurl = \"unix:/s\"\n{rest}");
        let folder = |path, rest| format!("[[slot]]\nlabel = \"a\"\nkeystore = \"{path}\"\n{rest}");
        for (text, reason) in [
            ("slot = []".to_owned(), "there is no [[slot]]"),
            (slot("tokenfile = \"t\""), "unknown field `tokenfile`"),
            (slot(&slot("")), "two slots have the label \"a\""),
            (slot("client_key = \"k\""), "`client_certificate` and `client_key` go together"),
            (slot("token_file = \"t\"\nlogin_required = true"), "no login is required"),
            ("[[slot]]\nlabel = \"a\"\nurl = \"keys\"".to_owned(), "not the address of a service"),
            ("[[slot]]\nlabel = \"\"\nurl = \"unix:/s\"".to_owned(), "does not have 1 to 32 bytes"),
            ("[[slot]]\nlabel = \"a\"".to_owned(), "name either a service as `url` or a folder"),
            (slot("keystore = \"/k\""), "name either a service as `url` or a folder"),
            (slot("passphrase_file = \"p\""), "a `passphrase_file` is for a `keystore`"),
            (folder("/nowhere", ""), "there is no keystore in /nowhere"),
            (folder("keys", ""), "does not begin with /"),
            (folder("/k", "token_file = \"t\""), "are for a service"),
        ] {
            let error = slots(&text).expect_err(&text);
            assert!(error.contains(reason), "{error}");
        }
    }
}
