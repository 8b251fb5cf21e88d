//! Checksum lists: how a line is written, and how the lines of many programs are read.

use crate::hashing::Algorithm;
use std::ops::Range;

/// The tag of lines with a folder's digest. It names the version of the rule.
pub const TREE_TAG: &str = "BLAKE3-tree-v1";

/// The kinds of lines that are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Those that b3sum accepts, and those of b2sum.
    B3sum,
    /// Those of b3sum, of the coreutils in both forms, of BSD in both forms; comments; blank lines.
    Any,
}

/// How the lines of a list end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnding {
    /// With a line feed. Names are escaped.
    LineFeed,
    /// With a zero byte. Names are not escaped.
    Zero,
}

impl LineEnding {
    /// The last byte of a line.
    pub fn byte(self) -> u8 {
        match self {
            Self::LineFeed => b'\n',
            Self::Zero => 0,
        }
    }
}

/// A line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChecksumLine {
    /// The hash function. If there is an alternative, it is the likelier one.
    pub algorithm: Algorithm,
    /// Another function with digests of this length, if the line does not name its function.
    pub alternative: Option<Algorithm>,
    /// Whether the digest is that of a file or of a folder.
    pub subject: Subject,
    /// The digest.
    pub digest: Vec<u8>,
    /// The range of the digest's digits in the line.
    pub digits: Range<usize>,
    /// The name as the line has it, with the backslash that marks it as escaped.
    pub shown: String,
    /// The bytes of the name.
    pub name: Vec<u8>,
}

/// The subject of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The content of a file.
    File,
    /// A folder with everything in it: `spec/manifest.md`.
    Folder,
}

/// The result of parsing a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedLine {
    /// A checksum.
    Checksum(ChecksumLine),
    /// A comment, or a line without content.
    Blank,
    /// A line that is neither, and the reason.
    Malformed(&'static str),
}

/// Parses lines that may leave their hash function open.
///
/// ```
/// use bulla_sums::{Algorithm, Dialect, LineEnding, LineParser, ParsedLine};
///
/// let ending = LineEnding::LineFeed;
/// let parser = LineParser { dialect: Dialect::Any, ending, algorithm: None, likely: None };
/// let list = format!("# as openssl writes it\nSHA256(a.txt)= {}\nMD5(a.txt)= ab\n", "5e".repeat(32));
/// let mut lines = list.as_bytes().split(|byte| *byte == ending.byte()).map(|line| parser.parse(line));
///
/// assert_eq!(lines.next(), Some(ParsedLine::Blank));
/// let Some(ParsedLine::Checksum(line)) = lines.next() else { panic!("not a checksum") };
/// assert_eq!((line.algorithm, line.name), (Algorithm::Sha256, b"a.txt".to_vec()));
/// assert_eq!(line.digest, [0x5e; 32]);
/// assert!(matches!(lines.next(), Some(ParsedLine::Malformed(reason)) if reason.starts_with("MD5")));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LineParser {
    /// The lines that are accepted.
    pub dialect: Dialect,
    /// How the lines end.
    pub ending: LineEnding,
    /// The function of lines without a tag, if it is known.
    pub algorithm: Option<Algorithm>,
    /// The likelier function of lines without a tag, if the number of digits leaves two.
    pub likely: Option<Algorithm>,
}

impl LineParser {
    /// Reads a line without its ending.
    pub fn parse(&self, line: &[u8]) -> ParsedLine {
        if self.dialect == Dialect::Any && is_blank(line) {
            return ParsedLine::Blank;
        }
        match self.line(line) {
            Ok(line) => ParsedLine::Checksum(line),
            Err(reason) => ParsedLine::Malformed(self.unsupported(line).unwrap_or(reason)),
        }
    }

    /// The reason why a malformed line is one of another program, if it is.
    fn unsupported(&self, line: &[u8]) -> Option<&'static str> {
        if line.starts_with("\u{feff}".as_bytes()) {
            return Some("the line begins with a byte order mark: save the list as UTF-8 without one");
        }
        let is_marked = line.starts_with(b"\xff\xfe") || line.starts_with(b"\xfe\xff");
        if is_marked && line.contains(&0) {
            return Some("the list is in UTF-16, as PowerShell writes it: save it as UTF-8");
        }
        let text = std::str::from_utf8(line).ok()?.trim_ascii().trim_start_matches('\\');
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_tagged =
            |name: &str| text.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('('));
        let (first, _) = text.split_once([' ', '\t'])?;
        let digits = if is_hex(first) && self.algorithm.is_none() { first.len() } else { 0 };
        if digits == 32 || is_tagged("MD5") {
            return Some("MD5 is not supported: it does not protect against manipulation");
        }
        if digits == 40 || is_tagged("SHA1") {
            return Some("SHA-1 is not supported: it does not protect against manipulation");
        }
        if matches!(digits, 56 | 96)
            || ["SHA224", "SHA2-224", "SHA384", "SHA2-384"].into_iter().any(is_tagged)
        {
            return Some("SHA-224 and SHA-384 are not supported");
        }
        let (_, last) = text.rsplit_once([' ', '\t'])?;
        (last.len() == 8 && is_hex(last))
            .then_some("it is a line of an SFV list: its checksum is CRC-32, which is not supported")
    }

    fn line(&self, line: &[u8]) -> Result<ChecksumLine, &'static str> {
        let may_escape = self.ending == LineEnding::LineFeed;
        let start = if self.dialect == Dialect::Any { without_blanks(line) } else { line };
        let (escaped, rest) = match start.strip_prefix(b"\\") {
            Some(rest) if may_escape => (true, rest),
            _ => (false, start),
        };
        let parts = self.tagged(rest).or_else(|| self.untagged(rest));
        let is_b3sum = |algorithm| self.dialect == Dialect::B3sum && algorithm == Algorithm::Blake3;
        let is_utf8 = std::str::from_utf8(line).is_ok();
        let LineParts { algorithm, alternative, subject, bits, digest: hash, name } = match parts {
            Some(parts) if is_utf8 || !is_b3sum(parts.algorithm) => parts,
            None if is_utf8 => return Err("the line is neither `HASH  NAME` nor `BLAKE3 (NAME) = HASH`"),
            _ => return Err("the line is not UTF-8"),
        };
        let is_text = |reason| if is_utf8 { reason } else { "the line is not UTF-8" };
        let digest = self.digest(hash, algorithm).map_err(is_text)?;
        if bits.is_some_and(|bits| bits != 8 * digest.len()) {
            return Err("the checksum has not as many bits as its hash function's name says");
        }
        let start = hash.as_ptr() as usize - line.as_ptr() as usize;
        let shown = format!("{}{}", if escaped { "\\" } else { "" }, String::from_utf8_lossy(name));
        let name = match escaped {
            true => unescape(name).ok_or("the name contains an unknown backslash escape")?,
            false => name.to_vec(),
        };
        self.check_name(&name, algorithm)?;
        let digits = start..start + hash.len();
        Ok(ChecksumLine { algorithm, alternative, subject, digest, digits, shown, name })
    }

    /// A line `HASH  FILE`, or `HASH *FILE` as the coreutils write it for binary files, or `HASH
    /// FILE` as BSD does.
    fn untagged<'a>(&self, line: &'a [u8]) -> Option<LineParts<'a>> {
        let is_end = |byte: &u8| *byte == b' ' || (self.dialect == Dialect::Any && *byte == b'\t');
        let (digest, rest) = line.split_at(line.iter().position(is_end)?);
        let (algorithm, alternative) = self.functions(digest.len());
        let name = match (&rest[1..], algorithm, self.dialect) {
            ([b' ', name @ ..], ..) => name,
            ([b'*', _, ..], Algorithm::Blake3, Dialect::B3sum) => return None,
            ([b'*', name @ ..], ..) => name,
            (name, _, Dialect::Any) => name,
            _ => return None,
        };
        Some(LineParts { algorithm, alternative, subject: Subject::File, bits: None, digest, name })
    }

    /// The function of a line that names none, and another one that it may be of.
    fn functions(&self, digits: usize) -> (Algorithm, Option<Algorithm>) {
        let (usual, other) = match digits {
            128 => (Algorithm::Blake2b, Algorithm::Sha512),
            _ => (Algorithm::Blake3, Algorithm::Sha256),
        };
        match self.algorithm {
            Some(algorithm) => (algorithm, None),
            None if self.dialect == Dialect::B3sum || !matches!(digits, 64 | 128) => (usual, None),
            None if self.likely == Some(other) => (other, Some(usual)),
            None => (usual, Some(other)),
        }
    }

    /// A line `NAME (FILE) = HASH`, or `NAME(FILE)= HASH` as OpenSSL writes it; b2sum writes
    /// `BLAKE2b-256` for a digest of 256 bits.
    fn tagged<'a>(&self, line: &'a [u8]) -> Option<LineParts<'a>> {
        let (tag, rest) = match self.dialect {
            Dialect::B3sum => split(line, line.windows(2).position(|pair| pair == b" (")?, 2),
            Dialect::Any => split(line, line.iter().position(|byte| *byte == b'(')?, 1),
        };
        let tag = std::str::from_utf8(tag).ok()?;
        let tag = if self.dialect == Dialect::Any { tag.strip_suffix(' ').unwrap_or(tag) } else { tag };
        let (algorithm, subject, bits) = match (Algorithm::by_tag(tag), tag.split_once('-')) {
            _ if tag == TREE_TAG => (Algorithm::Blake3, Subject::Folder, None),
            (Some(algorithm), _) => (algorithm, Subject::File, None),
            (None, Some((tag, bits))) => (Algorithm::by_tag(tag)?, Subject::File, Some(bits.parse().ok()?)),
            (None, None) => return None,
        };
        // A name may contain the separator, so take the last one.
        let (name, digest) = match self.dialect {
            Dialect::B3sum => split(rest, rest.windows(4).rposition(|end| end == b") = ")?, 4),
            Dialect::Any => {
                let (name, rest) = split(rest, rest.iter().rposition(|byte| *byte == b')')?, 1);
                (name, without_blanks(without_blanks(rest).strip_prefix(b"=")?))
            }
        };
        Some(LineParts { algorithm, alternative: None, subject, bits, digest, name })
    }

    /// The bytes of a digest. It has all bytes of the function's output; of BLAKE2 also fewer,
    /// which gives another digest.
    fn digest(&self, hash: &[u8], algorithm: Algorithm) -> Result<Vec<u8>, &'static str> {
        let is_blake3 = algorithm == Algorithm::Blake3;
        let reason = match (is_blake3, self.dialect) {
            (true, Dialect::B3sum) => "the checksum does not have 64 lower-case hexadecimal digits",
            (true, Dialect::Any) => "the checksum does not have 64 hexadecimal digits",
            (false, _) => "the checksum does not have an even number of hexadecimal digits",
        };
        let is_upper = self.dialect == Dialect::B3sum && hash.iter().any(u8::is_ascii_uppercase);
        if is_blake3 && (hash.len() != 64 || is_upper) {
            return Err(reason);
        }
        let digest = hex::decode(hash).ok().filter(|bytes| !bytes.is_empty()).ok_or(reason)?;
        match algorithm.has_length(digest.len() as u64) {
            true => Ok(digest),
            false if digest.len() > algorithm.default_length() => Err("the checksum is too long"),
            false => Err("the checksum is too short"),
        }
    }

    /// Refuses names that may mean more than one file: a check should fail rather than pass for the
    /// wrong file.
    fn check_name(&self, name: &[u8], algorithm: Algorithm) -> Result<(), &'static str> {
        if name.is_empty() {
            return Err("the name is empty");
        }
        if name.contains(&b'\0') {
            return Err("the name contains a null character");
        }
        let lossy = self.ending == LineEnding::LineFeed && algorithm == Algorithm::Blake3;
        if lossy && std::str::from_utf8(name).is_ok_and(|name| name.contains('\u{fffd}')) {
            return Err(
                "the name contains a Unicode replacement character: the file's real name is not UTF-8",
            );
        }
        if cfg!(windows) && name.contains(&b'\\') {
            return Err("the name contains a backslash");
        }
        if cfg!(not(unix)) && std::str::from_utf8(name).is_err() {
            return Err("the line is not UTF-8");
        }
        Ok(())
    }
}

struct LineParts<'a> {
    algorithm: Algorithm,
    alternative: Option<Algorithm>,
    subject: Subject,
    /// The number of bits that the tag names.
    bits: Option<usize>,
    digest: &'a [u8],
    name: &'a [u8],
}

/// The parts of a line around a separator of `len` bytes at `at`.
fn split(line: &[u8], at: usize, len: usize) -> (&[u8], &[u8]) {
    (&line[..at], &line[at + len..])
}

/// A line without the blanks and tabs at its beginning.
fn without_blanks(line: &[u8]) -> &[u8] {
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &line[blanks..]
}

/// Whether a line is blank, or a comment after `#`, or after `;` as in the lists of SFV programs.
fn is_blank(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), None | Some(b'#' | b';'))
}

/// A name as in a line of checksums.
pub struct EscapedName {
    /// The name with `\`, newline and carriage return escaped.
    pub text: Vec<u8>,
    /// Whether anything was escaped: the line then starts with a backslash.
    pub escaped: bool,
}

impl EscapedName {
    /// A name for a line of this function. For BLAKE3, it has U+FFFD for bytes that are not UTF-8,
    /// as in b3sum; other programs write those bytes.
    pub fn new(name: &[u8], algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Blake3 => Self::escape(String::from_utf8_lossy(name).as_bytes()),
            _ => Self::escape(name),
        }
    }

    fn escape(name: &[u8]) -> Self {
        // A Windows separator is written as `/`, so that lists of checksums work on other systems.
        if cfg!(windows) {
            let text = name.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect();
            return Self { text, escaped: false };
        }
        let mut text = Vec::with_capacity(name.len());
        for byte in name {
            match byte {
                b'\\' => text.extend(b"\\\\"),
                b'\n' => text.extend(b"\\n"),
                b'\r' => text.extend(b"\\r"),
                byte => text.push(*byte),
            }
        }
        let escaped = text.len() > name.len();
        Self { text, escaped }
    }
}

/// Undoes the escapes of [`EscapedName`].
fn unescape(name: &[u8]) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        path.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            byte => *byte,
        });
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(dialect: Dialect, line: &str) -> ParsedLine {
        LineParser { dialect, ending: LineEnding::LineFeed, algorithm: None, likely: None }
            .parse(line.as_bytes())
    }

    /// The function, the name, and the digits of a line in every form.
    fn line(text: &str) -> (Algorithm, Vec<u8>, &str) {
        match parse(Dialect::Any, text) {
            ParsedLine::Checksum(line) => (line.algorithm, line.name, &text[line.digits]),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn lines_of_every_program_are_read() {
        let (short, long) = ("ab".repeat(32), "cd".repeat(64));
        for (text, algorithm, name) in [
            (format!("{short}  a b"), Algorithm::Blake3, "a b"),
            (format!("{short} *a"), Algorithm::Blake3, "a"),
            (format!("{short} a"), Algorithm::Blake3, "a"),
            (format!("\\{short}  a\\nb\\\\"), Algorithm::Blake3, "a\nb\\"),
            (format!("BLAKE3 (x) = y) = {short}"), Algorithm::Blake3, "x) = y"),
            (format!("SHA256 (a) = {short}"), Algorithm::Sha256, "a"),
            (format!("SHA512 (a) = {long}"), Algorithm::Sha512, "a"),
            (format!("BLAKE2b-256 (a) = {short}"), Algorithm::Blake2b, "a"),
            (format!("\\BLAKE2B (a\\rb) = {long}"), Algorithm::Blake2b, "a\rb"),
            (format!("{long}  a"), Algorithm::Blake2b, "a"),
            (format!(" \t{short}  a"), Algorithm::Blake3, "a"),
            (format!("\t\\{short} *a\\n"), Algorithm::Blake3, "a\n"),
            (format!("{short}\ta"), Algorithm::Blake3, "a"),
            (format!("{short}\t a"), Algorithm::Blake3, "a"),
            (format!("  SHA256 (a) = {short}"), Algorithm::Sha256, "a"),
            (format!("SHA256(a)= {short}"), Algorithm::Sha256, "a"),
            (format!("SHA2-256(a (1))= {short}"), Algorithm::Sha256, "a (1)"),
            (format!("SHA2-512(a)= {long}"), Algorithm::Sha512, "a"),
            (format!("BLAKE2B-512(a)= {long}"), Algorithm::Blake2b, "a"),
        ] {
            let digits = if text.contains(&long) { &long } else { &short };
            assert_eq!(line(&text), (algorithm, name.into(), digits.as_str()), "{text}");
        }
        assert_eq!(line(&format!("{}  a", short.to_uppercase())).0, Algorithm::Blake3);
    }

    #[test]
    fn comments_and_blank_lines_are_nothing_but_for_b3sum() {
        for text in ["", "  ", "# comment", "\t", "; comment", "  # comment"] {
            assert_eq!(parse(Dialect::Any, text), ParsedLine::Blank);
            assert!(matches!(parse(Dialect::B3sum, text), ParsedLine::Malformed(_)));
        }
    }

    #[test]
    fn what_could_mean_two_files_or_a_shorter_digest_is_malformed() {
        let hash = "ab".repeat(32);
        let half = &hash[..32];
        for text in [
            format!("{hash}  "),
            format!("{hash}  a\0b"),
            format!("{hash}  \u{fffd}"),
            format!("\\{hash}  a\\x"),
            format!("{half}  a"),
            format!("BLAKE3 (a) = {half}"),
            format!("SHA256 (a) = {half}"),
            format!("SHA256 (a) = {hash}0"),
            "BLAKE3 (a) = ".into(),
            format!("BLAKE2b-512 (a) = {hash}"),
            format!("BLAKE3-tree-v2 (a) = {hash}"),
            "MD5 (a) = 00112233445566778899aabbccddeeff".into(),
            hash.clone(),
        ] {
            assert!(matches!(parse(Dialect::Any, &text), ParsedLine::Malformed(_)), "{text}");
        }
    }

    #[test]
    fn a_list_in_utf_16_is_named() {
        let parser =
            LineParser { dialect: Dialect::Any, ending: LineEnding::LineFeed, algorithm: None, likely: None };
        for mark in [b"\xff\xfe", b"\xfe\xff"] {
            let parsed = parser.parse(&[&mark[..], b"a\0b\0"].concat());
            assert!(
                matches!(parsed, ParsedLine::Malformed(reason) if reason.contains("UTF-16")),
                "{parsed:?}"
            );
        }
    }

    #[test]
    fn a_line_without_a_function_has_two_unless_one_is_known() {
        use Algorithm::{Blake2b, Blake3, Sha256, Sha512};
        let (short, long) = (format!("{}  a", "ab".repeat(32)), format!("{}  a", "cd".repeat(64)));
        let functions = |line: &str, dialect, algorithm, likely| {
            let reader = LineParser { dialect, ending: LineEnding::LineFeed, algorithm, likely };
            let ParsedLine::Checksum(line) = reader.parse(line.as_bytes()) else { panic!("no line") };
            (line.algorithm, line.alternative)
        };
        assert_eq!(functions(&short, Dialect::Any, None, None), (Blake3, Some(Sha256)));
        assert_eq!(functions(&long, Dialect::Any, None, None), (Blake2b, Some(Sha512)));
        assert_eq!(functions(&short, Dialect::Any, None, Some(Sha256)), (Sha256, Some(Blake3)));
        assert_eq!(functions(&long, Dialect::Any, None, Some(Sha512)), (Sha512, Some(Blake2b)));
        assert_eq!(functions(&long, Dialect::Any, None, Some(Sha256)), (Blake2b, Some(Sha512)));
        assert_eq!(functions(&short, Dialect::Any, Some(Sha256), None), (Sha256, None));
        assert_eq!(functions(&short, Dialect::B3sum, None, None), (Blake3, None));
        let tagged = format!("BLAKE3 (a) = {}", &short[..64]);
        assert_eq!(functions(&tagged, Dialect::Any, None, Some(Sha256)), (Blake3, None));
    }

    #[test]
    fn the_dialect_of_b3sum_has_no_form_of_other_programs() {
        let hash = "ab".repeat(32);
        for text in [format!(" {hash}  a"), format!("{hash}\ta"), format!("BLAKE3(a)= {hash}")] {
            assert!(matches!(parse(Dialect::B3sum, &text), ParsedLine::Malformed(_)), "{text}");
        }
    }

    #[test]
    fn lines_that_end_with_a_zero_byte_have_plain_names() {
        let hash = "ab".repeat(32);
        let reader =
            LineParser { dialect: Dialect::Any, ending: LineEnding::Zero, algorithm: None, likely: None };
        let ParsedLine::Checksum(line) = reader.parse(format!("{hash}  a\nb\\n").as_bytes()) else {
            panic!("no line")
        };
        assert_eq!(line.name, b"a\nb\\n");
        let text = [hash.as_bytes(), b"  a\xff"].concat();
        let ParsedLine::Checksum(line) = reader.parse(&text) else { panic!("no line") };
        assert_eq!(line.name, b"a\xff");
    }
}
