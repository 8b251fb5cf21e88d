//! Signs a message with the key `default` of a keystore's folder, and creates the keystore first if
//! there is none: `cargo run --example open_folder -- FOLDER [PASSPHRASE-FILE]`.

use bulla_keystore::{KeystoreFolder, NewKeystore, NewSecret, PassphraseFile, Result, Secrets, find_key};

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1);
    let folder = match args.next() {
        Some(path) => KeystoreFolder::at(path),
        None => KeystoreFolder::of_user()?,
    };
    let (secrets, new_secret) = match args.next() {
        Some(path) => (Secrets::new().passphrase(PassphraseFile::at(path)), NewSecret::Passphrase),
        None => (Secrets::new(), NewSecret::KeyFile),
    };
    if !folder.exists() {
        folder.create(&NewKeystore::with(new_secret), &secrets)?;
    }

    // The one call: it finds the secret, asks the rollback guard and opens the audit log.
    let keystore = folder.open(&secrets)?.keystore;

    let signature = keystore.sign(find_key(&keystore, "default")?.as_ref(), b"a message")?;
    println!("signed by {}", signature.key);
    Ok(())
}
