//! Whose signatures of OpenSSH are accepted, for what, and when.

use crate::args::TrustArgs;
use crate::error::{Error, Result};
use crate::findings::{Finding, Problem};
use bulla_files::escape_path;
use bulla_formats::FormatError;
use bulla_formats::ssh::{self, AllowedSigners, Refusal, RevokedKeys, SshSignature};
use bulla_kms::Timestamp;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The maximum length of a file with signers or revoked keys.
const MAX_LIST_LEN: u64 = 8 << 20;

/// What the flags say about signatures of OpenSSH.
pub(crate) struct SshTrust {
    allowed: Option<AllowedSigners>,
    principal: Option<String>,
    revoked: RevokedKeys,
    namespace: String,
}

impl SshTrust {
    pub(crate) fn new(args: &TrustArgs) -> Result<Self> {
        ssh::check_namespace(&args.namespace)
            .map_err(|error| Error::new("usage", format!("--namespace: {error}")))?;
        let allowed = args
            .allowed_signers
            .as_deref()
            .map(|path| read_list(path, "invalid_allowed_signers", AllowedSigners::parse));
        let revoked =
            args.revoked.as_deref().map(|path| read_list(path, "invalid_revoked_keys", RevokedKeys::parse));
        Ok(Self {
            allowed: allowed.transpose()?,
            principal: args.principal.clone(),
            revoked: revoked.transpose()?.unwrap_or_default(),
            namespace: args.namespace.clone(),
        })
    }

    /// Refuses a signature that is for something else, or whose key is revoked.
    pub(crate) fn check(&self, signature: &SshSignature) -> Result<(), Finding> {
        let (found, wanted) = (signature.namespace(), &self.namespace);
        if found != wanted {
            return Err(Problem::WrongNamespace.because(format!(
                "it is signed in the namespace {}, and {} is wanted: see --namespace",
                escape_path(Path::new(found)),
                escape_path(Path::new(wanted))
            )));
        }
        if self.revoked.revokes(signature.signer()) {
            let key = signature.signer().key().fingerprint();
            return Err(Problem::WrongKey.because(format!("its key {key}, or its authority, is revoked")));
        }
        Ok(())
    }

    /// The principal that signed, by the list of allowed signers; None without a list.
    pub(crate) fn principal(&self, signature: &SshSignature) -> Result<Option<String>, Finding> {
        let Some(allowed) = &self.allowed else { return Ok(None) };
        let now = Timestamp::now().map_err(Error::from)?.unix_millis() / 1000;
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let found = allowed.find(signature, self.principal.as_deref(), now);
        found.map(Some).map_err(|refusal| {
            let problem = match refusal {
                Refusal::Namespace => Problem::WrongNamespace,
                Refusal::Expired | Refusal::NotYetValid => Problem::Expired,
                _ => Problem::WrongKey,
            };
            let key = signature.signer().key().fingerprint();
            problem.because(format!("it is signed by {key}: {refusal}"))
        })
    }
}

/// Reads a file of keys.
pub(crate) fn read_list<T>(
    path: &Path,
    code: &'static str,
    parse: impl FnOnce(&[u8]) -> Result<T, FormatError>,
) -> Result<T> {
    let about = |error: Error| error.about(escape_path(path));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_LIST_LEN + 1).read_to_end(&mut bytes));
    read.map_err(|error| about(Error::io("cannot read the list of keys", &error)))?;
    if bytes.len() as u64 > MAX_LIST_LEN {
        let message = format!("is too long: a list of keys has at most {MAX_LIST_LEN} bytes");
        return Err(about(Error::new("file_too_large", message)));
    }
    parse(&bytes).map_err(|error| about(Error::new(code, error.to_string())))
}
