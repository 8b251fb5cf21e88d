//! Hashes files, for `bulla sum` and `bulla check`.

use crate::algorithm::{Algorithm, Blake2};
use crate::args::{ReadArgs, SumArgs};
use crate::error::{Error, Result};
use crate::files::STDIN;
use crate::files::order::Threads;
use crate::files::read::{HashMode, Pace, ReadError, Source};
use crate::progress::Progress;
use bulla_blake3::OutputReader;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The files, or standard input if there are none.
pub(super) fn or_stdin(files: &[PathBuf]) -> Vec<PathBuf> {
    if files.is_empty() { vec![STDIN.into()] } else { files.to_vec() }
}

pub(super) fn threads(read: ReadArgs) -> Threads {
    if read.no_mmap { Threads::One } else { Threads::AtMost(read.num_threads) }
}

/// The options for hashing a file.
pub(super) struct Hashing {
    function: Function,
    /// The number of output bytes.
    pub(super) length: u64,
    /// Whether standard input is available: it is not if the key came from there.
    stdin: Stdin,
}

enum Function {
    /// BLAKE3, with the offset of the first output byte.
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
pub(super) enum Output {
    Blake3(OutputReader),
    Blake2(Vec<u8>),
}

impl Output {
    /// Whether it begins with these bytes; for BLAKE2, whether it equals them.
    pub(super) fn is(&self, expected: &[u8]) -> bool {
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
    /// A function without a key, with `length` bytes of output from `seek` on; `None` if it has no such output.
    pub(super) fn plain(algorithm: Algorithm, length: u64, seek: u64) -> Option<Self> {
        let function = match algorithm {
            Algorithm::Blake3 => Function::Blake3 { mode: HashMode::Plain, seek },
            _ => {
                let blake2 = Blake2::new(algorithm, usize::try_from(length).ok()?)?;
                (seek == 0).then_some(Function::Blake2 { algorithm, blake2 })?
            }
        };
        Some(Self { function, length, stdin: Stdin::Free })
    }

    pub(super) fn new(args: &SumArgs) -> Result<Self> {
        let algorithm = args.algorithm.unwrap_or(Algorithm::Blake3);
        let length = args.length.unwrap_or(algorithm.default_length() as u64);
        let with = |mode, stdin| Self { function: Function::Blake3 { mode, seek: args.seek }, length, stdin };
        if algorithm != Algorithm::Blake3 && (args.keyed || args.derive_key.is_some() || args.seek > 0) {
            let flags = "--keyed, --derive-key and --seek";
            let message = format!("{flags} work only with blake3, not with {}", algorithm.name());
            return Err(Error::new("usage", message));
        }
        if args.keyed {
            return Ok(with(HashMode::Keyed(read_key()?), Stdin::HeldTheKey));
        }
        if let Some(context) = &args.derive_key {
            return Ok(with(HashMode::derive_key(context), Stdin::Free));
        }
        Self::plain(algorithm, length, args.seek).ok_or_else(|| {
            let (name, most) = (algorithm.name(), algorithm.default_length());
            Error::new("usage", format!("{name} has 1 to {most} output bytes, not {length}"))
        })
    }

    /// Hashes the file at `path`, or standard input for `-`.
    pub(super) fn digest(&self, path: &Path, pace: Pace, progress: &Progress) -> Result<Output, ReadError> {
        let source = if path != Path::new(STDIN) {
            Source::open_any(path)?
        } else if self.stdin == Stdin::HeldTheKey {
            return Err(io::Error::other("in keyed mode, standard input contains the key").into());
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

    pub(super) fn algorithm(&self) -> Algorithm {
        match self.function {
            Function::Blake3 { .. } => Algorithm::Blake3,
            Function::Blake2 { algorithm, .. } => algorithm,
        }
    }

    /// The tag. For BLAKE2 with a shortened digest, it has the number of bits, as in b2sum.
    pub(super) fn tag(&self) -> String {
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
