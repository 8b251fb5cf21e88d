//! Compares a binary with a baseline: the vector instructions and kernels that it gained and lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    report::{Counts, FunctionCounts, Report, Symbols},
};

/// The thresholds from which a difference is a finding.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Thresholds {
    /// One kind of register with this many times the baseline's instructions is bloat.
    pub bloat: f64,
    /// A kind with fewer instructions than this is never bloated: ratios of small numbers mean
    /// nothing.
    pub bloat_floor: u64,
    /// More instructions than this with the widest registers, outside known kernels and beyond
    /// those of the baseline, are a finding.
    pub wide_outside: u64,
    /// The most functions to list among those that gained vectors, and among those that lost them.
    pub functions: usize,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { bloat: 5.0, bloat_floor: 1000, wide_outside: 1000, functions: 20 }
    }
}

/// A configuration: the content of a `--config` file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Config {
    /// The thresholds.
    pub thresholds: Thresholds,
    /// The rules whose kernels must be present, even if the baseline does not have them.
    pub require: Vec<String>,
}

impl Config {
    /// Reads a configuration in TOML.
    ///
    /// # Errors
    /// The text is not TOML, has an unknown key, or has an impossible threshold.
    pub fn parse(toml: &str) -> Result<Self, Error> {
        let config: Self =
            toml::from_str(toml).map_err(|error| Error::Config(error.to_string().trim_end().to_owned()))?;
        if !config.thresholds.bloat.is_finite() || config.thresholds.bloat < 1.0 {
            return Err(Error::Config("thresholds.bloat is a ratio of at least 1".to_owned()));
        }
        Ok(config)
    }
}

/// A kind of problem with a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A kernel that should be present is missing.
    KernelLost,
    /// Far more instructions with one kind of register: automatic vectorization.
    Bloated,
    /// Many instructions with the widest registers outside the known kernels.
    WideVectorsOutsideKnownKernels,
}

impl FindingKind {
    /// The words in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KernelLost => "kernel lost",
            Self::Bloated => "bloated",
            Self::WideVectorsOutsideKnownKernels => "wide vectors outside known kernels",
        }
    }
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The kind of problem.
    pub kind: FindingKind,
    /// A description, with figures.
    pub detail: String,
}

/// One figure of two binaries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// In the baseline.
    pub before: u64,
    /// In the binary.
    pub after: u64,
    /// `after / before`; `None` if `before` is 0.
    pub ratio: Option<f64>,
}

impl Change {
    fn new(before: u64, after: u64) -> Self {
        Self { before, after, ratio: (before > 0).then(|| after as f64 / before as f64) }
    }
}

/// How the vectors of one function changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionChange {
    /// The demangled name; functions of one name count together.
    pub name: String,
    /// Instructions with registers wider than the narrowest kind, in the baseline.
    pub before: u64,
    /// In the binary.
    pub after: u64,
}

/// The comparison of a binary with its baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The path of the baseline.
    pub baseline: String,
    /// Instructions of each kind of register, and `instructions` for all.
    pub widths: BTreeMap<String, Change>,
    /// Bytes of code.
    pub code_bytes: Change,
    /// Functions with more wide vectors than before, most first.
    pub gained: Vec<FunctionChange>,
    /// Functions with fewer, most first.
    pub lost: Vec<FunctionChange>,
    /// The problems; `ok` if there are none.
    pub findings: Vec<Finding>,
}

/// The problems of a binary by itself: lost kernels, and missing kernels that `config` requires.
#[must_use]
pub fn check(report: &Report, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for result in &report.rules {
        let required = config.require.contains(&result.rule);
        if result.is_loss() || (required && !result.verdict.is_there()) {
            let why = if required && !result.is_loss() { ", and the configuration requires it" } else { "" };
            let detail = format!("{}: {}{why}", result.rule, result.verdict.name());
            findings.push(Finding { kind: FindingKind::KernelLost, detail });
        }
    }
    findings
}

/// Compares `report` with a baseline's report for the same instruction set.
///
/// # Errors
/// The two reports are for different instruction sets.
pub fn compare(report: &Report, baseline: &Report, config: &Config) -> Result<Comparison, Error> {
    if report.arch != baseline.arch {
        let what = format!(
            "the baseline {} is for {}, not {}",
            baseline.path,
            baseline.arch.name(),
            report.arch.name()
        );
        return Err(Error::Config(what));
    }
    let mut widths: BTreeMap<String, Change> = BTreeMap::new();
    for name in report.arch.widths() {
        widths.insert(name.to_owned(), Change::new(width(&baseline.total, name), width(&report.total, name)));
    }
    widths.insert(ALL.to_owned(), Change::new(baseline.total.instructions, report.total.instructions));
    let mut findings = check(report, config);
    findings.extend(lost_kernels(report, baseline, &findings));
    findings.extend(bloat(&widths, &config.thresholds));
    findings.extend(wide_outside(report, baseline, &config.thresholds));
    let (gained, lost) = changes(report, baseline, config.thresholds.functions);
    Ok(Comparison {
        baseline: baseline.path.clone(),
        widths,
        code_bytes: Change::new(baseline.code_bytes, report.code_bytes),
        gained,
        lost,
        findings,
    })
}

/// The name of the row of all instructions. More of them may just be a larger program, and are
/// never bloat.
const ALL: &str = "instructions";

fn width(counts: &Counts, name: &str) -> u64 {
    counts.widths.get(name).copied().unwrap_or(0)
}

/// Kernels of the baseline that are missing, together with all evidence of their crate.
fn lost_kernels(report: &Report, baseline: &Report, known: &[Finding]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for before in baseline.rules.iter().filter(|before| before.verdict.is_there()) {
        let Some(after) = report.rules.iter().find(|after| after.rule == before.rule) else { continue };
        let detail = format!(
            "{}: {}, and {} in the baseline",
            after.rule,
            after.verdict.name(),
            before.verdict.name()
        );
        let is_known = known.iter().any(|finding| finding.detail.starts_with(&format!("{}: ", after.rule)));
        if !after.verdict.is_there() && after.superseded_by.is_none() && !is_known {
            findings.push(Finding { kind: FindingKind::KernelLost, detail });
        }
    }
    findings
}

fn bloat(widths: &BTreeMap<String, Change>, thresholds: &Thresholds) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, change) in widths.iter().filter(|(name, _)| *name != ALL) {
        let limit = (change.before as f64 * thresholds.bloat).max(thresholds.bloat_floor as f64);
        if change.after as f64 > limit {
            let times = change.ratio.map_or("none before".to_owned(), |ratio| format!("{ratio:.1} times"));
            let detail =
                format!("{name}: {} instructions, {} in the baseline ({times})", change.after, change.before);
            findings.push(Finding { kind: FindingKind::Bloated, detail });
        }
    }
    findings
}

/// The number of instructions with the widest registers in functions outside known kernels.
fn outside(report: &Report) -> u64 {
    let widest = report.arch.widths()[2];
    let inlined: Vec<&str> = report
        .rules
        .iter()
        .flat_map(|rule| rule.evidence.iter().filter(|_| rule.verdict.is_there()))
        .map(|evidence| evidence.name.as_str())
        .collect();
    let is_known =
        |function: &&FunctionCounts| function.kernel.is_some() || inlined.contains(&function.name.as_str());
    let known: u64 =
        report.functions.iter().filter(is_known).map(|function| width(&function.counts, widest)).sum();
    width(&report.total, widest).saturating_sub(known)
}

fn wide_outside(report: &Report, baseline: &Report, thresholds: &Thresholds) -> Option<Finding> {
    // Without names, no function is known to belong to a kernel.
    if report.symbols == Symbols::None || baseline.symbols == Symbols::None {
        return None;
    }
    let (before, after) = (outside(baseline), outside(report));
    (after.saturating_sub(before) > thresholds.wide_outside).then(|| Finding {
        kind: FindingKind::WideVectorsOutsideKnownKernels,
        detail: format!("{after} instructions with {}, {before} in the baseline", report.arch.widths()[2]),
    })
}

/// The functions that gained wide vectors, and those that lost them.
fn changes(report: &Report, baseline: &Report, most: usize) -> (Vec<FunctionChange>, Vec<FunctionChange>) {
    let mut by_name: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let [_, middle, widest] = report.arch.widths();
    let wide = |function: &FunctionCounts| width(&function.counts, middle) + width(&function.counts, widest);
    for function in &baseline.functions {
        by_name.entry(&function.name).or_default().0 += wide(function);
    }
    for function in &report.functions {
        by_name.entry(&function.name).or_default().1 += wide(function);
    }
    let side = |is_own: fn(u64, u64) -> bool| {
        let own = by_name.iter().filter(|(_, (before, after))| is_own(*before, *after));
        let mut own: Vec<_> = own
            .map(|(name, (before, after))| FunctionChange {
                name: (*name).to_owned(),
                before: *before,
                after: *after,
            })
            .collect();
        own.sort_by_key(|change| std::cmp::Reverse(change.before.abs_diff(change.after)));
        own.truncate(most);
        own
    };
    (side(|before, after| after > before), side(|before, after| after < before))
}
