//! The input of verification.

/// One signature to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyItem<'a> {
    /// The public key, as RFC 8032 encodes it: 32 bytes.
    pub public_key: &'a [u8; 32],
    /// The message that was signed.
    pub message: &'a [u8],
    /// R and S: 64 bytes.
    pub signature: &'a [u8; 64],
}

impl<'a> VerifyItem<'a> {
    /// R, the first half of the signature.
    pub(crate) fn r(&self) -> &'a [u8; 32] {
        self.signature.first_chunk().expect("64 bytes have a half")
    }

    /// S, the second half.
    pub(crate) fn s(&self) -> &'a [u8; 32] {
        self.signature.last_chunk().expect("64 bytes have a half")
    }
}
