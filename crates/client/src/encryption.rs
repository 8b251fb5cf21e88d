//! Encryption to the public keys of the service's key pairs, and to recipients elsewhere.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::encoding::{Base64, base64_len, bytes, secret_bytes};
use crate::error::Result;
use crate::operation::Operation;
use crate::request::{Call, MAX_JSON_FRAME_LEN};

/// A shared key, and the ciphertext that carries it.
#[non_exhaustive]
#[derive(Clone, Deserialize)]
pub struct EncapsulatedKey {
    /// The key version id of the version that decapsulates the ciphertext.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// The ciphertext.
    #[serde(deserialize_with = "bytes")]
    pub ciphertext: Vec<u8>,
    /// The shared key, 32 bytes.
    #[serde(deserialize_with = "secret_bytes")]
    pub shared_key: Zeroizing<Vec<u8>>,
}

/// Shows no shared key.
impl std::fmt::Debug for EncapsulatedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncapsulatedKey").field("key", &self.key).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Encrypt<'a> {
    data: Base64<'a>,
    keys: &'a [&'a str],
    recipients: &'a [&'a str],
}

#[derive(Deserialize)]
struct Encrypted {
    #[serde(deserialize_with = "bytes")]
    encrypted_data: Vec<u8>,
}

#[derive(Deserialize)]
struct Decrypted {
    #[serde(deserialize_with = "secret_bytes")]
    data: Zeroizing<Vec<u8>>,
}

#[derive(Deserialize)]
struct Derived {
    #[serde(deserialize_with = "secret_bytes")]
    shared_secret: Zeroizing<Vec<u8>>,
}

#[derive(Deserialize)]
struct Decapsulated {
    #[serde(deserialize_with = "secret_bytes")]
    shared_key: Zeroizing<Vec<u8>>,
}

impl Client {
    /// Makes a shared key of 32 bytes, and the ciphertext from which the service's key makes the
    /// same shared key.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let encapsulated = client.encapsulate("transport").await?;
    /// let shared = client.decapsulate(&encapsulated.key, &encapsulated.ciphertext).await?;
    /// assert_eq!(shared, encapsulated.shared_key);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn encapsulate(&self, key: &str) -> Result<EncapsulatedKey> {
        self.call(Call::of_key(Operation::Encapsulate, key)).await
    }

    /// Returns the shared key of 32 bytes that a ciphertext carries. Name the key version for which
    /// it was made, not only the key.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: &bulla_client::Client,
    /// #     encapsulated: bulla_client::EncapsulatedKey,
    /// # ) -> bulla_client::Result<()> {
    /// let shared = client.decapsulate(&encapsulated.key, &encapsulated.ciphertext).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn decapsulate(&self, key: &str, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        #[derive(Serialize)]
        struct Body<'a> {
            ciphertext: Base64<'a>,
        }
        let body = Body { ciphertext: Base64(ciphertext) };
        let answer: Decapsulated = self.call(Call::of_key(Operation::Decapsulate, key).body(&body)).await?;
        Ok(answer.shared_key)
    }

    /// Derives the secret that the service's key shares with the holder of a peer's private key, by
    /// elliptic-curve Diffie-Hellman. `peer` is the peer's public key as DER of a
    /// SubjectPublicKeyInfo, on the same curve. Name the key version whose public key the peer has,
    /// not only the key.
    ///
    /// A shared secret is no key: derive one from it, for example by HKDF or by the Concat KDF of
    /// JWE.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client, peer: &[u8]) -> bulla_client::Result<()> {
    /// let secret = client.derive_shared_secret("mail", peer).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn derive_shared_secret(&self, key: &str, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        #[derive(Serialize)]
        struct Peer<'a> {
            format: &'static str,
            data: Base64<'a>,
        }
        #[derive(Serialize)]
        struct Body<'a> {
            public_key: Peer<'a>,
        }
        let body = Body { public_key: Peer { format: "der", data: Base64(peer) } };
        let call = Call::of_key(Operation::DeriveSharedSecret, key).body(&body);
        Ok(self.call::<Derived>(call).await?.shared_secret)
    }

    /// Encrypts data to key pairs of the service and to recipients elsewhere. Each of them decrypts
    /// it, also with `bulla decrypt`. A symmetric key encrypts by [`Client::encrypt`].
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let encrypted = client.encrypt_to_recipients(b"a secret", &["transport"], &[]).await?;
    /// assert_eq!(client.decrypt_as_recipient(&encrypted).await?.as_slice(), b"a secret");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn encrypt_to_recipients(
        &self,
        data: &[u8],
        keys: &[&str],
        recipients: &[&str],
    ) -> Result<Vec<u8>> {
        let body = Encrypt { data: Base64(data), keys, recipients };
        let names: usize = keys.iter().chain(recipients).map(|text| text.len() + 3).sum();
        let length = MAX_JSON_FRAME_LEN + base64_len(data.len()) + names;
        let call = Call::new(Operation::EncryptToRecipients).secret_body(&body, length);
        Ok(self.call::<Encrypted>(call).await?.encrypted_data)
    }

    /// Decrypts data of [`Client::encrypt_to_recipients`] with any key of the service that the
    /// caller may use.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let encrypted = std::fs::read("secret.bulla").unwrap();
    /// let data = client.decrypt_as_recipient(&encrypted).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn decrypt_as_recipient(&self, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        #[derive(Serialize)]
        struct Body<'a> {
            encrypted_data: Base64<'a>,
        }
        let call = Call::new(Operation::DecryptAsRecipient).body(&Body { encrypted_data: Base64(encrypted) });
        Ok(self.call::<Decrypted>(call).await?.data)
    }
}
