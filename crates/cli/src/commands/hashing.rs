//! How files are hashed, for `bulla sum` and `bulla check`.

use crate::algorithm::Algorithm;
use crate::args::{ReadArgs, SumArgs};
use crate::error::{Error, Result};
use crate::files::STDIN;
use crate::files::read::Threads;
use bulla_sums::{Dash, HashMode, HashParams};
use std::io::{self, Read};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// The files, or standard input if there are none.
pub(super) fn or_stdin(files: &[PathBuf]) -> Vec<PathBuf> {
    if files.is_empty() { vec![STDIN.into()] } else { files.to_vec() }
}

pub(super) fn threads(read: ReadArgs) -> Threads {
    if read.no_mmap { Threads::One } else { read.work.threads() }
}

/// The function that the flags ask for, and what `-` means: not a file's content, if the key came
/// from standard input.
pub(super) fn hashing(args: &SumArgs) -> Result<(HashParams, Dash)> {
    let algorithm = args.algorithm.unwrap_or(Algorithm::Blake3);
    let length = args.length.unwrap_or(algorithm.default_length() as u64);
    if algorithm != Algorithm::Blake3 && (args.keyed || args.derive_key.is_some() || args.seek > 0) {
        let flags = "--keyed, --derive-key and --seek";
        let message = format!("{flags} work only with blake3, not with {}", algorithm.name());
        return Err(Error::new("usage", message));
    }
    if args.keyed {
        let mode = HashMode::Keyed(read_key()?);
        return Ok((HashParams::blake3(mode, length, args.seek), Dash::StdinHeldTheKey));
    }
    if let Some(context) = &args.derive_key {
        let mode = HashMode::derive_key(context);
        return Ok((HashParams::blake3(mode, length, args.seek), Dash::Stdin));
    }
    let hashing = HashParams::plain(algorithm, length, args.seek).ok_or_else(|| {
        let (name, most) = (algorithm.name(), algorithm.default_length());
        let range = match algorithm {
            Algorithm::Sha256 | Algorithm::Sha512 => format!("{most}"),
            _ => format!("1 to {most}"),
        };
        Error::new("usage", format!("{name} has {range} output bytes, not {length}"))
    })?;
    Ok((hashing, Dash::Stdin))
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
