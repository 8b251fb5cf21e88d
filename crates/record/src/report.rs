//! Reports for people: the tables of a run; over kept runs, where ours is slower, by lane and size,
//! what changed between two runs, and the README's table.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    compare::{Comparison, EVEN_MARGIN, Outcome, by_case, comparisons},
    record::Record,
    stats::{Interval, median},
};
use anyhow::{Context as _, Result};

/// The subject of a measurement: a lane, a suite, and the kernel if it was forced.
pub(crate) type RunSubject = (String, String, String);

pub(crate) fn subject(comparison: &Comparison) -> RunSubject {
    let Record { lane, suite, kernel, forced, .. } = &comparison.ours;
    (lane.clone(), suite.clone(), if *forced { kernel.clone() } else { String::new() })
}

/// The comparisons of the newest run of each lane, suite and forced kernel.
///
/// # Errors
/// Records do not fit together.
pub fn newest(records: &[Record]) -> Result<Vec<Comparison>> {
    let all = comparisons(records)?;
    let mut latest: BTreeMap<RunSubject, String> = BTreeMap::new();
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
    text.push_str(&short_input_tables(found));
    let mut groups: BTreeMap<RunSubject, Vec<&Comparison>> = BTreeMap::new();
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
    let mut lost: Vec<_> = found.iter().filter(|row| row.outcome() == Outcome::Lost).collect();
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
const README_CASES: (&str, &str) = ("oneshot", "hash/");

/// The sizes that the README shows.
const README_SIZES: [u64; 12] =
    [64, 256, 1024, 2048, 3072, 4096, 8192, 15360, 16384, 65536, 1 << 20, 1 << 26];

/// The README's table, in Markdown.
///
/// # Errors
/// There is no run of the suite that it shows.
pub fn readme(found: &[Comparison]) -> Result<String> {
    let rows = found.iter().filter(|row| row.ours.suite == README_CASES.0 && !row.ours.forced);
    let run = rows
        .clone()
        .map(|row| &row.ours.run)
        .max()
        .with_context(|| format!("no run of {}", README_CASES.0))?;
    let rows: Vec<_> = rows.filter(|row| &row.ours.run == run).collect();
    let shown: Vec<_> =
        rows.iter().filter(|row| row.ours.case.starts_with(README_CASES.1)).copied().collect();
    let mut peers: Vec<&str> = Vec::new();
    for row in &shown {
        if !peers.contains(&row.peer.as_str()) {
            peers.push(&row.peer);
        }
    }
    let Record { cpu, lane, kernel, time, version, .. } = &rows[0].ours;
    let lost = rows.iter().filter(|row| row.outcome() == Outcome::Lost).count();
    let day = time.split('T').next().unwrap_or_default();
    let mut text = format!(
        "BLAKE3 in one call, one thread, {cpu} (`{lane}`, kernel `{kernel}`), {day}: nanoseconds for one call; in brackets, the peer's time divided by ours (above 1, ours is faster).\n\n\
         | bytes | bulla {version} |{}\n|--:|--:|{}\n",
        peers.iter().map(|peer| format!(" {peer} |")).collect::<String>(),
        "--:|".repeat(peers.len()),
    );
    for cells in by_case(&shown).into_iter().filter(|cells| README_SIZES.contains(&cells[0].ours.bytes)) {
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

/// One table for each run, suite, kernel and peer, in the order of their first occurrence. Losses
/// come first, the greatest at the top.
pub fn case_tables(comparisons: &[Comparison]) -> String {
    let mut groups: Vec<Vec<&Comparison>> = Vec::new();
    for comparison in comparisons {
        match groups.iter_mut().find(|group| same_table(group[0], comparison)) {
            Some(group) => group.push(comparison),
            None => groups.push(vec![comparison]),
        }
    }
    let mut text = String::new();
    for group in &mut groups {
        write_table(&mut text, group);
    }
    text
}

fn same_table(a: &Comparison, b: &Comparison) -> bool {
    let key = |c: &Comparison| {
        let Record { run, suite, kernel, forced, .. } = &c.ours;
        (run.clone(), suite.clone(), kernel.clone(), *forced, c.peer.clone())
    };
    key(a) == key(b)
}

/// A line reads `case | bytes | peer ns | ours ns | ratio | spread | control`: the ratio is peer
/// over ours, the median over the launches; the spread is its smallest and largest value; the
/// control is the peer against itself.
fn write_table(text: &mut String, rows: &mut [&Comparison]) {
    rows.sort_by(|a, b| {
        let loss = |c: &Comparison| if c.outcome() == Outcome::Lost { c.ratio() } else { 1.0 };
        loss(a).total_cmp(&loss(b))
    });
    let Record { suite, kernel, forced, implementation, version, cpu, lane, .. } = &rows[0].ours;
    let clocks: Vec<f64> = rows.iter().map(|row| row.ours.ghz).filter(|ghz| *ghz > 0.0).collect();
    let clock = if clocks.is_empty() { String::new() } else { format!(", {:.2} GHz", median(clocks)) };
    let kernel = match (kernel.is_empty(), forced) {
        (true, _) => String::new(),
        (false, true) => format!(" ({kernel}, forced)"),
        (false, false) => format!(" ({kernel})"),
    };
    let lane = if lane.is_empty() { String::new() } else { format!(" ({lane})") };
    let launches = rows.iter().map(|row| row.launches.len()).max().unwrap_or(0);
    let width = rows.iter().map(|row| row.ours.case.len()).max().unwrap_or(0).max(18);
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\n{suite}: {implementation} {version}{kernel} against {}; {cpu}{lane}{clock}; launches: {launches}\n",
        rows[0].peer
    );
    let _ = writeln!(
        text,
        "{:<width$} {:>9} {:>13} {:>13} {:>7} {:>12} {:>8}",
        "case", "bytes", "peer ns", "ours ns", "ratio", "spread", "control"
    );
    for row in rows.iter() {
        let (low, high) = row.spread();
        let control = row.control().map_or_else(|| "-".to_owned(), |control| format!("{control:.3}"));
        let _ = writeln!(
            text,
            "{:<width$} {:>9} {:>13.1} {:>13.1} {:>7.3} {:>12} {control:>8}{}",
            row.ours.case,
            row.ours.bytes,
            row.peer_ns(),
            row.ours_ns(),
            row.ratio(),
            format!("{low:.2}..{high:.2}"),
            if row.outcome() == Outcome::Lost { "  LOSS" } else { "" },
        );
    }
    let count = |standing| rows.iter().filter(|row| row.outcome() == standing).count();
    let _ = writeln!(
        text,
        "\n{} cases: {} won, {} even (within {EVEN_MARGIN}), {} lost. A ratio above 1 means that ours is faster.",
        rows.len(),
        count(Outcome::Won),
        count(Outcome::Even),
        count(Outcome::Lost)
    );
}

/// The sizes at which the need is shown.
const SHORT_SIZES: [u64; 2] = [256, 1024];

/// The suites, or groups of their cases, that measure these sizes.
const SHORT_SUITES: [&str; 2] = ["oneshot", "short-input-attribution"];
const SHORT_GROUPS: [&str; 4] = ["hash", "keyed", "derive_key", "stream"];

/// The group of cases in which the peer is ours with the kernel named beforehand.
const DISPATCH_GROUP: &str = "dispatch";

/// Both tables, for every measured lane; empty if there is none.
pub fn short_input_tables(found: &[Comparison]) -> String {
    let own: Vec<&Comparison> = found
        .iter()
        .filter(|row| SHORT_SUITES.contains(&row.ours.suite.as_str()) && !row.ours.forced)
        .collect();
    let mut lanes: Vec<&str> = own.iter().map(|row| row.ours.lane.as_str()).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let mut text = String::new();
    for lane in lanes {
        let rows: Vec<&Comparison> = own.iter().filter(|row| row.ours.lane == lane).copied().collect();
        write_short_needs(&mut text, lane, &rows);
        write_dispatch(&mut text, lane, &rows);
    }
    text
}

fn group(row: &Comparison) -> &str {
    row.ours.case.rsplit_once('/').map_or("", |(group, _)| group)
}

/// One line for each case of the two sizes, the greatest need at the end of the line's peers.
fn write_short_needs(text: &mut String, lane: &str, rows: &[&Comparison]) {
    let is_short =
        |row: &&&Comparison| SHORT_SIZES.contains(&row.ours.bytes) && SHORT_GROUPS.contains(&group(row));
    for size in SHORT_SIZES {
        for suite in SHORT_SUITES {
            let of_suite = |row: &&&Comparison| row.ours.bytes == size && row.ours.suite == suite;
            let short: Vec<&Comparison> = rows.iter().filter(is_short).filter(of_suite).copied().collect();
            for cells in by_case(&short) {
                if !text.contains(&needs_head(lane)) {
                    let _ = writeln!(text, "\n{}\n", needs_head(lane));
                }
                let needs: Vec<_> = cells
                    .iter()
                    .map(|cell| format!("{:+.1} {}", cell.need_percent(), cell.peer_name))
                    .collect();
                let case = format!("{suite}/{}", cells[0].ours.case);
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{case:<42} {:>9.1} ns  {}", cells[0].ours_ns(), needs.join(", "));
            }
        }
    }
}

fn needs_head(lane: &str) -> String {
    format!("{lane}: need at 256 and 1024 bytes, in percent; positive: ours is behind")
}

/// How much longer a call takes if it chooses the kernel, compared with a call of the same kernel
/// by name.
fn write_dispatch(text: &mut String, lane: &str, rows: &[&Comparison]) {
    let rows: Vec<_> = rows.iter().filter(|row| group(row) == DISPATCH_GROUP).collect();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n{lane}: dispatch overhead, in percent: the kernel chosen against the kernel named\n"
    );
    let _ =
        writeln!(text, "{:>9} {:>12} {:>12} {:>9}  interval", "bytes", "chosen ns", "named ns", "overhead");
    for row in rows {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let over = Interval::of(row.launches.iter().map(|launch| percent(launch.log_ratio.exp())));
        let _ = writeln!(
            text,
            "{:>9} {:>12.1} {:>12.1} {:>+9.1}  {:+.1} to {:+.1}",
            row.ours.bytes,
            row.ours_ns(),
            row.peer_ns(),
            over.median,
            over.low,
            over.high
        );
    }
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

#[cfg(test)]
mod case_table_tests {
    use super::*;
    use crate::compare::{comparisons, launches};

    fn table(records: &[Record]) -> String {
        case_tables(&comparisons(records).unwrap())
    }

    fn cases(table: &str) -> Vec<&str> {
        table.lines().filter(|line| line.contains("..")).map(|line| &line[..1]).collect()
    }

    #[test]
    fn a_line_has_the_median_and_the_spread() {
        let table = table(&launches("oneshot/64", &[1.5, 1.1, 1.2]));
        assert!(table.contains("1.200   1.10..1.50    1.000\n"), "{table}");
    }

    #[test]
    fn losses_come_first_are_marked_and_counted() {
        let mut records = launches("a", &[1.3, 1.3, 0.9]);
        records.extend(launches("b", &[0.995, 1.0, 0.999]));
        records.extend(launches("c", &[0.98, 0.97, 1.02]));
        records.extend(launches("d", &[0.5]));
        let table = table(&records);
        assert_eq!(cases(&table), ["d", "c", "a", "b"], "{table}");
        assert_eq!(table.matches("  LOSS\n").count(), 2, "{table}");
        assert!(table.contains("4 cases: 1 won, 1 even (within 0.01), 2 lost."), "{table}");
    }

    #[test]
    fn each_kernel_and_each_peer_has_its_own_table() {
        let mut records = launches("a", &[1.0]);
        records.push(Record { implementation: "rscrypto".into(), ..records[1].clone() });
        let forced = launches("b", &[1.0]).into_iter().map(|record| Record { forced: true, ..record });
        records.extend(forced);
        let table = table(&records);
        assert_eq!(table.matches(" against ").count(), 3, "{table}");
    }

    #[test]
    fn no_record_makes_no_table() {
        assert_eq!(table(&[]), "");
    }
}

#[cfg(test)]
mod short_input_tests {
    use super::*;
    use crate::{
        compare::{comparisons, launches},
        record::Record,
    };

    fn measured(suite: &str, case: &str, bytes: u64, ratio: f64) -> Vec<Record> {
        let records = launches(case, &[ratio; 9]).into_iter();
        records.map(|record| Record { suite: suite.into(), bytes, ..record }).collect()
    }

    #[test]
    fn need_is_shown_at_two_sizes_and_nowhere_else() {
        let mut records = measured("oneshot", "hash/256", 256, 0.8);
        records.extend(measured("oneshot", "hash/1024", 1024, 1.25));
        records.extend(measured("oneshot", "hash/64", 64, 1.0));
        records.extend(measured("xof", "output/1024", 1024, 1.0));
        let text = short_input_tables(&comparisons(&records).unwrap());
        let rows: Vec<_> = text.lines().filter(|line| line.contains(" ns  ")).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert!(rows[0].starts_with("oneshot/hash/256 ") && rows[0].ends_with("+25.0 blake3"), "{text}");
        assert!(rows[1].ends_with("-20.0 blake3"), "{text}");
        assert_eq!(text.matches("need at").count(), 1, "{text}");
    }

    #[test]
    fn overhead_is_that_of_the_chosen_kernel_over_the_named_one() {
        let records = measured("short-input-attribution", "dispatch/64", 64, 1.0 / 1.1);
        let text = short_input_tables(&comparisons(&records).unwrap());
        assert!(text.contains("dispatch overhead") && text.contains("+10.0  +10.0 to +10.0"), "{text}");
    }

    #[test]
    fn nothing_measured_makes_no_table() {
        assert_eq!(short_input_tables(&[]), "");
        assert_eq!(short_input_tables(&comparisons(&measured("many", "64x/256", 256, 1.0)).unwrap()), "");
    }
}
