//! One item or many: running each, and answering with their results.

use std::ops::Range;

use axum::http::StatusCode;
use axum::response::Response;
use bulla_kms::{KeySelector, Keystore};

use super::answer::{self, Result, VaultError};
use super::request::OptionalText;
use crate::api::batch::count_items;
use crate::error::ApiError;
use crate::request::Caller;
use crate::service::{BatchCost, Worker};

/// At least the JSON around the value of one result, with an error in place of the value.
pub(super) const JSON_FRAME_LEN: usize = 512;

/// Whether a request has one item in its own fields, or many in `batch_input`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestForm {
    Single,
    Batch,
}

impl RequestForm {
    /// Counts the items of a batch.
    ///
    /// # Errors
    /// They are too many.
    pub(super) fn count(self, worker: &Worker, caller: &Caller, items: usize) -> Result<()> {
        match self {
            Self::Single => Ok(()),
            Self::Batch => Ok(count_items(worker, caller, items)?),
        }
    }
}

/// # Errors
/// A batch has no items.
pub(super) fn check_not_empty<T>(items: &[T]) -> Result<()> {
    if items.is_empty() { Err(VaultError::invalid("missing batch input to process")) } else { Ok(()) }
}

/// The cost of items that one key computes, which `key_of` gives for each. `uses` of them count as
/// uses of the key. Items of several versions are slow: nobody knows which of them have uses left.
pub(super) fn cost_of<I>(
    caller: &Caller,
    items: &[Result<I>],
    key_of: fn(&I) -> &KeySelector,
    uses: usize,
    bytes: usize,
) -> BatchCost {
    let mut keys = items.iter().flatten().map(key_of);
    match keys.next() {
        Some(first) if keys.all(|key| key == first) => caller.cost_of_secrets(first.as_ref(), uses, bytes),
        // Without an item, nothing is computed.
        first => BatchCost::of_results(first.is_none(), bytes),
    }
}

pub(super) type Run<I, T> = fn(&I, &Keystore) -> Result<T>;

/// Runs a function for each item that could be read; the others keep their errors.
pub(super) async fn run_each<I: Send + Sync + 'static, T: Send + 'static>(
    worker: &Worker,
    caller: &Caller,
    cost: BatchCost,
    items: Vec<Result<I>>,
    run: Run<I, T>,
) -> Result<Vec<Result<T>>> {
    fn step<I, T>(
        (items, run): &(Vec<Result<I>>, Run<I, T>),
        keystore: &Keystore,
        step: Range<usize>,
    ) -> Vec<Result<T>> {
        let one = |item: &Result<I>| run(item.as_ref().map_err(VaultError::clone)?, keystore);
        items[step].iter().map(one).collect()
    }
    let count = items.len();
    let results = worker.run_batch_sliced(&caller.unsealed, &caller.session, cost, (items, run), count, step);
    Ok(results.await?)
}

/// The status of the answer to a batch of which items fail.
pub(super) enum FailureStatus {
    /// 200: an item's error is in its result alone.
    InItems,
    /// 400, or another status if not all of them fail.
    Status(Option<i64>),
}

impl FailureStatus {
    /// The status, and whether the request asked for one that is none.
    fn status(&self, failed: usize, items: usize) -> (StatusCode, bool) {
        match self {
            Self::Status(partial) if failed > 0 => match partial.filter(|_| failed < items) {
                None => (StatusCode::BAD_REQUEST, false),
                Some(status) => final_status(status).map_or((StatusCode::BAD_REQUEST, true), |s| (s, false)),
            },
            _ => (StatusCode::OK, false),
        }
    }
}

/// A status that ends an exchange, and whose answer has a body.
fn final_status(status: i64) -> Option<StatusCode> {
    let status = u16::try_from(status).ok().filter(|status| (200..600).contains(status))?;
    StatusCode::from_u16(status).ok().filter(|status| answer::has_body(*status))
}

/// The items of a request, decoded, and how their results are answered.
pub(super) struct Batch<'a, I> {
    /// The items, or the reason why each could not be read.
    pub(super) read: Vec<Result<I>>,
    /// What each result repeats.
    pub(super) references: Vec<&'a OptionalText<'a>>,
    /// At least the length of all values in the results.
    pub(super) length: usize,
    pub(super) cost: BatchCost,
    pub(super) form: RequestForm,
    pub(super) failure: FailureStatus,
}

impl<I: Send + Sync + 'static> Batch<'_, I> {
    /// Runs a function for each item, and answers with what `write_fields` writes of each result.
    pub(super) async fn answer<T: Send + 'static>(
        self,
        worker: &Worker,
        caller: &Caller,
        run: Run<I, T>,
        write_fields: fn(&mut Vec<u8>, Result<&T, &VaultError>),
    ) -> Result<Response> {
        let Self { read, references, length, cost, form, failure } = self;
        let mut results = run_each(worker, caller, cost, read, run).await?;
        let texts = references.iter().map(|reference| reference.as_deref().unwrap_or_default());
        // A character may take six in JSON, and base64 four for three.
        let repeated: usize = texts.clone().map(|text| 6 * text.len()).sum();
        let length = JSON_FRAME_LEN * (results.len() + 1) + repeated + length.div_ceil(3) * 4;
        if form == RequestForm::Single {
            let result = results.pop().unwrap_or_else(|| Err(ApiError::internal("no result").into()))?;
            return Ok(answer::secret_written(worker, StatusCode::OK, length, &[], |out| {
                out.push(b'{');
                write_fields(out, Ok(&result));
                out.push(b'}');
            }));
        }
        let failed = results.iter().filter(|result| result.is_err()).count();
        let (status, is_invalid) = failure.status(failed, results.len());
        let warning =
            "invalid HTTP response code override from partial_failure_response_code, reverting to 400";
        let warnings: &[String] = if is_invalid { &[warning.to_owned()] } else { &[] };
        Ok(answer::secret_written(worker, status, length, warnings, |out| {
            answer::write_results(out, &results, texts, |out, result| write_fields(out, result.as_ref()));
        }))
    }
}
