//! Encrypts what it reads to a recipient, and decrypts it again, in bounded memory:
//! `cargo run -p bulla-kms --features soft-seal --example encrypt_stream < FILE`.

use std::error::Error;
use std::io::{self, Read, Write};

use bulla_kms::encrypted_file::{Decryptor, Encryptor};
use bulla_kms::encryption::{Identity, IdentityKind};

/// Says what the data is. It decrypts only with the same words.
const PURPOSE: &[u8] = b"the example encrypt_stream";

fn main() -> Result<(), Box<dyn Error>> {
    let identity = Identity::generate(IdentityKind::XWing)?;
    let mut encrypted = Vec::new();
    let read = encrypt(io::stdin().lock(), &mut encrypted, &identity)?;
    eprintln!("{read} bytes, {} when encrypted", encrypted.len());
    decrypt(&encrypted[..], io::stdout().lock(), &identity)?;
    Ok(())
}

/// Anything that writes can be encrypted: here, a copy.
fn encrypt(mut source: impl Read, sink: impl Write, identity: &Identity) -> Result<u64, Box<dyn Error>> {
    let mut encryptor = Encryptor::new(sink, &[&identity.recipient()], PURPOSE)?;
    let length = io::copy(&mut source, &mut encryptor)?;
    // Without this, the output does not decrypt.
    encryptor.finish()?;
    Ok(length)
}

/// Every byte is authenticated before it is written. Only success means that nothing was cut off.
fn decrypt(source: impl Read, mut sink: impl Write, identity: &Identity) -> Result<u64, Box<dyn Error>> {
    let mut decryptor = Decryptor::new(source, &[identity], PURPOSE)?;
    Ok(io::copy(&mut decryptor, &mut sink)?)
}

#[test]
fn the_example_returns_what_it_encrypted_and_notices_a_cut() {
    let identity = Identity::generate(IdentityKind::XWing).unwrap();
    let data = vec![7; 200_000];
    let (mut encrypted, mut decrypted) = (Vec::new(), Vec::new());
    assert_eq!(encrypt(&data[..], &mut encrypted, &identity).unwrap(), 200_000);
    assert_eq!(decrypt(&encrypted[..], &mut decrypted, &identity).unwrap(), 200_000);
    assert_eq!(decrypted, data);
    assert!(decrypt(&encrypted[..encrypted.len() - 1], io::sink(), &identity).is_err());
}
