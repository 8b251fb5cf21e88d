//! Where the signature of a path goes, and whether it can be written there.

use crate::args::{SignArgs, SignatureFormat};
use crate::error::{Error, Result};
use crate::file_name::shown;
use crate::files::STDIN;
use crate::files::atomic::check_folder_of;
use crate::files::atomic::check_replaceable;
use crate::files::read::ReadError;
use crate::files::sidecar;
use crate::minisign;
use bulla_files::folder_of;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The destination of a signature.
pub(super) enum Destination {
    Stdout,
    File(PathBuf),
}

impl Destination {
    /// The destination for a path.
    ///
    /// # Errors
    /// The path has no name.
    pub(super) fn of(path: &Path, args: &SignArgs) -> Result<Self> {
        match &args.output {
            Some(output) if output == Path::new(STDIN) => Ok(Self::Stdout),
            Some(output) => Ok(Self::File(output.clone())),
            None if path == Path::new(STDIN) => Ok(Self::Stdout),
            None => Ok(Self::File(sidecar(path, args.format.extension())?)),
        }
    }

    /// The destinations of all paths, each if there is something to sign and its signature can be
    /// written. This comes before a keystore is made, and before anything is read, which may take
    /// days.
    pub(super) fn ready(args: &SignArgs) -> Vec<Result<Self>> {
        let mut folders = HashSet::new();
        let mut ready = |path: &PathBuf| {
            if path != Path::new(STDIN) {
                path.metadata().map_err(|error| Error::from(ReadError::Io(error)).about(shown(path)))?;
            }
            let destination = Self::of(path, args)?;
            if let Self::File(output) = &destination {
                destination.check_replaceable(args.format)?;
                let folder = folder_of(output).to_owned();
                if !folders.contains(&folder) {
                    check_folder_of(output)?;
                    folders.insert(folder);
                }
            }
            Ok(destination)
        };
        args.paths.iter().map(&mut ready).collect()
    }

    /// Checks that writing a signature would lose nothing: it may replace an older signature of the
    /// same format.
    pub(super) fn check_replaceable(&self, format: SignatureFormat) -> Result<()> {
        let Self::File(output) = self else { return Ok(()) };
        match format {
            SignatureFormat::Bulla => check_replaceable(output, "a signature file", |content| {
                content.starts_with(b"bulla signature v")
            }),
            // The secret keys of minisign and signify begin like their signatures.
            SignatureFormat::Minisign => {
                check_replaceable(output, "a signature file of minisign", |content| {
                    str::from_utf8(content).is_ok_and(|text| minisign::Signature::parse(text).is_ok())
                })
            }
        }
    }
}
