//! What else a token does for a keystore: it opens it, and notices an older copy. A real SoftHSM,
//! made for each test.
#![cfg(feature = "pkcs11")]

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bulla_kms::encryption::{KeyProvider, WrappingParams};
use bulla_kms::pkcs11::{DeviceGuard, DeviceKeyProvider, Pkcs11};
use bulla_kms::rollback::{RollbackGuard, StoreMark};
use bulla_kms::{
    Algorithm, Code, Keystore, KeystoreOptions, Name, NewKey, SecretString, Timestamp, Unlock, UnlockMethod,
};
use cryptoki::context::Pkcs11 as Library;
use cryptoki::object::{Attribute, AttributeInfo, AttributeType, ObjectClass};

use crate::support::softhsm::{LABEL, MODULE, with_token};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn new_key() -> NewKey {
    NewKey::new(name("local"), name("files"), Algorithm::Ed25519)
}

fn by(provider: DeviceKeyProvider) -> Unlock {
    Unlock::Provider(Arc::new(provider))
}

#[test]
fn a_keystore_opens_with_its_key_on_the_token_and_with_nothing_else() {
    with_token("pkcs11_keystore::a_keystore_opens_with_its_key_on_the_token_and_with_nothing_else", |hsm| {
        let token = Pkcs11::open(&hsm.config()).unwrap();
        let path = hsm.folder().join("keystore");
        let unlock = by(DeviceKeyProvider::create(&token, name("main")).unwrap());
        let key = Keystore::create(&path, &unlock).unwrap().create_key(new_key()).unwrap();
        assert_eq!(
            Keystore::unlock_method(&path).unwrap(),
            UnlockMethod::Provider { method: "pkcs11".to_owned(), key_name: "main".to_owned() }
        );
        let again = by(DeviceKeyProvider::new(&token, name("main")).unwrap());
        assert_eq!(Keystore::open(&path, &again).unwrap().attest(key.key_id()).unwrap().latest_version, 1);
        let other = by(DeviceKeyProvider::create(&token, name("other")).unwrap());
        let error = Keystore::open(&path, &other).unwrap_err();
        assert!(!error.retryable, "{error}");
        assert!(Keystore::open(&path, &Unlock::Passphrase(SecretString::from("main"))).is_err());
        assert_eq!(DeviceKeyProvider::new(&token, name("no")).unwrap_err().code, Code::KeyNotFound);
        assert_eq!(DeviceKeyProvider::create(&token, name("main")).unwrap_err().code, Code::AlreadyExists);
        hsm.remove();
        let error = Keystore::open(&path, &again).unwrap_err();
        assert_eq!((error.code, error.retryable), (Code::DeviceUnavailable, true));
        hsm.put_back();
        let start = Instant::now();
        while let Err(error) = Keystore::open(&path, &again) {
            assert!(error.retryable && start.elapsed() < Duration::from_secs(60), "{error}");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

#[test]
fn the_key_that_opens_a_keystore_cannot_leave_its_token() {
    with_token("pkcs11_keystore::the_key_that_opens_a_keystore_cannot_leave_its_token", |hsm| {
        let token = Pkcs11::open(&hsm.config()).unwrap();
        let provider = DeviceKeyProvider::create(&token, name("main")).unwrap();
        let library = Library::new(MODULE).unwrap();
        let labeled = |slot: &_| library.get_token_info(*slot).is_ok_and(|info| info.label() == LABEL);
        let slot = library.get_slots_with_token().unwrap().into_iter().find(labeled).unwrap();
        let session = library.open_rw_session(slot).unwrap();
        let keys = session.find_objects(&[Attribute::Class(ObjectClass::SECRET_KEY)]).unwrap();
        assert_eq!(keys.len(), 1);
        let value = session.get_attribute_info(keys[0], &[AttributeType::Value]).unwrap();
        assert!(matches!(value[..], [AttributeInfo::Sensitive]), "{value:?}");

        let (key, params) = provider.new_kek().unwrap();
        let (other, _) = provider.new_kek().unwrap();
        assert_ne!(*key, *other, "each params has a key of its own");
        let with =
            |bytes: Vec<u8>| provider.recover_kek(&WrappingParams::new("pkcs11", "main", bytes).unwrap());
        assert_eq!(*with(params.clone()).unwrap(), *key);
        for bit in 0..params.len() * 8 {
            let mut flipped = params.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(*with(flipped).unwrap(), *key);
        }
        for wrong in [vec![], params[1..].to_vec(), [&params[..], &[0]].concat()] {
            assert_eq!(with(wrong).unwrap_err().code, Code::KeystoreCorrupt);
        }
    });
}

#[test]
fn yesterdays_copy_of_the_store_is_refused_by_the_guard_on_the_token() {
    with_token("pkcs11_keystore::yesterdays_copy_of_the_store_is_refused_by_the_guard_on_the_token", |hsm| {
        let token = Pkcs11::open(&hsm.config()).unwrap();
        let guard = DeviceGuard::create(&token, name("main")).unwrap();
        assert_eq!(DeviceGuard::create(&token, name("main")).unwrap_err().code, Code::AlreadyExists);
        let options = |guard: DeviceGuard| KeystoreOptions::default().guard(Arc::new(guard));
        let (path, yesterday) = (hsm.folder().join("keystore"), hsm.folder().join("yesterday"));
        let unlock = by(DeviceKeyProvider::create(&token, name("main")).unwrap());
        let keystore = options(guard.clone()).create(&path, &unlock).unwrap();
        let key = keystore.create_key(new_key()).unwrap();
        drop(keystore);
        fs::copy(&path, &yesterday).unwrap();
        let keystore = options(guard.clone()).open(&path, &unlock).unwrap();
        (0..5).for_each(|_| drop(keystore.rotate(key.key_id()).unwrap()));
        drop(keystore);
        let today = hsm.folder().join("today");
        fs::copy(&path, &today).unwrap();

        fs::copy(&yesterday, &path).unwrap();
        let error = options(guard.clone()).open(&path, &unlock).unwrap_err();
        assert_eq!((error.code, error.retryable), (Code::RolledBack, false), "{error}");
        // Another handle of the same token knows it too.
        let again = DeviceGuard::new(&Pkcs11::open(&hsm.config()).unwrap(), name("main")).unwrap();
        assert_eq!(options(again).open(&path, &unlock).unwrap_err().code, Code::RolledBack);
        fs::copy(&today, &path).unwrap();
        let keystore = options(guard.clone()).open(&path, &unlock).unwrap();
        assert_eq!(keystore.attest(key.key_id()).unwrap().latest_version, 6);
        drop(keystore);

        let missing = DeviceGuard::new(&token, name("missing")).unwrap();
        assert_eq!(options(missing).open(&path, &unlock).unwrap_err().code, Code::GuardMismatch);
        let another = Keystore::create(&hsm.folder().join("another"), &unlock).unwrap();
        drop(another);
        let error = options(guard).open(&hsm.folder().join("another"), &unlock).unwrap_err();
        assert_eq!(error.code, Code::GuardMismatch, "a guard belongs to one store: {error}");
    });
}

#[test]
fn a_guard_on_a_token_counts_up_and_never_down() {
    with_token("pkcs11_keystore::a_guard_on_a_token_counts_up_and_never_down", |hsm| {
        let token = Pkcs11::open(&hsm.config()).unwrap();
        let guard = DeviceGuard::create(&token, name("main")).unwrap();
        let mark = |counter: u64, digest: u8| StoreMark {
            store: [1; 16],
            counter,
            changed: Timestamp::now().unwrap(),
            digest: [digest; 32],
        };
        assert!(guard.check(&mark(0, 0)).is_ok(), "a new guard knows nothing yet");
        // Many at once, in any order, as processes would that share it.
        std::thread::scope(|scope| {
            for start in 1..=4_u64 {
                let guard = &guard;
                scope.spawn(move || {
                    (0..5).for_each(|turn| guard.advance(&mark(start + 4 * turn, 0)).unwrap());
                });
            }
        });
        assert!(guard.check(&mark(20, 0)).is_ok());
        assert!(guard.check(&mark(21, 9)).is_ok(), "a store may be ahead: it was killed before it told");
        assert_eq!(guard.check(&mark(20, 9)).unwrap_err().code, Code::RolledBack, "another copy");
        for older in [0, 1, 19] {
            guard.advance(&mark(older, 0)).unwrap();
            assert_eq!(guard.check(&mark(older, 0)).unwrap_err().code, Code::RolledBack);
        }
        let foreign = StoreMark { store: [2; 16], ..mark(30, 0) };
        assert_eq!(guard.check(&foreign).unwrap_err().code, Code::GuardMismatch);
        assert_eq!(guard.advance(&foreign).unwrap_err().code, Code::GuardMismatch);
        assert!(guard.check(&mark(20, 0)).is_ok());
    });
}
