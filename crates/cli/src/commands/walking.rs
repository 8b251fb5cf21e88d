//! Which files of a folder count: the rules of walks, what signatures leave out, and how much there
//! is to do.

use crate::args::{ExcludeArgs, FilterArgs};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::output::Stdout;
use crate::progress::Total;
use bulla_files::escape_path;
use bulla_kms::signature::manifest::Exclusion;
use bulla_sums::{
    FileBatch, FileKind, FileSystems, FolderPolicy, Helpers, Hidden, Ignored, Job, JobOutcome, Links, Meter,
    PathFeed, PoolOptions, Rules, Stamp, Threads, WalkError, WalkErrorKind, run_in_order,
};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The rules that the flags ask for.
pub(super) fn rules(args: &FilterArgs) -> Result<Rules> {
    let mut rules = Rules::default();
    let usage = |flag: &str, text: String| Error::new("usage", format!("{flag}: {text}"));
    if !args.glob.is_empty() {
        rules.globs(&args.glob).map_err(|error| usage("--glob", error))?;
    }
    if !args.types.is_empty() {
        rules.types(&args.types).map_err(|error| usage("--type", error))?;
    }
    if args.min_size.is_some() || args.max_size.is_some() {
        rules.sizes = Some(args.min_size.unwrap_or(0)..=args.max_size.unwrap_or(u64::MAX));
    }
    rules.ignored = if args.gitignore { Ignored::Skip } else { Ignored::Include };
    rules.links = if args.follow { Links::Follow } else { Links::Refuse };
    rules.file_systems = if args.one_file_system { FileSystems::One } else { FileSystems::All };
    rules.hidden = if args.no_hidden { Hidden::Skip } else { Hidden::Include };
    Ok(rules)
}

/// The error for something that a walk could not look at.
pub(crate) fn report(error: &WalkError) -> Error {
    match &error.kind {
        WalkErrorKind::Folder(error) => Error::io("cannot read the folder", error),
        WalkErrorKind::Entry(error) => Error::io("cannot read its metadata", error),
        WalkErrorKind::PseudoFileSystem => {
            Error::new("not_a_folder", "is a view of the running system, not a folder with permanent files")
                .hint("copy the files you need to another folder")
        }
    }
    .about(escape_path(&error.path))
}

/// Ends a count when the work is done.
pub(super) struct Until<'a>(pub(super) &'a AtomicBool);

impl Meter for Until<'_> {
    fn add_bytes(&self, _bytes: u64) {}

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) || interrupt::stop_signal().is_some()
    }
}

/// The number and the total size of the files that a walk will find, as far as they count; `None`
/// if the work is done before.
pub(super) fn count(
    paths: Vec<PathBuf>,
    rules: &Rules,
    is_counted: &(dyn Fn(&FileBatch, usize) -> bool + Sync),
    until: &Until<'_>,
) -> Option<Total> {
    let work = |job: Job, _: &dyn Helpers| match job {
        Job::Folder(pending) => match pending.list(rules) {
            Ok(listed) => JobOutcome { result: (0, 0), then: Some(listed.jobs) },
            Err(_) => (0, 0).into(),
        },
        Job::Batch(batch) => {
            let stamp = |name| batch.folder().stamp(name, Links::Follow);
            let counted = (0..batch.len()).filter(|index| is_counted(&batch, *index));
            let sizes = counted.map(|index| stamp(batch.name(index)).map_or(0, |stamp| stamp.size));
            sizes.fold((0_u64, 0), |(bytes, files), size| (bytes.saturating_add(size), files + 1)).into()
        }
    };
    let (mut bytes, mut files) = (0_u64, 0);
    let each = |(more_bytes, more_files): (u64, u64)| -> Result<()> {
        bytes = bytes.saturating_add(more_bytes);
        files += more_files;
        Ok(())
    };
    let plan = PoolOptions { threads: Threads::One, meter: until, on_large: &|| {} };
    run_in_order(&plan, Box::new(PathFeed::new(paths.into_iter(), FolderPolicy::Walk)), work, each).ok()?;
    (!until.is_stopped()).then_some(Total { bytes: Some(bytes), files: Some(files) })
}

/// The identity of the file that standard output leads to, if it is one and the system tells.
pub(super) fn stdout_file() -> Option<(u64, u64)> {
    let stamp = Stamp::of(Stdout::open().file()?).ok()?;
    (stamp.kind() == FileKind::File && stamp.identity != (0, 0)).then_some(stamp.identity)
}

/// The maximum length of a file with patterns.
const MAX_PATTERNS_LEN: u64 = 1 << 20;

/// The patterns that the flags give, those of files first: of several that match, the last one
/// decides.
pub(super) fn exclusions(args: &ExcludeArgs) -> Result<Vec<Exclusion>> {
    let mut all = Vec::new();
    for path in &args.ignore_file {
        let text = read_patterns(path)?;
        let lines = text.lines().map(|line| line.strip_suffix('\r').unwrap_or(line));
        let patterns = lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        for pattern in patterns {
            all.push(Exclusion::new(pattern).map_err(|error| Error::from(error).about(escape_path(path)))?);
        }
    }
    for pattern in &args.exclude {
        // In .gitignore it would be a comment.
        let escape = if pattern.starts_with('#') { "\\" } else { "" };
        let exclusion = Exclusion::new(format!("{escape}{pattern}"));
        all.push(exclusion.map_err(|error| Error::new("usage", format!("--exclude: {error}")))?);
    }
    // A malformed pattern is told before anything is read.
    crate::folder::rules(Path::new("."), all.iter()).map(|_| all)
}

fn read_patterns(path: &Path) -> Result<String> {
    let about = |error: Error| error.about(escape_path(path));
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_PATTERNS_LEN + 1).read_to_string(&mut text));
    read.map_err(|error| about(Error::io("cannot read the patterns", &error)))?;
    if text.len() as u64 > MAX_PATTERNS_LEN {
        let message = format!("is too long: a file of patterns has at most {MAX_PATTERNS_LEN} bytes");
        return Err(about(Error::new("file_too_large", message)));
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
