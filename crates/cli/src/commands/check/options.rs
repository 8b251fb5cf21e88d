//! What to check, and how, as the flags of two commands say it.

use super::signed::ListSignature;
use crate::algorithm::Algorithm;
use crate::args::{CheckArgs, ReadArgs, ReportArgs, SumArgs};
use crate::commands::hashing::or_stdin;
use crate::commands::walking;
use crate::error::{Error, Result};
use bulla_sums::{Dialect, LineEnding, LineParser, Rules};
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
    /// Changes are written; the lines of missing files stay.
    AreUpdated,
    /// Changes are written; the lines of missing files are removed.
    LoseMissing,
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
    /// The lists that the user names: none means standard input, or a list in its signature.
    pub(super) named: Vec<PathBuf>,
    /// The signature of the only list.
    pub(super) signature: Option<ListSignature>,
    pub(super) dialect: Dialect,
    pub(super) ending: LineEnding,
    /// The function for lines without a tag; `None` decides by the number of digits.
    pub(super) algorithm: Option<Algorithm>,
    /// The first byte of BLAKE3's output.
    pub(super) seek: u64,
    pub(super) read: ReadArgs,
    pub(super) json: bool,
    pub(super) shown: Shown,
    pub(super) missing: Missing,
    pub(super) compare: Vec<PathBuf>,
    /// Which files of the audited folders count.
    pub(super) rules: Rules,
    pub(super) then: Lists,
}

impl Options {
    /// Those of `bulla sum --check`, which is as strict as b3sum.
    pub(crate) fn of_sum(args: &SumArgs) -> Self {
        Self {
            lists: or_stdin(&args.files),
            named: args.files.clone(),
            signature: None,
            dialect: Dialect::B3sum,
            ending: ending(args.zero),
            algorithm: args.algorithm,
            seek: args.seek,
            read: args.read,
            json: args.json,
            shown: if args.quiet { Shown::Problems } else { Shown::All },
            missing: Missing::Fails,
            compare: Vec::new(),
            rules: Rules::default(),
            then: Lists::Stay,
        }
    }

    /// Those of `bulla check`.
    ///
    /// # Errors
    /// A flag that is not possible.
    pub(crate) fn of_check(args: &CheckArgs) -> Result<Self> {
        let ReportArgs { json, quiet } = args.report;
        if let (Some(flag), true) = (args.filters.first(), args.compare.is_empty()) {
            let message = format!("{flag} chooses files of a folder: it needs --compare FOLDER");
            return Err(Error::new("usage", message));
        }
        Ok(Self {
            lists: or_stdin(&args.files),
            named: args.files.clone(),
            signature: ListSignature::of(args)?,
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
            compare: args.compare.clone(),
            rules: walking::rules(&args.filters)?,
            then: match () {
                () if args.remove_missing => Lists::LoseMissing,
                () if args.update => Lists::AreUpdated,
                () => Lists::Stay,
            },
        })
    }

    /// How the lines of a list are read.
    pub(super) fn reader(&self, list: &Path) -> LineParser {
        // BLAKE3 alone has output further on.
        let algorithm = self.algorithm.or((self.seek > 0).then_some(Algorithm::Blake3));
        LineParser { dialect: self.dialect, ending: self.ending, algorithm, likely: named(list) }
    }
}

/// The function that a list's name tells.
pub(super) fn named(list: &Path) -> Option<Algorithm> {
    let name = list.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let names = [
        ("sha256", Algorithm::Sha256),
        ("sha512", Algorithm::Sha512),
        ("blake2b", Algorithm::Blake2b),
        ("b2sum", Algorithm::Blake2b),
        ("blake3", Algorithm::Blake3),
        ("b3sum", Algorithm::Blake3),
    ];
    names.into_iter().find(|(part, _)| name.contains(part)).map(|(_, algorithm)| algorithm)
}

fn ending(zero: bool) -> LineEnding {
    if zero { LineEnding::Zero } else { LineEnding::LineFeed }
}
