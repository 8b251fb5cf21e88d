//! Keys that encrypt and keys that make message authentication codes (MACs); random bytes.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::batch::{BatchItem, ITEM_FRAME_LEN};
use crate::client::Client;
use crate::encoding::{Base64, base64_len, bytes, optional_bytes, optional_secret_bytes, secret_bytes};
use crate::error::{BatchError, Error, Result, ServiceError};
use crate::operation::Operation;
use crate::request::{Call, MAX_JSON_FRAME_LEN};
use crate::signing::{Verdict, Verified};

/// The options of an encryption. Decryption needs the same ones.
///
/// ```
/// use bulla_client::EncryptionOptions;
///
/// let order = EncryptionOptions { associated_data: b"order 7", ..Default::default() };
/// assert!(order.context.is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncryptionOptions<'a> {
    /// Data that must be the same when the ciphertext is decrypted, for example the id of the row
    /// that it is in. It is not secret, and not part of the ciphertext.
    pub associated_data: &'a [u8],
    /// The context from which the key is derived, for a key that was made for that
    /// ([`NewKey::derivation`](crate::NewKey::derivation)); otherwise it must be empty.
    pub context: &'a [u8],
}

/// A ciphertext, and the key version that made it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Ciphertext {
    /// The key version id.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// The ciphertext, as `spec/ciphertext.md` describes it.
    #[serde(rename = "ciphertext", deserialize_with = "bytes")]
    pub bytes: Vec<u8>,
}

/// A decrypted plaintext, and the key version that decrypted it.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Plaintext {
    /// The key version id.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// The plaintext. It is wiped from memory when it is dropped.
    #[serde(rename = "plaintext", deserialize_with = "secret_bytes")]
    pub bytes: Zeroizing<Vec<u8>>,
}

/// Shows no plaintext.
impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plaintext").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A key that encrypts data outside the service, and the same key encrypted.
#[non_exhaustive]
#[derive(Clone)]
pub struct DataKey {
    /// The data key, encrypted: keep it beside the data. [`Client::decrypt`] decrypts it.
    pub wrapped: Ciphertext,
    /// The data key. It is wiped from memory when it is dropped.
    pub plaintext: Zeroizing<Vec<u8>>,
}

/// Shows no data key.
impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataKey").field("wrapped", &self.wrapped).finish_non_exhaustive()
    }
}

/// The length of a data key.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataKeyLength {
    /// 128 bits, for example for AES-128-GCM.
    Bits128,
    /// 256 bits, for example for AES-256-GCM or XChaCha20-Poly1305.
    #[default]
    Bits256,
    /// 512 bits, for example for HMAC-SHA-512 or two keys.
    Bits512,
}

impl DataKeyLength {
    const fn bits(self) -> u32 {
        match self {
            Self::Bits128 => 128,
            Self::Bits256 => 256,
            Self::Bits512 => 512,
        }
    }
}

/// A message authentication code, and the key version that made it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Mac {
    /// The key version id. [`Client::verify_mac`] takes it as a key.
    pub key: String,
    /// The number of that version.
    pub version: u32,
    /// The MAC.
    #[serde(rename = "mac", deserialize_with = "bytes")]
    pub bytes: Vec<u8>,
}

/// One plaintext to encrypt.
#[derive(Clone, Copy)]
pub struct EncryptItem<'a> {
    /// The plaintext.
    pub plaintext: &'a [u8],
    /// The associated data and the context.
    pub options: EncryptionOptions<'a>,
}

/// Shows no plaintext.
impl fmt::Debug for EncryptItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptItem").field("options", &self.options).finish_non_exhaustive()
    }
}

/// One ciphertext to decrypt, or to encrypt again.
#[derive(Clone, Copy, Debug)]
pub struct DecryptItem<'a> {
    /// The ciphertext. It names the key's version.
    pub ciphertext: &'a [u8],
    /// The associated data and the context with which it was encrypted.
    pub options: EncryptionOptions<'a>,
}

/// One MAC to verify.
#[derive(Clone, Copy, Debug)]
pub struct VerifyMacItem<'a> {
    /// The message.
    pub message: &'a [u8],
    /// The MAC.
    pub mac: &'a [u8],
    /// The number of the version that made it, as [`Mac::version`] has it; the latest if there is
    /// none.
    pub version: Option<u32>,
}

/// A request, or one item of a batch.
#[derive(Default, Serialize)]
struct Item<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    plaintext: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ciphertext: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    associated_data: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
}

impl<'a> Item<'a> {
    fn with_options(options: &EncryptionOptions<'a>) -> Self {
        let optional = |bytes: &'a [u8]| (!bytes.is_empty()).then_some(Base64(bytes));
        let EncryptionOptions { associated_data, context } = options;
        Self { associated_data: optional(associated_data), context: optional(context), ..Self::default() }
    }

    fn of_plaintext(plaintext: &'a [u8], options: &EncryptionOptions<'a>) -> Self {
        Self { plaintext: Some(Base64(plaintext)), ..Self::with_options(options) }
    }

    fn of_ciphertext(ciphertext: &'a [u8], options: &EncryptionOptions<'a>) -> Self {
        Self { ciphertext: Some(Base64(ciphertext)), ..Self::with_options(options) }
    }

    fn of_message(message: &'a [u8], mac: Option<&'a [u8]>) -> Self {
        Self { message: Some(Base64(message)), mac: mac.map(Base64), ..Self::default() }
    }
}

impl BatchItem for Item<'_> {
    fn json_len(&self) -> usize {
        let parts =
            [self.plaintext, self.ciphertext, self.message, self.mac, self.associated_data, self.context];
        let names_len = "associated_data".len() + 6;
        let part_len = |part: Base64<'_>| names_len + base64_len(part.0.len());
        ITEM_FRAME_LEN + parts.into_iter().flatten().map(part_len).sum::<usize>()
    }
}

/// One result of a batch: its values, or an error.
#[derive(Deserialize)]
struct ItemAnswer {
    key: Option<String>,
    version: Option<u32>,
    #[serde(default, deserialize_with = "optional_bytes")]
    ciphertext: Option<Vec<u8>>,
    #[serde(default, deserialize_with = "optional_secret_bytes")]
    plaintext: Option<Zeroizing<Vec<u8>>>,
    #[serde(default, deserialize_with = "optional_bytes")]
    mac: Option<Vec<u8>>,
    error: Option<ServiceError>,
}

impl ItemAnswer {
    /// The result, whose value `read` makes of the key version and the rest.
    fn result<T>(
        mut self,
        read: impl FnOnce(String, u32, Self) -> Option<T>,
    ) -> Result<Result<T, ServiceError>> {
        if let Some(error) = self.error {
            return Ok(Err(error));
        }
        let made = self.key.take().zip(self.version);
        made.and_then(|(key, version)| read(key, version, self))
            .map(Ok)
            .ok_or_else(|| Error::invalid_response("a result has neither a value nor an error"))
    }

    fn ciphertext(self) -> Result<Result<Ciphertext, ServiceError>> {
        self.result(|key, version, rest| Some(Ciphertext { key, version, bytes: rest.ciphertext? }))
    }

    fn plaintext(self) -> Result<Result<Plaintext, ServiceError>> {
        self.result(|key, version, rest| Some(Plaintext { key, version, bytes: rest.plaintext? }))
    }

    fn mac(self) -> Result<Result<Mac, ServiceError>> {
        self.result(|key, version, rest| Some(Mac { key, version, bytes: rest.mac? }))
    }
}

impl Client {
    /// A call with one item, which may have a secret in it.
    fn item_call(operation: Operation, key: &str, item: &Item<'_>) -> Call {
        Call::of_key(operation, key).secret_body(item, MAX_JSON_FRAME_LEN + item.json_len())
    }

    /// Encrypts a plaintext with a key's latest version. [`MAX_PLAINTEXT_LEN`] is the longest one
    /// that a service takes; encrypt more with a data key.
    ///
    /// [`MAX_PLAINTEXT_LEN`]: https://docs.rs/bulla-kms/latest/bulla_kms/constant.MAX_PLAINTEXT_LEN.html
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::EncryptionOptions;
    ///
    /// let order = EncryptionOptions { associated_data: b"order 7", ..Default::default() };
    /// let ciphertext = client.encrypt("orders", b"4 crates", &order).await?;
    /// let plaintext = client.decrypt("orders", &ciphertext.bytes, &order).await?;
    /// assert_eq!(plaintext.bytes.as_slice(), b"4 crates");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn encrypt(
        &self,
        key: &str,
        plaintext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Ciphertext> {
        self.call(Self::item_call(Operation::Encrypt, key, &Item::of_plaintext(plaintext, options))).await
    }

    /// Decrypts a ciphertext of any version of a key.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidCiphertext`](crate::ErrorCode::InvalidCiphertext) does not say whether
    /// the ciphertext was changed, or belongs to another key, version, context or associated data.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client, ciphertext: &[u8]) {
    /// use bulla_client::{EncryptionOptions, ErrorCode};
    ///
    /// match client.decrypt("orders", ciphertext, &EncryptionOptions::default()).await {
    ///     Ok(plaintext) => println!("{} bytes", plaintext.bytes.len()),
    ///     Err(error) if error.code() == Some(&ErrorCode::InvalidCiphertext) => println!("altered"),
    ///     Err(error) => println!("{error:#}"),
    /// }
    /// # }
    /// ```
    pub async fn decrypt(
        &self,
        key: &str,
        ciphertext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Plaintext> {
        self.call(Self::item_call(Operation::Decrypt, key, &Item::of_ciphertext(ciphertext, options))).await
    }

    /// Encrypts a ciphertext again with the key's latest version. The plaintext does not leave the
    /// service.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client, old: &[u8]) -> bulla_client::Result<()> {
    /// client.rotate_key("orders").await?;
    /// let new = client.rewrap("orders", old, &Default::default()).await?;
    /// assert!(new.version > 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rewrap(
        &self,
        key: &str,
        ciphertext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Ciphertext> {
        self.call(Self::item_call(Operation::Rewrap, key, &Item::of_ciphertext(ciphertext, options))).await
    }

    /// Makes a random key for data, and encrypts it with a key's latest version.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::{DataKeyLength, EncryptionOptions};
    ///
    /// let (length, none) = (DataKeyLength::Bits256, EncryptionOptions::default());
    /// let data_key = client.generate_data_key("orders", length, &none).await?;
    /// // Encrypt with the plaintext, and keep what is wrapped beside the data.
    /// let again = client.decrypt("orders", &data_key.wrapped.bytes, &none).await?;
    /// assert_eq!(again.bytes, data_key.plaintext);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn generate_data_key(
        &self,
        key: &str,
        length: DataKeyLength,
        options: &EncryptionOptions<'_>,
    ) -> Result<DataKey> {
        #[derive(Deserialize)]
        struct Answer {
            key: String,
            version: u32,
            #[serde(deserialize_with = "bytes")]
            ciphertext: Vec<u8>,
            #[serde(deserialize_with = "secret_bytes")]
            plaintext: Zeroizing<Vec<u8>>,
        }
        let answer = self.call(Self::data_key_call(key, length, options, true)).await?;
        let Answer { key, version, ciphertext: bytes, plaintext } = answer;
        Ok(DataKey { wrapped: Ciphertext { key, version, bytes }, plaintext })
    }

    /// Makes a random key for data, and returns it encrypted only: for programs that encrypt later,
    /// or elsewhere.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let wrapped =
    ///     client.generate_wrapped_data_key("orders", Default::default(), &Default::default()).await?;
    /// std::fs::write("orders.key", wrapped.bytes).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub async fn generate_wrapped_data_key(
        &self,
        key: &str,
        length: DataKeyLength,
        options: &EncryptionOptions<'_>,
    ) -> Result<Ciphertext> {
        self.call(Self::data_key_call(key, length, options, false)).await
    }

    fn data_key_call(key: &str, length: DataKeyLength, options: &EncryptionOptions<'_>, shown: bool) -> Call {
        #[derive(Serialize)]
        struct Body<'a> {
            bits: u32,
            plaintext: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            associated_data: Option<Base64<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            context: Option<Base64<'a>>,
        }
        let Item { associated_data, context, .. } = Item::with_options(options);
        let body = Body { bits: length.bits(), plaintext: shown, associated_data, context };
        Call::of_key(Operation::GenerateDataKey, key).body(&body)
    }

    /// Makes the message authentication code of a message with a key's latest version.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let mac = client.mac("cookies", b"user=7").await?;
    /// assert!(client.verify_mac(&mac.key, b"user=7", &mac.bytes).await?.is_valid());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn mac(&self, key: &str, message: &[u8]) -> Result<Mac> {
        self.call(Self::item_call(Operation::Mac, key, &Item::of_message(message, None))).await
    }

    /// Verifies a message authentication code of its whole length. Give the key version id that
    /// [`Mac::key`] has: with a label, the latest version verifies.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: &bulla_client::Client,
    /// #     mac: bulla_client::Mac,
    /// # ) -> bulla_client::Result<()> {
    /// let verdict = client.verify_mac(&mac.key, b"user=7", &mac.bytes).await?;
    /// assert!(verdict.is_valid());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn verify_mac(&self, key: &str, message: &[u8], mac: &[u8]) -> Result<Verdict> {
        self.verdict(Self::item_call(Operation::VerifyMac, key, &Item::of_message(message, Some(mac)))).await
    }

    /// Encrypts many plaintexts with one key: a ciphertext or an error for each, in their order. An
    /// item's error does not affect the others.
    ///
    /// A long batch is several requests, as for [`Client::sign_many`].
    ///
    /// # Errors
    /// [`BatchError`], with the results of the requests before the one that failed.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::{DecryptItem, EncryptItem, EncryptionOptions};
    ///
    /// let options = EncryptionOptions::default();
    /// let items = [b"one", b"two"].map(|plaintext| EncryptItem { plaintext, options });
    /// let made = client.encrypt_many("orders", &items).await?;
    /// let made: Result<Vec<_>, _> = made.into_iter().collect();
    /// let made = made.expect("no item failed");
    /// let items: Vec<_> =
    ///     made.iter().map(|one| DecryptItem { ciphertext: &one.bytes, options }).collect();
    /// for plaintext in client.decrypt_many("orders", &items).await? {
    ///     println!("{} bytes", plaintext.expect("no item failed").bytes.len());
    /// }
    /// let rewrapped = client.rewrap_many("orders", &items).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn encrypt_many(
        &self,
        key: &str,
        items: &[EncryptItem<'_>],
    ) -> Result<Vec<Result<Ciphertext, ServiceError>>, BatchError<Ciphertext>> {
        let each: Vec<_> = items.iter().map(|one| Item::of_plaintext(one.plaintext, &one.options)).collect();
        self.call_many(|| Call::of_key(Operation::EncryptMany, key), &each, ItemAnswer::ciphertext).await
    }

    /// Decrypts many ciphertexts of one key: a plaintext or an error for each, in their order.
    ///
    /// # Errors
    /// [`BatchError`], as for [`Client::encrypt_many`].
    pub async fn decrypt_many(
        &self,
        key: &str,
        items: &[DecryptItem<'_>],
    ) -> Result<Vec<Result<Plaintext, ServiceError>>, BatchError<Plaintext>> {
        let each: Vec<_> =
            items.iter().map(|one| Item::of_ciphertext(one.ciphertext, &one.options)).collect();
        self.call_many(|| Call::of_key(Operation::DecryptMany, key), &each, ItemAnswer::plaintext).await
    }

    /// Encrypts many ciphertexts again with the key's latest version: a ciphertext or an error for
    /// each, in their order.
    ///
    /// # Errors
    /// [`BatchError`], as for [`Client::encrypt_many`].
    pub async fn rewrap_many(
        &self,
        key: &str,
        items: &[DecryptItem<'_>],
    ) -> Result<Vec<Result<Ciphertext, ServiceError>>, BatchError<Ciphertext>> {
        let each: Vec<_> =
            items.iter().map(|one| Item::of_ciphertext(one.ciphertext, &one.options)).collect();
        self.call_many(|| Call::of_key(Operation::RewrapMany, key), &each, ItemAnswer::ciphertext).await
    }

    /// Makes the message authentication codes of many messages with one key: a MAC or an error for
    /// each, in their order.
    ///
    /// # Errors
    /// [`BatchError`], as for [`Client::encrypt_many`].
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::VerifyMacItem;
    ///
    /// for mac in client.mac_many("cookies", &[b"user=7", b"user=8"]).await? {
    ///     let mac = mac.expect("no item failed");
    ///     println!("{} of version {}", mac.bytes.len(), mac.version);
    /// }
    /// # let mac = client.mac("cookies", b"user=7").await?;
    /// let (mac, version) = (mac.bytes.as_slice(), Some(mac.version));
    /// let items = [VerifyMacItem { message: b"user=7", mac, version }];
    /// for verdict in client.verify_mac_many("cookies", &items).await? {
    ///     assert!(verdict.is_ok_and(|verdict| verdict.is_valid()));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn mac_many(
        &self,
        key: &str,
        messages: &[&[u8]],
    ) -> Result<Vec<Result<Mac, ServiceError>>, BatchError<Mac>> {
        let each: Vec<_> = messages.iter().map(|message| Item::of_message(message, None)).collect();
        self.call_many(|| Call::of_key(Operation::MacMany, key), &each, ItemAnswer::mac).await
    }

    /// Verifies many message authentication codes of one key: a verdict or an error for each, in
    /// their order.
    ///
    /// # Errors
    /// [`BatchError`], as for [`Client::encrypt_many`].
    pub async fn verify_mac_many(
        &self,
        key: &str,
        items: &[VerifyMacItem<'_>],
    ) -> Result<Vec<Result<Verdict, ServiceError>>, BatchError<Verdict>> {
        let each: Vec<_> = items
            .iter()
            .map(|one| Item { version: one.version, ..Item::of_message(one.message, Some(one.mac)) })
            .collect();
        let call = || Call::of_key(Operation::VerifyMacMany, key);
        self.call_many(call, &each, |one: Verified| Ok(one.result())).await
    }

    /// Makes up to 65,536 random bytes, from the service's operating system.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let salt = client.random(32).await?;
    /// assert_eq!(salt.len(), 32);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn random(&self, length: usize) -> Result<Zeroizing<Vec<u8>>> {
        #[derive(Serialize)]
        struct Body {
            bytes: usize,
        }
        #[derive(Deserialize)]
        struct Answer {
            #[serde(deserialize_with = "secret_bytes")]
            random: Zeroizing<Vec<u8>>,
        }
        let call = Call::new(Operation::Random).body(&Body { bytes: length });
        Ok(self.call::<Answer>(call).await?.random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_of_a_length_is_no_less_than_the_length() {
        for length in [1, 2, 3, 100] {
            let bytes = vec![7; length];
            let part = Some(Base64(&bytes));
            let item = Item {
                plaintext: part,
                ciphertext: part,
                message: part,
                mac: part,
                associated_data: part,
                context: part,
                version: Some(u32::MAX),
            };
            assert!(serde_json::to_string(&item).unwrap().len() < item.json_len());
        }
    }

    #[test]
    fn a_result_without_a_value_and_without_an_error_is_refused() {
        let read = |text: &str| serde_json::from_str::<ItemAnswer>(text).unwrap();
        for text in ["{}", r#"{"key":"k","version":1}"#, r#"{"ciphertext":"AA==","version":1}"#] {
            assert!(read(text).ciphertext().is_err(), "{text}");
        }
        let error = r#"{"error":{"code":"busy","message":"m","retryable":true}}"#;
        assert!(read(error).mac().unwrap().is_err());
        let made = read(r#"{"key":"k","version":1,"plaintext":"AQ=="}"#).plaintext().unwrap().unwrap();
        assert_eq!((made.version, made.bytes.as_slice()), (1, &[1][..]));
    }

    #[test]
    fn no_secret_is_shown() {
        let plaintext = Zeroizing::new(b"hunter2".to_vec());
        let shown = Plaintext { key: "k".into(), version: 1, bytes: plaintext.clone() };
        let wrapped = Ciphertext { key: "k".into(), version: 1, bytes: Vec::new() };
        let data_key = DataKey { wrapped, plaintext };
        let item = EncryptItem { plaintext: b"hunter2", options: EncryptionOptions::default() };
        let shown = format!("{shown:?} {data_key:?} {item:?}");
        assert!(!shown.contains("104") && !shown.contains("hunter"), "{shown}");
    }
}
