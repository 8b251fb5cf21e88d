//! Fail points: the steps of a node that others can see, which are its writes and messages. A test
//! kills the node before one of them.

use std::io;

/// Counts steps, in tests. Outside of tests, it does nothing.
#[derive(Debug, Default)]
pub(super) struct FailPoints {
    /// How many steps are left. None counts nothing.
    #[cfg(test)]
    left: std::sync::Mutex<Option<usize>>,
}

impl FailPoints {
    /// # Errors
    /// A test has killed the node: it writes and says nothing any more.
    pub(super) fn step(&self) -> io::Result<()> {
        #[cfg(test)]
        if let Some(left) = &mut *self.left.lock().expect("no panic") {
            *left = left.checked_sub(1).ok_or_else(|| io::Error::other("the node was killed"))?;
        }
        Ok(())
    }

    /// Kills the node after so many steps; never if it is None. Returns how many were left before.
    #[cfg(test)]
    pub(super) fn kill_after(&self, steps: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut *self.left.lock().expect("no panic"), steps)
    }
}
