//! The service's own metrics. Each serving thread has its own counters, so that counting never
//! waits.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use bulla_kms::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// The classes of statuses, from 100 on.
const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The upper bounds of the times to answer, in seconds.
const BUCKET_SECONDS: [f64; 16] =
    [10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 0.1, 0.5, 1.0, 10.0];

/// The upper bounds of the times to answer, in nanoseconds.
const BUCKET_NANOS: [u64; BUCKET_SECONDS.len()] = [
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// The numbers of one thread, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ThreadCounters {
    classes: [AtomicU64; STATUS_CLASSES.len()],
    /// The last one counts the requests that took longer than every bound.
    times: [AtomicU64; BUCKET_SECONDS.len() + 1],
    nanos: AtomicU64,
}

/// The service's own counters.
#[derive(Debug)]
pub(crate) struct ServiceMetrics {
    threads: Arc<[ThreadCounters]>,
    /// How many connections there are.
    pub(crate) connections: Arc<AtomicUsize>,
    /// When the first certificate expires, in seconds since 1970; 0 without one.
    certificate_expiry: AtomicU64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusClass {
    class: &'static str,
}

impl ServiceMetrics {
    pub(crate) fn new(threads: usize) -> Self {
        let threads = (0..threads).map(|_| ThreadCounters::default()).collect();
        Self { threads, connections: Arc::default(), certificate_expiry: AtomicU64::new(0) }
    }

    /// Stores when the first of the service's certificates expires, if it has any.
    pub(crate) fn set_certificate_expiry(&self, first: Option<Timestamp>) {
        let seconds = first.map_or(0, |first| first.unix_millis() / 1000);
        self.certificate_expiry.store(seconds, Ordering::Relaxed);
    }

    /// Counts an answer of a thread.
    pub(crate) fn record_answer(&self, thread: usize, status: StatusCode, took: Duration) {
        let Some(thread) = self.threads.get(thread) else { return };
        let class = usize::from(status.as_u16() / 100).wrapping_sub(1);
        if let Some(class) = thread.classes.get(class) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let place = BUCKET_NANOS.iter().position(|bound| nanos <= *bound).unwrap_or(BUCKET_NANOS.len());
        thread.times[place].fetch_add(1, Ordering::Relaxed);
        thread.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Puts the numbers as they are now into a registry.
    pub(crate) fn register(&self, registry: &mut Registry, is_sealed: bool) {
        let requests = Family::<StatusClass, Counter>::default();
        for (place, class) in STATUS_CLASSES.into_iter().enumerate() {
            let answers =
                self.threads.iter().map(|thread| thread.classes[place].load(Ordering::Relaxed)).sum();
            requests.get_or_create(&StatusClass { class }).inc_by(answers);
        }
        registry.register("bulla_http_requests", "Answered requests, by the class of their status", requests);
        let times = RequestDurations(Arc::clone(&self.threads));
        registry.register(
            "bulla_http_request_duration_seconds",
            "How long requests took to be answered",
            times,
        );
        let connections = Gauge::<i64>::default();
        connections.set(i64::try_from(self.connections.load(Ordering::Relaxed)).unwrap_or(i64::MAX));
        registry.register("bulla_http_open_connections", "Open connections", connections);
        let sealed = Gauge::<i64>::default();
        sealed.set(i64::from(is_sealed));
        registry.register("bulla_sealed", "1 while the service is sealed, and 0 otherwise", sealed);
        let expiry = self.certificate_expiry.load(Ordering::Relaxed);
        if expiry > 0 {
            let first = Gauge::<i64>::default();
            first.set(i64::try_from(expiry).unwrap_or(i64::MAX));
            let help = "When the first of the service's TLS certificates expires, in seconds since 1970";
            registry.register("bulla_tls_certificate_expiry_timestamp_seconds", help, first);
        }
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("bulla_build", "The version of the service", build);
    }
}

/// The histogram of all threads together.
struct RequestDurations(Arc<[ThreadCounters]>);

impl fmt::Debug for RequestDurations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Times")
    }
}

impl EncodeMetric for RequestDurations {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let of_all = |get: &dyn Fn(&ThreadCounters) -> &AtomicU64| -> u64 {
            self.0.iter().map(|thread| get(thread).load(Ordering::Relaxed)).sum()
        };
        let bounds = BUCKET_SECONDS.into_iter().chain([f64::INFINITY]).enumerate();
        let buckets: Vec<_> =
            bounds.map(|(place, bound)| (bound, of_all(&|thread| &thread.times[place]))).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_nanos(of_all(&|thread| &thread.nanos)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_the_same_in_both_units() {
        for (seconds, nanos) in BUCKET_SECONDS.into_iter().zip(BUCKET_NANOS) {
            let bound = Duration::from_secs_f64(seconds).as_nanos();
            assert!(bound.abs_diff(u128::from(nanos)) <= 1, "{seconds} {nanos}");
        }
    }

    #[test]
    fn the_text_is_that_of_all_threads() {
        let counts = ServiceMetrics::new(2);
        for (thread, status, nanos) in [(0, 200, 5_000), (0, 201, 10_001), (1, 404, 700), (1, 500, u64::MAX)]
        {
            counts.record_answer(thread, StatusCode::from_u16(status).unwrap(), Duration::from_nanos(nanos));
        }
        counts.connections.store(7, Ordering::Relaxed);
        counts.set_certificate_expiry("2026-01-31T09:30:00.999Z".parse().ok());
        let mut registry = Registry::default();
        counts.register(&mut registry, true);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "bulla_http_requests_total{class=\"2xx\"} 2",
            "bulla_http_requests_total{class=\"3xx\"} 0",
            "bulla_http_requests_total{class=\"4xx\"} 1",
            "bulla_http_requests_total{class=\"5xx\"} 1",
            "bulla_http_request_duration_seconds_bucket{le=\"0.00001\"} 2",
            "bulla_http_request_duration_seconds_bucket{le=\"0.00002\"} 3",
            "bulla_http_request_duration_seconds_bucket{le=\"10.0\"} 3",
            "bulla_http_request_duration_seconds_bucket{le=\"+Inf\"} 4",
            "bulla_http_request_duration_seconds_count 4",
            "bulla_http_open_connections 7",
            "bulla_sealed 1",
            "bulla_tls_certificate_expiry_timestamp_seconds 1769851800",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.contains("bulla_build_info{version=\""), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
