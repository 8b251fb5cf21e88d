//! The steps of a node that others can see: writes and messages. A test ends the node before one of
//! them, as a kill would.

use std::io;

/// Counts steps, in tests. A node in use never ends by it.
#[derive(Debug, Default)]
pub(super) struct Lifeline {
    /// How many steps are left. None counts nothing.
    #[cfg(test)]
    left: std::sync::Mutex<Option<usize>>,
}

impl Lifeline {
    /// # Errors
    /// The node is dead: it writes and says nothing any more.
    pub(super) fn step(&self) -> io::Result<()> {
        #[cfg(test)]
        if let Some(left) = &mut *self.left.lock().expect("no panic") {
            *left = left.checked_sub(1).ok_or_else(|| io::Error::other("the node was killed"))?;
        }
        Ok(())
    }

    /// Lets the node live for this many steps. Returns how many were left before.
    #[cfg(test)]
    pub(super) fn cut(&self, steps: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut *self.left.lock().expect("no panic"), steps)
    }
}
