//! Straight lines through the figures of few nodes, and what they say about many.

use std::fmt::Write as _;

use bulla_record::stats::median;

use super::{
    followers::{CHANGE, FOLLOWING, IDLE, MEDIAN},
    table::Table,
};

/// For how many nodes the model says something.
const NODES: [u32; 3] = [10, 100, 1000];

/// A straight line through points, by least squares of the relative errors: a small figure counts
/// as much as a large one.
struct Line {
    at_zero: f64,
    slope: f64,
}

impl Line {
    fn through(points: &[(f64, f64)]) -> Self {
        let weighted =
            |of: &dyn Fn(f64, f64) -> f64| -> f64 { points.iter().map(|(x, y)| of(*x, *y) / (y * y)).sum() };
        let (ones, xs, ys) = (weighted(&|_, _| 1.0), weighted(&|x, _| x), weighted(&|_, y| y));
        let (squares, products) = (weighted(&|x, _| x * x), weighted(&|x, y| x * y));
        let slope = (ones * products - xs * ys) / (ones * squares - xs * xs);
        Self { at_zero: (ys - slope * xs) / ones, slope }
    }

    fn at(&self, nodes: f64) -> f64 {
        self.at_zero + self.slope * nodes
    }
}

/// When other nodes use a change, if no time passes from its answer until then.
const BEFORE: &str = "before the answer";

/// The model's constants.
struct Model {
    /// Single signatures a second by a node with one processor.
    signatures: f64,
    /// Changes a second that nodes made at the most.
    most_changes: f64,
    /// Milliseconds of etcd's CPU: in a second without changes, and for a change.
    idle: Line,
    change: Line,
    /// Milliseconds of a node's CPU for the change of another node.
    following: f64,
    /// Milliseconds from the answer until half of the changes are used elsewhere; none if they are
    /// used before it.
    used: Option<Line>,
}

/// Fits the model. Prints its constants, how far it is from what was measured, and what it says
/// about more nodes.
pub(super) fn print(signing: &Table, rotations: &Table, followers: &Table) -> Option<String> {
    // One node follows nobody.
    let several = |column: usize| -> Vec<(f64, f64)> {
        followers.points(column).into_iter().filter(|(nodes, figure)| *nodes > 1.0 && *figure > 0.0).collect()
    };
    let following = several(FOLLOWING);
    let model = Model {
        signatures: signing.at("single-sign, 1 node", 0)?,
        most_changes: rotations.at("one member, 1 node, 8 callers", 0)?,
        idle: Line::through(&followers.points(IDLE)),
        change: Line::through(&followers.points(CHANGE)),
        following: median(following.iter().map(|(_, figure)| *figure)),
        used: Some(several(MEDIAN)).filter(|points| points.len() > 1).map(|points| Line::through(&points)),
    };
    let mut text = model.constants();
    text += "\nThe model beside what was measured:\n\n| nodes | etcd idle, ms/s | | etcd for a change, ms | | \
             used elsewhere, p50, ms | |\n|--:|--:|--:|--:|--:|--:|--:|\n";
    for (nodes, idle) in followers.points(IDLE) {
        let other = |column: usize| followers.at(nodes, column).unwrap_or(f64::NAN);
        let (idle, change) = ((Some(&model.idle), idle), (Some(&model.change), other(CHANGE)));
        let cells = [idle, change, (model.used.as_ref(), other(MEDIAN))].map(|(line, measured)| match line {
            Some(line) => format!("{measured:.2} | {:+.0} %", (line.at(nodes) / measured - 1.0) * 100.0),
            None => format!("{measured:.2} |"),
        });
        let _ = writeln!(text, "| {nodes} | {} |", cells.join(" | "));
    }
    for count in 1..=3 {
        let plural = if count == 1 { "" } else { "s" };
        if let Some(measured) = signing.at(format!("single-sign, {count} node{plural}"), 1) {
            let one = signing.at("single-sign, 1 node", 1)?;
            let off = (one / measured - 1.0) * 100.0;
            let _ = writeln!(
                text,
                "\nsignatures for a second of CPU with {count} node{plural}: the model is {off:+.0} % off"
            );
        }
    }
    Some(text + &model.of_many())
}

impl Model {
    fn constants(&self) -> String {
        let Self { signatures, most_changes, idle, change, following, used } = self;
        let used = match used {
            Some(used) => format!("within {:.2} + {:.3} N ms", used.at_zero, used.slope),
            None => BEFORE.to_owned(),
        };
        format!(
            "\nThe model, with N nodes and R changes a second:\n\n\
             - single signatures a second: {signatures:.0} N\n\
             - CPU of etcd, ms/s: {:.2} + {:.3} N + R ({:.2} + {:.3} N)\n\
             - CPU of each node, ms/s: {following:.2} R\n\
             - R is at most {most_changes:.0}: changes are made one after another\n\
             - half of the changes are used elsewhere {used}\n",
            idle.at_zero, idle.slope, change.at_zero, change.slope
        )
    }

    fn of_many(&self) -> String {
        let mut text = "\n| nodes | single signatures/s | CPU of etcd without changes | \
                        changes/s at which etcd has one processor's work | CPU of each node at that rate | used elsewhere, p50 |\n\
                        |--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
        for nodes in NODES {
            let n = f64::from(nodes);
            let idle = self.idle.at(n);
            let used = self.used.as_ref().map_or(BEFORE.to_owned(), |used| format!("{:.1} ms", used.at(n)));
            let changes = ((1000.0 - idle).max(0.0) / self.change.at(n)).min(self.most_changes);
            let _ = writeln!(
                text,
                "| {nodes} | {:.0} | {:.1} % | {changes:.0} | {:.1} % | {used} |",
                self.signatures * n,
                idle / 10.0,
                self.following * changes / 10.0
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_points_on_it_and_between_others() {
        let line = Line::through(&[(1.0, 5.0), (2.0, 7.0), (16.0, 35.0)]);
        assert!((line.at_zero - 3.0).abs() < 1e-9 && (line.slope - 2.0).abs() < 1e-9);
        assert!((line.at(1000.0) - 2003.0).abs() < 1e-6);
        let between = Line::through(&[(1.0, 9.0), (1.0, 11.0), (2.0, 20.0)]);
        assert!((9.0..11.0).contains(&between.at(1.0)) && (between.at(2.0) - 20.0).abs() < 1e-9);
    }

    /// The model of figures on lines, where other nodes use changes so many milliseconds after
    /// their answers.
    fn printed(used: impl Fn(f64) -> f64) -> String {
        let mut signing = Table::new("", "", &[("", 0), ("", 0)]);
        let mut rotations = Table::new("", "", &[("", 0)]);
        let mut followers = Table::new("", "nodes", super::super::followers::COLUMNS);
        signing.add("single-sign, 1 node", &[50_000.0, 60_000.0]);
        rotations.add("one member, 1 node, 8 callers", &[300.0]);
        for nodes in [1.0, 2.0, 4.0] {
            let n: f64 = nodes;
            followers.add(n, &[0.0, 1.0 + 0.1 * n, 0.0, 2.0 + 0.05 * n, 0.0, 0.5, used(n), 0.0, 0.0]);
        }
        print(&signing, &rotations, &followers).unwrap()
    }

    #[test]
    fn the_model_of_figures_on_lines_is_exact() {
        let text = printed(|nodes| 1.0 + 0.01 * nodes);
        assert!(text.contains("ms/s: 1.00 + 0.100 N + R (2.00 + 0.050 N)"), "{text}");
        assert!(text.contains("| 2 | 1.20 | +0 % | 2.10 | +0 % | 1.02 | +0 % |"), "{text}");
        // etcd computes 101 ms of each second without changes, and 52 ms for a change.
        assert!(text.contains("| 1000 | 50000000 | 10.1 % | 17 | 0.9 % | 11.0 ms |"), "{text}");
    }

    #[test]
    fn changes_that_are_used_at_once_have_no_line() {
        let text = printed(|_| 0.0);
        assert!(text.contains("used elsewhere before the answer\n"), "{text}");
        assert!(text.contains("| 2 | 1.20 | +0 % | 2.10 | +0 % | 0.00 | |"), "{text}");
        assert!(text.contains("| 0.9 % | before the answer |") && !text.contains("NaN"), "{text}");
    }
}
