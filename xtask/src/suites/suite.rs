//! The suites. To add one: a variant, and its parts.

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
    /// The module for programs that expect a token, beside SoftHSM
    Pkcs11,
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
    /// Its name, its track, and its steps.
    const fn parts(self) -> (&'static str, Track, fn(&mut Runner<'_>)) {
        match self {
            Self::Tidy => ("tidy", Track::Main, tidy::run),
            Self::Rust => ("rust", Track::Main, rust::libraries),
            Self::Miri => ("miri", Track::Background, rust::miri),
            Self::Kms => ("kms", Track::Main, rust::kms),
            Self::Server => ("server", Track::Main, server::run),
            Self::Cli => ("cli", Track::Main, rust::cli),
            Self::Pkcs11 => ("pkcs11", Track::Main, rust::pkcs11),
            Self::Audit => ("audit", Track::Main, rust::audit),
            Self::Lab => ("lab", Track::Main, rust::lab),
            Self::Page => ("page", Track::Background, page::run),
            Self::Go => ("go", Track::Background, go::run),
            Self::Js => ("js", Track::Background, js::run),
            Self::C => ("c", Track::Background, c::run),
            Self::Python => ("python", Track::Background, python::run),
            Self::Windows => ("windows", Track::Background, rust::windows),
            Self::Lanes => ("lanes", Track::Main, lanes::run),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        self.parts().0
    }

    pub(super) const fn track(self) -> Track {
        self.parts().1
    }

    pub(super) fn steps(self, runner: &mut Runner<'_>) {
        self.parts().2(runner);
    }

    /// Why this kind of processor cannot run the suite, if it cannot.
    pub(super) const fn obstacle(self) -> Option<&'static str> {
        match self {
            Self::Windows if !cfg!(target_arch = "x86_64") => Some("Wine runs its programs on x86-64 alone"),
            _ => None,
        }
    }
}
