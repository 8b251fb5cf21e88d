//! What `bulla sign` and `verify` leave out of folders.

use crate::args::ExcludeArgs;
use crate::error::{Error, Result};
use crate::file_name::shown;
use bulla_kms::signature::manifest::Exclusion;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The most bytes of a file with patterns.
const MOST: u64 = 1 << 20;

/// The patterns that the flags give, those of files first: of several that match, the last one
/// decides.
pub(super) fn exclusions(args: &ExcludeArgs) -> Result<Vec<Exclusion>> {
    let mut all = Vec::new();
    for path in &args.ignore_file {
        let text = read(path)?;
        let lines = text.lines().map(|line| line.strip_suffix('\r').unwrap_or(line));
        let patterns = lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        for pattern in patterns {
            all.push(Exclusion::new(pattern).map_err(|error| Error::from(error).about(shown(path)))?);
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

fn read(path: &Path) -> Result<String> {
    let about = |error: Error| error.about(shown(path));
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST + 1).read_to_string(&mut text));
    read.map_err(|error| about(Error::io("cannot read the patterns", &error)))?;
    if text.len() as u64 > MOST {
        let message = format!("is too long: a file of patterns has at most {MOST} bytes");
        return Err(about(Error::new("file_too_large", message)));
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
