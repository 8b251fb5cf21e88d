//! A service that ends, and comes back.

use crate::support::codes::name;
use crate::support::{OPEN, TOKEN, apart};
use bulla_testing::serving::Serving;
use cryptoki_sys::*;
use rustix::process::Signal;

/// What a program may be told while the service is away.
const AWAY: [CK_RV; 3] = [CKR_DEVICE_ERROR, CKR_DEVICE_REMOVED, CKR_TOKEN_NOT_PRESENT];

#[test]
fn a_service_that_was_killed_gives_an_error_and_works_when_it_is_back() {
    apart("outage::a_service_that_was_killed_gives_an_error_and_works_when_it_is_back", |place| {
        let (mut serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let slots = [module.slot(TOKEN), module.slot(OPEN)];
        let [session, open] = slots.map(|slot| module.open(slot).expect("a session"));
        session.login(&token.pin).expect("the token is the PIN");
        let key = session.only(CKO_PRIVATE_KEY, "ed");
        let expected = session.sign(CKM_EDDSA, key, b"message").expect("a signature");
        session.sign_init(CKM_EDDSA, key).expect("an operation");
        serving.signal(Signal::KILL);
        serving.ends();
        let mut message = *b"message";
        let (mut to, mut length) = ([0; 64], 64);
        let code = call_sign(&session, &mut message, &mut to, &mut length);
        assert!(AWAY.contains(&code), "{}", name(code));
        let code = session.sign(CKM_EDDSA, key, b"message").expect_err("nobody signs");
        assert!(AWAY.contains(&code), "{}", name(code));
        // A search reads the keys again.
        let code = open.named(CKO_PRIVATE_KEY, "ed");
        assert!(code.is_ok() || code.as_ref().is_err_and(|code| AWAY.contains(code)), "{code:?}");
        let _serving = Serving::start(&place.home);
        assert_eq!(session.sign(CKM_EDDSA, key, b"message").map_err(name), Ok(expected));
        assert_eq!(open.named(CKO_PRIVATE_KEY, "ed").map(|found| found.len()), Ok(1));
    });
}

fn call_sign(
    session: &crate::support::raw::Session,
    message: &mut [u8; 7],
    to: &mut [u8; 64],
    length: &mut CK_ULONG,
) -> CK_RV {
    use crate::support::raw::call;
    call!(session.module, C_Sign(session.handle, message.as_mut_ptr(), 7, to.as_mut_ptr(), length))
}

#[test]
fn threads_that_sign_while_the_service_is_killed_end() {
    apart("outage::threads_that_sign_while_the_service_is_killed_end", |place| {
        let (mut serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let slot = module.slot(OPEN);
        let key = module.open(slot).expect("a session").only(CKO_PRIVATE_KEY, "ed");
        let (begun, wait) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    let begun = begun.clone();
                    scope.spawn(move || {
                        let session = module.open(slot).expect("a session");
                        // This goes on until the service is gone.
                        loop {
                            match session.sign(CKM_EDDSA, key, b"message") {
                                Ok(signature) => assert_eq!(signature.len(), 64),
                                Err(code) => return code,
                            }
                            let _ = begun.send(());
                        }
                    })
                })
                .collect();
            for _ in 0..16 {
                wait.recv().expect("the threads sign");
            }
            serving.signal(Signal::KILL);
            serving.ends();
            for thread in threads {
                let code = thread.join().expect("no panic");
                assert!(AWAY.contains(&code), "{}", name(code));
            }
        });
        let _serving = Serving::start(&place.home);
        let session = module.open(slot).expect("a session");
        assert_eq!(session.sign(CKM_EDDSA, key, b"message").map(|bytes| bytes.len()), Ok(64));
    });
}
