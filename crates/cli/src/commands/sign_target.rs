//! The signature file of a path: where it goes, whether it can be written there, and what the
//! previous one says.

use crate::args::{SignArgs, SignatureFormat};
use crate::error::{Error, Result};
use crate::files::atomic::{check_folder_of, check_replaceable};
use crate::files::read::{Links, ReadError, Source};
use crate::files::{STDIN, sidecar};
use crate::folder;
use crate::store::Keys;
use crate::trust::check_usable;
use bulla_files::escape_path;
use bulla_files::folder_of;
use bulla_formats::{ForeignFormat, ForeignSignature};
use bulla_kms::signature::manifest::{self, ManifestPath};
use bulla_kms::{SignatureFile, StatementKind};
use bulla_sums::Rules;
use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
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
                path.metadata()
                    .map_err(|error| Error::from(ReadError::Io(error)).about(escape_path(path)))?;
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
        let description = match format {
            SignatureFormat::Bulla => {
                let is_one = |content: &[u8]| content.starts_with(b"bulla signature v");
                return check_replaceable(output, "a signature file", is_one);
            }
            SignatureFormat::Minisign => "a signature file of minisign",
            SignatureFormat::Ssh => "a signature file of OpenSSH",
            SignatureFormat::Signify => "a signature file of signify",
            SignatureFormat::Jws => "a JSON Web Signature",
            // They may be longer than what is read here, so only their beginning counts.
            SignatureFormat::Dsse => {
                let is_one = |content: &[u8]| ForeignFormat::detect(content) == Some(ForeignFormat::Dsse);
                return check_replaceable(output, "an envelope of DSSE", is_one);
            }
            SignatureFormat::Sigstore | SignatureFormat::Oms => {
                let is_one = |content: &[u8]| ForeignFormat::detect(content) == Some(ForeignFormat::Sigstore);
                return check_replaceable(output, "a bundle of Sigstore", is_one);
            }
        };
        // The secret keys of minisign and signify begin like their signatures.
        check_replaceable(
            output,
            description,
            |content| matches!(ForeignSignature::parse(content), Ok(Some(found)) if format == found.format().into()),
        )
    }
}

/// What is known of a path from the last time that it was signed.
pub(super) struct PreviousSignature {
    pub(super) stamp_file: Option<folder::StampFile>,
    pub(super) stamps: Option<folder::StampCache<'static>>,
}

impl PreviousSignature {
    pub(super) fn of(keys: &dyn Keys, path: &Path, args: &SignArgs) -> Self {
        if args.format != SignatureFormat::Bulla || !path.is_dir() {
            return Self { stamp_file: None, stamps: None };
        }
        let stamp_file = folder::StampFile::for_folder(path);
        let stamps = stamp_file.as_ref().and_then(|file| Self::load_stamps(keys, path, args, file));
        Self { stamp_file, stamps }
    }

    /// What the older signature file says, if one of the user's own keys made it. Anything else
    /// about it is no reason to stop: everything is read then.
    fn load_stamps(
        keys: &dyn Keys,
        path: &Path,
        args: &SignArgs,
        stamp_file: &folder::StampFile,
    ) -> Option<folder::StampCache<'static>> {
        let Ok(Destination::File(signature)) = Destination::of(path, args) else { return None };
        let (file, reader) = open_list(&signature)?;
        if !stamp_file.has(&file.digest) {
            return None;
        }
        let key = keys.key(&file.key.key_id().to_string()).ok()?;
        let version = key.versions.iter().find(|version| version.version == file.key.version())?;
        check_usable(&key, version).ok()?;
        if !file.verify_with(version.public_key.as_ref()?).is_valid() {
            return None;
        }
        let mut reader = manifest::ManifestReader::new(reader);
        let mut entries = folder::PackedEntries::default();
        for entry in reader.by_ref() {
            entries.push(&entry.ok()?);
        }
        let summary = reader.summary();
        let is_whole = (summary.digest, summary.size) == (file.digest, file.size);
        let entries = folder::EntryTable::Packed(entries);
        is_whole.then(|| folder::StampCache::load(stamp_file, &file.digest, entries)).flatten()
    }
}

/// An older signature file of a folder, and its list.
fn open_list(signature: &Path) -> Option<(SignatureFile, BufReader<File>)> {
    let source = Source::open_file(signature, Links::Follow).ok()?;
    let mut reader = BufReader::with_capacity(1 << 16, source.into_file());
    let file = SignatureFile::read_from(&mut reader).ok()?;
    (file.kind == StatementKind::Manifest).then_some((file, reader))
}

/// What the older signature file of a folder lists, if there is one, except what the rules leave
/// out now. The signature is not verified: the list only tells the user what is gone.
pub(super) fn earlier(signature: &Path, rules: Rules) -> folder::EarlierPaths {
    match open_list(signature) {
        None => folder::EarlierPaths::none(),
        Some((_, reader)) => {
            let entries = manifest::ManifestReader::new(reader).map_while(Result::ok);
            let counts = move |path: &ManifestPath| !rules.excludes(path.as_bytes());
            folder::EarlierPaths::new(entries.map(|entry| entry.path).filter(counts))
        }
    }
}
