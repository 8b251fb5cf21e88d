//! The time of an operation by the number of threads: a model, fitted to the measured numbers, for
//! machines with more processors than any that was measured.
//!
//! The model is the universal scalability law (N. J. Gunther, "A General Theory of Computational
//! Scalability Based on Rational Functions", 2008). With `n` threads, the time is
//! `one / n + serial * (n - 1) / n + each * (n - 1)`: the work that threads divide, the work that
//! only one of them can do, and what each further thread costs, such as waking it. It knows no
//! limit of the memory's bandwidth, except as far as the measured numbers already show it.

/// The numbers of threads that are modeled, unless they were measured.
pub const MODELED: [u32; 3] = [32, 64, 128];

/// The fewest numbers of threads that a fit needs: one more than the model has parameters.
const MIN_MEASURED: usize = 4;

/// The parameters of the model, in nanoseconds. None is negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalingModel {
    one: f64,
    serial: f64,
    each: f64,
    /// The greatest distance from a measured time, as a share of it.
    pub error: f64,
}

impl ScalingModel {
    /// Fits the model to measured times: pairs of a number of threads and nanoseconds. `None` if
    /// there are too few numbers of threads.
    pub fn fit(measured: &[(u32, f64)]) -> Option<Self> {
        let mut counts: Vec<_> = measured.iter().map(|(threads, _)| *threads).collect();
        counts.sort_unstable();
        counts.dedup();
        if counts.len() < MIN_MEASURED || counts[0] == 0 {
            return None;
        }
        // Relative distances count, so each equation is divided by its time.
        let rows: Vec<[f64; 3]> =
            measured.iter().map(|(threads, ns)| terms(*threads).map(|term| term / ns)).collect();
        // Of the sets of parameters that are not zero, the one with the smallest distance whose
        // parameters are not negative.
        let candidates = (1..8_u32).filter_map(|set| {
            let used: Vec<usize> = (0..3).filter(|index| set >> index & 1 == 1).collect();
            let parameters = least_squares(&rows, &used)?;
            parameters.iter().all(|parameter| *parameter >= 0.0).then_some(parameters)
        });
        let distance =
            |parameters: &[f64; 3]| rows.iter().map(|row| (dot(row, parameters) - 1.0).powi(2)).sum::<f64>();
        let parameters = candidates.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let error = rows.iter().map(|row| (dot(row, &parameters) - 1.0).abs()).fold(0.0, f64::max);
        let [one, serial, each] = parameters;
        Some(Self { one, serial, each, error })
    }

    /// The modeled time with `threads` threads, in nanoseconds.
    pub fn ns(&self, threads: u32) -> f64 {
        dot(&terms(threads), &[self.one, self.serial, self.each])
    }
}

/// The factors of the parameters.
fn terms(threads: u32) -> [f64; 3] {
    let n = f64::from(threads);
    [1.0 / n, (n - 1.0) / n, n - 1.0]
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The parameters in `used`, the others zero, for which `rows` are nearest to 1: the normal
/// equations, by elimination.
fn least_squares(rows: &[[f64; 3]], used: &[usize]) -> Option<[f64; 3]> {
    let count = used.len();
    let mut matrix = [[0.0; 4]; 3];
    for (i, line) in matrix.iter_mut().enumerate().take(count) {
        for (j, cell) in line.iter_mut().enumerate().take(count) {
            *cell = rows.iter().map(|row| row[used[i]] * row[used[j]]).sum();
        }
        line[3] = rows.iter().map(|row| row[used[i]]).sum();
    }
    for column in 0..count {
        let pivot =
            (column..count).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        let head = matrix[column];
        if head[column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        for (_, line) in matrix.iter_mut().enumerate().take(count).filter(|(index, _)| *index != column) {
            let factor = line[column] / head[column];
            line.iter_mut().zip(head).for_each(|(cell, head)| *cell -= factor * head);
        }
    }
    let mut parameters = [0.0; 3];
    for (index, place) in used.iter().enumerate() {
        parameters[*place] = matrix[index][3] / matrix[index][index];
    }
    Some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(one: f64, serial: f64, each: f64) -> Vec<(u32, f64)> {
        [1, 2, 4, 8, 16].map(|threads| (threads, dot(&terms(threads), &[one, serial, each]))).into()
    }

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    }

    #[test]
    fn a_fit_finds_the_parameters_that_made_the_times() {
        for (one, serial, each) in [(200_000.0, 9_000.0, 700.0), (1e8, 0.0, 0.0), (30_000.0, 0.0, 2_000.0)] {
            let model = ScalingModel::fit(&times(one, serial, each)).unwrap();
            assert!(
                is_near(model.one, one) && is_near(model.serial, serial) && is_near(model.each, each),
                "{model:?}"
            );
            assert!(model.error < 1e-6, "{model:?}");
            assert!(is_near(model.ns(64), dot(&terms(64), &[one, serial, each])));
        }
    }

    #[test]
    fn no_parameter_is_negative_and_the_distance_is_told() {
        // Four threads are more than four times as fast as one: no sum of the terms is.
        let model = ScalingModel::fit(&[(1, 100.0), (2, 45.0), (4, 20.0), (8, 10.0)]).unwrap();
        assert!(model.one >= 0.0 && model.serial >= 0.0 && model.each >= 0.0, "{model:?}");
        assert!(model.error > 0.05 && model.error < 0.3, "{model:?}");
    }

    #[test]
    fn few_numbers_of_threads_are_no_curve() {
        assert_eq!(ScalingModel::fit(&[(1, 4.0), (2, 2.0), (4, 1.0)]), None);
        assert_eq!(ScalingModel::fit(&[(1, 4.0), (2, 2.0), (2, 2.1), (4, 1.0)]), None);
        assert_eq!(ScalingModel::fit(&[(0, 4.0), (2, 2.0), (3, 2.1), (4, 1.0)]), None);
    }
}
