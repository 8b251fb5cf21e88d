//! Manifests: the content of a folder, one line for each file and link, sorted.
//!
//! ```text
//! exclude  *.tmp
//! af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262  0  empty.txt
//! link  latest -> releases/7
//! ```
//!
//! A line has the BLAKE3 digest, the size and the path of a file; or the word `link`, the path and
//! the target of a symbolic link, which is recorded and not followed. Before all entries, a line
//! `exclude` has a pattern of what the signer left out, so that a verifier leaves it out as well.
//! [`ManifestPath`] describes the text form of paths. Folders have no lines: an empty folder is not
//! recorded.
//!
//! [`ManifestWriter`] and [`ManifestReader`] hold one line at a time, so that a million entries
//! need no memory, and hash the lines that pass through them. The entries of a reader are
//! authenticated only when, at the end, its digest and size are the signed ones.

use std::io::{BufRead, Read, Write};
use std::str::FromStr;
use std::{fmt, io};

use bulla_blake3::{Hash, Hasher};

use crate::encoding;
use crate::encoding::is_deceptive;
use crate::error::{Code, KmsError, Result};

/// The most bytes of a line: a path and a link's target of 4,096 bytes each, every byte of them
/// escaped.
const MAX_LINE: usize = 64 * 1024;

/// The most patterns of a manifest: each costs time for each file.
const MAX_EXCLUSIONS: usize = 1000;

/// How the line of a pattern begins.
const EXCLUDE: &str = "exclude  ";

/// One line of a manifest. `Display` is the line without its line feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Its place in the folder.
    pub path: ManifestPath,
    /// The entry's kind and content.
    pub content: EntryContent,
}

/// The kind and content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryContent {
    /// A regular file.
    File {
        /// The BLAKE3 digest of its bytes.
        digest: Hash,
        /// Its length in bytes.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// The text of the link.
        target: LinkTarget,
    },
}

impl fmt::Display for ManifestEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            EntryContent::File { digest, size } => write!(f, "{}  {size}  {}", digest.to_hex(), self.path),
            EntryContent::Link { target } => write!(f, "link  {} -> {target}", self.path),
        }
    }
}

impl FromStr for ManifestEntry {
    type Err = KmsError;

    /// Parses a line without its line feed.
    ///
    /// # Errors
    /// [`Code::MalformedManifest`].
    fn from_str(line: &str) -> Result<Self> {
        if let Some(link) = line.strip_prefix("link  ") {
            let (path, target) = link
                .split_once(" -> ")
                .ok_or_else(|| malformed("a link has no \" -> \" before its target"))?;
            return Ok(Self { path: path.parse()?, content: EntryContent::Link { target: target.parse()? } });
        }
        let mut parts = line.splitn(3, "  ");
        let (Some(digest), Some(size), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(malformed("it is not of the form DIGEST, two spaces, SIZE, two spaces, PATH"));
        };
        let digest = encoding::digest(digest)
            .ok_or_else(|| malformed("the digest is not of 64 lower-case hexadecimal digits"))?;
        let bytes: Option<u64> = size.parse().ok();
        let bytes = bytes
            .filter(|bytes| bytes.to_string() == size)
            .ok_or_else(|| malformed("the size is not a decimal number below 2^64 without leading zeros"))?;
        Ok(Self { path: path.parse()?, content: EntryContent::File { digest, size: bytes } })
    }
}

/// The digest and the length of a manifest's body. The signature covers them.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestSummary {
    /// The BLAKE3 digest of the body.
    pub digest: Hash,
    /// The length of the body in bytes.
    pub size: u64,
    /// The number of entries.
    pub entries: u64,
}

/// Hashes the lines and enforces their order.
struct Progress {
    hasher: Hasher,
    size: u64,
    entries: u64,
    exclusions: Vec<Exclusion>,
    last: Option<ManifestPath>,
}

impl Progress {
    fn new() -> Self {
        Self { hasher: Hasher::new(), size: 0, entries: 0, exclusions: Vec::new(), last: None }
    }

    /// Counts a pattern, whose line with its line feed is `line`.
    fn exclude(&mut self, exclusion: Exclusion, line: &[u8]) -> Result<()> {
        if self.entries > 0 {
            return Err(malformed("a pattern of what is left out comes after an entry"));
        }
        if self.exclusions.len() == MAX_EXCLUSIONS {
            return Err(malformed(format!("it leaves out by more than {MAX_EXCLUSIONS} patterns")));
        }
        self.hasher.update(line);
        self.size += line.len() as u64;
        self.exclusions.push(exclusion);
        Ok(())
    }

    /// Counts an entry, whose line with its line feed is `line`.
    fn add(&mut self, entry: &ManifestEntry, line: &[u8]) -> Result<()> {
        match self.last.as_ref().map(|last| last.cmp(&entry.path)) {
            None | Some(std::cmp::Ordering::Less) => {}
            Some(std::cmp::Ordering::Equal) => {
                return Err(malformed(format!("the path {} is there twice", entry.path)));
            }
            Some(std::cmp::Ordering::Greater) => {
                return Err(malformed(format!("the path {} is not in its sorted place", entry.path)));
            }
        }
        self.hasher.update(line);
        self.size += line.len() as u64;
        self.entries += 1;
        self.last = Some(entry.path.clone());
        Ok(())
    }

    fn summary(&self) -> ManifestSummary {
        ManifestSummary { digest: self.hasher.finalize(), size: self.size, entries: self.entries }
    }
}

/// Writes the body of a manifest, entry by entry.
///
/// ```
/// use bulla_kms::signature::manifest::{EntryContent, Exclusion, ManifestEntry};
/// use bulla_kms::signature::manifest::{ManifestPath, ManifestReader, ManifestWriter};
///
/// let mut writer = ManifestWriter::new(Vec::new());
/// writer.exclude(&Exclusion::new("*.tmp")?)?;
/// let content = EntryContent::File { digest: bulla_blake3::hash(b"one"), size: 3 };
/// writer.push(&ManifestEntry { path: ManifestPath::from_bytes("a.txt")?, content })?;
/// let (body, summary) = writer.finish();
///
/// let mut reader = ManifestReader::new(&body[..]);
/// let entries = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(entries[0].path.as_bytes(), b"a.txt");
/// assert_eq!(reader.exclusions(), [Exclusion::new("*.tmp")?]);
/// // Only now, and only if the summary is the signed one, the entries are true.
/// assert_eq!(reader.summary(), summary);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub struct ManifestWriter<W> {
    writer: W,
    progress: Progress,
}

impl<W: Write> ManifestWriter<W> {
    /// Starts a manifest. Each entry is one call to `writer`, which should be buffered.
    pub fn new(writer: W) -> Self {
        Self { writer, progress: Progress::new() }
    }

    /// Writes a pattern of what is left out. All patterns come before the first entry.
    ///
    /// # Errors
    /// [`Code::MalformedManifest`] after an entry, after 1,000
    /// patterns, or if its line is too long; errors of writing.
    pub fn exclude(&mut self, exclusion: &Exclusion) -> Result<()> {
        let line = format!("{EXCLUDE}{exclusion}\n");
        if line.len() > MAX_LINE {
            return Err(malformed(format!("the line of a pattern is longer than {MAX_LINE} bytes")));
        }
        self.progress.exclude(exclusion.clone(), line.as_bytes())?;
        self.write(&line)
    }

    fn write(&mut self, line: &str) -> Result<()> {
        let written = self.writer.write_all(line.as_bytes());
        written.map_err(|error| KmsError::io("cannot write the manifest", error))
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// [`Code::MalformedManifest`] if its path does not sort after
    /// the last one, or its line is too long; errors of writing.
    pub fn push(&mut self, entry: &ManifestEntry) -> Result<()> {
        let line = format!("{entry}\n");
        if line.len() > MAX_LINE {
            return Err(malformed(format!("the line of {} is longer than {MAX_LINE} bytes", entry.path)));
        }
        self.progress.add(entry, line.as_bytes())?;
        self.write(&line)
    }

    /// Ends the manifest. It returns the writer, not flushed, and the summary to sign.
    pub fn finish(self) -> (W, ManifestSummary) {
        (self.writer, self.progress.summary())
    }
}

/// Reads the body of a manifest, entry by entry, as an iterator that ends after the first error.
pub struct ManifestReader<R> {
    reader: R,
    progress: Progress,
    line: Vec<u8>,
    failed: bool,
}

impl<R: BufRead> ManifestReader<R> {
    /// Starts to read at the first line of the body.
    pub fn new(reader: R) -> Self {
        Self { reader, progress: Progress::new(), line: Vec::new(), failed: false }
    }

    /// A summary of the lines read so far. When the iterator has ended without an error, compare it
    /// with the signed summary.
    pub fn summary(&self) -> ManifestSummary {
        self.progress.summary()
    }

    /// The patterns of what the signer left out. They are known once the first entry, or the end,
    /// was read.
    pub fn exclusions(&self) -> &[Exclusion] {
        &self.progress.exclusions
    }

    fn read(&mut self) -> Result<Option<ManifestEntry>> {
        loop {
            match self.read_line()? {
                None => return Ok(None),
                Some(Line::Entry(entry)) => return Ok(Some(entry)),
                Some(Line::Exclusion) => {}
            }
        }
    }

    fn read_line(&mut self) -> Result<Option<Line>> {
        self.line.clear();
        let limit = MAX_LINE as u64;
        (&mut self.reader).take(limit).read_until(b'\n', &mut self.line).map_err(unreadable)?;
        let Some((last, line)) = self.line.split_last() else { return Ok(None) };
        let parsed = if *last == b'\n' {
            parse(line)
        } else if self.line.len() == MAX_LINE {
            Err(malformed(format!("it is longer than {MAX_LINE} bytes")))
        } else {
            Err(malformed("it is cut: there is no line feed at its end"))
        };
        let added = parsed.and_then(|parsed| match parsed {
            Parsed::Entry(entry) => self.progress.add(&entry, &self.line).map(|()| Line::Entry(entry)),
            Parsed::Exclusion(found) => self.progress.exclude(found, &self.line).map(|()| Line::Exclusion),
        });
        added.map(Some).map_err(|error| {
            let line = self.progress.entries + self.progress.exclusions.len() as u64 + 1;
            malformed(format!("not a manifest: line {line} of its body: {error}")).with_source(error)
        })
    }
}

/// A line as it was read.
enum Parsed {
    Entry(ManifestEntry),
    Exclusion(Exclusion),
}

/// A line that was read and counted.
enum Line {
    Entry(ManifestEntry),
    Exclusion,
}

fn parse(line: &[u8]) -> Result<Parsed> {
    let line = std::str::from_utf8(line).map_err(|_| malformed("it is not UTF-8"))?;
    match line.strip_prefix(EXCLUDE) {
        Some(pattern) => pattern.parse().map(Parsed::Exclusion),
        None => line.parse().map(Parsed::Entry),
    }
}

fn unreadable(error: io::Error) -> KmsError {
    KmsError::io("cannot read the manifest", error)
}

impl<R: BufRead> Iterator for ManifestReader<R> {
    type Item = Result<ManifestEntry>;

    fn next(&mut self) -> Option<Result<ManifestEntry>> {
        if self.failed {
            return None;
        }
        let entry = self.read();
        self.failed = entry.is_err();
        entry.transpose()
    }
}

impl<R: BufRead> std::iter::FusedIterator for ManifestReader<R> {}

/// The error for a manifest that breaks its grammar.
pub(super) fn malformed(message: impl Into<String>) -> KmsError {
    KmsError::new(Code::MalformedManifest, message)
}

/// A path below the signed folder. It is bytes, because a name need not be UTF-8, with `/` between
/// the components.
///
/// These are refused: the empty path, absolute paths, empty components, `.` and `..`, zero bytes,
/// and a Windows drive (`C:`, `C:\...`, `C:/...`). Paths sort by their bytes.
///
/// The text form is the path itself, with these exceptions: a backslash is `\\` and a line feed
/// `\n`; `>`, bytes that are not UTF-8, and characters that could mislead a reader (control
/// characters, line separators, marks that reorder text) are `\xNN` for each byte, in lower-case
/// hex. Every path has exactly one form.
///
/// ```
/// use bulla_kms::signature::manifest::{Exclusion, LinkTarget, ManifestPath};
///
/// let path = ManifestPath::from_bytes("photos/1.jpg")?;
/// assert_eq!(path.as_bytes(), b"photos/1.jpg");
/// assert!(ManifestPath::from_bytes("../secret").is_err());
/// assert_eq!(LinkTarget::from_bytes("1.jpg")?.as_bytes(), b"1.jpg");
/// assert_eq!(Exclusion::new("*.tmp")?.as_str(), "*.tmp");
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManifestPath(Vec<u8>);

impl ManifestPath {
    /// From the bytes of a path.
    ///
    /// # Errors
    /// [`Code::MalformedManifest`] for a refused path, with the reason.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        let bytes = bytes.into();
        match refusal(&bytes) {
            None => Ok(Self(bytes)),
            Some(why) => Err(malformed(format!("the path {} {why}", Escaped(&bytes)))),
        }
    }

    /// The bytes of the path.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn refusal(path: &[u8]) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is empty");
    }
    if path.contains(&0) {
        return Some("has a zero byte");
    }
    if path.starts_with(b"/") {
        return Some("is absolute");
    }
    if matches!(path, [letter, b':', rest @ ..]
        if letter.is_ascii_alphabetic() && matches!(rest.first(), None | Some(b'\\' | b'/')))
    {
        return Some("begins with a drive");
    }
    path.split(|&byte| byte == b'/').find_map(|component| match component {
        b"" => Some("has an empty component"),
        b"." => Some("has a component \".\""),
        b".." => Some("has a component \"..\""),
        _ => None,
    })
}

/// The text of a symbolic link: not empty, without zero bytes, otherwise anything; it is compared
/// and never followed. Its text form is that of a [`ManifestPath`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkTarget(Vec<u8>);

impl LinkTarget {
    /// From the bytes of a link's text.
    ///
    /// # Errors
    /// [`Code::MalformedManifest`] if it is empty or has a zero byte.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        let bytes = bytes.into();
        if bytes.is_empty() || bytes.contains(&0) {
            return Err(malformed("the target of a link is empty or has a zero byte"));
        }
        Ok(Self(bytes))
    }

    /// The bytes of the link's text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A pattern by which the signer left files out of a folder's manifest: a line of `.gitignore`,
/// relative to the folder. It is not empty and has no zero byte. Its text form is that of a
/// [`ManifestPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion(String);

impl Exclusion {
    /// From the pattern.
    ///
    /// # Errors
    /// [`Code::MalformedManifest`] if it is empty or has a zero byte.
    pub fn new(pattern: impl Into<String>) -> Result<Self> {
        let pattern = pattern.into();
        if pattern.is_empty() || pattern.contains('\0') {
            return Err(malformed("a pattern is empty or has a zero byte"));
        }
        Ok(Self(pattern))
    }

    /// The pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Escaped(self.0.as_bytes()), f)
    }
}

impl FromStr for Exclusion {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(String::from_utf8(unescape(text)?).map_err(|_| malformed("a pattern is not UTF-8"))?)
    }
}

/// Converts text to and from bytes, for both types.
macro_rules! escaped_text {
    ($($name:ty),+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&Escaped(&self.0), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&Escaped(&self.0), f)
            }
        }

        impl FromStr for $name {
            type Err = KmsError;

            fn from_str(text: &str) -> Result<Self> {
                Self::from_bytes(unescape(text)?)
            }
        }
    )+};
}

escaped_text!(ManifestPath, LinkTarget);

/// Bytes, shown in their text form.
pub(super) struct Escaped<'a>(pub(super) &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => f.write_str("\\\\")?,
                    '\n' => f.write_str("\\n")?,
                    // `>` is escaped in names, so that " -> " can only be between a link and its
                    // target.
                    c if c == '>' || is_deceptive(c) => hex(f, c.encode_utf8(&mut [0; 4]).as_bytes())?,
                    c => f.write_char(c)?,
                }
            }
            hex(f, chunk.invalid())?;
        }
        Ok(())
    }
}

fn hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))
}

/// The bytes of a text form. Accepts only the one form that these bytes have.
pub(super) fn unescape(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let (byte, length) = match escape.as_bytes() {
            [b'\\', ..] => (b'\\', 1),
            [b'n', ..] => (b'\n', 1),
            [b'x', high, low, ..] => (hex_digit(*high)? << 4 | hex_digit(*low)?, 3),
            _ => return Err(malformed("a path has a backslash that begins no escape")),
        };
        bytes.push(byte);
        rest = &escape[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    if Escaped(&bytes).to_string() == text {
        Ok(bytes)
    } else {
        Err(malformed(format!("a path is not in its one form, which is {}", Escaped(&bytes))))
    }
}

fn hex_digit(digit: u8) -> Result<u8> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(malformed("a path has \\x without two lower-case hexadecimal digits")),
    }
}
