//! Statements of succession that parse have exactly one text, and following them terminates.
#![no_main]

use bulla_kms::succession::{Succession, follow};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(statements) = Succession::parse_all(bytes) {
        let text: String = statements.iter().map(ToString::to_string).collect();
        assert_eq!(text.as_bytes(), bytes);
        for one in &statements {
            let found = follow(&one.public_key, Some(&one.key), &statements);
            assert!(found.len() <= statements.len());
        }
    }
});
