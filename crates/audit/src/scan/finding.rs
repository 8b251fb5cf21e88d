//! The findings in a source file.

use serde::Serialize;

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SourceFinding {
    /// The path of the file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The kind of finding.
    pub kind: SourceKind,
    /// The condition or call, as it is written.
    pub text: String,
}

/// A kind of finding in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A condition on the target's features that comes before detection at run time.
    CompileTimeChoice,
    /// Such a condition in a macro, which other crates use.
    CompileTimeChoiceInMacro,
    /// Detection at run time that needs a feature of the package that this build does not enable:
    /// the kernel is never chosen.
    DetectionOff,
}

impl SourceKind {
    /// The words in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CompileTimeChoice => "compile-time choice before detection",
            Self::CompileTimeChoiceInMacro => "compile-time choice in a macro",
            Self::DetectionOff => "detection is switched off",
        }
    }
}
