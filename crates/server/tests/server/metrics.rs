//! The document names every metric, and nothing else.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::nodes::Shared;
use crate::support::tls::{Authority, Files, Until};

/// The names of the metrics in a text of OpenMetrics, as Prometheus stores them.
fn names(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let names = types.map(|(name, kind)| match kind {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.to_owned(),
    });
    names.collect()
}

/// The names in the table of the document.
fn documented() -> BTreeSet<String> {
    let document = include_str!("../../../../spec/http-api.md");
    let (_, section) = document.split_once("\n## Metrics\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`').to_owned()).collect()
}

#[test]
fn the_document_names_every_metric() {
    let shared = Shared::start(1);
    let mut config = shared.open();
    shared.create(&config);
    let authority = Authority::new();
    let files = Files::new(&authority.certify("localhost", Until::Future), None);
    config.listen.extend(files.config().listen);
    let node = shared.node(config);
    // Each metric of the keystore appears when there is something to count.
    node.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    node.sign(None, "a").ok();
    node.send("PATCH", None, "/api/v1/keys/a", br#"{"enabled":false}"#).ok();
    node.sign(None, "a").error();
    // Only the nodes of a group have these: see the tests of the cluster.
    let mut documented = documented();
    documented.retain(|name| !name.starts_with("bulla_group_"));
    assert_eq!(names(&node.get(None, "/metrics").text()), documented);
}
