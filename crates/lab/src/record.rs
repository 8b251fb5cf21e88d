//! What one launch found out about one case, as a line of JSON.

use serde::{Deserialize, Serialize};

/// The version of the record's shape. A reader refuses any other.
pub const SCHEMA: u32 = 1;

/// One case, one peer, one launch.
///
/// Times are medians over the rounds of the launch, in nanoseconds for one operation. Ratios are medians of the
/// ratio within each round, which is not the ratio of the medians: what disturbs a whole round cancels out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The suite, such as `blake3`.
    pub suite: String,
    /// The case within the suite, such as `oneshot/64`.
    pub case: String,
    /// How many bytes one operation reads, or for extendable output, writes.
    pub bytes: u64,
    /// Our kernel, such as `x86_64/avx512`.
    pub kernel: String,
    /// Whether the environment forced that kernel, rather than detection choosing it.
    pub forced: bool,
    /// The peer with its version and what it was held back from, such as `blake3 1.8.7`.
    pub peer: String,
    /// The launch, counted from 1.
    pub launch: u32,
    /// Rounds measured.
    pub rounds: u32,
    /// Operations in one sample.
    pub iterations: u64,
    /// Ours.
    pub ours_ns: f64,
    /// The peer's.
    pub peer_ns: f64,
    /// Peer over ours: above 1, ours is faster.
    pub ratio: f64,
    /// Peer over itself, measured the same way: how far from 1 this machine puts two equals.
    pub control: f64,
    /// The core's clock before and after the case, averaged, in GHz.
    pub ghz: f64,
    /// The processor's name for itself.
    pub cpu: String,
}

impl Record {
    /// Reads one line.
    ///
    /// # Errors
    /// It is no record, or one of another [`SCHEMA`].
    pub fn parse(line: &str) -> anyhow::Result<Self> {
        let record: Self = serde_json::from_str(line)?;
        anyhow::ensure!(record.schema == SCHEMA, "this record has schema {}, not {SCHEMA}", record.schema);
        Ok(record)
    }

    /// The record as one line of JSON, without its newline.
    ///
    /// # Errors
    /// None that a record can cause.
    pub fn line(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string(self)?)
    }
}

#[cfg(test)]
pub(crate) fn example() -> Record {
    Record {
        schema: SCHEMA,
        suite: "blake3".into(),
        case: "oneshot/64".into(),
        bytes: 64,
        kernel: "portable".into(),
        forced: false,
        peer: "blake3 1.8.7".into(),
        launch: 1,
        rounds: 51,
        iterations: 100,
        ours_ns: 50.0,
        peer_ns: 60.0,
        ratio: 1.2,
        control: 1.0,
        ghz: 3.0,
        cpu: "a processor".into(),
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
    fn another_schema_is_refused() {
        let line = Record { schema: SCHEMA + 1, ..example() }.line().unwrap();
        assert!(Record::parse(&line).unwrap_err().to_string().contains("schema 2"));
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let line = example().line().unwrap().replace("\"suite\"", "\"more\":1,\"suite\"");
        assert!(Record::parse(&line).is_err());
    }
}
