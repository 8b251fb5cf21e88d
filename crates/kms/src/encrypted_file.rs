//! Encrypted files: data of any size, encrypted to passphrases, key files, recipients, or the keys
//! of a keystore. `spec/encrypted-file.md` describes the format.
//!
//! The data is encrypted once, under its own key. The [`Header`] contains that key, wrapped for
//! each of the keys that open the file. So the keys can change without encrypting the data again:
//! [`rekey`].
//!
//! ```
//! use bulla_kms::encrypted_file::{Decryptor, ExistingRecipients, Header, decrypt, encrypt, rekey};
//! use bulla_kms::encryption::{Identity, IdentityKind};
//!
//! let alice = Identity::generate(IdentityKind::Age)?;
//! let bob = Identity::generate(IdentityKind::XWing)?;
//! let file = encrypt(b"a letter", &[&alice.recipient()], b"")?;
//!
//! // Bob may read it too. The data is not encrypted again.
//! let mut shared = Vec::new();
//! rekey(&file[..], &mut shared, &[&alice], ExistingRecipients::Keep, &[&bob.recipient()])?;
//! assert_eq!(**decrypt(&shared, &[&bob], b"")?, *b"a letter");
//!
//! // A program that asks which key it needs, before it asks for one.
//! let mut source = &shared[..];
//! let header = Header::read(&mut source)?;
//! assert_eq!(header.wrapping_params().count(), 2);
//! let mut letter = String::new();
//! let mut decryptor = Decryptor::with_header(source, &header, &[&alice], b"")?;
//! std::io::Read::read_to_string(&mut decryptor, &mut letter).unwrap();
//! assert_eq!(letter, "a letter");
//! # Ok::<(), bulla_kms::KmsError>(())
//! ```

use std::io::{self, BufRead, Read, Write};

use bulla_blake3 as blake3;
use chacha20poly1305::aead::{AeadInOut as _, KeyInit as _};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::{Zeroize as _, Zeroizing};

use crate::encryption::{
    EnvelopeKind, KeyEncryptionKey, KeyProvider, UnlockMethod, WrappedKey, WrappingParams,
};
use crate::error::{Code, KmsError, Result};
use crate::random;

/// Encrypts bytes in memory to each of the keys of `to`: see [`Encryptor::new`].
///
/// # Errors
/// The errors of [`Encryptor::new`].
pub fn encrypt(bytes: &[u8], to: &[&dyn KeyProvider], associated: &[u8]) -> Result<Vec<u8>> {
    let mut encryptor = Encryptor::new(Vec::new(), to, associated)?;
    encryptor.write_all(bytes).map_err(cannot_write)?;
    encryptor.finish()
}

/// Decrypts bytes in memory. The result is returned only after all of it is authenticated, and
/// is wiped on drop.
///
/// # Errors
/// The errors of [`Decryptor::new`], and of reading from a [`Decryptor`].
pub fn decrypt(encrypted: &[u8], with: &[&dyn KeyProvider], associated: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    let mut decryptor = Decryptor::new(encrypted, with, associated)?;
    // The capacity is never exceeded: growing the buffer would leave a copy of the data behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(encrypted.len()));
    loop {
        let piece = decryptor.fill_buf().map_err(cannot_read)?;
        if piece.is_empty() {
            return Ok(bytes);
        }
        bytes.extend_from_slice(piece);
        let length = piece.len();
        decryptor.consume(length);
    }
}

/// Encrypts the same data to other keys: it writes a new header and copies the payload, without
/// decrypting or authenticating it. The data's own key stays the same. So anyone who could open the
/// old file, and kept it or that key, still has the data.
///
/// To disturb no reader, write to a new file that then replaces the old one. To lock nobody out,
/// use [`ExistingRecipients::Keep`] first, and [`ExistingRecipients::Drop`] once everybody has the
/// new key.
///
/// Returns the number of bytes of the payload.
///
/// # Errors
/// The errors of [`Decryptor::new`] and [`Encryptor::new`].
pub fn rekey(
    mut source: impl Read,
    mut sink: impl Write,
    with: &[&dyn KeyProvider],
    existing: ExistingRecipients,
    to: &[&dyn KeyProvider],
) -> Result<u64> {
    let header = Header::read(&mut source)?;
    let data_key = header.unwrap(with)?;
    let header = header.rekey(&data_key, existing, to)?;
    sink.write_all(&header.to_bytes()).map_err(cannot_write)?;
    let copied = io::copy(&mut source, &mut sink).map_err(cannot_write)?;
    sink.flush().map_err(cannot_write)?;
    Ok(copied)
}

const MAGIC: &[u8; 4] = b"BSEA";
const FORMAT: u8 = 1;

/// Derives a key for one purpose from the data key.
fn derive(context: &str, data_key: &KeyEncryptionKey, salt: &[u8; 32]) -> KeyEncryptionKey {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    let mut hash = hasher.update(&**data_key).update(salt).finalize();
    let key = Zeroizing::new(*hash.as_bytes());
    hash.zeroize();
    hasher.zeroize();
    key
}

fn damaged(why: &str) -> KmsError {
    let message = format!("the encrypted file was damaged or edited, or is for another purpose: {why}");
    KmsError::new(Code::EncryptedFileCorrupt, message)
}

fn cannot_read(error: io::Error) -> KmsError {
    KmsError::io("cannot read the encrypted file", error)
}

fn cannot_write(error: io::Error) -> KmsError {
    KmsError::io("cannot write the encrypted file", error)
}

/// The most keys that data can be encrypted to: each may cost the reader an Argon2id computation.
const MAX_KEYS: usize = 8;
/// The maximum length of a header in bytes, after its length field.
const MAX_HEADER_LEN: usize = 1 << 18;
const SALT_LEN: usize = 32;
const MAC_LEN: usize = 32;

/// The header before the payload: the data key, once under each key that opens it. Reading it does
/// not authenticate anything yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    keys: Vec<WrappedKey>,
    salt: [u8; SALT_LEN],
    mac: [u8; MAC_LEN],
}

/// The key that encrypts the payload's key.
type DataKey = KeyEncryptionKey;

impl Header {
    /// A new data key, wrapped for each of `to`.
    fn create(to: &[&dyn KeyProvider]) -> Result<(Self, DataKey)> {
        let (mut data_key, mut salt) = (Zeroizing::new([0; 32]), [0; SALT_LEN]);
        random::fill(&mut *data_key)?;
        random::fill(&mut salt)?;
        Ok((Self::wrap(&data_key, salt, Vec::new(), to)?, data_key))
    }

    /// Wraps the data key for the keys of `to`, in addition to those that it is already wrapped
    /// for.
    fn wrap(
        data_key: &DataKey,
        salt: [u8; SALT_LEN],
        mut keys: Vec<WrappedKey>,
        to: &[&dyn KeyProvider],
    ) -> Result<Self> {
        if !(1..=MAX_KEYS).contains(&(keys.len() + to.len())) {
            let message =
                format!("a file is encrypted to 1 to {MAX_KEYS} keys, not to {}", keys.len() + to.len());
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        for provider in to {
            keys.push(WrappedKey::wrap(*provider, EnvelopeKind::DataKey, data_key)?);
        }
        let mut header = Self { keys, salt, mac: [0; MAC_LEN] };
        header.mac = header.expected_mac(data_key);
        Ok(header)
    }

    /// The header of the same data for the keys of `to`, and for the existing keys if they are
    /// kept.
    fn rekey(
        &self,
        data_key: &DataKey,
        existing: ExistingRecipients,
        to: &[&dyn KeyProvider],
    ) -> Result<Self> {
        let kept = match existing {
            ExistingRecipients::Keep => self.keys.clone(),
            ExistingRecipients::Drop => Vec::new(),
        };
        Self::wrap(data_key, self.salt, kept, to)
    }

    /// What each key needs to unwrap the data key.
    pub fn wrapping_params(&self) -> impl Iterator<Item = &WrappingParams> {
        self.keys.iter().map(|key| &key.params)
    }

    /// Unwraps the data key with the first provider of `with` that can, and authenticates the
    /// header.
    ///
    /// # Errors
    /// [`Code::WrongDecryptionKey`] if the data is encrypted to none of these keys; the provider's
    /// error if it matches but cannot open the data; [`Code::EncryptedFileCorrupt`] if the header
    /// was changed.
    fn unwrap(&self, with: &[&dyn KeyProvider]) -> Result<DataKey> {
        let mut refused = None;
        for key in &self.keys {
            for provider in with.iter().filter(|provider| provider.matches(&key.params)) {
                match key.unwrap(*provider, &EnvelopeKind::DataKey) {
                    Ok(data_key) => {
                        self.check(&data_key)?;
                        return Ok(data_key);
                    }
                    Err(error) => refused = Some(error),
                }
            }
        }
        Err(refused.unwrap_or_else(|| {
            let keys: Vec<_> =
                self.wrapping_params().map(|params| UnlockMethod::of(params).to_string()).collect();
            let message = format!("it opens with {}, and no such key was given", keys.join(", or "));
            KmsError::new(Code::WrongDecryptionKey, message)
        }))
    }

    fn check(&self, data_key: &DataKey) -> Result<()> {
        let (expected, found) = (self.expected_mac(data_key), self.mac);
        // Hashes are compared in constant time.
        if blake3::Hash::from_bytes(expected) == blake3::Hash::from_bytes(found) {
            return Ok(());
        }
        Err(damaged("its header was changed"))
    }

    fn expected_mac(&self, data_key: &DataKey) -> [u8; MAC_LEN] {
        let key = derive("bulla sealed data v1 header key", data_key, &self.salt);
        *blake3::keyed_hash(&key, &self.body()).as_bytes()
    }

    /// number of keys (1), the wrapped keys, salt (32): the bytes that the MAC covers.
    fn body(&self) -> Vec<u8> {
        let mut body = vec![u8::try_from(self.keys.len()).expect("the number is bounded")];
        self.keys.iter().for_each(|key| key.write(&mut body));
        body.extend_from_slice(&self.salt);
        body
    }

    /// Magic, format, length of the rest (4, big-endian), body, MAC.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let body = self.body();
        let length = u32::try_from(body.len() + MAC_LEN).expect("a header is short");
        [&MAGIC[..], &[FORMAT], &length.to_be_bytes(), &body, &self.mac].concat()
    }

    /// Reads the header from the start of an encrypted file, and nothing after it.
    ///
    /// # Errors
    /// [`Code::MalformedEncryptedFile`] if it is not a header; [`Code::EncryptedFileTooNew`];
    /// errors of reading.
    pub fn read(source: &mut impl Read) -> Result<Self> {
        let malformed = |why: &str| {
            KmsError::new(Code::MalformedEncryptedFile, format!("it is not an encrypted file: {why}"))
        };
        let mut start = [0; 9];
        read_exact(source, &mut start)?.ok_or_else(|| malformed("it is too short"))?;
        let [magic @ .., format, a, b, c, d] = &start;
        if magic != MAGIC {
            let why = match &start {
                b"age-encry" => "this is an age file: use `age -d`",
                b"-----BEGI" => "this is armored text: use `age -d` if it is an age file",
                _ => return Err(malformed("its first bytes are not those of one")),
            };
            return Err(KmsError::new(Code::MalformedEncryptedFile, why));
        }
        match *format {
            FORMAT => {}
            newer if newer > FORMAT => {
                let message = format!(
                    "it is encrypted in format {newer} and this program reads format {FORMAT}; use a newer version of the program"
                );
                return Err(KmsError::new(Code::EncryptedFileTooNew, message));
            }
            _ => return Err(malformed("it has no format")),
        }
        let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX);
        if length > MAX_HEADER_LEN {
            return Err(malformed("its header is too long"));
        }
        let mut rest = vec![0; length];
        read_exact(source, &mut rest)?.ok_or_else(|| malformed("its header is cut"))?;
        Self::parse(&rest).ok_or_else(|| malformed("its header is damaged"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (number, mut rest) = bytes.split_first()?;
        if !(1..=MAX_KEYS).contains(&usize::from(*number)) {
            return None;
        }
        let mut keys = Vec::new();
        for _ in 0..*number {
            let (key, after) = WrappedKey::read(rest)?;
            keys.push(key);
            rest = after;
        }
        let (salt, mac) = rest.split_first_chunk()?;
        Some(Self { keys, salt: *salt, mac: mac.try_into().ok()? })
    }
}

/// Whether the keys that open a file so far still open it after [`rekey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingRecipients {
    /// They still open it.
    Keep,
    /// They do not: only the new keys open it.
    Drop,
}

/// Fills `bytes`; `None` if the source ends too early.
fn read_exact(source: &mut impl Read, bytes: &mut [u8]) -> Result<Option<()>> {
    match source.read_exact(bytes) {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(cannot_read(error)),
    }
}

/// The length of a chunk in bytes before encryption; only the last one may be shorter.
const CHUNK_LEN: usize = 64 << 10;
const TAG_LEN: usize = 16;

/// Whether another chunk follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChunkPosition {
    Middle,
    Last,
}

/// Encrypts and decrypts one chunk after the other.
struct ChunkCipher {
    cipher: XChaCha20Poly1305,
    /// Magic, format, salt, BLAKE3 of the caller's associated data.
    associated: Vec<u8>,
    number: u64,
}

impl ChunkCipher {
    fn new(data_key: &DataKey, salt: &[u8; 32], associated: &[u8]) -> Self {
        let key = derive("bulla sealed data v1 payload key", data_key, salt);
        let associated = blake3::hash(associated);
        Self {
            cipher: XChaCha20Poly1305::new((&*key).into()),
            associated: [&MAGIC[..], &[FORMAT], salt, associated.as_bytes()].concat(),
            number: 0,
        }
    }

    /// Zeros (15), number of the chunk (8, big-endian), 1 for the last one. The key is used only
    /// for this data, so no two chunks under one key share a nonce.
    fn next_nonce(&mut self, position: ChunkPosition) -> XNonce {
        let mut nonce = [0; 24];
        nonce[15..23].copy_from_slice(&self.number.to_be_bytes());
        nonce[23] = u8::from(position == ChunkPosition::Last);
        self.number += 1;
        XNonce::from(nonce)
    }

    /// Encrypts a chunk in place and appends its tag.
    fn encrypt(&mut self, chunk: &mut Vec<u8>, position: ChunkPosition) {
        let nonce = self.next_nonce(position);
        let encrypted = self.cipher.encrypt_in_place(&nonce, &self.associated, chunk);
        encrypted.expect("the cipher takes messages of up to 256 GiB");
    }

    /// Decrypts a chunk in place.
    fn decrypt(&mut self, chunk: &mut Vec<u8>, position: ChunkPosition) -> Result<()> {
        let first = self.number == 0;
        let nonce = self.next_nonce(position);
        let decrypted = self.cipher.decrypt_in_place(&nonce, &self.associated, chunk);
        decrypted.map_err(|_| damaged("a part of it was changed, moved or cut off"))?;
        // An empty chunk after others would be a second encoding of the same data.
        if chunk.is_empty() && !first { Err(damaged("it ends in an empty part")) } else { Ok(()) }
    }
}

/// Encrypts the data that is written to it, in bounded memory. Without [`Encryptor::finish`], its
/// output does not open.
///
/// ```
/// use std::io::{Read as _, Write as _};
///
/// use bulla_kms::encrypted_file::{Decryptor, Encryptor};
/// use bulla_kms::encryption::{Identity, IdentityKind};
///
/// let identity = Identity::generate(IdentityKind::XWing)?;
/// let mut encryptor = Encryptor::new(Vec::new(), &[&identity.recipient()], b"notes")?;
/// writeln!(encryptor, "the first line")?;
/// writeln!(encryptor, "the second line")?;
/// let encrypted = encryptor.finish()?;
///
/// let mut text = String::new();
/// Decryptor::new(&encrypted[..], &[&identity], b"notes")?.read_to_string(&mut text)?;
/// assert_eq!(text.lines().count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Encryptor<W> {
    sink: W,
    cipher: ChunkCipher,
    buffer: Zeroizing<Vec<u8>>,
    /// Writing failed: what the sink has cannot be continued.
    failed: bool,
}

impl<W: Write> Encryptor<W> {
    /// Writes the header to `sink`. Each of the 1 to 8 keys of `to` can open the data. The
    /// associated data is not written; the file opens only with the same associated data.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for another number of keys; errors
    /// of the providers; errors of writing.
    pub fn new(mut sink: W, to: &[&dyn KeyProvider], associated: &[u8]) -> Result<Self> {
        let (header, data_key) = Header::create(to)?;
        sink.write_all(&header.to_bytes()).map_err(cannot_write)?;
        let cipher = ChunkCipher::new(&data_key, &header.salt, associated);
        Ok(Self {
            sink,
            cipher,
            buffer: Zeroizing::new(Vec::with_capacity(CHUNK_LEN + TAG_LEN)),
            failed: false,
        })
    }

    /// Writes the end, and returns the sink.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn finish(mut self) -> Result<W> {
        self.write_chunk(ChunkPosition::Last).map_err(cannot_write)?;
        self.sink.flush().map_err(cannot_write)?;
        Ok(self.sink)
    }

    fn write_chunk(&mut self, position: ChunkPosition) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("an earlier part could not be written"));
        }
        self.failed = true;
        self.cipher.encrypt(&mut self.buffer, position);
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        self.failed = false;
        Ok(())
    }
}

/// Takes all bytes at once. After an error of writing, the value cannot be used any more.
impl<W: Write> Write for Encryptor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            // A full chunk is kept back until another byte shows that it is not the last one.
            if self.buffer.len() >= CHUNK_LEN {
                self.write_chunk(ChunkPosition::Middle)?;
            }
            let (now, later) = rest.split_at(rest.len().min(CHUNK_LEN - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            rest = later;
        }
        Ok(bytes.len())
    }

    /// Flushes the sink. An incomplete chunk stays in memory: only the last one may be shorter.
    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Decrypts the file that it reads, in bounded memory. It returns no byte that is not authenticated
/// at its place.
///
/// Only the end (a read of no bytes) proves that nothing was cut off: a caller that uses earlier
/// bytes must be able to undo that. An error has a [`KmsError`] inside, which [`KmsError::io`]
/// returns: [`Code::EncryptedFileCorrupt`], also if the associated data differs, or an error of
/// reading. After an error, all reads fail.
///
/// [`BufRead::fill_buf`] returns bytes that this value wipes from memory. Other reads copy them.
pub struct Decryptor<R> {
    source: R,
    cipher: ChunkCipher,
    chunk: Zeroizing<Vec<u8>>,
    /// How many bytes of the decrypted chunk the caller has.
    consumed: usize,
    /// The first byte of the next chunk, if there is one.
    next_byte: Option<u8>,
    state: DecryptorState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DecryptorState {
    Reading,
    Ended,
    Failed,
}

impl<R: Read> Decryptor<R> {
    /// Reads and authenticates the header, with the first key of `with` that opens it.
    ///
    /// # Errors
    /// [`Code::MalformedEncryptedFile`],
    /// [`Code::EncryptedFileTooNew`],
    /// [`Code::EncryptedFileCorrupt`];
    /// [`Code::WrongDecryptionKey`] if it is encrypted to other
    /// keys; errors of the providers; errors of reading.
    pub fn new(mut source: R, with: &[&dyn KeyProvider], associated: &[u8]) -> Result<Self> {
        let header = Header::read(&mut source)?;
        Self::with_header(source, &header, with, associated)
    }

    /// Like [`Decryptor::new`], if the header was already read.
    ///
    /// # Errors
    /// The errors of [`Decryptor::new`].
    pub fn with_header(
        source: R,
        header: &Header,
        with: &[&dyn KeyProvider],
        associated: &[u8],
    ) -> Result<Self> {
        let data_key = header.unwrap(with)?;
        let cipher = ChunkCipher::new(&data_key, &header.salt, associated);
        let chunk = Zeroizing::new(Vec::with_capacity(CHUNK_LEN + TAG_LEN + 1));
        Ok(Self { source, cipher, chunk, consumed: 0, next_byte: None, state: DecryptorState::Reading })
    }

    /// Decrypts the next chunk; false at the end.
    fn next_chunk(&mut self) -> Result<bool> {
        match self.state {
            DecryptorState::Ended => return Ok(false),
            DecryptorState::Failed => return Err(damaged("a part of it did not open before")),
            DecryptorState::Reading => self.state = DecryptorState::Failed,
        }
        // The next bytes overwrite these, and the value wipes the rest when it is dropped.
        self.chunk.clear();
        self.consumed = 0;
        self.chunk.extend(self.next_byte.take());
        let wanted = (CHUNK_LEN + TAG_LEN + 1 - self.chunk.len()) as u64;
        let read = (&mut self.source).take(wanted).read_to_end(&mut self.chunk).map_err(cannot_read);
        let opened = read.and_then(|_| {
            let is_last = self.chunk.len() <= CHUNK_LEN + TAG_LEN;
            if !is_last {
                self.next_byte = self.chunk.pop();
            }
            let position = if is_last { ChunkPosition::Last } else { ChunkPosition::Middle };
            self.cipher.decrypt(&mut self.chunk, position)?;
            self.state = if is_last { DecryptorState::Ended } else { DecryptorState::Reading };
            Ok(true)
        });
        if opened.is_err() {
            // Nothing of a chunk that was not authenticated is returned.
            self.chunk.clear();
        }
        opened
    }
}

impl<R: Read> BufRead for Decryptor<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.consumed == self.chunk.len() && self.next_chunk().map_err(io_error)? {}
        Ok(&self.chunk[self.consumed..])
    }

    fn consume(&mut self, length: usize) {
        self.consumed = (self.consumed + length).min(self.chunk.len());
    }
}

impl<R: Read> Read for Decryptor<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

/// The error as a reader returns it, with the error of this crate inside.
fn io_error(error: KmsError) -> io::Error {
    let kind = match error.code {
        Code::EncryptedFileCorrupt => io::ErrorKind::InvalidData,
        Code::PermissionDenied => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
