//! The configuration of a device: which device, and how to log in.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::error::{Code, KmsError, Result};

/// The default maximum number of open sessions.
const DEFAULT_SESSIONS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// The maximum length of a PIN in bytes.
const MAX_PIN_LEN: usize = 4096;

/// A device and how to reach it.
///
/// The text form is a URI (RFC 7512), for example
/// `pkcs11:token=releases?module-path=/usr/lib/softhsm/libsofthsm2.so&pin-source=file:/run/secrets/pin`.
/// The path may have `token`, `serial`, `manufacturer` and `model`. The query needs `module-path`
/// and may have `pin-source`: `file:` and the path of a file whose first line is the PIN, or `env:`
/// and the name of a variable. `pin-value` is refused: an argument must not contain a secret.
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use bulla_kms::pkcs11::{DeviceConfig, DeviceSelector, PinSource};
///
/// let device = DeviceSelector::default().label("keys").serial("0123").manufacturer("a maker");
/// let pin = PinSource::File("/run/credentials/pin".into());
/// let config = DeviceConfig::new("/usr/lib/softhsm/libsofthsm2.so", "keys", pin)
///     .device(device.model("a model"))
///     .sessions(NonZeroUsize::new(4).unwrap());
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// The library of the device's maker.
    pub module: PathBuf,
    /// The device's own description. Everything that is given must match, and must match only one
    /// device.
    pub device: DeviceSelector,
    /// The source of the PIN; none for a device that asks for it itself.
    pub pin: Option<PinSource>,
    /// The maximum number of open sessions: that many threads can use the device at once, and
    /// others wait.
    pub sessions: NonZeroUsize,
}

/// A device's own description. `None` matches every device.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSelector {
    /// The label that its owner gave it.
    pub label: Option<String>,
    /// The serial number.
    pub serial: Option<String>,
    /// The manufacturer.
    pub manufacturer: Option<String>,
    /// The model.
    pub model: Option<String>,
}

/// The source of a PIN. The PIN is read when the device is opened, and stays in memory to log in
/// again after a loss.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum PinSource {
    /// The first line of a file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// The PIN itself.
    Given(SecretString),
    /// A person, who is asked when the device is needed.
    Asked(fn() -> io::Result<SecretString>),
}

impl DeviceConfig {
    /// A device by its label, with 16 sessions.
    pub fn new(module: impl Into<PathBuf>, label: impl Into<String>, pin: PinSource) -> Self {
        Self {
            module: module.into(),
            device: DeviceSelector { label: Some(label.into()), ..DeviceSelector::default() },
            pin: Some(pin),
            sessions: DEFAULT_SESSIONS,
        }
    }

    /// Sets the library of the device's maker.
    #[must_use]
    pub fn module(mut self, module: PathBuf) -> Self {
        self.module = module;
        self
    }

    /// Sets which device it is.
    #[must_use]
    pub fn device(mut self, device: DeviceSelector) -> Self {
        self.device = device;
        self
    }

    /// Sets the source of the PIN.
    #[must_use]
    pub fn pin(mut self, pin: impl Into<Option<PinSource>>) -> Self {
        self.pin = pin.into();
        self
    }

    /// Sets the maximum number of open sessions.
    #[must_use]
    pub fn sessions(mut self, sessions: NonZeroUsize) -> Self {
        self.sessions = sessions;
        self
    }
}

impl DeviceSelector {
    /// Sets the label.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets the serial number.
    #[must_use]
    pub fn serial(mut self, serial: impl Into<String>) -> Self {
        self.serial = Some(serial.into());
        self
    }

    /// Sets the manufacturer.
    #[must_use]
    pub fn manufacturer(mut self, manufacturer: impl Into<String>) -> Self {
        self.manufacturer = Some(manufacturer.into());
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }
}

impl PinSource {
    /// Reads the PIN.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if there is none; errors of reading.
    pub(super) fn read(&self) -> Result<SecretString> {
        let pin = match self {
            Self::Given(pin) => return Ok(pin.clone()),
            Self::Asked(ask) => return ask().map_err(|error| KmsError::io("cannot ask for the PIN", error)),
            Self::File(path) => read_line(path)?,
            Self::Variable(name) => Zeroizing::new(std::env::var(name).map_err(|_| {
                KmsError::new(
                    Code::InvalidArgument,
                    format!("the variable {name} for the device's PIN is not set, or is not UTF-8"),
                )
            })?),
        };
        if pin.is_empty() {
            return Err(KmsError::new(Code::InvalidArgument, format!("the PIN of {self} is empty")));
        }
        Ok(SecretString::from(pin.as_str()))
    }
}

impl fmt::Display for PinSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Variable(name) => write!(f, "the variable {name}"),
            Self::Given(_) | Self::Asked(_) => f.write_str("the caller"),
        }
    }
}

/// The first line of a file, without its end.
fn read_line(path: &Path) -> Result<Zeroizing<String>> {
    let cannot_read = |error| KmsError::io(format!("cannot read the PIN in {}", path.display()), error);
    let refuse =
        |why: &str| KmsError::new(Code::InvalidArgument, format!("the PIN in {} {why}", path.display()));
    // The capacity is never exceeded: growing the buffer would leave a copy of the PIN behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * MAX_PIN_LEN));
    let file = File::open(path).map_err(cannot_read)?;
    file.take(MAX_PIN_LEN as u64 + 1).read_to_end(&mut bytes).map_err(cannot_read)?;
    if bytes.len() > MAX_PIN_LEN {
        return Err(refuse("has more than 4096 bytes"));
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = std::str::from_utf8(line).map_err(|_| refuse("is not UTF-8"))?;
    Ok(Zeroizing::new(line.to_owned()))
}

impl DeviceSelector {
    /// Whether this name matches a device with that description.
    pub(super) fn matches(&self, device: &Self) -> bool {
        let matches = |wanted: &Option<String>, is: &Option<String>| wanted.is_none() || wanted == is;
        matches(&self.label, &device.label)
            && matches(&self.serial, &device.serial)
            && matches(&self.manufacturer, &device.manufacturer)
            && matches(&self.model, &device.model)
    }
}

impl fmt::Display for DeviceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("label", &self.label),
            ("serial number", &self.serial),
            ("manufacturer", &self.manufacturer),
            ("model", &self.model),
        ];
        let mut separator = "";
        for (name, value) in parts {
            if let Some(value) = value {
                write!(f, "{separator}{name} {value:?}")?;
                separator = ", ";
            }
        }
        if separator.is_empty() { f.write_str("any name") } else { Ok(()) }
    }
}

impl FromStr for DeviceConfig {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let invalid =
            |why: String| KmsError::new(Code::InvalidArgument, format!("not a URI of a device: {why}"));
        let rest =
            text.strip_prefix("pkcs11:").ok_or_else(|| invalid("it does not begin with pkcs11:".into()))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut device = DeviceSelector::default();
        for (name, value) in attributes(path, ';').map_err(invalid)? {
            let place = match name {
                "token" => &mut device.label,
                "serial" => &mut device.serial,
                "manufacturer" => &mut device.manufacturer,
                "model" => &mut device.model,
                _ => {
                    return Err(invalid(format!(
                        "{name} is unknown; use token, serial, manufacturer or model"
                    )));
                }
            };
            set(place, name, value).map_err(invalid)?;
        }
        let (mut module, mut source) = (None, None);
        for (name, value) in attributes(query, '&').map_err(invalid)? {
            let place = match name {
                "module-path" => &mut module,
                "pin-source" => &mut source,
                "pin-value" => {
                    return Err(invalid(
                        "a URI must not contain a PIN: name a file with the PIN with pin-source".into(),
                    ));
                }
                _ => return Err(invalid(format!("{name} is unknown; use module-path or pin-source"))),
            };
            set(place, name, value).map_err(invalid)?;
        }
        let module = module
            .ok_or_else(|| invalid("it has no module-path, which names the device's library".into()))?;
        let pin = source.map(|source| pin_source(&source)).transpose().map_err(invalid)?;
        Ok(Self { module: module.into(), device, pin, sessions: DEFAULT_SESSIONS })
    }
}

/// `file:PATH`, a path alone, or `env:NAME`.
fn pin_source(text: &str) -> Result<PinSource, String> {
    if let Some(name) = text.strip_prefix("env:") {
        return Ok(PinSource::Variable(name.to_owned()));
    }
    let path = text.strip_prefix("file:").unwrap_or(text);
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.starts_with('/') {
        return Ok(PinSource::File(path.into()));
    }
    Err("pin-source must be file: and an absolute path, or env: and the name of a variable".to_owned())
}

fn set(place: &mut Option<String>, name: &str, value: String) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{name} is given twice")),
    }
}

/// The attributes of a part of a URI, decoded.
fn attributes(part: &str, separator: char) -> Result<Vec<(&str, String)>, String> {
    let split = |attribute| match str::split_once(attribute, '=') {
        Some((name, value)) => Ok((name, decode(value)?)),
        None => Err(format!("{attribute:?} is not NAME=VALUE")),
    };
    part.split(separator).filter(|attribute| !attribute.is_empty()).map(split).collect()
}

/// Undoes percent-encoding (RFC 3986, section 2.1).
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .ok_or_else(|| format!("{text:?} has a % without two hexadecimal digits"))?;
        bytes.push(byte);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("{text:?} is not UTF-8 after decoding"))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_uri_names_a_token_its_library_and_where_its_pin_is() {
        let config: DeviceConfig =
            "pkcs11:token=my%20releases;serial=0a1b?module-path=/usr/lib/libx.so&pin-source=file:/run/pin"
                .parse()
                .unwrap();
        assert_eq!(config.module, Path::new("/usr/lib/libx.so"));
        assert_eq!(config.device.label.as_deref(), Some("my releases"));
        assert_eq!(config.device.serial.as_deref(), Some("0a1b"));
        assert!(matches!(config.pin, Some(PinSource::File(path)) if path == Path::new("/run/pin")));
        let config: DeviceConfig = "pkcs11:?pin-source=env:TOKEN_PIN&module-path=/m".parse().unwrap();
        assert!(matches!(config.pin, Some(PinSource::Variable(name)) if name == "TOKEN_PIN"));
        assert_eq!(config.device, DeviceSelector::default());
    }

    #[test]
    fn a_uri_that_is_not_understood_is_refused_with_its_reason() {
        for (uri, reason) in [
            ("token=a?module-path=/m", "pkcs11:"),
            ("pkcs11:token=a", "module-path"),
            ("pkcs11:token=a?module-path=/m&pin-value=1234", "must not contain a PIN"),
            ("pkcs11:token=a;token=b?module-path=/m", "twice"),
            ("pkcs11:object=a?module-path=/m", "object"),
            ("pkcs11:token=a?module-path=/m&module-name=x", "module-name"),
            ("pkcs11:token?module-path=/m", "NAME=VALUE"),
            ("pkcs11:token=%4?module-path=/m", "two hexadecimal digits"),
            ("pkcs11:token=%+4?module-path=/m", "two hexadecimal digits"),
            ("pkcs11:token=%ff?module-path=/m", "UTF-8"),
            ("pkcs11:?module-path=/m&pin-source=|cat", "pin-source"),
        ] {
            let error = uri.parse::<DeviceConfig>().unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{uri}");
            assert!(error.message.contains(reason), "{uri}: {error}");
            assert!(!error.message.contains("1234"), "a PIN is never told");
        }
    }

    #[test]
    fn a_pin_is_the_first_line_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pin");
        let read = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            PinSource::File(path.clone()).read()
        };
        for content in [&b"1234"[..], b"1234\n", b"1234\r\n", b"1234\nmore"] {
            assert_eq!(read(content).unwrap().expose_secret(), "1234");
        }
        for content in [&b""[..], b"\n1234", &[0xff; 4], &[b'1'; 5000]] {
            assert_eq!(read(content).unwrap_err().code, Code::InvalidArgument);
        }
        let missing = PinSource::File(folder.path().join("missing")).read();
        assert_eq!(missing.unwrap_err().code, Code::NotFound);
        assert!(!format!("{:?}", PinSource::Given("1234".into())).contains("1234"));
    }
}
