//! The order of the instructions of seven rounds.

use super::set::{C, Quarter, SPARE, Set};

/// Message permutation between rounds (specification, table 2).
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

/// The words of the four columns and of the four diagonals.
const COLUMNS: [[usize; 4]; 4] = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]];
const DIAGONALS: [[usize; 4]; 4] = [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];

/// The diagonal that follows each column in its stream of quarter rounds. Streams 0 and 1 run ahead
/// of streams 2 and 3. So they take the diagonals whose late words come from them: b comes last
/// from a quarter round, and diagonals 0 and 3 have the b of columns 1 and 0.
const DIAGONAL_OF_STREAM: [usize; 4] = [0, 3, 1, 2];

/// The instructions of seven rounds. The state is in registers 0 to 15, before and after; that of a
/// second group is in the next sixteen.
pub(super) fn rounds(set: &Set) -> Vec<String> {
    let mut streams = vec![Vec::new(); 4 * set.groups];
    for group in 0..set.groups {
        for (place, quarter) in quarters(group).iter().enumerate() {
            streams[4 * group + place % 4].extend(set.quarter(quarter));
        }
    }
    let steps = streams[0].len();
    let mut instructions = vec![];
    for time in 0..steps + set.lag.iter().max().unwrap_or(&0) {
        for (stream, lag) in streams.iter().zip(set.lag.into_iter().cycle()) {
            if let Some(step) = time.checked_sub(lag).and_then(|at| stream.get(at)) {
                instructions.extend_from_slice(step);
            }
        }
    }
    instructions.extend(set.after(SPARE[1]));
    instructions
}

/// The quarter rounds of all rounds of a group; the one at place p is of stream p % 4.
fn quarters(group: usize) -> Vec<Quarter> {
    let mut schedule: [usize; 16] = std::array::from_fn(|i| i);
    let mut quarters: Vec<Quarter> = Vec::new();
    for _ in 0..7 {
        for (half, of_stream) in [[0, 1, 2, 3], DIAGONAL_OF_STREAM].into_iter().enumerate() {
            for (stream, place) in of_stream.into_iter().enumerate() {
                let words = [COLUMNS, DIAGONALS][half][place];
                let at = 8 * half + 2 * place;
                let message = [schedule[at], schedule[at + 1]];
                // The word that went to memory in the half round before this one.
                let is_back = words[2] == SPARE[1 - half] && quarters.len() >= 4;
                let c = if stream == 0 {
                    C::Away
                } else if is_back {
                    C::Back
                } else {
                    C::Register
                };
                quarters.push(Quarter { group, words, message, c, spare: SPARE[half] });
            }
        }
        schedule = PERMUTATION.map(|from| schedule[from]);
    }
    quarters
}

/// The rounds with the pieces of `others`, evenly distributed among them.
pub(super) fn weave(rounds: &[String], others: &[Vec<String>]) -> Vec<String> {
    let mut woven = Vec::new();
    let mut done = 0;
    for (i, instruction) in rounds.iter().enumerate() {
        woven.push(instruction.clone());
        let due = (i + 1) * others.len() / rounds.len();
        woven.extend(others[done..due].iter().flatten().cloned());
        done = due;
    }
    woven
}
