//! What the service says to systemd, and asks of Unix. Elsewhere it does neither.

/// What the service does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    Reloading,
    Stopping,
}

/// Tells systemd, if it started the service.
#[cfg(unix)]
pub(super) fn tell(state: State) {
    use sd_notify::NotifyState;
    let told = match (state, NotifyState::monotonic_usec_now()) {
        (State::Ready, _) => sd_notify::notify(&[NotifyState::Ready]),
        (State::Stopping, _) => sd_notify::notify(&[NotifyState::Stopping]),
        (State::Reloading, Ok(now)) => sd_notify::notify(&[NotifyState::Reloading, now]),
        (State::Reloading, Err(_)) => sd_notify::notify(&[NotifyState::Reloading]),
    };
    if let Err(error) = told {
        tracing::warn!("cannot tell the service manager: {error}");
    }
}

#[cfg(not(unix))]
pub(super) fn tell(_state: State) {}

/// Lets this process have as many files open as the system permits. Each connection is one, and few
/// programs may open more than 1024 unless they ask.
#[cfg(unix)]
pub(super) fn raise_file_limit(connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// How many files the service has open besides its connections, at most.
    const OTHER_FILES: u64 = 64;
    let permitted = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: permitted.maximum, ..permitted }) {
        tracing::warn!("cannot raise the number of files that this process may have open: {error}");
    }
    let needed = (connections as u64).saturating_add(OTHER_FILES);
    if let Some(most) = getrlimit(Resource::Nofile).current.filter(|most| *most < needed) {
        tracing::warn!(
            "this process may have {most} files open, and `limits.max_connections_per_listener` of all listeners needs {needed}: raise its limit (`ulimit -Hn`; with systemd \
             LimitNOFILE), or lower `limits.max_connections_per_listener`"
        );
    }
}

#[cfg(not(unix))]
pub(super) fn raise_file_limit(_connections: usize) {}
