//! Encrypted files: they decrypt to the data, with the keys that they were encrypted to, or not at
//! all.
#![cfg(feature = "soft-seal")]

use std::fs;
use std::io::{BufRead as _, Read, Write};
use std::process::{Command, Stdio};

use bulla_kms::encrypted_file::{self, Decryptor, Encryptor, ExistingRecipients, Header};
use bulla_kms::encryption::{
    AgeRecipient, Identity, IdentityKind, KeyFileProvider, KeyProvider, KeystoreRecipient, Passphrase,
    Recipient, WrappingParams,
};
use bulla_kms::{
    Algorithm, Code, KeyChange, KeyFile, KeyVersionId, Keystore, KeystoreProvider, KmsError, NamedPublicKey,
    NewKey,
};

const CHUNK: usize = 64 << 10;
const TAG: usize = 16;
const CONTEXT: &[u8] = b"what it is for";

fn identity(kind: IdentityKind) -> Identity {
    Identity::generate(kind).unwrap()
}

/// `len` bytes that look random and are the same each time.
fn content(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bulla_blake3::Hasher::new().update(b"content").finalize_xof().fill(&mut bytes);
    bytes
}

#[track_caller]
fn assert_opens_to(encrypted: &[u8], with: &dyn KeyProvider, expected: &[u8]) {
    assert_eq!(&**encrypted_file::decrypt(encrypted, &[with], CONTEXT).unwrap(), expected);
}

#[test]
fn every_length_around_the_bounds_of_chunks_comes_back_however_it_is_written() {
    let key = identity(IdentityKind::XWing);
    for len in [0, 1, 15, 16, 17, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1, 3 * CHUNK - 1] {
        let bytes = content(len);
        let encrypted = encrypted_file::encrypt(&bytes, &[&key], CONTEXT).unwrap();
        assert_opens_to(&encrypted, &key, &bytes);
        let mut pieces = Encryptor::new(Vec::new(), &[&key], CONTEXT).unwrap();
        bytes.chunks(4099).for_each(|piece| pieces.write_all(piece).unwrap());
        let pieces = pieces.finish().unwrap();
        assert_eq!(pieces.len(), encrypted.len(), "{len}");
        assert_opens_to(&pieces, &key, &bytes);
    }
}

#[test]
fn data_is_encrypted_to_passphrases_key_files_recipients_and_keys_of_a_keystore() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    KeyFile::create(&path).unwrap();
    let (passphrase, key_file) =
        (Passphrase::new("correct horse".into()).unwrap(), KeyFileProvider::new(&path));
    let (age, x_wing) = (identity(IdentityKind::Age), identity(IdentityKind::XWing));
    let keystore = Keystore::in_memory().unwrap();
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::XWing);
    let id = keystore.create_key(new).unwrap();
    let named = NamedPublicKey { public_key: keystore.public_key(&id).unwrap(), key: id };
    let in_keystore = KeystoreRecipient::new(named.clone()).unwrap();
    let to: [&dyn KeyProvider; 5] =
        [&passphrase, &key_file, &age.recipient(), &x_wing.recipient(), &in_keystore];
    let encrypted = encrypted_file::encrypt(b"for five", &to, CONTEXT).unwrap();
    let keystore_provider = KeystoreProvider(&keystore);
    let with: [&dyn KeyProvider; 5] = [&passphrase, &key_file, &age, &x_wing, &keystore_provider];
    for provider in with {
        assert_opens_to(&encrypted, provider, b"for five");
    }
    // A key that was rotated opens what was encrypted to its older version.
    keystore.rotate(named.key.key_id()).unwrap();
    assert_opens_to(&encrypted, &keystore_provider, b"for five");

    let refused =
        |with: &dyn KeyProvider| encrypted_file::decrypt(&encrypted, &[with], CONTEXT).unwrap_err().code;
    assert_eq!(refused(&Passphrase::new("correct horsf".into()).unwrap()), Code::WrongPassphrase);
    let other = folder.path().join("other");
    KeyFile::create(&other).unwrap();
    assert_eq!(refused(&KeyFileProvider::new(&other)), Code::WrongKeyFile);
    assert_eq!(refused(&identity(IdentityKind::Age)), Code::WrongDecryptionKey);
    assert_eq!(refused(&identity(IdentityKind::XWing)), Code::WrongDecryptionKey);
    assert_eq!(refused(&KeystoreProvider(&Keystore::in_memory().unwrap())), Code::KeyNotFound);
    assert_eq!(refused(&age.recipient()), Code::KeyUsageMismatch, "a public key opens nothing");
}

/// The form is that of files which exist: a provider under another name would not open them.
#[test]
fn the_capsule_of_a_key_file_has_no_name_and_a_salt_behind_twelve_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    KeyFile::create(&path).unwrap();
    let encrypted = encrypted_file::encrypt(b"", &[&KeyFileProvider::new(&path)], b"").unwrap();
    let header = Header::read(&mut &encrypted[..]).unwrap();
    let params = header.wrapping_params().next().unwrap();
    assert_eq!((params.method(), params.key_name()), ("key-file", ""));
    assert_eq!((&params.bytes()[..12], params.bytes().len()), (&[0; 12][..], 12 + 32));
}

#[test]
fn other_associated_data_opens_nothing() {
    let key = identity(IdentityKind::Age);
    let encrypted = encrypted_file::encrypt(b"data", &[&key], CONTEXT).unwrap();
    for other in [&b""[..], b"what it is fos", b"what it is for\0"] {
        assert_eq!(
            encrypted_file::decrypt(&encrypted, &[&key], other).unwrap_err().code,
            Code::EncryptedFileCorrupt
        );
    }
}

#[test]
fn data_is_encrypted_to_one_to_eight_keys() {
    let key = identity(IdentityKind::Age);
    let to = vec![&key as &dyn KeyProvider; 9];
    assert_eq!(encrypted_file::encrypt(b"", &[], b"").unwrap_err().code, Code::InvalidArgument);
    assert_eq!(encrypted_file::encrypt(b"", &to, b"").unwrap_err().code, Code::InvalidArgument);
    assert!(encrypted_file::encrypt(b"", &to[..8], b"").is_ok());
}

/// Every bit of a whole file: header, keys, salt, check, payload, tags.
#[test]
fn every_flipped_bit_and_every_cut_is_an_error() {
    for kind in [IdentityKind::Age, IdentityKind::XWing] {
        let key = identity(kind);
        let encrypted = encrypted_file::encrypt(b"a small file", &[&key], CONTEXT).unwrap();
        for at in 0..encrypted.len() {
            assert!(encrypted_file::decrypt(&encrypted[..at], &[&key], CONTEXT).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut flipped = encrypted.clone();
                flipped[at] ^= 1 << bit;
                assert!(encrypted_file::decrypt(&flipped, &[&key], CONTEXT).is_err(), "byte {at}, bit {bit}");
            }
        }
        for more in [&[0][..], &[0; 17], &encrypted[encrypted.len() - TAG..]] {
            let longer = [&encrypted[..], more].concat();
            assert_eq!(
                encrypted_file::decrypt(&longer, &[&key], CONTEXT).unwrap_err().code,
                Code::EncryptedFileCorrupt
            );
        }
    }
}

/// The header's bytes, and the chunks with their tags.
fn chunks(encrypted: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let mut rest = encrypted;
    Header::read(&mut rest).unwrap();
    (&encrypted[..encrypted.len() - rest.len()], rest.chunks(CHUNK + TAG).collect())
}

#[test]
fn chunks_that_are_moved_doubled_left_out_or_of_other_data_are_an_error() {
    let key = identity(IdentityKind::Age);
    let bytes = content(3 * CHUNK + 5);
    let encrypt = || encrypted_file::encrypt(&bytes, &[&key], CONTEXT).unwrap();
    let (encrypted, other) = (encrypt(), encrypt());
    let (header, parts) = chunks(&encrypted);
    let (_, others) = chunks(&other);
    let [a, b, c, d] = parts[..] else { unreachable!("four chunks") };
    let arranged = |parts: &[&[u8]]| {
        let edited = [header, &parts.concat()].concat();
        encrypted_file::decrypt(&edited, &[&key], CONTEXT).map(|opened| opened.to_vec())
    };
    assert_eq!(arranged(&[a, b, c, d]).unwrap(), bytes);
    for edited in [
        &[b, a, c, d][..],
        &[a, c, b, d],
        &[a, a, b, c, d],
        &[a, c, d],
        &[b, c, d],
        &[a, b, c],
        &[a, b, d],
        &[a, b, c, d, d],
        &[d],
        &[],
        &[a, others[1], c, d],
        &[a, b, c, others[3]],
    ] {
        assert_eq!(arranged(edited).unwrap_err().code, Code::EncryptedFileCorrupt);
    }
    // A header of other data, which the same key opens.
    let mixed = [chunks(&other).0, &parts.concat()].concat();
    assert_eq!(
        encrypted_file::decrypt(&mixed, &[&key], CONTEXT).unwrap_err().code,
        Code::EncryptedFileCorrupt
    );
}

#[test]
fn what_was_cut_off_is_known_before_the_end_and_nothing_comes_after_an_error() {
    let key = identity(IdentityKind::Age);
    let encrypted = encrypted_file::encrypt(&content(2 * CHUNK + 7), &[&key], CONTEXT).unwrap();
    let cut = &encrypted[..encrypted.len() - 1];
    let mut opening = Decryptor::new(cut, &[&key], CONTEXT).unwrap();
    let code = |error| KmsError::io("", error).code;
    for _ in 0..2 {
        assert_eq!(opening.fill_buf().unwrap().len(), CHUNK);
        opening.consume(CHUNK);
    }
    assert_eq!(code(opening.fill_buf().unwrap_err()), Code::EncryptedFileCorrupt);
    assert_eq!(code(opening.fill_buf().unwrap_err()), Code::EncryptedFileCorrupt);
    assert_eq!(code(opening.read(&mut [0; 16]).unwrap_err()), Code::EncryptedFileCorrupt);

    // The readers of the standard library return what was authenticated, and then the error.
    let mut read = Vec::new();
    let mut opening = Decryptor::new(cut, &[&key], CONTEXT).unwrap();
    assert_eq!(code(opening.read_to_end(&mut read).unwrap_err()), Code::EncryptedFileCorrupt);
    assert!(read == content(2 * CHUNK + 7)[..2 * CHUNK]);
}

/// Takes so many bytes, and then fails.
struct FullDisk(usize);

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            Some(rest) => self.0 = rest,
            None => return Err(std::io::ErrorKind::StorageFull.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_an_error_of_writing_nothing_more_is_encrypted() {
    let key = identity(IdentityKind::Age);
    let mut encryptor = Encryptor::new(FullDisk(CHUNK), &[&key], CONTEXT).unwrap();
    let error = encryptor.write_all(&content(3 * CHUNK)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert!(encryptor.write_all(&content(1)).is_err());
    assert_eq!(encryptor.finish().err().unwrap().code, Code::Io);
}

#[test]
fn a_newer_format_and_other_files_are_told_apart_from_damage() {
    let key = identity(IdentityKind::Age);
    let mut encrypted = encrypted_file::encrypt(b"", &[&key], CONTEXT).unwrap();
    encrypted[4] = 2;
    assert_eq!(
        encrypted_file::decrypt(&encrypted, &[&key], CONTEXT).unwrap_err().code,
        Code::EncryptedFileTooNew
    );
    encrypted[4] = 0;
    assert_eq!(
        encrypted_file::decrypt(&encrypted, &[&key], CONTEXT).unwrap_err().code,
        Code::MalformedEncryptedFile
    );
    for other in [&b""[..], b"BSEA", b"PK\x03\x04 a file of another program", &[0; 100]] {
        assert_eq!(
            encrypted_file::decrypt(other, &[&key], CONTEXT).unwrap_err().code,
            Code::MalformedEncryptedFile
        );
    }
}

/// A header that says it is long must not be believed.
#[test]
fn a_header_of_four_gigabytes_is_refused_before_it_is_read() {
    for length in [u32::MAX, 1 << 31, (1 << 18) + 1] {
        let start = [&b"BSEA\x01"[..], &length.to_be_bytes()].concat();
        let error = Header::read(&mut start.chain(NotRead)).unwrap_err();
        assert_eq!(error.code, Code::MalformedEncryptedFile);
        // The header's own words: it is refused by its length, before there is room for it.
        assert!(error.message.ends_with("its header is too long"), "{error}");
    }
}

#[test]
fn the_longest_header_is_read_before_it_is_judged() {
    let start = [&b"BSEA\x01"[..], &(1_u32 << 18).to_be_bytes()].concat();
    let error = Header::read(&mut &start[..]).unwrap_err();
    assert!(error.message.ends_with("its header is cut"), "{error}");
}

#[test]
fn a_source_that_fails_is_not_taken_for_one_that_ends() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::TimedOut.into())
        }
    }
    assert_eq!(Header::read(&mut Failing).unwrap_err().code, Code::Io);
}

/// A source of which nothing is read.
struct NotRead;

impl Read for NotRead {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        panic!("the header's length is believed")
    }
}

#[test]
fn data_is_encrypted_to_other_keys_without_touching_the_payload_and_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("encrypted");
    let (old, new) = (identity(IdentityKind::Age), identity(IdentityKind::XWing));
    let bytes = content(5 * CHUNK);
    fs::write(&path, encrypted_file::encrypt(&bytes, &[&old], CONTEXT).unwrap()).unwrap();
    let replace = |with: &dyn KeyProvider, keep, to: &[&dyn KeyProvider]| {
        let beside = folder.path().join("beside");
        let (source, sink) = (fs::File::open(&path).unwrap(), fs::File::create(&beside).unwrap());
        encrypted_file::rekey(source, sink, &[with], keep, to).unwrap();
        fs::rename(beside, &path).unwrap();
    };
    let payload = |encrypted: &[u8]| chunks(encrypted).1.concat();
    let before = fs::read(&path).unwrap();
    // A reader in the middle of the file goes on while the file gets new keys.
    let mut reader = Decryptor::new(fs::File::open(&path).unwrap(), &[&old], CONTEXT).unwrap();
    let mut read = vec![0; CHUNK];
    reader.read_exact(&mut read).unwrap();

    replace(&old, ExistingRecipients::Keep, &[&new.recipient()]);
    let both = fs::read(&path).unwrap();
    assert_opens_to(&both, &old, &bytes);
    assert_opens_to(&both, &new, &bytes);

    replace(&new, ExistingRecipients::Drop, &[&new.recipient()]);
    let after = fs::read(&path).unwrap();
    assert_opens_to(&after, &new, &bytes);
    assert_eq!(encrypted_file::decrypt(&after, &[&old], CONTEXT).unwrap_err().code, Code::WrongDecryptionKey);
    assert_eq!(payload(&before), payload(&both));
    assert_eq!(payload(&before), payload(&after));

    reader.read_to_end(&mut read).unwrap();
    assert_eq!(read, bytes);
    // Who opens nothing cannot add a key.
    let error = encrypted_file::rekey(&after[..], Vec::new(), &[&old], ExistingRecipients::Keep, &[&old])
        .unwrap_err();
    assert_eq!(error.code, Code::WrongDecryptionKey);
}

#[test]
fn a_key_that_is_taken_out_or_put_in_by_hand_is_damage() {
    let (one, two) = (identity(IdentityKind::XWing), identity(IdentityKind::XWing));
    let encrypted = encrypted_file::encrypt(b"for two", &[&one, &two], CONTEXT).unwrap();
    let (header, parts) = chunks(&encrypted);
    // magic 4, format 1, length 4, number of keys 1, then the keys, each of the same length here.
    let (keys, end) = header[10..].split_at(header.len() - 10 - 64);
    let (first, second) = keys.split_at(keys.len() / 2);
    let arranged = |keys: &[&[u8]]| {
        let body = [&[keys.len() as u8][..], &keys.concat(), end].concat();
        let length = (body.len() as u32).to_be_bytes();
        let edited = [&header[..5], &length, &body, &parts.concat()].concat();
        encrypted_file::decrypt(&edited, &[&one], CONTEXT).map(|opened| opened.to_vec())
    };
    assert_eq!(arranged(&[first, second]).unwrap(), b"for two");
    for edited in [&[first][..], &[second, first], &[first, second, second]] {
        assert_eq!(arranged(edited).unwrap_err().code, Code::EncryptedFileCorrupt);
    }
}

#[test]
fn identities_and_recipients_come_back_from_their_files_and_show_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [IdentityKind::Age, IdentityKind::XWing] {
        let path = folder.path().join(format!("{kind:?}"));
        let made = identity(kind);
        made.write(&path).unwrap();
        assert_eq!(made.write(&path).unwrap_err().code, Code::AlreadyExists);
        let text = fs::read_to_string(&path).unwrap();
        let read = Identity::read(&path).unwrap();
        assert_eq!(read.recipient(), made.recipient());
        assert_eq!(made.recipient().to_string().parse::<Recipient>().unwrap(), made.recipient());
        let encrypted = encrypted_file::encrypt(b"data", &[&made.recipient()], CONTEXT).unwrap();
        assert_opens_to(&encrypted, &read, b"data");

        let secret = text.lines().last().unwrap();
        let shown = format!("{made:?} {:?}", made.wrong_key());
        assert!(!shown.contains(&secret[20..30]), "{shown}");
        for cut in [&text[..text.len() - 10], &text.replace(secret, ""), "", "x-wing-secret:AAAA"] {
            let error = cut.parse::<Identity>().unwrap_err();
            assert_eq!(error.code, Code::MalformedKeyFile);
            assert!(!error.message.contains(&secret[20..30]));
        }
    }
    for text in ["", "age1", "age1xyz", "x-wing:", "x-wing:AAAA", "ml-kem-768:AAAA"] {
        assert!(text.parse::<Recipient>().is_err(), "{text}");
    }
}

/// Bech32 has four bits after the 32 bytes. The program `age` refuses texts in which one of them is
/// set, too.
#[test]
fn a_recipient_and_an_identity_of_age_have_one_text_each() {
    let kept = kept();
    let (recipient, identity) =
        (kept["age"][0]["recipient"].as_str().unwrap(), kept["age"][0]["identity"].as_str().unwrap());
    assert_eq!(identity.parse::<Identity>().unwrap().recipient().to_string(), recipient);
    for text in [
        "age15nsf9y4k28p83wth93tf7hafhvfajp45d2mge80ems45gz0c5gy3vdd0gd",
        &recipient.to_uppercase(),
        &recipient.replacen("age15", "aGe15", 1),
    ] {
        assert!(text.parse::<Recipient>().is_err(), "{text}");
    }
    for text in [
        "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQCU3JEXW",
        &identity.to_lowercase(),
    ] {
        assert!(text.parse::<Identity>().is_err(), "{text}");
    }
}

/// What the fuzz targets begin with.
fn kept() -> serde_json::Value {
    serde_json::from_str(include_str!("../../fuzz/seeds.json")).unwrap()
}

#[track_caller]
fn assert_params_hold(identity: &Identity, file: &[u8], key: [u8; 32]) {
    let params = WrappingParams::new(identity.method(), identity.key_name(), file).unwrap();
    assert_eq!(*identity.recover_kek(&params).unwrap(), key);
}

#[test]
fn files_that_the_program_age_wrote_once_open() {
    let kept = kept();
    let identity: Identity = kept["age"][0]["identity"].as_str().unwrap().parse().unwrap();
    for case in kept["age"].as_array().unwrap() {
        let hex = case["file"].as_str().unwrap().as_bytes().chunks(2);
        let file: Vec<u8> =
            hex.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
        assert_params_hold(&identity, &file, [7; 32]);
    }
}

/// The other direction: capsules that the real program writes, for our recipient alone and for
/// others too.
#[test]
fn capsules_that_the_program_age_writes_open() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (ours, other) = (identity(IdentityKind::Age), identity(IdentityKind::Age));
    let recipients = [ours.recipient().to_string(), other.recipient().to_string()];
    let age_file_to = |recipients: &[&str], bytes: &[u8]| {
        fs::write(at("key"), bytes).unwrap();
        let mut age = Command::new("age");
        for recipient in recipients {
            age.args(["-r", recipient]);
        }
        let output = age.arg(at("key")).output().expect("the Debian package age is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let [first, second] = recipients.each_ref().map(String::as_str);
    let key: [u8; 32] = content(32).try_into().unwrap();
    assert_params_hold(&ours, &age_file_to(&[first], &key), key);
    assert_params_hold(&ours, &age_file_to(&[second, first], &key), key);
    for (recipients, bytes) in
        [([second], &key[..]), ([first], &key[1..]), ([first], &[&key[..], &[0]].concat())]
    {
        let params =
            WrappingParams::new(ours.method(), ours.key_name(), age_file_to(&recipients, bytes)).unwrap();
        assert_eq!(ours.recover_kek(&params).unwrap_err().code, Code::WrongDecryptionKey);
    }
}

#[test]
fn nothing_is_encrypted_to_a_key_that_signs() {
    let keystore = Keystore::in_memory().unwrap();
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    let id = keystore.create_key(new).unwrap();
    let named = NamedPublicKey { public_key: keystore.public_key(&id).unwrap(), key: id };
    assert_eq!(KeystoreRecipient::new(named.clone()).unwrap_err().code, Code::KeyUsageMismatch);
    assert_eq!(named.to_string().parse::<Recipient>().unwrap_err().code, Code::KeyUsageMismatch);
}

#[test]
fn a_key_that_opens_nothing_any_more_is_no_recipient() {
    let keystore = Keystore::in_memory().unwrap();
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::XWing);
    let first = keystore.create_key(new).unwrap();
    let key = first.key_id().clone();
    let named = keystore.recipient(&first).unwrap();
    assert_eq!((&named.key, &named.public_key), (&first, &keystore.public_key(&first).unwrap()));
    let code = |id: &KeyVersionId| keystore.recipient(id).unwrap_err().code;
    let second = keystore.rotate(&key).unwrap();
    let third = keystore.rotate(&key).unwrap();
    keystore.update(&key, None, &KeyChange::Revoke(1.try_into().unwrap())).unwrap();
    keystore.update(&key, None, &KeyChange::DestroyVersion(2.try_into().unwrap())).unwrap();
    assert_eq!((code(&first), code(&second)), (Code::VersionNotUsable, Code::KeyDestroyed));
    keystore.recipient(&third).unwrap();
    keystore.disable(&key).unwrap();
    assert_eq!(code(&third), Code::KeyDisabled);
}

/// The params of an age recipient is a file in age's own format: the real program opens it, and
/// its identities open ours.
#[test]
fn the_program_age_opens_what_is_encrypted_to_its_recipients() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let made = Command::new("age-keygen").arg("-o").arg(at("identity")).stderr(Stdio::null()).status();
    assert!(made.expect("the Debian package age is installed").success());
    let theirs = Identity::read(&at("identity")).unwrap();
    let public = Command::new("age-keygen").arg("-y").arg(at("identity")).output().unwrap().stdout;
    let recipient: AgeRecipient = String::from_utf8(public).unwrap().trim().parse().unwrap();
    assert_eq!(theirs.recipient(), Recipient::Age(recipient.clone()));

    let encrypted = encrypted_file::encrypt(b"data", &[&recipient], CONTEXT).unwrap();
    assert_opens_to(&encrypted, &theirs, b"data");
    let header = Header::read(&mut &encrypted[..]).unwrap();
    fs::write(at("params"), header.wrapping_params().next().unwrap().bytes()).unwrap();
    let opened =
        Command::new("age").args(["-d", "-i"]).arg(at("identity")).arg(at("params")).output().unwrap();
    assert_eq!(opened.stdout.len(), 32, "{}", String::from_utf8_lossy(&opened.stderr));

    // And the reverse: an identity that we made, in their program.
    let ours = identity(IdentityKind::Age);
    ours.write(&at("ours")).unwrap();
    let public = Command::new("age-keygen").arg("-y").arg(at("ours")).output().unwrap().stdout;
    assert_eq!(String::from_utf8(public).unwrap().trim(), ours.recipient().to_string());
}
