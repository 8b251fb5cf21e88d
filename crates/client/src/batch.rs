//! Batches: as many requests as their items take, and a result for each item.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::{BatchError, Error, Result, ServiceError};
use crate::request::{Call, MAX_JSON_FRAME_LEN};

/// The most bytes of a request with many items. The service's default setting takes twice as many.
const MAX_BATCH_BODY_BYTES: usize = 16 << 20;
/// About the length of an item's JSON without its texts.
pub(crate) const ITEM_FRAME_LEN: usize = 64;

/// An item of a batch, as a request has it.
pub(crate) trait BatchItem: Serialize {
    /// At least the length of its JSON.
    fn json_len(&self) -> usize;
}

#[derive(Deserialize)]
struct Results<T> {
    results: Vec<T>,
}

impl Client {
    /// Makes as many requests as the items take. `read` turns an item's part of the answer into its
    /// result.
    pub(crate) async fn call_many<A: DeserializeOwned, T>(
        &self,
        new_call: impl Fn() -> Call,
        items: &[impl BatchItem],
        read: impl Fn(A) -> Result<Result<T, ServiceError>>,
    ) -> Result<Vec<Result<T, ServiceError>>, BatchError<T>> {
        let mut results = Vec::with_capacity(items.len());
        while let rest @ [_, ..] = &items[results.len()..] {
            let part = &rest[..request_len(rest, self.options.max_batch_items)];
            let answers = self.call_with_items::<A>(new_call(), part).await;
            match answers.and_then(|all| all.into_iter().map(&read).collect::<Result<Vec<_>>>()) {
                Ok(part) => results.extend(part),
                Err(error) => return Err(BatchError { results, error }),
            }
        }
        Ok(results)
    }

    /// Makes one request, whose answer has a result for each item.
    async fn call_with_items<A: DeserializeOwned>(
        &self,
        call: Call,
        items: &[impl BatchItem],
    ) -> Result<Vec<A>> {
        #[derive(Serialize)]
        struct Body<'a, I> {
            items: &'a [I],
        }
        let length = MAX_JSON_FRAME_LEN + items.iter().map(BatchItem::json_len).sum::<usize>();
        let answer: Results<A> = self.call(call.secret_body(&Body { items }, length)).await?;
        let (results, items) = (answer.results.len(), items.len());
        if results != items {
            return Err(Error::invalid_response(format_args!("{results} results for {items} items")));
        }
        Ok(answer.results)
    }
}

/// How many of the items one request takes: at least one.
fn request_len(items: &[impl BatchItem], max: usize) -> usize {
    let mut length = 0;
    let mut fits = |item: &_| {
        length += BatchItem::json_len(item);
        length <= MAX_BATCH_BODY_BYTES
    };
    items.iter().take(max).take_while(|item| fits(*item)).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Serialize)]
    struct Item(usize);

    impl BatchItem for Item {
        fn json_len(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn a_request_has_as_many_items_as_the_service_takes() {
        assert_eq!(request_len(&vec![Item(0); 3], 10_000), 3);
        assert_eq!(request_len(&vec![Item(0); 10_001], 10_000), 10_000);
        assert_eq!(request_len(&vec![Item(0); 3], 2), 2);
    }

    #[test]
    fn a_request_is_not_longer_than_the_service_takes() {
        assert_eq!(request_len(&vec![Item(5 << 20); 9], 10_000), 3);
        assert_eq!(request_len(&vec![Item(6 << 20); 9], 10_000), 2);
        assert_eq!(request_len(&vec![Item(50 << 20); 9], 10_000), 1);
    }
}
