//! New certificates of OpenSSH (`PROTOCOL.certkeys`).

use base64ct::{Base64, Encoding as _};
use bulla_kms::{PublicKey, SshCertificateKind};
use ssh_encoding::Encode as _;

use super::key::{CERTIFICATE, SshKey, SshSigner, signature_blob};
use crate::error::FormatError;

/// How the names of the algorithms of hardware tokens end.
const TOKEN: &str = "@openssh.com";

/// A certificate to sign.
#[derive(Clone, Debug)]
pub struct NewSshCertificate {
    /// The key that it is for.
    pub key: SshKey,
    /// For whom it is.
    pub kind: SshCertificateKind,
    /// Its number, by which it can be revoked.
    pub serial: u64,
    /// Its name, which servers write into their logs.
    pub key_id: String,
    /// The users or the servers that it is for.
    pub principals: Vec<String>,
    /// From when on it is valid, in seconds since 1970.
    pub valid_after: u64,
    /// When it ends, in seconds since 1970.
    pub valid_before: u64,
    /// Names and values that a server must know, or refuse the certificate.
    pub critical_options: Vec<(String, String)>,
    /// What it permits.
    pub extensions: Vec<String>,
}

impl NewSshCertificate {
    /// Signs it, and returns the line for its file. `sign` gets the bytes to sign, and returns the
    /// authority's signature. `nonce` has 16 bytes or more that nobody can foresee.
    ///
    /// # Errors
    /// The authority's key is neither one of Ed25519 nor of P-256; the key is one of a hardware
    /// token; no principal is named; the errors of `sign`; the signature does not verify.
    ///
    /// ```
    /// use bulla_formats::ssh::{NewSshCertificate, SshKey, SshSigner};
    /// # use bulla_formats::FormatError;
    /// use bulla_kms::{Algorithm, Keystore, NewKey, SshCertificateKind};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let authority = keystore.create_key(NewKey::new("a".parse()?, "ca".parse()?, Algorithm::Ed25519))?;
    /// let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr";
    /// let new = NewSshCertificate {
    ///     key: SshKey::parse(key)?,
    ///     kind: SshCertificateKind::User,
    ///     serial: 7,
    ///     key_id: "ann's laptop".to_owned(),
    ///     principals: vec!["ann".to_owned()],
    ///     valid_after: 1_700_000_000,
    ///     valid_before: 1_700_086_400,
    ///     critical_options: Vec::new(),
    ///     extensions: vec!["permit-pty".to_owned()],
    /// };
    /// let line = new.sign(&keystore.public_key(&authority)?, &[7; 16], |message| {
    ///     let signature = keystore.sign(&authority, message).expect("it signs anything");
    ///     Ok::<_, FormatError>(signature.bytes)
    /// })?;
    /// assert!(matches!(SshSigner::parse_line(&line)?, SshSigner::Certificate(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sign<E: From<FormatError>>(
        &self,
        authority: &PublicKey,
        nonce: &[u8],
        sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
    ) -> Result<String, E> {
        if self.principals.is_empty() {
            let message = "a certificate without a principal would be for everybody";
            return Err(FormatError::new(message).into());
        }
        if self.key.algorithm().ends_with(TOKEN) {
            return Err(FormatError::new("bulla makes no certificates for keys of hardware tokens").into());
        }
        let mut bytes = self.to_be_signed(&SshKey::of(authority)?, nonce)?;
        let signature = signature_blob(authority, &sign(&bytes)?)?;
        signature.encode(&mut bytes).map_err(too_long)?;
        let line = format!("{} {}", self.name(), Base64::encode_string(&bytes));
        // This verifies the signature.
        SshSigner::parse_line(&line)?;
        Ok(line)
    }

    /// The name of the certificate's format.
    fn name(&self) -> String {
        format!("{}{CERTIFICATE}", self.key.algorithm())
    }

    fn to_be_signed(&self, authority: &SshKey, nonce: &[u8]) -> Result<Vec<u8>, FormatError> {
        let named = |options: &[(&str, Option<&str>)]| -> Result<Vec<u8>, ssh_encoding::Error> {
            let mut sorted = options.to_vec();
            // The format wants them in this order.
            sorted.sort_unstable();
            let mut list = Vec::new();
            for (name, value) in sorted {
                name.encode(&mut list)?;
                let mut inner = Vec::new();
                value.map(|value| value.encode(&mut inner)).transpose()?;
                inner.encode(&mut list)?;
            }
            Ok(list)
        };
        let options: Vec<_> =
            self.critical_options.iter().map(|(name, value)| (&**name, Some(&**value))).collect();
        let extensions: Vec<_> = self.extensions.iter().map(|name| (&**name, None)).collect();
        let encode = || -> Result<Vec<u8>, ssh_encoding::Error> {
            let mut bytes = Vec::new();
            self.name().encode(&mut bytes)?;
            nonce.encode(&mut bytes)?;
            // The fields of the key, without its name.
            bytes.extend_from_slice(&self.key.blob()[4 + self.key.algorithm().len()..]);
            self.serial.encode(&mut bytes)?;
            let kind: u32 = match self.kind {
                SshCertificateKind::User => 1,
                SshCertificateKind::Host => 2,
            };
            kind.encode(&mut bytes)?;
            self.key_id.encode(&mut bytes)?;
            let mut principals = Vec::new();
            self.principals.iter().try_for_each(|name| name.encode(&mut principals))?;
            principals.encode(&mut bytes)?;
            self.valid_after.encode(&mut bytes)?;
            self.valid_before.encode(&mut bytes)?;
            named(&options)?.encode(&mut bytes)?;
            named(&extensions)?.encode(&mut bytes)?;
            let reserved: &[u8] = &[];
            reserved.encode(&mut bytes)?;
            authority.blob().encode(&mut bytes)?;
            Ok(bytes)
        };
        encode().map_err(too_long)
    }
}

fn too_long(_error: ssh_encoding::Error) -> FormatError {
    FormatError::new("a field of the certificate is too long")
}
