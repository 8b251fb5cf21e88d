//! Bytes, times and secrets as JSON has them.
//!
//! Secrets are kept in memory that is wiped after its last use. Copies of the operating system, of
//! TLS and of the connection's buffers are not wiped.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64_simd::STANDARD;
use hyper::body::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// A secret text.
pub(crate) fn secret_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Zeroizing<String>, D::Error> {
    String::deserialize(deserializer).map(Zeroizing::new)
}

/// Bytes that JSON has as base64, with the standard alphabet and padding.
#[derive(Clone, Copy)]
pub(crate) struct Base64<'a>(pub(crate) &'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Some of these bytes are secret.
        serializer.serialize_str(&Zeroizing::new(STANDARD.encode_to_string(self.0)))
    }
}

/// The length of the base64 of this many bytes.
pub(crate) fn base64_len(length: usize) -> usize {
    length.div_ceil(3) * 4
}

pub(crate) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    STANDARD.decode_to_vec(text.as_bytes()).map_err(|_| D::Error::custom("a text is not base64"))
}

/// Like [`bytes`], for a field that may be absent.
pub(crate) fn optional_bytes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<u8>>, D::Error> {
    #[derive(Deserialize)]
    struct Bytes(#[serde(deserialize_with = "bytes")] Vec<u8>);
    Ok(Option::deserialize(deserializer)?.map(|Bytes(bytes)| bytes))
}

/// Like [`bytes`], for a secret.
pub(crate) fn secret_bytes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Zeroizing<Vec<u8>>, D::Error> {
    bytes(deserializer).map(Zeroizing::new)
}

/// Like [`secret_bytes`], for a field that may be absent.
pub(crate) fn optional_secret_bytes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Zeroizing<Vec<u8>>>, D::Error> {
    optional_bytes(deserializer).map(|bytes| bytes.map(Zeroizing::new))
}

/// Bytes that are wiped with their last reference.
pub(crate) fn wiped(bytes: Zeroizing<Vec<u8>>) -> Bytes {
    Bytes::from_owner(bytes)
}

/// A length of time that JSON has as whole seconds, rounded down.
pub(crate) mod seconds {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.as_secs())
    }
}

/// Like [`seconds`], for a length that may be absent.
pub(crate) mod optional_seconds {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.as_secs()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_secs))
    }
}

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
/// The days from 0000-03-01 to 1970-01-01. Years that begin in March end with their leap day.
const DAYS_BEFORE_1970: u64 = 719_468;
const DAYS_PER_400_YEARS: u64 = 146_097;

pub(crate) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    parse_time(&text).ok_or_else(|| D::Error::custom("a text is not a time of RFC 3339 in UTC"))
}

pub(crate) fn optional_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SystemTime>, D::Error> {
    let text = Option::<Cow<'_, str>>::deserialize(deserializer)?;
    let wrong = || D::Error::custom("a text is not a time of RFC 3339 in UTC");
    text.map(|text| parse_time(&text).ok_or_else(wrong)).transpose()
}

/// A time from 1970 on, as RFC 3339 in UTC has it: `2026-01-31T09:30:00.000Z`.
pub(crate) fn parse_time(text: &str) -> Option<SystemTime> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let days = days_since_1970(year, month, day)?;
    let is_fraction = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|b| b.is_ascii_digit());
    if hour > 23 || minute > 59 || second > 59 || !is_fraction {
        return None;
    }
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
}

/// Three numbers with this many digits, and the separator between them.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; 3];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = is_number.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(numbers)
}

fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leap_days + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(DAYS_BEFORE_1970)?;
    // A day that the month does not have would be one of the next month.
    (date_of(days).2 == day).then_some(days)
}

/// The year, month and day of a number of days since 1970-01-01.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_BEFORE_1970;
    let (era, day) = (days / DAYS_PER_400_YEARS, days % DAYS_PER_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let year = year + era * 400;
    if month < 10 { (year, month + 3, day_of_month) } else { (year + 1, month - 9, day_of_month) }
}

/// A time as RFC 3339 in UTC, with milliseconds.
///
/// # Errors
/// It is before 1970 or after 9999.
pub(crate) fn format_time(time: SystemTime) -> Result<String> {
    let outside = || Error::invalid_argument("a time is before 1970 or after 9999");
    let since = time.duration_since(UNIX_EPOCH).map_err(|_| outside())?;
    let seconds = since.as_secs();
    let (year, month, day) = date_of(seconds / SECONDS_PER_DAY);
    if year > 9999 {
        return Err(outside());
    }
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    Ok(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_769_851_800_000, "2026-01-31T09:30:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(parse_time(text), Some(time), "{text}");
            assert_eq!(format_time(time).unwrap(), text);
        }
        let every_day = (0..200_000).map(|day| UNIX_EPOCH + Duration::from_secs(day * SECONDS_PER_DAY));
        for time in every_day {
            assert_eq!(parse_time(&format_time(time).unwrap()), Some(time));
        }
        let short = parse_time("2026-01-31T09:30:00Z").unwrap();
        assert_eq!(format_time(short).unwrap(), "2026-01-31T09:30:00.000Z");
        assert!(format_time(UNIX_EPOCH - Duration::from_secs(1)).is_err());
        assert!(format_time(UNIX_EPOCH + Duration::from_secs(253_402_300_800)).is_err());
    }

    #[test]
    fn a_text_that_is_not_a_time_is_refused() {
        for text in [
            "",
            "2026-01-31",
            "2026-01-31T09:30:00.000",
            "2026-01-31T09:30:00.000+00:00",
            "2026-01-31 09:30:00.000Z",
            "2026-02-29T09:30:00.000Z",
            "2026-04-31T09:30:00.000Z",
            "2026-13-01T09:30:00.000Z",
            "2026-00-01T09:30:00.000Z",
            "2026-01-00T09:30:00.000Z",
            "2026-01-31T24:30:00.000Z",
            "2026-01-31T09:60:00.000Z",
            "2026-01-31T09:30:60.000Z",
            "2026-01-31T09:30:00.Z",
            "2026-01-31T09:30:00.0000000000Z",
            "2026-1-31T09:30:00.000Z",
            "+026-01-31T09:30:00.000Z",
            "1969-12-31T23:59:59.999Z",
            "2026-01-31-01T09:30:00.000Z",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
