//! Keys as PKCS#8 and SPKI, and by serde: the formats of `ed25519-dalek`.

#[cfg(feature = "pkcs8")]
mod pkcs8_keys {
    use crate::signing_key::SigningKey;
    use crate::verifying_key::VerifyingKey;
    use ed25519::Signature;
    use ed25519::pkcs8::spki::{self, AlgorithmIdentifier, AssociatedAlgorithmIdentifier, der::AnyRef};
    use ed25519::pkcs8::{self, KeypairBytes, PublicKeyBytes};

    impl From<&SigningKey> for KeypairBytes {
        fn from(key: &SigningKey) -> Self {
            Self { secret_key: key.to_bytes(), public_key: Some(key.as_ref().into()) }
        }
    }

    impl From<SigningKey> for KeypairBytes {
        fn from(key: SigningKey) -> Self {
            (&key).into()
        }
    }

    impl TryFrom<&KeypairBytes> for SigningKey {
        type Error = pkcs8::Error;

        /// A public key, if there is one, must be that of the secret key.
        fn try_from(bytes: &KeypairBytes) -> pkcs8::Result<Self> {
            let key = Self::from_bytes(&bytes.secret_key);
            match &bytes.public_key {
                Some(public) if VerifyingKey::try_from(public).ok() != Some(key.verifying_key()) => {
                    Err(pkcs8::Error::KeyMalformed(pkcs8::KeyError::Invalid))
                }
                _ => Ok(key),
            }
        }
    }

    impl TryFrom<KeypairBytes> for SigningKey {
        type Error = pkcs8::Error;

        fn try_from(bytes: KeypairBytes) -> pkcs8::Result<Self> {
            (&bytes).try_into()
        }
    }

    impl TryFrom<pkcs8::PrivateKeyInfoRef<'_>> for SigningKey {
        type Error = pkcs8::Error;

        fn try_from(info: pkcs8::PrivateKeyInfoRef<'_>) -> pkcs8::Result<Self> {
            KeypairBytes::try_from(info)?.try_into()
        }
    }

    impl From<&VerifyingKey> for PublicKeyBytes {
        fn from(key: &VerifyingKey) -> Self {
            Self(key.to_bytes())
        }
    }

    impl From<VerifyingKey> for PublicKeyBytes {
        fn from(key: VerifyingKey) -> Self {
            (&key).into()
        }
    }

    impl TryFrom<&PublicKeyBytes> for VerifyingKey {
        type Error = spki::Error;

        fn try_from(bytes: &PublicKeyBytes) -> spki::Result<Self> {
            Self::from_bytes(bytes.as_ref()).map_err(|_| spki::Error::KeyMalformed)
        }
    }

    impl TryFrom<PublicKeyBytes> for VerifyingKey {
        type Error = spki::Error;

        fn try_from(bytes: PublicKeyBytes) -> spki::Result<Self> {
            (&bytes).try_into()
        }
    }

    impl TryFrom<spki::SubjectPublicKeyInfoRef<'_>> for VerifyingKey {
        type Error = spki::Error;

        fn try_from(info: spki::SubjectPublicKeyInfoRef<'_>) -> spki::Result<Self> {
            PublicKeyBytes::try_from(info)?.try_into()
        }
    }

    impl spki::SignatureAlgorithmIdentifier for SigningKey {
        type Params = AnyRef<'static>;

        const SIGNATURE_ALGORITHM_IDENTIFIER: AlgorithmIdentifier<Self::Params> =
            Signature::ALGORITHM_IDENTIFIER;
    }

    impl spki::SignatureAlgorithmIdentifier for VerifyingKey {
        type Params = AnyRef<'static>;

        const SIGNATURE_ALGORITHM_IDENTIFIER: AlgorithmIdentifier<Self::Params> =
            Signature::ALGORITHM_IDENTIFIER;
    }

    #[cfg(feature = "alloc")]
    impl pkcs8::EncodePrivateKey for SigningKey {
        fn to_pkcs8_der(&self) -> pkcs8::Result<pkcs8::SecretDocument> {
            KeypairBytes::from(self).to_pkcs8_der()
        }
    }

    #[cfg(feature = "alloc")]
    impl pkcs8::EncodePublicKey for VerifyingKey {
        fn to_public_key_der(&self) -> spki::Result<pkcs8::Document> {
            PublicKeyBytes::from(self).to_public_key_der()
        }
    }
}

#[cfg(feature = "serde")]
mod serde_keys {
    use crate::signing_key::SigningKey;
    use crate::verifying_key::VerifyingKey;
    use core::fmt;
    use core::marker::PhantomData;
    use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
    use serde::{Serialize, Serializer};
    use zeroize::Zeroizing;

    /// The length of a key in bytes, public or secret.
    const KEY_LEN: usize = 32;

    /// A key that serde reads and writes as bytes.
    trait SerdeKey: for<'a> TryFrom<&'a [u8], Error: fmt::Display> {
        /// What is expected, for messages.
        const EXPECTED: &str;
    }

    impl SerdeKey for SigningKey {
        const EXPECTED: &str = "an Ed25519 secret key of 32 bytes";
    }

    impl SerdeKey for VerifyingKey {
        const EXPECTED: &str = "an Ed25519 public key of 32 bytes";
    }

    struct KeyVisitor<K>(PhantomData<K>);

    impl<'d, K: SerdeKey> Visitor<'d> for KeyVisitor<K> {
        type Value = K;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(K::EXPECTED)
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<K, E> {
            K::try_from(bytes).map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'d>>(self, mut seq: A) -> Result<K, A::Error> {
            let mut bytes = Zeroizing::new([0; KEY_LEN]);
            for (len, byte) in bytes.iter_mut().enumerate() {
                *byte = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(len, &self))?;
            }
            let mut len = KEY_LEN;
            while seq.next_element::<u8>()?.is_some() {
                len += 1;
            }
            if len > KEY_LEN {
                return Err(A::Error::invalid_length(len, &self));
            }
            K::try_from(bytes.as_slice()).map_err(A::Error::custom)
        }
    }

    impl Serialize for SigningKey {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(self.as_bytes())
        }
    }

    impl<'d> Deserialize<'d> for SigningKey {
        fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_bytes(KeyVisitor(PhantomData))
        }
    }

    impl Serialize for VerifyingKey {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(self.as_bytes())
        }
    }

    impl<'d> Deserialize<'d> for VerifyingKey {
        fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_bytes(KeyVisitor(PhantomData))
        }
    }
}
