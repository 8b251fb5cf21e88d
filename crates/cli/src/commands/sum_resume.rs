//! `bulla sum --resume`: a list that grows over several runs.

use crate::args::SumArgs;
use crate::error::{Error, Result};
use crate::files::describe;
use bulla_files::escape_path;
use bulla_sums::{Algorithm, EscapedName, FileBatch, HashParams, LineEnding, Links, Stamp, path_from};
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest name: longer than any system's paths.
const LONGEST_NAME: u64 = 1 << 20;

/// The first half of the hash of a name as it is written: two names in one list never have the same
/// one.
type NameHash = [u8; 16];

/// The files that a list names: 16 bytes for each, however long its path is.
///
/// Names are compared as they are written. Without `--zero`, BLAKE3 lists have U+FFFD for bytes
/// that are not UTF-8, so two names that differ only in such bytes are one.
pub(super) struct Listed {
    path: PathBuf,
    format: LineFormat,
    /// Sorted.
    names: Vec<NameHash>,
    /// The list itself is not one of its files.
    itself: Stamp,
    /// How many files were left out because the list names them.
    skipped: AtomicU64,
}

impl Listed {
    /// Reads the list, or begins it, and removes a last line that is not complete. What is written
    /// to the file goes to its end.
    ///
    /// # Errors
    /// Another run has the list; a line is not one that this run would write; any error of the
    /// system.
    pub(super) fn open(path: &Path, args: &SumArgs, hashing: &HashParams) -> Result<(Self, File)> {
        let about = |error: Error| error.about(escape_path(path));
        let cannot = |error: &std::io::Error| about(Error::io("cannot open", error));
        // Opening a fifo would wait.
        if let Ok(metadata) = path.metadata()
            && !metadata.is_file()
        {
            let kind = describe(metadata.file_type());
            return Err(about(Error::new("not_a_file", format!("is {kind}, not a list in a file"))));
        }
        let opened = File::options().read(true).append(true).create(true).open(path);
        let file = opened.map_err(|error| cannot(&error))?;
        // Some file systems have no locks. There, users have to take care themselves.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(about(Error::new("in_use", "another run is writing to it")));
        }
        let itself = Stamp::of(&file).map_err(|error| cannot(&error))?;
        let format = LineFormat::of(args, hashing);
        let (mut names, complete) = format.read(&file).map_err(about)?;
        if complete < itself.size {
            file.set_len(complete).map_err(|error| about(Error::io("cannot write", &error)))?;
        }
        names.sort_unstable();
        let skipped = AtomicU64::new(0);
        Ok((Self { path: path.to_owned(), format, names, itself, skipped }, file))
    }

    /// The places of the files of a batch that the list does not name.
    pub(super) fn others(&self, batch: &FileBatch) -> Vec<usize> {
        (0..batch.len()).filter(|index| !self.has(batch, *index)).collect()
    }

    /// Counts files that were left out.
    pub(super) fn skip(&self, files: usize) {
        self.skipped.fetch_add(files as u64, Ordering::Relaxed);
    }

    /// Whether the list names a file, or is this file.
    pub(super) fn has(&self, batch: &FileBatch, index: usize) -> bool {
        let (folder, name) = (batch.folder(), batch.name(index));
        if self.names.binary_search(&hash_of(&self.format.written(&folder.path_of(name)))).is_ok() {
            return true;
        }
        let is_itself = || {
            let stamp = folder.stamp(name, Links::Follow);
            stamp.is_ok_and(|stamp| stamp.identity == self.itself.identity)
        };
        path_from(name).file_name() == self.path.file_name() && is_itself()
    }

    /// What a run with `files` new files has done, if it is not the first one.
    pub(super) fn summary(&self, files: u64) -> Option<String> {
        let list = escape_path(&self.path);
        let skipped = self.skipped.load(Ordering::Relaxed);
        (!self.names.is_empty()).then(|| format!("{list}: {skipped} were in it, {files} added"))
    }
}

fn hash_of(name: &[u8]) -> NameHash {
    *bulla_blake3::hash(name).as_bytes().first_chunk().expect("a hash has 32 bytes")
}

/// The format of the lines that a run writes.
struct LineFormat {
    algorithm: Algorithm,
    /// What is before a name in a line with a tag.
    tag: Option<Vec<u8>>,
    /// The number of hexadecimal digits.
    digits: usize,
    ending: LineEnding,
}

impl LineFormat {
    fn of(args: &SumArgs, hashing: &HashParams) -> Self {
        Self {
            algorithm: hashing.algorithm(),
            tag: args.tag.then(|| format!("{} (", hashing.tag()).into_bytes()),
            digits: 2 * hashing.length() as usize,
            ending: if args.zero { LineEnding::Zero } else { LineEnding::LineFeed },
        }
    }

    /// The names of a list, and the number of bytes up to the end of its last complete line.
    fn read(&self, file: &File) -> Result<(Vec<NameHash>, u64)> {
        let (mut names, mut complete, mut line) = (Vec::new(), 0, Vec::new());
        let mut input = BufReader::with_capacity(1 << 16, file);
        let longest = LONGEST_NAME + self.digits as u64;
        loop {
            line.clear();
            let len = (&mut input).take(longest).read_until(self.ending.byte(), &mut line);
            let len = len.map_err(|error| Error::io("cannot read", &error))? as u64;
            let is_complete = line.pop_if(|byte| *byte == self.ending.byte()).is_some();
            match self.name(&line) {
                Some(name) if is_complete => names.push(hash_of(&name)),
                // The process or the power failed while this was written.
                _ if !is_complete && len < longest && self.may_begin(&line) => return Ok((names, complete)),
                _ => return Err(malformed(names.len() + 1)),
            }
            complete += len;
        }
    }

    /// A line without the backslash that marks an escaped name, and whether it had one.
    fn unmarked<'a>(&self, line: &'a [u8]) -> (bool, &'a [u8]) {
        match line.strip_prefix(b"\\") {
            Some(rest) if self.ending == LineEnding::LineFeed => (true, rest),
            _ => (false, line),
        }
    }

    /// The name in a line, as it is written.
    fn name(&self, line: &[u8]) -> Option<Vec<u8>> {
        let (is_marked, line) = self.unmarked(line);
        let (name, digits) = match &self.tag {
            Some(tag) => {
                let (rest, digits) = line.split_at_checked(line.len().checked_sub(self.digits)?)?;
                (rest.strip_prefix(&tag[..])?.strip_suffix(b") = ")?, digits)
            }
            None => {
                let (digits, rest) = line.split_at_checked(self.digits)?;
                (rest.strip_prefix(b"  ")?, digits)
            }
        };
        let is_whole = !name.is_empty() && digits.iter().all(is_digit);
        is_whole.then(|| if is_marked { [b"\\", name].concat() } else { name.to_vec() })
    }

    /// Whether a line could begin like this. Anything else is no list of this run, and must not be
    /// cut.
    fn may_begin(&self, line: &[u8]) -> bool {
        let (_, line) = self.unmarked(line);
        let begins = |line: &[u8], with: &[u8]| {
            let len = line.len().min(with.len());
            line[..len] == with[..len]
        };
        match &self.tag {
            Some(tag) => begins(line, tag),
            None => {
                let (digits, rest) = line.split_at(line.len().min(self.digits));
                digits.iter().all(is_digit) && begins(rest, b"  ")
            }
        }
    }

    /// A path as it is written into a line.
    fn written(&self, path: &[u8]) -> Vec<u8> {
        match self.ending {
            LineEnding::Zero => path.to_vec(),
            LineEnding::LineFeed => match EscapedName::new(path, self.algorithm) {
                EscapedName { text, escaped: true } => [b"\\", &text[..]].concat(),
                EscapedName { text, escaped: false } => text,
            },
        }
    }
}

fn is_digit(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn malformed(line: usize) -> Error {
    Error::new(
        "malformed_list",
        format!("line {line} is not one that this command writes; nothing was changed"),
    )
    .hint("use the flags that the list was made with, or name a new list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn format(tag: Option<&str>, ending: LineEnding) -> LineFormat {
        LineFormat { algorithm: Algorithm::Blake3, tag: tag.map(|tag| tag.into()), digits: 4, ending }
    }

    fn read(format: &LineFormat, text: &[u8]) -> Option<(Vec<NameHash>, u64)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        format.read(&file).ok()
    }

    fn names(names: &[&[u8]]) -> Vec<NameHash> {
        names.iter().map(|name| hash_of(name)).collect()
    }

    #[test]
    fn a_list_that_was_cut_anywhere_keeps_its_complete_lines() {
        let plain = (format(None, LineEnding::LineFeed), &b"0123  a\n\\4567  b\\nc\n"[..], &b"\\b\\nc"[..]);
        let zero = (format(None, LineEnding::Zero), &b"0123  a\x004567  b\nc\x00"[..], &b"b\nc"[..]);
        let tagged = (
            format(Some("BLAKE3 ("), LineEnding::LineFeed),
            &b"BLAKE3 (a) = 0123\nBLAKE3 (b) = 1) = 4567\n"[..],
            &b"b) = 1"[..],
        );
        for (format, text, second) in [plain, zero, tagged] {
            let first = text.iter().position(|byte| *byte == format.ending.byte()).unwrap() + 1;
            for len in 0..=text.len() {
                let (found, complete) = read(&format, &text[..len]).unwrap_or_else(|| panic!("{len}"));
                let (lines, end) = match len {
                    _ if len == text.len() => (names(&[b"a", second]), len),
                    _ if len >= first => (names(&[b"a"]), first),
                    _ => (Vec::new(), 0),
                };
                assert_eq!((found, complete), (lines, end as u64), "{len}");
            }
        }
    }

    #[test]
    fn other_files_are_not_taken_for_lists() {
        let plain = format(None, LineEnding::LineFeed);
        for text in
            ["0123  a\n\n", "0123 a\n", "012G  a\n", "0123  \n", "# a\n", "notes", "01234  a\n", "0123\n"]
        {
            assert!(read(&plain, text.as_bytes()).is_none(), "{text:?}");
        }
        assert!(read(&format(Some("BLAKE3 ("), LineEnding::LineFeed), b"0123  a\n").is_none());
        assert!(read(&plain, &[b'0'; 1 << 21]).is_none());
    }

    #[test]
    fn a_path_is_written_as_its_line_has_it() {
        let plain = format(None, LineEnding::LineFeed);
        for path in [&b"a b"[..], b"a\nb", b"a\\b", b"\xff", "\u{e9}".as_bytes()] {
            let name = EscapedName::new(path, Algorithm::Blake3);
            let mark: &[u8] = if name.escaped { b"\\" } else { b"" };
            let line = [mark, b"0123  ", &name.text].concat();
            assert_eq!(plain.name(&line), Some(plain.written(path)), "{path:?}");
        }
    }
}
