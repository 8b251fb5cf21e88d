//! The way to a service, and the errors on it.

use crate::keys::read;
use bulla_cli::audit_log::Log;
use bulla_cli::file::secret;
use bulla_cli::keystore::ServerArgs;
use bulla_cli::remote::{Keys, Service};
use bulla_client::blocking::Client;
use bulla_client::{
    Address, ClientBuilder, ClientCertificate, ErrorCode, ErrorKind, RootCertificates, ServiceError, Token,
};
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_files::escape_path;
use bulla_kms::audit_log::Checkpoint;
use bulla_kms::token::MAX_TOKEN_LEN;
use bulla_kms::{Code, KmsError};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The variable with the token.
const TOKEN: &str = "BULLA_TOKEN";
/// Longer than any file with certificates that a person writes.
const MAX_PEM: usize = 1 << 20;

/// A service that has keys.
#[derive(Clone)]
pub struct ServiceConnection {
    client: Client,
    log: PathBuf,
}

impl ServiceConnection {
    /// The service at an address. It is not asked anything yet.
    ///
    /// # Errors
    /// The address is malformed; a file with a token, a certificate or a key cannot be used.
    pub fn new(address: &str, args: &ServerArgs) -> Result<Self> {
        let mut builder = client_builder(address, args)?;
        if let Some((token, subject)) = given_token(args)? {
            builder = builder.token(parse_token(&token, subject)?);
        }
        Self::by(builder)
    }

    /// The same, without a token, even if one is given: for a login.
    pub(crate) fn without_token(address: &str, args: &ServerArgs) -> Result<Self> {
        Self::by(client_builder(address, args)?)
    }

    fn by(builder: ClientBuilder) -> Result<Self> {
        let client = builder.build().and_then(Client::new).map_err(error_of)?;
        Ok(Self { log: client.address().to_string().into(), client })
    }

    /// Refuses to send a secret over a network without encryption.
    pub(crate) fn check_encrypted(&self, secret: &str, hint: &str) -> Result<()> {
        let address = self.client.address();
        if !address.is_exposed() {
            return Ok(());
        }
        let message = format!("{secret} would travel unencrypted to {address}");
        Err(Error::new("unencrypted", message).hint(hint))
    }

    /// What names the service's audit log for people.
    pub(crate) fn log_place(&self) -> &Path {
        &self.log
    }

    /// The client of the service.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Makes a call.
    pub(crate) fn ask<T>(&self, call: impl FnOnce(&Client) -> bulla_client::Result<T>) -> Result<T> {
        call(&self.client).map_err(error_of)
    }

    /// Makes a call for the keystore's own interfaces, whose errors have codes.
    pub(crate) fn ask_coded<T>(
        &self,
        call: impl FnOnce(&Client) -> bulla_client::Result<T>,
    ) -> Result<T, KmsError> {
        call(&self.client).map_err(|error| match error.service_error() {
            Some(ServiceError { code, message, .. }) if let Some(code) = keystore_code(code) => {
                KmsError::new(code, message.clone())
            }
            _ => KmsError::new(Code::Unavailable, format!("{error:#}")),
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
        let made = self.ask(|client| client.make_checkpoint())?;
        read(&made.text, "the checkpoint")
    }
}

impl std::fmt::Debug for ServiceConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServiceConnection({})", self.log.display())
    }
}

/// The settings of a client, without a token.
///
/// # Errors
/// The address is malformed; a file with a certificate or a key cannot be used.
pub(crate) fn client_builder(address: &str, args: &ServerArgs) -> Result<ClientBuilder> {
    let address: Address = address.parse().map_err(|error: bulla_client::Error| {
        Error::new("usage", error.to_string()).hint("check --server or BULLA_ADDR")
    })?;
    let has_token = args.token_file.is_some() || std::env::var_os(TOKEN).is_some_and(|text| !text.is_empty());
    if has_token && address.is_exposed() {
        note_line(&format!("the token travels unencrypted to {address}: use https or a Unix socket"));
    }
    let mut builder = bulla_client::Client::builder(address);
    if let Some(path) = &args.server_ca {
        let pem = secret::read(path, "the authorities", MAX_PEM, secret::Secrecy::NotSecret)?;
        let roots =
            RootCertificates::from_pem(&pem).map_err(|error| error_of(error).about(escape_path(path)))?;
        builder = builder.root_certificates(roots);
    }
    match (&args.client_certificate, &args.client_key) {
        (None, None) => Ok(builder),
        (Some(certificate), Some(key)) => {
            let chain = secret::read(certificate, "the certificate", MAX_PEM, secret::Secrecy::NotSecret)?;
            let key = secret::read(key, "the private key", MAX_PEM, secret::Secrecy::Secret)?;
            let certificate = ClientCertificate::from_pem(&chain, &key)
                .map_err(|error| error_of(error).about(escape_path(certificate)))?;
            Ok(builder.client_certificate(certificate))
        }
        _ => {
            let message = "a client certificate and its private key go together";
            Err(Error::new("usage", message).hint("give both --client-certificate and --client-key"))
        }
    }
}

/// A token for the client. `subject` names its source.
pub(crate) fn parse_token(token: &str, subject: String) -> Result<Token> {
    Token::new(token).map_err(|error| Error::new("invalid_token", error.to_string()).about(subject))
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
fn keystore_code(code: &ErrorCode) -> Option<Code> {
    Code::ALL.iter().copied().find(|known| known.as_str() == code.as_str())
}

const UNEXPECTED_HINT: &str = "check that --server or BULLA_ADDR names a `bulla serve` of this version";

/// An error as users read it: what the keystore says is the same here and there.
pub(crate) fn error_of(error: bulla_client::Error) -> Error {
    if let Some(error) = error.service_error() {
        return error_of_service(error);
    }
    let message = format!("{error:#}");
    let (code, hint) = match error.kind() {
        ErrorKind::Connect => {
            ("unreachable", "check the address in --server or BULLA_ADDR, and that the service runs")
        }
        ErrorKind::Certificate => {
            ("certificate", "check the host's name in --server, --server-ca, and the client's certificate")
        }
        ErrorKind::Interrupted | ErrorKind::Timeout => {
            ("no_answer", "whether a change was made is not known: look before you run the command again")
        }
        ErrorKind::InvalidResponse => ("unexpected_answer", UNEXPECTED_HINT),
        _ => return Error::new("invalid_argument", message),
    };
    Error::new(code, message).hint(hint)
}

fn error_of_service(ServiceError { code, message, .. }: &ServiceError) -> Error {
    let hint = match code {
        ErrorCode::Unauthenticated => {
            "give the service a token, in the variable BULLA_TOKEN or with --token-file FILE"
        }
        ErrorCode::Sealed => "an operator must unseal the service",
        ErrorCode::NoAuditLog => "start one with `bulla log init`, on the service's machine",
        _ => {
            return match keystore_code(code) {
                Some(code) => KmsError::new(code, message.clone()).into(),
                None => Error::new(code.as_str(), message.clone()),
            };
        }
    };
    Error::new(code.as_str(), message.clone()).hint(hint)
}

/// An error about an answer that does not say what it should.
pub(crate) fn unexpected(why: &str) -> Error {
    Error::new("unexpected_answer", format!("the answer is not one of the service: {why}"))
        .hint(UNEXPECTED_HINT)
}
