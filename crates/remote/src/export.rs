//! `bulla keys export`: a private key, wrapped for the holder of another key.

use crate::connection::ServiceConnection;
use crate::token;
use bulla_cli::file::atomic;
use bulla_cli::keystore::{LocalKeystore, service_address};
use bulla_cli::remote::{KeysExportArgs, public_key};
use bulla_client::Recipient;
use bulla_client::blocking::Client;
use bulla_command::error::{Error, Result};
use bulla_command::output::Out;
use bulla_files::escape_path;
use bulla_keystore::find_key;
use bulla_kms::token::{Revocations, Token};
use bulla_kms::transfer::WrappedPrivateKey;
use bulla_kms::{KeySelector, Keystore, KmsError, PublicKey};

pub(crate) fn export_key(args: &KeysExportArgs) -> Result<()> {
    if let Some(output) = &args.output {
        atomic::check_replaceable(output, "a wrapped key", |content| {
            str::from_utf8(content).is_ok_and(|text| text.parse::<WrappedPrivateKey>().is_ok())
        })?;
    }
    let recipient = public_key(&args.to)?;
    let revocations = read_revocations(args)?;
    let text = match service_address(&args.keystore)? {
        // A service gets the token with every request, and decides itself.
        Some(address) => {
            let service = ServiceConnection::new(address, &args.keystore.server)?;
            if revocations.is_some() {
                let message = "a service has a list of revoked tokens of its own: leave out --revoked";
                return Err(Error::new("usage", message));
            }
            let recipient = recipient.to_string();
            let export = |client: &Client| client.export_key(&args.key, Recipient::PublicKey(&recipient));
            service.about(&args.key, export)?.wrapped
        }
        None => {
            let keystore = LocalKeystore::existing(&args.keystore)?;
            let token = token::given(&args.keystore.server)?;
            let revocations = revocations.unwrap_or_default();
            export_from(&keystore.open()?, &args.key, &recipient, &token, &revocations)?
        }
    };
    match &args.output {
        Some(path) => atomic::write(path, |file| file.write_all(text.as_bytes())),
        None => {
            let mut out = Out::stdout();
            out.bytes(text.as_bytes())?;
            out.flush()
        }
    }
}

fn read_revocations(args: &KeysExportArgs) -> Result<Option<Revocations>> {
    let Some(path) = &args.revoked else { return Ok(None) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::io("cannot read the revocation ids", &error).about(escape_path(path)))?;
    text.parse().map(Some).map_err(|error: KmsError| Error::from(error).about(escape_path(path)))
}

/// Exports a key of a keystore on this machine.
fn export_from(
    keystore: &Keystore,
    key: &str,
    recipient: &PublicKey,
    token: &Token,
    revocations: &Revocations,
) -> Result<String> {
    let id = match find_key(keystore, key)? {
        KeySelector::Version(id) => id,
        KeySelector::Key(key_id) => keystore.latest_version_id(&key_id)?,
    };
    Ok(keystore.export_key(&id, recipient, token, revocations)?.to_string())
}
