//! Watches other processes' changes: first the notice, then the rows themselves.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};

use etcd_client::{Client, EventType, WatchOptions, WatchResponse, WatchStream};
use tokio::time::{Duration, sleep, timeout};

use super::feed::{Event, Feed};
use super::link::Failure;
use super::rows::{RemoteRows, Stored};
use crate::error::Result;
use crate::store::interface::{Changed, Changes, STATE, Table};

/// The pause before a watch that has ended is started again.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest time that a node may take to start a watch, or to send the changes that it already
/// has.
const PATIENCE: Duration = Duration::from_secs(5);

/// Announces each change of the keys from `begin` to before `end`, until the receiver is dropped.
pub(super) async fn watch(rows: RemoteRows, begin: String, end: String, changed: SyncSender<()>) {
    let options = WatchOptions::new().with_range(end);
    let told = |message: Option<&WatchResponse>| {
        message.is_none() || !matches!(changed.try_send(()), Err(TrySendError::Disconnected(())))
    };
    watch_keys(&rows, &begin, options, told).await;
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
    watch_keys(&rows, &begin, options, told).await;
}

/// Watches keys, and starts again when the watch ends. `told` gets each message, and `None` when
/// the watch has ended; it returns false when nobody wants to know more.
async fn watch_keys(
    rows: &RemoteRows,
    begin: &str,
    options: WatchOptions,
    told: impl Fn(Option<&WatchResponse>) -> bool,
) {
    loop {
        let (node, client) = match rows.nodes.client(PATIENCE).await {
            Ok(connected) => connected,
            Err(_) => {
                sleep(PAUSE).await;
                continue;
            }
        };
        let begun = timeout(PATIENCE, client.watch_client().watch(begin, Some(options.clone()))).await;
        if let Ok(Ok(mut stream)) = begun {
            // The first message confirms that the watch has started. Earlier changes must be looked
            // for.
            while let Ok(Some(message)) = stream.message().await {
                if message.canceled() {
                    break;
                }
                if !told(Some(&message)) {
                    return;
                }
            }
        }
        if !told(None) {
            return;
        }
        rows.nodes.give_up(node).await;
        sleep(PAUSE).await;
    }
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
        let told = timeout(PATIENCE, self.history(since, state.revision)).await;
        Ok(told.ok().and_then(std::result::Result::ok).flatten())
    }

    /// The changes after `since`, up to `until` at least.
    async fn history(&self, since: i64, until: i64) -> Result<Option<(Changes, i64)>, Failure> {
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
    fn events(&self, message: &WatchResponse) -> Option<(Vec<Event>, i64)> {
        let (mut events, mut newest) = (Vec::new(), 0);
        for event in message.events() {
            let row = event.kv()?;
            let Some((table, name)) = self.row(row.key()).ok()? else { continue };
            if (table, name.as_str()) == (Table::Meta, STATE) {
                newest = row.mod_revision();
            }
            let value = (event.event_type() == EventType::Put).then(|| row.value().to_vec());
            events.push(Event { revision: row.mod_revision(), row: (table, name), value });
        }
        Some((events, newest))
    }
}
