//! What the commands that verify audit logs share: whose checkpoints count, checkpoints in files,
//! and how problems are printed.

use crate::args::KeystoreArgs;
use crate::color;
use crate::error::{Error, Result};
use crate::file_name::shown;
use crate::output::Out;
use crate::store::KeySource;
use crate::trust::GivenKey;
use bulla_keystore::audit_log::checkpoint_key;
use bulla_kms::audit_log::{Checkpoint, Problem};
use bulla_kms::{Attestation, KeyVersionId, PublicKey};
use std::path::{Path, PathBuf};

/// Longer than any file that is read completely here.
const MAX_FILE: u64 = 1 << 20;

/// The keys whose checkpoints count.
pub enum Trust {
    Keystore(Attestation),
    Given(Box<GivenKey>),
}

impl Trust {
    pub(super) fn new(public_key: Option<&str>, keystore: &KeystoreArgs) -> Result<Self> {
        match public_key {
            Some(text) => Ok(Self::Given(Box::new(GivenKey::read(text)?))),
            None => Ok(Self::Keystore(KeySource::existing(keystore)?.log_key()?)),
        }
    }

    pub fn find(&self, id: &KeyVersionId) -> Option<PublicKey> {
        match self {
            Self::Keystore(key) => checkpoint_key(key, id),
            Self::Given(given) => given.for_id(id),
        }
    }
}

pub fn print_problems(out: &mut Out, folder: &Path, problems: &[Problem]) -> Result<()> {
    let bad = out.style(color::BAD);
    problems.iter().try_for_each(|problem| {
        let (file, word) = (shown(&folder.join(&problem.file)), problem.kind.as_str());
        out.line(format_args!("{file}, line {}: {bad}{word}{bad:#} ({})", problem.line, problem.message))
    })
}

pub fn read_checkpoints(paths: &[PathBuf]) -> Result<Vec<Checkpoint>> {
    paths.iter().map(|path| read_checkpoint(path)).collect()
}

pub(super) fn read_checkpoint(path: &Path) -> Result<Checkpoint> {
    let text = read_text(path)?;
    text.parse().map_err(|error: bulla_kms::KmsError| Error::from(error).about(shown(path)))
}

pub(super) fn read_text(path: &Path) -> Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let cannot = |error| Error::io("cannot read", &error).about(shown(path));
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(MAX_FILE).read_to_string(&mut text).map_err(cannot)?;
    Ok(text)
}
