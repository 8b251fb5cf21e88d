//! Medians, and their confidence intervals.

/// The median; of an even number of values, the mean of the two in the middle.
///
/// # Panics
/// There is no value, or one that is not a number.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let sorted = sorted(values);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    assert!(sorted.iter().all(|value| !value.is_nan()), "a figure that is not a number");
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A median with an interval that contains the true median in 96 % of all cases, whatever the
/// distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The upper end.
    pub high: f64,
}

/// The probability that the true median is outside the interval from the second to the eighth of
/// nine values: 2 x 10 / 512.
const OUTSIDE_PROBABILITY: f64 = 20.0 / 512.0;

impl Interval {
    /// Computes the interval from the order statistics: of nine values, the second and the eighth;
    /// for other numbers of values, order statistics that are as safe. With fewer than seven
    /// values, none are: then the interval is the minimum and the maximum.
    ///
    /// # Panics
    /// There is no value, or one that is not a number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let sorted = sorted(values);
        let rank = rank(sorted.len());
        Self {
            low: sorted[rank],
            median: median(sorted.iter().copied()),
            high: sorted[sorted.len() - 1 - rank],
        }
    }

    /// Whether the whole interval is within `bound` of 0.
    pub fn is_within(&self, bound: f64) -> bool {
        self.low >= -bound && self.high <= bound
    }
}

/// How many values may be left out at either end of `n`.
///
/// The true median is below the value of rank k, counted from 0, if at most k of n values are below
/// the median. Each value is below it with probability 1/2.
fn rank(n: usize) -> usize {
    let mut term = 0.5_f64.powi(n as i32);
    let (mut tail, mut rank) = (term, 0);
    for k in 1..=n / 2 {
        term *= (n - k + 1) as f64 / k as f64;
        tail += term;
        if 2.0 * tail > OUTSIDE_PROBABILITY + f64::EPSILON {
            break;
        }
        rank = k;
    }
    rank
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn of_nine_the_second_and_the_eighth() {
        let found = Interval::of((1..=9).rev().map(f64::from));
        assert_eq!(found, Interval { low: 2.0, median: 5.0, high: 8.0 });
    }

    #[test]
    fn other_numbers_are_as_safe() {
        // By the tables of the sign test at 5 %, where its level is at most ours.
        assert_eq!([1, 5, 6, 8, 9, 18, 36].map(rank), [0, 0, 0, 0, 1, 4, 11]);
    }

    /// For nine uniform values, a thousand times, the interval contains the true median as often as
    /// it claims.
    #[test]
    fn the_interval_holds_the_median_in_96_percent() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for n in [9, 18, 36] {
            let mut inside = 0;
            for _ in 0..20_000 {
                let found = Interval::of((0..n).map(|_| uniform()));
                inside += u32::from(found.low <= 0.5 && found.high >= 0.5);
            }
            let share = f64::from(inside) / 20_000.0;
            assert!((0.955..0.985).contains(&share), "{n}: {share}");
        }
    }

    proptest! {
        #[test]
        fn ends_are_values_around_the_median_whatever_their_order(mut values in prop::collection::vec(-1e3..1e3_f64, 1..40)) {
            let found = Interval::of(values.iter().copied());
            prop_assert!(found.low <= found.median && found.median <= found.high);
            prop_assert!(values.contains(&found.low) && values.contains(&found.high));
            values.reverse();
            prop_assert_eq!(found, Interval::of(values));
        }

        #[test]
        fn what_shifts_all_values_shifts_the_interval(values in prop::collection::vec(-100_i32..100, 1..40), by in -50_i32..50) {
            let shifted = Interval::of(values.iter().map(|value| f64::from(value + by)));
            let found = Interval::of(values.iter().copied().map(f64::from));
            let by = f64::from(by);
            prop_assert_eq!(shifted, Interval { low: found.low + by, median: found.median + by, high: found.high + by });
        }

        #[test]
        fn one_wild_value_of_nine_moves_no_end_beyond_the_others(values in prop::collection::vec(-1.0..1.0_f64, 8), wild in prop_oneof![Just(1e9), Just(-1e9)]) {
            let found = Interval::of(values.iter().copied().chain([wild]));
            prop_assert!(found.is_within(1.0));
        }

        #[test]
        fn more_values_leave_out_more(n in 1_usize..200) {
            prop_assert!(rank(n) <= rank(n + 1) && rank(n + 1) <= rank(n) + 1 && 2 * rank(n) < n);
        }
    }
}
