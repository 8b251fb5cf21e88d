//! Points in time, to the millisecond.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::{Date, Month, OffsetDateTime};

use crate::encoding::TextVisitor;
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
        let millis = millis_of(text.as_bytes()).ok_or_else(error)?;
        Self::from_unix_millis(millis)
    }
}

/// Milliseconds since 1970. A keystore reads as many times as it has keys, and a parser of every
/// form of RFC 3339 would take ten times as long for this one.
fn millis_of(text: &[u8]) -> Option<u64> {
    let (date, time) = text.split_first_chunk::<10>()?;
    let [y0, y1, y2, y3, b'-', mo0, mo1, b'-', d0, d1] = date else { return None };
    let [b'T', h0, h1, b':', mi0, mi1, b':', s0, s1, b'.', ms0, ms1, ms2, b'Z'] = time else { return None };
    let two = |tens, ones| u8::try_from(number([tens, ones])?).ok();
    let month = Month::try_from(two(mo0, mo1)?).ok()?;
    let date = Date::from_calendar_date(number([y0, y1, y2, y3])?.into(), month, two(d0, d1)?).ok()?;
    let (hour, minute, second) = (two(h0, h1)?, two(mi0, mi1)?, two(s0, s1)?);
    let time = date.with_hms_milli(hour, minute, second, number([ms0, ms1, ms2])?).ok()?;
    u64::try_from(time.assume_utc().unix_timestamp_nanos() / 1_000_000).ok()
}

/// The number that at most four decimal digits stand for.
fn number<const N: usize>(digits: [&u8; N]) -> Option<u16> {
    const { assert!(N <= 4) };
    digits.iter().try_fold(0, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then(|| 10 * number + u16::from(digit))
    })
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData))
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
            "2026-13-01T09:30:00.000Z",
            "2026-00-01T09:30:00.000Z",
            "2026-01-00T09:30:00.000Z",
            "2026-01-31T24:00:00.000Z",
            "2026-01-31T09:60:00.000Z",
            "2026-01-31T09:30:60.000Z",
            "2026-01-31T09:30:0:.000Z",
            "2026-01-31T09:30:00.0+0Z",
            "2026-01-31T09:30:00.00/Z",
            "+026-01-31T09:30:00.000Z",
            "2026-01-31T09:30:00.000Z0",
            "9999-01-01T00:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
            " 2026-01-31T09:30:00.000Z",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
        assert!(Timestamp::from_unix_millis(LAST + 1).is_err());
    }
}
