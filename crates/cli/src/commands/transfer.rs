//! `bulla keys import` and `bulla keys export`.

use crate::args::{ImportFormat, KeysExportArgs, KeysImportArgs};
use crate::error::{Error, Result};
use crate::files::name::shown;
use crate::files::private::check_secret;
use crate::files::{STDIN, atomic, secret};
use crate::output::Out;
use crate::store::{self, Access, Named};
use crate::trust;
use bulla_kms::token::Revocations;
use bulla_kms::transfer::{
    MAX_INPUT, PrivateFormat, PrivateKeyData, PublicFormat, WrappedKey, import_public, unwrap_aes_kwp,
};
use bulla_kms::{Algorithm, Code, KeyId, Keystore, KmsError, Name, NewKey, PublicKey};
use std::path::Path;
use zeroize::Zeroizing;

/// The content of the file.
enum Content {
    Private(PrivateKeyData),
    Public(PublicKey),
}

impl Content {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Private(key) => key.algorithm(),
            Self::Public(key) => key.algorithm(),
        }
    }
}

pub(super) fn import(args: &KeysImportArgs) -> Result<()> {
    let bytes = secret::read(&args.file, "the key", MAX_INPUT, secret::Content::Guarded)?;
    let keystore = Access::existing_or_new(&args.keystore)?.open()?;
    let about = |error: KmsError| Error::from(error).about(shown(&args.file));
    let content = match args.public {
        true => Content::Public(import_public(&bytes, public_format(args)?, args.algorithm).map_err(about)?),
        false => Content::Private(read_private(args, &keystore, &bytes)?),
    };
    // Check this only now: content that is not a private key gets a better error.
    if let Content::Private(_) = content {
        check_kept(args)?;
    }
    let id = place(args, &keystore, &content)?;
    let key = keystore.attest(id.family())?;
    let mut out = Out::after("the key was imported");
    if args.report.json {
        out.json(&key)?;
    } else if !args.report.quiet {
        let what = if args.public { "public key" } else { "private key" };
        out.line(format_args!("imported a {what} of {}: {id}", key.algorithm))?;
    }
    out.flush()
}

/// Refuses a private key that other users may read, because it is no longer secret. Wrapped keys may be readable.
fn check_kept(args: &KeysImportArgs) -> Result<()> {
    if args.file == Path::new(STDIN) || matches!(args.format, ImportFormat::Wrapped | ImportFormat::AesKwp) {
        return Ok(());
    }
    let metadata = args.file.metadata();
    let cannot = |error| Error::io("cannot read its metadata", &error).about(shown(&args.file));
    check_secret(&args.file, &metadata.map_err(cannot)?)
}

/// Puts the key into the keystore: as a new key, or as the next version of one.
fn place(args: &KeysImportArgs, keystore: &Keystore, content: &Content) -> Result<KeyId> {
    if args.new_version {
        let named = Named::find(keystore, &args.key)?;
        return Ok(match content {
            Content::Private(key) => keystore.import_version(named.family(), key)?,
            Content::Public(key) => keystore.import_public_version(named.family(), key)?,
        });
    }
    let (label, purpose): (Name, Name) = (store::parse_name(&args.key)?, store::parse_name(&args.purpose)?);
    let new = NewKey {
        exportable: args.exportable,
        ..NewKey::new(store::tenant()?, purpose, content.algorithm()).label(label)
    };
    Ok(match content {
        Content::Private(key) => keystore.import_key(new, key)?,
        Content::Public(key) => keystore.import_public_key(new, key)?,
    })
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
    }
}

fn read_private(args: &KeysImportArgs, keystore: &Keystore, bytes: &[u8]) -> Result<PrivateKeyData> {
    let about = |error: KmsError| Error::from(error).about(shown(&args.file));
    let read = |format| PrivateKeyData::read(bytes, format, args.algorithm, None);
    match args.format {
        ImportFormat::Pem => read(PrivateFormat::Pkcs8Pem).map_err(about),
        ImportFormat::Der => read(PrivateFormat::Pkcs8Der).map_err(about),
        ImportFormat::Raw => read(PrivateFormat::Raw).map_err(about),
        ImportFormat::Openssh => match read(PrivateFormat::OpenSsh) {
            Err(error) if error.code == Code::WrongPassphrase => {
                let passphrase =
                    store::key_passphrase(args.key_passphrase_file.as_deref(), &shown(&args.file))?;
                let key =
                    PrivateKeyData::read(bytes, PrivateFormat::OpenSsh, args.algorithm, Some(&passphrase));
                key.map_err(about)
            }
            read => read.map_err(about),
        },
        ImportFormat::Wrapped => unwrap(args, keystore, bytes),
        ImportFormat::AesKwp => {
            let document = unwrap_aes_kwp(&*wrapping_key(args)?, bytes).map_err(about)?;
            PrivateKeyData::read(&document, PrivateFormat::Pkcs8Der, args.algorithm, None).map_err(about)
        }
        ImportFormat::Jwk | ImportFormat::Minisign => {
            Err(Error::new("usage", "this format has only public keys: add --public"))
        }
    }
}

/// The 32 bytes of an AES key.
fn wrapping_key(args: &KeysImportArgs) -> Result<Zeroizing<[u8; 32]>> {
    let path = args
        .wrapping_key
        .as_deref()
        .ok_or_else(|| Error::new("usage", "name the wrapping key with --wrapping-key FILE"))?;
    let bytes = secret::read(path, "the wrapping key", 32, secret::Content::Secret)?;
    match bytes.as_slice().try_into() {
        Ok(key) => Ok(Zeroizing::new(key)),
        Err(_) => {
            Err(Error::new("invalid_argument", "a wrapping key file must have 32 bytes").about(shown(path)))
        }
    }
}

fn unwrap(args: &KeysImportArgs, keystore: &Keystore, bytes: &[u8]) -> Result<PrivateKeyData> {
    let about = |error: KmsError| Error::from(error).about(shown(&args.file));
    let text = std::str::from_utf8(bytes).map_err(|_| {
        Error::new("malformed_key", "is not text, so it is not a wrapped key").about(shown(&args.file))
    })?;
    let wrapped: WrappedKey = text.parse().map_err(about)?;
    if args.algorithm.is_some_and(|algorithm| algorithm != wrapped.public_key.algorithm()) {
        let message = format!("the key's algorithm is {}", wrapped.public_key.algorithm());
        return Err(Error::new("invalid_argument", message).about(shown(&args.file)));
    }
    let recipient = args
        .recipient
        .as_deref()
        .ok_or_else(|| Error::new("usage", "name the recipient's key with --recipient LABEL|ID"))?;
    let named = Named::find(keystore, recipient)?;
    // It may have been wrapped for any version.
    let versions = keystore.attest(named.family())?.versions;
    let version = versions.iter().find(|version| wrapped.check_recipient(&version.public_key).is_ok());
    match version {
        Some(version) => keystore.unwrap_key(&version.id, &wrapped).map_err(about),
        None => {
            let message = format!("was wrapped for another recipient, not for {recipient}");
            Err(Error::new("invalid_argument", message).about(shown(&args.file)))
        }
    }
}

pub(super) fn export(args: &KeysExportArgs) -> Result<()> {
    let recipient = trust::public_key(&args.to)?;
    let token = super::token::read(&args.token)?;
    let revoked: Revocations = match &args.revoked {
        None => Revocations::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Error::io("cannot read the revocation ids", &error).about(shown(path)))?;
            text.parse().map_err(|error: KmsError| Error::from(error).about(shown(path)))?
        }
    };
    let keystore = Access::existing(&args.keystore)?.open()?;
    let id = match Named::find(&keystore, &args.key)? {
        Named::Version(id) => id,
        Named::Family(family) => {
            let head = keystore.attest(&family)?.versions.pop();
            head.map(|head| head.id).ok_or_else(|| Error::new("key_not_found", "the key has no version"))?
        }
    };
    let wrapped = keystore.export_key(&id, &recipient, &token, &revoked)?;
    drop(keystore);
    let text = wrapped.to_string();
    match &args.output {
        Some(path) => atomic::write(path, |file| file.write_all(text.as_bytes())),
        None => {
            let mut out = Out::new();
            out.bytes(text.as_bytes())?;
            out.flush()
        }
    }
}
