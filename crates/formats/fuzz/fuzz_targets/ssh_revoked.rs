//! Lists of revoked keys, as texts and in OpenSSH's binary form: reading them and asking them never
//! panics.
#![no_main]

use bulla_formats::ssh::{RevokedKeys, SshSigner};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// A key, and a certificate with the number 1000.
static SIGNERS: LazyLock<[SshSigner; 2]> = LazyLock::new(|| {
    [include_str!("../revoked/key.pub"), include_str!("../revoked/key-cert.pub")]
        .map(|line| SshSigner::parse_line(line).expect("it is a line of OpenSSH"))
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(revoked) = RevokedKeys::parse(bytes) else { return };
    for signer in &*SIGNERS {
        revoked.revokes(signer);
    }
});
