//! The result of an audit, as `--json` prints it and a later comparison reads it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Arch, Class};

/// The version of the form of [`Report`] in JSON.
pub const SCHEMA: u32 = 1;

/// The content of a binary's code for one instruction set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// The path of the file, as it was given.
    pub path: String,
    /// `ELF`, `Mach-O`, `PE` or `COFF`.
    pub format: String,
    /// The instruction set of the code.
    pub arch: Arch,
    /// How many object files were read: members of an archive, else 1.
    pub objects: u64,
    /// The size of the file in bytes.
    pub file_bytes: u64,
    /// The size of the sections with code, in bytes.
    pub code_bytes: u64,
    /// The symbols that the binary has.
    pub symbols: Symbols,
    /// The counts of all code.
    pub total: Counts,
    /// The vector instructions by kind of work, and by the widest register that they name.
    pub classes: BTreeMap<Class, Widths>,
    /// The instructions of each crate (or C++ namespace), most vector instructions first.
    /// [`NO_CRATE`] is code whose names show no crate.
    pub crates: Vec<CrateCounts>,
    /// The functions with registers wider than the narrowest kind, widest and most first.
    pub functions: Vec<FunctionCounts>,
    /// The verdict on each kernel rule for this instruction set.
    pub rules: Vec<RuleResult>,
    /// Facts that the audit could not find out, and parts that it left out.
    pub notes: Vec<String>,
}

/// The name for code whose names show no crate.
pub const NO_CRATE: &str = "(no crate)";

/// Counts by kind of vector register: the names of [`Arch::widths`].
pub type Widths = BTreeMap<String, u64>;

/// The symbols that a binary has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Symbols {
    /// None: functions have no names.
    None,
    /// Only symbols for dynamic linking.
    Dynamic,
    /// The full table.
    All,
}

/// Counts of the instructions of code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Instructions.
    pub instructions: u64,
    /// Instructions that name a vector register of any kind.
    pub vector: u64,
    /// Instructions that name a register of each kind. An instruction that names two kinds counts
    /// in both.
    pub widths: Widths,
    /// Places that are not an instruction.
    pub bad: u64,
}

/// The counts of one crate's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrateCounts {
    /// The crate.
    pub name: String,
    /// The number of functions with its name.
    pub functions: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Their counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// The counts of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCounts {
    /// The demangled name.
    pub name: String,
    /// Its start: in memory or, in an object file, in its section.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The rule whose kernel it is, or its crate, if that has known kernels.
    pub kernel: Option<String>,
    /// Its counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Whether a kernel is in the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The kernel is a separate function (or is anywhere, in a binary whose functions have no
    /// names).
    Present,
    /// The kernel is inside another function: it has no symbol, but its instructions are present.
    Inlined,
    /// The kernel's crate is linked, but the kernel is missing, or its function no longer has the
    /// kernel's instructions.
    Lost,
    /// Nothing shows that its crate is linked.
    NotLinked,
    /// It was not found, and the names that would show whether its crate is linked are stripped.
    Unknown,
}

impl Verdict {
    /// The words in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Inlined => "inlined",
            Self::Lost => "lost",
            Self::NotLinked => "not linked",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the kernel is in the binary.
    #[must_use]
    pub fn is_there(self) -> bool {
        matches!(self, Self::Present | Self::Inlined)
    }
}

/// The verdict on one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleResult {
    /// The name of the rule.
    pub rule: String,
    /// The crate of the kernel.
    #[serde(rename = "crate")]
    pub krate: String,
    /// The verdict.
    pub verdict: Verdict,
    /// A better kernel of the same function that the binary contains. Then the loss does not count.
    pub superseded_by: Option<String>,
    /// The evidence for the verdict.
    pub evidence: Vec<Evidence>,
}

impl RuleResult {
    /// Whether the kernel is lost, without a better one in its place.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        self.verdict == Verdict::Lost && self.superseded_by.is_none()
    }
}

/// One piece of evidence: something that was found, or was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Its kind.
    pub kind: EvidenceKind,
    /// The function, or the text that was found.
    pub name: String,
    /// Its position: an address as in [`FunctionCounts::address`], or an offset in the file for
    /// text.
    pub address: u64,
    /// The evidence in words, for example the counts.
    pub detail: String,
}

/// A kind of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// A function by its name.
    Symbol,
    /// Instructions of a pattern.
    Pattern,
    /// A function of the kernel's crate.
    Crate,
    /// Text of the kernel's crate.
    Text,
}
