//! Reports as text: tables for a terminal, or Markdown.

use std::fmt::Write as _;

use crate::{
    compare::{Comparison, Finding, FunctionChange},
    report::{Counts, Report, RuleResult, Symbols, Verdict},
    scan::Scan,
};

/// A form of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Columns of spaces.
    Table,
    /// Markdown.
    Markdown,
}

/// The report as text. `findings` are its verdict. At most `most` crates and `most` functions are
/// printed.
#[must_use]
pub fn render(
    report: &Report,
    comparison: Option<&Comparison>,
    findings: &[Finding],
    style: Style,
    most: usize,
) -> String {
    let mut out = String::new();
    heading(&mut out, style, &report.path, 2);
    let _ = writeln!(out, "{}", summary(report));
    total(&mut out, report, style);
    classes(&mut out, report, style);
    crates(&mut out, report, style, most);
    functions(&mut out, report, style, most);
    rules(&mut out, report, style);
    if let Some(comparison) = comparison {
        compared(&mut out, comparison, style);
    }
    for note in &report.notes {
        let _ = writeln!(out, "\nnote: {note}");
    }
    verdict(&mut out, findings, style);
    out
}

fn heading(out: &mut String, style: Style, text: &str, level: usize) {
    let text = printable(text);
    let _ = match style {
        Style::Table => writeln!(out, "{text}"),
        Style::Markdown => writeln!(out, "{} {text}\n", "#".repeat(level)),
    };
}

fn summary(report: &Report) -> String {
    let symbols = match report.symbols {
        Symbols::All => "with symbols",
        Symbols::Dynamic => "with dynamic symbols only",
        Symbols::None => "without symbols",
    };
    let objects =
        if report.objects == 1 { String::new() } else { format!(", {} object files", report.objects) };
    let bad = if report.total.bad == 0 {
        String::new()
    } else {
        format!(", {} places that are not an instruction", report.total.bad)
    };
    format!(
        "{} for {}{objects}, {symbols}; {} of {} bytes are code; {} instructions{bad}",
        report.format,
        report.arch.name(),
        report.code_bytes,
        report.file_bytes,
        report.total.instructions
    )
}

fn total(out: &mut String, report: &Report, style: Style) {
    let mut rows = Vec::new();
    for name in report.arch.widths() {
        let count = width(&report.total, name);
        rows.push(vec![name.to_owned(), count.to_string(), share(count, report.total.instructions)]);
    }
    rows.push(vec![
        "any vector".to_owned(),
        report.total.vector.to_string(),
        share(report.total.vector, report.total.instructions),
    ]);
    table(out, style, &["register", "instructions", "share"], &rows);
}

fn classes(out: &mut String, report: &Report, style: Style) {
    let widths = report.arch.widths();
    let rows: Vec<_> = report
        .classes
        .iter()
        .map(|(class, counts)| {
            let mut row = vec![class.name().to_owned()];
            row.extend(widths.iter().map(|width| counts.get(*width).copied().unwrap_or(0).to_string()));
            row
        })
        .collect();
    table(out, style, &["kind of work, by widest register", widths[0], widths[1], widths[2]], &rows);
}

fn crates(out: &mut String, report: &Report, style: Style, most: usize) {
    let [narrow, middle, wide] = report.arch.widths();
    let shown = report.crates.iter().filter(|krate| krate.counts.vector > 0);
    let rows: Vec<_> = shown
        .clone()
        .take(most)
        .map(|krate| {
            counted(&krate.name, &krate.counts, &[narrow, middle, wide], krate.functions.to_string())
        })
        .collect();
    table(out, style, &["crate", "functions", "instructions", narrow, middle, wide], &rows);
    more(out, shown.count(), most, "crates");
}

fn functions(out: &mut String, report: &Report, style: Style, most: usize) {
    let [narrow, middle, wide] = report.arch.widths();
    let rows: Vec<_> = report
        .functions
        .iter()
        .take(most)
        .map(|function| {
            let address = format!("{:#x}", function.address);
            counted(&function.name, &function.counts, &[narrow, middle, wide], address)
        })
        .collect();
    table(out, style, &["function", "address", "instructions", narrow, middle, wide], &rows);
    more(out, report.functions.len(), most, "functions");
}

fn counted(name: &str, counts: &Counts, widths: &[&str], second: String) -> Vec<String> {
    let mut row = vec![name.to_owned(), second, counts.instructions.to_string()];
    row.extend(widths.iter().map(|name| width(counts, name).to_string()));
    row
}

fn more(out: &mut String, all: usize, most: usize, what: &str) {
    if all > most {
        let _ = writeln!(out, "and {} more {what}", all - most);
    }
}

fn rules(out: &mut String, report: &Report, style: Style) {
    let is_row = |result: &&RuleResult| match result.verdict {
        Verdict::NotLinked => false,
        Verdict::Unknown => !result.evidence.is_empty(),
        _ => true,
    };
    let rows: Vec<_> = report
        .rules
        .iter()
        .filter(is_row)
        .map(|result| vec![result.rule.clone(), result.verdict.name().to_owned(), evidence(result)])
        .collect();
    table(out, style, &["kernel", "verdict", "evidence"], &rows);
    let others = |verdict| {
        let own = report.rules.iter().filter(|result| result.verdict == verdict && !is_row(result));
        own.map(|result| result.rule.as_str()).collect::<Vec<_>>()
    };
    let absent = others(Verdict::NotLinked);
    if !absent.is_empty() {
        let _ = writeln!(out, "\nnot linked: {}", absent.join(", "));
    }
    // Without names, everything may be unknown: print one line about all of them, not one for each.
    let unknown = others(Verdict::Unknown);
    if !unknown.is_empty() {
        let _ = writeln!(
            out,
            "\nnot found (without symbols, nobody can know whether their crates are linked): {}",
            unknown.join(", ")
        );
    }
}

fn evidence(result: &RuleResult) -> String {
    let first = result.evidence.first();
    let mut text = first.map_or_else(String::new, |evidence| {
        format!("{} at {:#x}: {}", evidence.name, evidence.address, evidence.detail)
    });
    if let Some(better) = &result.superseded_by {
        let _ = write!(text, "{}{better} replaces it", if text.is_empty() { "" } else { "; " });
    }
    text
}

fn compared(out: &mut String, comparison: &Comparison, style: Style) {
    out.push('\n');
    heading(out, style, &format!("compared with {}", comparison.baseline), 3);
    let mut rows: Vec<_> = comparison
        .widths
        .iter()
        .map(|(name, change)| {
            vec![name.clone(), change.before.to_string(), change.after.to_string(), ratio(change.ratio)]
        })
        .collect();
    let bytes = &comparison.code_bytes;
    rows.push(vec![
        "bytes of code".to_owned(),
        bytes.before.to_string(),
        bytes.after.to_string(),
        ratio(bytes.ratio),
    ]);
    table(out, style, &["", "baseline", "now", "ratio"], &rows);
    for (title, changes) in
        [("gained wide vectors", &comparison.gained), ("lost wide vectors", &comparison.lost)]
    {
        let row = |change: &FunctionChange| {
            vec![change.name.clone(), change.before.to_string(), change.after.to_string()]
        };
        table(out, style, &[title, "baseline", "now"], &changes.iter().map(row).collect::<Vec<_>>());
    }
}

impl Scan {
    /// The scan as text.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut out = String::new();
        heading(&mut out, style, &self.manifest, 2);
        let _ = writeln!(
            out,
            "{} packages, {} with code that CPU features choose",
            self.packages,
            self.crates.len()
        );
        let place = |setting: &crate::scan::Setting| match setting.line {
            0 => setting.place.clone(),
            line => format!("{}:{line}", setting.place),
        };
        let settings = self.settings.iter().map(|setting| vec![setting.text.clone(), place(setting)]);
        table(&mut out, style, &["setting", "evidence"], &settings.collect::<Vec<_>>());
        for krate in &self.crates {
            out.push('\n');
            heading(&mut out, style, &format!("{} {}: {}", krate.name, krate.version, krate.risk.name()), 3);
            let kernels = krate.kernels;
            let _ = writeln!(
                out,
                "{} files with intrinsics, {} with assembly",
                kernels.intrinsics, kernels.assembly
            );
            let row = |found: &crate::scan::SourceFinding| {
                vec![
                    format!("{}:{}", found.file, found.line),
                    found.kind.name().to_owned(),
                    found.text.clone(),
                ]
            };
            let rows: Vec<_> = krate.findings.iter().map(row).collect();
            table(&mut out, style, &["where", "verdict", "evidence"], &rows);
            let _ = writeln!(
                out,
                "{}what to do: {}",
                if style == Style::Markdown { "\n" } else { "" },
                krate.advice
            );
        }
        for note in &self.notes {
            let _ = writeln!(out, "\nnote: {note}");
        }
        out
    }
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn verdict(out: &mut String, findings: &[Finding], style: Style) {
    let strong = if style == Style::Markdown { "**" } else { "" };
    if findings.is_empty() {
        let _ = writeln!(out, "\nverdict: {strong}ok{strong}");
    }
    for finding in findings {
        let _ = writeln!(out, "\nverdict: {strong}{}{strong}: {}", finding.kind.name(), finding.detail);
    }
}

fn width(counts: &Counts, name: &str) -> u64 {
    counts.widths.get(name).copied().unwrap_or(0)
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.2} %", part as f64 * 100.0 / whole as f64) }
}

/// Names come from the file: characters that would move a terminal's cursor are shown as escapes.
fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

/// A table with an empty line above it. The first column is text, and so is a last column called
/// `evidence`.
fn table(out: &mut String, style: Style, head: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let is_text = |i: usize| i == 0 || matches!(head[i], "evidence" | "verdict");
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().enumerate().map(|(i, cell)| cell_of(style, head[i], cell)).collect())
        .collect();
    out.push('\n');
    if style == Style::Markdown {
        let rule = (0..head.len()).map(|i| if is_text(i) { "---" } else { "--:" });
        let _ = writeln!(out, "| {} |\n|{}|", head.join(" | "), rule.collect::<Vec<_>>().join("|"));
        for row in &rows {
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
        return;
    }
    let size =
        |i: usize| rows.iter().map(|row| row[i].chars().count()).chain([head[i].len()]).max().unwrap_or(0);
    let sizes: Vec<_> = (0..head.len()).map(size).collect();
    let line = |cells: Vec<&str>| {
        let cell = |(i, cell): (usize, &&str)| {
            if is_text(i) { format!("{cell:<0$}", sizes[i]) } else { format!("{cell:>0$}", sizes[i]) }
        };
        cells.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let _ = writeln!(out, "{}", line(head.to_vec()));
    for row in &rows {
        let _ = writeln!(out, "{}", line(row.iter().map(String::as_str).collect()));
    }
}

/// The longest cell: names of generic functions may be thousands of characters long. The JSON has
/// the whole names.
const MAX_CELL_LEN: usize = 100;

fn cell_of(style: Style, head: &str, text: &str) -> String {
    let text = printable(text);
    match style {
        Style::Markdown => {
            text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_")
        }
        Style::Table if head != "evidence" && text.chars().count() > MAX_CELL_LEN => {
            let (start, end): (String, String) = (
                text.chars().take(MAX_CELL_LEN / 2).collect(),
                text.chars().skip(text.chars().count() - MAX_CELL_LEN / 2 + 1).collect(),
            );
            format!("{start}…{end}")
        }
        Style::Table => text,
    }
}
