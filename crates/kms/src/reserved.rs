//! The prefixes of the messages that a keystore itself composes. It refuses to sign a caller's
//! message that begins with one of them, so that no caller's message passes for one of its own.

/// The prefix of signature files.
pub const RESERVED_PREFIX: &[u8] = b"bulla signature\0";
/// The prefix of attestations.
pub(crate) const ATTESTATION: &[u8] = b"bulla attestation\0";
/// The prefix of signed times.
pub(crate) const TIME: &[u8] = b"bulla time\0";
/// The prefix of BLAKE3 digests that Ed25519 signs: [`crate::prehash`].
pub(crate) const BLAKE3_DIGEST: &[u8] = b"bulla ed25519 blake3\0";
/// The prefix of an audit log's checkpoints.
pub(crate) const CHECKPOINT: &[u8] = b"bulla audit log v1/";
/// The prefix of an audit log's checkpoints for witnesses.
pub(crate) const WITNESSED: &[u8] = b"bulla-audit-log-v1/";
/// The prefix of statements of succession: [`crate::succession`].
pub(crate) const SUCCESSION: &[u8] = b"bulla succession\0";

/// The prefix of statements about requests for approval: [`crate::approval`].
pub(crate) const APPROVAL: &[u8] = b"bulla approval\0";

/// All reserved prefixes. [`Keystore::sign`](crate::Keystore::sign) refuses messages that begin
/// with one of them.
pub const RESERVED_PREFIXES: [&[u8]; 8] =
    [RESERVED_PREFIX, ATTESTATION, TIME, BLAKE3_DIGEST, CHECKPOINT, WITNESSED, SUCCESSION, APPROVAL];
