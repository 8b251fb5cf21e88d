//! `bulla sum --tree`: one digest for a whole folder.

use super::hashing::threads;
use super::walking::{report, stdout_file};
use crate::args::SumArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::interrupt;
use crate::output::{Display, JsonError, JsonPath, Out};
use crate::progress::{Progress, Total};
use bulla_files::escape_path;
use bulla_sums::{
    Algorithm, EscapedName, LineEnding, PoolOptions, TREE_TAG, Threads, TreeDigest, TreeError, tree_digest,
};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The digest of a folder, or the reasons why it has none; `output` is the identity of the file
/// that will take it.
pub(super) fn digest(
    folder: &Path,
    output: Option<(u64, u64)>,
    threads: Threads,
    progress: &Progress,
) -> Result<TreeDigest, Vec<Error>> {
    let plan = PoolOptions { threads, meter: progress, on_large: &interrupt::stop_gracefully };
    let error = |error| match error {
        TreeError::Walk(error) => report(&error),
        TreeError::Read(path, error) => Error::from(error).about(escape_path(&path)),
        TreeError::Output(path) => {
            let message = "takes the output, so the digest of a folder that it is in would never match";
            Error::new("inside", message)
                .about(escape_path(&path))
                .hint("write the output to a file outside of the folder")
        }
    };
    tree_digest(folder, output, &plan).map_err(|errors| errors.into_iter().map(error).collect())
}

pub(super) fn print(args: &SumArgs, folders: &[PathBuf]) -> Result<Exit> {
    let progress = Progress::of(Total::default(), args.read.work.progress);
    let mut out = Out::stdout();
    let mut exit = Exit::Ok;
    let display = Display::of_stdout();
    let output = stdout_file();
    for folder in folders {
        match digest(folder, output, threads(args.read), &progress) {
            Ok(digest) => line(&mut out, args, folder, &digest, display)?,
            Err(errors) => {
                exit = Exit::Mismatch;
                progress.suspend(|| errors.iter().for_each(Error::print));
                if args.json {
                    let error = errors.first().map(JsonError::from);
                    out.json(&JsonTree { path: folder.as_path().into(), tree: None, error })?;
                }
            }
        }
        out.flush_sometimes()?;
    }
    out.flush()?;
    Ok(exit)
}

fn line(out: &mut Out, args: &SumArgs, folder: &Path, digest: &TreeDigest, display: Display) -> Result<()> {
    let hex = digest.hash.to_hex();
    if args.json {
        let tree = JsonDigest {
            algorithm: TREE_TAG,
            digest: hex.to_string(),
            entries: digest.entries,
            bytes: digest.bytes,
        };
        return out.json(&JsonTree { path: folder.into(), tree: Some(tree), error: None });
    }
    let ending = if args.zero { LineEnding::Zero } else { LineEnding::LineFeed };
    if !args.no_names {
        let raw = folder.as_os_str().as_encoded_bytes();
        let name = match ending {
            LineEnding::Zero => EscapedName { text: raw.to_owned(), escaped: false },
            LineEnding::LineFeed => EscapedName::new(raw, Algorithm::Blake3),
        };
        let mark = if name.escaped { "\\" } else { "" };
        out.bytes(format!("{mark}{TREE_TAG} (").as_bytes())?;
        out.bytes(&display.of(&name.text))?;
        out.bytes(b") = ")?;
    }
    out.bytes(hex.as_bytes())?;
    out.bytes(&[ending.byte()])
}

/// The output of `--json` for a folder.
#[derive(Serialize)]
struct JsonTree {
    #[serde(flatten)]
    path: JsonPath,
    #[serde(flatten)]
    tree: Option<JsonDigest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonError>,
}

#[derive(Serialize)]
struct JsonDigest {
    algorithm: &'static str,
    digest: String,
    entries: u64,
    bytes: u64,
}
