//! The payload: chunks, each encrypted for its position, and the last one marked as the last.
//!
//! This is the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár: "Online
//! Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance", CRYPTO 2015) with
//! XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03).

use std::io::{Read, Write};

use bulla_blake3 as blake3;
use chacha20poly1305::aead::{AeadInOut as _, KeyInit as _};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::format::{FORMAT, MAGIC, cannot_read, cannot_write, damaged, derive};
use super::header::{DataKey, Header};
use crate::error::Result;
use crate::seal::provider::KeyProvider;

/// The length of a chunk in bytes before encryption; only the last one may be shorter.
pub(super) const CHUNK: usize = 64 << 10;
pub(super) const TAG: usize = 16;

/// Whether another chunk follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Middle,
    Last,
}

/// Encrypts and decrypts one chunk after the other.
struct Chunks {
    cipher: XChaCha20Poly1305,
    /// Magic, format, salt, BLAKE3 of the caller's associated data.
    associated: Vec<u8>,
    number: u64,
}

impl Chunks {
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
    fn next_nonce(&mut self, position: Position) -> XNonce {
        let mut nonce = [0; 24];
        nonce[15..23].copy_from_slice(&self.number.to_be_bytes());
        nonce[23] = u8::from(position == Position::Last);
        self.number += 1;
        XNonce::from(nonce)
    }

    /// Encrypts a chunk in place and appends its tag.
    fn seal(&mut self, chunk: &mut Vec<u8>, position: Position) {
        let nonce = self.next_nonce(position);
        let sealed = self.cipher.encrypt_in_place(&nonce, &self.associated, chunk);
        sealed.expect("the cipher takes messages of up to 256 GiB");
    }

    /// Decrypts a chunk in place.
    fn open(&mut self, chunk: &mut Vec<u8>, position: Position) -> Result<()> {
        let first = self.number == 0;
        let nonce = self.next_nonce(position);
        let opened = self.cipher.decrypt_in_place(&nonce, &self.associated, chunk);
        opened.map_err(|_| damaged("a part of it was changed, moved or cut off"))?;
        // An empty chunk after others would be a second encoding of the same data.
        if chunk.is_empty() && !first { Err(damaged("it ends in an empty part")) } else { Ok(()) }
    }
}

/// Seals the data that is written to it, in bounded memory. Without [`Sealing::finish`], its output
/// does not open.
pub struct Sealing<W> {
    sink: W,
    chunks: Chunks,
    buffer: Zeroizing<Vec<u8>>,
}

impl<W: Write> Sealing<W> {
    /// Writes the header to `sink`. Each of the 1 to 8 keys of `to` can open the data. The
    /// associated data is not written; the sealed data opens only with the same associated data.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`](crate::Code::InvalidArgument) for another number of keys; errors
    /// of the providers; errors of writing.
    pub fn new(mut sink: W, to: &[&dyn KeyProvider], associated: &[u8]) -> Result<Self> {
        let (header, data_key) = Header::create(to)?;
        sink.write_all(&header.to_bytes()).map_err(cannot_write)?;
        let chunks = Chunks::new(&data_key, &header.salt, associated);
        Ok(Self { sink, chunks, buffer: Zeroizing::new(Vec::with_capacity(CHUNK + TAG)) })
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// Errors of writing; after one, the value cannot be used any more.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            // A full chunk is kept back until another byte shows that it is not the last one.
            if self.buffer.len() == CHUNK {
                self.flush(Position::Middle)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Writes the end, and returns the sink.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn finish(mut self) -> Result<W> {
        self.flush(Position::Last)?;
        self.sink.flush().map_err(cannot_write)?;
        Ok(self.sink)
    }

    fn flush(&mut self, position: Position) -> Result<()> {
        self.chunks.seal(&mut self.buffer, position);
        self.sink.write_all(&self.buffer).map_err(cannot_write)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Opens sealed data piece by piece, in bounded memory.
pub struct Opening<R> {
    source: R,
    chunks: Chunks,
    chunk: Zeroizing<Vec<u8>>,
    /// The first byte of the next chunk, if there is one.
    ahead: Option<u8>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    Ended,
    Failed,
}

impl<R: Read> Opening<R> {
    /// Reads and authenticates the header, with the first key of `with` that opens it.
    ///
    /// # Errors
    /// [`Code::MalformedEncryptedFile`](crate::Code::MalformedEncryptedFile),
    /// [`Code::EncryptedFileTooNew`](crate::Code::EncryptedFileTooNew),
    /// [`Code::EncryptedFileCorrupt`](crate::Code::EncryptedFileCorrupt);
    /// [`Code::WrongDecryptionKey`](crate::Code::WrongDecryptionKey) if it is encrypted to other keys; errors
    /// of the providers; errors of reading.
    pub fn new(mut source: R, with: &[&dyn KeyProvider], associated: &[u8]) -> Result<Self> {
        let header = Header::read(&mut source)?;
        Self::after(source, &header, with, associated)
    }

    /// Like [`Opening::new`], if the header was already read.
    ///
    /// # Errors
    /// The errors of [`Opening::new`].
    pub fn after(source: R, header: &Header, with: &[&dyn KeyProvider], associated: &[u8]) -> Result<Self> {
        let data_key = header.open(with)?;
        let chunks = Chunks::new(&data_key, &header.salt, associated);
        let chunk = Zeroizing::new(Vec::with_capacity(CHUNK + TAG + 1));
        Ok(Self { source, chunks, chunk, ahead: None, state: State::Reading })
    }

    /// The next piece, authenticated at this place; `None` at the end. Only `None` proves that
    /// nothing was cut off: a caller that uses earlier pieces must be able to undo that.
    ///
    /// # Errors
    /// [`Code::EncryptedFileCorrupt`](crate::Code::EncryptedFileCorrupt), also if the associated data differs;
    /// errors of reading. After an error, there are no more pieces.
    pub fn next_piece(&mut self) -> Result<Option<&[u8]>> {
        match self.state {
            State::Ended => return Ok(None),
            State::Failed => return Err(damaged("a part of it did not open before")),
            State::Reading => self.state = State::Failed,
        }
        // The next bytes overwrite these, and the value wipes the rest when it is dropped.
        self.chunk.clear();
        self.chunk.extend(self.ahead.take());
        let wanted = (CHUNK + TAG + 1 - self.chunk.len()) as u64;
        (&mut self.source).take(wanted).read_to_end(&mut self.chunk).map_err(cannot_read)?;
        let position = if self.chunk.len() > CHUNK + TAG { Position::Middle } else { Position::Last };
        if position == Position::Middle {
            self.ahead = self.chunk.pop();
        }
        self.chunks.open(&mut self.chunk, position)?;
        self.state = if position == Position::Last { State::Ended } else { State::Reading };
        Ok(Some(&self.chunk))
    }
}
