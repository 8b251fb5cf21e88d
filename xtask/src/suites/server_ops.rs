//! The files in `ops/` that run the service, checked by the programs that read them.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::runner::Runner;
use crate::{
    context::Context,
    install::{self, DebianTool},
    process::quiet,
};

/// What reads the files. The tests of the service also ask `curl`, for HTTP/2.
const TOOLS: [DebianTool; 3] = [
    DebianTool { program: "systemd-analyze", package: "systemd" },
    DebianTool { program: "promtool", package: "prometheus" },
    DebianTool { program: "curl", package: "curl" },
];

/// The exposure that systemd may find at most. Its scale ends at 10.
const MOST_EXPOSED: f64 = 2.0;

pub(super) fn run(runner: &mut Runner<'_>) {
    for tool in &TOOLS {
        runner.need(tool.program, |_| install::debian(tool));
    }
    runner.check("systemd finds the unit hardened", unit);
    runner.check("Prometheus reads the rules", rules);
    runner.check("Grafana's dashboard shows metrics that exist", dashboard);
}

fn unit(context: &Context) -> Result<()> {
    let unit = context.root.join("ops/systemd/bulla.service");
    let said = quiet(Command::new("systemd-analyze").args(["security", "--offline=true"]).arg(unit))?;
    let line = said.lines().find(|line| line.contains("Overall exposure level")).context("no exposure")?;
    let exposure = exposure(line).with_context(|| format!("no exposure in {line:?}"))?;
    ensure!(exposure < MOST_EXPOSED, "{line}");
    Ok(())
}

/// The number in `Overall exposure level for bulla.service: 1.1 OK`.
fn exposure(line: &str) -> Option<f64> {
    line.rsplit_once(": ")?.1.split_whitespace().next()?.parse().ok()
}

fn rules(context: &Context) -> Result<()> {
    let rules = context.root.join("ops/prometheus/bulla.rules.yml");
    let said = quiet(Command::new("promtool").args(["check", "rules"]).arg(rules))?;
    ensure!(said.contains("rules found"), "{said}");
    Ok(())
}

/// Every metric begins like those of the service, and every query is one for Prometheus.
fn dashboard(context: &Context) -> Result<()> {
    let text = std::fs::read_to_string(context.root.join("ops/grafana/bulla.json"))?;
    let board: serde_json::Value = serde_json::from_str(&text)?;
    let panels = board["panels"].as_array().context("no panels")?;
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries: Vec<_> = targets.filter_map(|target| target["expr"].as_str()).collect();
    ensure!(queries.len() >= panels.len() && panels.len() > 5, "panels without a query");
    let mut rules = Vec::new();
    for query in queries {
        ensure!(query.contains("kms_") || query.contains("bulla_"), "no metric of ours in {query}");
        // Grafana puts the name of an instance there.
        rules.push(serde_json::json!({ "record": format!("query{}", rules.len()), "expr": query.replace("$instance", "a") }));
    }
    // JSON is YAML.
    let file = context.target.join("queries.json");
    let group = serde_json::json!({ "groups": [{ "name": "queries", "rules": rules }] });
    std::fs::write(&file, group.to_string())?;
    quiet(Command::new("promtool").args(["check", "rules"]).arg(&file)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exposure_is_the_number_at_the_end() {
        assert_eq!(exposure("→ Overall exposure level for bulla.service: 1.1 OK 🙂"), Some(1.1));
        assert_eq!(exposure("nothing"), None);
    }
}
