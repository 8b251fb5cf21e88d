//! `bulla keys import`.

use crate::args::{ImportFormat, KeysImportArgs};
use crate::error::{Error, Result};
use crate::files::{STDIN, secret};
use crate::output::Out;
use crate::store::{ImportTarget, KeySource, Material, PrivateFile, key_passphrase, parse_name};
use bulla_files::escape_path;
use bulla_keystore::{check_secret_file, tenant};
use bulla_kms::transfer::{
    MAX_INPUT_LEN, PrivateFormat, PrivateKeyData, PublicFormat, WrappedPrivateKey, import_public,
    unwrap_aes_kwp,
};
use bulla_kms::{Code, KmsError, Name, NewKey, SecretString};
use std::path::Path;
use zeroize::Zeroizing;

pub(super) fn import(args: &KeysImportArgs) -> Result<()> {
    let bytes = secret::read(&args.file, "the key", MAX_INPUT_LEN, secret::Secrecy::NotSecret)?;
    let about = |error: KmsError| Error::from(error).about(escape_path(&args.file));
    let material = match args.public {
        true => Material::Public(import_public(&bytes, public_format(args)?, args.algorithm).map_err(about)?),
        false => read_private(args, bytes)?,
    };
    // Check this only now: content that is not a private key gets a better error.
    if let Material::Private(_) = material {
        check_kept(args)?;
    }
    let target = import_target(args, &material)?;
    let source = KeySource::existing_or_new(&args.keystore)?;
    let key = source.open()?.import(&material, target)?;
    let mut out = Out::after("the key was imported");
    if args.report.json {
        out.json(&key)?;
    } else if !args.report.quiet {
        let what = if args.public { "public key" } else { "private key" };
        let id = &key.versions.last().ok_or_else(|| Error::new("internal", "the key has no version"))?.id;
        out.line(format_args!("imported a {what} of {}: {id}", key.algorithm))?;
    }
    out.flush()
}

/// Refuses a private key that other users may read, because it is no longer secret. Wrapped keys
/// may be readable.
fn check_kept(args: &KeysImportArgs) -> Result<()> {
    if args.file == Path::new(STDIN) || matches!(args.format, ImportFormat::Wrapped | ImportFormat::AesKwp) {
        return Ok(());
    }
    let metadata = args.file.metadata();
    let cannot = |error| Error::io("cannot read its metadata", &error).about(escape_path(&args.file));
    Ok(check_secret_file(&args.file, &metadata.map_err(cannot)?)?)
}

/// Where the key goes: it is a new key, or the next version of one.
fn import_target(args: &KeysImportArgs, material: &Material) -> Result<ImportTarget> {
    if args.new_version {
        return Ok(ImportTarget::VersionOf(args.key.clone()));
    }
    let (label, purpose): (Name, Name) = (parse_name(&args.key)?, parse_name(&args.purpose)?);
    Ok(ImportTarget::New(
        NewKey::new(tenant(), purpose, material.algorithm())
            .label(label)
            .exportable(args.exportable)
            .signs_digests(args.signs_digests),
    ))
}

fn public_format(args: &KeysImportArgs) -> Result<PublicFormat> {
    match args.format {
        ImportFormat::Pem => Ok(PublicFormat::Pem),
        ImportFormat::Der => Ok(PublicFormat::Der),
        ImportFormat::Raw => Ok(PublicFormat::Raw),
        ImportFormat::Openssh => Ok(PublicFormat::OpenSsh),
        ImportFormat::Jwk => Ok(PublicFormat::Jwk),
        ImportFormat::Minisign => Ok(PublicFormat::Minisign),
        ImportFormat::Wrapped | ImportFormat::AesKwp => {
            Err(Error::new("usage", "public keys are not wrapped: leave out --public"))
        }
        ImportFormat::Vault => {
            Err(Error::new("usage", "this format has only private keys: leave out --public"))
        }
    }
}

fn read_private(args: &KeysImportArgs, bytes: Zeroizing<Vec<u8>>) -> Result<Material> {
    let about = |error: KmsError| Error::from(error).about(escape_path(&args.file));
    let (format, bytes) = match args.format {
        ImportFormat::Pem => (PrivateFormat::Pkcs8Pem, bytes),
        ImportFormat::Der => (PrivateFormat::Pkcs8Der, bytes),
        ImportFormat::Raw => (PrivateFormat::Raw, bytes),
        ImportFormat::Openssh => (PrivateFormat::OpenSsh, bytes),
        ImportFormat::Vault => (PrivateFormat::Vault, bytes),
        ImportFormat::Wrapped => return wrapped(args, &bytes),
        ImportFormat::AesKwp => {
            (PrivateFormat::Pkcs8Der, unwrap_aes_kwp(&*wrapping_key(args)?, &bytes).map_err(about)?)
        }
        ImportFormat::Jwk | ImportFormat::Minisign => {
            return Err(Error::new("usage", "this format has only public keys: add --public"));
        }
    };
    let read =
        |passphrase: Option<&SecretString>| PrivateKeyData::read(&bytes, format, args.algorithm, passphrase);
    let (key, passphrase) = match read(None) {
        Err(error) if format == PrivateFormat::OpenSsh && error.code == Code::WrongPassphrase => {
            let passphrase = key_passphrase(args.key_passphrase_file.as_deref(), &escape_path(&args.file))?;
            (read(Some(&passphrase)).map_err(about)?, Some(passphrase))
        }
        key => (key.map_err(about)?, None),
    };
    Ok(Material::Private(PrivateFile { key, bytes, format, passphrase }))
}

/// The 32 bytes of an AES key.
fn wrapping_key(args: &KeysImportArgs) -> Result<Zeroizing<[u8; 32]>> {
    let path = args
        .wrapping_key
        .as_deref()
        .ok_or_else(|| Error::new("usage", "name the wrapping key with --wrapping-key FILE"))?;
    let bytes = secret::read(path, "the wrapping key", 32, secret::Secrecy::Secret)?;
    match bytes.as_slice().try_into() {
        Ok(key) => Ok(Zeroizing::new(key)),
        Err(_) => {
            Err(Error::new("invalid_argument", "a wrapping key file must have 32 bytes")
                .about(escape_path(path)))
        }
    }
}

/// A key that was wrapped for a key of the keystore.
fn wrapped(args: &KeysImportArgs, bytes: &[u8]) -> Result<Material> {
    let about = |error: Error| error.about(escape_path(&args.file));
    let text = std::str::from_utf8(bytes)
        .map_err(|_| about(Error::new("malformed_key", "is not text, so it is not a wrapped key")))?;
    let wrapped: WrappedPrivateKey = text.parse().map_err(|error: KmsError| about(error.into()))?;
    let found = wrapped.key.key_id().algorithm();
    if args.algorithm.is_some_and(|algorithm| algorithm != found) {
        let message = format!("the key's algorithm is {found}");
        return Err(about(Error::new("invalid_argument", message)));
    }
    let unwrap_with = args
        .unwrap_with
        .clone()
        .ok_or_else(|| Error::new("usage", "name the key that unwraps it with --unwrap-with LABEL|ID"))?;
    Ok(Material::Wrapped { text: text.to_owned(), wrapped: Box::new(wrapped), unwrap_with })
}
