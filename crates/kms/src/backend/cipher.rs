//! The ciphers of keys that encrypt: AES-GCM, ChaCha20-Poly1305 and XChaCha20-Poly1305, under one
//! key each.
//!
//! Builds that have `aws-lc-rs` use it: it encrypts 1 KiB in a fraction of the time of the crates
//! of RustCrypto. Both give the same bytes.

#[cfg(any(feature = "fast", feature = "nist"))]
pub(super) use self::aws_lc::Cipher;
#[cfg(any(feature = "fast", feature = "nist"))]
pub(crate) use self::aws_lc::open_xchacha20_poly1305;
#[cfg(not(any(feature = "fast", feature = "nist")))]
pub(super) use self::rustcrypto::Cipher;
#[cfg(not(any(feature = "fast", feature = "nist")))]
pub(crate) use self::rustcrypto::open_xchacha20_poly1305;

/// By `aws-lc-rs`, which wipes the memory of its keys.
#[cfg(any(feature = "fast", feature = "nist"))]
mod aws_lc {
    use aws_lc_rs::aead::{
        AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
    };
    use chacha20::{R20, hchacha};
    use zeroize::Zeroizing;

    use super::super::interface::{DecryptRequest, EncryptRequest};
    use crate::algorithm::{Algorithm, TAG_LEN};

    /// A cipher under one key.
    pub(in super::super) enum Cipher {
        OfShortNonces(LessSafeKey),
        /// Each nonce has its own key of ChaCha20-Poly1305.
        XChaCha20Poly1305(Box<Zeroizing<[u8; 32]>>),
    }

    impl Cipher {
        /// The cipher, if the key has the length for the algorithm.
        pub(in super::super) fn new(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
            let algorithm = match algorithm {
                Algorithm::Aes128Gcm => &AES_128_GCM,
                Algorithm::Aes256Gcm => &AES_256_GCM,
                Algorithm::ChaCha20Poly1305 => &CHACHA20_POLY1305,
                Algorithm::XChaCha20Poly1305 => {
                    let mut boxed = Box::new(Zeroizing::new([0; 32]));
                    (key.len() == boxed.len()).then(|| boxed.copy_from_slice(key))?;
                    return Some(Self::XChaCha20Poly1305(boxed));
                }
                _ => return None,
            };
            let key = UnboundKey::new(algorithm, key).ok()?;
            Some(Self::OfShortNonces(LessSafeKey::new(key)))
        }

        /// Appends the ciphertext and its tag to `output`. None if the nonce has another length, or
        /// the text is too long; then `output` is as it was.
        pub(in super::super) fn encrypt(
            &self,
            nonce: &[u8],
            request: &EncryptRequest<'_>,
            output: &mut Vec<u8>,
        ) -> Option<()> {
            let start = output.len();
            output.extend_from_slice(request.plaintext);
            let (data, text) = (Aad::from(request.associated_data), &mut output[start..]);
            let tag = match self {
                Self::OfShortNonces(key) => Nonce::try_assume_unique_for_key(nonce)
                    .and_then(|nonce| key.seal_in_place_separate_tag(nonce, data, text))
                    .ok(),
                Self::XChaCha20Poly1305(key) => nonce.try_into().ok().and_then(|nonce| {
                    let (key, nonce) = of_nonce(key, nonce)?;
                    key.seal_in_place_separate_tag(nonce, data, text).ok()
                }),
            };
            match &tag {
                Some(tag) => output.extend_from_slice(tag.as_ref()),
                // Never the plaintext.
                None => output.truncate(start),
            }
            tag.map(drop)
        }

        pub(in super::super) fn decrypt(&self, request: &DecryptRequest<'_>) -> Option<Zeroizing<Vec<u8>>> {
            let (data, ciphertext) = (request.associated_data, request.ciphertext);
            match self {
                Self::OfShortNonces(key) => {
                    let nonce = Nonce::try_assume_unique_for_key(request.nonce).ok()?;
                    open(key, nonce, data, ciphertext)
                }
                Self::XChaCha20Poly1305(key) => {
                    open_xchacha20_poly1305(key, request.nonce.try_into().ok()?, data, ciphertext)
                }
            }
        }
    }

    /// Decrypts a ciphertext with its tag. It returns the whole plaintext or nothing.
    pub(crate) fn open_xchacha20_poly1305(
        key: &[u8; 32],
        nonce: &[u8; 24],
        data: &[u8],
        ciphertext: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let (key, nonce) = of_nonce(key, nonce)?;
        open(&key, nonce, data, ciphertext)
    }

    fn open(key: &LessSafeKey, nonce: Nonce, data: &[u8], ciphertext: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (text, tag) = ciphertext.split_last_chunk::<TAG_LEN>()?;
        let mut plaintext = Zeroizing::new(vec![0; text.len()]);
        key.open_separate_gather(nonce, Aad::from(data), text, tag, &mut plaintext).ok()?;
        Some(plaintext)
    }

    /// The key and the nonce of ChaCha20-Poly1305 for one nonce of XChaCha20-Poly1305
    /// (draft-irtf-cfrg-xchacha-03, section 2.3): HChaCha20 of the key and the nonce's first 16
    /// bytes, and the other 8 bytes after four zeros.
    fn of_nonce(key: &[u8; 32], nonce: &[u8; 24]) -> Option<(LessSafeKey, Nonce)> {
        let (input, end) = nonce.split_first_chunk::<16>()?;
        let key: Zeroizing<[u8; 32]> = Zeroizing::new(hchacha::<R20>(key.into(), input.into()).into());
        let mut nonce = [0; NONCE_LEN];
        nonce[4..].copy_from_slice(end);
        let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &*key).ok()?);
        Some((key, Nonce::assume_unique_for_key(nonce)))
    }
}

/// By the crates of RustCrypto.
#[cfg(any(test, not(any(feature = "fast", feature = "nist"))))]
mod rustcrypto {
    use aes_gcm::{Aes128Gcm, Aes256Gcm};
    use chacha20poly1305::aead::{AeadInOut, KeyInit, Nonce, Tag};
    use chacha20poly1305::{ChaCha20Poly1305, XChaCha20Poly1305};
    use zeroize::Zeroizing;

    use super::super::interface::{DecryptRequest, EncryptRequest};
    use crate::algorithm::{Algorithm, TAG_LEN};

    /// A cipher under one key. Its round keys are boxed: they are large, and moving them would
    /// leave copies. The crates wipe them on drop.
    pub(in super::super) enum Cipher {
        Aes128Gcm(Box<Aes128Gcm>),
        Aes256Gcm(Box<Aes256Gcm>),
        ChaCha20Poly1305(Box<ChaCha20Poly1305>),
        XChaCha20Poly1305(Box<XChaCha20Poly1305>),
    }

    impl Cipher {
        /// The cipher, if the key has the length for the algorithm.
        pub(in super::super) fn new(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
            fn boxed<C: KeyInit>(key: &[u8]) -> Option<Box<C>> {
                C::new_from_slice(key).ok().map(Box::new)
            }
            match algorithm {
                Algorithm::Aes128Gcm => boxed(key).map(Self::Aes128Gcm),
                Algorithm::Aes256Gcm => boxed(key).map(Self::Aes256Gcm),
                Algorithm::ChaCha20Poly1305 => boxed(key).map(Self::ChaCha20Poly1305),
                Algorithm::XChaCha20Poly1305 => boxed(key).map(Self::XChaCha20Poly1305),
                _ => None,
            }
        }

        /// Appends the ciphertext and its tag to `output`. None if the nonce has another length, or
        /// the text is too long; then `output` is as it was.
        pub(in super::super) fn encrypt(
            &self,
            nonce: &[u8],
            request: &EncryptRequest<'_>,
            output: &mut Vec<u8>,
        ) -> Option<()> {
            let start = output.len();
            output.extend_from_slice(request.plaintext);
            let (data, text) = (request.associated_data, &mut output[start..]);
            let tag = match self {
                Self::Aes128Gcm(cipher) => tag_of(&**cipher, nonce, data, text),
                Self::Aes256Gcm(cipher) => tag_of(&**cipher, nonce, data, text),
                Self::ChaCha20Poly1305(cipher) => tag_of(&**cipher, nonce, data, text),
                Self::XChaCha20Poly1305(cipher) => tag_of(&**cipher, nonce, data, text),
            };
            match tag {
                Some(tag) => output.extend_from_slice(&tag),
                // Never the plaintext.
                None => output.truncate(start),
            }
            tag.map(drop)
        }

        pub(in super::super) fn decrypt(&self, request: &DecryptRequest<'_>) -> Option<Zeroizing<Vec<u8>>> {
            let (nonce, data, text) = (request.nonce, request.associated_data, request.ciphertext);
            match self {
                Self::Aes128Gcm(cipher) => decrypt_with(&**cipher, nonce, data, text),
                Self::Aes256Gcm(cipher) => decrypt_with(&**cipher, nonce, data, text),
                Self::ChaCha20Poly1305(cipher) => decrypt_with(&**cipher, nonce, data, text),
                Self::XChaCha20Poly1305(cipher) => decrypt_with(&**cipher, nonce, data, text),
            }
        }
    }

    /// Decrypts a ciphertext with its tag. It returns the whole plaintext or nothing.
    pub(crate) fn open_xchacha20_poly1305(
        key: &[u8; 32],
        nonce: &[u8; 24],
        data: &[u8],
        ciphertext: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        decrypt_with(&XChaCha20Poly1305::new(key.into()), nonce, data, ciphertext)
    }

    /// Encrypts in place.
    fn tag_of<C: AeadInOut>(cipher: &C, nonce: &[u8], data: &[u8], text: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let nonce: &Nonce<C> = nonce.try_into().ok()?;
        let tag = cipher.encrypt_inout_detached(nonce, data, text.into()).ok()?;
        tag.as_slice().try_into().ok()
    }

    /// Decrypts a copy. The crates compare the tag in constant time, and before they decrypt.
    fn decrypt_with<C: AeadInOut>(
        cipher: &C,
        nonce: &[u8],
        data: &[u8],
        ciphertext: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let (text, tag) = ciphertext.split_last_chunk::<TAG_LEN>()?;
        let mut text = Zeroizing::new(text.to_vec());
        let (nonce, tag): (&Nonce<C>, &Tag<C>) = (nonce.try_into().ok()?, tag.as_slice().try_into().ok()?);
        cipher.decrypt_inout_detached(nonce, data, text.as_mut_slice().into(), tag).ok()?;
        Some(text)
    }
}

#[cfg(all(test, any(feature = "fast", feature = "nist")))]
mod tests {
    use super::super::interface::{DecryptRequest, EncryptRequest, EncryptionMode};
    use super::{aws_lc, rustcrypto};
    use crate::algorithm::Algorithm;

    /// The algorithms with the lengths of their keys.
    const ALGORITHMS: [(Algorithm, usize); 4] = [
        (Algorithm::Aes128Gcm, 16),
        (Algorithm::Aes256Gcm, 32),
        (Algorithm::ChaCha20Poly1305, 32),
        (Algorithm::XChaCha20Poly1305, 32),
    ];

    fn bytes(seed: usize, length: usize) -> Vec<u8> {
        (0..length).map(|place| (seed * 31 + place * 7 + place / 256) as u8).collect()
    }

    /// What one cipher encrypts, the other one decrypts, and neither decrypts anything else.
    #[test]
    fn both_libraries_give_the_same_bytes() {
        for (algorithm, key_length) in ALGORITHMS {
            let key = bytes(1, key_length);
            let ours = aws_lc::Cipher::new(algorithm, &key).unwrap();
            let theirs = rustcrypto::Cipher::new(algorithm, &key).unwrap();
            for length in (0..70).chain([127, 128, 129, 255, 256, 257, 511, 1023, 1024, 1025, 16_384, 65_537])
            {
                let (nonce, data) = (bytes(length, algorithm.nonce_length()), bytes(2, length % 37));
                let plaintext = bytes(length + 3, length);
                let request = EncryptRequest::new(EncryptionMode::Direct, &data, &plaintext);
                let [mut a, mut b] = [b"before".to_vec(), b"before".to_vec()];
                ours.encrypt(&nonce, &request, &mut a).unwrap();
                theirs.encrypt(&nonce, &request, &mut b).unwrap();
                assert!(a == b, "{algorithm}: {length}");
                let mut text = a["before".len()..].to_vec();
                let both = |nonce: &[u8], data: &[u8], text: &[u8]| {
                    let request = || DecryptRequest::new(EncryptionMode::Direct, data, nonce, text);
                    let found = ours.decrypt(&request());
                    assert_eq!(found, theirs.decrypt(&request()), "{algorithm}: {length}");
                    found.map(|text| text.to_vec())
                };
                assert_eq!(both(&nonce, &data, &text), Some(plaintext));
                assert_eq!(both(&nonce, &[&data[..], &[0]].concat(), &text), None);
                assert_eq!(both(&nonce[1..], &data, &text), None);
                for cut in [text.len() - 1, 16, 15, 1, 0] {
                    if cut < text.len() {
                        assert_eq!(both(&nonce, &data, &text[..cut]), None);
                    }
                }
                for place in [0, length / 2, length, text.len() - 1] {
                    text[place] ^= 1;
                    assert_eq!(both(&nonce, &data, &text), None);
                    text[place] ^= 1;
                }
            }
        }
    }

    #[test]
    fn keys_and_nonces_of_another_length_are_refused_and_leave_the_output() {
        for (algorithm, key_length) in ALGORITHMS {
            for length in [0, 15, 16, 17, 31, 32, 33] {
                let key = bytes(1, length);
                let made = aws_lc::Cipher::new(algorithm, &key);
                assert_eq!(made.is_some(), length == key_length, "{algorithm}: {length}");
                assert_eq!(rustcrypto::Cipher::new(algorithm, &key).is_some(), made.is_some());
            }
            let cipher = aws_lc::Cipher::new(algorithm, &bytes(1, key_length)).unwrap();
            for length in (0..30).filter(|length| *length != algorithm.nonce_length()) {
                let mut output = b"before".to_vec();
                let request = EncryptRequest::new(EncryptionMode::Direct, b"", b"plaintext");
                assert_eq!(cipher.encrypt(&bytes(4, length), &request, &mut output), None);
                assert_eq!(output, b"before");
            }
        }
        for algorithm in [Algorithm::Ed25519, Algorithm::HmacSha256] {
            assert!(aws_lc::Cipher::new(algorithm, &[0; 32]).is_none());
        }
    }

    #[test]
    fn envelopes_open_by_both() {
        let (key, nonce, data) = ([7; 32], [9; 24], b"header");
        let cipher = rustcrypto::Cipher::new(Algorithm::XChaCha20Poly1305, &key).unwrap();
        let mut text = Vec::new();
        let request = EncryptRequest::new(EncryptionMode::Direct, data, b"content");
        cipher.encrypt(&nonce, &request, &mut text).unwrap();
        for open in [aws_lc::open_xchacha20_poly1305, rustcrypto::open_xchacha20_poly1305] {
            assert_eq!(open(&key, &nonce, data, &text).as_deref().map(Vec::as_slice), Some(&b"content"[..]));
            assert_eq!(open(&key, &nonce, b"heades", &text), None);
            assert_eq!(open(&key, &nonce, data, &text[1..]), None);
            assert_eq!(open(&[8; 32], &nonce, data, &text), None);
        }
    }
}
