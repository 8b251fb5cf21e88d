//! `bulla sum`: prints checksums like b3sum and b2sum.

use super::check;
use super::hashing::{Hashing, Output, or_stdin, threads};
use crate::algorithm::Algorithm;
use crate::args::{ReportArgs, SumArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::name::{SumName, shown};
use crate::files::order::in_order;
use crate::files::size::{is_large, total_size};
use crate::output::{JsonError, JsonPath, Out};
use crate::progress::Progress;
use serde::Serialize;
use std::path::Path;

pub(crate) fn run(args: &SumArgs) -> Result<Exit> {
    if args.check {
        let report = ReportArgs { json: args.json, quiet: args.quiet };
        let lines = check::Lines { algorithm: args.algorithm, seek: args.seek };
        return as_b3sum(check::run(&args.files, args.read, lines, report));
    }
    as_b3sum(print_sums(args))
}

/// Turns errors into status 1, like b3sum, except errors about flags that exclude each other.
fn as_b3sum(done: Result<Exit>) -> Result<Exit> {
    match done {
        Ok(Exit::Trouble) => Ok(Exit::Failed),
        Err(error) if !error.is_broken_pipe() && error.code() != "usage" => {
            error.print();
            Ok(Exit::Failed)
        }
        done => done,
    }
}

fn print_sums(args: &SumArgs) -> Result<Exit> {
    let files = or_stdin(&args.files);
    if args.raw && files.len() > 1 {
        return Err(Error::new("many_files", "only one FILE can be given with --raw"));
    }
    let hashing = Hashing::new(args)?;
    let progress = Progress::new(total_size(&files));
    let mut out = Out::new();
    let mut exit = Exit::Ok;
    in_order(
        &files,
        threads(args.read),
        |path| is_large(path),
        |path, pace| hashing.digest(path, pace, &progress),
        |path, result| match result {
            Ok(output) => print(&mut out, args, &hashing, path, output),
            Err(error) => {
                // As in b3sum, an unreadable file fails the command, but not the other files.
                exit = Exit::Failed;
                let error = Error::from(error).about(shown(path));
                progress.suspend(|| error.print());
                if args.json {
                    let error = Some(JsonError::from(&error));
                    return out.json(&JsonLine { error, ..JsonLine::about(path, &hashing) });
                }
                Ok(())
            }
        },
    )?;
    out.flush()?;
    Ok(exit)
}

fn print(out: &mut Out, args: &SumArgs, hashing: &Hashing, path: &Path, output: Output) -> Result<()> {
    if args.raw {
        return pieces(output, hashing.length, |bytes| out.bytes(bytes));
    }
    if args.json {
        let mut hex = String::new();
        pieces(output, hashing.length, |bytes| {
            hex.push_str(&to_hex(bytes));
            Ok(())
        })?;
        return out.json(&JsonLine { digest: Some(hex), ..JsonLine::about(path, hashing) });
    }
    let name = match hashing.algorithm() {
        Algorithm::Blake3 => SumName::new(path),
        // b3sum replaces bytes that are not UTF-8; b2sum writes them.
        _ => SumName::with_all_bytes(path),
    };
    if name.escaped && !args.no_names {
        out.bytes(b"\\")?;
    }
    if args.tag && !args.no_names {
        out.bytes(format!("{} (", hashing.tag()).as_bytes())?;
        out.bytes(&name.text)?;
        out.bytes(b") = ")?;
    }
    pieces(output, hashing.length, |bytes| out.bytes(to_hex(bytes).as_bytes()))?;
    if !args.tag && !args.no_names {
        out.bytes(b"  ")?;
        out.bytes(&name.text)?;
    }
    out.bytes(b"\n")?;
    out.flush_sometimes()
}

/// Passes `length` bytes of output to `each`, in pieces of bounded size.
fn pieces(output: Output, length: u64, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut digest = match output {
        Output::Blake3(digest) => digest,
        Output::Blake2(bytes) => return each(&bytes),
    };
    let mut buffer = [0; 4096];
    let mut left = length;
    while left > 0 {
        let piece = &mut buffer[..left.min(4096) as usize];
        digest.fill(piece);
        each(piece)?;
        left -= piece.len() as u64;
    }
    Ok(())
}

fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The output of `--json` for a file.
#[derive(Serialize)]
struct JsonLine {
    #[serde(flatten)]
    path: JsonPath,
    /// The hash function, unless it is BLAKE3.
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonError>,
}

impl JsonLine {
    fn about(path: &Path, hashing: &Hashing) -> Self {
        let algorithm = hashing.algorithm();
        let algorithm = (algorithm != Algorithm::Blake3).then(|| algorithm.name());
        Self { path: path.into(), algorithm, digest: None, error: None }
    }
}
