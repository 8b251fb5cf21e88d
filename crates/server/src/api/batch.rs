//! The items of a batch: found keys, decoded bytes, and their results.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::Range;

use bulla_kms::token::TokenOperation;
use bulla_kms::{KeyMessage, KeySelector, KeyVersionId, Keystore, KmsError, Signature, Verdict, VerifyItem};

use crate::error::{ApiError, ApiErrorCode, ErrorBody, Result};
use crate::request::{Caller, decode_into, resolve_key, resolve_version};
use crate::service::Worker;

/// Bytes of many items, one after another.
#[derive(Default)]
pub(crate) struct DecodedBuffer(Vec<u8>);

impl DecodedBuffer {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Appends the bytes that `text` encodes, and returns their place.
    ///
    /// # Errors
    /// The text is not base64.
    pub(crate) fn decode(&mut self, text: &str, what: &str) -> Result<Range<usize>> {
        let begin = self.0.len();
        decode_into(text, what, &mut self.0)?;
        Ok(begin..self.0.len())
    }

    pub(crate) fn get(&self, range: &Range<usize>) -> &[u8] {
        &self.0[range.clone()]
    }
}

/// The keys of a batch, each found once.
pub(crate) struct BatchKeys<'a> {
    caller: &'a Caller,
    operation: TokenOperation,
    found: HashMap<(&'a str, Option<NonZeroU32>), Result<usize>>,
    /// The key of the last item: most batches have one key.
    last: Option<((&'a str, Option<NonZeroU32>), usize)>,
    keys: Vec<KeySelector>,
}

impl<'a> BatchKeys<'a> {
    pub(crate) fn new(caller: &'a Caller, operation: TokenOperation) -> Self {
        Self { caller, operation, found: HashMap::new(), last: None, keys: Vec::new() }
    }

    /// The place of a key in [`BatchKeys::into_names`]: as a whole, or the requested version.
    ///
    /// # Errors
    /// Those of [`resolve_key`].
    pub(crate) fn place(&mut self, key: &'a str, version: Option<NonZeroU32>) -> Result<usize> {
        let asked = (key, version);
        if let Some((last, place)) = self.last
            && last == asked
        {
            return Ok(place);
        }
        let Self { caller, operation, found, keys, .. } = self;
        let place = found.entry(asked).or_insert_with(|| {
            let name = resolve_key(caller, key, *operation)?;
            let name = match version {
                None => name,
                version => resolve_version(caller, name, version)?.into(),
            };
            keys.push(name);
            Ok(keys.len() - 1)
        });
        let place = place.clone()?;
        self.last = Some((asked, place));
        Ok(place)
    }

    pub(crate) fn into_names(self) -> Vec<KeySelector> {
        self.keys
    }

    /// The versions: the newest one of a key that is named as a whole.
    ///
    /// # Errors
    /// The key does not exist. Only callers with rights on all keys learn this.
    pub(crate) fn into_ids(self) -> Vec<Result<KeyVersionId>> {
        let caller = self.caller;
        self.keys.into_iter().map(|key| resolve_version(caller, key, None)).collect()
    }
}

/// Counts the items of a batch. The request itself was counted as the first.
///
/// # Errors
/// There are too many, or none.
pub(crate) fn count_items(worker: &Worker, caller: &Caller, items: usize) -> Result<()> {
    let most = worker.service.limits().max_batch_items;
    if items == 0 {
        return Err(ApiError::malformed("`items` is empty"));
    }
    if items > most {
        return Err(ApiError::new(ApiErrorCode::TooManyItems, format!("a batch has at most {most} items")));
    }
    caller.session.count(u32::try_from(items - 1).unwrap_or(u32::MAX))
}

/// The key of an item: its own, or that of the batch.
///
/// # Errors
/// There is neither.
pub(crate) fn key_of<'a>(item: Option<&'a str>, batch: Option<&'a str>) -> Result<&'a str> {
    item.or(batch).ok_or_else(|| ApiError::malformed("each item needs a `key`, or the batch has one for all"))
}

/// Signs the items that could be read, in one batch. The others keep their errors.
pub(crate) fn sign_items<E: From<ApiError>>(
    keystore: &Keystore,
    items: Vec<Result<KeyMessage<'_>, E>>,
    to_error: fn(KmsError) -> E,
) -> Vec<Result<Signature, E>> {
    let readable: Vec<_> = items.iter().filter_map(|item| item.as_ref().ok().copied()).collect();
    let mut signed = keystore.sign_batch(&readable).into_iter();
    let none = || Err(ApiError::internal("the keystore gave too few signatures").into());
    let results = items.into_iter().map(|item| {
        item?;
        signed.next().map_or_else(none, |result| result.map_err(to_error))
    });
    results.collect()
}

/// Verifies the items that could be read, in one batch. The others keep their errors.
pub(crate) fn verify_items<E>(
    keystore: &Keystore,
    items: Vec<Result<VerifyItem<'_>, E>>,
    to_error: fn(KmsError) -> E,
) -> Vec<Result<bool, E>> {
    let readable: Vec<_> = items.iter().filter_map(|item| item.as_ref().ok().copied()).collect();
    let mut verdicts = keystore.verify_batch(&readable).into_iter();
    let results = items.into_iter().map(|item| {
        let item = item?;
        match verdicts.next() {
            Some(Verdict::Unusable) | None => {
                keystore.check_usable(item.key).map_err(to_error)?;
                Ok(false)
            }
            Some(verdict) => Ok(verdict.is_valid()),
        }
    });
    results.collect()
}

/// Writes `"error":{...}`.
pub(crate) fn write_error(out: &mut Vec<u8>, error: &ErrorBody) {
    out.extend_from_slice(b"\"error\":");
    let json = serde_json::to_vec(error).unwrap_or_default();
    out.extend_from_slice(&json);
}
