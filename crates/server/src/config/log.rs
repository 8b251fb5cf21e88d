//! The settings of the log and of traces.

use bulla_kms::{Code, KmsError, Result};
use serde::{Deserialize, Serialize};

/// What the service writes to standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// The lowest level that is written.
    pub level: LogLevel,
    /// Text or JSON.
    pub format: LogFormat,
    /// Whether each request is written, at any level: its id, method, path, status, time and
    /// caller.
    pub access: bool,
}

/// How important a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something may need attention.
    Warn,
    /// The service starts, stops, seals, unseals, or takes other settings.
    #[default]
    Info,
    /// Each request and each failed operation.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// All of them, the most important first.
    pub const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// The level's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The form of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// Text.
    Text,
    /// JSON, one object per line.
    Json,
}

/// Where traces of requests go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceConfig {
    /// The address of a collector that takes OTLP over HTTP, for example `http://127.0.0.1:4318`.
    /// Without one, there are no traces.
    pub otlp_endpoint: Option<String>,
}

impl TraceConfig {
    pub(super) fn check(&self) -> Result<()> {
        match &self.otlp_endpoint {
            Some(address) if !address.starts_with("http://") => {
                let message = "[trace]: `otlp_endpoint` is the address of a collector, for example http://127.0.0.1:4318";
                Err(KmsError::new(Code::InvalidArgument, message))
            }
            #[cfg(not(feature = "otel"))]
            Some(_) => {
                let message = "[trace]: this program was built without traces (the feature `otel`)";
                Err(KmsError::new(Code::InvalidArgument, message))
            }
            _ => Ok(()),
        }
    }
}
