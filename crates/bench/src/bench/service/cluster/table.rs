//! The figures of all launches, as tables of medians.

use std::fmt;

use bulla_record::stats::median;

/// A column's head, and how many decimals its numbers have.
pub(super) type Column = (&'static str, usize);

/// A table. Each launch adds one number to each cell.
pub(super) struct Table {
    title: &'static str,
    /// The head of the first column, which names the rows.
    rows_are: &'static str,
    columns: &'static [Column],
    rows: Vec<(String, Vec<Vec<f64>>)>,
}

impl Table {
    pub(super) const fn new(title: &'static str, rows_are: &'static str, columns: &'static [Column]) -> Self {
        Self { title, rows_are, columns, rows: Vec::new() }
    }

    /// Adds the figures of one launch to a row: one for each column, not a number where there is
    /// none.
    pub(super) fn add(&mut self, row: impl ToString, figures: &[f64]) {
        debug_assert_eq!(figures.len(), self.columns.len());
        let name = row.to_string();
        let place = self.rows.iter().position(|(other, _)| *other == name).unwrap_or_else(|| {
            self.rows.push((name, vec![Vec::new(); self.columns.len()]));
            self.rows.len() - 1
        });
        let cells = self.rows[place].1.iter_mut().zip(figures);
        cells.filter(|(_, figure)| figure.is_finite()).for_each(|(cell, figure)| cell.push(*figure));
    }

    /// The median in a cell; `None` if there is none.
    pub(super) fn at(&self, row: impl ToString, column: usize) -> Option<f64> {
        let name = row.to_string();
        let (_, cells) = self.rows.iter().find(|(other, _)| *other == name)?;
        middle(cells.get(column)?)
    }

    /// The rows whose names are numbers, with the median in a column.
    pub(super) fn points(&self, column: usize) -> Vec<(f64, f64)> {
        let point =
            |(name, cells): &(String, Vec<Vec<f64>>)| Some((name.parse().ok()?, middle(cells.get(column)?)?));
        self.rows.iter().filter_map(point).collect()
    }
}

/// The median of what there is.
fn middle(cell: &[f64]) -> Option<f64> {
    (!cell.is_empty()).then(|| median(cell.iter().copied()))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}\n\n| {} |", self.title, self.rows_are)?;
        self.columns.iter().try_for_each(|(head, _)| write!(f, " {head} |"))?;
        write!(f, "\n|---|{}\n", "--:|".repeat(self.columns.len()))?;
        for (name, cells) in &self.rows {
            write!(f, "| {name} |")?;
            for (cell, (_, decimals)) in cells.iter().zip(self.columns) {
                match middle(cell) {
                    Some(figure) => write!(f, " {figure:.decimals$} |")?,
                    None => write!(f, " |")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_medians_of_all_launches() {
        let mut table = Table::new("Speed.", "nodes", &[("fast", 0), ("slow", 1)]);
        for launch in [1.0, 30.0, 2.0] {
            table.add(1, &[launch, 2.0 * launch]);
            table.add("all", &[0.0, f64::NAN]);
        }
        let expected = "\nSpeed.\n\n| nodes | fast | slow |\n|---|--:|--:|\n| 1 | 2 | 4.0 |\n| all | 0 | |\n";
        assert_eq!(table.to_string(), expected);
        assert_eq!((table.at(1, 1), table.at(2, 1), table.at(1, 2)), (Some(4.0), None, None));
        assert_eq!(table.points(0), [(1.0, 2.0)], "a row with another name is no point");
    }
}
