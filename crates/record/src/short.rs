//! Two tables about short inputs, where most of the time can be lost outside the kernel: our need
//! at 256 and 1024 bytes, and the cost of choosing the kernel.

use std::fmt::Write as _;

use crate::{
    compare::{Comparison, by_case},
    stats::Interval,
};

/// The sizes at which the need is shown.
const SIZES: [u64; 2] = [256, 1024];

/// The suites, or groups of their cases, that measure these sizes.
const SUITES: [&str; 2] = ["oneshot", "short-input-attribution"];
const GROUPS: [&str; 4] = ["hash", "keyed", "derive_key", "stream"];

/// The group of cases in which the peer is ours with the kernel named beforehand.
const DISPATCH: &str = "dispatch";

/// Both tables, for every measured lane; empty if there is none.
pub fn tables(found: &[Comparison]) -> String {
    let own: Vec<&Comparison> =
        found.iter().filter(|row| SUITES.contains(&row.ours.suite.as_str()) && !row.ours.forced).collect();
    let mut lanes: Vec<&str> = own.iter().map(|row| row.ours.lane.as_str()).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let mut text = String::new();
    for lane in lanes {
        let rows: Vec<&Comparison> = own.iter().filter(|row| row.ours.lane == lane).copied().collect();
        needs(&mut text, lane, &rows);
        dispatch(&mut text, lane, &rows);
    }
    text
}

fn group(row: &Comparison) -> &str {
    row.ours.case.rsplit_once('/').map_or("", |(group, _)| group)
}

/// One line for each case of the two sizes, the greatest need at the end of the line's peers.
fn needs(text: &mut String, lane: &str, rows: &[&Comparison]) {
    let is_short = |row: &&&Comparison| SIZES.contains(&row.ours.bytes) && GROUPS.contains(&group(row));
    for size in SIZES {
        for suite in SUITES {
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
fn dispatch(text: &mut String, lane: &str, rows: &[&Comparison]) {
    let rows: Vec<_> = rows.iter().filter(|row| group(row) == DISPATCH).collect();
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
        let text = tables(&comparisons(&records).unwrap());
        let rows: Vec<_> = text.lines().filter(|line| line.contains(" ns  ")).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert!(rows[0].starts_with("oneshot/hash/256 ") && rows[0].ends_with("+25.0 blake3"), "{text}");
        assert!(rows[1].ends_with("-20.0 blake3"), "{text}");
        assert_eq!(text.matches("need at").count(), 1, "{text}");
    }

    #[test]
    fn overhead_is_that_of_the_chosen_kernel_over_the_named_one() {
        let records = measured("short-input-attribution", "dispatch/64", 64, 1.0 / 1.1);
        let text = tables(&comparisons(&records).unwrap());
        assert!(text.contains("dispatch overhead") && text.contains("+10.0  +10.0 to +10.0"), "{text}");
    }

    #[test]
    fn nothing_measured_makes_no_table() {
        assert_eq!(tables(&[]), "");
        assert_eq!(tables(&comparisons(&measured("many", "64x/256", 256, 1.0)).unwrap()), "");
    }
}
