//! Handles Ctrl-C, a closed terminal and similar signals: an interrupted command leaves no
//! unfinished file behind, and restores the terminal.

#[cfg(unix)]
pub use unix::{handle_signals_with, stop_gracefully, stop_signal, watch_signals};

#[cfg(not(unix))]
pub use elsewhere::{handle_signals_with, stop_gracefully, stop_signal, watch_signals};

/// The system ends the process, and a temporary file may remain.
#[cfg(not(unix))]
mod elsewhere {
    /// Does nothing.
    pub fn watch_signals() {}

    /// Does nothing.
    pub fn stop_gracefully() {}

    /// No signal stops the work.
    #[must_use]
    pub fn stop_signal() -> Option<i32> {
        None
    }

    /// Does nothing.
    pub fn handle_signals_with(
        _stop: impl Fn() + Send + Sync + 'static,
        _reload: impl Fn() + Send + Sync + 'static,
    ) {
    }
}

#[cfg(unix)]
mod unix {
    use bulla_files::UnfinishedFiles;
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use std::convert::Infallible;
    use std::fs::File;
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
    use std::sync::{Arc, Once, OnceLock, mpsc};
    use std::thread::Builder;

    type Action = Box<dyn Fn() + Send + Sync>;

    /// The effect of signals on a command that handles them itself.
    struct Handlers {
        stop: Stop,
        reload: Action,
    }

    enum Stop {
        /// Calls this.
        With(Action),
        /// The work asks [`stop_signal`] again and again; SIGHUP stops it too.
        Gracefully,
    }

    static HANDLERS: OnceLock<Handlers> = OnceLock::new();

    /// Makes the first signal call `stop`, after which the command ends by itself, and the second
    /// one end the process. SIGHUP calls `reload`.
    pub fn handle_signals_with(
        stop: impl Fn() + Send + Sync + 'static,
        reload: impl Fn() + Send + Sync + 'static,
    ) {
        // Only one command runs.
        let _ = HANDLERS.set(Handlers { stop: Stop::With(Box::new(stop)), reload: Box::new(reload) });
        watch_signals();
    }

    /// The signal that stops the work; 0 if there was none.
    static STOP_SIGNAL: AtomicI32 = AtomicI32::new(0);

    /// Lets a command finish in order after the first signal, to show what it has done so far: it
    /// asks [`stop_signal`]. The second signal ends the process.
    pub fn stop_gracefully() {
        let _ = HANDLERS.set(Handlers { stop: Stop::Gracefully, reload: Box::new(|| {}) });
        watch_signals();
    }

    /// The signal that stops the work.
    pub fn stop_signal() -> Option<i32> {
        Some(STOP_SIGNAL.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    /// Starts to watch for signals. Call this before writing anything or asking for a passphrase.
    pub fn watch_signals() {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            let (catching, caught) = mpsc::channel::<Infallible>();
            // The thread itself catches the signals: if the system has no room for it, they end the
            // process, and do not go unseen.
            let started = Builder::new().spawn(move || {
                // If this signal is caught, exceeding a limit on file sizes is an error of the
                // write, which cleans up, instead of the end of the process.
                let limit = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
                let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal));
                let (Ok(_), Ok(signals)) = (limit, Signals::new(wanted)) else { return };
                let terminal = File::open("/dev/tty").ok();
                let state = terminal.as_ref().and_then(|terminal| tcgetattr(terminal).ok());
                drop(catching);
                watch(signals, terminal.zip(state));
            });
            if started.is_ok() {
                let _ = caught.recv();
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
        let ending = signals.forever().find(|signal| match HANDLERS.get() {
            Some(Handlers { stop: Stop::With(_), reload }) if *signal == SIGHUP => {
                reload();
                false
            }
            Some(Handlers { stop, .. }) if !was_stopped => {
                match stop {
                    Stop::With(stop) => stop(),
                    Stop::Gracefully => STOP_SIGNAL.store(*signal, Ordering::Relaxed),
                }
                was_stopped = true;
                false
            }
            _ => true,
        });
        let Some(signal) = ending else { return };
        let unfinished = UnfinishedFiles::lock();
        for path in unfinished.paths() {
            let _ = std::fs::remove_file(path);
        }
        if let Some((terminal, state)) = terminal {
            let _ = tcsetattr(&terminal, OptionalActions::Now, &state);
        }
        std::process::exit(128 + signal);
    }
}
