//! Signs a message with the key `default` of a keystore's folder, and creates the keystore first if
//! there is none: `cargo run --example open_folder -- FOLDER [PASSPHRASE-FILE]`.

use bulla_keystore::{KeystoreFolder, NewKeystore, NewSecret, PassphraseFile, Result, Secrets, find_key};
use bulla_kms::Signature;

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
    println!("signed by {}", sign(&folder, &secrets, new_secret)?.key);
    Ok(())
}

fn sign(folder: &KeystoreFolder, secrets: &Secrets, new_secret: NewSecret) -> Result<Signature> {
    if !folder.exists() {
        folder.create(&NewKeystore::with(new_secret), secrets)?;
    }

    // The one call: it finds the secret, asks the rollback guard and opens the audit log.
    let keystore = folder.open(secrets)?.keystore;

    Ok(keystore.sign(find_key(&keystore, "default")?.as_ref(), b"a message")?)
}

#[test]
fn the_example_creates_a_keystore_once_and_signs_with_its_key() {
    let parent = tempfile::tempdir().unwrap();
    let folder = KeystoreFolder::at(parent.path().join("keystore"));
    let [first, second] = [(); 2].map(|()| sign(&folder, &Secrets::new(), NewSecret::KeyFile).unwrap());
    assert_eq!(first, second, "a signature of Ed25519 depends on nothing but the key and the message");
}
