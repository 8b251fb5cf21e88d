//! The work of one operation, so that a reader can convert its time to a familiar figure: bytes or
//! signatures per second, or cycles per byte.

use crate::record::Record;

/// The work of one operation of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// This many bytes, read or written.
    Bytes(u64),
    /// This many signatures, made or verified.
    Signatures(u64),
    /// One call. Its input is empty, or does not determine the amount of work.
    Call,
}

/// The suites whose cases end in a number of signatures.
const SIGNATURES: [&str; 5] = ["ed25519", "ed25519-native", "ed25519-threads", "kms", "kms-threads"];

/// The group in which each of several callers makes [`CALLS`] calls.
const CALLERS: &str = "callers";
const CALLS: u64 = 8;

/// Steps of a call: most do not process all bytes.
const STEPS: (&str, [&str; 2]) = ("short-input-attribution", ["update", "finalize"]);

impl Work {
    /// The work of a record's case.
    pub fn of(record: &Record) -> Self {
        let (group, last) = record.case.rsplit_once('/').unwrap_or(("", &record.case));
        if SIGNATURES.contains(&record.suite.as_str()) {
            let count: u64 = last.parse().unwrap_or(0);
            let each = if group == CALLERS { CALLS } else { 1 };
            return if count > 0 { Self::Signatures(count * each) } else { Self::Call };
        }
        let is_step = record.suite == STEPS.0 && STEPS.1.contains(&group);
        if record.bytes == 0 || is_step { Self::Call } else { Self::Bytes(record.bytes) }
    }

    /// The word for one unit of work.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Bytes(_) => "byte",
            Self::Signatures(_) => "signature",
            Self::Call => "call",
        }
    }

    /// The number of units that one operation does.
    pub fn count(self) -> f64 {
        match self {
            Self::Bytes(count) | Self::Signatures(count) => count as f64,
            Self::Call => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    fn work(suite: &str, case: &str, bytes: u64) -> Work {
        Work::of(&Record { suite: suite.into(), case: case.into(), bytes, ..example() })
    }

    #[test]
    fn the_unit_is_what_the_case_is_about() {
        assert_eq!(work("oneshot", "hash/64", 64), Work::Bytes(64));
        assert_eq!(work("streaming-dispatch", "hash/1M-by/64", 1 << 20), Work::Bytes(1 << 20));
        assert_eq!(work("ed25519", "strict/512", 65536), Work::Signatures(512));
        assert_eq!(work("kms", "sign/1", 128), Work::Signatures(1));
        assert_eq!(work("oneshot", "hash/0", 0), Work::Call);
        assert_eq!(work("short-input-attribution", "finalize/64", 64), Work::Call);
        assert_eq!(work("short-input-attribution", "stream/64", 64), Work::Bytes(64));
        assert_eq!(work("kms-threads", "callers/64", 8192), Work::Signatures(512));
        assert_eq!(work("kms", "open", 128), Work::Call);
        let (bytes, call) = (work("oneshot", "hash/64", 64), work("oneshot", "hash/0", 0));
        assert_eq!((bytes.unit(), bytes.count(), call.unit(), call.count()), ("byte", 64.0, "call", 1.0));
    }
}
