//! Checks the files in `ops/` that run the service with the programs that read them.

use std::{collections::BTreeSet, fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{
    Context,
    install::{self, DebianTool},
    quiet,
};

use super::{
    go::{formatted, go},
    runner::Runner,
};

/// The alerts, and the dashboard.
const RULES: &str = "ops/prometheus/bulla.rules.yml";
const DASHBOARD: &str = "ops/grafana/bulla.json";

/// The programs that read the files. The tests of the service also use `curl`, for HTTP/2, and
/// `etcd`, in which nodes share keystores.
const TOOLS: [DebianTool; 4] = [
    DebianTool { program: "systemd-analyze", package: "systemd" },
    DebianTool { program: "promtool", package: "prometheus" },
    DebianTool { program: "curl", package: "curl" },
    DebianTool { program: "etcd", package: "etcd-server" },
];

/// The highest exposure that systemd may report. Its scale ends at 10.
const MAX_EXPOSED: f64 = 2.0;

pub(super) fn run(runner: &mut Runner<'_>) {
    for tool in &TOOLS {
        runner.need(tool.program, |_| install::debian(tool));
    }
    runner.check("systemd finds the units hardened", |context| {
        ["bulla.service", "etcd.service"].into_iter().try_for_each(|name| unit(context, name))
    });
    runner.check("Prometheus reads the rules", rules);
    runner.check("each alert has a test, which passes, and is in the document", alerts);
    runner.check("Grafana's dashboard has queries that Prometheus accepts", dashboard);
    runner.check("rules, dashboard and documents name metrics that exist", metrics);
    runner.check("the container recipe has the toolchain of the repository", recipe);
    let manifest = runner.context.root.join("ops/kubernetes/test");
    runner.check("gofmt, the test of the Kubernetes manifest", |_| formatted(&manifest));
    runner.command("go vet, the test of the Kubernetes manifest", go(&manifest).args(["vet", "./..."]));
    // Go would reuse the results for an earlier manifest.
    let mut test = go(&manifest);
    runner.go_test("go test, the Kubernetes manifest", test.args(["test", "-json", "-count=1", "./..."]));
}

fn unit(context: &Context, name: &str) -> Result<()> {
    let unit = context.root.join("ops/systemd").join(name);
    let said = quiet(Command::new("systemd-analyze").args(["security", "--offline=true"]).arg(unit))?;
    let line = said.lines().find(|line| line.contains("Overall exposure level")).context("no exposure")?;
    let exposure = exposure(line).with_context(|| format!("no exposure in {line:?}"))?;
    ensure!(exposure < MAX_EXPOSED, "{line}");
    Ok(())
}

/// The number in `Overall exposure level for bulla.service: 1.1 OK`.
fn exposure(line: &str) -> Option<f64> {
    line.rsplit_once(": ")?.1.split_whitespace().next()?.parse().ok()
}

fn rules(context: &Context) -> Result<()> {
    let said = quiet(Command::new("promtool").args(["check", "rules"]).arg(context.root.join(RULES)))?;
    ensure!(said.contains("rules found"), "{said}");
    Ok(())
}

/// Each alert fires in a test, and `docs/operations.md` says what to do about it.
fn alerts(context: &Context) -> Result<()> {
    let tests = context.root.join("ops/prometheus/bulla.tests.yml");
    quiet(Command::new("promtool").args(["test", "rules"]).arg(&tests))?;
    let alerts: BTreeSet<_> = after_each("- alert: ", &read(context, RULES)?).collect();
    // An alert that fires has labels.
    let tests = fs::read_to_string(tests)?;
    let blocks = tests.split("- eval_time:").filter(|block| block.contains("exp_labels:"));
    let fired: BTreeSet<_> = blocks.flat_map(|block| after_each("alertname: ", block)).collect();
    ensure!(
        !alerts.is_empty() && fired == alerts,
        "the alerts are {alerts:?}, and in the tests fire {fired:?}"
    );
    let documented = read(context, "docs/operations.md")?;
    let documented = documented.lines().filter_map(|line| line.strip_prefix("| `Bulla")?.split_once('`'));
    let documented: BTreeSet<_> = documented.map(|(name, _)| format!("Bulla{name}")).collect();
    ensure!(documented == alerts, "the alerts are {alerts:?}, and the document has {documented:?}");
    Ok(())
}

fn read(context: &Context, path: &str) -> Result<String> {
    fs::read_to_string(context.root.join(path)).with_context(|| format!("cannot read {path}"))
}

/// The rest of each line that begins with `prefix`, after spaces.
fn after_each<'a>(prefix: &'a str, text: &'a str) -> impl Iterator<Item = String> + 'a {
    text.lines()
        .filter_map(move |line| line.trim_start().strip_prefix(prefix))
        .map(|rest| rest.trim().to_owned())
}

/// Everything that looks like a metric of ours is in the table of `spec/http-api.md`. A test of the
/// service compares that table with its metrics.
fn metrics(context: &Context) -> Result<()> {
    let table = read(context, "spec/http-api.md")?;
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let known: BTreeSet<_> = rows.flat_map(metric_names).collect();
    let mut found = 0;
    for path in [RULES, DASHBOARD, "docs/operations.md", "docs/cluster.md", "docs/runbook.md"] {
        for name in metric_names(&read(context, path)?) {
            // A histogram has these three.
            let series = ["_bucket", "_count", "_sum"].into_iter().find_map(|end| name.strip_suffix(end));
            ensure!(
                known.contains(series.unwrap_or(&name)),
                "{path} names the metric {name}, which does not exist"
            );
            found += 1;
        }
    }
    ensure!(found > 20, "only {found} metrics are named");
    Ok(())
}

/// The words of a text that begin like our metrics.
fn metric_names(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let is_metric = |word: &&str| word.starts_with("bulla_") || word.starts_with("kms_");
    words.filter(is_metric).map(str::to_owned).collect()
}

/// A build of the image needs a registry of images, and is not a test.
fn recipe(context: &Context) -> Result<()> {
    let recipe = read(context, "ops/container/Containerfile")?;
    let toolchain = read(context, "rust-toolchain.toml")?;
    let channel = after_each("channel = ", &toolchain).next().context("no channel")?;
    let image = format!("rust:{}-alpine ", channel.trim_matches('"'));
    ensure!(recipe.contains(&image), "the recipe does not begin with the image {image}");
    let manifest = read(context, "Cargo.toml")?;
    let profile = recipe.split_once("--profile ").and_then(|(_, rest)| rest.split_whitespace().next());
    let profile = profile.context("the recipe has no profile")?;
    ensure!(manifest.contains(&format!("[profile.{profile}]")), "there is no profile {profile}");
    Ok(())
}

/// Each panel has a query for a metric of ours, and Prometheus accepts every query.
fn dashboard(context: &Context) -> Result<()> {
    let text = read(context, DASHBOARD)?;
    let board: serde_json::Value = serde_json::from_str(&text)?;
    let panels = board["panels"].as_array().context("no panels")?;
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries: Vec<_> = targets.filter_map(|target| target["expr"].as_str()).collect();
    ensure!(queries.len() >= panels.len() && panels.len() > 5, "panels without a query");
    let mut rules = Vec::new();
    for query in queries {
        ensure!(query.contains("kms_") || query.contains("bulla_"), "no metric of ours in {query}");
        // Grafana replaces it by the name of an instance.
        rules.push(serde_json::json!({ "record": format!("query{}", rules.len()), "expr": query.replace("$instance", "a") }));
    }
    // JSON is YAML.
    let file = context.target.join("queries.json");
    let group = serde_json::json!({ "groups": [{ "name": "queries", "rules": rules }] });
    fs::write(&file, group.to_string())?;
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
