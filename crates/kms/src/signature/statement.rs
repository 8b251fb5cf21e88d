//! What a signature file states: the kind of the content, its digest and size, the comment, and
//! the name.

use std::fmt;
use std::str::FromStr;

use bulla_blake3::Hash;
use serde::{Deserialize, Serialize};

use super::name::SignedName;
use crate::encoding::{self, serde_as_text};
use crate::error::{Code, KmsError, Result};

/// The most bytes that a comment may have.
pub const MAX_COMMENT_LEN: usize = 1024;

/// The kind of content that was signed. A signature of one kind never verifies as one of another.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatementKind {
    /// The bytes of a file.
    File,
    /// A [`manifest`](super::manifest): the list of a folder's content. It follows the signature in
    /// the same file.
    Manifest,
    /// A message from a program.
    Message,
}

impl StatementKind {
    /// The name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Manifest => "manifest",
            Self::Message => "message",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::File, Self::Manifest, Self::Message].into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for StatementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A trusted comment: one line that the signature covers.
///
/// At most [`MAX_COMMENT_LEN`] bytes of UTF-8; no control characters, no line separators and no
/// marks that reorder text; no white space at either end. It may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Comment(String);

impl Comment {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Comment {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |why: &str| Err(KmsError::new(Code::InvalidArgument, format!("the comment {why}")));
        if text.len() > MAX_COMMENT_LEN {
            return invalid("is longer than 1024 bytes");
        }
        if text.chars().any(encoding::is_deceptive) {
            return invalid("has a control character, a line separator or a mark that reorders text");
        }
        if text.trim() != text {
            return invalid("begins or ends with white space");
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Comment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

serde_as_text!(Comment);

/// The statement to sign.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Statement {
    /// The kind of the content.
    pub kind: StatementKind,
    /// The BLAKE3 digest of the content.
    pub digest: Hash,
    /// The length of the content in bytes.
    pub size: u64,
    /// The comment of the signer.
    pub comment: Comment,
    /// The name of the file, if the signature covers it. Only statements of the kind
    /// [`StatementKind::File`] have one.
    pub name: Option<SignedName>,
}

impl Statement {
    /// A statement without a comment and a name: this digest and this size are those of what is
    /// signed.
    pub fn new(kind: StatementKind, digest: Hash, size: u64) -> Self {
        Self { kind, digest, size, comment: Comment::default(), name: None }
    }

    /// Sets the trusted comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = comment;
        self
    }

    /// Sets the name of the file.
    ///
    /// ```
    /// use bulla_kms::signature::SignedName;
    /// use bulla_kms::{Algorithm, Code, Keystore, NewKey, SignatureFile, Statement, StatementKind};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let digest = bulla_blake3::hash(b"a file");
    /// let name: SignedName = "app-1.0".parse()?;
    /// let statement = Statement::new(StatementKind::File, digest, 6).name(name.clone());
    /// let file = SignatureFile::sign(&keystore, &key, statement)?;
    /// assert!(file.to_string().starts_with("bulla signature v3\n"));
    ///
    /// let message = Statement::message(b"a message").name(name);
    /// let error = SignatureFile::sign(&keystore, &key, message).unwrap_err();
    /// assert_eq!(error.code, Code::InvalidArgument);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    #[must_use]
    pub fn name(mut self, name: impl Into<Option<SignedName>>) -> Self {
        self.name = name.into();
        self
    }

    /// A statement about a message, without a comment.
    pub fn message(message: &[u8]) -> Self {
        Self {
            kind: StatementKind::Message,
            digest: bulla_blake3::hash(message),
            size: message.len() as u64,
            comment: Comment::default(),
            name: None,
        }
    }
}
