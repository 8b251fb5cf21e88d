//! Watches other processes' changes: first the notice, then the rows themselves.

use std::sync::mpsc::{SyncSender, TrySendError};

use etcd_client::{Client, EventType, WatchOptions, WatchResponse, WatchStream};
use tokio::time::{Duration, sleep, timeout};

use super::link::Failure;
use super::rows::{RemoteRows, Stored};
use crate::error::Result;
use crate::store::interface::{Changed, Changes, STATE, Table};

/// The pause before a watch that has ended is started again.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest time that a node may take to start a watch, or to send the changes that it already has.
const PATIENCE: Duration = Duration::from_secs(5);

/// Announces each change of the state, until the receiver is dropped.
pub(super) async fn watch(rows: RemoteRows, changed: SyncSender<Changed>) {
    loop {
        let (node, client) = match rows.nodes.client(PATIENCE).await {
            Ok(connected) => connected,
            Err(_) => {
                sleep(PAUSE).await;
                continue;
            }
        };
        let begun = timeout(PATIENCE, client.watch_client().watch(rows.state_key(), None)).await;
        if let Ok(Ok(mut stream)) = begun {
            // The first message confirms that the watch has started. Earlier changes must be looked for.
            while let Ok(Some(message)) = stream.message().await {
                if message.canceled() {
                    break;
                }
                if let Err(TrySendError::Disconnected(_)) = changed.try_send(Changed) {
                    return;
                }
            }
        }
        rows.nodes.give_up(node).await;
        sleep(PAUSE).await;
    }
}

impl RemoteRows {
    /// The rows that changed since the state `known`, and the state's current revision. `None` if etcd does not answer,
    /// or has dropped those revisions.
    pub(super) async fn changes(&self, known: Stored) -> Result<Option<(Changes, i64)>> {
        let since = known.revision;
        let state = match self.state().await.map_err(|failure| self.error(failure))? {
            Some(state) if state.value == known.value => return Ok(Some((Changes::new(), state.revision))),
            Some(state) if state.revision > since => state,
            Some(_) => return Ok(None),
            None => return Err(self.gone()),
        };
        let told = timeout(PATIENCE, self.history(since, state.revision)).await;
        Ok(told.ok().and_then(std::result::Result::ok).flatten())
    }

    /// The changes after `since`, up to `until` at least.
    async fn history(&self, since: i64, until: i64) -> Result<Option<(Changes, i64)>, Failure> {
        let (begin, end) = self.range();
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

    /// Adds the changes in a message. Returns the state's newest revision in it, or 0 if the state is not in it; `None`
    /// if a row has no name.
    fn take(&self, message: &WatchResponse, changes: &mut Changes) -> Option<i64> {
        let mut newest = 0;
        for event in message.events() {
            let row = event.kv()?;
            let Some((table, name)) = self.row(row.key()).ok()? else { continue };
            if (table, name.as_str()) == (Table::Meta, STATE) {
                newest = row.mod_revision();
            }
            let value = (event.event_type() == EventType::Put).then(|| row.value().to_vec());
            changes.insert((table, name), value);
        }
        Some(newest)
    }
}
