//! The gate's output and exit status.

use std::{fmt::Write as _, process::ExitCode};

use anyhow::Result;
use bulla_record::gate::{GateCell, GateVerdict};

/// How many passing cells are shown: those nearest to their limit.
const MAX_PASSING_CELLS: usize = 5;

/// The exit status for a machine that gives no result.
const UNFIT_STATUS: u8 = 3;

/// All cells that did not pass, the nearest passing cells, and the answer.
pub(super) fn table(lane: &str, cells: &[GateCell]) -> String {
    let (mut passed, mut others): (Vec<_>, Vec<_>) =
        cells.iter().partition(|cell| cell.verdict() == GateVerdict::Pass);
    others.sort_by_key(|cell| cell.verdict());
    passed.sort_by(|a, b| room(a).total_cmp(&room(b)));
    let width = cells.iter().map(|cell| name(cell).len()).max().unwrap_or(0).max(8);
    let mut text = format!(
        "\n{:<width$} {:<10} {:>7} {:>14} {:>7} {:>14} {:>6} {:>8}\n",
        "cell", "peer", "ratio", "interval", "limit", "control", "shared", "launches"
    );
    for cell in others.iter().chain(passed.iter().take(MAX_PASSING_CELLS)) {
        let limit = cell.limit.map_or_else(|| "-".to_owned(), |limit| format!("{limit:.3}"));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<width$} {:<10} {:>7.3} {:>14} {limit:>7} {:>14} {:>6} {:>8}  {}",
            name(cell),
            cell.peer,
            cell.ratio.median,
            format!("{:.3}..{:.3}", cell.ratio.low, cell.ratio.high),
            format!("{:.3}..{:.3}", cell.control.low, cell.control.high),
            format!("{:.0} %", cell.disturbed * 100.0),
            cell.launches,
            cell.verdict(),
        );
    }
    if passed.len() > MAX_PASSING_CELLS {
        let _ = writeln!(text, "and {} more that passed with more room", passed.len() - MAX_PASSING_CELLS);
    }
    let count = |verdict| cells.iter().filter(|cell| cell.verdict() == verdict).count();
    let _ = writeln!(
        text,
        "\n{lane}: {} cells: {} passed, {} failed, {} inconclusive, {} without a limit; for {} the machine is unfit. A ratio is ours/peer.",
        cells.len(),
        count(GateVerdict::Pass),
        count(GateVerdict::Fail),
        count(GateVerdict::Inconclusive),
        count(GateVerdict::NoLimit),
        count(GateVerdict::Unfit),
    );
    let _ = writeln!(text, "{}", answer(cells));
    text
}

fn name(cell: &GateCell) -> String {
    format!("{}/{}", cell.suite, cell.case)
}

/// The distance of the upper end below the limit, as a share of the limit.
fn room(cell: &GateCell) -> f64 {
    cell.limit.map_or(f64::INFINITY, |limit| 1.0 - cell.ratio.high / limit)
}

fn answer(cells: &[GateCell]) -> &'static str {
    match worst(cells) {
        GateVerdict::Fail => "FAIL: ours takes longer than its limit allows",
        GateVerdict::Unfit => {
            "MACHINE UNFIT: two equals differ by more than 1 %, or others share the core; end what else runs, or try another time"
        }
        GateVerdict::Inconclusive => "PASS, with a warning: some cells could not be told from their limit",
        GateVerdict::NoLimit => "PASS, with a warning: some cells have no limit; set them with --set-limits",
        GateVerdict::Pass => "PASS",
    }
}

fn worst(cells: &[GateCell]) -> GateVerdict {
    cells.iter().map(GateCell::verdict).min().unwrap_or(GateVerdict::NoLimit)
}

/// 0 if nothing failed, 1 if something did, 3 if the machine gives no result.
pub(super) fn status(cells: &[GateCell]) -> ExitCode {
    match worst(cells) {
        GateVerdict::Fail => ExitCode::FAILURE,
        GateVerdict::Unfit => ExitCode::from(UNFIT_STATUS),
        GateVerdict::Inconclusive | GateVerdict::NoLimit | GateVerdict::Pass => ExitCode::SUCCESS,
    }
}

/// One object per line for each cell.
pub(super) fn json(cells: &[GateCell]) -> Result<String> {
    let mut text = String::new();
    for cell in cells {
        let interval = |found: bulla_record::stats::Interval| [found.low, found.median, found.high];
        let line = serde_json::json!({
            "suite": cell.suite, "case": cell.case, "peer": cell.peer, "launches": cell.launches,
            "ratio": interval(cell.ratio), "control": interval(cell.control), "limit": cell.limit, "disturbed": cell.disturbed,
            "verdict": cell.verdict().to_string(),
        });
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use bulla_record::stats::Interval;

    use super::*;

    fn cell(case: &str, ratio: f64, control: f64, limit: Option<f64>) -> GateCell {
        let exactly = |value| Interval { low: value, median: value, high: value };
        let (ratio, control) = (exactly(ratio), exactly(control));
        GateCell {
            suite: "oneshot".into(),
            case: case.into(),
            peer: "blake3".into(),
            launches: 9,
            ratio,
            control,
            disturbed: 0.0,
            limit,
        }
    }

    #[test]
    fn a_failure_outweighs_an_unfit_machine_and_that_a_pass() {
        let pass = cell("a", 0.8, 1.0, Some(1.0));
        let fail = cell("b", 1.1, 1.0, Some(1.0));
        let unfit = cell("c", 0.8, 1.1, Some(1.0));
        let status = |cells: &[&GateCell]| {
            format!("{:?}", status(&cells.iter().map(|c| (*c).clone()).collect::<Vec<_>>()))
        };
        assert_eq!(status(&[&pass]), format!("{:?}", ExitCode::SUCCESS));
        assert_eq!(status(&[&pass, &unfit]), format!("{:?}", ExitCode::from(3)));
        assert_eq!(status(&[&pass, &unfit, &fail]), format!("{:?}", ExitCode::FAILURE));
    }

    #[test]
    fn what_did_not_pass_is_shown_first_and_all_of_it() {
        let mut cells: Vec<_> = (0..20).map(|i| cell(&format!("fine/{i}"), 0.8, 1.0, Some(1.0))).collect();
        cells.push(cell("slow", 1.1, 1.0, Some(1.0)));
        cells.push(cell("new", 1.1, 1.0, None));
        let text = table("amd-zen4", &cells);
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with("oneshot/")).collect();
        assert!(rows[0].starts_with("oneshot/slow") && rows[0].ends_with("fail"), "{text}");
        assert!(rows[1].starts_with("oneshot/new") && rows.len() == 2 + MAX_PASSING_CELLS, "{text}");
        assert!(text.contains("15 more") && text.ends_with("allows\n"), "{text}");
    }

    #[test]
    fn json_has_a_line_for_each_cell() {
        let text = json(&[cell("a", 0.8, 1.0, Some(1.0)), cell("b", 0.8, 1.0, None)]).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&lines[0]["verdict"], &lines[1]["verdict"]), (&"pass".into(), &"no limit".into()));
        assert_eq!(lines[0]["ratio"][1], 0.8);
    }
}
