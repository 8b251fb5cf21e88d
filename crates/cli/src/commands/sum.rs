//! `bulla sum`: checksums as b3sum prints them.

use crate::args::{ReadArgs, SumArgs};
use crate::commands::check;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::STDIN;
use crate::files::name::{SumName, shown};
use crate::files::order::{Threads, in_order};
use crate::files::read::{Digested, HashMode, Pace, ReadError, Source};
use crate::files::size::{is_large, total_size};
use crate::output::{JsonError, JsonPath, Out};
use crate::progress::Progress;
use bulla_blake3::OutputReader;
use serde::Serialize;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

pub(crate) fn run(args: &SumArgs) -> Result<Exit> {
    if args.check {
        let report = crate::args::ReportArgs { json: args.json, quiet: args.quiet };
        return check::run(&args.files, args.read, args.seek, report);
    }
    let files = or_stdin(&args.files);
    if args.raw && files.len() > 1 {
        return Err(Error::new("usage", "only one FILE can be given with --raw"));
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
            Ok(digested) => print(&mut out, args, path, digested.output),
            Err(error) => {
                // As with b3sum, a file that cannot be read fails the command and not the other files.
                exit = Exit::Failed;
                let error = Error::from(error).about(shown(path));
                progress.suspend(|| error.print());
                if args.json { out.json(&JsonLine::error(path, &error)) } else { Ok(()) }
            }
        },
    )?;
    out.flush()?;
    Ok(exit)
}

/// The files, or standard input when there are none.
pub(crate) fn or_stdin(files: &[PathBuf]) -> Vec<PathBuf> {
    if files.is_empty() { vec![STDIN.into()] } else { files.to_vec() }
}

pub(crate) fn threads(read: ReadArgs) -> Threads {
    if read.no_mmap { Threads::One } else { Threads::AtMost(read.num_threads) }
}

/// How the bytes of a file become a digest.
pub(crate) struct Hashing {
    pub(crate) mode: HashMode,
    /// The first byte of the output.
    pub(crate) seek: u64,
    /// Whether standard input is free: not when the key came from there.
    stdin: Stdin,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stdin {
    Free,
    HeldTheKey,
}

impl Hashing {
    /// The plain mode.
    pub(crate) fn plain(seek: u64) -> Self {
        Self { mode: HashMode::Plain, seek, stdin: Stdin::Free }
    }

    fn new(args: &SumArgs) -> Result<Self> {
        let plain = Self::plain(args.seek);
        if args.keyed {
            return Ok(Self { mode: HashMode::Keyed(read_key()?), stdin: Stdin::HeldTheKey, ..plain });
        }
        match &args.derive_key {
            Some(context) => Ok(Self { mode: HashMode::derive_key(context), ..plain }),
            None => Ok(plain),
        }
    }

    /// Hashes the file at `path`, or standard input for `-`.
    pub(crate) fn digest(&self, path: &Path, pace: Pace, progress: &Progress) -> Result<Digested, ReadError> {
        let mut digested = if path != Path::new(STDIN) {
            Source::open_any(path)?.digest(&self.mode, pace, progress)?
        } else if self.stdin == Stdin::HeldTheKey {
            return Err(io::Error::other("standard input holds the key in keyed mode").into());
        } else {
            Source::stdin()?.digest(&self.mode, pace, progress)?
        };
        digested.output.set_position(self.seek);
        Ok(digested)
    }
}

/// Reads the key of the keyed mode: exactly 32 bytes.
fn read_key() -> Result<Zeroizing<[u8; bulla_blake3::KEY_LEN]>> {
    let mut bytes = Zeroizing::new([0; bulla_blake3::KEY_LEN + 1]);
    let mut len = 0;
    let mut stdin = io::stdin().lock();
    while len < bytes.len() {
        match stdin.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("cannot read the key", &error).about("standard input")),
        }
    }
    let found = if len > bulla_blake3::KEY_LEN { "more".to_owned() } else { len.to_string() };
    let mut key = Zeroizing::new([0; bulla_blake3::KEY_LEN]);
    key.copy_from_slice(&bytes[..bulla_blake3::KEY_LEN]);
    match len == bulla_blake3::KEY_LEN {
        true => Ok(key),
        false => {
            Err(Error::new("usage", format!("expected a key of 32 bytes, found {found}"))
                .about("standard input"))
        }
    }
}

fn print(out: &mut Out, args: &SumArgs, path: &Path, digest: OutputReader) -> Result<()> {
    if args.raw {
        return pieces(digest, args.length, |bytes| out.bytes(bytes));
    }
    if args.json {
        let mut hex = String::new();
        pieces(digest, args.length, |bytes| {
            hex.push_str(&to_hex(bytes));
            Ok(())
        })?;
        return out.json(&JsonLine { path: path.into(), digest: Some(hex), error: None });
    }
    let name = SumName::new(path);
    if name.escaped && !args.no_names {
        out.bytes(b"\\")?;
    }
    let (before, after) = match (args.no_names, args.tag) {
        (true, _) => (String::new(), String::new()),
        (false, true) => (format!("BLAKE3 ({}) = ", name.text), String::new()),
        (false, false) => (String::new(), format!("  {}", name.text)),
    };
    out.bytes(before.as_bytes())?;
    pieces(digest, args.length, |bytes| out.bytes(to_hex(bytes).as_bytes()))?;
    out.bytes(after.as_bytes())?;
    out.bytes(b"\n")?;
    out.flush_sometimes()
}

/// Hands `length` bytes of output to `each`, a bounded piece at a time.
fn pieces(mut digest: OutputReader, length: u64, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
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

/// What `--json` prints for a file.
#[derive(Serialize)]
struct JsonLine {
    #[serde(flatten)]
    path: JsonPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonError>,
}

impl JsonLine {
    fn error(path: &Path, error: &Error) -> Self {
        Self { path: path.into(), digest: None, error: Some(error.into()) }
    }
}
