//! Shows the progress of long work on standard error: bytes, files, speed, remaining time and the
//! current file. People see a line on their terminal; programs may ask for JSON Lines.

#[cfg(feature = "sums")]
use crate::interrupt;
use crate::output::{JsonPath, json_line};
use bulla_files::escape_path;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{IsTerminal, Write as _};
#[cfg(feature = "sums")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shorter work shows no progress: a bar that only flashes is noise.
const START_DELAY: Duration = Duration::from_millis(500);

/// The milliseconds between two reports.
const REPORT_INTERVAL: u64 = 500;

/// The values of `--progress`: when progress is shown, and in which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ShowProgress {
    /// A line that is drawn again and again, if standard error is a terminal and the work takes
    /// more than half a second
    #[default]
    Auto,
    /// JSON Lines on standard error, twice a second
    Json,
    /// None
    Never,
}

/// The work to do, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Total {
    /// The bytes to read.
    pub bytes: Option<u64>,
    /// The files to read.
    pub files: Option<u64>,
}

/// Counts what was read. Threads share one.
pub struct Progress {
    view: Option<View>,
}

struct View {
    form: ProgressForm,
    total: Mutex<Total>,
    bytes: AtomicU64,
    files: AtomicU64,
    current: Mutex<PathBuf>,
    start: Instant,
    /// When the last report was, in milliseconds since the start.
    reported: AtomicU64,
}

enum ProgressForm {
    Bar { bar: ProgressBar, drawn: AtomicBool },
    Json,
}

/// The output of `--progress json`, one line each.
#[derive(Serialize)]
struct JsonProgress {
    progress: Numbers,
}

#[derive(Serialize)]
struct Numbers {
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_bytes: Option<u64>,
    files: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_files: Option<u64>,
    bytes_per_second: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<u64>,
    seconds: f64,
    #[serde(flatten)]
    path: JsonPath,
    done: bool,
}

impl Progress {
    /// Progress towards `bytes` bytes. Without a total, it shows a counter, but no remaining time.
    pub fn new(bytes: Option<u64>) -> Self {
        Self::of(Total { bytes, files: None }, ShowProgress::Auto)
    }

    /// Progress that nobody sees.
    pub fn hidden() -> Self {
        Self { view: None }
    }

    /// Progress towards a total, in the form that the user wants.
    pub fn of(total: Total, show: ShowProgress) -> Self {
        let form = match show {
            ShowProgress::Never => return Self::hidden(),
            ShowProgress::Json => ProgressForm::Json,
            ShowProgress::Auto if !std::io::stderr().is_terminal() => return Self::hidden(),
            ShowProgress::Auto => {
                let bar = ProgressBar::with_draw_target(total.bytes, ProgressDrawTarget::hidden());
                ProgressForm::Bar { bar: bar.with_style(style(total)), drawn: AtomicBool::new(false) }
            }
        };
        let view = View {
            form,
            total: Mutex::new(total),
            bytes: AtomicU64::new(0),
            files: AtomicU64::new(0),
            current: Mutex::new(PathBuf::new()),
            start: Instant::now(),
            reported: AtomicU64::new(0),
        };
        Self { view: Some(view) }
    }

    /// Whether progress is shown unless the user says otherwise. If not, finding a total would be
    /// wasted work.
    pub fn is_wanted() -> bool {
        std::io::stderr().is_terminal()
    }

    /// Whether this one is shown.
    pub fn is_shown(&self) -> bool {
        self.view.is_some()
    }

    /// Sets the total when it becomes known.
    pub fn set_total(&self, total: Total) {
        let Some(view) = &self.view else { return };
        *view.total.lock().unwrap_or_else(PoisonError::into_inner) = total;
        if let (ProgressForm::Bar { bar, .. }, Some(bytes)) = (&view.form, total.bytes) {
            bar.set_style(style(total));
            bar.set_length(bytes);
        }
    }

    /// Adds `bytes` that were read.
    pub fn add(&self, bytes: u64) {
        let Some(view) = &self.view else { return };
        view.bytes.fetch_add(bytes, Ordering::Relaxed);
        view.report_sometimes();
    }

    /// Runs `print` while the bar is hidden.
    pub fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        match self.view.as_ref().map(|view| &view.form) {
            Some(ProgressForm::Bar { bar, .. }) => bar.suspend(print),
            _ => print(),
        }
    }
}

fn style(total: Total) -> ProgressStyle {
    let template = match total.bytes {
        Some(_) => "{bar:20} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left  {wide_msg}",
        None => "{spinner} {bytes}  {bytes_per_sec}  {wide_msg}",
    };
    ProgressStyle::with_template(template).expect("the template is well formed")
}

#[cfg(feature = "sums")]
impl bulla_sums::Meter for Progress {
    fn add_bytes(&self, bytes: u64) {
        Self::add(self, bytes);
    }

    fn set_current_file(&self, path: &Path) {
        let Some(view) = &self.view else { return };
        path.clone_into(&mut view.current.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn wants_names(&self) -> bool {
        self.view.is_some()
    }

    fn add_files(&self, files: u64) {
        let Some(view) = &self.view else { return };
        view.files.fetch_add(files, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        interrupt::stop_signal().is_some()
    }
}

impl View {
    fn report_sometimes(&self) {
        let now = self.start.elapsed().as_millis() as u64;
        let last = self.reported.load(Ordering::Relaxed);
        // A bar moves more often than programs want to hear of it.
        let interval =
            if matches!(self.form, ProgressForm::Json) { REPORT_INTERVAL } else { REPORT_INTERVAL / 5 };
        if now < last + interval
            || self.reported.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        match &self.form {
            ProgressForm::Json => self.report_json(false),
            ProgressForm::Bar { bar, drawn } => {
                if self.start.elapsed() > START_DELAY && !drawn.swap(true, Ordering::Relaxed) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                }
                let files = self.files.load(Ordering::Relaxed);
                let path = escape_path(&self.current.lock().unwrap_or_else(PoisonError::into_inner));
                bar.set_message(format!("{files} files  {path}"));
                bar.set_position(self.bytes.load(Ordering::Relaxed));
            }
        }
    }

    fn report_json(&self, done: bool) {
        let total = *self.total.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = self.start.elapsed().as_secs_f64();
        let bytes = self.bytes.load(Ordering::Relaxed);
        let speed = bytes as f64 / seconds.max(0.001);
        let left = total.bytes.filter(|_| bytes > 0).map(|total| total.saturating_sub(bytes) as f64 / speed);
        let path = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let progress = Numbers {
            bytes,
            total_bytes: total.bytes,
            files: self.files.load(Ordering::Relaxed),
            total_files: total.files,
            bytes_per_second: speed as u64,
            seconds_left: left.map(|left| left.ceil() as u64),
            seconds: (seconds * 1000.0).round() / 1000.0,
            path: path.as_path().into(),
            done,
        };
        // If standard error is closed, nobody wants to know.
        let _ = std::io::stderr().write_all(&json_line(&JsonProgress { progress }));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        match self.view.as_ref().map(|view| (&view.form, view)) {
            Some((ProgressForm::Bar { bar, .. }, _)) => bar.finish_and_clear(),
            Some((ProgressForm::Json, view)) => view.report_json(true),
            None => {}
        }
    }
}
