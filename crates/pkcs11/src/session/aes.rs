//! AES with keys of a session: the modes of its blocks, AES-GCM, and key wrapping (RFC 3394 and RFC
//! 5649). The ciphers are those of RustCrypto, which wipe their keys.

use aes::cipher::{
    Block, BlockCipherDecrypt as _, BlockCipherEncrypt as _, BlockModeDecrypt as _, BlockModeEncrypt as _,
    InnerIvInit as _, KeyInit, StreamCipher as _,
};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::consts::{U12, U13, U14, U15, U16};
use aes_gcm::aead::{AeadInOut, Nonce};
use aes_kw::{AesKw, AesKwp};
use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::error::{Failure, Result, fail, require};
use crate::operation::mechanism::{Direction, NONCE_LEN};

/// The length of a block in bytes.
pub(crate) const BLOCK_LEN: usize = 16;

/// What `AES_KEY_WRAP` adds to a key.
const KEY_WRAP_OVERHEAD: usize = 8;

/// Encrypts or decrypts whole blocks in place.
pub(crate) type Blocks = Box<dyn FnMut(&mut [u8]) + Send>;

/// How blocks depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Ecb,
    /// With its initialization vector.
    Cbc([u8; BLOCK_LEN]),
}

/// Computes with the cipher of a key's length.
macro_rules! by_length {
    ($key:expr, $cipher:ident => $body:expr) => {
        match $key.len() {
            16 => {
                type $cipher = Aes128;
                $body
            }
            24 => {
                type $cipher = Aes192;
                $body
            }
            32 => {
                type $cipher = Aes256;
                $body
            }
            _ => return fail(CKR_KEY_SIZE_RANGE),
        }
    };
}

/// A cipher whose key has the length that [`by_length`] found.
fn cipher<C: KeyInit>(key: &[u8]) -> Result<C> {
    C::new_from_slice(key).map_err(|_| Failure(CKR_KEY_SIZE_RANGE))
}

/// Whole blocks of some bytes.
fn blocks(bytes: &mut [u8]) -> &mut [Block<Aes128>] {
    Block::<Aes128>::slice_as_chunks_mut(bytes).0
}

/// Encrypts or decrypts whole blocks, one call after the other.
///
/// # Errors
/// `CKR_KEY_SIZE_RANGE`.
pub(crate) fn whole_blocks(key: &[u8], mode: Mode, direction: Direction) -> Result<Blocks> {
    Ok(by_length!(key, C => {
        let cipher = cipher::<C>(key)?;
        match (mode, direction) {
            (Mode::Ecb, Direction::Encrypt) => {
                Box::new(move |bytes: &mut [u8]| cipher.encrypt_blocks(blocks(bytes))) as Blocks
            }
            (Mode::Ecb, Direction::Decrypt) => {
                Box::new(move |bytes: &mut [u8]| cipher.decrypt_blocks(blocks(bytes)))
            }
            (Mode::Cbc(iv), Direction::Encrypt) => {
                let mut mode = cbc::Encryptor::inner_iv_init(cipher, &iv.into());
                Box::new(move |bytes: &mut [u8]| mode.encrypt_blocks(blocks(bytes)))
            }
            (Mode::Cbc(iv), Direction::Decrypt) => {
                let mut mode = cbc::Decryptor::inner_iv_init(cipher, &iv.into());
                Box::new(move |bytes: &mut [u8]| mode.decrypt_blocks(blocks(bytes)))
            }
        }
    }))
}

/// Encrypts or decrypts bytes in counter mode, one call after the other.
///
/// # Errors
/// `CKR_KEY_SIZE_RANGE`.
pub(crate) fn counter(key: &[u8], first: [u8; BLOCK_LEN]) -> Result<Blocks> {
    Ok(by_length!(key, C => {
        let core = ctr::CtrCore::<C, ctr::flavors::Ctr128BE>::inner_iv_init(cipher::<C>(key)?, &first.into());
        let mut stream = ctr::Ctr128BE::<C>::from_core(core);
        // The caller counts the blocks, so that none is left.
        Box::new(move |bytes: &mut [u8]| {
            let _ = stream.try_apply_keystream(bytes);
        }) as Blocks
    }))
}

/// How a message of AES-GCM is encrypted.
pub(crate) struct Gcm {
    pub(crate) nonce: [u8; NONCE_LEN],
    pub(crate) associated_data: Vec<u8>,
    /// The length of the tag in bytes, from 12 to 16.
    pub(crate) tag_len: usize,
}

impl Gcm {
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID` for another nonce than one of 96 bits, and for tags that are
    /// shorter than that.
    pub(crate) fn new(nonce: &[u8], associated_data: Vec<u8>, tag_bits: CK_ULONG) -> Result<Self> {
        let nonce = nonce.try_into().map_err(|_| Failure(CKR_MECHANISM_PARAM_INVALID))?;
        require(matches!(tag_bits, 96 | 104 | 112 | 120 | 128), CKR_MECHANISM_PARAM_INVALID)?;
        Ok(Self { nonce, associated_data, tag_len: tag_bits as usize / 8 })
    }

    /// Encrypts or decrypts in place. The tag is at the end of a ciphertext.
    ///
    /// # Errors
    /// `CKR_KEY_SIZE_RANGE`; `CKR_ENCRYPTED_DATA_INVALID` for what this key did not encrypt so.
    pub(crate) fn run(&self, key: &[u8], direction: Direction, data: &mut Vec<u8>) -> Result<()> {
        by_length!(key, C => match self.tag_len {
            12 => self.run_by::<AesGcm<C, U12, U12>>(key, direction, data),
            13 => self.run_by::<AesGcm<C, U12, U13>>(key, direction, data),
            14 => self.run_by::<AesGcm<C, U12, U14>>(key, direction, data),
            15 => self.run_by::<AesGcm<C, U12, U15>>(key, direction, data),
            _ => self.run_by::<AesGcm<C, U12, U16>>(key, direction, data),
        })
    }

    fn run_by<A: KeyInit + AeadInOut>(
        &self,
        key: &[u8],
        direction: Direction,
        data: &mut Vec<u8>,
    ) -> Result<()> {
        let cipher = cipher::<A>(key)?;
        let nonce = <&Nonce<A>>::try_from(&self.nonce[..]).map_err(|_| Failure(CKR_GENERAL_ERROR))?;
        let (done, code) = match direction {
            Direction::Encrypt => {
                data.reserve_exact(self.tag_len);
                (cipher.encrypt_in_place(nonce, &self.associated_data, data), CKR_DATA_LEN_RANGE)
            }
            Direction::Decrypt => {
                (cipher.decrypt_in_place(nonce, &self.associated_data, data), CKR_ENCRYPTED_DATA_INVALID)
            }
        };
        done.map_err(|_| Failure(code))
    }
}

/// Which way of key wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyWrap {
    /// RFC 3394: keys of a multiple of 8 bytes, at least 16.
    Plain,
    /// RFC 5649: keys of any length.
    Padded,
}

impl KeyWrap {
    /// The way of a mechanism; none if it is another mechanism.
    pub(crate) fn of_mechanism(kind: CK_MECHANISM_TYPE) -> Option<Self> {
        match kind {
            CKM_AES_KEY_WRAP => Some(Self::Plain),
            CKM_AES_KEY_WRAP_PAD | CKM_AES_KEY_WRAP_KWP => Some(Self::Padded),
            _ => None,
        }
    }

    /// The length of a wrapped key.
    ///
    /// # Errors
    /// `CKR_KEY_SIZE_RANGE` for a key that cannot be wrapped so.
    pub(crate) fn wrapped_len(self, length: usize) -> Result<usize> {
        let fits = match self {
            Self::Plain => length >= 16 && length.is_multiple_of(8),
            Self::Padded => length > 0,
        };
        require(fits, CKR_KEY_SIZE_RANGE)?;
        Ok(length.next_multiple_of(8) + KEY_WRAP_OVERHEAD)
    }

    /// # Errors
    /// `CKR_KEY_SIZE_RANGE`.
    pub(crate) fn wrap(self, kek: &[u8], key: &[u8]) -> Result<Vec<u8>> {
        let mut wrapped = vec![0; self.wrapped_len(key.len())?];
        let done = by_length!(kek, C => match self {
            Self::Plain => AesKw::<C>::new_from_slice(kek).map(|kw| kw.wrap_key(key, &mut wrapped).is_ok()),
            Self::Padded => AesKwp::<C>::new_from_slice(kek).map(|kw| kw.wrap_key(key, &mut wrapped).is_ok()),
        });
        require(matches!(done, Ok(true)), CKR_KEY_SIZE_RANGE)?;
        Ok(wrapped)
    }

    /// # Errors
    /// `CKR_KEY_SIZE_RANGE`; `CKR_WRAPPED_KEY_LEN_RANGE`; `CKR_WRAPPED_KEY_INVALID` for what this
    /// key did not wrap.
    pub(crate) fn unwrap(self, kek: &[u8], wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let least = if self == Self::Plain { 24 } else { 16 };
        let fits = wrapped.len() >= least && wrapped.len().is_multiple_of(8);
        require(fits, CKR_WRAPPED_KEY_LEN_RANGE)?;
        let mut key = Zeroizing::new(vec![0; wrapped.len() - KEY_WRAP_OVERHEAD]);
        let length = by_length!(kek, C => match self {
            Self::Plain => {
                cipher::<AesKw<C>>(kek)?.unwrap_key(wrapped, &mut key).map(<[u8]>::len)
            }
            Self::Padded => {
                cipher::<AesKwp<C>>(kek)?.unwrap_key(wrapped, &mut key).map(<[u8]>::len)
            }
        });
        let length = length.map_err(|_| Failure(CKR_WRAPPED_KEY_INVALID))?;
        key.truncate(length);
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;

    fn hex(text: &str) -> Vec<u8> {
        HEXLOWER.decode(text.as_bytes()).unwrap()
    }

    /// NIST SP 800-38A, sections F.1.1, F.2.1 and F.5.1: the first two blocks.
    #[test]
    fn the_modes_are_those_of_nist() {
        let key = hex("2b7e151628aed2a6abf7158809cf4f3c");
        let plaintext = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        let iv: [u8; 16] = std::array::from_fn(|place| place as u8);
        let counter_block = hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff").try_into().unwrap();
        let run = |mut mode: Blocks, bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            let (first, second) = bytes.split_at_mut(16);
            mode(first);
            mode(second);
            bytes
        };
        for (mode, expected) in [
            (Mode::Ecb, "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf"),
            (Mode::Cbc(iv), "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"),
        ] {
            let encrypted = run(whole_blocks(&key, mode, Direction::Encrypt).unwrap(), &plaintext);
            assert_eq!(encrypted, hex(expected));
            assert_eq!(run(whole_blocks(&key, mode, Direction::Decrypt).unwrap(), &encrypted), plaintext);
        }
        let expected = hex("874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff");
        assert_eq!(run(counter(&key, counter_block).unwrap(), &plaintext), expected);
    }

    /// RFC 3394, section 4.1, and RFC 5649, section 6.
    #[test]
    fn keys_are_wrapped_as_the_rfcs_say() {
        let kek = hex("000102030405060708090a0b0c0d0e0f");
        let key = hex("00112233445566778899aabbccddeeff");
        let wrapped = KeyWrap::Plain.wrap(&kek, &key).unwrap();
        assert_eq!(wrapped, hex("1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"));
        assert_eq!(*KeyWrap::Plain.unwrap(&kek, &wrapped).unwrap(), key);
        let kek = hex("5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8");
        let key = hex("c37b7e6492584340bed12207808941155068f738");
        let wrapped = KeyWrap::Padded.wrap(&kek, &key).unwrap();
        assert_eq!(wrapped, hex("138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a"));
        assert_eq!(*KeyWrap::Padded.unwrap(&kek, &wrapped).unwrap(), key);
        let other = [&wrapped[..31], &[0]].concat();
        assert_eq!(KeyWrap::Padded.unwrap(&kek, &other), fail(CKR_WRAPPED_KEY_INVALID));
        assert_eq!(KeyWrap::Plain.wrap(&kek, &key), fail(CKR_KEY_SIZE_RANGE));
    }

    #[test]
    fn a_message_with_another_tag_or_other_data_does_not_decrypt() {
        let gcm = |data: &[u8], bits| Gcm::new(&[7; 12], data.to_vec(), bits).unwrap();
        for bits in [96, 104, 112, 120, 128] {
            let mut message = b"a message".to_vec();
            gcm(b"about", bits).run(&[1; 32], Direction::Encrypt, &mut message).unwrap();
            assert_eq!(message.len(), 9 + bits as usize / 8);
            let decrypt = |gcm: Gcm, mut message: Vec<u8>| {
                gcm.run(&[1; 32], Direction::Decrypt, &mut message).map(|()| message)
            };
            assert_eq!(decrypt(gcm(b"about", bits), message.clone()), Ok(b"a message".to_vec()));
            let other = decrypt(gcm(b"other", bits), message.clone());
            assert_eq!(other, fail(CKR_ENCRYPTED_DATA_INVALID));
            message[0] ^= 1;
            assert_eq!(decrypt(gcm(b"about", bits), message), fail(CKR_ENCRYPTED_DATA_INVALID));
        }
        assert!(Gcm::new(&[7; 13], Vec::new(), 128).is_err());
        assert!(Gcm::new(&[7; 12], Vec::new(), 64).is_err());
    }
}
