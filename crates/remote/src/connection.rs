//! The way to a service, and the errors on it.

use crate::keys::read;
use bulla_cli::audit_log::Log;
use bulla_cli::file::secret;
use bulla_cli::keystore::ServerArgs;
use bulla_cli::remote::{Keys, Service};
use bulla_client::{Address, Blocking, Client, Refusal, Settings};
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_files::escape_path;
use bulla_kms::audit_log::Checkpoint;
use bulla_kms::token::MAX_TOKEN_LEN;
use bulla_kms::{Code, KmsError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The variable with the token.
const TOKEN: &str = "BULLA_TOKEN";
/// Longer than any file with certificates that a person writes.
const MAX_PEM: usize = 1 << 20;

/// A service that has keys.
#[derive(Clone)]
pub struct ServiceConnection {
    client: Arc<Blocking>,
    log: PathBuf,
}

impl ServiceConnection {
    /// The service at an address. It is not asked anything yet.
    ///
    /// # Errors
    /// The address is malformed; a file with a token, a certificate or a key cannot be used.
    pub fn new(address: &str, args: &ServerArgs) -> Result<Self> {
        let address: Address = address.parse().map_err(|error: bulla_client::Error| {
            Error::new("usage", error.to_string()).hint("check --server or BULLA_ADDR")
        })?;
        let mut settings = Settings::new(address.clone());
        if let Some((token, subject)) = given_token(args)? {
            let unusable =
                |error: bulla_client::Error| Error::new("invalid_token", error.to_string()).about(subject);
            settings = settings.token(&token).map_err(unusable)?;
            if address.is_exposed() {
                note_line(&format!("the token travels unencrypted to {address}: use https or a Unix socket"));
            }
        }
        if let Some(path) = &args.server_ca {
            let pem = secret::read(path, "the authorities", MAX_PEM, secret::Secrecy::NotSecret)?;
            settings =
                settings.authorities(&pem).map_err(|error| error_of(error).about(escape_path(path)))?;
        }
        settings = match (&args.client_certificate, &args.client_key) {
            (None, None) => settings,
            (Some(certificate), Some(key)) => {
                let chain =
                    secret::read(certificate, "the certificate", MAX_PEM, secret::Secrecy::NotSecret)?;
                let key = secret::read(key, "the private key", MAX_PEM, secret::Secrecy::Secret)?;
                settings
                    .certificate(&chain, &key)
                    .map_err(|error| error_of(error).about(escape_path(certificate)))?
            }
            _ => {
                let message = "a client certificate and its private key go together";
                return Err(
                    Error::new("usage", message).hint("give both --client-certificate and --client-key")
                );
            }
        };
        let client = Client::new(settings).and_then(Blocking::new).map_err(error_of)?;
        Ok(Self { client: Arc::new(client), log: address.to_string().into() })
    }

    /// Refuses to send a private key over a network without encryption.
    pub(crate) fn check_encrypted(&self) -> Result<()> {
        let address = self.client.client().address();
        if !address.is_exposed() {
            return Ok(());
        }
        let message = format!("the private key would travel unencrypted to {address}");
        Err(Error::new("unencrypted", message).hint("use https or a Unix socket, or import a wrapped key"))
    }

    /// What names the service's audit log for people.
    pub(crate) fn log_place(&self) -> &Path {
        &self.log
    }

    /// Makes calls, and waits for them.
    pub(crate) fn wait<T>(&self, calls: impl AsyncFnOnce(&Client) -> bulla_client::Result<T>) -> Result<T> {
        self.client.wait(calls).map_err(error_of)
    }

    /// The same for the keystore's own interfaces, whose errors have codes.
    pub(crate) fn wait_coded<T>(
        &self,
        calls: impl AsyncFnOnce(&Client) -> bulla_client::Result<T>,
    ) -> Result<T, KmsError> {
        self.client.wait(calls).map_err(|error| match error.refusal() {
            Some(Refusal { code, message, .. }) if let Some(code) = code_of(code) => {
                KmsError::new(code, message.clone())
            }
            _ => KmsError::new(Code::Unavailable, error.to_string()),
        })
    }
}

impl Service for ServiceConnection {
    fn keys(&self) -> Box<dyn Keys + Send + Sync> {
        Box::new(self.clone())
    }

    fn log(&self) -> Box<dyn Log> {
        Box::new(self.clone())
    }

    fn make_checkpoint(&self) -> Result<Checkpoint> {
        let made = self.wait(async |client| client.make_checkpoint().await)?;
        read(&made.checkpoint, "the checkpoint")
    }
}

impl std::fmt::Debug for ServiceConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServiceConnection({})", self.log.display())
    }
}

/// The token from a file, or from the environment, and the name of its source. It never comes from
/// an argument, which other users can see.
pub(crate) fn given_token(args: &ServerArgs) -> Result<Option<(Zeroizing<String>, String)>> {
    let not_text = |subject: &str| Error::new("invalid_token", "is not a token").about(subject);
    if let Some(path) = &args.token_file {
        let bytes = secret::read(path, "the token", MAX_TOKEN_LEN + 1, secret::Secrecy::Secret)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| not_text(&escape_path(path)))?;
        return Ok(Some((Zeroizing::new(text.to_owned()), escape_path(path))));
    }
    match std::env::var_os(TOKEN) {
        None => Ok(None),
        Some(text) if text.is_empty() => Ok(None),
        Some(text) => match text.into_string() {
            Ok(text) => Ok(Some((Zeroizing::new(text), TOKEN.to_owned()))),
            Err(_) => Err(not_text(TOKEN)),
        },
    }
}

/// The keystore's code of that name.
fn code_of(code: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|known| known.as_str() == code)
}

/// An error as users read it: what the keystore says is the same here and there.
pub(crate) fn error_of(error: bulla_client::Error) -> Error {
    use bulla_client::Error as Failure;
    let unknown = "whether a change was made is not known: look before you run the command again";
    match error {
        Failure::Refused(refusal) => refused(*refusal),
        Failure::Unreachable(_) => Error::new("unreachable", error.to_string())
            .hint("check the address in --server or BULLA_ADDR, and that the service runs"),
        Failure::Certificate(_) => Error::new("certificate", error.to_string())
            .hint("check the host's name in --server, --server-ca, and the client's certificate"),
        Failure::Interrupted(_) | Failure::Deadline(_) => {
            Error::new("no_answer", error.to_string()).hint(unknown)
        }
        Failure::Unexpected(_) => Error::new("unexpected_answer", error.to_string())
            .hint("check that --server or BULLA_ADDR names a `bulla serve` of this version"),
        _ => Error::new("invalid_argument", error.to_string()),
    }
}

fn refused(Refusal { code, message, .. }: Refusal) -> Error {
    let hint = match (code.as_str(), code_of(&code)) {
        ("unauthenticated", _) => {
            "give the service a token, in the variable BULLA_TOKEN or with --token-file FILE"
        }
        ("sealed", _) => "an operator must unseal the service",
        ("no_audit_log", _) => "start one with `bulla log init`, on the service's machine",
        (_, Some(code)) => return KmsError::new(code, message).into(),
        (_, None) => return Error::new(&code, message),
    };
    Error::new(&code, message).hint(hint)
}

/// An error about an answer that does not say what it should.
pub(crate) fn unexpected(why: &str) -> Error {
    error_of(bulla_client::Error::Unexpected(why.to_owned()))
}
