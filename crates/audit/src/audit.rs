//! Audits a file: from bytes to reports.

use std::{collections::BTreeMap, path::Path};

use rayon::prelude::*;

use crate::{
    Arch, Class, Error,
    container::{self, Part},
    count::{self, Counted, Counts, Mnemonics},
    functions::{Function, crate_of, demangle, functions},
    image::{Image, Names},
    pattern::Patterns,
    report::{self, CrateCounts, FunctionCounts, NO_CRATE, Report, SCHEMA, Symbols},
    rules::{Rule, Rules},
    source::{FileSource, Source, Tables},
    text::{self, matches_glob},
    verdict::{Facts, FoundFunction},
};

/// Limits on the resources of an audit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Memory for the headers, symbols and names of one object file, in bytes.
    pub tables: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { tables: 1 << 30 }
    }
}

/// The options of an audit.
#[derive(Clone, Copy)]
pub struct Options<'o> {
    /// The rules for the kernels to look for.
    pub rules: &'o Rules,
    /// The limits on resources.
    pub limits: Limits,
    /// The audit calls this from time to time, with the number of bytes of code that it has read
    /// since the last call.
    pub progress: &'o (dyn Fn(u64) + Sync),
}

/// Audits the file at `path`: one report for each instruction set in it.
///
/// It uses the threads of the current `rayon` pool. It reads code in pieces, and needs memory for
/// the symbol tables, plus one or two megabytes for each thread.
///
/// # Errors
/// The file cannot be read, is not a compiled binary or is a broken one, or has no code that this
/// crate decodes.
pub fn audit_file(path: &Path, options: &Options<'_>) -> Result<Vec<Report>, Error> {
    let source = FileSource::open(path)?;
    audit(&source, &path.to_string_lossy(), options)
}

/// Audits the bytes of `source`, called `path` in the reports; see [`audit_file`].
///
/// # Errors
/// The errors of [`audit_file`].
pub fn audit(source: &dyn Source, path: &str, options: &Options<'_>) -> Result<Vec<Report>, Error> {
    let contents = container::open(source, options.limits.tables)?;
    let found: Vec<Result<ArchResult, Error>> = contents
        .parts
        .par_iter()
        .map(|part| ArchResult::in_part(source, part, options).map_err(|error| named(part, error)))
        .collect();
    let mut merged: BTreeMap<Arch, ArchResult> = BTreeMap::new();
    let mut notes = Vec::new();
    let alone = found.len() == 1;
    for found in found {
        match found {
            Ok(found) => match merged.get_mut(&found.arch) {
                Some(known) => known.merge(found),
                None => drop(merged.insert(found.arch, found)),
            },
            // Among several object files, skip those that cannot be read.
            Err(error @ (Error::Architecture(_) | Error::Limit(_))) if !alone => {
                notes.push(format!("left out: {error}"))
            }
            Err(error) => return Err(error),
        }
    }
    if merged.is_empty() {
        let what = notes.into_iter().next().or_else(|| contents.skipped.into_iter().next());
        return Err(Error::Format(what.unwrap_or_else(|| "there is no object file in it".to_owned())));
    }
    notes.extend(summary_of(&contents.skipped));
    Ok(merged.into_values().map(|found| found.report(path, source.len(), &notes, options.rules)).collect())
}

fn named(part: &Part, error: Error) -> Error {
    match error {
        Error::Malformed(what) if !part.name.is_empty() => Error::Malformed(format!("{}: {what}", part.name)),
        Error::Architecture(what) if !part.name.is_empty() => {
            Error::Architecture(format!("{what} ({})", part.name))
        }
        Error::Limit(what) if !part.name.is_empty() => Error::Limit(format!("{}: {what}", part.name)),
        other => other,
    }
}

fn summary_of(skipped: &[String]) -> Option<String> {
    let first = skipped.first()?;
    Some(match skipped.len() {
        1 => format!("left out: {first}"),
        more => format!("left out: {first}; and {} more members", more - 1),
    })
}

/// The results for one object file, or for several of one instruction set.
struct ArchResult {
    arch: Arch,
    format: &'static str,
    objects: u64,
    code_bytes: u64,
    names: Names,
    total: Counts,
    mnemonics: Mnemonics,
    crates: BTreeMap<String, CrateCounts>,
    functions: Vec<FunctionCounts>,
    facts: Facts,
}

impl ArchResult {
    fn in_part(source: &dyn Source, part: &Part, options: &Options<'_>) -> Result<Self, Error> {
        let tables = Tables::new(source, part.range.clone(), options.limits.tables);
        let image = Image::read(&tables, &part.range)?;
        let rules = options.rules.all();
        let patterns = Patterns::new(rules, image.arch)?;
        let functions = functions(&image);
        let counted = count::count(source, &image, &functions, &patterns, options.progress)?;
        let mut found = Self {
            arch: image.arch,
            format: image.format,
            objects: 1,
            code_bytes: image.code.iter().map(|code| code.range.end - code.range.start).sum(),
            names: image.names,
            total: counted.total,
            mnemonics: Mnemonics::new(),
            crates: BTreeMap::new(),
            functions: Vec::new(),
            facts: Facts::new(rules.len()),
        };
        found.add_functions(&image, &functions, &counted, rules);
        found.add_matches(&image, &functions, &counted, rules);
        found.mnemonics = counted.mnemonics;
        found.add_text(source, &image, rules)?;
        Ok(found)
    }

    fn add_functions(
        &mut self,
        image: &Image<'_>,
        functions: &[Function],
        counted: &Counted,
        rules: &[Rule],
    ) {
        let named: Vec<(String, Vec<usize>)> = functions
            .par_iter()
            .map(|function| {
                let name = demangle(image.symbols[function.symbol as usize].name);
                let own = rules_of(&name, image.arch, rules);
                (name, own)
            })
            .collect();
        let mut named_total = Counts::default();
        for ((function, counts), (name, own)) in functions.iter().zip(&counted.functions).zip(named) {
            named_total += *counts;
            let krate = crate_of(&name);
            add_to_crate(
                &mut self.crates,
                self.arch,
                krate.unwrap_or(NO_CRATE),
                1,
                function.end - function.start,
                *counts,
            );
            self.facts.add_function(rules, image.arch, &name, &own, || {
                found_function(image, function, &name, *counts)
            });
            if counts.widths[1] + counts.widths[2] > 0 {
                self.functions.push(FunctionCounts {
                    address: image.code[function.region as usize].address + function.start,
                    bytes: function.end - function.start,
                    kernel: kernel_of(&name, &own, image.arch, rules),
                    counts: report_counts(self.arch, *counts),
                    name,
                });
            }
        }
        let unnamed = difference(counted.total, named_total);
        if unnamed.instructions > 0 {
            add_to_crate(&mut self.crates, self.arch, NO_CRATE, 0, 0, unnamed);
        }
    }

    fn add_matches(&mut self, image: &Image<'_>, functions: &[Function], counted: &Counted, rules: &[Rule]) {
        for (region, found) in &counted.matches {
            let at = |function: &Function| (function.region, function.start);
            let index = functions.partition_point(|function| at(function) <= (*region, found.range.start));
            let function = index.checked_sub(1).map(|index| (index, &functions[index]));
            let inside = function
                .filter(|(_, function)| function.region == *region && found.range.start < function.end);
            let address = image.code[*region as usize].address;
            let name = inside.map(|(_, function)| demangle(image.symbols[function.symbol as usize].name));
            let range = address + found.range.start..address + found.range.end;
            self.facts.add_match(rules, found.rule, name, range, found.instructions);
        }
    }

    fn add_text(&mut self, source: &dyn Source, image: &Image<'_>, rules: &[Rule]) -> Result<(), Error> {
        let mut wanted: Vec<&str> = Vec::new();
        for rule in rules.iter().filter(|rule| rule.arch == image.arch) {
            wanted.extend(rule.strings.iter().map(String::as_str));
        }
        wanted.sort_unstable();
        wanted.dedup();
        // Short text may be in the code itself; the locations of panics are in the data.
        let found = text::find(source, &image.data, &wanted)?;
        for (text, offset) in wanted.iter().zip(found) {
            if let Some(offset) = offset {
                self.facts.add_text(rules, image.arch, text, offset);
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Self) {
        self.objects += other.objects;
        self.code_bytes += other.code_bytes;
        self.names = self.names.max(other.names);
        self.total += other.total;
        count::add_mnemonics(&mut self.mnemonics, &other.mnemonics);
        for (name, more) in other.crates {
            match self.crates.get_mut(&name) {
                Some(known) => add_crate(known, &more),
                None => drop(self.crates.insert(name, more)),
            }
        }
        self.functions.extend(other.functions);
        self.facts.merge(other.facts);
    }

    fn report(mut self, path: &str, file_bytes: u64, notes: &[String], rules: &Rules) -> Report {
        let wide = |counts: &report::Counts| {
            let of = |i: usize| counts.widths.get(self.arch.widths()[i]).copied().unwrap_or(0);
            std::cmp::Reverse((of(2), of(1), of(0)))
        };
        self.functions
            .sort_by(|a, b| wide(&a.counts).cmp(&wide(&b.counts)).then_with(|| a.name.cmp(&b.name)));
        let mut crates: Vec<_> = self.crates.into_values().collect();
        crates.sort_by(|a, b| wide(&a.counts).cmp(&wide(&b.counts)).then_with(|| a.name.cmp(&b.name)));
        let symbols = match self.names {
            Names::All => Symbols::All,
            Names::Dynamic => Symbols::Dynamic,
            Names::None => Symbols::None,
        };
        let mut notes = notes.to_vec();
        notes.extend(note_on(symbols).map(str::to_owned));
        Report {
            schema: SCHEMA,
            path: path.to_owned(),
            format: self.format.to_owned(),
            arch: self.arch,
            objects: self.objects,
            file_bytes,
            code_bytes: self.code_bytes,
            symbols,
            total: report_counts(self.arch, self.total),
            classes: classes(self.arch, &self.mnemonics),
            crates,
            functions: self.functions,
            rules: self.facts.verdicts(rules.all(), self.arch, symbols),
            notes,
        }
    }
}

/// A note about what cannot be known about a binary with these symbols.
fn note_on(symbols: Symbols) -> Option<&'static str> {
    match symbols {
        Symbols::All => None,
        Symbols::Dynamic => Some(
            "symbols are stripped but for those of dynamic linking: code of functions without a name counts for no crate or for the \
             function before it, and whether a kernel is a function of its own cannot be known",
        ),
        Symbols::None => Some(
            "symbols are stripped: which function and which crate code belongs to cannot be known, nor whether a kernel is a function of \
             its own; totals and patterns of instructions are exact",
        ),
    }
}

fn rules_of(name: &str, arch: Arch, rules: &[Rule]) -> Vec<usize> {
    let is_own =
        |rule: &Rule| rule.arch == arch && rule.symbols.iter().any(|symbol| matches_glob(symbol, name));
    rules.iter().enumerate().filter(|(_, rule)| is_own(rule)).map(|(i, _)| i).collect()
}

/// The rule whose kernel the function is, or else its crate, if that has kernels.
fn kernel_of(name: &str, own: &[usize], arch: Arch, rules: &[Rule]) -> Option<String> {
    let krate = crate_of(name);
    let is_part = |rule: &&Rule| {
        rule.arch == arch
            && (krate == Some(rule.krate.as_str())
                || rule.linked.iter().any(|linked| matches_glob(linked, name)))
    };
    let rule = own.first().map(|rule| rules[*rule].name.clone());
    rule.or_else(|| rules.iter().find(is_part).map(|rule| rule.krate.clone()))
}

fn found_function(image: &Image<'_>, function: &Function, name: &str, counts: Counts) -> FoundFunction {
    let start = image.code[function.region as usize].address + function.start;
    FoundFunction { name: name.to_owned(), range: start..start + (function.end - function.start), counts }
}

fn add_to_crate(
    crates: &mut BTreeMap<String, CrateCounts>,
    arch: Arch,
    name: &str,
    functions: u64,
    bytes: u64,
    counts: Counts,
) {
    let more = CrateCounts { name: name.to_owned(), functions, bytes, counts: report_counts(arch, counts) };
    match crates.get_mut(name) {
        Some(known) => add_crate(known, &more),
        None => drop(crates.insert(name.to_owned(), more)),
    }
}

fn add_crate(known: &mut CrateCounts, more: &CrateCounts) {
    known.functions += more.functions;
    known.bytes += more.bytes;
    known.counts.instructions += more.counts.instructions;
    known.counts.vector += more.counts.vector;
    known.counts.bad += more.counts.bad;
    for (width, count) in &more.counts.widths {
        *known.counts.widths.entry(width.clone()).or_default() += count;
    }
}

pub(crate) fn report_counts(arch: Arch, counts: Counts) -> report::Counts {
    let names = arch.widths().into_iter().map(str::to_owned);
    report::Counts {
        instructions: counts.instructions,
        vector: counts.vector,
        widths: names.zip(counts.widths).collect(),
        bad: counts.bad,
    }
}

fn difference(all: Counts, part: Counts) -> Counts {
    Counts {
        instructions: all.instructions - part.instructions,
        vector: all.vector - part.vector,
        bad: all.bad - part.bad,
        widths: std::array::from_fn(|i| all.widths[i] - part.widths[i]),
    }
}

fn classes(arch: Arch, mnemonics: &Mnemonics) -> BTreeMap<Class, report::Widths> {
    let mut classes: BTreeMap<Class, report::Widths> = BTreeMap::new();
    for (op, row) in mnemonics.iter().enumerate().filter(|(_, row)| row.iter().any(|count| *count > 0)) {
        let class = classes.entry(Class::of(arch, &arch.mnemonic(op as u16))).or_default();
        for (width, count) in arch.widths().into_iter().zip(row) {
            *class.entry(width.to_owned()).or_default() += count;
        }
    }
    classes
}
