//! Points in time, to the millisecond.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::error::{Code, KmsError, Result};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z, up to the end of the year 9998.
///
/// The text form is RFC 3339 in UTC with exactly three digits of a second,
/// `2026-01-31T09:30:00.000Z`; no other form is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// 9998-12-31T23:59:59.999Z: the last time that the specification allows.
const LAST: u64 = 253_370_764_799_999;

impl Timestamp {
    /// The current time, by the system's clock.
    ///
    /// # Errors
    /// [`Code::ClockOutOfRange`] before 1970 and after 9998: such a time is never written.
    ///
    /// ```
    /// use bulla_kms::Timestamp;
    ///
    /// let tomorrow = Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + 86_400_000)?;
    /// assert!(tomorrow > Timestamp::now()?);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn now() -> Result<Self> {
        Self::try_from(SystemTime::now())
    }

    /// From milliseconds since 1970.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] after the year 9998.
    pub fn from_unix_millis(millis: u64) -> Result<Self> {
        if millis <= LAST {
            Ok(Self(millis))
        } else {
            Err(KmsError::new(Code::InvalidArgument, format!("{millis} ms is after the year 9998")))
        }
    }

    /// Milliseconds since 1970.
    pub fn unix_millis(self) -> u64 {
        self.0
    }
}

impl TryFrom<SystemTime> for Timestamp {
    type Error = KmsError;

    fn try_from(time: SystemTime) -> Result<Self> {
        let millis =
            time.duration_since(UNIX_EPOCH).ok().and_then(|since| u64::try_from(since.as_millis()).ok());
        millis.filter(|millis| *millis <= LAST).map(Self).ok_or_else(|| {
            KmsError::new(
                Code::ClockOutOfRange,
                "the system's clock is wrong: it stands before 1970 or after 9998; set it and try again",
            )
        })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0 / 1000).map_err(|_| fmt::Error)?;
        let time = OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| fmt::Error)?;
        let (year, month, day) = time.to_calendar_date();
        let (hour, minute, second) = time.to_hms();
        let (month, milli) = (u8::from(month), self.0 % 1000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl FromStr for Timestamp {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let error = || {
            KmsError::new(
                Code::InvalidArgument,
                "not a time of the form 2026-01-31T09:30:00.000Z (RFC 3339, UTC, milliseconds)",
            )
        };
        let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| error())?;
        let millis = u64::try_from(time.unix_timestamp_nanos() / 1_000_000).map_err(|_| error())?;
        let time = Self::from_unix_millis(millis)?;
        if time.to_string() == text { Ok(time) } else { Err(error()) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_rfc_3339_with_milliseconds() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z"),
            (LAST, "9998-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(millis).to_string(), text);
            assert_eq!(text.parse::<Timestamp>().unwrap(), Timestamp(millis));
            let json = serde_json::to_string(&Timestamp(millis)).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), Timestamp(millis));
        }
    }

    #[test]
    fn a_clock_out_of_range_is_an_error_and_no_other_time() {
        let millis = std::time::Duration::from_millis;
        let at = |time: Option<SystemTime>| Timestamp::try_from(time.unwrap());
        for good in [0, 1, 951_782_400_007, LAST] {
            assert_eq!(at(UNIX_EPOCH.checked_add(millis(good))).unwrap(), Timestamp(good));
        }
        let far = std::time::Duration::from_secs(1 << 60);
        for bad in [
            UNIX_EPOCH.checked_sub(millis(1)),
            UNIX_EPOCH.checked_sub(far),
            UNIX_EPOCH.checked_add(millis(LAST + 1)),
            UNIX_EPOCH.checked_add(far),
        ] {
            assert_eq!(at(bad).unwrap_err().code, Code::ClockOutOfRange);
        }
        assert!(Timestamp::now().unwrap() > Timestamp(1_700_000_000_000));
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "2026-01-31",
            "2026-01-31T09:30:00Z",
            "2026-01-31T09:30:00.0000Z",
            "2026-01-31 09:30:00.000Z",
            "2026-01-31T09:30:00.000z",
            "2026-01-31T10:30:00.000+01:00",
            "2026-02-30T09:30:00.000Z",
            "1969-12-31T23:59:59.999Z",
            " 2026-01-31T09:30:00.000Z",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
        assert!(Timestamp::from_unix_millis(LAST + 1).is_err());
    }
}
