//! Follows other processes' changes: a watch that goes on, and the rows that it has told of, until
//! the store asks for them.
//!
//! etcd tells a watch of a change at once, but lets a new watch wait for what it missed, up to 100
//! ms. So one watch goes on for as long as the store is open, and what it told is kept here.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulla_etcd::{RequestFailure, START_TIMEOUT, watch_keys};
use etcd_client::{Client, EventType, WatchOptions, WatchResponse, WatchStream};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use super::rows::{RemoteRows, Stored};
use crate::error::Result;
use crate::store::interface::{Changed, Changes, STATE, Table};

/// The maximum number of bytes that are kept. A store that asks later reads from etcd.
const MAX_KEPT_BYTES: usize = 16 << 20;

/// How long to wait for what etcd already has.
const NEWS_TIMEOUT: Duration = Duration::from_millis(20);

/// The changes that a watch has told of.
#[derive(Default)]
pub(super) struct Feed {
    told: Mutex<Option<Backlog>>,
    news: Notify,
}

/// Everything that changed after one revision and up to another one.
struct Backlog {
    after: i64,
    /// The revision of the newest state.
    until: i64,
    rows: Vec<RowEvent>,
    bytes: usize,
}

/// A row that changed.
pub(super) struct RowEvent {
    pub(super) revision: i64,
    pub(super) row: (Table, String),
    /// `None` for a removed row.
    pub(super) value: Option<Vec<u8>>,
}

impl Feed {
    fn lock(&self) -> MutexGuard<'_, Option<Backlog>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A watch begins, and will tell of all that changes after `revision`.
    pub(super) fn begin(&self, revision: i64) {
        *self.lock() = Some(Backlog { after: revision, until: revision, rows: Vec::new(), bytes: 0 });
    }

    /// The watch has ended. Nobody tells of what changes from now on.
    pub(super) fn end(&self) {
        *self.lock() = None;
        self.news.notify_waiters();
    }

    /// The watch tells of whole revisions. `until` is that of the newest state among them.
    pub(super) fn add(&self, events: Vec<RowEvent>, until: i64) {
        if let Some(told) = &mut *self.lock() {
            told.bytes += events.iter().map(RowEvent::bytes).sum::<usize>();
            told.rows.extend(events);
            told.until = told.until.max(until);
            if told.bytes > MAX_KEPT_BYTES {
                (told.rows, told.bytes, told.after) = (Vec::new(), 0, told.until);
            }
        }
        self.news.notify_waiters();
    }

    /// The changes after `since` up to a revision, `until` at least; `None` if the watch did not
    /// tell of all of them. What is asked for once is forgotten.
    pub(super) async fn take(&self, since: i64, until: i64) -> Option<(Changes, i64)> {
        let end = Instant::now() + NEWS_TIMEOUT;
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // From here on, news counts, also news that arrives before the wait begins.
            news.as_mut().enable();
            match self.lock().as_mut() {
                Some(told) if told.after > since => return None,
                Some(told) if told.until >= until => return Some(told.take(since)),
                Some(_) => {}
                None => return None,
            }
            timeout_at(end, news).await.ok()?;
        }
    }

    /// The changes after `since` that the watch has told of, and the revision up to which these are
    /// all; `None` if the watch does not know of all. What is asked for once is forgotten.
    pub(super) fn so_far(&self, since: i64) -> Option<(Changes, i64)> {
        let mut told = self.lock();
        let (changes, until) = told.as_mut().filter(|told| told.after <= since)?.take(since);
        Some((changes, until.max(since)))
    }
}

impl Backlog {
    fn take(&mut self, since: i64) -> (Changes, i64) {
        let (taken, rest) = std::mem::take(&mut self.rows)
            .into_iter()
            .partition(|event: &RowEvent| event.revision <= self.until);
        self.rows = rest;
        self.bytes = self.rows.iter().map(RowEvent::bytes).sum();
        self.after = self.until;
        let new = taken.into_iter().filter(|event| event.revision > since);
        (new.map(|event| (event.row, event.value)).collect(), self.until)
    }
}

impl RowEvent {
    fn bytes(&self) -> usize {
        self.row.1.len() + self.value.as_ref().map_or(0, Vec::len)
    }
}

/// Puts each change of the rows into `feed`, and announces it, until the receiver is dropped.
pub(super) async fn follow(rows: RemoteRows, feed: Arc<Feed>, changed: SyncSender<Changed>) {
    let (begin, end) = rows.tables();
    let options = WatchOptions::new().with_range(end);
    let told = |message: Option<&WatchResponse>| {
        match message {
            Some(message) if message.created() => {
                feed.begin(message.header().map_or(0, |header| header.revision()));
            }
            Some(message) => match rows.events(message) {
                Some((events, newest)) => feed.add(events, newest),
                None => feed.end(),
            },
            None => {
                feed.end();
                return true;
            }
        }
        !matches!(changed.try_send(Changed), Err(TrySendError::Disconnected(Changed)))
    };
    watch_keys(&rows.nodes, &begin, options, told).await;
}

impl RemoteRows {
    /// The rows that changed since the state `known`, and the state's current revision. `None` if
    /// etcd does not answer, or has dropped those revisions.
    pub(super) async fn changes(&self, known: Stored, feed: &Feed) -> Result<Option<(Changes, i64)>> {
        let since = known.revision;
        let state = match self.state().await.map_err(|failure| self.error(failure))? {
            Some(state) if state.value == known.value => return Ok(Some((Changes::new(), state.revision))),
            Some(state) if state.revision > since => state,
            Some(_) => return Ok(None),
            None => return Err(self.gone()),
        };
        if let Some(told) = feed.take(since, state.revision).await {
            return Ok(Some(told));
        }
        let told = timeout(START_TIMEOUT, self.history(since, state.revision)).await;
        Ok(told.ok().and_then(std::result::Result::ok).flatten())
    }

    /// The changes after `since`, up to `until` at least.
    async fn history(&self, since: i64, until: i64) -> Result<Option<(Changes, i64)>, RequestFailure> {
        let (begin, end) = self.tables();
        let options = WatchOptions::new().with_range(end).with_start_revision(since + 1);
        let mut stream: WatchStream = self
            .nodes
            .ask(|client: Client| {
                let (begin, options) = (begin.clone(), options.clone());
                async move { client.watch_client().watch(begin, Some(options)).await }
            })
            .await?;
        let (mut changes, mut seen) = (Changes::new(), since);
        while seen < until {
            match stream.message().await {
                // A message contains only whole revisions, so that no transaction is seen in part.
                Ok(Some(message)) if !message.canceled() => match self.take(&message, &mut changes) {
                    Some(newest) => seen = newest.max(seen),
                    None => return Ok(None),
                },
                _ => return Ok(None),
            }
        }
        Ok(Some((changes, seen)))
    }

    /// Adds the changes in a message. Returns the state's newest revision in it, or 0 if the state
    /// is not in it; `None` if a row has no name.
    fn take(&self, message: &WatchResponse, changes: &mut Changes) -> Option<i64> {
        let (events, newest) = self.events(message)?;
        changes.extend(events.into_iter().map(|event| (event.row, event.value)));
        Some(newest)
    }

    /// The changes in a message, and the state's newest revision in it, or 0 if the state is not in
    /// it; `None` if a row has no name.
    fn events(&self, message: &WatchResponse) -> Option<(Vec<RowEvent>, i64)> {
        let (mut events, mut newest) = (Vec::new(), 0);
        for event in message.events() {
            let row = event.kv()?;
            let Some((table, name)) = self.row(row.key()).ok()? else { continue };
            if (table, name.as_str()) == (Table::Meta, STATE) {
                newest = row.mod_revision();
            }
            let value = (event.event_type() == EventType::Put).then(|| row.value().to_vec());
            events.push(RowEvent { revision: row.mod_revision(), row: (table, name), value });
        }
        Some((events, newest))
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    fn event(revision: i64, name: &str, value: Option<usize>) -> RowEvent {
        let value = value.map(|length| vec![revision as u8; length]);
        RowEvent { revision, row: (Table::Records, name.to_owned()), value }
    }

    fn take(feed: &Feed, since: i64, until: i64) -> Option<(Vec<String>, i64)> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (changes, seen) = runtime.block_on(feed.take(since, until))?;
        let text = |((_, name), value): ((_, String), Option<Vec<u8>>)| match value {
            Some(value) => format!("{name}={}", value[0]),
            None => format!("{name} removed"),
        };
        Some((changes.into_iter().map(text).collect(), seen))
    }

    #[test]
    fn what_was_told_is_taken_once_and_the_newest_value_counts() {
        let feed = Feed::default();
        assert!(take(&feed, 0, 0).is_none(), "no watch has begun");
        feed.begin(5);
        feed.add(vec![event(6, "a", Some(1)), event(6, "b", Some(1))], 6);
        feed.add(vec![event(7, "a", Some(1)), event(7, "b", None), event(8, "c", Some(1))], 7);
        assert!(take(&feed, 4, 6).is_none(), "revision 5 is missing");
        assert!(take(&feed, 5, 9).is_none(), "revision 9 is missing");
        let (changes, seen) = take(&feed, 5, 6).unwrap();
        assert_eq!((&changes[..], seen), (&["a=7".to_owned(), "b removed".to_owned()][..], 7));
        assert!(take(&feed, 5, 7).is_none(), "it was taken");
        feed.add(vec![], 8);
        assert_eq!(take(&feed, 7, 8).unwrap(), (vec!["c=8".to_owned()], 8), "a later state leads there");
        feed.add(vec![event(9, "d", Some(1)), event(10, "e", Some(1))], 10);
        assert_eq!(
            take(&feed, 9, 10).unwrap(),
            (vec!["e=10".to_owned()], 10),
            "the store made the others itself"
        );
        feed.end();
        assert!(take(&feed, 10, 10).is_none());
    }

    #[test]
    fn what_was_told_so_far_is_taken_without_waiting() {
        let feed = Feed::default();
        let so_far = |since| {
            let (changes, seen) = feed.so_far(since)?;
            Some((changes.into_keys().map(|(_, name)| name).collect::<Vec<_>>(), seen))
        };
        assert_eq!(so_far(0), None, "no watch has begun");
        feed.begin(5);
        assert_eq!(so_far(4), None, "revision 5 is missing");
        assert_eq!(so_far(5), Some((vec![], 5)));
        // The state is not among the rows of revision 8 yet.
        feed.add(vec![event(6, "a", Some(1)), event(7, "b", Some(1)), event(8, "c", Some(1))], 7);
        assert_eq!(so_far(6), Some((vec!["b".to_owned()], 7)), "the store made revision 6 itself");
        assert_eq!(so_far(7), Some((vec![], 7)));
        feed.add(vec![], 8);
        assert_eq!(so_far(9), Some((vec![], 9)), "the store is further than the watch");
        assert_eq!(so_far(7), None, "what was asked for once is forgotten");
        feed.end();
        assert_eq!(so_far(9), None);
    }

    #[test]
    fn a_feed_has_a_bound_and_then_says_that_something_is_missing() {
        let feed = Feed::default();
        feed.begin(1);
        feed.add(vec![event(2, "a", Some(MAX_KEPT_BYTES))], 2);
        assert!(take(&feed, 1, 2).is_none());
        feed.add(vec![event(3, "a", Some(1))], 3);
        assert_eq!(take(&feed, 2, 3).unwrap(), (vec!["a=3".to_owned()], 3));
    }
}
