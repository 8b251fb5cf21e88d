//! A signature that parses in a format is written in that format as the same signature, and
//! verifying it never panics.
#![no_main]

use bulla_formats::{ContentHasher, ForeignSignature};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(signature)) = ForeignSignature::parse(bytes) else { return };
    let (text, coverage) = match &signature {
        ForeignSignature::Minisign(file) => (file.to_string().into_bytes(), file.coverage()),
        ForeignSignature::Ssh(file) => (file.to_string().into_bytes(), file.coverage()),
        ForeignSignature::Signify(file) => {
            let message = file.message().unwrap_or_default();
            ([file.to_string().as_bytes(), message].concat(), bulla_formats::Coverage::Whole)
        }
        _ => return,
    };
    // The end of a line may have a carriage return, which belongs to no comment.
    if !bytes.contains(&b'\r') {
        assert_eq!(ForeignSignature::parse(&text), Ok(Some(signature.clone())));
    }
    if let ForeignSignature::Ssh(file) = &signature {
        let mut hasher = ContentHasher::new(coverage);
        hasher.update(b"content");
        file.verifies(&hasher.finish().unwrap());
    }
});
