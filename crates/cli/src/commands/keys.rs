//! `bulla keys`: making, showing and rotating keys.

use super::key_change::{
    change, is_public_only, name, print_changed, rotation_advice, what_it_does, what_it_does_not,
};
use super::{key_change, transfer};
use crate::args::{
    ExportPublicArgs, KeyArgs, KeysAttestArgs, KeysCommand, KeysCreateArgs, KeysListArgs, KeysShowArgs,
    KeysSuccessionArgs, PublicKeyFormat,
};
use crate::color;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::atomic;
use crate::files::atomic::check_replaceable;
use crate::output::Out;
use crate::store::{KeySource, parse_name, remote_functions};
use bulla_formats::minisign::NumberedKey;
use bulla_formats::signify;
use bulla_formats::ssh::SshKey;
use bulla_keystore::{LabelOrId, tenant};
use bulla_kms::transfer::{PublicFormat, export_public as write_public, import_public};
use bulla_kms::{
    Algorithm, Attestation, KeyChange, KeyDerivation, KeyState, KeyUsage, KeyVersionId, NamedPublicKey,
    NewKey, Origin, PublicKey, SignedAttestation, Succession, TOKEN_ROOT_PURPOSE, VersionState,
};
use std::path::Path;

pub(crate) fn run(command: &KeysCommand) -> Result<Exit> {
    match command {
        KeysCommand::Create(args) => create(args),
        KeysCommand::List(args) => list(args),
        KeysCommand::Show(args) => show(args),
        KeysCommand::Rotate(args) => rotate(args),
        KeysCommand::Refresh(args) => refresh(args),
        KeysCommand::Repair(args) => repair(args),
        KeysCommand::Succession(args) => succession(args),
        KeysCommand::Attest(args) => attest(args),
        KeysCommand::Disable(args) => on_key(args, &KeyChange::Disable, |out, key| {
            let rest = if key.algorithm.has_usage(KeyUsage::Signature) {
                "; its signatures still verify"
            } else {
                ""
            };
            out.line(format_args!("disabled {}: {}{rest}", name(key), what_it_does_not(key)))
        }),
        KeysCommand::Enable(args) => on_key(args, &KeyChange::Enable, |out, key| {
            let does = what_it_does(key);
            out.line(format_args!("enabled {}: it {does} with version {}", name(key), key.latest_version))
        }),
        KeysCommand::Policy(args) => key_change::policy(args),
        KeysCommand::Revoke(args) => key_change::revoke(args),
        KeysCommand::Destroy(args) => key_change::destroy(args),
        KeysCommand::ExportPublic(args) => export_public(args),
        KeysCommand::CancelDestruction(args) => on_key(args, &KeyChange::CancelDestruction, |out, key| {
            out.line(format_args!(
                "canceled the destruction of {0}: it is disabled until `bulla keys enable {0}`",
                name(key)
            ))
        }),
        KeysCommand::Import(args) => transfer::import(args),
        KeysCommand::Export(args) => remote_functions()?.export_key(args),
        KeysCommand::Csr(args) => remote_functions()?.request_certificate(args),
    }?;
    Ok(Exit::Ok)
}

fn create(args: &KeysCreateArgs) -> Result<()> {
    let (label, purpose) = (parse_name(&args.label)?, parse_name(&args.purpose)?);
    let source = KeySource::existing_or_new(&args.keystore)?;
    let new = NewKey::new(tenant(), purpose, args.algorithm)
        .backend(args.backend.name().to_owned())
        .exportable(args.exportable)
        .signs_digests(args.signs_digests)
        .derivation(args.derivation.map(Into::into).unwrap_or_default());
    let key = source.open()?.create(new.label(label))?;
    let mut out = Out::after("the key was created");
    if args.report.json {
        out.json(&key)?;
    } else if !args.report.quiet {
        let id = key.versions.last().map(|version| version.id.to_string()).unwrap_or_default();
        out.line(format_args!("created {}: {id}", name(&key)))?;
    }
    out.flush()
}

fn list(args: &KeysListArgs) -> Result<()> {
    let keys = KeySource::existing(&args.keystore)?.read()?.list()?;
    let mut out = Out::stdout();
    if args.json {
        keys.iter().try_for_each(|key| out.json(key))?;
        return out.flush();
    }
    let label = |key: &Attestation| key.label.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let width = keys.iter().map(|key| label(key).len()).max().unwrap_or(0).max("LABEL".len());
    out.line(format_args!("{:width$}  STATE      LATEST  CREATED                   KEY", "LABEL"))?;
    for key in &keys {
        let color = if key.state == KeyState::Enabled { color::GOOD } else { color::BAD };
        let state = match key.state {
            KeyState::Enabled if is_public_only(key) => "verifies",
            KeyState::Enabled => "enabled",
            KeyState::PendingDestruction { .. } => "pending",
            KeyState::Destroyed => "destroyed",
            _ => "disabled",
        };
        let color = out.style(color);
        let created = key.versions.first().map_or_else(String::new, |version| version.created.to_string());
        let latest = format!("v{}", key.latest_version);
        out.line(format_args!(
            "{:width$}  {color}{state:9}{color:#}  {latest:6}  {created}  {}",
            label(key),
            key.key
        ))?;
    }
    out.flush()
}

fn rotate(args: &KeyArgs) -> Result<()> {
    let key = KeySource::existing(&args.keystore)?.open()?.rotate(&args.key)?;
    let done = format!("{} was rotated to version {}", name(&key), key.latest_version);
    print_changed(&key, args.report, &done, print_rotated)
}

fn refresh(args: &KeyArgs) -> Result<()> {
    let key = KeySource::existing(&args.keystore)?.open()?.refresh_shares(&args.key)?;
    let done = format!("the shares of {} were refreshed", name(&key));
    print_changed(&key, args.report, &done, |out, key| {
        out.line(format_args!("refreshed the shares of {}; the public key is the same", name(key)))?;
        print_shares(out, key)
    })
}

fn repair(args: &KeyArgs) -> Result<()> {
    let key = KeySource::existing(&args.keystore)?.open()?.repair_shares(&args.key)?;
    let done = format!("the node's shares of {} were repaired", name(&key));
    print_changed(&key, args.report, &done, |out, key| {
        out.line(format_args!("repaired the node's shares of {}", name(key)))?;
        print_shares(out, key)
    })
}

/// Who holds the shares of each version.
fn print_shares(out: &mut Out, key: &Attestation) -> Result<()> {
    for version in &key.versions {
        let Some(shares) = &version.shares else { continue };
        let holders: Vec<_> = shares.holders.iter().map(ToString::to_string).collect();
        out.line(format_args!(
            "shares     v{}: {} of {} nodes sign together ({}), epoch {}",
            version.version,
            shares.threshold,
            holders.len(),
            holders.join(", "),
            shares.epoch
        ))?;
    }
    Ok(())
}

fn print_rotated(out: &mut Out, key: &Attestation) -> Result<()> {
    let name = name(key);
    let does = what_it_does(key);
    out.line(format_args!("rotated {name}: version {} {does} from now on", key.latest_version))?;
    match key.algorithm.usage() {
        KeyUsage::Signature => {}
        KeyUsage::Encryption => return out.line("ciphertexts of older versions still decrypt"),
        _ => return Ok(()),
    }
    out.line("signatures by older versions still verify")?;
    if key.key.purpose().as_str() == TOKEN_ROOT_PURPOSE {
        return Ok(());
    }
    rotation_advice(&name).iter().try_for_each(|line| out.line(line))
}

fn succession(args: &KeysSuccessionArgs) -> Result<()> {
    let statements = KeySource::existing(&args.keystore)?.open()?.successions(&args.key)?;
    if statements.is_empty() {
        return Err(Error::new("no_succession", "no older version of the key can vouch for a newer one")
            .about(args.key.clone())
            .hint("publish the public key itself: `bulla keys export-public`"));
    }
    let text: String = statements.iter().map(ToString::to_string).collect();
    let is_one = |text: &[u8]| Succession::parse_all(text).is_ok_and(|statements| !statements.is_empty());
    write_or_print(text.as_bytes(), args.output.as_deref(), "a statement of succession", is_one)
}

fn attest(args: &KeysAttestArgs) -> Result<()> {
    let is_one = |text: &[u8]| serde_json::from_slice::<SignedAttestation>(text).is_ok();
    if let Some(output) = &args.output {
        check_replaceable(output, "an attestation", is_one)?;
    }
    let text = KeySource::existing(&args.keystore)?.open()?.attest(&args.key)? + "\n";
    write_or_print(text.as_bytes(), args.output.as_deref(), "an attestation", is_one)
}

fn on_key(
    args: &KeyArgs,
    wanted: &KeyChange,
    print: impl FnOnce(&mut Out, &Attestation) -> Result<()>,
) -> Result<()> {
    change(&args.keystore, &args.key, args.report, wanted, print)
}

fn show(args: &KeysShowArgs) -> Result<()> {
    let key = KeySource::existing(&args.keystore)?.read()?.key(&args.key)?;
    let mut out = Out::stdout();
    if args.json {
        out.json(&key)?
    } else {
        print_key(&mut out, &key)?
    }
    out.flush()
}

fn print_key(out: &mut Out, key: &Attestation) -> Result<()> {
    let state = match key.state {
        KeyState::Enabled if is_public_only(key) => "public key only: it verifies".to_owned(),
        KeyState::Enabled => "enabled".to_owned(),
        KeyState::PendingDestruction { after } => {
            format!("pending destruction: {}, and can be destroyed after {after}", what_it_does_not(key))
        }
        KeyState::Destroyed if key.algorithm.has_usage(KeyUsage::Signature) => {
            "destroyed: it only verifies".to_owned()
        }
        KeyState::Destroyed => "destroyed".to_owned(),
        _ => format!("disabled: {}", what_it_does_not(key)),
    };
    out.line(format_args!("key        {}", key.key))?;
    if let Some(label) = &key.label {
        out.line(format_args!("label      {label}"))?;
    }
    out.line(format_args!("algorithm  {}", key.algorithm))?;
    out.line(format_args!("state      {state}"))?;
    if key.exportable {
        out.line("exportable yes, with a token that permits it")?;
    }
    match key.derivation {
        KeyDerivation::PerContext => out.line("derivation per context: each context has a key of its own")?,
        KeyDerivation::Convergent => {
            out.line("derivation convergent: equal values in one context have equal ciphertexts")?;
        }
        _ => {}
    }
    if key.signs_digests {
        out.line("digests    it signs digests, and no files or other statements")?;
    }
    if let Some(least) = key.minimum_signing_version {
        out.line(format_args!("signs      every version from v{}, if it is named", least.max(1)))?;
    }
    for version in &key.versions {
        let mut until = match version.retired {
            Some(retired) => format!("retired {retired}"),
            None => "latest".to_owned(),
        };
        match version.state {
            VersionState::Revoked => until.push_str(", revoked"),
            VersionState::Destroyed => until.push_str(", private key destroyed"),
            _ => {}
        }
        if version.origin == Origin::Imported {
            until.push_str(", imported");
        }
        let public_key =
            version.public_key.as_ref().map_or_else(|| "no public key".to_owned(), ToString::to_string);
        out.line(format_args!("v{:<9} {public_key}  created {}  {until}", version.version, version.created))?;
    }
    print_shares(out, key)
}

fn export_public(args: &ExportPublicArgs) -> Result<()> {
    let attestation = KeySource::existing(&args.keystore)?.read()?.key(&args.key)?;
    let number = LabelOrId::parse(&args.key)?.version().unwrap_or(attestation.latest_version);
    let version =
        attestation.versions.into_iter().find(|version| version.version == number).ok_or_else(|| {
            let message =
                format!("the key has no version {number}: the latest is {}", attestation.latest_version);
            Error::new("unknown_version", message).about(args.key.clone())
        })?;
    let public_key = version.public_key.ok_or_else(|| {
        let message = format!("has no public key: a key of {} is one secret", attestation.algorithm);
        Error::new("key_usage_mismatch", message).about(args.key.clone())
    })?;
    let text = public_key_text(version.id, public_key, args.format)?;
    write_public_key(&text, args.output.as_deref())
}

/// Writes a public key to a file, or to standard output.
pub fn write_public_key(text: &[u8], output: Option<&Path>) -> Result<()> {
    // Any 32 bytes can be a raw public key, also a private key.
    let is_one = |found: &[u8]| found == text || is_public_key(found);
    write_or_print(text, output, "a public key", is_one)
}

/// The text of a public key in a format.
pub fn public_key_text(key: KeyVersionId, public_key: PublicKey, format: PublicKeyFormat) -> Result<Vec<u8>> {
    let public_format = match format {
        PublicKeyFormat::Bulla | PublicKeyFormat::Signify => None,
        PublicKeyFormat::Minisign => Some(PublicFormat::Minisign),
        PublicKeyFormat::Pem => Some(PublicFormat::Pem),
        PublicKeyFormat::Der => Some(PublicFormat::Der),
        PublicKeyFormat::Raw => Some(PublicFormat::Raw),
        PublicKeyFormat::Openssh => Some(PublicFormat::OpenSsh),
        PublicKeyFormat::Jwk => Some(PublicFormat::Jwk),
    };
    Ok(match public_format {
        None if format == PublicKeyFormat::Signify => {
            if public_key.algorithm() != Algorithm::Ed25519 {
                let message = format!("signify has no form for keys of {}", public_key.algorithm());
                return Err(Error::new("unsupported_format", message));
            }
            signify::public_key(&NumberedKey::of(public_key)).into_bytes()
        }
        Some(PublicFormat::OpenSsh) if public_key.algorithm() == Algorithm::EcdsaP256 => {
            let line = SshKey::of(&public_key)
                .map_err(|error| Error::new("unsupported_format", error.to_string()))?;
            format!("{line}\n").into_bytes()
        }
        None => NamedPublicKey { key, public_key }.to_string().into_bytes(),
        Some(format) => write_public(&public_key, format)?,
    })
}

/// Whether a file's content is one public key, in a format that says so.
fn is_public_key(content: &[u8]) -> bool {
    let formats = [
        PublicFormat::Pem,
        PublicFormat::Der,
        PublicFormat::OpenSsh,
        PublicFormat::Jwk,
        PublicFormat::Minisign,
    ];
    str::from_utf8(content).is_ok_and(|text| text.parse::<NamedPublicKey>().is_ok())
        || formats.iter().any(|format| import_public(content, *format, None).is_ok())
        || str::from_utf8(content).is_ok_and(|text| SshKey::parse(text).is_ok())
}

/// Writes `what`, which is public data, to a file, or to standard output. The file may replace an
/// older one of its kind, as `is_one` tells, and nothing else.
fn write_or_print(
    text: &[u8],
    output: Option<&Path>,
    what: &str,
    is_one: impl FnOnce(&[u8]) -> bool,
) -> Result<()> {
    match output {
        Some(path) => {
            check_replaceable(path, what, is_one)?;
            atomic::write(path, |file| file.write_all(text))
        }
        None => {
            let mut out = Out::stdout();
            out.bytes(text)?;
            out.flush()
        }
    }
}
