//! Results of calls, for which a program gives memory.

use zeroize::Zeroizing;

/// A result whose length the program may not know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The program asked for the length.
    Length(usize),
    /// There is not enough room, and the operation goes on.
    TooSmall(usize),
    /// Some of these are secret.
    Bytes(Zeroizing<Vec<u8>>),
}

/// What a program gets if there is no room for a result of this length.
pub(crate) fn without_room(room: Option<usize>, needed: usize) -> Option<Reply> {
    match room {
        None => Some(Reply::Length(needed)),
        Some(room) if room < needed => Some(Reply::TooSmall(needed)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_waits_for_enough_room() {
        assert_eq!(without_room(None, 64), Some(Reply::Length(64)));
        assert_eq!(without_room(Some(63), 64), Some(Reply::TooSmall(64)));
        assert_eq!(without_room(Some(64), 64), None);
    }
}
