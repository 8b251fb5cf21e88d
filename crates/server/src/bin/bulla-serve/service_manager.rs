//! Notifications to systemd, and the limit on open files. Other systems have neither.

/// What the service does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceState {
    Ready,
    Reloading,
    Stopping,
}

/// Notifies systemd, if it started the service.
#[cfg(unix)]
pub(crate) fn notify(state: ServiceState) {
    use sd_notify::NotifyState;
    let notified = match (state, NotifyState::monotonic_usec_now()) {
        (ServiceState::Ready, _) => sd_notify::notify(&[NotifyState::Ready]),
        (ServiceState::Stopping, _) => sd_notify::notify(&[NotifyState::Stopping]),
        (ServiceState::Reloading, Ok(now)) => sd_notify::notify(&[NotifyState::Reloading, now]),
        (ServiceState::Reloading, Err(_)) => sd_notify::notify(&[NotifyState::Reloading]),
    };
    if let Err(error) = notified {
        tracing::warn!("cannot tell the service manager: {error}");
    }
}

#[cfg(not(unix))]
pub(crate) fn notify(_state: ServiceState) {}

/// Lets this process have as many files open as the system permits. Each connection is one, and few
/// programs may open more than 1024 unless they ask.
#[cfg(unix)]
pub(crate) fn raise_file_limit(connections: usize) {
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
pub(crate) fn raise_file_limit(_connections: usize) {}
