//! The chain of squares and products to the power that a root needs, for elements of every kind.

/// What [`root_power`] raises: an element, or several in lock step.
pub(super) trait Multiply: Copy {
    /// Squared so many times.
    fn squares(self, times: u32) -> Self;
    /// The product.
    fn times(self, other: &Self) -> Self;
}

/// A step of [`root_power`].
struct Step {
    /// How often the power is squared.
    squares: u32,
    /// The kept power that it is then multiplied by.
    factor: usize,
    /// Where the result is kept.
    into: usize,
}

/// The steps from z^2 on, with z, z^2 and z^2 kept. A loop over them has one product and one
/// square: written out, the eleven products were half of the machine code of every function that
/// decodes.
const STEPS: [Step; 11] = [
    // z^9 and z^11.
    Step { squares: 2, factor: 0, into: 2 },
    Step { squares: 0, factor: 1, into: 1 },
    // z^(2^n - 1) for n = 5, 10, 20, 40, 50, 100, 200 and 250: a step doubles n, or adds the n of a
    // kept power.
    Step { squares: 1, factor: 2, into: 1 },
    Step { squares: 5, factor: 1, into: 2 },
    Step { squares: 10, factor: 2, into: 1 },
    Step { squares: 20, factor: 1, into: 1 },
    Step { squares: 10, factor: 2, into: 1 },
    Step { squares: 50, factor: 1, into: 2 },
    Step { squares: 100, factor: 2, into: 2 },
    Step { squares: 50, factor: 1, into: 1 },
    // z^(2^252 - 3).
    Step { squares: 2, factor: 0, into: 1 },
];

/// z^(2^252 - 3), which is the power (p - 5) / 8.
#[inline(always)]
pub(super) fn root_power<T: Multiply>(z: T) -> T {
    let mut power = z.squares(1);
    let mut kept = [z, power, power];
    for step in &STEPS {
        power = power.squares(step.squares).times(&kept[step.factor]);
        kept[step.into] = power;
    }
    power
}
