//! The table that people read, from the records of several launches.

use std::fmt::Write as _;

use crate::{measure::median, record::Record};

/// Ratios this close to 1 are called even: two equals on a shared machine differ as much.
const EVEN: f64 = 0.01;

/// One case over all launches.
struct Row<'a> {
    records: Vec<&'a Record>,
}

/// How a case stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Win,
    Even,
    Loss,
}

impl Row<'_> {
    fn median(&self, value: fn(&Record) -> f64) -> f64 {
        median(&self.records.iter().map(|record| value(record)).collect::<Vec<_>>())
    }

    fn spread(&self) -> (f64, f64) {
        let ratios = self.records.iter().map(|record| record.ratio);
        ratios.fold((f64::INFINITY, 0.0), |(low, high), ratio| (low.min(ratio), high.max(ratio)))
    }

    /// By the median over the launches.
    fn verdict(&self) -> Verdict {
        let ratio = self.median(|record| record.ratio);
        if ratio < 1.0 - EVEN {
            Verdict::Loss
        } else if ratio > 1.0 + EVEN {
            Verdict::Win
        } else {
            Verdict::Even
        }
    }
}

/// One table for each kernel and peer, in the order in which they first occur.
///
/// A line reads `bytes | official ns | ours ns | ratio | spread`, where the ratio is the median over the launches
/// and the spread its least and greatest value. `control` is the peer against itself.
pub fn tables(records: &[Record]) -> String {
    let mut text = String::new();
    for table in group(records.iter().collect(), |a, b| {
        (&a.suite, &a.kernel, a.forced, &a.peer) == (&b.suite, &b.kernel, b.forced, &b.peer)
    }) {
        let rows: Vec<_> =
            group(table, |a, b| a.case == b.case).into_iter().map(|records| Row { records }).collect();
        write_table(&mut text, &rows);
    }
    text
}

fn group(records: Vec<&Record>, same: fn(&Record, &Record) -> bool) -> Vec<Vec<&Record>> {
    let mut groups: Vec<Vec<&Record>> = Vec::new();
    for record in records {
        match groups.iter_mut().find(|group| same(group[0], record)) {
            Some(group) => group.push(record),
            None => groups.push(vec![record]),
        }
    }
    groups
}

fn write_table(text: &mut String, rows: &[Row<'_>]) {
    let first = rows[0].records[0];
    let clock = median(&rows.iter().map(|row| row.median(|record| record.ghz)).collect::<Vec<_>>());
    let launches = rows.iter().map(|row| row.records.len()).max().unwrap_or(0);
    let Record { suite, kernel, forced, peer, cpu, .. } = first;
    let kernel = if *forced { format!("{kernel} (forced)") } else { kernel.clone() };
    // Writing to a String cannot fail.
    let _ =
        writeln!(text, "\n{suite}: {kernel} against {peer}; {cpu}, {clock:.2} GHz; {launches} launches\n");
    let _ = writeln!(
        text,
        "{:<18} {:>9} {:>13} {:>13} {:>7} {:>12} {:>8}",
        "case", "bytes", "official ns", "ours ns", "ratio", "spread", "control"
    );
    for row in rows {
        let Record { case, bytes, .. } = row.records[0];
        let (low, high) = row.spread();
        let loss = if row.verdict() == Verdict::Loss { "  LOSS" } else { "" };
        let _ = writeln!(
            text,
            "{case:<18} {bytes:>9} {:>13.1} {:>13.1} {:>7.3} {:>12} {:>8.3}{loss}",
            row.median(|record| record.peer_ns),
            row.median(|record| record.ours_ns),
            row.median(|record| record.ratio),
            format!("{low:.2}..{high:.2}"),
            row.median(|record| record.control),
        );
    }
    let count = |verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
    let _ = writeln!(
        text,
        "\n{} cases: {} won, {} even (within {EVEN}), {} lost. A ratio above 1 means that ours is faster.",
        rows.len(),
        count(Verdict::Win),
        count(Verdict::Even),
        count(Verdict::Loss)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    fn launches(case: &str, ratios: &[f64]) -> Vec<Record> {
        let one = |ratio: &f64| Record { case: case.into(), ratio: *ratio, ..example() };
        ratios.iter().map(one).collect()
    }

    fn line<'a>(table: &'a str, case: &str) -> &'a str {
        table.lines().find(|line| line.starts_with(case)).unwrap()
    }

    #[test]
    fn the_ratio_is_the_median_and_the_spread_its_extremes() {
        let table = tables(&launches("oneshot/64", &[1.5, 1.1, 1.2]));
        assert!(line(&table, "oneshot/64").contains("1.200   1.10..1.50"), "{table}");
    }

    #[test]
    fn losses_are_marked_and_counted() {
        let mut records = launches("a", &[0.98, 0.97, 1.02]);
        records.extend(launches("b", &[0.995, 1.0, 0.999]));
        records.extend(launches("c", &[1.3, 1.3, 0.9]));
        let table = tables(&records);
        assert!(line(&table, "a").ends_with("LOSS"), "{table}");
        assert!(!line(&table, "b").ends_with("LOSS") && !line(&table, "c").ends_with("LOSS"), "{table}");
        assert!(table.contains("3 cases: 1 won, 1 even (within 0.01), 1 lost."), "{table}");
    }

    #[test]
    fn each_kernel_has_its_own_table() {
        let mut records = launches("a", &[1.0]);
        records.push(Record { kernel: "x86_64/avx2".into(), ..example() });
        let table = tables(&records);
        assert_eq!(table.matches(" against ").count(), 2, "{table}");
    }

    #[test]
    fn no_record_makes_no_table() {
        assert_eq!(tables(&[]), "");
    }
}
