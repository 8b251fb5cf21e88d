//! Shows the progress of long work: bytes, rate and remaining time, on standard error, and only if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Shorter work shows no progress: a bar that only flashes is noise.
const QUIET_START: Duration = Duration::from_millis(500);

/// Counts the bytes that were read. Threads share one.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    shown: AtomicBool,
}

impl Progress {
    /// Progress towards `total` bytes. Without a total, it shows a counter, but no remaining time.
    pub(crate) fn new(total: Option<u64>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let template = match total {
                Some(_) => "{bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
                None => "{spinner} {bytes}  {bytes_per_sec}",
            };
            ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden())
                .with_style(ProgressStyle::with_template(template).expect("the template is well formed"))
        });
        Self { bar, shown: AtomicBool::new(false) }
    }

    /// Whether progress is shown. If not, finding a total would be wasted work.
    pub(crate) fn is_wanted() -> bool {
        std::io::stderr().is_terminal()
    }

    /// Adds `bytes` that were read.
    pub(crate) fn add(&self, bytes: u64) {
        let Some(bar) = &self.bar else { return };
        bar.inc(bytes);
        if bar.elapsed() > QUIET_START && !self.shown.swap(true, Ordering::Relaxed) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Runs `print` while the bar is hidden.
    pub(crate) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
