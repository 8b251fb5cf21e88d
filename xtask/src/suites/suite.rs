//! The suites. To add one: a variant, its name, its track, and its steps.

use clap::ValueEnum;

use super::{c, go, js, lanes, page, python, runner::Runner, rust, server, tidy};

/// One suite. The suites of a track run in this order, and so does the table at the end. Quick
/// suites that often fail come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Suite {
    /// Formatting, lints, documentation, licenses, style, and the builds without std
    Tidy,
    /// The libraries and xtask itself
    Rust,
    /// The generic unsafe code, under Miri
    Miri,
    /// The keystore
    Kms,
    /// The service, its page in a browser, and clients against it
    Server,
    /// The command `bulla`
    Cli,
    /// The audit of binaries, compared with objdump
    Audit,
    /// The laboratory's own tests
    Lab,
    /// The laboratory's page, in a browser
    Page,
    /// BLAKE3 for Go
    Go,
    /// BLAKE3 for JavaScript
    Js,
    /// The C libraries
    C,
    /// The package for Python
    Python,
    /// The libraries as Windows programs, in Wine
    Windows,
    /// Other processors, emulated
    Lanes,
}

/// Where a suite runs if suites of both tracks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Track {
    /// It uses the test programs of the workspace, or cargo's build folder.
    Main,
    /// It does not use them. It runs in the background, with a build folder of its own.
    Background,
}

impl Suite {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tidy => "tidy",
            Self::Rust => "rust",
            Self::Miri => "miri",
            Self::Kms => "kms",
            Self::Server => "server",
            Self::Cli => "cli",
            Self::Audit => "audit",
            Self::Lab => "lab",
            Self::Page => "page",
            Self::Go => "go",
            Self::Js => "js",
            Self::C => "c",
            Self::Python => "python",
            Self::Windows => "windows",
            Self::Lanes => "lanes",
        }
    }

    pub(super) const fn track(self) -> Track {
        match self {
            Self::Tidy
            | Self::Rust
            | Self::Kms
            | Self::Server
            | Self::Cli
            | Self::Audit
            | Self::Lab
            | Self::Lanes => Track::Main,
            Self::Miri | Self::Page | Self::Go | Self::Js | Self::C | Self::Python | Self::Windows => {
                Track::Background
            }
        }
    }

    /// Why this kind of processor cannot run the suite, if it cannot.
    pub(super) const fn obstacle(self) -> Option<&'static str> {
        match self {
            Self::Windows if !cfg!(target_arch = "x86_64") => Some("Wine runs its programs on x86-64 alone"),
            _ => None,
        }
    }

    pub(super) fn steps(self, runner: &mut Runner<'_>) {
        match self {
            Self::Tidy => tidy::run(runner),
            Self::Rust => rust::libraries(runner),
            Self::Miri => rust::miri(runner),
            Self::Kms => rust::kms(runner),
            Self::Server => server::run(runner),
            Self::Cli => rust::cli(runner),
            Self::Audit => rust::audit(runner),
            Self::Lab => rust::lab(runner),
            Self::Page => page::run(runner),
            Self::Go => go::run(runner),
            Self::Js => js::run(runner),
            Self::C => c::run(runner),
            Self::Python => python::run(runner),
            Self::Windows => rust::windows(runner),
            Self::Lanes => lanes::run(runner),
        }
    }
}
