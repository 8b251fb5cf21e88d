//! Reads a compiled binary, and finds which vector instructions and which kernels it really
//! contains.
//!
//! ```
//! use bulla_audit::{Limits, Options, Rules, audit_file};
//!
//! let rules = Rules::built_in();
//! let options = Options { rules: &rules, limits: Limits::default(), progress: &|_| () };
//! let own = std::env::current_exe()?;
//! for report in audit_file(&own, &options)? {
//!     println!("{}: {} instructions, {:?}", report.arch.name(), report.total.instructions, report.total.widths);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/audit.md` explains what the crate counts, how it recognizes kernels, and what it cannot
//! know.
#![forbid(unsafe_code)]

mod arch;
mod audit;
mod compare;
mod container;
mod count;
mod error;
mod functions;
mod image;
mod pattern;
mod render;
mod report;
mod rules;
pub mod scan;
mod source;
mod sweep;
mod text;
mod verdict;

pub use self::{
    arch::{Arch, Class},
    audit::{Limits, Options, audit, audit_file},
    compare::{Change, Comparison, Config, Finding, FindingKind, FunctionChange, Thresholds, check, compare},
    error::Error,
    render::{Style, render},
    report::{
        Counts, CrateCounts, Evidence, EvidenceKind, FunctionCounts, NO_CRATE, Report, RuleResult, SCHEMA,
        Symbols, Verdict, Widths,
    },
    rules::{Pattern, Rule, Rules},
    source::{FileSource, Source},
};
