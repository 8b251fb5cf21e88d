//! What to check, and how, as the flags of two commands say it.

use crate::algorithm::Algorithm;
use crate::args::{CheckArgs, ReadArgs, ReportArgs, SumArgs};
use crate::commands::hashing::or_stdin;
use bulla_sums::{Dialect, Ending, LineReader};
use std::path::{Path, PathBuf};

/// What to do with files that do not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Fails,
    Skipped,
}

/// What happens with the list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    Stay,
    AreUpdated,
}

/// What is printed about files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    All,
    Problems,
    Nothing,
}

/// What to check, and how.
pub(crate) struct Options {
    pub(super) lists: Vec<PathBuf>,
    pub(super) dialect: Dialect,
    pub(super) ending: Ending,
    /// The function for lines without a tag; `None` decides by the number of digits.
    pub(super) algorithm: Option<Algorithm>,
    /// The first byte of BLAKE3's output.
    pub(super) seek: u64,
    pub(super) read: ReadArgs,
    pub(super) json: bool,
    pub(super) shown: Shown,
    pub(super) missing: Missing,
    pub(super) audit: Vec<PathBuf>,
    pub(super) then: Lists,
}

impl Options {
    /// Those of `bulla sum --check`, which is as strict as b3sum.
    pub(crate) fn of_sum(args: &SumArgs) -> Self {
        Self {
            lists: or_stdin(&args.files),
            dialect: Dialect::B3sum,
            ending: ending(args.zero),
            algorithm: args.algorithm,
            seek: args.seek,
            read: args.read,
            json: args.json,
            shown: if args.quiet { Shown::Problems } else { Shown::All },
            missing: Missing::Fails,
            audit: Vec::new(),
            then: Lists::Stay,
        }
    }

    /// Those of `bulla check`.
    pub(crate) fn of_check(args: &CheckArgs) -> Self {
        let ReportArgs { json, quiet } = args.report;
        Self {
            lists: or_stdin(&args.files),
            dialect: Dialect::Any,
            ending: ending(args.zero),
            algorithm: args.algorithm,
            seek: args.seek,
            read: args.read,
            json,
            shown: match () {
                () if args.status => Shown::Nothing,
                () if quiet => Shown::Problems,
                () => Shown::All,
            },
            missing: if args.ignore_missing { Missing::Skipped } else { Missing::Fails },
            audit: args.audit.clone(),
            then: if args.update { Lists::AreUpdated } else { Lists::Stay },
        }
    }

    /// How the lines of a list are read. The name of a list of SHA-2 checksums usually says so.
    pub(super) fn reader(&self, list: &Path) -> LineReader {
        let name = list.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let named = [("sha256", Algorithm::Sha256), ("sha512", Algorithm::Sha512)];
        let by_name = named.into_iter().find(|(part, _)| self.dialect == Dialect::Any && name.contains(part));
        let algorithm = self.algorithm.or(by_name.map(|(_, algorithm)| algorithm));
        LineReader { dialect: self.dialect, ending: self.ending, algorithm }
    }
}

fn ending(zero: bool) -> Ending {
    if zero { Ending::Zero } else { Ending::LineFeed }
}
