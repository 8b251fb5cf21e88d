//! Catches the panics of a library without output on standard error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `action`; `None` if it panicked. After a panic, the values that it worked on must not be
/// used again.
///
/// The first call installs a hook before the process's panic hook. It suppresses the report of a
/// panic that is caught here, and passes on every other one.
pub(super) fn caught<T>(action: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let next = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                next(panic);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(action));
    QUIET.set(before);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_none_and_the_next_call_works() {
        assert_eq!(caught(|| -> u8 { panic!("held back") }), None);
        assert_eq!(caught(|| 1), Some(1));
        assert!(!QUIET.get());
    }
}
