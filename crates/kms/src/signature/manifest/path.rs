//! Paths in a manifest, and their text form.

use std::fmt;
use std::str::FromStr;

use crate::encoding::is_deceptive;
use crate::error::{Code, KmsError, Result};

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
struct Escaped<'a>(&'a [u8]);

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
fn unescape(text: &str) -> Result<Vec<u8>> {
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
