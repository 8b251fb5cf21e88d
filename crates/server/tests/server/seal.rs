//! Sealed data: what is sealed opens, for whom it was sealed.

use bulla_kms::seal::{Identity, IdentityKind, data};
use bulla_kms::token::{Keys, TokenOperation};
use bulla_kms::{Algorithm, Keystore, NamedPublicKey, NewKey};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::{Service, base64, config, from_base64, keystore, name, token};

fn seal(service: &Service, body: &Value) -> Value {
    service.post(None, "/api/v1/seal", body).ok()["sealed"].clone()
}

fn service_with(keys: &[&str]) -> Service {
    let service = Service::open();
    for key in keys {
        service.post(None, "/api/v1/keys", &json!({ "label": key, "algorithm": key })).ok();
    }
    service
}

#[test]
fn what_is_sealed_opens() {
    let service = service_with(&["x-wing", "ml-kem-768"]);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(40));
    let long = prop::collection::vec(any::<u8>(), 65_530..65_545);
    let bytes = prop_oneof![any::<Vec<u8>>(), long];
    let associated = prop::option::of(any::<Vec<u8>>());
    let run = runner.run(&(bytes, associated, 0..3_usize), |(bytes, associated, to)| {
        let keys = [&["x-wing"][..], &["ml-kem-768"], &["ml-kem-768", "x-wing"]][to];
        let associated = associated.map(|bytes| base64(&bytes));
        let mut body = json!({ "data": base64(&bytes), "keys": keys });
        if let Some(associated) = &associated {
            body["associated_data"] = json!(associated);
        }
        let sealed = seal(&service, &body);
        let mut body = json!({ "sealed": sealed });
        if let Some(associated) = &associated {
            body["associated_data"] = json!(associated);
        }
        let opened = service.post(None, "/api/v1/open", &body);
        prop_assert_eq!(&opened.headers["cache-control"], "no-store");
        prop_assert_eq!(from_base64(&opened.ok()["data"]), bytes);
        body["associated_data"] = json!(base64(b"something else"));
        prop_assert_eq!(
            service.post(None, "/api/v1/open", &body).error(),
            (400, "sealed_damaged".to_owned())
        );
        Ok(())
    });
    run.unwrap();
}

#[test]
fn recipients_elsewhere_open_it_too() {
    let service = service_with(&["x-wing"]);
    let elsewhere = Keystore::in_memory();
    let theirs =
        elsewhere.create_key(NewKey::new(name("them"), name("files"), Algorithm::MlKem1024)).unwrap();
    let named = NamedPublicKey { public_key: elsewhere.public_key(&theirs).unwrap(), key: theirs };
    let (age, x_wing) =
        (Identity::generate(IdentityKind::Age).unwrap(), Identity::generate(IdentityKind::XWing).unwrap());
    let recipients = [age.recipient().to_string(), x_wing.recipient().to_string(), named.to_string()];
    let body = json!({ "data": base64(b"for all"), "keys": ["x-wing"], "recipients": recipients });
    let sealed = from_base64(&seal(&service, &body));
    for identity in [&age, &x_wing] {
        // As a file that the command opens.
        assert_eq!(**data::open(&sealed, &[identity], b"bulla file v1").unwrap(), *b"for all");
    }
    let keystore = bulla_kms::KeystoreIdentity(&elsewhere);
    assert_eq!(**data::open(&sealed, &[&keystore], b"bulla file v1").unwrap(), *b"for all");
    let opened = service.post(None, "/api/v1/open", &json!({ "sealed": base64(&sealed) })).ok();
    assert_eq!(from_base64(&opened["data"]), b"for all");
}

#[test]
fn bad_recipients_and_damaged_data_are_refused() {
    let service = service_with(&["x-wing", "ed25519"]);
    let refused = |body: &Value| service.post(None, "/api/v1/seal", body).error();
    let of =
        |keys: &[&str], recipients: &[&str]| json!({ "data": "", "keys": keys, "recipients": recipients });
    assert_eq!(refused(&of(&[], &[])), (400, "invalid_argument".to_owned()));
    assert_eq!(refused(&of(&["x-wing"; 9], &[])), (400, "too_many_items".to_owned()));
    assert_eq!(refused(&of(&["ed25519"], &[])), (400, "wrong_use".to_owned()));
    assert_eq!(refused(&of(&["nobody"], &[])), (404, "key_not_found".to_owned()));
    for recipient in ["age1nobody", "x-wing:", "someone"] {
        assert_eq!(refused(&of(&[], &[recipient])), (400, "invalid_public_key".to_owned()), "{recipient}");
    }
    let mut reserved = of(&["x-wing"], &[]);
    reserved["associated_data"] = json!(base64(b"bulla keystore backup v1"));
    assert_eq!(refused(&reserved), (400, "invalid_argument".to_owned()));
    let open = |sealed: &[u8]| service.post(None, "/api/v1/open", &json!({ "sealed": base64(sealed) }));
    assert_eq!(open(b"no sealed data").error(), (400, "malformed_sealed".to_owned()));
    let mut sealed = from_base64(&seal(&service, &of(&["x-wing"], &[])));
    open(&sealed).ok();
    *sealed.last_mut().unwrap() ^= 1;
    assert_eq!(open(&sealed).error(), (400, "sealed_damaged".to_owned()));
}

#[test]
fn only_keys_with_which_the_caller_may_decapsulate_open() {
    let keystore = keystore(&["local", "other"]);
    let new = |tenant: &str, label: &str| {
        let new = NewKey::new(name(tenant), name("transport"), Algorithm::XWing).label(name(label));
        keystore.create_key(new).unwrap().key_id().clone()
    };
    let (mine, theirs, _) = (new("local", "mine"), new("local", "theirs"), new("other", "foreign"));
    let narrow = Keys::These(vec![mine]);
    let narrow = token(&keystore, "local", narrow, &[TokenOperation::Read, TokenOperation::Decapsulate]);
    let all = token(&keystore, "local", Keys::All, &[TokenOperation::Read, TokenOperation::Decapsulate]);
    let other = token(&keystore, "other", Keys::All, &[TokenOperation::Read, TokenOperation::Decapsulate]);
    let reads = token(&keystore, "local", Keys::All, &[TokenOperation::Read]);
    let service = Service::start(keystore, config());
    let seal = |token, keys: &[&str]| {
        service.post(Some(token), "/api/v1/seal", &json!({ "data": base64(b"secret"), "keys": keys }))
    };
    let open =
        |token, sealed: &Value| service.post(Some(token), "/api/v1/open", &json!({ "sealed": sealed }));
    let refused = (403, "token_refused".to_owned());
    assert_eq!(seal(&narrow, &["theirs"]).error(), refused);
    assert_eq!(seal(&other, &[&theirs.to_string()]).error(), refused);
    let both = seal(&reads, &["theirs", "mine"]).ok()["sealed"].clone();
    let one = seal(&reads, &["theirs"]).ok()["sealed"].clone();
    assert_eq!(open(&reads, &both).error(), refused);
    assert_eq!(from_base64(&open(&narrow, &both).ok()["data"]), b"secret");
    assert_eq!(from_base64(&open(&all, &one).ok()["data"]), b"secret");
    for token in [&narrow, &other] {
        assert_eq!(open(token, &one).error(), (400, "wrong_identity".to_owned()));
    }
}
