//! The tables for people.

use std::fmt::Write as _;

use crate::{
    compare::{Comparison, EVEN, Standing},
    record::Record,
    stats::median,
};

/// One table for each run, suite, kernel and peer, in the order of their first occurrence. Losses
/// come first, the greatest at the top.
pub fn tables(comparisons: &[Comparison]) -> String {
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
        let loss = |c: &Comparison| if c.standing() == Standing::Lost { c.ratio() } else { 1.0 };
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
            if row.standing() == Standing::Lost { "  LOSS" } else { "" },
        );
    }
    let count = |standing| rows.iter().filter(|row| row.standing() == standing).count();
    let _ = writeln!(
        text,
        "\n{} cases: {} won, {} even (within {EVEN}), {} lost. A ratio above 1 means that ours is faster.",
        rows.len(),
        count(Standing::Won),
        count(Standing::Even),
        count(Standing::Lost)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{comparisons, launches};

    fn table(records: &[Record]) -> String {
        tables(&comparisons(records).unwrap())
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
