//! The items of a batch, decoded into one buffer.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::Range;

use bulla_kms::token::TokenOperation;
use bulla_kms::{KeySelector, KeyVersionId};

use crate::error::{ApiError, ApiErrorCode, ErrorBody, Result};
use crate::request::{Caller, decode_into, exact, resolve};
use crate::service::Worker;

/// Bytes of many items, one after another.
#[derive(Default)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
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
pub(crate) struct Keys<'a> {
    caller: &'a Caller,
    operation: TokenOperation,
    found: HashMap<(&'a str, Option<NonZeroU32>), Result<usize>>,
    /// The key of the last item: most batches have one key.
    last: Option<((&'a str, Option<NonZeroU32>), usize)>,
    keys: Vec<KeySelector>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(caller: &'a Caller, operation: TokenOperation) -> Self {
        Self { caller, operation, found: HashMap::new(), last: None, keys: Vec::new() }
    }

    /// The place of a key in [`Keys::into_keys`]: as a whole, or the version that is asked for.
    ///
    /// # Errors
    /// Those of [`resolve`].
    pub(crate) fn place(&mut self, key: &'a str, version: Option<NonZeroU32>) -> Result<usize> {
        let asked = (key, version);
        if let Some((last, place)) = self.last
            && last == asked
        {
            return Ok(place);
        }
        let Self { caller, operation, found, keys, .. } = self;
        let place = found.entry(asked).or_insert_with(|| {
            let name = resolve(caller, key, *operation)?;
            let name = match version {
                None => name,
                version => exact(caller, name, version)?.into(),
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
        self.keys.into_iter().map(|key| exact(caller, key, None)).collect()
    }
}

/// Counts the items of a batch. The request itself was counted as the first.
///
/// # Errors
/// There are too many, or none.
pub(crate) fn count(worker: &Worker, caller: &Caller, items: usize) -> Result<()> {
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

/// Writes `"error":{...}`.
pub(crate) fn write_error(out: &mut Vec<u8>, error: &ErrorBody) {
    out.extend_from_slice(b"\"error\":");
    let json = serde_json::to_vec(error).unwrap_or_default();
    out.extend_from_slice(&json);
}
