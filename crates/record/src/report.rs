//! Reports over kept runs: where ours is slower, by lane and size; what changed between two runs;
//! the README's table.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context as _, Result};

use crate::{
    compare::{Comparison, Standing, by_case, comparisons},
    record::Record,
    short,
};

/// The subject of a measurement: a lane, a suite, and the kernel if it was forced.
pub(crate) type Subject = (String, String, String);

pub(crate) fn subject(comparison: &Comparison) -> Subject {
    let Record { lane, suite, kernel, forced, .. } = &comparison.ours;
    (lane.clone(), suite.clone(), if *forced { kernel.clone() } else { String::new() })
}

/// The comparisons of the newest run of each lane, suite and forced kernel.
///
/// # Errors
/// Records do not fit together.
pub fn newest(records: &[Record]) -> Result<Vec<Comparison>> {
    let all = comparisons(records)?;
    let mut latest: BTreeMap<Subject, String> = BTreeMap::new();
    for comparison in &all {
        let run = latest.entry(subject(comparison)).or_default();
        // A run's name begins with its time.
        if *run < comparison.ours.run {
            run.clone_from(&comparison.ours.run);
        }
    }
    Ok(all.into_iter().filter(|comparison| latest[&subject(comparison)] == comparison.ours.run).collect())
}

/// The cases in which ours is slower, the greatest need first; then short inputs; then each lane
/// and suite by size. The need is how much longer ours takes, in percent.
pub fn needs(found: &[Comparison]) -> String {
    let mut text = losses(found);
    text.push_str(&short::tables(found));
    let mut groups: BTreeMap<Subject, Vec<&Comparison>> = BTreeMap::new();
    for comparison in found {
        groups.entry(subject(comparison)).or_default().push(comparison);
    }
    for ((lane, suite, kernel), rows) in &groups {
        let kernel = if kernel.is_empty() { &rows[0].ours.kernel } else { kernel };
        let mut peers: Vec<&str> = rows.iter().map(|row| row.peer.as_str()).collect();
        peers.sort_unstable();
        peers.dedup();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n{lane}: {suite} ({kernel}, run {}): need in percent\n", rows[0].ours.run);
        let heads: String = peers.iter().map(|peer| format!(" {peer:>22}")).collect();
        let _ = writeln!(text, "{:<26} {:>9} {:>12}{heads}", "case", "bytes", "ours ns");
        for cells in by_case(rows) {
            let need = |peer: &&str| {
                let cell = cells.iter().find(|cell| cell.peer == **peer);
                cell.map_or_else(
                    || format!(" {:>22}", "-"),
                    |cell| format!(" {:>+22.1}", cell.need_percent()),
                )
            };
            let needs: String = peers.iter().map(need).collect();
            let Record { case, bytes, .. } = &cells[0].ours;
            let _ = writeln!(text, "{case:<26} {bytes:>9} {:>12.1}{needs}", cells[0].ours_ns());
        }
    }
    text
}

fn losses(found: &[Comparison]) -> String {
    let mut lost: Vec<_> = found.iter().filter(|row| row.standing() == Standing::Lost).collect();
    lost.sort_by(|a, b| b.need_percent().total_cmp(&a.need_percent()));
    let mut text = format!(
        "{} of {} comparisons lost. Need in percent: how much longer ours takes.\n\n",
        lost.len(),
        found.len()
    );
    for row in lost {
        let Record { lane, suite, case, kernel, .. } = &row.ours;
        let _ = writeln!(
            text,
            "{:>+8.1}  {lane}  {suite}/{case}  against {}  ({kernel})",
            row.need_percent(),
            row.peer
        );
    }
    text
}

/// The changes from `before` to `after` in the common cases, the greatest losses first.
pub fn change(before: &[Comparison], after: &[Comparison]) -> String {
    let mut rows = Vec::new();
    for new in after {
        let same = |old: &&Comparison| {
            subject(old) == subject(new) && old.ours.case == new.ours.case && old.peer_name == new.peer_name
        };
        if let Some(old) = before.iter().find(same) {
            rows.push((new.need_percent() - old.need_percent(), old, new));
        }
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut text = format!(
        "{:<44} {:<10} {:>8} {:>8} {:>8} {:>12} {:>12}\n",
        "case", "peer", "before", "after", "change", "ours before", "ours after"
    );
    for (change, old, new) in &rows {
        let Record { lane, suite, case, .. } = &new.ours;
        let _ = writeln!(
            text,
            "{:<44} {:<10} {:>+8.1} {:>+8.1} {change:>+8.1} {:>12.1} {:>12.1}",
            format!("{lane} {suite}/{case}"),
            new.peer_name,
            old.need_percent(),
            new.need_percent(),
            old.ours_ns(),
            new.ours_ns()
        );
    }
    let _ = writeln!(
        text,
        "\n{} cases in both. Need in percent, positive: we are behind; times in ns.",
        rows.len()
    );
    text
}

/// The suite, and the group of its cases, whose newest run the README shows.
const SHOWN: (&str, &str) = ("oneshot", "hash/");

/// The sizes that the README shows.
const SIZES: [u64; 12] = [64, 256, 1024, 2048, 3072, 4096, 8192, 15360, 16384, 65536, 1 << 20, 1 << 26];

/// The README's table, in Markdown.
///
/// # Errors
/// There is no run of the suite that it shows.
pub fn readme(found: &[Comparison]) -> Result<String> {
    let rows = found.iter().filter(|row| row.ours.suite == SHOWN.0 && !row.ours.forced);
    let run =
        rows.clone().map(|row| &row.ours.run).max().with_context(|| format!("no run of {}", SHOWN.0))?;
    let rows: Vec<_> = rows.filter(|row| &row.ours.run == run).collect();
    let shown: Vec<_> = rows.iter().filter(|row| row.ours.case.starts_with(SHOWN.1)).copied().collect();
    let mut peers: Vec<&str> = Vec::new();
    for row in &shown {
        if !peers.contains(&row.peer.as_str()) {
            peers.push(&row.peer);
        }
    }
    let Record { cpu, lane, kernel, time, version, .. } = &rows[0].ours;
    let lost = rows.iter().filter(|row| row.standing() == Standing::Lost).count();
    let day = time.split('T').next().unwrap_or_default();
    let mut text = format!(
        "BLAKE3 in one call, one thread, {cpu} (`{lane}`, kernel `{kernel}`), {day}: nanoseconds for one call; in brackets, the peer's time divided by ours (above 1, ours is faster).\n\n\
         | bytes | bulla {version} |{}\n|--:|--:|{}\n",
        peers.iter().map(|peer| format!(" {peer} |")).collect::<String>(),
        "--:|".repeat(peers.len()),
    );
    for cells in by_case(&shown).into_iter().filter(|cells| SIZES.contains(&cells[0].ours.bytes)) {
        let peer = |peer: &&str| {
            let cell = cells.iter().find(|cell| cell.peer == **peer);
            cell.map_or_else(
                || " |".to_owned(),
                |cell| format!(" {} ({:.2}) |", figure(cell.peer_ns()), cell.ratio()),
            )
        };
        let cells_of_peers: String = peers.iter().map(peer).collect();
        let _ =
            writeln!(text, "| {} | {} |{cells_of_peers}", cells[0].ours.bytes, figure(cells[0].ours_ns()));
    }
    let _ = writeln!(
        text,
        "\nThat run has {} comparisons, including keyed hashing and key derivation. Ours lost {lost} of them by more than 1 %: `cargo xtask report` lists them.",
        rows.len()
    );
    Ok(text)
}

/// Nanoseconds: below a hundred with one decimal.
fn figure(ns: f64) -> String {
    if ns < 100.0 { format!("{ns:.1}") } else { format!("{ns:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::launches;

    fn run(name: &str, case: &str, ratio: f64) -> Vec<Record> {
        launches(case, &[ratio]).into_iter().map(|record| Record { run: name.into(), ..record }).collect()
    }

    #[test]
    fn the_newest_run_of_each_suite_counts() {
        let mut records = run("2026-01-02", "a", 2.0);
        records.extend(run("2026-01-01", "a", 3.0));
        records
            .extend(run("2026-01-01", "a", 3.0).into_iter().map(|r| Record { suite: "other".into(), ..r }));
        let found = newest(&records).unwrap();
        let runs: Vec<_> = found.iter().map(|c| (c.ours.suite.as_str(), c.ours.run.as_str())).collect();
        assert_eq!(runs, [("oneshot", "2026-01-02"), ("other", "2026-01-01")]);
    }

    #[test]
    fn losses_come_first_in_percent() {
        let mut records = run("1", "won", 2.0);
        records.extend(run("1", "lost", 0.8));
        records.extend(run("1", "worse", 0.5));
        let text = needs(&newest(&records).unwrap());
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("2 of 3 comparisons lost"), "{text}");
        assert!(lines[2].contains("+100.0") && lines[2].contains("oneshot/worse"), "{text}");
        assert!(lines[3].contains("+25.0") && lines[3].contains("oneshot/lost"), "{text}");
        assert!(text.contains("-50.0"), "{text}");
    }

    #[test]
    fn a_change_is_that_of_the_need() {
        let (before, after) =
            (comparisons(&run("1", "a", 2.0)).unwrap(), comparisons(&run("2", "a", 1.0)).unwrap());
        let text = change(&before, &after);
        assert!(text.contains("-50.0     +0.0    +50.0"), "{text}");
        assert!(text.contains("1 cases in both"), "{text}");
    }

    #[test]
    fn the_readme_shows_sizes_and_counts_losses() {
        let mut records = run("1", "hash/64", 1.25);
        records.extend(run("1", "keyed/64", 0.5));
        let text = readme(&newest(&records).unwrap()).unwrap();
        assert!(text.contains("| 64 | 100 | 125 (1.25) |"), "{text}");
        assert!(
            text.contains("has 2 comparisons") && text.contains("lost 1 of them") && !text.contains("(0.50)"),
            "{text}"
        );
        assert!(readme(&[]).is_err());
    }
}
