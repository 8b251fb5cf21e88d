//! `--idle`: the priority of this process.

use crate::error::{Error, Result};

/// The CPU and I/O priority of this process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// The priority that the process started with.
    Normal,
    /// All other programs go first.
    Idle,
}

/// Sets the priority. Threads that start later inherit it, so set it before they start.
///
/// # Errors
/// The system has no such priority, or does not allow it.
pub(crate) fn set_priority(priority: Priority) -> Result<()> {
    if priority == Priority::Normal {
        return Ok(());
    }
    go_idle().map_err(|reason| {
        let error =
            Error::new("unsupported", format!("--idle: cannot let other programs go first: {reason}"));
        error.hint("leave out --idle")
    })
}

/// The scheduler's policy for idle work. A disk whose scheduler knows classes serves such a thread
/// in the class `idle`, too (ioprio_set(2) with the kernel's include/linux/ioprio.h: a thread
/// without a class of its own has that of its policy).
#[cfg(target_os = "linux")]
fn go_idle() -> Result<(), String> {
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id,
    };
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle)
        .map_err(|error| error.to_string())
}

/// The lowest priority for the processor. These systems have none for disks that a program could
/// ask for safely.
#[cfg(all(unix, not(target_os = "linux")))]
fn go_idle() -> Result<(), String> {
    rustix::process::setpriority_process(None, 19).map_err(|error| error.to_string())
}

#[cfg(not(unix))]
fn go_idle() -> Result<(), String> {
    Err("this system has no such priority".to_owned())
}
