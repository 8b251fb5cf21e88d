//! When colors are used, and which ones.

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

/// A good result.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// A problem.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// A hint on what to do next.
pub const HINT: Style = AnsiColor::Cyan.on_default();

/// The values of `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "documentation would be help, and the names say it")]
pub enum ColorWhen {
    Auto,
    Always,
    Never,
}

impl ColorWhen {
    /// Decides for the whole process.
    pub fn apply(self) {
        match self {
            // anstream itself checks the terminal, NO_COLOR, CLICOLOR and CLICOLOR_FORCE.
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}
