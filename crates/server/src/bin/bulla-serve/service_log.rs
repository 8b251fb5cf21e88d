//! What `bulla serve` writes to standard error while it runs, and where its traces go.

use bulla_command::error::{Error, Result};
use bulla_server::{ACCESS_LOG_TARGET, Config, LogConfig, LogFormat, LogLevel, SPAN_TARGET};
use std::io::{IsTerminal, stderr};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, fmt};

/// What has to stay while the service runs: it sends the last traces when it is dropped.
pub(crate) struct Observing {
    #[cfg(feature = "otel")]
    _traces: Option<bulla_server::TraceExporter>,
}

/// Begins to log and to trace, for the whole process.
///
/// # Errors
/// The address of the collector of traces is not valid.
pub(crate) fn start(config: &Config) -> Result<Observing> {
    let lines = lines(&config.log);
    #[cfg(feature = "otel")]
    let traces = bulla_server::TraceExporter::start(&config.trace)?;
    let registry = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "otel")]
    let registry = registry.with(traces.as_ref().map(bulla_server::TraceExporter::layer));
    registry.try_init().map_err(|error| Error::new("internal", format!("cannot begin to log: {error}")))?;
    Ok(Observing {
        #[cfg(feature = "otel")]
        _traces: traces,
    })
}

fn lines<S>(config: &LogConfig) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + Send + Sync + for<'a> LookupSpan<'a>,
{
    let wanted = wanted(config);
    let layer = fmt::layer().with_writer(stderr);
    let is_text = match config.format {
        LogFormat::Auto => stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    if is_text {
        let colors = anstream::AutoStream::choice(&stderr()) != anstream::ColorChoice::Never;
        Box::new(layer.with_ansi(colors).with_target(false).with_filter(wanted))
    } else {
        Box::new(
            layer
                .json()
                .flatten_event(true)
                .with_current_span(false)
                .with_span_list(false)
                .with_filter(wanted),
        )
    }
}

/// What is logged.
fn wanted(config: &LogConfig) -> Targets {
    let level = match config.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let access = if config.access { LevelFilter::DEBUG } else { level };
    // Libraries of others say what they need for their own search of errors, and some quote what
    // they read.
    Targets::new()
        .with_target("bulla_serve", level)
        .with_target("bulla_server", level)
        .with_target("bulla_kms", level)
        .with_target(ACCESS_LOG_TARGET, access)
        // Spans of requests are for traces. As fields of log lines they would cost a fourth of the
        // service's speed.
        .with_target(SPAN_TARGET, LevelFilter::OFF)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn requests_are_logged_when_asked_for_and_their_spans_never() {
        let config = |access| LogConfig { level: LogLevel::Trace, access, ..LogConfig::default() };
        for access in [false, true] {
            assert!(!wanted(&config(access)).would_enable(SPAN_TARGET, &Level::ERROR));
        }
        let quiet = LogConfig { level: LogLevel::Info, access: false, ..LogConfig::default() };
        assert!(!wanted(&quiet).would_enable(ACCESS_LOG_TARGET, &Level::DEBUG));
        let asked = wanted(&LogConfig { access: true, ..quiet });
        assert!(asked.would_enable(ACCESS_LOG_TARGET, &Level::DEBUG));
        assert!(asked.would_enable("bulla_server::serve", &Level::INFO));
        assert!(!asked.would_enable("rustls", &Level::ERROR));
    }
}
