//! The archive of runs: the records of one run without their raw samples. The format is
//! `spec/bench-record.md`, "What is kept".

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::{
    compare::log_ratio,
    record::{Record, Role, SCHEMA, Summary, is_zero},
};

/// The version of the file's shape. A reader refuses any other.
pub const VERSION: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchiveHeader {
    kept: u32,
    lines: usize,
    contenders: Vec<Contender>,
}

/// The common fields of a contender's records over all launches and cases.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contender {
    run: String,
    suite: String,
    implementation: String,
    version: String,
    role: Role,
    kernel: String,
    forced: bool,
    #[serde(rename = "held_to")]
    isa_limit: String,
    lane: String,
    cpu: String,
    features: Vec<String>,
    toolchain: String,
    flags: String,
    commit: String,
    dirty: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    cores: u32,
}

/// Consecutive records of one case and launch.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchiveLine {
    case: String,
    bytes: u64,
    launch: u32,
    time: String,
    ghz: f64,
    load: f64,
    disturbed: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
    threads: u32,
    /// Contender, iterations, rounds, quantiles, logarithm of the ratio.
    of: Vec<(usize, u64, usize, [f64; 5], f64)>,
}

/// The text of a kept file. Raw samples become a summary; a summary does not change.
///
/// # Errors
/// A record's case and launch lack the record with which it is compared, or the numbers of rounds
/// differ.
pub fn write(records: &[Record]) -> Result<String> {
    type Key<'a> = (&'a str, &'a str, &'a str, u32);
    let mut groups: BTreeMap<Key<'_>, Vec<&Record>> = BTreeMap::new();
    for record in records {
        groups.entry((&record.run, &record.suite, &record.case, record.launch)).or_default().push(record);
    }
    let mut contenders = Vec::new();
    let mut lines: Vec<(ArchiveLine, &Record)> = Vec::new();
    for record in records {
        let group = &groups[&(&*record.run, &*record.suite, &*record.case, record.launch)];
        let Summary { rounds, quantiles, log_ratio } = summary(record, group)?;
        let contender = Contender::of(record);
        let index = contenders.iter().position(|known| *known == contender).unwrap_or_else(|| {
            contenders.push(contender);
            contenders.len() - 1
        });
        let found = (index, record.iterations, rounds, quantiles, log_ratio);
        let line = ArchiveLine::of(record);
        match lines.last_mut() {
            Some((last, first))
                if first.run == record.run
                    && first.suite == record.suite
                    && *last == (ArchiveLine { of: last.of.clone(), ..ArchiveLine::of(record) }) =>
            {
                last.of.push(found);
            }
            _ => lines.push((ArchiveLine { of: vec![found], ..line }, record)),
        }
    }
    let header = ArchiveHeader { kept: VERSION, lines: lines.len(), contenders };
    let mut text = serde_json::to_string(&header)?;
    text.push('\n');
    for (line, _) in &lines {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", serde_json::to_string(line)?);
    }
    Ok(text)
}

fn summary(record: &Record, group: &[&Record]) -> Result<Summary> {
    if let Some(summary) = &record.summary {
        return Ok(summary.clone());
    }
    let against = match record.role {
        Role::Ours => Some(record),
        Role::Peer => group.iter().find(|other| other.role == Role::Ours).copied(),
        Role::Control => group.iter().find(|other| other.role == Role::Peer).copied(),
    };
    let id = format!("{}: {}: launch {}", record.suite, record.case, record.launch);
    let against = against.with_context(|| format!("{id}: nothing to compare {} with", record.label()))?;
    ensure!(against.samples_ns.len() == record.samples_ns.len(), "{id}: the numbers of rounds differ");
    let log_ratio = match record.role {
        Role::Ours => 0.0,
        Role::Peer => log_ratio(against, record),
        Role::Control => log_ratio(record, against),
    };
    Ok(Summary { rounds: record.samples_ns.len(), quantiles: record.quantiles(), log_ratio })
}

/// Whether the text is a kept file, by its first line.
pub fn is_archive(text: &str) -> bool {
    text.starts_with("{\"kept\":")
}

/// Reads a kept file.
///
/// # Errors
/// The file has another version, is cut off, or has impossible content. The error names the line.
pub fn read(text: &str) -> Result<Vec<Record>> {
    #[derive(Deserialize)]
    struct Version {
        kept: u32,
    }
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let version: Version = serde_json::from_str(first)
        .context("line 1: this is no kept run; `cargo xtask bench SUITE --record` writes one")?;
    ensure!(
        version.kept == VERSION,
        "line 1: this kept run has version {}, and only version {VERSION} can be read",
        version.kept
    );
    let header: ArchiveHeader = serde_json::from_str(first).context("line 1")?;
    let found = rest.lines().count();
    ensure!(found == header.lines, "the header announces {} lines, and {found} follow", header.lines);
    let mut records = Vec::new();
    for (index, text) in rest.lines().enumerate() {
        let at = || format!("line {}", index + 2);
        let line: ArchiveLine = serde_json::from_str(text).with_context(at)?;
        line.records(&header.contenders, &mut records).with_context(at)?;
    }
    Ok(records)
}

impl Contender {
    fn of(record: &Record) -> Self {
        let Record { run, suite, implementation, version, role, kernel, forced, isa_limit, .. } =
            record.clone();
        let Record { lane, cpu, features, toolchain, flags, commit, dirty, cores, .. } = record.clone();
        Self {
            run,
            suite,
            implementation,
            version,
            role,
            kernel,
            forced,
            isa_limit,
            lane,
            cpu,
            features,
            toolchain,
            flags,
            commit,
            dirty,
            cores,
        }
    }
}

impl ArchiveLine {
    fn of(record: &Record) -> Self {
        let Record { case, bytes, launch, time, ghz, load, disturbed, threads, .. } = record.clone();
        Self { case, bytes, launch, time, ghz, load, disturbed, threads, of: Vec::new() }
    }

    fn records(&self, contenders: &[Contender], records: &mut Vec<Record>) -> Result<()> {
        ensure!(!self.case.is_empty() && self.launch >= 1, "no case, or a launch below 1");
        for (index, iterations, rounds, quantiles, log_ratio) in &self.of {
            let Some(by) = contenders.get(*index) else {
                bail!("contender {index}, and the header has {}", contenders.len());
            };
            ensure!(*iterations >= 1 && *rounds >= 1, "iterations and rounds begin at 1");
            let is_time = |ns: &f64| ns.is_finite() && *ns > 0.0;
            ensure!(quantiles.iter().all(is_time) && quantiles.is_sorted(), "times that cannot be");
            ensure!(by.role != Role::Ours || *log_ratio == 0.0, "a ratio of ours to itself other than 1");
            records.push(Record {
                schema: SCHEMA,
                run: by.run.clone(),
                time: self.time.clone(),
                suite: by.suite.clone(),
                case: self.case.clone(),
                bytes: self.bytes,
                implementation: by.implementation.clone(),
                version: by.version.clone(),
                role: by.role,
                kernel: by.kernel.clone(),
                forced: by.forced,
                isa_limit: by.isa_limit.clone(),
                lane: by.lane.clone(),
                cpu: by.cpu.clone(),
                features: by.features.clone(),
                ghz: self.ghz,
                toolchain: by.toolchain.clone(),
                flags: by.flags.clone(),
                commit: by.commit.clone(),
                dirty: by.dirty,
                launch: self.launch,
                iterations: *iterations,
                samples_ns: Vec::new(),
                load: self.load,
                threads: self.threads,
                cores: by.cores,
                disturbed: self.disturbed,
                summary: Some(Summary { rounds: *rounds, quantiles: *quantiles, log_ratio: *log_ratio }),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{comparisons, launches};

    fn text() -> String {
        let mut records = launches("a", &[1.5, 1.1, 1.2]);
        records[0].samples_ns = vec![100.0, 133.3, 90.1];
        records.extend(launches("b", &[0.7]));
        write(&records).unwrap()
    }

    #[test]
    fn a_kept_run_compares_as_its_samples_did() {
        let mut records = launches("a", &[1.5, 1.1, 1.2]);
        records[0].samples_ns = vec![100.0, 133.3, 90.1];
        let kept = read(&write(&records).unwrap()).unwrap();
        let of = |records: &[Record]| comparisons(records).unwrap().remove(0).launches;
        assert_eq!(of(&kept), of(&records));
        assert_eq!(write(&kept).unwrap(), write(&records).unwrap());
    }

    #[test]
    fn threads_and_cores_are_kept() {
        let with = |record: Record| Record { threads: 8, cores: 16, ..record };
        let records: Vec<_> = launches("a", &[1.5]).into_iter().map(with).collect();
        let with_both = write(&records).unwrap();
        let has_both = |record: &Record| (record.threads, record.cores) == (8, 16);
        assert!(read(&with_both).unwrap().iter().all(has_both), "{with_both}");
        assert!(!text().contains("cores"));
    }

    #[test]
    fn the_header_is_there_once_and_no_sample_is() {
        let text = text();
        assert_eq!((text.lines().count(), text.matches("a processor").count()), (5, 3), "{text}");
        assert!(is_archive(&text) && !text.contains("samples"), "{text}");
    }

    #[test]
    fn what_is_broken_is_refused_and_the_line_named() {
        let text = text();
        let refused = |text: &str| format!("{:#}", read(text).unwrap_err());
        assert!(refused(&text.replace("\"kept\":1", "\"kept\":2")).contains("version 2"));
        assert!(refused("{\"schema\":2}\n").contains("no kept run"));
        assert!(refused("").contains("no kept run"));
        let cut = text.trim_end().rsplit_once('\n').unwrap().0;
        assert!(refused(cut).contains("announces 4 lines, and 3 follow"));
        assert!(refused(&text.replacen("\"of\":[[0,", "\"of\":[[9,", 1)).contains("line 2: contender 9"));
        assert!(refused(&text.replacen("\"ghz\"", "\"more\":1,\"ghz\"", 1)).contains("line 2"));
        assert!(refused(&text.replacen("90.1", "-1.0", 1)).contains("times that cannot be"));
    }
}
