//! The part of `ssh-keygen -Y` that git uses: its arguments, its files, its exit statuses, and the
//! lines that git reads.

use super::settings::keystore_args;
use crate::args::{SshKeygenArgs, SshKeygenMode};
#[cfg(unix)]
use crate::commands::agent::AgentClient;
use crate::commands::ssh_keys::{SshSigningKey, is_for_users, name_of};
use crate::error::{Error, Result};
use crate::files::{atomic, sidecar};
use crate::output::Out;
use crate::program;
use crate::ssh_trust::read_list;
use crate::store::KeySource;
use bulla_files::{escape_path, escape_text, folder_of};
use bulla_formats::ssh::{self, AllowedSigners, RevokedKeys, SshKey, SshSignature, SshSigner};
use bulla_formats::{ContentHasher, Coverage, FormatError};
use bulla_kms::prehash::HashFunction;
use bulla_kms::{Attestation, Timestamp};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// The exit status of ssh-keygen for everything that it does not do.
const FAILED: u8 = 255;

/// Whether a command line is one of `ssh-keygen -Y`. No flag of bulla has that name.
pub(crate) fn is_asked(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == "-Y")
}

/// Carries out such a command line.
pub(crate) fn answer(words: Vec<OsString>) -> ExitCode {
    let args: SshKeygenArgs = match program::parse_from(words) {
        Ok(args) => args,
        Err(status) => return status,
    };
    let done = match args.mode {
        SshKeygenMode::Sign => sign(&args),
        SshKeygenMode::FindPrincipals => find_principals(&args),
        SshKeygenMode::MatchPrincipals => match_principals(&args),
        SshKeygenMode::Verify | SshKeygenMode::CheckNovalidate => verify(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.print();
            ExitCode::from(FAILED)
        }
    }
}

/// The argument of a flag that clap requires in this mode.
fn required<T: ?Sized>(value: Option<&T>) -> &T {
    value.expect("the parser requires the flag in this mode")
}

/// An error of a signature, as an error of the command.
struct NotSigned(Error);

impl From<FormatError> for NotSigned {
    fn from(error: FormatError) -> Self {
        Self(Error::new("not_signed", error.to_string()))
    }
}

/// Signs a file, by the agent if it has the key, and else by the keystore or the service.
fn sign(args: &SshKeygenArgs) -> Result<()> {
    let signer = read_signer(required(args.file.as_deref()))?;
    // Before standard input is read: bulla-remote may have to carry this out.
    let private_key = PrivateKey::find(signer.key())?;
    let content = args.content.as_deref().map(Path::new);
    let digest = digest_of(content, Coverage::Sha512)?;
    let by = |message: &[u8]| private_key.sign(message).map_err(NotSigned);
    let signature = ssh::sign_with(signer, required(args.namespace.as_deref()), &digest, by);
    let text = signature.map_err(|NotSigned(error)| error)?.to_string();
    match content {
        Some(path) => write_signature(&sidecar(path, ".sig")?, &text),
        None => {
            let mut out = Out::stdout();
            out.bytes(text.as_bytes())?;
            out.flush()
        }
    }
}

/// Writes a new signature file, complete or not at all. Unlike other files of bulla it is not
/// synced to the disk: git reads it and deletes it, and ssh-keygen does not sync it either. Syncing
/// takes longer than all the rest.
fn write_signature(path: &Path, text: &str) -> Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut draft = tempfile::Builder::new();
    #[cfg(unix)]
    draft.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let written = draft.tempfile_in(folder_of(path)).and_then(|mut draft| {
        draft.write_all(text.as_bytes())?;
        draft.persist_noclobber(path).map_err(|error| error.error)
    });
    written.map(drop).map_err(|error| atomic::cannot_write(path, &error))
}

/// The public key or the certificate in a file. Like ssh-keygen, this takes the name of a private
/// key for that of the public key beside it.
fn read_signer(path: &Path) -> Result<SshSigner> {
    let public = sidecar(path, ".pub")?;
    let is_private = File::open(path).is_ok_and(|file| {
        let mut start = Vec::new();
        file.take(10).read_to_end(&mut start).is_ok() && start == b"-----BEGIN"
    });
    let path = if is_private || !path.exists() && public.exists() { &public } else { path };
    read_list(path, "invalid_public_key", |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().map(str::trim);
        let line = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with('#'));
        SshSigner::parse_line(line.unwrap_or_default())
    })
}

/// What has a private key.
enum PrivateKey {
    #[cfg(unix)]
    Agent(std::cell::RefCell<AgentClient>, SshKey),
    Source(Box<(KeySource, SshSigningKey)>),
}

impl PrivateKey {
    /// Looks for a private key: in the agent first, which may have opened the keystore already.
    fn find(key: &SshKey) -> Result<Self> {
        #[cfg(unix)]
        if let Some(mut agent) = AgentClient::of_variable()
            && agent.has(key)
        {
            return Ok(Self::Agent(agent.into(), key.clone()));
        }
        let source = KeySource::existing(&keystore_args()?)?;
        let keys = source.read()?.list()?;
        let has_it = |one: &&Attestation| {
            let of_version = |public: &_| SshKey::of(public).is_ok_and(|one| one == *key);
            one.versions.iter().any(|version| version.public_key.as_ref().is_some_and(of_version))
        };
        let found = keys.iter().filter(|key| is_for_users(key)).find(has_it).ok_or_else(|| {
            let message = format!("has no key with the fingerprint {}", key.fingerprint());
            Error::new("key_not_found", message).about(place_of(&source)).hint(
                "`bulla git setup --key LABEL` tells git which key to sign with; \
                 BULLA_KEYSTORE or BULLA_ADDR say where the keys are",
            )
        })?;
        let name = name_of(found);
        let signing = SshSigningKey::of(found, &name)?;
        if signing.key != *key {
            let message = format!("has rotated: only {} signs", signing.version);
            return Err(Error::new("wrong_version", message)
                .about(&*name)
                .hint(format!("run `bulla git setup --key {name}`")));
        }
        Ok(Self::Source(Box::new((source, signing))))
    }

    /// The signature, as the protocols of SSH have it.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        match self {
            #[cfg(unix)]
            Self::Agent(agent, key) => agent.borrow_mut().sign(key, message),
            Self::Source(found) => {
                let (source, key) = &**found;
                let version = key.version.to_string();
                let keys = source.open_to_sign(&version)?;
                // By SHA-512, as ssh-keygen signs files with RSA.
                Ok(key.sign(&*keys, &version, message, HashFunction::Sha512)?.1)
            }
        }
    }
}

/// Where the keys are, for an error.
fn place_of(source: &KeySource) -> String {
    source.folder().map_or_else(|| "the service".to_owned(), escape_path)
}

/// The digest of a file, or of standard input.
fn digest_of(path: Option<&Path>, coverage: Coverage) -> Result<Vec<u8>> {
    let about = |error: &io::Error| {
        let name = path.map_or_else(|| "standard input".to_owned(), escape_path);
        Error::io("cannot read", error).about(name)
    };
    let mut input: Box<dyn Read> = match path {
        Some(path) => Box::new(File::open(path).map_err(|error| about(&error))?),
        None => Box::new(io::stdin().lock()),
    };
    let mut hasher = ContentHasher::new(coverage);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => hasher.update(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(about(&error)),
        }
    }
    hasher.finish().map_err(|error| Error::new("not_hashed", error.to_string()))
}

/// When the key must have been valid: in seconds since 1970.
fn verify_time(args: &SshKeygenArgs) -> Result<i64> {
    let mut time = None;
    for option in &args.options {
        let usage = |message: String| Error::new("usage", format!("-O {option}: {message}"));
        let text = option.strip_prefix("verify-time=");
        let text = text.ok_or_else(|| usage("bulla knows only verify-time=TIME".to_owned()))?;
        time = Some(ssh::parse_time(text).map_err(|error| usage(error.to_string()))?);
    }
    match time {
        Some(time) => Ok(time),
        None => Ok(i64::try_from(Timestamp::now()?.unix_millis() / 1000).unwrap_or(i64::MAX)),
    }
}

fn read_signature(args: &SshKeygenArgs) -> Result<SshSignature> {
    read_list(required(args.signature.as_deref()), "malformed_signature", |bytes| {
        SshSignature::parse(&String::from_utf8_lossy(bytes))
    })
}

fn read_allowed(args: &SshKeygenArgs) -> Result<AllowedSigners> {
    read_list(required(args.file.as_deref()), "invalid_allowed_signers", AllowedSigners::parse)
}

/// Prints the principals that may have made the signature, one a line.
fn find_principals(args: &SshKeygenArgs) -> Result<()> {
    let (allowed, signature) = (read_allowed(args)?, read_signature(args)?);
    let found = allowed
        .principals(signature.signer(), verify_time(args)?)
        .map_err(|refusal| Error::new("no_principal", format!("No principal matched: {refusal}")))?;
    let mut out = Out::stdout();
    for principal in found {
        out.line(escape_text(&principal))?;
    }
    out.flush()
}

/// Prints the lists of principals that are for a name, one a line.
fn match_principals(args: &SshKeygenArgs) -> Result<()> {
    let allowed = read_allowed(args)?;
    let found = allowed.matching(required(args.principal.as_deref()));
    if found.is_empty() {
        return Err(Error::new("no_principal", "No principal matched."));
    }
    let mut out = Out::stdout();
    for principals in found {
        out.line(escape_text(principals))?;
    }
    out.flush()
}

/// Verifies standard input: for a principal, or whoever signed it.
fn verify(args: &SshKeygenArgs) -> Result<()> {
    let mut out = Out::stdout();
    let verdict = accepted(args);
    if !args.quiet {
        match &verdict {
            Ok(line) => out.line(line)?,
            Err(_) => out.line("Could not verify signature.")?,
        }
    }
    out.flush()?;
    verdict.map(drop)
}

/// The line for a signature that is accepted.
fn accepted(args: &SshKeygenArgs) -> Result<String> {
    let refused = |why: &dyn std::fmt::Display| Err(Error::new("wrong_key", why.to_string()));
    let signature = read_signature(args)?;
    let (signer, wanted) = (signature.signer(), required(args.namespace.as_deref()));
    if signature.namespace() != wanted {
        let message = format!(
            "the signature is for {}, and {} is wanted",
            escape_text(signature.namespace()),
            escape_text(wanted)
        );
        return Err(Error::new("wrong_namespace", message));
    }
    if let Some(path) = &args.revoked {
        let revoked = read_list(path, "invalid_revoked_keys", RevokedKeys::parse)?;
        if revoked.revokes(signer) {
            return refused(&format_args!(
                "the key {}, or its authority, is revoked",
                signer.key().fingerprint()
            ));
        }
    }
    if !signature.verifies(&digest_of(None, signature.coverage())?) {
        return Err(Error::new("bad_signature", "the content is not what was signed"));
    }
    let principal = match (args.mode, &args.principal) {
        (SshKeygenMode::Verify, Some(principal)) => {
            match read_allowed(args)?.find(&signature, Some(principal), verify_time(args)?) {
                Ok(principal) => format!(" for {}", escape_text(&principal)),
                Err(refusal) => return refused(&refusal),
            }
        }
        _ => String::new(),
    };
    Ok(format!(
        "Good \"{}\" signature{principal} with {} key {}",
        escape_text(wanted),
        signer.kind_name(),
        signer.key().fingerprint()
    ))
}
