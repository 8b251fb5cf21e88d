//! `bulla ssh-cert`: certificates of OpenSSH.

use super::ssh_keys::SshSigningKey;
use crate::args::{SshCertArgs, SshCertCommand, SshCertPolicyArgs, SshCertSignArgs, duration_text};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::{STDIN, atomic};
use crate::output::{JsonPath, Out};
use crate::ssh_trust::read_list;
use crate::store::{KeySource, LocalKeystore, ReadKeys as _};
use bulla_files::{escape_path, escape_text};
use bulla_formats::FormatError;
use bulla_formats::ssh::{NewSshCertificate, SshKey};
use bulla_kms::{KeyChange, Keystore, SshAuthority, SshCertificateKind, Timestamp, generate_random};
use serde::Serialize;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// How long before now a certificate begins: clocks differ.
const SKEW_SECONDS: u64 = 300;

pub(crate) fn run(args: &SshCertArgs) -> Result<Exit> {
    match &args.command {
        SshCertCommand::Policy(args) => policy(args),
        SshCertCommand::Sign(args) => sign(args),
    }?;
    Ok(Exit::Ok)
}

/// Shows the policy of an authority, or changes it.
fn policy(args: &SshCertPolicyArgs) -> Result<()> {
    let local = LocalKeystore::existing(&args.keystore)?;
    let keystore = local.open()?;
    let key = keystore.key(&args.key)?;
    let new = new_policy(args)?;
    let mut out = Out::stdout();
    if new.is_some() || args.remove {
        keystore.update(&key.key, Some(key.revision), &KeyChange::SshAuthority(new))?;
        out = Out::after("the policy was changed");
    }
    let policy = keystore.ssh_authority(&key.key)?;
    drop(keystore);
    if args.report.json {
        #[derive(Serialize)]
        struct Line<'a> {
            key: String,
            policy: Option<&'a SshAuthority>,
        }
        out.json(&Line { key: key.key.to_string(), policy: policy.as_ref() })?;
    } else if !args.report.quiet {
        print_policy(&mut out, &args.key, policy.as_ref())?;
    }
    out.flush()
}

/// The policy that the flags describe, if there are any.
fn new_policy(args: &SshCertPolicyArgs) -> Result<Option<SshAuthority>> {
    let kinds = [(args.user, SshCertificateKind::User), (args.host, SshCertificateKind::Host)];
    let kinds: Vec<_> = kinds.into_iter().filter_map(|(is_given, kind)| is_given.then_some(kind)).collect();
    let others = [&args.principals, &args.extensions, &args.options];
    let Some(max_life) = args.max_life.filter(|_| !kinds.is_empty()) else {
        if !kinds.is_empty() || args.max_life.is_some() || others.iter().any(|names| !names.is_empty()) {
            let message = "a policy has --user, --host or both, --principal, and --max-life";
            return Err(Error::new("usage", message));
        }
        return Ok(None);
    };
    let seconds = NonZeroU64::new(max_life.as_secs());
    let seconds = seconds.ok_or_else(|| Error::new("usage", "--max-life: it must be longer than 0s"))?;
    let mut policy = SshAuthority::new(kinds, seconds);
    policy.principals.clone_from(&args.principals);
    policy.extensions.clone_from(&args.extensions);
    policy.critical_options.clone_from(&args.options);
    Ok(Some(policy))
}

fn print_policy(out: &mut Out, name: &str, policy: Option<&SshAuthority>) -> Result<()> {
    let Some(policy) = policy else {
        return out.line(format_args!("the key {name} has no policy: it is no authority of OpenSSH"));
    };
    let kinds = policy.kinds.iter().map(|kind| match kind {
        SshCertificateKind::User => "users",
        SshCertificateKind::Host => "servers",
    });
    let listed = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    out.line(format_args!("certificates for  {}", kinds.collect::<Vec<_>>().join(" and ")))?;
    out.line(format_args!("principals        {}", listed(&policy.principals)))?;
    out.line(format_args!("longest life      {}", duration_text(policy.max_life_seconds.get())))?;
    out.line(format_args!("extensions        {}", listed(&policy.extensions)))?;
    out.line(format_args!("critical options  {}", listed(&policy.critical_options)))
}

/// Why a certificate was not signed.
struct NotSigned(Error);

impl From<FormatError> for NotSigned {
    fn from(error: FormatError) -> Self {
        Self(Error::new("not_signed", error.to_string()))
    }
}

fn sign(args: &SshCertSignArgs) -> Result<()> {
    let source = KeySource::existing(&args.keystore)?;
    let key = read_list(&args.public_key, "invalid_public_key", |bytes| {
        SshKey::parse(String::from_utf8_lossy(bytes).trim())
    })?;
    let target = target(args)?;
    let authority = SshSigningKey::of(&source.read()?.key(&args.ca)?, &args.ca)?;
    if let KeySource::Local(local) = &source {
        check_policy(&local.open_to_sign(&args.ca)?, &authority)?;
    }
    let (new, valid_before) = new_certificate(args, key)?;
    let mut nonce = [0; 32];
    generate_random(&mut nonce)?;
    let version = authority.version.to_string();
    let line = new.sign(&authority.public_key, &nonce, |message| {
        let signed = source.open_to_sign(&version).and_then(|keys| keys.sign(&version, message));
        signed.map(|signature| signature.bytes).map_err(NotSigned)
    });
    let line = line.map_err(|NotSigned(error)| error)? + &format!(" {}\n", escape_text(&args.id));
    match &target {
        Some(path) => atomic::write_new(path, |sink| {
            sink.write_all(line.as_bytes()).map_err(|error| atomic::cannot_write(path, &error))
        })?,
        None => {
            let mut out = Out::after("the certificate was signed");
            out.bytes(line.as_bytes())?;
            return out.flush();
        }
    }
    report(args, target.as_deref(), (&new, valid_before), &version)
}

/// An error for a key that is no authority: it would sign anything.
fn check_policy(keystore: &Keystore, authority: &SshSigningKey) -> Result<()> {
    if keystore.ssh_authority(authority.version.key_id())?.is_some() {
        return Ok(());
    }
    let name = &authority.name;
    let message = format!("the key {name} has no policy: it is no authority of OpenSSH");
    let hint = format!("set one with `bulla ssh-cert policy {name} --user --principal NAME --max-life 1d`");
    Err(Error::new("no_policy", message).hint(hint))
}

/// Where the certificate goes; none for standard output.
fn target(args: &SshCertSignArgs) -> Result<Option<PathBuf>> {
    let path = match &args.output {
        Some(path) if path.as_path() == Path::new(STDIN) => {
            if args.report.json {
                let message = "with --json the certificate cannot go to standard output";
                return Err(Error::new("usage", message).hint("name a file with --output"));
            }
            return Ok(None);
        }
        Some(path) => path.clone(),
        None => {
            let stem = args.public_key.file_stem().unwrap_or_default();
            let mut name = stem.to_owned();
            name.push("-cert.pub");
            args.public_key.with_file_name(name)
        }
    };
    match path.exists() {
        true => Err(Error::new("already_exists", "exists already; bulla does not replace it")
            .about(escape_path(&path))
            .hint("move it away, or name another file with --output")),
        false => Ok(Some(path)),
    }
}

/// The certificate that is asked for, and when it ends.
fn new_certificate(args: &SshCertSignArgs, key: SshKey) -> Result<(NewSshCertificate, Timestamp)> {
    if args.valid_for.is_zero() {
        return Err(Error::new("usage", "--valid-for: it must be longer than 0s"));
    }
    let now = Timestamp::now()?.unix_millis() / 1000;
    let valid_before = now.saturating_add(args.valid_for.as_secs());
    let end = Timestamp::from_unix_millis(valid_before.saturating_mul(1000))?;
    let mut random = [0; 8];
    generate_random(&mut random)?;
    let new = NewSshCertificate {
        key,
        kind: if args.host { SshCertificateKind::Host } else { SshCertificateKind::User },
        serial: args.serial.unwrap_or(u64::from_be_bytes(random)),
        key_id: args.id.clone(),
        principals: args.principals.clone(),
        valid_after: now.saturating_sub(SKEW_SECONDS),
        valid_before,
        critical_options: args.options.clone(),
        extensions: args.extensions.clone(),
    };
    Ok((new, end))
}

fn report(
    args: &SshCertSignArgs,
    path: Option<&Path>,
    (new, valid_before): (&NewSshCertificate, Timestamp),
    authority: &str,
) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let mut out = Out::after("the certificate was signed");
    if args.report.json {
        #[derive(Serialize)]
        struct Line<'a> {
            certificate: JsonPath,
            authority: &'a str,
            kind: SshCertificateKind,
            serial: String,
            key_id: &'a str,
            principals: &'a [String],
            valid_before: Timestamp,
        }
        out.json(&Line {
            certificate: path.into(),
            authority,
            kind: new.kind,
            serial: new.serial.to_string(),
            key_id: &new.key_id,
            principals: &new.principals,
            valid_before,
        })?;
    } else if !args.report.quiet {
        let names = escape_text(&new.principals.join(", ")).into_owned();
        let (path, serial) = (escape_path(path), new.serial);
        out.line(format_args!("{path}: certificate {serial} for {names}, until {valid_before}"))?;
    }
    out.flush()
}
