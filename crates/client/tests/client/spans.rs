//! The spans of the feature `tracing`.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bulla_client::Token;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Metadata, Subscriber};

use crate::faulty::{Canned, Fault, Faulty};
use crate::support::Service;
use crate::{blocking, builder, client};

/// Collects the fields of all spans as lines, with a line `span` before each of them.
#[derive(Clone, Default)]
struct Fields(Arc<Mutex<Vec<String>>>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().push(format!("{}={value:?}", field.name()));
    }
}

impl Subscriber for Fields {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("bulla_client")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.lock().unwrap().push("span".to_owned());
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn each_request_is_a_span_with_the_names_of_opentelemetry_and_no_secret() {
    let service = Service::open();
    let busy = Fault::Answer(Canned(503, 0, r#"{"code":"busy","message":"a","retryable":true}"#));
    let network = Faulty::before(&service.url, &[busy]);
    client(&service.url).create_key(&bulla_client::NewKey::default()).unwrap();
    let builder = builder(&network.url).token(Token::new("hunter2").unwrap());
    let client = blocking(builder.initial_backoff(Duration::from_millis(1)));
    let fields = Fields::default();
    let _ = with_default(fields.clone(), || client.sign("secret-label", b"hunter2"));
    let lines = fields.0.lock().unwrap();
    assert_eq!(lines.iter().filter(|line| *line == "span").count(), 2, "{lines:?}");
    let port = network.url.rsplit(':').next().unwrap();
    for line in [
        "otel.kind=\"client\"",
        "otel.name=POST /api/v1/keys/{key}/sign",
        "http.request.method=\"POST\"",
        "url.template=\"/api/v1/keys/{key}/sign\"",
        "server.address=\"127.0.0.1\"",
        &format!("server.port={port}"),
        "http.response.status_code=503",
        "otel.status_code=\"ERROR\"",
        "error.type=\"503\"",
        "http.request.resend_count=1",
    ] {
        assert!(lines.iter().any(|found| found == line), "{line}: {lines:?}");
    }
    assert!(
        lines.iter().all(|line| !line.contains("hunter2") && !line.contains("secret-label")),
        "{lines:?}"
    );
}
