//! Spans by OTLP over HTTP to a collector, in batches and by a thread of their own.

use std::time::Duration;

use axum::http::HeaderMap;
use bulla_kms::{Code, KmsError, Result};
use opentelemetry::KeyValue;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use super::SPAN_TARGET;
use crate::config::TraceConfig;

/// How long a collector may take, also when the service ends.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends spans to a collector until it is dropped.
#[derive(Debug)]
pub struct TraceExporter(SdkTracerProvider);

impl TraceExporter {
    /// None where the settings name no collector.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`]: the collector's address is not valid.
    pub fn start(config: &TraceConfig) -> Result<Option<Self>> {
        let Some(collector) = &config.otlp_endpoint else { return Ok(None) };
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(COLLECTOR_TIMEOUT))
            .http_status_as_error(false)
            .build()
            .new_agent();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client(agent))
            .with_endpoint(format!("{}/v1/traces", collector.trim_end_matches('/')))
            .build()
            .map_err(|error| KmsError::new(Code::InvalidArgument, format!("[trace]: {error}")))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("bulla").with_attribute(version).build();
        let provider =
            SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
        Ok(Some(Self(provider)))
    }

    /// Makes spans for requests and for operations of the keystore.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + Send + Sync + for<'a> LookupSpan<'a>,
    {
        let wanted =
            Targets::new().with_target(SPAN_TARGET, Level::INFO).with_target("bulla_kms", Level::DEBUG);
        // File names and line numbers of this program do not help an operator.
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("bulla"))
            .with_location(false)
            .with_threads(false)
            .with_filter(wanted)
    }
}

impl Drop for TraceExporter {
    fn drop(&mut self) {
        // The service ends even if the collector is away and the last spans are lost.
        let _ = self.0.shutdown_with_timeout(COLLECTOR_TIMEOUT);
    }
}

/// Makes a span the child of the one that the caller's headers name.
pub(super) fn adopt_parent(span: &Span, headers: &HeaderMap) {
    let parent = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    if parent.span().span_context().is_valid() {
        // It fails where other subscribers read the span, and no traces are made.
        let _ = span.set_parent(parent);
    }
}

/// The HTTP client of the exporter's thread, which may block.
#[derive(Debug)]
struct Client(ureq::Agent);

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(parts, &body[..]))?;
        let (parts, mut body) = answer.into_parts();
        Ok(Response::from_parts(parts, body.read_to_vec()?.into()))
    }
}
