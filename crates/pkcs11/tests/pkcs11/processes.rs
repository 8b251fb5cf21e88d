//! Threads, child processes and many sessions.

use crate::support::codes::name;
use crate::support::raw::{Module, call};
use crate::support::{OPEN, TOKEN, apart};
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use cryptoki_sys::*;
use std::fs;
use std::ptr::null_mut;

const THREADS: usize = 16;
const SIGNATURES: usize = 20;

#[test]
fn sixteen_threads_sign_each_in_a_session_of_its_own() {
    apart("processes::sixteen_threads_sign_each_in_a_session_of_its_own", |place| {
        let (_serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let slot = module.slot(TOKEN);
        let first = module.open(slot).expect("a session");
        first.login(&token.pin).expect("the token is the PIN");
        let key = first.only(CKO_PRIVATE_KEY, "ed");
        let point = first.attribute(first.only(CKO_PUBLIC_KEY, "ed"), CKA_EC_POINT).expect("a point");
        let public = UnparsedPublicKey::new(&ED25519, &point[2..]);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for turn in 0..SIGNATURES {
                        // The login is that of all sessions.
                        let session = module.open(slot).expect("a session");
                        let message = format!("{thread} {turn}");
                        let signature = session.sign(CKM_EDDSA, key, message.as_bytes());
                        let signature = signature.unwrap_or_else(|code| panic!("{}", name(code)));
                        public.verify(message.as_bytes(), &signature).expect("a valid signature");
                        session.close().expect("it was open");
                    }
                });
            }
        });
    });
}

#[test]
fn threads_that_end_everything_for_each_other_get_codes() {
    apart("processes::threads_that_end_everything_for_each_other_get_codes", |place| {
        let (_serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let slot = module.slot(OPEN);
        let session = module.open(slot).expect("a session");
        let key = session.only(CKO_PRIVATE_KEY, "ed");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    for turn in 0..20 {
                        match (thread, turn % 4) {
                            (0, 3) => drop(call!(module, C_CloseAllSessions(slot))),
                            (1, 3) => drop(module.finalize()),
                            (2, _) => drop(module.initialize()),
                            // All use the first session, which is open or not.
                            (3, _) => drop(session.sign(CKM_EDDSA, key, b"message")),
                            _ => drop(module.open(slot).and_then(|own| own.sign(CKM_EDDSA, key, b"m"))),
                        }
                    }
                });
            }
        });
        // It may be either, and works.
        let _ = module.initialize();
        let session = module.open(module.slot(OPEN)).expect("a session");
        let key = session.only(CKO_PRIVATE_KEY, "ed");
        assert_eq!(session.sign(CKM_EDDSA, key, b"message").expect("a signature").len(), 64);
    });
}

/// Runs `work` in a child process, and gives its exit status.
pub(crate) fn in_child(work: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child uses the module and memory, whose locks the C library renews, and ends
    // without returning from here.
    let process = unsafe { libc::fork() };
    assert!(process >= 0, "a child process");
    if process == 0 {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: it ends this process at once, without anything of the parent's.
        unsafe { libc::_exit(if matches!(done, Ok(true)) { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is there until the call ends.
    assert_eq!(unsafe { libc::waitpid(process, &mut status, 0) }, process);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
}

#[test]
fn a_child_process_begins_without_the_module_and_does_not_disturb_its_parent() {
    let test = "processes::a_child_process_begins_without_the_module_and_does_not_disturb_its_parent";
    apart(test, |place| {
        let (_serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let session = module.open(module.slot(OPEN)).expect("a session");
        let key = session.only(CKO_PRIVATE_KEY, "ed");
        let expected = session.sign(CKM_EDDSA, key, b"message").expect("a signature");
        let child = in_child(|| {
            let is_new = session.sign(CKM_EDDSA, key, b"message") == Err(CKR_CRYPTOKI_NOT_INITIALIZED)
                && session.close() == Err(CKR_CRYPTOKI_NOT_INITIALIZED)
                && module.finalize() == Err(CKR_CRYPTOKI_NOT_INITIALIZED);
            let signs = |module: Module| {
                module.initialize()?;
                let session = module.open(module.slot(OPEN))?;
                let key = session.only(CKO_PRIVATE_KEY, "ed");
                let signature = session.sign(CKM_EDDSA, key, b"message")?;
                module.finalize().map(|()| signature)
            };
            is_new && signs(module).as_ref() == Ok(&expected)
        });
        assert_eq!(child, 0);
        // A child that ends without a word.
        assert_eq!(in_child(|| true), 0);
        let again = session.sign(CKM_EDDSA, key, b"message");
        assert_eq!(again.map_err(name), Ok(expected));
    });
}

/// How much memory this process has, in KiB.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

const SESSIONS: u64 = 10_000;
/// What a session may take.
const MAX_BYTES_PER_SESSION: u64 = 2048;

#[test]
fn ten_thousand_sessions_are_small_and_end() {
    apart("processes::ten_thousand_sessions_are_small_and_end", |place| {
        let (_serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let slot = module.slot(OPEN);
        let first = module.open(slot).expect("a session");
        let key = first.only(CKO_PRIVATE_KEY, "ed");
        first.sign(CKM_EDDSA, key, b"message").expect("a signature");
        let before = memory();
        let sessions: Vec<_> = (0..SESSIONS).map(|_| module.open(slot).expect("a session")).collect();
        // Each has an operation.
        for session in &sessions {
            session.sign_init(CKM_EDDSA, key).expect("an operation");
        }
        let each = memory().saturating_sub(before) * 1024 / SESSIONS;
        println!("a session takes {each} bytes");
        assert!(each <= MAX_BYTES_PER_SESSION, "a session takes {each} bytes");
        let last = sessions.last().expect("a session");
        let mut length = 64;
        let mut signature = [0; 64];
        let code = call!(
            module,
            C_Sign(last.handle, signature.as_mut_ptr(), 1, signature.as_mut_ptr(), &mut length)
        );
        assert_eq!(name(code), "CKR_OK");
        assert_eq!(call!(module, C_CloseAllSessions(slot)), CKR_OK);
        assert_eq!(last.close(), Err(CKR_SESSION_HANDLE_INVALID));
        assert_eq!(call!(module, C_Finalize(null_mut())), CKR_OK);
    });
}
