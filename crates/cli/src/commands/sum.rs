//! `bulla sum`: checksums as b3sum and b2sum print them.

use crate::algorithm::{Algorithm, Blake2};
use crate::args::{ReadArgs, SumArgs};
use crate::commands::check;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::STDIN;
use crate::files::name::{SumName, shown};
use crate::files::order::{Threads, in_order};
use crate::files::read::{HashMode, Pace, ReadError, Source};
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
        let lines = check::Lines { algorithm: args.algorithm, seek: args.seek };
        return as_b3sum(check::run(&args.files, args.read, lines, report));
    }
    as_b3sum(print_sums(args))
}

/// What goes wrong is status 1, as with b3sum, but for flags that exclude each other.
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
                // As with b3sum, a file that cannot be read fails the command and not the other files.
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

/// The files, or standard input when there are none.
pub(crate) fn or_stdin(files: &[PathBuf]) -> Vec<PathBuf> {
    if files.is_empty() { vec![STDIN.into()] } else { files.to_vec() }
}

pub(crate) fn threads(read: ReadArgs) -> Threads {
    if read.no_mmap { Threads::One } else { Threads::AtMost(read.num_threads) }
}

/// How the bytes of a file become a digest.
pub(crate) struct Hashing {
    function: Function,
    /// Bytes of output.
    length: u64,
    /// Whether standard input is free: not when the key came from there.
    stdin: Stdin,
}

enum Function {
    /// BLAKE3, with the first byte of the output.
    Blake3 {
        mode: HashMode,
        seek: u64,
    },
    Blake2 {
        algorithm: Algorithm,
        blake2: Blake2,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stdin {
    Free,
    HeldTheKey,
}

/// The output of a hash function.
pub(crate) enum Output {
    Blake3(OutputReader),
    Blake2(Vec<u8>),
}

impl Output {
    /// Whether it begins with these bytes, or is all of them.
    pub(crate) fn is(&self, expected: &[u8]) -> bool {
        match self {
            Self::Blake3(output) => {
                let mut bytes = vec![0; expected.len()];
                output.clone().fill(&mut bytes);
                bytes == expected
            }
            Self::Blake2(bytes) => bytes == expected,
        }
    }
}

impl Hashing {
    /// A function without a key, with so many bytes of output from `seek` on; `None` when it has no such output.
    pub(crate) fn plain(algorithm: Algorithm, length: u64, seek: u64) -> Option<Self> {
        let function = match algorithm {
            Algorithm::Blake3 => Function::Blake3 { mode: HashMode::Plain, seek },
            _ => {
                let blake2 = Blake2::new(algorithm, usize::try_from(length).ok()?)?;
                (seek == 0).then_some(Function::Blake2 { algorithm, blake2 })?
            }
        };
        Some(Self { function, length, stdin: Stdin::Free })
    }

    fn new(args: &SumArgs) -> Result<Self> {
        let algorithm = args.algorithm.unwrap_or(Algorithm::Blake3);
        let length = args.length.unwrap_or(algorithm.default_length() as u64);
        let with = |mode, stdin| Self { function: Function::Blake3 { mode, seek: args.seek }, length, stdin };
        if algorithm != Algorithm::Blake3 && (args.keyed || args.derive_key.is_some() || args.seek > 0) {
            let flags = "--keyed, --derive-key and --seek";
            return Err(Error::new("usage", format!("{flags} are for blake3, not for {}", algorithm.name())));
        }
        if args.keyed {
            return Ok(with(HashMode::Keyed(read_key()?), Stdin::HeldTheKey));
        }
        if let Some(context) = &args.derive_key {
            return Ok(with(HashMode::derive_key(context), Stdin::Free));
        }
        Self::plain(algorithm, length, args.seek).ok_or_else(|| {
            let (name, most) = (algorithm.name(), algorithm.default_length());
            Error::new("usage", format!("{name} has from 1 to {most} bytes of output, not {length}"))
        })
    }

    /// Hashes the file at `path`, or standard input for `-`.
    pub(crate) fn digest(&self, path: &Path, pace: Pace, progress: &Progress) -> Result<Output, ReadError> {
        let source = if path != Path::new(STDIN) {
            Source::open_any(path)?
        } else if self.stdin == Stdin::HeldTheKey {
            return Err(io::Error::other("standard input holds the key in keyed mode").into());
        } else {
            Source::stdin()?
        };
        match &self.function {
            Function::Blake3 { mode, seek } => {
                let mut output = source.digest(mode, pace, progress)?.output;
                output.set_position(*seek);
                Ok(Output::Blake3(output))
            }
            Function::Blake2 { blake2, .. } => {
                let mut state = blake2.state();
                source.for_each(progress, |bytes| state.update(bytes))?;
                Ok(Output::Blake2(state.finalize()))
            }
        }
    }

    fn algorithm(&self) -> Algorithm {
        match self.function {
            Function::Blake3 { .. } => Algorithm::Blake3,
            Function::Blake2 { algorithm, .. } => algorithm,
        }
    }

    /// The tag: for BLAKE2 with fewer bytes than it has, with their number of bits, as b2sum does.
    fn tag(&self) -> String {
        let algorithm = self.algorithm();
        match algorithm {
            Algorithm::Blake3 => algorithm.tag().to_owned(),
            _ if self.length == algorithm.default_length() as u64 => algorithm.tag().to_owned(),
            _ => format!("{}-{}", algorithm.tag(), 8 * self.length),
        }
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
        false => Err(Error::new("key_length", format!("expected a key of 32 bytes, found {found}"))
            .about("standard input")),
    }
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
        // Where b3sum replaces bytes that are not UTF-8, b2sum writes them.
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

/// Hands `length` bytes of output to `each`, a bounded piece at a time.
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

/// What `--json` prints for a file.
#[derive(Serialize)]
struct JsonLine {
    #[serde(flatten)]
    path: JsonPath,
    /// Unless it is BLAKE3.
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
