//! `bulla keys`: making, showing and rotating keys.

use super::backup;
use crate::args::{
    ExportPublicArgs, KeyArgs, KeysCommand, KeysInitArgs, KeysListArgs, KeysNewArgs, KeysRestoreArgs,
    KeysShowArgs, SignatureFormat,
};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::atomic;
use crate::minisign;
use crate::output::{JsonPath, Out, style};
use crate::store::{self, Access, Named, NewSeal};
use bulla_kms::{Attestation, KeyChange, KeyFamily, KeyState, Keystore, NamedPublicKey};
use serde::Serialize;

pub(crate) fn run(command: &KeysCommand) -> Result<Exit> {
    match command {
        KeysCommand::Init(args) => init(args),
        KeysCommand::New(args) => new(args),
        KeysCommand::List(args) => list(args),
        KeysCommand::Show(args) => show(args),
        KeysCommand::Rotate(args) => on_key(args, rotate, |out, key| {
            out.line(format_args!("{} signs with version {} from now on", name(key), key.head))?;
            out.line("signatures by its older versions still verify")
        }),
        KeysCommand::Disable(args) => on_key(args, disable, |out, key| {
            out.line(format_args!("{} no longer signs; what it signed still verifies", name(key)))
        }),
        KeysCommand::Enable(args) => on_key(args, enable, |out, key| {
            out.line(format_args!("{} signs, with version {}", name(key), key.head))
        }),
        KeysCommand::ExportPublic(args) => export_public(args),
        KeysCommand::Reseal(args) => backup::reseal(args),
        KeysCommand::Backup(args) => backup::backup(args),
        KeysCommand::Restore(args) => restore(args),
    }?;
    Ok(Exit::Ok)
}

fn init(args: &KeysInitArgs) -> Result<()> {
    let seal = if args.passphrase { NewSeal::Passphrase } else { NewSeal::AsGiven };
    let access = Access::create(&args.keystore, seal)?;
    if !args.report.json {
        return Ok(());
    }
    #[derive(Serialize)]
    struct Created {
        keystore: JsonPath,
        unlock: &'static str,
    }
    let mut out = Out::new();
    out.json(&Created { keystore: access.folder().into(), unlock: access.method() })?;
    out.flush()
}

fn new(args: &KeysNewArgs) -> Result<()> {
    let (label, purpose) = (store::parse_name(&args.label)?, store::parse_name(&args.purpose)?);
    let keystore = Access::existing_or_new(&args.keystore)?.open()?;
    let id = store::create_key(&keystore, label, purpose, args.backend)?;
    let key = keystore.attest(id.family())?;
    let mut out = Out::new();
    if args.report.json {
        out.json(&key)?;
    } else if !args.report.quiet {
        out.line(format_args!("created {}: {id}", name(&key)))?;
    }
    out.flush()
}

fn list(args: &KeysListArgs) -> Result<()> {
    let keys = Access::existing(&args.keystore)?.open()?.list()?;
    let mut out = Out::new();
    if args.json {
        keys.iter().try_for_each(|key| out.json(key))?;
        return out.flush();
    }
    let label = |key: &Attestation| key.label.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let width = keys.iter().map(|key| label(key).len()).max().unwrap_or(0).max("LABEL".len());
    out.line(format_args!("{:width$}  STATE     HEAD  CREATED                   KEY", "LABEL"))?;
    for key in &keys {
        let (state, colour) = match key.state {
            KeyState::Enabled => ("enabled", style::GOOD),
            _ => ("disabled", style::BAD),
        };
        let colour = out.style(colour);
        let created = key.versions.first().map_or_else(String::new, |version| version.created.to_string());
        let head = format!("v{}", key.head);
        out.line(format_args!(
            "{:width$}  {colour}{state:8}{colour:#}  {head:4}  {created}  {}",
            label(key),
            key.key
        ))?;
    }
    out.flush()
}

/// Does `change` to the key of `args` and prints the key as it is then.
fn on_key(
    args: &KeyArgs,
    change: impl FnOnce(&Keystore, &KeyFamily) -> Result<()>,
    print: impl FnOnce(&mut Out, &Attestation) -> Result<()>,
) -> Result<()> {
    let keystore = Access::existing(&args.keystore)?.open()?;
    let named = Named::find(&keystore, &args.key)?;
    change(&keystore, named.family())?;
    let key = keystore.attest(named.family())?;
    let mut out = Out::new();
    if args.report.json {
        out.json(&key)?;
    } else if !args.report.quiet {
        print(&mut out, &key)?;
    }
    out.flush()
}

fn rotate(keystore: &Keystore, family: &KeyFamily) -> Result<()> {
    keystore.rotate(family)?;
    Ok(())
}

fn disable(keystore: &Keystore, family: &KeyFamily) -> Result<()> {
    Ok(keystore.disable(family)?)
}

fn enable(keystore: &Keystore, family: &KeyFamily) -> Result<()> {
    Ok(keystore.enable(family)?)
}

fn restore(args: &KeysRestoreArgs) -> Result<()> {
    if let Some(from) = &args.from {
        backup::refuse_existing(&args.with.keystore)?;
        return backup::restore(args, from);
    }
    let args = KeyArgs {
        key: args.key.clone().unwrap_or_default(),
        keystore: args.with.keystore.clone(),
        report: args.report,
    };
    let restore = |keystore: &Keystore, family: &KeyFamily| {
        keystore.update(family, None, &KeyChange::Restore)?;
        Ok(())
    };
    on_key(&args, restore, |out, key| {
        out.line(format_args!(
            "{} is not destroyed, and disabled; `bulla keys enable` makes it sign",
            name(key)
        ))
    })
}

fn show(args: &KeysShowArgs) -> Result<()> {
    let keystore = Access::existing(&args.keystore)?.open()?;
    let key = keystore.attest(Named::find(&keystore, &args.key)?.family())?;
    drop(keystore);
    let mut out = Out::new();
    if args.json {
        out.json(&key)?
    } else {
        print_key(&mut out, &key)?
    }
    out.flush()
}

fn print_key(out: &mut Out, key: &Attestation) -> Result<()> {
    let state = match key.state {
        KeyState::Enabled => "enabled",
        _ => "disabled: does not sign",
    };
    out.line(format_args!("key        {}", key.key))?;
    if let Some(label) = &key.label {
        out.line(format_args!("label      {label}"))?;
    }
    out.line(format_args!("algorithm  {}", key.algorithm))?;
    out.line(format_args!("state      {state}"))?;
    for version in &key.versions {
        let until = match version.retired {
            Some(retired) => format!("retired {retired}"),
            None => "head".to_owned(),
        };
        out.line(format_args!(
            "v{:<9} {}  created {}  {until}",
            version.version, version.public_key, version.created
        ))?;
    }
    Ok(())
}

fn export_public(args: &ExportPublicArgs) -> Result<()> {
    let keystore = Access::existing(&args.keystore)?.open()?;
    let named = Named::find(&keystore, &args.key)?;
    let attestation = keystore.attest(named.family())?;
    let number = match &named {
        Named::Version(id) => id.version(),
        Named::Family(_) => attestation.head,
    };
    drop(keystore);
    let version =
        attestation.versions.into_iter().find(|version| version.version == number).ok_or_else(|| {
            let message = format!("the key has no version {number}: the newest is {}", attestation.head);
            Error::new("unknown_version", message).about(args.key.clone())
        })?;
    let text = match args.format {
        SignatureFormat::Bulla => {
            NamedPublicKey { key: version.id, public_key: version.public_key }.to_string()
        }
        SignatureFormat::Minisign => minisign::NamedKey::of(version.public_key).to_string(),
    };
    match &args.output {
        Some(path) => atomic::write(path, |file| file.write_all(text.as_bytes())),
        None => {
            let mut out = Out::new();
            out.bytes(text.as_bytes())?;
            out.flush()
        }
    }
}

/// A key by its label, or by its id if it has none.
fn name(key: &Attestation) -> String {
    match &key.label {
        Some(label) => label.to_string(),
        None => key.key.to_string(),
    }
}
