//! Why a call failed, for people. A code of PKCS #11 says little, so the variable
//! `BULLA_PKCS11_DEBUG` makes the module write each reason to standard error. No reason contains a
//! token or a message.

use std::env;
use std::fmt::Display;
use std::io::Write as _;
use std::sync::OnceLock;

use crate::error::FUNCTION;

/// The variable that makes the module explain its codes.
const DEBUG: &str = "BULLA_PKCS11_DEBUG";

/// Writes a line about a call that failed, if the user asked for that.
pub(crate) fn report(reason: &dyn Display) {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    if *IS_ON.get_or_init(|| env::var_os(DEBUG).is_some_and(|value| !value.is_empty())) {
        write(reason);
    }
}

/// Writes a line about the module's configuration. Without it, nobody would find the mistake.
pub(crate) fn write(reason: &dyn Display) {
    // Nobody can be told that this failed.
    let _ = writeln!(std::io::stderr(), "bulla-pkcs11: {}: {reason}", FUNCTION.get());
}
