//! Lists that the service gives page by page.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::error::Result;
use crate::middleware::BoxFuture;

/// The items of a page, and the argument for the next page.
type Page<T> = Result<(Vec<T>, Option<String>)>;

/// Reads the first page, or the one after an earlier page.
type ReadPage<T> = dyn FnMut(Option<String>) -> BoxFuture<'static, Page<T>> + Send;

/// A list whose pages are read when they are needed: a [`Stream`] of its items.
///
/// After an error the list ends.
///
/// ```
/// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
/// use bulla_client::Key;
///
/// let mut keys = client.keys();
/// while let Some(key) = keys.try_next().await? {
///     println!("{}", key.id);
/// }
/// let all: Vec<Key> = client.keys().try_collect().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is read until the first item is asked for"]
pub struct Pages<T> {
    read_page: Box<ReadPage<T>>,
    /// The items that were read and not taken.
    items: VecDeque<T>,
    progress: Progress<T>,
}

enum Progress<T> {
    /// The next page, which is not asked for yet.
    Idle(Option<String>),
    Reading(BoxFuture<'static, Page<T>>),
    AtEnd,
}

impl<T> Pages<T> {
    pub(crate) fn new(
        read_page: impl FnMut(Option<String>) -> BoxFuture<'static, Page<T>> + Send + 'static,
    ) -> Self {
        Self { read_page: Box::new(read_page), items: VecDeque::new(), progress: Progress::Idle(None) }
    }

    /// The next item; none after the last.
    ///
    /// # Errors
    /// The next page cannot be read.
    pub async fn try_next(&mut self) -> Result<Option<T>> {
        poll_fn(|context| self.poll_item(context)).await.transpose()
    }

    /// Reads all pages, and collects their items.
    ///
    /// # Errors
    /// A page cannot be read.
    pub async fn try_collect<C: Default + Extend<T>>(mut self) -> Result<C> {
        let mut collection = C::default();
        while let Some(item) = self.try_next().await? {
            collection.extend([item]);
        }
        Ok(collection)
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            match &mut self.progress {
                Progress::AtEnd => return Poll::Ready(None),
                Progress::Idle(next) => {
                    self.progress = Progress::Reading((self.read_page)(next.take()));
                }
                Progress::Reading(page) => {
                    let page = ready!(page.as_mut().poll(context));
                    self.progress = Progress::AtEnd;
                    match page {
                        Err(error) => return Poll::Ready(Some(Err(error))),
                        Ok((items, next)) => {
                            self.items = items.into();
                            if next.is_some() {
                                self.progress = Progress::Idle(next);
                            }
                        }
                    }
                }
            }
        }
    }
}

// The items are moved out, and never pinned.
impl<T> Unpin for Pages<T> {}

impl<T> Stream for Pages<T> {
    type Item = Result<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        self.get_mut().poll_item(context)
    }
}

impl<T> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("items", &self.items.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    /// Waits for a future that is ready at once.
    fn ready<T>(future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        match future.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it waits"),
        }
    }

    /// Pages of two numbers each, up to a number.
    fn pages(end: u32) -> Pages<u32> {
        Pages::new(move |next| {
            let first: u32 = next.map_or(0, |next| next.parse().unwrap());
            let items: Vec<_> = (first..end).take(2).collect();
            let next = (first + 2 < end).then(|| (first + 2).to_string());
            Box::pin(async move { Ok((items, next)) })
        })
    }

    #[test]
    fn all_pages_are_read_in_order() {
        for end in 0..7 {
            let all: Vec<_> = ready(pages(end).try_collect()).unwrap();
            assert_eq!(all, (0..end).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_page_is_read_when_it_is_needed_and_an_error_is_the_end() {
        let mut reads = 0;
        let mut pages: Pages<u32> = Pages::new(move |_| {
            reads += 1;
            let page = match reads {
                1 => Ok((vec![1, 2], Some("next".to_owned()))),
                _ => Err(Error::invalid_argument("no")),
            };
            Box::pin(async move { page })
        });
        assert_eq!(ready(pages.try_next()).unwrap(), Some(1));
        assert_eq!(ready(pages.try_next()).unwrap(), Some(2));
        assert!(ready(pages.try_next()).is_err());
        assert_eq!(ready(pages.try_next()).unwrap(), None);
    }
}
