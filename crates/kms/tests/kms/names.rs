//! The text forms of names: one for each value, and no other text is read.

use bulla_kms::{Code, KeyId, KeySelector, KeyVersionId, Name};
use proptest::prelude::*;

const ID: &str = "local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3";

#[test]
fn a_key_id_has_its_parts() {
    let id: KeyVersionId = ID.parse().unwrap();
    assert_eq!(id.key_id().tenant().as_str(), "local");
    assert_eq!(id.key_id().purpose().as_str(), "files");
    assert_eq!(id.key_id().algorithm().as_str(), "ed25519");
    assert_eq!(id.key_id().uuid().get_version_num(), 7);
    assert_eq!(id.version(), 3);
    assert_eq!(id.to_string(), ID);
    assert_eq!(format!("{}/v3", id.key_id()), ID);
}

#[test]
fn the_name_of_a_key_is_one_version_or_all_of_them() {
    let id: KeyVersionId = ID.parse().unwrap();
    for name in [KeySelector::Version(id.clone()), KeySelector::Key(id.key_id().clone())] {
        assert_eq!(name.to_string().parse::<KeySelector>().unwrap(), name);
    }
    assert_eq!(KeySelector::Version(id).to_string(), ID);
}

#[test]
fn serde_is_the_text_form() {
    let id: KeyVersionId = ID.parse().unwrap();
    let json = serde_json::to_string(&id).unwrap();
    assert_eq!(json, format!("\"{ID}\""));
    assert_eq!(serde_json::from_str::<KeyVersionId>(&json).unwrap(), id);
    assert!(serde_json::from_str::<KeyVersionId>("\"local/files\"").is_err());
}

#[test]
fn malformed_key_ids_are_refused() {
    let uuid = "0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11";
    let long = "a".repeat(65);
    for text in [
        String::new(),
        format!("local/files/ed25519/{uuid}"),
        format!("local/files/ed25519/{uuid}/"),
        format!("local/files/ed25519/{uuid}/3"),
        format!("local/files/ed25519/{uuid}/v"),
        format!("local/files/ed25519/{uuid}/v0"),
        format!("local/files/ed25519/{uuid}/v01"),
        format!("local/files/ed25519/{uuid}/v+1"),
        format!("local/files/ed25519/{uuid}/v-1"),
        format!("local/files/ed25519/{uuid}/v4294967296"),
        format!("local/files/ed25519/{uuid}/V3"),
        format!("local/files/ed25519/{uuid}/v3/"),
        format!("local/files/ed25519/{uuid}/v3\n"),
        format!(" local/files/ed25519/{uuid}/v3"),
        format!("/local/files/ed25519/{uuid}/v3"),
        format!("local//ed25519/{uuid}/v3"),
        format!("Local/files/ed25519/{uuid}/v3"),
        format!("-local/files/ed25519/{uuid}/v3"),
        format!("local/.files/ed25519/{uuid}/v3"),
        format!("{long}/files/ed25519/{uuid}/v3"),
        format!("lo cal/files/ed25519/{uuid}/v3"),
        format!("löcal/files/ed25519/{uuid}/v3"),
        format!("local/files/Ed25519/{uuid}/v3"),
        format!("local/files/rsa/{uuid}/v3"),
        format!("local/files/ed25519/{}/v3", uuid.to_uppercase()),
        format!("local/files/ed25519/{}/v3", uuid.replace('-', "")),
        format!("local/files/ed25519/{{{uuid}}}/v3"),
        format!("local/files/ed25519/urn:uuid:{uuid}/v3"),
    ] {
        let error = text.parse::<KeyVersionId>().expect_err(&text);
        assert_eq!(error.code, Code::InvalidId, "{text}");
        assert!(!error.message.is_empty());
    }
}

#[test]
fn the_longest_names_and_the_last_version_are_read() {
    let name = "a".repeat(64);
    let text = format!("{name}/{name}/ed25519/00000000-0000-0000-0000-000000000000/v4294967295");
    assert_eq!(text.parse::<KeyVersionId>().unwrap().to_string(), text);
}

#[test]
fn an_error_names_the_part_that_is_wrong() {
    let uuid = "0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11";
    let message = |text: String| text.parse::<KeyVersionId>().unwrap_err().message;
    assert!(message(format!("Local/files/ed25519/{uuid}/v3")).contains("tenant \"Local\""));
    assert!(message(format!("local/f_/rsa/{uuid}/v3")).contains("algorithm \"rsa\""));
    assert!(message("local/files/ed25519/1/v3".to_owned()).contains("UUID"));
    assert!(message(format!("local/files/ed25519/{uuid}/v01")).contains("leading zero"));
}

proptest! {
    #[test]
    fn what_is_formatted_parses_to_the_same(
        tenant in "[a-z0-9][a-z0-9._-]{0,63}",
        purpose in "[a-z0-9][a-z0-9._-]{0,63}",
        uuid: u128,
        version in 1_u32..,
    ) {
        let uuid = uuid::Uuid::from_u128(uuid);
        let key_id = KeyId::new(
            tenant.parse().unwrap(),
            purpose.parse().unwrap(),
            bulla_kms::Algorithm::Ed25519,
            uuid,
        );
        prop_assert_eq!(&key_id.to_string().parse::<KeyId>().unwrap(), &key_id);
        let id = key_id.version(version.try_into().unwrap());
        prop_assert_eq!(id.to_string().parse::<KeyVersionId>().unwrap(), id);
    }

    /// Texts that are nearly right, so that many of them parse.
    #[test]
    fn what_parses_formats_to_the_same(
        text in "[a-zA-Z0-9.-]{1,3}/[a-z._]{1,3}/(ed25519|Ed25519)/[0-9a-fA]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/v[0-9]{1,11}",
    ) {
        if let Ok(id) = text.parse::<KeyVersionId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn any_text_is_parsed_without_a_panic(text: String) {
        if let Ok(id) = text.parse::<KeyVersionId>() {
            prop_assert_eq!(id.to_string(), text.clone());
        }
        if let Ok(name) = text.parse::<Name>() {
            prop_assert_eq!(name.to_string(), text);
        }
    }
}
