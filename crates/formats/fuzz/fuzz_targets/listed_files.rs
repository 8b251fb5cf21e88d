//! Statements of in-toto and lists of models: reading them never panics, and a list that parses is
//! written as the same list.
#![no_main]

use base64ct::{Base64, Encoding as _};
use bulla_formats::dsse::Envelope;
use bulla_formats::in_toto::{InTotoStatement, PAYLOAD_TYPE, Predicate, statement};
use bulla_formats::oms::ModelManifest;
use libfuzzer_sys::fuzz_target;

fn envelope(payload: &[u8]) -> Envelope {
    let payload = Base64::encode_string(payload);
    let text = format!(
        r#"{{"payloadType":"{PAYLOAD_TYPE}","payload":"{payload}","signatures":[{{"sig":"AAAA"}}]}}"#
    );
    Envelope::parse(text.as_bytes()).expect("it is an envelope")
}

fuzz_target!(|bytes: &[u8]| {
    let read = envelope(bytes);
    assert_eq!(read.payload(), bytes);
    if let Ok(found) = InTotoStatement::parse(&read) {
        let predicate = Predicate::new("u:x", br#"{"a":1}"#).expect("it is a predicate");
        let text = statement(found.subjects(), &predicate).expect("the subjects were read");
        let again = InTotoStatement::parse(&envelope(text.as_bytes())).expect("it was written");
        assert_eq!(again.algorithms(), found.algorithms());
        assert_eq!(again.subjects().len(), found.subjects().len());
    }
    if let Ok(mut found) = ModelManifest::parse(&read) {
        for part in &found.parts {
            let _ = found.serialization.ignores(&part.path);
        }
        // A list may be empty, and nobody signs one.
        let Ok(text) = found.statement() else { return };
        assert_eq!(ModelManifest::parse(&envelope(text.as_bytes())), Ok(found));
    }
    let _ = Predicate::new("u:x", bytes);
});
