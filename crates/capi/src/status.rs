//! The report of a call: a code, its text, and the details of a thread's last failure.
//!
//! Every function with a status runs in [`guard`], which catches panics: a panic that reached C
//! would end the process.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a call: `BULLA_OK`, or the reason why it failed.
pub type bulla_status = i32;

/// The call did what it says.
pub const BULLA_OK: bulla_status = 0;
/// A pointer is NULL where memory is needed.
pub const BULLA_ERROR_NULL: bulla_status = 1;
/// A length or a number is outside its limits, or an object would not fit into the address space.
pub const BULLA_ERROR_LENGTH: bulla_status = 2;
/// A value is not one of those that the function takes, or a pointer is not aligned.
pub const BULLA_ERROR_ARGUMENT: bulla_status = 3;
/// No kernel of the wanted name runs on this machine. bulla_last_error lists those that do.
pub const BULLA_ERROR_KERNEL: bulla_status = 4;
/// The memory does not hold an initialized state, or the bytes are not a saved state.
pub const BULLA_ERROR_STATE: bulla_status = 5;
/// The operating system reported an error of a file. bulla_last_error says which.
pub const BULLA_ERROR_IO: bulla_status = 6;
/// The callback asked to stop.
pub const BULLA_ERROR_CANCELED: bulla_status = 7;
/// The operating system gave no random bytes.
pub const BULLA_ERROR_RANDOM: bulla_status = 8;
/// At least one of many signatures is not valid. The verdicts say which.
pub const BULLA_ERROR_SIGNATURES: bulla_status = 9;
/// There is an error in this library. What the call would have changed must not be used any more.
pub const BULLA_ERROR_INTERNAL: bulla_status = 10;

/// S is not below the order of the base point.
pub const BULLA_ED25519_SCALAR_NOT_CANONICAL: bulla_status = 101;
/// The public key is not a point of the curve.
pub const BULLA_ED25519_KEY_NOT_A_POINT: bulla_status = 102;
/// The public key has small order: one signature would fit almost every message.
pub const BULLA_ED25519_KEY_OF_SMALL_ORDER: bulla_status = 103;
/// R has small order.
pub const BULLA_ED25519_R_OF_SMALL_ORDER: bulla_status = 104;
/// The signature does not match the message and the key.
pub const BULLA_ED25519_MISMATCH: bulla_status = 105;

/// The text of a status, in English: never NULL, never freed. Thread-safe.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_status_text(status: bulla_status) -> *const c_char {
    let text = match status {
        BULLA_OK => c"success",
        BULLA_ERROR_NULL => c"a pointer is NULL",
        BULLA_ERROR_LENGTH => c"a length is outside its limits",
        BULLA_ERROR_ARGUMENT => c"an argument has a value that the function does not take",
        BULLA_ERROR_KERNEL => c"this machine has no kernel of that name",
        BULLA_ERROR_STATE => c"the memory or the bytes are not a state",
        BULLA_ERROR_IO => c"the file could not be read",
        BULLA_ERROR_CANCELED => c"the callback canceled the call",
        BULLA_ERROR_RANDOM => c"the operating system gave no random bytes",
        BULLA_ERROR_SIGNATURES => c"at least one signature is not valid",
        BULLA_ERROR_INTERNAL => c"there is an error in the library",
        BULLA_ED25519_SCALAR_NOT_CANONICAL => c"S is not below the order of the group",
        BULLA_ED25519_KEY_NOT_A_POINT => c"the public key is not a point of the curve",
        BULLA_ED25519_KEY_OF_SMALL_ORDER => c"the public key is of small order",
        BULLA_ED25519_R_OF_SMALL_ORDER => c"R is of small order",
        BULLA_ED25519_MISMATCH => c"the signature does not match the message and the key",
        _ => c"an unknown status",
    };
    text.as_ptr()
}

/// The details of the last failure on this thread, in English: never NULL. Empty, if there was
/// none. It contains no secret. The text is valid until the next call on this thread that fails.
/// Thread-safe.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_last_error() -> *const c_char {
    // A thread that is ending has no details.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The version of this library, for example "0.1.0": never freed. Thread-safe.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: bulla_status,
    detail: String,
}

impl Failure {
    #[cold]
    pub(crate) fn new(status: bulla_status, detail: impl Into<String>) -> Self {
        Failure { status, detail: detail.into() }
    }

    #[cold]
    fn of_panic(panic: Box<dyn Any + Send>) -> Self {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        // The destructor of what was thrown could panic again.
        mem::forget(panic);
        Failure::new(BULLA_ERROR_INTERNAL, text)
    }

    #[cold]
    fn record(self) -> bulla_status {
        let detail = CString::new(self.detail.replace('\0', " ")).unwrap_or_default();
        let _ = LAST.try_with(|last| last.replace(detail));
        self.status
    }
}

/// Runs the work of a call, and turns a failure or a panic into its status.
#[inline(always)]
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Failure>) -> bulla_status {
    // A panic leaves a state of this library at worst wrong, never unsound; the status says that it
    // must not be used.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => BULLA_OK,
        Ok(Err(failure)) => failure.record(),
        Err(panic) => Failure::of_panic(panic).record(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_panic_becomes_a_status_with_its_text() {
        let status = guard(|| panic!("broken: {}", 7));
        assert_eq!(status, BULLA_ERROR_INTERNAL);
        // SAFETY: the function returns a C string.
        let detail = unsafe { CStr::from_ptr(bulla_last_error()) };
        assert_eq!(detail, c"broken: 7");
    }

    #[test]
    fn each_status_has_its_own_text() {
        let mut texts = Vec::new();
        for status in (BULLA_OK..=BULLA_ERROR_INTERNAL)
            .chain(BULLA_ED25519_SCALAR_NOT_CANONICAL..=BULLA_ED25519_MISMATCH)
        {
            // SAFETY: the function returns a C string.
            texts.push(unsafe { CStr::from_ptr(bulla_status_text(status)) });
        }
        // SAFETY: as above.
        texts.push(unsafe { CStr::from_ptr(bulla_status_text(-1)) });
        let all = texts.len();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), all);
    }
}
