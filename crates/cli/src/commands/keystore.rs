//! `bulla keystore`: what concerns the keystore as a whole.

use super::encrypt::{check_free, recipient, recipients, secrets, with_keys, write_output};
use crate::args::{
    Bound, KeystoreBackupArgs, KeystoreCommand, KeystoreGuardArgs, KeystoreInitArgs, KeystoreRekeyArgs,
    KeystoreRestoreArgs,
};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{JsonPath, Out};
use crate::store::{
    BackedUp, KeySource, LocalKeystore, Prompt, default_secret, keystore_folder, parse_name, passphrase_of,
};
use bulla_files::escape_path;
use bulla_keystore::NewSecret;
use bulla_kms::backend::Backends;
use bulla_kms::encrypted_file::Header;
use bulla_kms::{Backup, Unlock};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn run(command: &KeystoreCommand) -> Result<Exit> {
    match command {
        KeystoreCommand::Init(args) => init(args),
        KeystoreCommand::Rekey(args) => rekey(args),
        KeystoreCommand::Guard(args) => guard(args),
        KeystoreCommand::Backup(args) => backup(args),
        KeystoreCommand::Restore(args) => restore(args),
    }?;
    Ok(Exit::Ok)
}

fn init(args: &KeystoreInitArgs) -> Result<()> {
    let secret = match &args.device_key {
        Some(name) => NewSecret::DeviceKey(parse_name(name)?),
        None if args.passphrase => NewSecret::Passphrase,
        None => default_secret(&args.keystore),
    };
    let local = LocalKeystore::create(&args.keystore, secret, args.guard.as_ref())?;
    if !args.report.json {
        return Ok(());
    }
    #[derive(Serialize)]
    struct Created {
        keystore: JsonPath,
        unlock: &'static str,
    }
    let mut out = Out::after("the keystore was created");
    out.json(&Created { keystore: local.folder().into(), unlock: local.method() })?;
    out.flush()
}

/// Shows the keystore's guard, or changes it.
fn guard(args: &KeystoreGuardArgs) -> Result<()> {
    if let Some(new) = &args.guard {
        let location = match new {
            Bound::None => None,
            Bound::At(location) => Some(location),
        };
        LocalKeystore::existing_unguarded(&args.keystore)?.set_guard(&args.keystore, location)?;
    }
    let guard = keystore_folder(&args.keystore)?.guard()?;
    let mut out = match args.guard {
        Some(_) => Out::after("the guard was changed"),
        None => Out::stdout(),
    };
    if args.report.json {
        #[derive(Serialize)]
        struct Guard {
            guard: Option<String>,
        }
        out.json(&Guard { guard })?;
    } else if !args.report.quiet {
        match guard {
            Some(guard) => {
                out.line(format_args!("the keystore's guard is {}", escape_path(Path::new(&guard))))?
            }
            None => out.line("the keystore has no guard: bulla cannot detect an older copy of it")?,
        }
    }
    out.flush()
}

fn rekey(args: &KeystoreRekeyArgs) -> Result<()> {
    let mut local = LocalKeystore::existing(&args.keystore)?;
    let keystore = local.open()?;
    if args.generate_key_file {
        local.rekey_to_key_file(&keystore)?;
    } else if let Some(name) = &args.device_key {
        local.rekey_to_device_key(&args.keystore, &keystore, &parse_name(name)?)?;
    } else {
        let what = format!("the keystore {}", escape_path(local.folder()));
        let new = match &args.recipient {
            Some(text) => Unlock::Provider(Arc::new(recipient(text)?)),
            None => {
                Unlock::Passphrase(passphrase_of(&what, args.new_passphrase_file.as_deref(), Prompt::Twice)?)
            }
        };
        local.rekey(&keystore, new)?;
    }
    drop(keystore);
    let mut out = Out::after("the new secret opens the keystore");
    if args.report.json {
        #[derive(Serialize)]
        struct Rekeyed {
            keystore: JsonPath,
        }
        out.json(&Rekeyed { keystore: local.folder().into() })?;
    } else if !args.report.quiet {
        out.line("the new secret opens the keystore; the old secret does not")?;
        out.line("older copies of the keystore still open with the old secret")?;
    }
    out.flush()
}

fn backup(args: &KeystoreBackupArgs) -> Result<()> {
    check_free(&args.output)?;
    let source = KeySource::existing(&args.keystore)?;
    let keys = source.open()?;
    let recipients = recipients(&args.to)?;
    let others = secrets(&args.to, &escape_path(&args.output))?;
    let mut made = None;
    write_output(&args.output, |sink| {
        made = Some(keys.backup(&recipients, &others, sink)?);
        Ok(())
    })?;
    drop(keys);
    report(args.report, made, &args.output, "written to")
}

/// Makes a new keystore from a backup.
fn restore(args: &KeystoreRestoreArgs) -> Result<()> {
    refuse_existing(&args.with.keystore)?;
    let from = args.backup.as_path();
    let about = |error: Error| error.about(escape_path(from));
    let encrypted = std::fs::read(from).map_err(|error| about(Error::io("cannot read", &error)))?;
    let header = Header::read(&mut &encrypted[..]).map_err(|error| about(error.into()))?;
    let backup = with_keys(&args.with, &header, &escape_path(from), |keys| {
        Backup::read(&encrypted[..], keys, Backends::software())
    });
    let backup = backup.map_err(about)?;
    let made = backup.summary().into();
    let new = args.new_passphrase_file.as_deref();
    let secret = if args.passphrase || new.is_some() { NewSecret::Passphrase } else { NewSecret::KeyFile };
    let local = LocalKeystore::restore(&args.with.keystore, &secret, new, &backup)?;
    report(args.report, Some(made), local.folder(), "restored to")
}

fn report(args: crate::args::ReportArgs, made: Option<BackedUp>, path: &Path, done: &str) -> Result<()> {
    let Some(BackedUp { keys, private_keys, made }) = made else { return Ok(()) };
    let mut out = Out::after(format!("the keys were {done} {}", escape_path(path)));
    if args.json {
        #[derive(Serialize)]
        struct Done {
            #[serde(flatten)]
            path: JsonPath,
            keys: u64,
            private_keys: u64,
            made: String,
        }
        out.json(&Done { path: path.into(), keys, private_keys, made: made.to_string() })?;
    } else if !args.quiet {
        let plural = if keys == 1 { "" } else { "s" };
        out.line(format_args!("{keys} key{plural} {done} {}", escape_path(path)))?;
    }
    out.flush()
}

/// An error if there is a keystore: a restoration must not change it.
fn refuse_existing(args: &crate::args::KeystoreArgs) -> Result<()> {
    if keystore_folder(args)?.exists() {
        return Err(Error::new("already_exists", "a keystore exists already; bulla does not replace it")
            .hint("name another folder with --keystore DIR"));
    }
    Ok(())
}
