//! How long it takes until the other nodes sign with a new version.

use std::{
    panic::resume_unwind,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{
    super::{cases::label, load::Caller},
    nodes::{KEYS, Nodes},
};

/// How often a node is asked for the version with which it signs.
const INTERVAL: Duration = Duration::from_micros(200);
/// How long a node may take to use a new version.
const SPREAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Times in milliseconds, each in the order of length.
pub(super) struct Times {
    /// From the request to rotate until its answer.
    pub(super) rotation: Vec<f64>,
    /// From the answer until another node signs with the new version; 0 if that node was quicker
    /// than the answer.
    pub(super) use_elsewhere: Vec<f64>,
}

/// The time within which `share` of 100 happened.
pub(super) fn within(times: &[f64], share: usize) -> f64 {
    times.get((times.len() * share / 100).min(times.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// Makes changes through the first node, one each `interval` at the most, and has these other nodes
/// sign until they use them.
pub(super) fn measure(
    nodes: &Nodes<'_>,
    others: &[usize],
    changes: usize,
    interval: Duration,
) -> Result<Times> {
    // The number of the change that is made now.
    let now = AtomicUsize::new(0);
    let (used, uses) = mpsc::channel();
    thread::scope(|scope| {
        let watchers: Vec<_> = (others.iter())
            .map(|node| {
                let (used, now) = (used.clone(), &now);
                scope.spawn(move || watch(nodes.caller(*node)?, changes, now, &used))
            })
            .collect();
        drop(used);
        let made = make(nodes, others.len(), (changes, interval), &now, &uses);
        // The watchers end when they have seen all changes, or when nobody asks them any more.
        drop(uses);
        now.store(usize::MAX, Ordering::Release);
        for watcher in watchers {
            watcher.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        }
        made
    })
}

fn make(
    nodes: &Nodes<'_>,
    others: usize,
    (changes, interval): (usize, Duration),
    now: &AtomicUsize,
    uses: &mpsc::Receiver<(usize, Instant)>,
) -> Result<Times> {
    let mut first = nodes.caller(0)?;
    let mut times = Times { rotation: Vec::new(), use_elsewhere: Vec::new() };
    for change in 1..=changes {
        now.store(change, Ordering::Release);
        // The watchers first learn which version is the old one.
        for _ in 0..others {
            uses.recv_timeout(SPREAD_TIMEOUT).context("a node does not sign")?;
        }
        let sent = Instant::now();
        first.post(&format!("/api/v1/keys/{}/rotate", label(change % KEYS)), &json!({}))?;
        let answered = Instant::now();
        times.rotation.push((answered - sent).as_secs_f64() * 1000.0);
        for _ in 0..others {
            let (_, at) = uses.recv_timeout(SPREAD_TIMEOUT).context("a node does not use a change")?;
            times.use_elsewhere.push(at.saturating_duration_since(answered).as_secs_f64() * 1000.0);
        }
        thread::sleep(interval.saturating_sub(sent.elapsed()));
    }
    times.rotation.sort_unstable_by(f64::total_cmp);
    times.use_elsewhere.sort_unstable_by(f64::total_cmp);
    Ok(times)
}

/// Signs by a node: tells when it has the old version of the key of each change, and when it first
/// uses the new one.
fn watch(
    mut node: Caller,
    changes: usize,
    now: &AtomicUsize,
    used: &mpsc::Sender<(usize, Instant)>,
) -> Result<()> {
    for change in 1..=changes {
        while now.load(Ordering::Acquire) < change {
            thread::sleep(INTERVAL);
        }
        let path = format!("/api/v1/keys/{}/sign", label(change % KEYS));
        let mut version =
            || -> Result<Value> { Ok(node.post(&path, &json!({ "message": "" }))?["version"].take()) };
        let old = version()?;
        let tell = || used.send((change, Instant::now())).is_ok();
        if now.load(Ordering::Acquire) == usize::MAX || !tell() {
            return Ok(());
        }
        while version()? == old {
            if now.load(Ordering::Acquire) == usize::MAX {
                return Ok(());
            }
            thread::sleep(INTERVAL);
        }
        if !tell() {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_times() {
        let times: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!((within(&times, 50), within(&times, 99), within(&times, 100)), (500.0, 990.0, 999.0));
        assert!(within(&[], 50).is_nan());
    }
}
