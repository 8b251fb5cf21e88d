//! Whether a program has more rights than the user who started it.

/// Whether the program is setuid, or gets rights in another way when it starts. It keeps the
/// variables of the user who started it, and may have changed its user ids since. So the system is
/// asked what it was at the start.
#[cfg(target_os = "linux")]
pub(crate) fn has_more_rights() -> bool {
    // SAFETY: it reads what the system gave the process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Other systems are not asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_more_rights() -> bool {
    false
}
