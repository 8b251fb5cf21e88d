//! Signing and verifying: messages, digests, statements, and many messages at once.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::batch::{BatchItem, ITEM_FRAME_LEN};
use crate::client::Client;
use crate::encoding::{Base64, base64_len, bytes, secret_text, time};
use crate::error::{BatchError, Error, Result, ServiceError};
use crate::operation::Operation;
use crate::request::Call;

/// A signature, and the key version that made it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Signature {
    /// The key version id. [`Client::verify`] takes it as a key.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// The signature.
    #[serde(rename = "signature", deserialize_with = "bytes")]
    pub bytes: Vec<u8>,
}

/// The verdict about a signature or a MAC. Ignoring it skips verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a signature or a MAC is only valid if the verdict says so"]
pub enum Verdict {
    /// The key made this signature, or this MAC, of this message.
    Valid,
    /// It did not.
    Invalid,
}

impl Verdict {
    /// Whether the signature or the MAC is valid.
    pub const fn is_valid(self) -> bool {
        matches!(self, Self::Valid)
    }

    const fn new(valid: bool) -> Self {
        if valid { Self::Valid } else { Self::Invalid }
    }
}

/// How a message was hashed before an Ed25519 key signs its digest.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Prehash {
    /// BLAKE3, 32 bytes. The signature is one of Ed25519 of a frame around the digest.
    Blake3,
    /// SHA-512, 64 bytes. The signature is one of Ed25519ph (RFC 8032, section 5.1).
    Ed25519ph,
}

/// A hash function by which keys of ECDSA and RSA sign.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HashFunction {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl HashFunction {
    const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    /// The length of its digests in bytes.
    const fn digest_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// How an RSA key pads a digest.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RsaPadding {
    /// RSASSA-PSS, with a salt as long as the digest.
    Pss,
    /// RSASSA-PKCS1-v1_5.
    Pkcs1v15,
}

/// How a key of ECDSA or RSA signs a message. What is not set is the key's own: the hash function
/// of the curve, SHA-256 for RSA, and PSS.
///
/// ```
/// use bulla_client::{HashFunction, RsaPadding, SignatureScheme};
///
/// // What certificates and most JSON Web Tokens have.
/// let scheme = SignatureScheme::default().hash(HashFunction::Sha256).padding(RsaPadding::Pkcs1v15);
/// assert_ne!(scheme, SignatureScheme::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SignatureScheme {
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<HashFunction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    padding: Option<RsaPadding>,
}

impl SignatureScheme {
    /// Sets the hash function.
    #[must_use]
    pub const fn hash(mut self, hash: HashFunction) -> Self {
        self.hash = Some(hash);
        self
    }

    /// Sets the padding of an RSA key. Keys of ECDSA ignore it.
    #[must_use]
    pub const fn padding(mut self, padding: RsaPadding) -> Self {
        self.padding = Some(padding);
        self
    }
}

/// The kind of content that a statement is about.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StatementKind {
    /// The bytes of a file.
    File,
    /// The list of a folder's content.
    Manifest,
    /// A message from a program.
    Message,
}

/// A statement to sign: what a signature file says (`spec/signature.md`).
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// The kind of the content.
    pub kind: StatementKind,
    /// The BLAKE3 digest of the content.
    pub digest: [u8; 32],
    /// The length of the content in bytes.
    pub size: u64,
    /// One line of text, which the signature covers; it may be empty.
    pub comment: &'a str,
    /// The name of the file, if the signature covers it, in the text form of `spec/signature.md`.
    /// Only statements about files have one.
    pub name: Option<&'a str>,
    /// How the statement is hashed before it is signed, for verifiers that need that.
    pub prehash: Option<Prehash>,
}

/// A signed statement.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SignedStatement {
    /// The key version id of the version that signed.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// The text of the signature file. For a manifest, its body follows.
    pub signature_file: String,
}

/// A signed JWT.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct SignedJwt {
    /// The key version id of the version that signed, which is also the JWT's `kid`.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// The JWT, in the compact form. It works for anyone who holds it, so `Debug` does not show it.
    #[serde(deserialize_with = "secret_text")]
    pub jwt: Zeroizing<String>,
    /// Its claim `jti`.
    pub id: String,
    /// When it expires.
    #[serde(deserialize_with = "time")]
    pub expires: SystemTime,
}

impl fmt::Debug for SignedJwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, version, jwt: _, id, expires } = self;
        let mut shown = f.debug_struct("SignedJwt");
        shown.field("key", key).field("version", version).field("id", id).field("expires", expires);
        shown.finish_non_exhaustive()
    }
}

/// One message to sign.
#[derive(Clone, Copy, Debug)]
pub struct SignItem<'a> {
    /// The key.
    pub key: &'a str,
    /// The message.
    pub message: &'a [u8],
}

/// One signature to verify.
#[derive(Clone, Copy, Debug)]
pub struct VerifyItem<'a> {
    /// The key. Give the key version id in [`Signature::key`] if you have it.
    pub key: &'a str,
    /// The message.
    pub message: &'a [u8],
    /// The signature.
    pub signature: &'a [u8],
}

#[derive(Serialize)]
struct Item<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    message: Base64<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<Base64<'a>>,
}

impl BatchItem for Item<'_> {
    fn json_len(&self) -> usize {
        let signature = self.signature.as_ref().map_or(0, |signature| base64_len(signature.0.len()));
        ITEM_FRAME_LEN + self.key.map_or(0, str::len) + base64_len(self.message.0.len()) + signature
    }
}

/// A digest of SHA-2. The service requires the name of its hash function.
/// A statement as the service takes it.
#[derive(Serialize)]
pub(crate) struct StatementBody<'a> {
    kind: StatementKind,
    digest: Base64<'a>,
    size: u64,
    comment: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prehash: Option<Prehash>,
}

impl<'a> From<&'a Statement<'_>> for StatementBody<'a> {
    fn from(statement: &'a Statement<'_>) -> Self {
        let &Statement { kind, ref digest, size, comment, name, prehash } = statement;
        Self { kind, digest: Base64(digest), size, comment, name, prehash }
    }
}

#[derive(Serialize)]
struct DigestOfScheme<'a> {
    prehash: HashFunction,
    digest: Base64<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    padding: Option<RsaPadding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<Base64<'a>>,
}

impl<'a> DigestOfScheme<'a> {
    fn new(digest: &'a [u8], scheme: SignatureScheme) -> Result<Self> {
        let possible = scheme.hash.as_ref().map_or(&HashFunction::ALL[..], std::slice::from_ref);
        let of_this_length = |hash: &&HashFunction| hash.digest_len() == digest.len();
        let Some(&prehash) = possible.iter().find(of_this_length) else {
            let lengths: Vec<_> = possible.iter().map(|hash| hash.digest_len().to_string()).collect();
            let wrong = format!("the digest has {} bytes, not {}", digest.len(), lengths.join(" or "));
            return Err(Error::invalid_argument(wrong));
        };
        Ok(Self { prehash, digest: Base64(digest), padding: scheme.padding, signature: None })
    }
}

/// An item with its scheme.
#[derive(Serialize)]
struct ItemOfScheme<'a> {
    #[serde(flatten)]
    item: Item<'a>,
    #[serde(flatten)]
    scheme: SignatureScheme,
}

#[derive(Serialize)]
struct Digest<'a> {
    prehash: Prehash,
    digest: Base64<'a>,
    context: Base64<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<Base64<'a>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Signed {
    Failed { error: ServiceError },
    Signed(Signature),
}

/// The verdict about a signature or a MAC.
#[derive(Deserialize)]
pub(crate) struct Verified {
    valid: bool,
    /// Only items of a batch have it.
    error: Option<ServiceError>,
}

impl Verified {
    pub(crate) fn result(self) -> Result<Verdict, ServiceError> {
        self.error.map_or(Ok(Verdict::new(self.valid)), Err)
    }
}

impl Client {
    /// Signs a message with a key's latest version.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let signature = client.sign("invoices", b"a message").await?;
    /// assert!(client.verify(&signature.key, b"a message", &signature.bytes).await?.is_valid());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign(&self, key: &str, message: &[u8]) -> Result<Signature> {
        let body = Item { key: None, message: Base64(message), signature: None };
        self.call(Call::of_key(Operation::Sign, key).body(&body)).await
    }

    /// Verifies the signature of a message. Give the key version id that [`Signature::key`] has:
    /// with a label, the latest version verifies.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: &bulla_client::Client,
    /// #     signature: bulla_client::Signature,
    /// # ) -> bulla_client::Result<()> {
    /// let verdict = client.verify(&signature.key, b"a message", &signature.bytes).await?;
    /// assert!(verdict.is_valid());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn verify(&self, key: &str, message: &[u8], signature: &[u8]) -> Result<Verdict> {
        let body = Item { key: None, message: Base64(message), signature: Some(Base64(signature)) };
        self.verdict(Call::of_key(Operation::Verify, key).body(&body)).await
    }

    /// Signs a message with a key of ECDSA or RSA and a scheme that the caller chooses.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::{RsaPadding, SignatureScheme};
    ///
    /// let scheme = SignatureScheme::default().padding(RsaPadding::Pkcs1v15);
    /// let signature = client.sign_with("certificates", b"a message", scheme).await?;
    /// assert_eq!(signature.bytes.len(), 256);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign_with(&self, key: &str, message: &[u8], scheme: SignatureScheme) -> Result<Signature> {
        let item = Item { key: None, message: Base64(message), signature: None };
        self.call(Call::of_key(Operation::Sign, key).body(&ItemOfScheme { item, scheme })).await
    }

    /// Verifies the signature of a message, which was made with this scheme.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: &bulla_client::Client,
    /// #     signature: bulla_client::Signature,
    /// # ) -> bulla_client::Result<()> {
    /// use bulla_client::{RsaPadding, SignatureScheme};
    ///
    /// let scheme = SignatureScheme::default().padding(RsaPadding::Pkcs1v15);
    /// let verdict =
    ///     client.verify_with(&signature.key, b"a message", &signature.bytes, scheme).await?;
    /// assert!(verdict.is_valid());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn verify_with(
        &self,
        key: &str,
        message: &[u8],
        signature: &[u8],
        scheme: SignatureScheme,
    ) -> Result<Verdict> {
        let item = Item { key: None, message: Base64(message), signature: Some(Base64(signature)) };
        self.verdict(Call::of_key(Operation::Verify, key).body(&ItemOfScheme { item, scheme })).await
    }

    pub(crate) async fn verdict(&self, call: Call) -> Result<Verdict> {
        Ok(Verdict::new(self.call::<Verified>(call).await?.valid))
    }

    /// Signs the digest of a message with an Ed25519 key's latest version, under a context of at
    /// most 255 bytes.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::Prehash;
    ///
    /// let digest = [0; 32]; // BLAKE3 of the message
    /// let signature = client.sign_digest("invoices", Prehash::Blake3, &digest, b"bills").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign_digest(
        &self,
        key: &str,
        prehash: Prehash,
        digest: &[u8],
        context: &[u8],
    ) -> Result<Signature> {
        let body = Digest { prehash, digest: Base64(digest), context: Base64(context), signature: None };
        self.call(Call::of_key(Operation::SignDigest, key).body(&body)).await
    }

    /// Verifies the signature of a digest under a context.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: &bulla_client::Client,
    /// #     digest: [u8; 32],
    /// #     signature: bulla_client::Signature,
    /// # ) -> bulla_client::Result<()> {
    /// use bulla_client::Prehash;
    ///
    /// let (key, signature) = (&signature.key, &signature.bytes);
    /// let hash = Prehash::Blake3;
    /// let verdict = client.verify_digest(key, hash, &digest, b"bills", signature).await?;
    /// assert!(verdict.is_valid());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn verify_digest(
        &self,
        key: &str,
        prehash: Prehash,
        digest: &[u8],
        context: &[u8],
        signature: &[u8],
    ) -> Result<Verdict> {
        let signature = Some(Base64(signature));
        let body = Digest { prehash, digest: Base64(digest), context: Base64(context), signature };
        self.verdict(Call::of_key(Operation::VerifyDigest, key).body(&body)).await
    }

    /// Signs a digest of SHA-2 with the latest version of a key of ECDSA or RSA. The key must have
    /// been made with [`NewKey::signs_digests`](crate::NewKey::signs_digests). The signature is
    /// also one of the message: [`Client::verify_with`] verifies it.
    ///
    /// If the scheme has no hash function, the digest's length says which one it was.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the digest has another
    /// length than the hash function's digests.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: &bulla_client::Client,
    /// #     digest: [u8; 32],
    /// # ) -> bulla_client::Result<()> {
    /// use bulla_client::{NewKey, RsaPadding, SignatureScheme};
    ///
    /// let (algorithm, label) = (Some("rsa-3072".to_owned()), Some("releases".to_owned()));
    /// let new = NewKey { algorithm, label, signs_digests: true, ..NewKey::default() };
    /// client.create_key(&new).await?;
    /// let scheme = SignatureScheme::default().padding(RsaPadding::Pkcs1v15);
    /// let signature = client.sign_digest_with("releases", &digest, scheme).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign_digest_with(
        &self,
        key: &str,
        digest: &[u8],
        scheme: SignatureScheme,
    ) -> Result<Signature> {
        let body = DigestOfScheme::new(digest, scheme)?;
        self.call(Call::of_key(Operation::SignDigest, key).body(&body)).await
    }

    /// Verifies the signature of a digest of SHA-2, which was made with this scheme.
    ///
    /// # Errors
    /// Those of [`Client::sign_digest_with`].
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: &bulla_client::Client,
    /// #     digest: [u8; 32],
    /// #     signature: bulla_client::Signature,
    /// # ) -> bulla_client::Result<()> {
    /// use bulla_client::SignatureScheme;
    ///
    /// let (key, signature) = (&signature.key, &signature.bytes);
    /// let scheme = SignatureScheme::default();
    /// let verdict = client.verify_digest_with(key, &digest, signature, scheme).await?;
    /// assert!(verdict.is_valid());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn verify_digest_with(
        &self,
        key: &str,
        digest: &[u8],
        signature: &[u8],
        scheme: SignatureScheme,
    ) -> Result<Verdict> {
        let body =
            DigestOfScheme { signature: Some(Base64(signature)), ..DigestOfScheme::new(digest, scheme)? };
        self.verdict(Call::of_key(Operation::VerifyDigest, key).body(&body)).await
    }

    /// Signs a statement about a file, a folder or a message: the answer is a signature file. Only
    /// the digest travels.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::{Statement, StatementKind};
    ///
    /// let digest = [0; 32]; // BLAKE3 of the file
    /// let (kind, size) = (StatementKind::File, 1024);
    /// let name = Some("invoice.pdf");
    /// let statement = Statement { kind, digest, size, comment: "", name, prehash: None };
    /// let signed = client.sign_statement("invoices", &statement).await?;
    /// std::fs::write("invoice.pdf.bulla", signed.signature_file).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign_statement(&self, key: &str, statement: &Statement<'_>) -> Result<SignedStatement> {
        let body = StatementBody::from(statement);
        self.call(Call::of_key(Operation::SignStatement, key).body(&body)).await
    }

    /// Signs a JWT with a key that the service's settings name for that. The service sets `iss`,
    /// `iat`, `nbf`, `exp` and `jti`, and permits the audiences of its settings. Without a
    /// lifetime, the JWT lives as long as the settings permit; of a lifetime, whole seconds count.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let claims = [("sub", "job-7"), ("aud", "https://api.example.org")];
    /// let claims = claims.map(|(name, value)| (name.to_owned(), value.into())).into_iter().collect();
    /// let signed = client.sign_jwt("jobs", &claims, None).await?;
    /// println!("{}", *signed.jwt);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign_jwt(
        &self,
        key: &str,
        claims: &Map<String, Value>,
        lifetime: Option<Duration>,
    ) -> Result<SignedJwt> {
        #[derive(Serialize)]
        struct Body<'a> {
            claims: &'a Map<String, Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            lifetime_seconds: Option<u64>,
        }
        let body = Body { claims, lifetime_seconds: lifetime.map(|lifetime| lifetime.as_secs()) };
        self.call(Call::of_key(Operation::SignJwt, key).body(&body)).await
    }

    /// Signs many messages: a signature or an error for each, in their order. An item's error does
    /// not affect the others.
    ///
    /// A long batch is several requests, one after another. If one of them fails, the error has the
    /// results of those before it.
    ///
    /// # Errors
    /// [`BatchError`], which `?` turns into [`Error`](crate::Error) where that is enough.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::SignItem;
    ///
    /// let items = [b"one", b"two"].map(|message| SignItem { key: "invoices", message });
    /// for signature in client.sign_many(&items).await? {
    ///     println!("{:?}", signature.map(|signature| signature.bytes));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign_many(
        &self,
        items: &[SignItem<'_>],
    ) -> Result<Vec<Result<Signature, ServiceError>>, BatchError<Signature>> {
        let each: Vec<_> = items
            .iter()
            .map(|item| Item { key: Some(item.key), message: Base64(item.message), signature: None })
            .collect();
        let result = |one| match one {
            Signed::Signed(signature) => Ok(Ok(signature)),
            Signed::Failed { error } => Ok(Err(error)),
        };
        self.call_many(|| Call::new(Operation::SignMany), &each, result).await
    }

    /// Verifies many signatures. Each gets a verdict or an error, in their order. No verdict
    /// depends on another item.
    ///
    /// A long batch is several requests, as for [`Client::sign_many`].
    ///
    /// # Errors
    /// [`BatchError`], with the verdicts of the requests before the one that failed.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: &bulla_client::Client,
    /// #     signature: bulla_client::Signature,
    /// # ) -> bulla_client::Result<()> {
    /// use bulla_client::VerifyItem;
    ///
    /// let (key, signature) = (signature.key.as_str(), signature.bytes.as_slice());
    /// let items = [VerifyItem { key, message: b"a message", signature }];
    /// let verdicts = client.verify_many(&items).await?;
    /// for verdict in verdicts {
    ///     assert!(verdict.is_ok_and(|verdict| verdict.is_valid()));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn verify_many(
        &self,
        items: &[VerifyItem<'_>],
    ) -> Result<Vec<Result<Verdict, ServiceError>>, BatchError<Verdict>> {
        let each: Vec<_> = items
            .iter()
            .map(|item| Item {
                key: Some(item.key),
                message: Base64(item.message),
                signature: Some(Base64(item.signature)),
            })
            .collect();
        self.call_many(|| Call::new(Operation::VerifyMany), &each, |one: Verified| Ok(one.result())).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_of_a_length_is_no_less_than_the_length() {
        for length in [0, 1, 2, 3, 100] {
            let message = vec![7; length];
            let item = Item { key: Some("k"), message: Base64(&message), signature: Some(Base64(&message)) };
            assert!(serde_json::to_string(&item).unwrap().len() < item.json_len());
        }
    }
}
