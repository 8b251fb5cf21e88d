//! The body of a manifest that parses is exactly the text that is written for its entries.
#![no_main]

use bulla_kms::signature::manifest::{ManifestReader, ManifestWriter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = ManifestReader::new(bytes);
    if let Ok(entries) = reader.by_ref().collect::<Result<Vec<_>, _>>() {
        let mut writer = ManifestWriter::new(Vec::new());
        reader.exclusions().iter().for_each(|one| writer.exclude(one).expect("what was read can be written"));
        entries.iter().for_each(|entry| writer.push(entry).expect("what was read can be written"));
        assert_eq!(writer.finish().0, bytes);
    }
});
