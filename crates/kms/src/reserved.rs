//! What the messages begin with that a keystore makes up itself. It signs no message of its callers that does, so that no caller's
//! message passes for one of these.

/// Of signature files.
pub const RESERVED_PREFIX: &[u8] = b"bulla signature\0";
/// Of attestations.
pub(crate) const ATTESTATION: &[u8] = b"bulla attestation\0";
/// Of signed times.
pub(crate) const TIME: &[u8] = b"bulla time\0";
/// Of BLAKE3 digests that Ed25519 signs: [`crate::prehash`].
pub(crate) const BLAKE3_DIGEST: &[u8] = b"bulla ed25519 blake3\0";
/// Of checkpoints of an audit log.
pub(crate) const CHECKPOINT: &[u8] = b"bulla audit log v1/";
/// Of statements of succession: [`crate::succession`].
pub(crate) const SUCCESSION: &[u8] = b"bulla succession\0";

/// All of them: what the messages begin with that [`Keystore::sign`](crate::Keystore::sign) refuses.
pub const RESERVED_PREFIXES: [&[u8]; 6] =
    [RESERVED_PREFIX, ATTESTATION, TIME, BLAKE3_DIGEST, CHECKPOINT, SUCCESSION];
