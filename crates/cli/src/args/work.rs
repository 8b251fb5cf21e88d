//! The flags of commands that read many files.

use crate::files::order::Threads;
use crate::idle::Priority;
use crate::progress::ShowProgress;
use clap::Args;

/// Threads, priority and progress.
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Work")]
pub(crate) struct WorkArgs {
    /// The maximum number of threads; 0 means RAYON_NUM_THREADS, or else the number of processors
    #[arg(
        short = 'j',
        long,
        visible_alias = "jobs",
        value_name = "NUM",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) num_threads: usize,

    /// Run at idle CPU and I/O priority: all other programs go first
    #[arg(long)]
    pub(crate) idle: bool,

    /// Show how far the work is: bytes, files, speed, time left and the current file
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ShowProgress::Auto, hide_default_value = true)]
    pub(crate) progress: ShowProgress,
}

impl WorkArgs {
    /// The priority of the process.
    pub(crate) fn priority(self) -> Priority {
        if self.idle { Priority::Idle } else { Priority::Normal }
    }

    /// The number of threads.
    pub(crate) fn threads(self) -> Threads {
        Threads::AtMost(self.num_threads)
    }
}
