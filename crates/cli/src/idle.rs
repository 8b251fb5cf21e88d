//! `--idle`: this process works only when no other one wants to.

use crate::error::{Error, Result};

/// How much the rest of the machine matters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This process is one of many.
    Equal,
    /// All others come first.
    Last,
}

/// Takes this turn from now on. Threads that start later have it too; so this comes before they do.
///
/// # Errors
/// The system has no such turns, or does not allow it.
pub(crate) fn take(turn: Turn) -> Result<()> {
    if turn == Turn::Equal {
        return Ok(());
    }
    go_last().map_err(|reason| {
        let error =
            Error::new("unsupported", format!("--idle: cannot let other programs go first: {reason}"));
        error.hint("leave out --idle")
    })
}

/// The scheduler's policy for idle work. A disk whose scheduler knows classes serves such a thread
/// in the class `idle`, too (ioprio_set(2) with the kernel's include/linux/ioprio.h: a thread
/// without a class of its own has that of its policy).
#[cfg(target_os = "linux")]
fn go_last() -> Result<(), String> {
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
fn go_last() -> Result<(), String> {
    rustix::process::setpriority_process(None, 19).map_err(|error| error.to_string())
}

#[cfg(not(unix))]
fn go_last() -> Result<(), String> {
    Err("this system has no such priority".to_owned())
}
