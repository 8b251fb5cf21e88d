//! Handles Ctrl-C, a closed terminal and similar signals: an interrupted command leaves no
//! unfinished file behind, and restores the terminal.

#[cfg(unix)]
pub(crate) use unix::{guard, instead, stop_in_order, stopped};

/// Elsewhere the system ends the process, and a temporary file may remain.
#[cfg(not(unix))]
pub(crate) fn guard() {}

#[cfg(not(unix))]
pub(crate) fn stop_in_order() {}

#[cfg(not(unix))]
pub(crate) fn stopped() -> Option<i32> {
    None
}

#[cfg(not(unix))]
pub(crate) fn instead(_stop: impl Fn() + Send + Sync + 'static, _reload: impl Fn() + Send + Sync + 'static) {}

#[cfg(unix)]
mod unix {
    use bulla_files::Unfinished;
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use std::fs::File;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
    use std::sync::{Once, OnceLock};

    type Action = Box<dyn Fn() + Send + Sync>;

    /// What signals do to a command that runs until it is stopped.
    struct Instead {
        stop: Stop,
        reload: Action,
    }

    enum Stop {
        /// This is done.
        By(Action),
        /// The work asks [`stopped`] again and again; SIGHUP too stops it.
        InOrder,
    }

    static INSTEAD: OnceLock<Instead> = OnceLock::new();

    /// Has the first signal stop a command that ends by itself then; the second one ends the
    /// process as ever. SIGHUP only reloads.
    pub(crate) fn instead(
        stop: impl Fn() + Send + Sync + 'static,
        reload: impl Fn() + Send + Sync + 'static,
    ) {
        // Only one command runs.
        let _ = INSTEAD.set(Instead { stop: Stop::By(Box::new(stop)), reload: Box::new(reload) });
        guard();
    }

    /// The signal that stops the work; 0 if there was none.
    static STOPPED: AtomicI32 = AtomicI32::new(0);

    /// Has the first signal stop a command that can show what it has done so far; the second one
    /// ends the process as ever.
    pub(crate) fn stop_in_order() {
        let _ = INSTEAD.set(Instead { stop: Stop::InOrder, reload: Box::new(|| {}) });
        guard();
    }

    /// The signal that stops the work.
    pub(crate) fn stopped() -> Option<i32> {
        Some(STOPPED.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    /// Starts to watch for signals. Call this before writing anything or asking for a passphrase.
    pub(crate) fn guard() {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            // If this signal is caught, exceeding a limit on file sizes is an error of the write,
            // which cleans up, instead of the end of the process.
            let limit = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
            let signals =
                Signals::new([SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal)));
            if let (Ok(_), Ok(signals)) = (limit, signals) {
                let terminal = File::open("/dev/tty").ok();
                let state = terminal.as_ref().and_then(|terminal| tcgetattr(terminal).ok());
                std::thread::spawn(move || watch(signals, terminal.zip(state)));
            }
        });
    }

    /// Whether the process was started with a signal ignored, as by nohup and shells: then the
    /// signal has no effect. Only Linux reports this; elsewhere the signal ends the process.
    fn is_ignored(signal: i32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        mask >> (signal - 1) & 1 == 1
    }

    /// Waits for a signal, removes unfinished files, restores the terminal and ends the process.
    fn watch(mut signals: Signals, terminal: Option<(File, rustix::termios::Termios)>) {
        let mut was_stopped = false;
        let ending = signals.forever().find(|signal| match INSTEAD.get() {
            Some(Instead { stop: Stop::By(_), reload }) if *signal == SIGHUP => {
                reload();
                false
            }
            Some(Instead { stop, .. }) if !was_stopped => {
                match stop {
                    Stop::By(stop) => stop(),
                    Stop::InOrder => STOPPED.store(*signal, Ordering::Relaxed),
                }
                was_stopped = true;
                false
            }
            _ => true,
        });
        let Some(signal) = ending else { return };
        let unfinished = Unfinished::lock();
        for path in unfinished.paths() {
            let _ = std::fs::remove_file(path);
        }
        if let Some((terminal, state)) = terminal {
            let _ = tcsetattr(&terminal, OptionalActions::Now, &state);
        }
        std::process::exit(128 + signal);
    }
}
