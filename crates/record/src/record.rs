//! The record: one implementation in one case and one launch, as a line of JSON. The format is
//! `spec/bench-record.md`.

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::stats::median;

/// The version of the record's shape. A reader refuses any other.
pub const SCHEMA: u32 = 2;

/// The time now, to the second: RFC 3339 in UTC, such as `2026-11-20T19:00:00Z`.
///
/// # Panics
/// The system's clock is after the year 9999.
#[must_use]
pub fn utc_now() -> String {
    let now = OffsetDateTime::now_utc();
    now.truncate_to_second().format(&Rfc3339).expect("a year of four digits")
}

/// The role of an implementation in its case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Ours: exactly one in each case.
    Ours,
    /// An implementation with which ours is compared.
    Peer,
    /// A second instance of the first peer: two equal programs show how large the noise is.
    Control,
}

/// One implementation, one case, one launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The run of the launch, for example `2026-11-20T19:00:00Z-1a2b`.
    pub run: String,
    /// When the case was finished: RFC 3339, UTC.
    pub time: String,
    /// The suite, for example `oneshot`.
    pub suite: String,
    /// The case within the suite, for example `hash/64`.
    pub case: String,
    /// The bytes that one operation reads; for extendable output, the bytes that it writes.
    pub bytes: u64,
    /// The implementation, for example `blake3`.
    pub implementation: String,
    /// The version of the implementation.
    pub version: String,
    /// The role of the implementation in this case.
    pub role: Role,
    /// Our kernel, for example `x86_64/avx512`; empty for others.
    pub kernel: String,
    /// Whether that kernel was forced, rather than chosen by detection.
    pub forced: bool,
    /// The instruction set to which a peer was restricted, for example `avx2`; otherwise empty.
    #[serde(rename = "held_to")]
    pub isa_limit: String,
    /// The machine's lane, for example `amd-zen4`.
    pub lane: String,
    /// The processor's own name.
    pub cpu: String,
    /// The processor's features that kernels ask for.
    pub features: Vec<String>,
    /// The core's clock in GHz, by a chain of dependent additions; 0 if unknown.
    pub ghz: f64,
    /// The compiler or engine of ours, for example `rustc 1.95.0`.
    pub toolchain: String,
    /// The build's flags, in addition to its profile's.
    pub flags: String,
    /// The commit, 40 hexadecimal digits, or empty outside a repository.
    pub commit: String,
    /// Whether the checkout differed from the commit.
    pub dirty: bool,
    /// The launch within the run, counted from 1.
    pub launch: u32,
    /// Operations in one sample.
    pub iterations: u64,
    /// Nanoseconds of one operation, one value for each round.
    pub samples_ns: Vec<f64>,
    /// The load of the machine, averaged over a minute.
    pub load: f64,
    /// The threads that the operation may use; 0 if the harness does not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads: u32,
    /// The processors that the process may use; 0 if the harness does not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cores: u32,
    /// The share of rounds in which something else used the core, as far as the harness can tell; 0
    /// if it cannot tell.
    #[serde(default)]
    pub disturbed: f64,
    /// The summary of the samples, if the record comes from a kept run; never in a record's own
    /// line.
    #[serde(skip)]
    pub summary: Option<Summary>,
}

/// Whether a number that 0 stands for "unknown" in is left out.
pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The summary that a kept run has instead of raw samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The number of samples.
    pub rounds: usize,
    /// Nanoseconds of one operation: minimum, first quartile, median, third quartile, maximum.
    pub quantiles: [f64; 5],
    /// The median over the rounds of a logarithm: for a peer, of ours/peer; for a control, of
    /// control/first peer; for ours it is 0.
    pub log_ratio: f64,
}

impl Record {
    /// Reads one line.
    ///
    /// # Errors
    /// The line is not a record, has another [`SCHEMA`], or has impossible figures.
    pub fn parse(line: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let version: Version = serde_json::from_str(line)?;
        ensure!(version.schema == SCHEMA, "this record has schema {}, not {SCHEMA}", version.schema);
        let record: Self = serde_json::from_str(line)?;
        let Self { suite, case, launch, iterations, samples_ns, .. } = &record;
        let id = || format!("{suite}: {case}: {}", record.implementation);
        ensure!(!suite.is_empty() && !case.is_empty(), "a record of no suite or no case");
        ensure!(!record.implementation.is_empty(), "{suite}: {case}: a record of no implementation");
        ensure!(*launch >= 1 && *iterations >= 1, "{}: launches and iterations begin at 1", id());
        ensure!(!samples_ns.is_empty(), "{}: no samples", id());
        ensure!(samples_ns.iter().all(|ns| ns.is_finite() && *ns > 0.0), "{}: a time that cannot be", id());
        Ok(record)
    }

    /// Reads all lines of `text`, and skips empty ones.
    ///
    /// # Errors
    /// A line is not a record; the error says which line.
    pub fn parse_all(text: &str) -> Result<Vec<Self>> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(|(index, line)| Self::parse(line).with_context(|| format!("line {}", index + 1))).collect()
    }

    /// The record as one line of JSON, without its newline.
    ///
    /// # Errors
    /// None that a record can cause.
    pub fn line(&self) -> Result<String> {
        Ok(serde_json::to_string(self)?)
    }

    /// Rounds the samples to a tenth of a nanosecond and the clock to a thousandth, so that kept
    /// records stay small.
    pub fn round(&mut self) {
        for ns in &mut self.samples_ns {
            *ns = (*ns * 10.0).round().max(1.0) / 10.0;
        }
        self.ghz = (self.ghz * 1000.0).round() / 1000.0;
        self.load = (self.load * 100.0).round() / 100.0;
        self.disturbed = (self.disturbed * 1000.0).round() / 1000.0;
    }

    /// The median time of one operation in nanoseconds.
    pub fn median_ns(&self) -> f64 {
        self.summary
            .as_ref()
            .map_or_else(|| median(self.samples_ns.iter().copied()), |summary| summary.quantiles[2])
    }

    /// The number of measured rounds.
    pub fn rounds(&self) -> usize {
        self.summary.as_ref().map_or(self.samples_ns.len(), |summary| summary.rounds)
    }

    /// Nanoseconds of one operation: minimum, first quartile, median, third quartile, maximum. A
    /// quartile is the sample at that rank, rounded down.
    ///
    /// # Panics
    /// There is no sample.
    pub fn quantiles(&self) -> [f64; 5] {
        let mut sorted = self.samples_ns.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        [sorted[0], sorted[last / 4], self.median_ns(), sorted[last - last / 4], sorted[last]]
    }

    /// The implementation with its version and its restriction, as tables show it.
    pub fn label(&self) -> String {
        let held =
            if self.isa_limit.is_empty() { String::new() } else { format!(" (held to {})", self.isa_limit) };
        format!("{} {}{held}", self.implementation, self.version)
    }
}

#[cfg(test)]
pub(crate) fn example() -> Record {
    Record {
        schema: SCHEMA,
        run: "2026-11-20T19:00:00Z-abcd".into(),
        time: "2026-11-20T19:00:05Z".into(),
        suite: "oneshot".into(),
        case: "hash/64".into(),
        bytes: 64,
        implementation: "bulla".into(),
        version: "0.1.0".into(),
        role: Role::Ours,
        kernel: "portable".into(),
        forced: false,
        isa_limit: String::new(),
        lane: "amd-zen4".into(),
        cpu: "a processor".into(),
        features: vec!["avx2".into()],
        ghz: 3.0,
        toolchain: "rustc 1.95.0".into(),
        flags: String::new(),
        commit: String::new(),
        dirty: false,
        launch: 1,
        iterations: 100,
        samples_ns: vec![50.0, 51.0, 49.0],
        load: 0.25,
        threads: 0,
        cores: 0,
        disturbed: 0.0,
        summary: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back() {
        let record = example();
        assert_eq!(Record::parse(&record.line().unwrap()).unwrap(), record);
    }

    #[test]
    fn numbers_of_threads_and_cores_are_left_out_if_unknown() {
        let line = example().line().unwrap();
        assert!(!line.contains("threads") && !line.contains("cores"), "{line}");
        let record = Record { threads: 8, cores: 16, ..example() };
        assert_eq!(Record::parse(&record.line().unwrap()).unwrap(), record);
    }

    #[test]
    fn another_schema_is_refused_whatever_its_fields() {
        assert!(Record::parse(r#"{"schema":1,"ours_ns":3}"#).unwrap_err().to_string().contains("schema 1"));
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let line = example().line().unwrap().replace("\"suite\"", "\"more\":1,\"suite\"");
        assert!(Record::parse(&line).is_err());
    }

    #[test]
    fn figures_that_cannot_be_are_refused() {
        let bad: [fn(&mut Record); 6] = [
            |record| record.samples_ns.clear(),
            |record| record.samples_ns[1] = 0.0,
            |record| record.samples_ns[1] = -1.0,
            |record| record.launch = 0,
            |record| record.iterations = 0,
            |record| record.implementation.clear(),
        ];
        for (index, spoil) in bad.iter().enumerate() {
            let mut record = example();
            spoil(&mut record);
            assert!(Record::parse(&record.line().unwrap()).is_err(), "{index}");
        }
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        let text = format!("{}\n\nnonsense\n", example().line().unwrap());
        assert!(Record::parse_all(&text).unwrap_err().to_string().contains("line 3"));
    }

    #[test]
    fn rounding_keeps_a_tenth_of_a_nanosecond() {
        let mut record = Record { samples_ns: vec![12.345, 0.01], ghz: 3.66049, ..example() };
        record.round();
        assert_eq!((record.samples_ns, record.ghz), (vec![12.3, 0.1], 3.66));
    }
}
