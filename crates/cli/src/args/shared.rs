//! Flags that several commands share.

use crate::files::read::Threads;
use crate::idle::Priority;
use crate::progress::ShowProgress;
use bulla_kms::pkcs11::DeviceConfig;
use bulla_kms::{KmsError, Timestamp};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use std::time::Duration;

/// How much a command prints on standard output, and in which form.
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Output")]
pub struct ReportArgs {
    /// Print JSON Lines, one object per line, instead of text
    #[arg(long)]
    pub json: bool,

    /// Print only problems
    #[arg(short, long)]
    pub quiet: bool,
}

/// Where the keystore is and what opens it; or which service has the keys.
#[derive(Args, Clone)]
#[command(next_help_heading = "Keystore")]
pub struct KeystoreArgs {
    /// The keystore's folder [default: `bulla` in your data folder]
    ///
    /// `bulla keystore init` creates a keystore there.
    #[arg(long, value_name = "DIR", env = "BULLA_KEYSTORE", hide_env_values = true)]
    pub keystore: Option<PathBuf>,

    /// Read the keystore's passphrase from the first line of FILE
    ///
    /// How letters with accents are written (Unicode forms NFC, NFD) makes no difference. Without
    /// this flag, bulla asks for the passphrase on the terminal. A keystore that a key file opens
    /// needs no passphrase.
    #[arg(
        long,
        value_name = "FILE",
        env = "BULLA_PASSPHRASE_FILE",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub passphrase_file: Option<PathBuf>,

    /// Decrypt with the identity in FILE, made by `bulla keygen` or age-keygen; FILE may have
    /// several
    #[arg(long, value_name = "FILE", env = "BULLA_IDENTITY", hide_env_values = true, hide_short_help = true)]
    pub identity: Option<PathBuf>,

    /// The PKCS#11 device that holds the private keys of the backend `pkcs11`, as a URI (RFC 7512)
    ///
    /// For example
    /// 'pkcs11:token=releases?module-path=/usr/lib/softhsm/libsofthsm2.so&pin-source=file:/run/pin'.
    /// bulla reads the PIN from that file, or from a variable (pin-source=env:NAME). Without
    /// pin-source it asks for the PIN on the terminal. bulla verifies signatures itself and never
    /// asks the device to verify.
    #[arg(long, value_name = "URI", env = "BULLA_PKCS11", hide_env_values = true, hide_short_help = true)]
    pub pkcs11: Option<DeviceConfig>,

    #[command(flatten)]
    pub server: ServerArgs,
}

/// What counts of a folder.
#[derive(Args, Clone)]
#[command(next_help_heading = "Folders")]
pub(crate) struct ExcludeArgs {
    /// Leave out of folders what matches GLOB, as in .gitignore
    ///
    /// The flag may be given several times. A GLOB with a slash that is not its last character is
    /// relative to the folder. The signature names the globs, and `bulla verify` leaves out the
    /// same and says so: files that match are not protected.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,

    /// Leave out of folders what the globs in FILE match, one a line
    ///
    /// The flag may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) ignore_file: Vec<PathBuf>,
}

/// The parser of algorithms, which knows their names.
pub(super) fn algorithm() -> impl TypedValueParser<Value = bulla_kms::Algorithm> {
    PossibleValuesParser::new(bulla_kms::Algorithm::ALL.iter().copied().map(bulla_kms::Algorithm::as_str))
        .try_map(|name| name.parse::<bulla_kms::Algorithm>())
}

/// The units of a length of time, in seconds. A year has 365 days.
const TIME_UNITS: [(char, u64); 6] = [
    ('y', 365 * 24 * 60 * 60),
    ('w', 7 * 24 * 60 * 60),
    ('d', 24 * 60 * 60),
    ('h', 60 * 60),
    ('m', 60),
    ('s', 1),
];

/// A length of time: a number and s, m, h, d, w or y.
///
/// # Errors
/// The text has another form.
pub fn duration(text: &str) -> Result<Duration, String> {
    let form = || {
        format!("{text:?} is not a length of time: write a number and s, m, h, d, w or y, for example 90d")
    };
    let unit = text.chars().last().ok_or_else(form)?;
    let (_, seconds) = TIME_UNITS.into_iter().find(|(letter, _)| *letter == unit).ok_or_else(form)?;
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| form())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(form)
}

/// The text of a length of time, as `duration` reads it: in the longest unit up to a day that fits.
pub fn duration_text(seconds: u64) -> String {
    let fits = |(letter, unit): &(char, u64)| !matches!(letter, 'y' | 'w') && seconds.is_multiple_of(*unit);
    match TIME_UNITS.into_iter().find(fits) {
        Some((letter, unit)) if seconds > 0 => format!("{}{letter}", seconds / unit),
        _ => format!("{seconds}s"),
    }
}

/// A moment in the future, as a user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// So long from now.
    After(Duration),
    /// At this time.
    At(Timestamp),
}

impl Deadline {
    /// The moment.
    pub fn time(self) -> Result<Timestamp, KmsError> {
        match self {
            Self::After(duration) => {
                let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                Timestamp::from_unix_millis(Timestamp::now()?.unix_millis().saturating_add(millis))
            }
            Self::At(time) => Ok(time),
        }
    }

    /// The length of time from now to the moment; zero for a moment that has passed.
    pub fn remaining(self) -> Result<Duration, KmsError> {
        match self {
            Self::After(duration) => Ok(duration),
            Self::At(time) => {
                let now = Timestamp::now()?.unix_millis();
                Ok(Duration::from_millis(time.unix_millis().saturating_sub(now)))
            }
        }
    }
}

/// A moment: a length of time from now, or a time in UTC, with or without milliseconds.
pub fn deadline(text: &str) -> Result<Deadline, String> {
    let form = || {
        format!(
            "{text:?} is not a time: write a number and s, m, h, d, w or y, for example 90d, \
             or a time such as 2030-01-31T09:30:00Z"
        )
    };
    if !text.contains('T') {
        return duration(text).map(Deadline::After).map_err(|_| form());
    }
    let with_millis = match text.strip_suffix('Z') {
        Some(start) if !start.contains('.') => format!("{start}.000Z"),
        _ => text.to_owned(),
    };
    with_millis.parse().map(Deadline::At).map_err(|_| form())
}

/// An upper or lower limit, or no limit.
#[derive(Clone, Copy)]
pub(crate) enum Bound<T> {
    /// No limit.
    None,
    /// This limit.
    At(T),
}

/// A size: a number, and K, M, G or T.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let form = || format!("{text:?} is not a size: write a number of bytes, or for example 10K, 1M or 2G");
    let (number, shift) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: u64 = number.parse().map_err(|_| form())?;
    number.checked_mul(1 << shift).ok_or_else(form)
}

/// Bytes of a file, from the first one to before the last bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) start: u64,
    /// `None` for the end of the file.
    pub(crate) end: Option<u64>,
}

/// The size of a shard, in bytes.
pub(super) fn shard_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("a shard has at least one byte".to_owned()),
        size => Ok(size),
    }
}

/// A range of bytes: two sizes with `..` between them; either may be absent.
pub(super) fn byte_range(text: &str) -> Result<ByteRange, String> {
    let form = || format!("{text:?} is not a range: write for example 0..1M, 4096..8192 or 10G..");
    let (start, end) = text.split_once("..").ok_or_else(form)?;
    let bound = |text: &str| if text.is_empty() { Ok(None) } else { size(text).map(Some) };
    let (start, end) = (bound(start)?.unwrap_or(0), bound(end)?);
    match end.is_some_and(|end| end <= start) {
        true => Err(format!("{text:?} has no bytes: the second number is the byte after the last one")),
        false => Ok(ByteRange { start, end }),
    }
}

/// A service that has the keys, and how to reach it.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Service")]
pub struct ServerArgs {
    /// Use the keys of a service (`bulla serve`) instead of a keystore
    ///
    /// URL is https://HOST:PORT, http://HOST:PORT or unix:PATH. Files are hashed on this machine:
    /// only digests and public data travel, except with the formats signify, sigstore and jws,
    /// which sign the file itself. The service sees who you are by the token in the variable
    /// BULLA_TOKEN or in the file of --token-file, by a client certificate, or by your user on a
    /// Unix socket.
    #[arg(long, value_name = "URL", env = "BULLA_ADDR", hide_env_values = true)]
    pub server: Option<String>,

    /// Trust only services with a certificate of the authorities in FILE (PEM) [default: the
    /// system's authorities]
    #[arg(long, value_name = "FILE", env = "BULLA_CACERT", hide_env_values = true, hide_short_help = true)]
    pub server_ca: Option<PathBuf>,

    /// Read the token from FILE, or from standard input for `-`, instead of from the variable
    /// BULLA_TOKEN
    ///
    /// A service needs a token, and so does an export of a private key.
    #[arg(
        long,
        value_name = "FILE",
        env = "BULLA_TOKEN_FILE",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub token_file: Option<PathBuf>,

    /// Show the service the client certificate in FILE (PEM); needs --client-key
    #[arg(
        long,
        value_name = "FILE",
        env = "BULLA_CLIENT_CERTIFICATE",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub client_certificate: Option<PathBuf>,

    /// The private key of --client-certificate (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "BULLA_CLIENT_KEY",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub client_key: Option<PathBuf>,
}

impl ServerArgs {
    /// The service that the variable BULLA_ADDR names, with the token of BULLA_TOKEN_FILE, for a
    /// program without these flags.
    #[must_use]
    pub fn of_variable() -> Self {
        let server = std::env::var("BULLA_ADDR").ok();
        let token_file = std::env::var_os("BULLA_TOKEN_FILE").map(PathBuf::from);
        Self { server, token_file, ..Self::default() }
    }
}

/// Threads, priority and progress.
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Work")]
pub(crate) struct WorkArgs {
    /// The maximum number of threads
    ///
    /// 0 means RAYON_NUM_THREADS, or else the number of processors.
    #[arg(
        short = 'j',
        long,
        visible_alias = "jobs",
        value_name = "NUM",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) num_threads: usize,

    /// Run at idle CPU and I/O priority: all other programs go first
    #[arg(long)]
    pub(crate) idle: bool,

    /// Show how far the work is
    ///
    /// It shows bytes, files, speed, time left and the current file.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ShowProgress::Auto, hide_default_value = true)]
    pub(crate) progress: ShowProgress,
}

impl WorkArgs {
    /// The priority of the process.
    pub(crate) fn priority(self) -> Priority {
        if self.idle { Priority::Idle } else { Priority::Normal }
    }

    /// The number of threads.
    pub(crate) fn threads(self) -> Threads {
        Threads::AtMost(self.num_threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_printed_in_the_units_that_users_type() {
        let seconds = |text: &str| duration(text).map(|duration| duration.as_secs());
        assert_eq!(seconds("90d"), Ok(7_776_000));
        assert_eq!(seconds("1y"), seconds("365d"));
        assert_eq!(seconds("2w"), seconds("14d"));
        for text in ["365d", "36h", "90m", "61s", "0s"] {
            assert_eq!(duration_text(seconds(text).unwrap()), text);
        }
        for wrong in ["", "d", "90", "-1d", "1.5h", "90 d", "1M", "é", "99999999999999999999y"] {
            assert!(duration(wrong).is_err() && deadline(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_deadline_is_a_length_of_time_or_a_time() {
        let time: Timestamp = "2030-01-31T09:30:00.000Z".parse().unwrap();
        assert_eq!(deadline("2030-01-31T09:30:00Z"), Ok(Deadline::At(time)));
        assert_eq!(deadline("2030-01-31T09:30:00.000Z"), Ok(Deadline::At(time)));
        assert_eq!(deadline("1w"), Ok(Deadline::After(Duration::from_secs(604_800))));
        assert_eq!(Deadline::At(Timestamp::default()).remaining().unwrap(), Duration::ZERO);
        for wrong in
            ["2030-01-31", "2030-01-31T09:30:00", "2030-02-31T09:30:00Z", "2030-01-31T09:30:00+01:00"]
        {
            assert!(deadline(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_are_read() {
        let range = |start, end| Ok(ByteRange { start, end });
        assert_eq!(byte_range("1..2K"), range(1, Some(2048)));
        assert_eq!(byte_range("..1"), range(0, Some(1)));
        assert_eq!(byte_range("1t.."), range(1 << 40, None));
        assert_eq!(byte_range(".."), range(0, None));
        for wrong in ["", "1", "1-2", "2..2", "2..1", "..0", "a..", "1..2..3", "-1..2", "99999999T.."] {
            assert!(byte_range(wrong).is_err(), "{wrong}");
        }
    }
}
