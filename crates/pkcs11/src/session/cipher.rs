//! Encryption and decryption with keys of a session: AES in the modes that programs expect of a
//! token, and RSA.

use std::sync::Arc;

use cryptoki_sys::*;
use rsa::traits::PublicKeyParts as _;
use zeroize::Zeroizing;

use crate::error::{Failure, Result, fail, require};
use crate::object::Object;
use crate::operation::mechanism::{Direction, MAX_PLAINTEXT_LEN, Mechanism, Parameters, TAG_LEN};
use crate::reply::{Reply, without_room};
use crate::session::aes::{self, BLOCK_LEN, Blocks, Gcm, Mode};
use crate::session::key::SessionKey;
use crate::session::rsa::RsaEncryption;

/// An encryption or decryption.
pub(crate) struct SessionCipher {
    object: Arc<Object>,
    cipher: Cipher,
    direction: Direction,
    /// The result, once it is known, if the program had no room for it.
    output: Option<Zeroizing<Vec<u8>>>,
}

/// How data is computed, and what waits for more.
enum Cipher {
    /// Block by block.
    Blocks {
        run: Blocks,
        padding: Padding,
        pending: Zeroizing<Vec<u8>>,
    },
    /// Byte by byte.
    Counter {
        run: Blocks,
        /// The bytes before the counter comes back to its first value.
        left: u128,
    },
    /// All data at the end: nobody may see a plaintext before its tag is checked.
    Gcm(Gcm, Zeroizing<Vec<u8>>),
    Rsa(RsaEncryption, Zeroizing<Vec<u8>>),
}

/// What fills the last block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    /// The data are whole blocks.
    None,
    /// RFC 5652, section 6.3.
    Pkcs7,
}

impl SessionCipher {
    /// # Errors
    /// `CKR_MECHANISM_INVALID`; `CKR_KEY_FUNCTION_NOT_PERMITTED`; `CKR_KEY_TYPE_INCONSISTENT`;
    /// `CKR_MECHANISM_PARAM_INVALID`.
    pub(crate) fn new(
        direction: Direction,
        mechanism: Mechanism,
        object: Arc<Object>,
        flag: CK_ATTRIBUTE_TYPE,
    ) -> Result<Self> {
        let kind = mechanism.kind;
        let is_rsa = matches!(kind, CKM_RSA_PKCS | CKM_RSA_PKCS_OAEP);
        let is_aes = matches!(kind, CKM_AES_ECB | CKM_AES_CBC | CKM_AES_CBC_PAD | CKM_AES_CTR | CKM_AES_GCM);
        require(is_rsa || is_aes, CKR_MECHANISM_INVALID)?;
        object.permits(kind, flag)?;
        let cipher = if is_rsa {
            let is_key =
                matches!(object.session_key.as_deref(), Some(SessionKey::Rsa(_) | SessionKey::RsaPublic(_)));
            require(is_key, CKR_KEY_TYPE_INCONSISTENT)?;
            Cipher::Rsa(RsaEncryption::of(mechanism)?, Zeroizing::default())
        } else {
            Cipher::aes(object.aes_key()?, kind, mechanism.parameters, direction)?
        };
        Ok(Self { object, cipher, direction, output: None })
    }

    fn length_code(&self) -> CK_RV {
        match self.direction {
            Direction::Encrypt => CKR_DATA_LEN_RANGE,
            Direction::Decrypt => CKR_ENCRYPTED_DATA_LEN_RANGE,
        }
    }

    /// Adds a piece, and gives what is known by then.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE` or `CKR_ENCRYPTED_DATA_LEN_RANGE` if the data become too long.
    pub(crate) fn update(&mut self, data: &[u8], room: Option<usize>) -> Result<Reply> {
        // The program has asked for the end already.
        require(self.output.is_none(), CKR_OPERATION_NOT_INITIALIZED)?;
        let code = self.length_code();
        let known = match &self.cipher {
            Cipher::Blocks { padding, pending, .. } => {
                // The last block of a ciphertext has the padding.
                let all = pending.len() + data.len();
                let keeps = *padding == Padding::Pkcs7 && self.direction == Direction::Decrypt;
                all.saturating_sub(usize::from(keeps)) / BLOCK_LEN * BLOCK_LEN
            }
            Cipher::Counter { .. } => data.len(),
            Cipher::Gcm(..) | Cipher::Rsa(..) => 0,
        };
        if let Some(reply) = without_room(room, known) {
            return Ok(reply);
        }
        match &mut self.cipher {
            Cipher::Blocks { run, pending, .. } => {
                let mut all = joined(pending, data, 0);
                let rest = all[known..].to_vec();
                all.truncate(known);
                run(&mut all);
                *pending = Zeroizing::new(rest);
                Ok(Reply::Bytes(all))
            }
            Cipher::Counter { run, left } => {
                *left = left.checked_sub(data.len() as u128).ok_or(Failure(code))?;
                let mut out = Zeroizing::new(data.to_vec());
                run(&mut out);
                Ok(Reply::Bytes(out))
            }
            Cipher::Gcm(_, input) | Cipher::Rsa(_, input) => {
                let fits = data.len() <= (MAX_PLAINTEXT_LEN + TAG_LEN).saturating_sub(input.len());
                require(fits, code)?;
                // A buffer that grows leaves no copy behind.
                if input.capacity() < input.len() + data.len() {
                    *input = joined(input, &[], 2 * data.len() + input.len());
                }
                input.extend_from_slice(data);
                Ok(Reply::Bytes(Zeroizing::default()))
            }
        }
    }

    /// The length of the result, or more, with `more` bytes of input.
    pub(crate) fn output_len(&self, more: usize) -> usize {
        let encrypts = self.direction == Direction::Encrypt;
        match (&self.output, &self.cipher) {
            (Some(output), _) => output.len(),
            (None, Cipher::Blocks { padding: Padding::Pkcs7, pending, .. }) if encrypts => {
                ((pending.len() + more) / BLOCK_LEN + 1).saturating_mul(BLOCK_LEN)
            }
            (None, Cipher::Blocks { pending, .. }) => pending.len() + more,
            (None, Cipher::Counter { .. }) => more,
            (None, Cipher::Gcm(gcm, input)) if encrypts => input.len() + more + gcm.tag_len,
            (None, Cipher::Gcm(gcm, input)) => (input.len() + more).saturating_sub(gcm.tag_len),
            (None, Cipher::Rsa(..)) if encrypts => self.key_len(),
            (None, Cipher::Rsa(how, _)) => how.max_plaintext(self.key_len()),
        }
    }

    /// The length of the modulus in bytes.
    fn key_len(&self) -> usize {
        match self.object.session_key.as_deref() {
            Some(SessionKey::Rsa(key)) => key.size(),
            Some(SessionKey::RsaPublic(key)) => key.size(),
            _ => 0,
        }
    }

    /// The result, with a last piece. It is remembered: if there is no room for it, it is asked for
    /// again, without a piece.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE`; `CKR_ENCRYPTED_DATA_LEN_RANGE`; `CKR_ENCRYPTED_DATA_INVALID`;
    /// `CKR_DEVICE_ERROR`.
    pub(crate) fn finish(&mut self, rest: &[u8]) -> Result<&Zeroizing<Vec<u8>>> {
        let output = match self.output.take() {
            Some(output) => output,
            None => self.compute(rest)?,
        };
        Ok(self.output.insert(output))
    }

    fn compute(&mut self, rest: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        if let Cipher::Blocks { run, padding, pending } = &mut self.cipher {
            return last_blocks(run, *padding, self.direction, joined(pending, rest, BLOCK_LEN));
        }
        let Reply::Bytes(known) = self.update(rest, Some(usize::MAX))? else {
            return fail(CKR_GENERAL_ERROR);
        };
        match &mut self.cipher {
            Cipher::Gcm(gcm, input) => {
                let mut data = joined(input, &[], gcm.tag_len);
                gcm.run(self.object.aes_key()?, self.direction, &mut data)?;
                Ok(data)
            }
            Cipher::Rsa(how, input) => match (self.object.session_key.as_deref(), self.direction) {
                (Some(SessionKey::RsaPublic(key)), Direction::Encrypt) => {
                    how.encrypt(key, input).map(Zeroizing::new)
                }
                (Some(SessionKey::Rsa(key)), Direction::Decrypt) => how.decrypt(key, input),
                _ => fail(CKR_KEY_TYPE_INCONSISTENT),
            },
            Cipher::Counter { .. } | Cipher::Blocks { .. } => Ok(known),
        }
    }
}

/// Bytes after each other, with room for others.
fn joined(first: &[u8], second: &[u8], room: usize) -> Zeroizing<Vec<u8>> {
    let mut all = Zeroizing::new(Vec::with_capacity(first.len() + second.len() + room));
    all.extend_from_slice(first);
    all.extend_from_slice(second);
    all
}

/// Computes the last blocks.
fn last_blocks(
    run: &mut Blocks,
    padding: Padding,
    direction: Direction,
    mut data: Zeroizing<Vec<u8>>,
) -> Result<Zeroizing<Vec<u8>>> {
    match (padding, direction) {
        (Padding::None, Direction::Encrypt) => {
            require(data.len().is_multiple_of(BLOCK_LEN), CKR_DATA_LEN_RANGE)?;
        }
        (Padding::Pkcs7, Direction::Encrypt) => {
            let more = BLOCK_LEN - data.len() % BLOCK_LEN;
            let length = data.len() + more;
            data.resize(length, more as u8);
        }
        (padding, Direction::Decrypt) => {
            let is_there = padding == Padding::None || !data.is_empty();
            let fits = is_there && data.len().is_multiple_of(BLOCK_LEN);
            require(fits, CKR_ENCRYPTED_DATA_LEN_RANGE)?;
        }
    }
    run(&mut data);
    if (padding, direction) == (Padding::Pkcs7, Direction::Decrypt) {
        let last = data.last().copied().map_or(0, usize::from);
        let start = data.len().saturating_sub(last);
        let fits = (1..=BLOCK_LEN).contains(&last);
        let is_valid = fits && data[start..].iter().all(|byte| usize::from(*byte) == last);
        require(is_valid, CKR_ENCRYPTED_DATA_INVALID)?;
        data.truncate(start);
    }
    Ok(data)
}

impl Cipher {
    fn aes(
        key: &[u8],
        kind: CK_MECHANISM_TYPE,
        parameters: Parameters,
        direction: Direction,
    ) -> Result<Self> {
        let blocks = |mode, padding| -> Result<Self> {
            let run = aes::whole_blocks(key, mode, direction)?;
            Ok(Self::Blocks { run, padding, pending: Zeroizing::default() })
        };
        match (kind, parameters) {
            (CKM_AES_ECB, Parameters::None) => blocks(Mode::Ecb, Padding::None),
            (CKM_AES_CBC, Parameters::Iv(iv)) => blocks(Mode::Cbc(iv), Padding::None),
            (CKM_AES_CBC_PAD, Parameters::Iv(iv)) => blocks(Mode::Cbc(iv), Padding::Pkcs7),
            (CKM_AES_CTR, Parameters::Counter { bits: bits @ 1..=128, first }) => {
                let run = aes::counter(key, first)?;
                Ok(Self::Counter { run, left: bytes_left(bits, first) })
            }
            (CKM_AES_GCM, Parameters::Gcm { nonce, associated_data, tag_bits }) => {
                let gcm = Gcm::new(&nonce, associated_data, tag_bits)?;
                Ok(Self::Gcm(gcm, Zeroizing::default()))
            }
            _ => fail(CKR_MECHANISM_PARAM_INVALID),
        }
    }
}

/// How many bytes a counter of some bits encrypts, if it starts with the lowest bits of a block.
/// After them it would come back to values that it had.
fn bytes_left(bits: CK_ULONG, first: [u8; BLOCK_LEN]) -> u128 {
    let first = u128::from_be_bytes(first);
    let blocks = match bits {
        128.. => u128::MAX - first,
        bits => (1 << bits) - (first & ((1 << bits) - 1)),
    };
    blocks.saturating_mul(BLOCK_LEN as u128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::template::{Origin, secret_key};

    fn key() -> Arc<Object> {
        Arc::new(secret_key(&[], CKK_AES, &[9; 32], Origin::generated(CKM_AES_KEY_GEN), 1).unwrap())
    }

    fn cipher(direction: Direction, kind: CK_MECHANISM_TYPE, parameters: Parameters) -> SessionCipher {
        let flag = if direction == Direction::Encrypt { CKA_ENCRYPT } else { CKA_DECRYPT };
        SessionCipher::new(direction, Mechanism { kind, parameters }, key(), flag).unwrap()
    }

    fn bytes(reply: Reply) -> Vec<u8> {
        let Reply::Bytes(bytes) = reply else { panic!("{reply:?}") };
        bytes.to_vec()
    }

    #[test]
    fn pieces_of_every_length_give_the_same_as_the_whole() {
        let message: Vec<u8> = (0..100).collect();
        let counter = || Parameters::Counter { bits: 32, first: [3; 16] };
        for (kind, parameters) in
            [(CKM_AES_CBC_PAD, (|| Parameters::Iv([5; 16])) as fn() -> Parameters), (CKM_AES_CTR, counter)]
        {
            let whole =
                |direction, data: &[u8]| cipher(direction, kind, parameters()).finish(data).unwrap().to_vec();
            for length in 0..message.len() {
                let message = &message[..length];
                let ciphertext = whole(Direction::Encrypt, message);
                assert_eq!(whole(Direction::Decrypt, &ciphertext), message);
                for piece in [1, 7, 16, 17, 40] {
                    let pieces = |direction, data: &[u8]| {
                        let mut cipher = cipher(direction, kind, parameters());
                        let mut all = Vec::new();
                        for piece in data.chunks(piece) {
                            all.extend(bytes(cipher.update(piece, Some(100)).unwrap()));
                        }
                        all.extend_from_slice(cipher.finish(&[]).unwrap());
                        all
                    };
                    assert_eq!(pieces(Direction::Encrypt, message), ciphertext, "{length} in {piece}");
                    assert_eq!(pieces(Direction::Decrypt, &ciphertext), message, "{length} in {piece}");
                }
            }
        }
    }

    #[test]
    fn a_piece_without_room_is_not_taken() {
        let mut cipher = cipher(Direction::Encrypt, CKM_AES_CBC_PAD, Parameters::Iv([5; 16]));
        assert_eq!(cipher.update(&[1; 20], None), Ok(Reply::Length(16)));
        assert_eq!(cipher.update(&[1; 20], Some(15)), Ok(Reply::TooSmall(16)));
        assert_eq!(bytes(cipher.update(&[1; 20], Some(16)).unwrap()).len(), 16);
        assert_eq!(cipher.output_len(0), 16);
        assert_eq!(cipher.finish(&[]).unwrap().len(), 16);
    }

    #[test]
    fn a_counter_does_not_come_back() {
        let first = u128::MAX.to_be_bytes();
        let run = |bits, length| {
            cipher(Direction::Encrypt, CKM_AES_CTR, Parameters::Counter { bits, first })
                .finish(&vec![0; length])
                .map(|out| out.len())
        };
        assert_eq!(run(8, 16), Ok(16));
        assert_eq!(run(8, 17), fail(CKR_DATA_LEN_RANGE));
        assert_eq!(bytes_left(8, [0; 16]), 256 * 16);
        assert_eq!(bytes_left(128, [0; 16]), u128::MAX);
    }

    #[test]
    fn wrong_lengths_and_paddings_are_told() {
        let run = |direction, kind, data: &[u8]| {
            let parameters = if kind == CKM_AES_ECB { Parameters::None } else { Parameters::Iv([0; 16]) };
            cipher(direction, kind, parameters).finish(data).map(|out| out.len())
        };
        assert_eq!(run(Direction::Encrypt, CKM_AES_ECB, &[0; 17]), fail(CKR_DATA_LEN_RANGE));
        assert_eq!(run(Direction::Decrypt, CKM_AES_CBC, &[0; 17]), fail(CKR_ENCRYPTED_DATA_LEN_RANGE));
        assert_eq!(run(Direction::Decrypt, CKM_AES_CBC_PAD, &[]), fail(CKR_ENCRYPTED_DATA_LEN_RANGE));
        assert_eq!(run(Direction::Decrypt, CKM_AES_CBC_PAD, &[0; 32]), fail(CKR_ENCRYPTED_DATA_INVALID));
    }
}
