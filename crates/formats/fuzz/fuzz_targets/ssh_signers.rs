//! Lists of allowed signers, of revoked keys, and lines of public keys: reading them and asking
//! them never panics, and a key that parses is written as the same key.
#![no_main]

use bulla_formats::ssh::{AllowedSigners, RevokedKeys, SshKey, SshSignature};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let revoked = RevokedKeys::parse(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(key) = SshKey::parse(text) {
        assert_eq!(SshKey::parse(&key.to_string()), Ok(key.clone()));
        key.public_key().map(|ours| assert_eq!(SshKey::of(&ours), Ok(key)));
    }
    // A list, and a signature after it.
    let at = text.find("-----BEGIN SSH SIGNATURE-----").unwrap_or(text.len());
    let allowed = AllowedSigners::parse(&bytes[..at]);
    let Ok(signature) = SshSignature::parse(&text[at..]) else { return };
    if let Ok(allowed) = allowed {
        let _ = allowed.find(&signature, None, 0);
        let _ = allowed.find(&signature, Some("a@b"), i64::MAX);
    }
    if let Ok(revoked) = revoked {
        revoked.revokes(signature.signer());
    }
});
