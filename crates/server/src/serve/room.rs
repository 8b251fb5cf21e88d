//! How many connections a listener may have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many files the service has open besides its connections, at most.
const OTHER_FILES: usize = 64;

/// The most files that connections by the network leave to those of Unix sockets, by which
/// operators come.
const LOCAL_FILES: usize = 256;

/// The connections of one listener. Those of others do not count.
#[derive(Debug)]
pub(super) struct Room {
    open: Arc<AtomicUsize>,
    /// The most that the system has files for.
    most: usize,
    /// The connections of all listeners.
    all: Arc<AtomicUsize>,
}

/// A connection that counts as open until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    open: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl Room {
    pub(super) fn new(most: usize, all: &Arc<AtomicUsize>) -> Self {
        Self { open: Arc::default(), most, all: Arc::clone(all) }
    }

    /// A place for one more connection, if there are fewer than `limit`. Only one thread asks.
    ///
    /// # Errors
    /// There are as many as the error says.
    pub(super) fn enter(&self, limit: usize) -> Result<Place, usize> {
        let most = limit.min(self.most);
        if self.open.load(Ordering::Relaxed) >= most {
            return Err(most);
        }
        let (open, all) = (Arc::clone(&self.open), Arc::clone(&self.all));
        open.fetch_add(1, Ordering::Relaxed);
        all.fetch_add(1, Ordering::Relaxed);
        Ok(Place { open, all })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The most connections for which each listener on the network has files, so that all of them
/// together leave some to Unix sockets.
pub(super) fn network_share(files: Option<usize>, network: usize, local: usize) -> usize {
    let Some(files) = files else { return usize::MAX };
    let files = files.saturating_sub(OTHER_FILES);
    let kept = if local == 0 { 0 } else { LOCAL_FILES.min(files / 2) };
    ((files - kept) / network.max(1)).max(1)
}

/// How many files this process may have open; none if there is no limit.
pub(super) fn permitted_files() -> Option<usize> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        getrlimit(Resource::Nofile).current.map(|most| usize::try_from(most).unwrap_or(usize::MAX))
    }
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_has_as_many_connections_as_its_limit_whatever_others_have() {
        let all = Arc::default();
        let (one, other) = (Room::new(usize::MAX, &all), Room::new(1, &all));
        let places: Vec<_> = (0..3).map(|_| one.enter(3).unwrap()).collect();
        assert_eq!(one.enter(3).unwrap_err(), 3);
        let place = other.enter(3).unwrap();
        assert_eq!(other.enter(3).unwrap_err(), 1);
        assert_eq!(all.load(Ordering::Relaxed), 4);
        drop((places, place));
        assert_eq!(all.load(Ordering::Relaxed), 0);
        other.enter(3).unwrap();
    }

    #[test]
    fn connections_by_the_network_leave_files_to_unix_sockets() {
        assert_eq!(network_share(None, 2, 1), usize::MAX);
        assert_eq!(network_share(Some(1024), 1, 0), 960);
        assert_eq!(network_share(Some(1024), 1, 1), 704);
        assert_eq!(network_share(Some(1024), 2, 1), 352);
        assert_eq!(network_share(Some(264), 1, 1), 100);
        assert_eq!(network_share(Some(10), 3, 1), 1);
    }
}
