//! Keys on a token: a real SoftHSM, made for each test.
#![cfg(feature = "pkcs11")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bulla_kms::backend::{Backend as _, Backends};
use bulla_kms::pkcs11::{DeviceConfig, NAME, PinSource, Pkcs11};
use bulla_kms::{
    Algorithm, Code, KeyChange, KeyFile, KeyVersionId, Keystore, KeystoreOptions, NewKey, Timestamp, Unlock,
    Verdict, VersionState,
};
use cryptoki::context::Pkcs11 as Library;
use cryptoki::mechanism::Mechanism;
use cryptoki::object::{Attribute, AttributeInfo, AttributeType, ObjectClass, ObjectHandle};
use cryptoki::session::Session;

use crate::support::softhsm::{Hsm, LABEL, MODULE, PIN, with_token};

const ALGORITHMS: [Algorithm; 2] = [Algorithm::Ed25519, Algorithm::EcdsaP256];
/// Until when a token that is back has to be found.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

fn options(config: &DeviceConfig) -> KeystoreOptions {
    let token = Pkcs11::open(config).unwrap();
    KeystoreOptions::default().backends(Backends::software().clone().with(Arc::new(token)))
}

fn on_token(algorithm: Algorithm) -> NewKey {
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), algorithm);
    new.backend(NAME.to_owned())
}

/// A session of this process beside those of the keystore; logged in as they are.
fn session() -> Session {
    let library = Library::new(MODULE).unwrap();
    let labeled = |slot: &_| library.get_token_info(*slot).is_ok_and(|info| info.label() == LABEL);
    let slot = library.get_slots_with_token().unwrap().into_iter().find(labeled).unwrap();
    library.open_rw_session(slot).unwrap()
}

fn objects(session: &Session, class: ObjectClass) -> Vec<ObjectHandle> {
    session.find_objects(&[Attribute::Class(class)]).unwrap()
}

/// How many private and public keys are on the device.
fn count() -> [usize; 2] {
    let session = session();
    [ObjectClass::PRIVATE_KEY, ObjectClass::PUBLIC_KEY].map(|class| objects(&session, class).len())
}

/// Signs as one does who was told that trying again may help.
fn sign_patiently(keystore: &Keystore, key: &KeyVersionId) {
    let start = Instant::now();
    loop {
        match keystore.sign(key.key_id(), b"a message") {
            Ok(signature) => {
                let verdict = keystore.verify(&signature.key, b"a message", &signature.bytes).unwrap();
                return assert_eq!(verdict, Verdict::Valid);
            }
            Err(error) => assert!(error.retryable && start.elapsed() < WAIT_TIMEOUT, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_key_on_a_token_signs_verifies_rotates_and_attests() {
    with_token("pkcs11::a_key_on_a_token_signs_verifies_rotates_and_attests", |hsm| {
        let options = options(&hsm.config());
        let (path, secret) = (hsm.folder().join("keystore"), hsm.folder().join("secret"));
        KeyFile::create(&secret).unwrap();
        let unlock = Unlock::KeyFile(secret);
        let mut keystore = options.create(&path, &unlock).unwrap();
        let mut made = Vec::new();
        for algorithm in ALGORITHMS {
            let key = keystore.create_key(on_token(algorithm)).unwrap();
            assert_eq!(keystore.attest(key.key_id()).unwrap().backend, NAME);
            for message in [&b""[..], b"a message", &[7; 100_000]] {
                let signature = keystore.sign(key.key_id(), message).unwrap();
                made.push((signature, message.to_vec()));
            }
            assert_eq!(keystore.rotate(key.key_id()).unwrap().version(), 2);
            let signature = keystore.sign(key.key_id(), b"a message").unwrap();
            assert_eq!(signature.key.version(), 2);
            made.push((signature, b"a message".to_vec()));
            assert_eq!(keystore.attest_signed(key.key_id()).unwrap().verify(), Verdict::Valid);
        }
        drop(keystore);
        keystore = options.open(&path, &unlock).unwrap();
        for (signature, message) in &made {
            let verdict = keystore.verify(&signature.key, message, &signature.bytes).unwrap();
            assert_eq!(verdict, Verdict::Valid, "{}", signature.key);
            let again = keystore.sign(signature.key.key_id(), message).unwrap();
            assert_eq!(again.key.version(), 2, "the head signs after the keystore was opened again");
        }
        drop(keystore);
        // Who has no token verifies, and is told what is missing for more.
        let keystore = Keystore::open(&path, &unlock).unwrap();
        for (signature, message) in &made {
            let verdict = keystore.verify(&signature.key, message, &signature.bytes).unwrap();
            assert_eq!(verdict, Verdict::Valid);
            let error = keystore.sign(signature.key.key_id(), message).unwrap_err();
            assert_eq!(error.code, Code::UnsupportedAlgorithm, "{error}");
        }
    });
}

#[test]
fn a_private_key_cannot_leave_its_token() {
    with_token("pkcs11::a_private_key_cannot_leave_its_token", |hsm| {
        let options = options(&hsm.config());
        let keystore = options.in_memory().unwrap();
        for algorithm in ALGORITHMS {
            keystore.create_key(on_token(algorithm)).unwrap();
        }
        let session = session();
        let keys = objects(&session, ObjectClass::PRIVATE_KEY);
        assert_eq!(keys.len(), 2);
        let wrapping = session
            .generate_key(&Mechanism::AesKeyGen, &[Attribute::ValueLen(32.into()), Attribute::Wrap(true)])
            .unwrap();
        for key in keys {
            let types = [AttributeType::Sensitive, AttributeType::Extractable];
            let is = session.get_attributes(key, &types).unwrap();
            assert_eq!(is, [Attribute::Sensitive(true), Attribute::Extractable(false)]);
            let value = session.get_attribute_info(key, &[AttributeType::Value]).unwrap();
            assert!(matches!(value[..], [AttributeInfo::Sensitive]), "{value:?}");
            assert!(session.wrap_key(&Mechanism::AesKeyWrapPad, wrapping, key).is_err());
            for weaker in [Attribute::Sensitive(false), Attribute::Extractable(true)] {
                assert!(session.update_attributes(key, &[weaker]).is_err(), "it cannot be made weaker");
            }
        }
    });
}

#[test]
fn a_wrong_pin_is_an_error_that_does_not_tell_it() {
    with_token("pkcs11::a_wrong_pin_is_an_error_that_does_not_tell_it", |hsm| {
        let wrong = hsm.config().pin(PinSource::Given("not the pin".into()));
        let error = Pkcs11::open(&wrong).unwrap_err();
        assert_eq!((error.code, error.retryable), (Code::WrongPin, false), "{error}");
        assert!(!format!("{error:?} {wrong:?}").contains("not the pin"));
        let file = hsm.folder().join("pin");
        std::fs::write(&file, format!("{PIN}\n")).unwrap();
        let token = Pkcs11::open(&hsm.config().pin(PinSource::File(file))).unwrap();
        assert!(!format!("{token:?}").contains(PIN));
        for algorithm in ALGORITHMS {
            assert!(token.capabilities(algorithm).is_some());
        }
        assert!(token.capabilities(Algorithm::MlDsa65).is_none());
    });
}

#[test]
fn a_token_is_found_by_its_name_and_by_nothing_else() {
    with_token("pkcs11::a_token_is_found_by_its_name_and_by_nothing_else", |hsm| {
        hsm.make_token("another");
        hsm.make_token("another");
        assert!(Pkcs11::open(&hsm.config()).is_ok());
        let named = |label: &str| DeviceConfig::new(MODULE, label, PinSource::Given(PIN.into()));
        let error = Pkcs11::open(&named("missing")).unwrap_err();
        assert_eq!((error.code, error.retryable), (Code::DeviceUnavailable, true));
        assert!(error.message.contains(LABEL), "the tokens that are there are told: {error}");
        let error = Pkcs11::open(&named("another")).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{error}");
        let other = hsm.config().device.model("no such model");
        let error = Pkcs11::open(&hsm.config().device(other)).unwrap_err();
        assert_eq!(error.code, Code::DeviceUnavailable);
        for (module, code) in [("/no/such/library.so", Code::NotFound), ("/etc/passwd", Code::DeviceFailed)] {
            let error = Pkcs11::open(&hsm.config().module(module.into())).unwrap_err();
            assert_eq!(error.code, code, "{error}");
        }
    });
}

#[test]
fn a_removed_token_is_a_retryable_error_and_works_again_when_it_is_back() {
    with_token("pkcs11::a_removed_token_is_a_retryable_error_and_works_again_when_it_is_back", |hsm| {
        let keystore = options(&hsm.config()).in_memory().unwrap();
        let keys = ALGORITHMS.map(|algorithm| keystore.create_key(on_token(algorithm)).unwrap());
        let signature = keystore.sign(keys[0].key_id(), b"a message").unwrap();
        for round in 0..3 {
            hsm.remove();
            for key in &keys {
                let error = keystore.sign(key.key_id(), b"a message").unwrap_err();
                assert_eq!((error.code, error.retryable), (Code::DeviceUnavailable, true), "{error}");
                let error = keystore.rotate(key.key_id()).unwrap_err();
                assert_eq!((error.code, error.retryable), (Code::DeviceUnavailable, true), "{error}");
            }
            let verdict = keystore.verify(&keys[0], b"a message", &signature.bytes).unwrap();
            assert_eq!(verdict, Verdict::Valid, "verification needs no token");
            hsm.put_back();
            keys.iter().for_each(|key| sign_patiently(&keystore, key));
            assert_eq!(keystore.rotate(keys[1].key_id()).unwrap().version(), round + 2);
        }
    });
}

#[test]
fn a_key_that_was_deleted_on_the_token_is_not_found() {
    with_token("pkcs11::a_key_that_was_deleted_on_the_token_is_not_found", |hsm| {
        let keystore = options(&hsm.config()).in_memory().unwrap();
        let key = keystore.create_key(on_token(Algorithm::Ed25519)).unwrap();
        let session = session();
        for object in objects(&session, ObjectClass::PRIVATE_KEY) {
            session.destroy_object(object).unwrap();
        }
        let error = keystore.sign(key.key_id(), b"a message").unwrap_err();
        assert_eq!((error.code, error.retryable), (Code::KeyNotFound, false), "{error}");
    });
}

#[test]
fn many_threads_sign_at_once() {
    with_token("pkcs11::many_threads_sign_at_once", |hsm| {
        let config = hsm.config().sessions(4.try_into().unwrap());
        let keystore = options(&config).in_memory().unwrap();
        let keys = ALGORITHMS.map(|algorithm| keystore.create_key(on_token(algorithm)).unwrap());
        let made = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for thread in 0..16_u32 {
                let (keystore, keys, made) = (&keystore, &keys, &made);
                scope.spawn(move || {
                    for turn in 0..20_u32 {
                        let message = [thread, turn].map(u32::to_be_bytes).concat();
                        let key = &keys[turn as usize % keys.len()];
                        let signature = keystore.sign(key.key_id(), &message).unwrap();
                        let verdict = keystore.verify(&signature.key, &message, &signature.bytes).unwrap();
                        assert_eq!(verdict, Verdict::Valid);
                        made.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(made.into_inner(), 320);
    });
}

#[test]
fn threads_that_sign_while_the_token_comes_and_goes_lose_nothing() {
    with_token("pkcs11::threads_that_sign_while_the_token_comes_and_goes_lose_nothing", |hsm| {
        let keystore = options(&hsm.config()).in_memory().unwrap();
        let key = keystore.create_key(on_token(Algorithm::Ed25519)).unwrap();
        let (done, signed, failed) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
        let sign = || {
            while !done.load(Ordering::SeqCst) {
                match keystore.sign(key.key_id(), b"a message") {
                    Ok(signature) => {
                        let verdict = keystore.verify(&key, b"a message", &signature.bytes).unwrap();
                        assert_eq!(verdict, Verdict::Valid);
                        signed.fetch_add(1, Ordering::SeqCst);
                    }
                    Err(error) => {
                        assert_eq!(error.code, Code::DeviceUnavailable, "{error}");
                        failed.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
            }
        };
        // Something happens after this many tries more, however slow the machine is.
        let wait_for = |counter: &AtomicU32, more: u32| {
            let (from, start) = (counter.load(Ordering::SeqCst), Instant::now());
            while counter.load(Ordering::SeqCst) < from + more {
                assert!(start.elapsed() < WAIT_TIMEOUT, "nothing happens any more");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(sign)));
            for _ in 0..2 {
                wait_for(&signed, 20);
                hsm.remove();
                wait_for(&failed, 10);
                hsm.put_back();
            }
            wait_for(&signed, 20);
            done.store(true, Ordering::SeqCst);
        });
    });
}

#[test]
fn a_private_key_that_is_destroyed_is_deleted_from_its_token() {
    with_token("pkcs11::a_private_key_that_is_destroyed_is_deleted_from_its_token", |hsm| {
        let options = options(&hsm.config());
        let (path, secret) = (hsm.folder().join("keystore"), hsm.folder().join("secret"));
        KeyFile::create(&secret).unwrap();
        let unlock = Unlock::KeyFile(secret);
        let mut keystore = options.create(&path, &unlock).unwrap();
        let key_id = keystore.create_key(on_token(Algorithm::EcdsaP256)).unwrap().key_id().clone();
        (0..3).for_each(|_| drop(keystore.rotate(&key_id).unwrap()));
        assert_eq!(count(), [4, 4]);
        let version = |number: u32| number.try_into().unwrap();
        keystore.update(&key_id, None, &KeyChange::DestroyVersion(version(1))).unwrap();
        assert_eq!(count(), [3, 3]);
        keystore.update(&key_id, None, &KeyChange::Revoke(version(2))).unwrap();
        assert_eq!(count(), [2, 2]);
        // What cannot be deleted now is deleted by the same call later, even by another process.
        hsm.remove();
        let error = keystore.update(&key_id, None, &KeyChange::DestroyVersion(version(3))).unwrap_err();
        assert_eq!((error.code, error.retryable), (Code::DeviceUnavailable, true));
        assert_eq!(keystore.attest(&key_id).unwrap().versions[2].state, VersionState::Destroyed);
        drop(keystore);
        hsm.put_back();
        keystore = options.open(&path, &unlock).unwrap();
        sign_patiently(&keystore, &keystore.attest(&key_id).unwrap().versions[3].id);
        assert_eq!(count(), [2, 2]);
        keystore.update(&key_id, None, &KeyChange::DestroyVersion(version(3))).unwrap();
        assert_eq!(count(), [1, 1]);
        keystore.rotate(&key_id).unwrap();
        keystore.update(&key_id, None, &KeyChange::ScheduleDestruction(Timestamp::now().unwrap())).unwrap();
        hsm.remove();
        assert!(keystore.update(&key_id, None, &KeyChange::Revoke(version(4))).unwrap_err().retryable);
        assert!(keystore.update(&key_id, None, &KeyChange::Destroy).unwrap_err().retryable);
        hsm.put_back();
        let start = Instant::now();
        while let Err(error) = keystore.update(&key_id, None, &KeyChange::Destroy) {
            assert!(error.retryable && start.elapsed() < WAIT_TIMEOUT, "{error}");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(count(), [0, 0]);
        let error = keystore.update(&key_id, None, &KeyChange::Destroy).unwrap_err();
        assert_eq!(error.code, Code::KeyDestroyed, "there is nothing left to do");
    });
}

#[test]
fn who_uses_the_same_library_keeps_his_session() {
    with_token("pkcs11::who_uses_the_same_library_keeps_his_session", |hsm: &Hsm| {
        use cryptoki::context::{CInitializeArgs, CInitializeFlags};
        let library = Library::new(MODULE).unwrap();
        library.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)).unwrap();
        let other = session();
        let keystore = options(&hsm.config()).in_memory().unwrap();
        let key = keystore.create_key(on_token(Algorithm::Ed25519)).unwrap();
        hsm.remove();
        // Long enough that the library would be initialized again if it were ours.
        std::thread::sleep(Duration::from_millis(1100));
        assert_eq!(keystore.sign(key.key_id(), b"a").unwrap_err().code, Code::DeviceUnavailable);
        assert!(
            other.get_session_info().is_ok(),
            "the library was not initialized by us and is not ended by us"
        );
    });
}
