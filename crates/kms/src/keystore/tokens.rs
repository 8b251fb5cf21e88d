//! Tokens with root keys in the keystore, and the operations that they protect.

use std::sync::Arc;

use super::Keystore;
use super::keys::NewKey;
use super::lifecycle::check_state;
use super::observe::Subject;
use super::signing::SignedContent;
use crate::algorithm::Algorithm;
use crate::approval::KeyUse;
use crate::audit_log::AuditOperation;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyRef, KeyVersionId, Name};
use crate::public_key::PublicKey;
use crate::token::{Grant, Revocations, Rights, TOKEN_ROOT_PURPOSE, Token, TokenRequest, VerifiedToken};

impl Keystore {
    /// Makes a tenant's root key, which signs its tokens.
    ///
    /// # Errors
    /// [`Code::LabelTaken`] if the tenant already has a root key, or another key with that label;
    /// the errors of [`Keystore::create_key`].
    pub fn create_token_root(&self, tenant: &Name) -> Result<KeyVersionId> {
        let name: Name = TOKEN_ROOT_PURPOSE.parse()?;
        self.create_key(NewKey::new(tenant.clone(), name.clone(), Algorithm::Ed25519).label(name))
    }

    /// Mints a token, signed by the latest version of the tenant's root key.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`] if the tenant has no root key; [`Code::InvalidArgument`] for an empty
    /// grant, or with keys of another tenant; [`Code::NotExportable`] if the root key is in a
    /// device; the errors of [`Keystore::sign`].
    ///
    /// ```
    /// use bulla_kms::token::{
    ///     Grant, GrantedKeys, Revocations, TokenLimits, TokenOperation, TokenRequest,
    /// };
    /// use bulla_kms::{Algorithm, Keystore, Name, NewKey, Timestamp};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let tenant: Name = "local".parse()?;
    /// keystore.create_token_root(&tenant)?;
    /// let now = Timestamp::now()?;
    /// let tomorrow = Timestamp::from_unix_millis(now.unix_millis() + 86_400_000)?;
    /// let operations = vec![TokenOperation::Sign, TokenOperation::Verify];
    /// let grant = Grant::new(tenant.clone(), GrantedKeys::All, operations, tomorrow)
    ///     .holder("build/release".parse()?);
    /// let token = keystore.mint_token(&grant)?;
    ///
    /// // Its holder passes on less, without the keystore.
    /// let limits = TokenLimits::default()
    ///     .operations(vec![TokenOperation::Sign])
    ///     .keys(vec![key.key_id().clone()])
    ///     .expires(tomorrow);
    /// let weaker = token.attenuate(&limits)?;
    ///
    /// let mut revoked = Revocations::default();
    /// let sign = TokenRequest::on_key(TokenOperation::Sign, key.key_id(), now);
    /// let create = TokenRequest::in_tenant(TokenOperation::Create, &tenant, now);
    /// keystore.authorize(&weaker, &sign, &revoked)?;
    /// assert!(keystore.authorize(&weaker, &create, &revoked).is_err());
    ///
    /// let rights = keystore.rights(&weaker, &revoked)?;
    /// assert!(rights.permits(&sign).is_ok() && rights.expires() <= tomorrow);
    /// assert_eq!(rights.holder().map(|holder| holder.as_str()), Some("build/release"));
    ///
    /// let id = token.inspect()?.blocks[0].revocation_id.clone();
    /// revoked.add(id);
    /// assert!(keystore.authorize(&weaker, &sign, &revoked).is_err());
    /// println!("{} bytes", weaker.expose().len());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn mint_token(&self, grant: &Grant) -> Result<Token> {
        let root = self.token_root(&grant.tenant)?;
        self.observed(Subject::key(AuditOperation::Sign, &root), || {
            self.check_lease()?;
            let (id, loaded) =
                self.version_for_one_use(KeyRef::Key(&root), SignedContent::Statement, KeyUse::Free)?;
            let seed = loaded.material(&id, &self.cipher, &self.backends)?;
            Token::mint(&seed, id.version(), grant)
        })
    }

    /// Checks that a token permits `request`. The root key of the request's tenant must have signed
    /// the token.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`] if the tenant has no root key; [`Code::KeyDisabled`],
    /// [`Code::KeyPendingDestruction`], [`Code::KeyDestroyed`] if that key is; the errors of
    /// [`Token::authorize`].
    pub fn authorize(
        &self,
        token: &Token,
        request: &TokenRequest<'_>,
        revoked: &Revocations,
    ) -> Result<VerifiedToken> {
        token.authorize(self.trusted(request.tenant())?, request, revoked)
    }

    /// Everything that a token permits, if the root key of its tenant signed it. The rights are
    /// those at this moment: see [`Rights`].
    ///
    /// # Errors
    /// [`Code::KeyNotFound`] when the tenant has no root key; [`Code::KeyDisabled`],
    /// [`Code::KeyPendingDestruction`], [`Code::KeyDestroyed`] when that one is; those of
    /// [`Token::rights`].
    pub fn rights(&self, token: &Token, revoked: &Revocations) -> Result<Rights> {
        let untold = || KmsError::new(Code::InvalidToken, "the token names no tenant");
        let tenant = token.tenant().ok_or_else(untold)?;
        token.rights(self.trusted(&tenant)?, revoked)
    }

    /// The public keys of the usable versions of a tenant's root key.
    fn trusted(&self, tenant: &Name) -> Result<impl Fn(u32) -> Option<PublicKey> + use<>> {
        let root = self.token_root(tenant)?;
        let loaded = Arc::clone(self.index.load().key(&root)?);
        check_state(&loaded.record)?;
        Ok(move |version: u32| {
            let id = root.version(version.try_into().ok()?);
            loaded.usable(&id).ok()?.public_key.clone()
        })
    }

    /// Exports a private key, wrapped for a recipient. The key must be exportable, and a token of
    /// its tenant must permit the export. A signing key exports only its latest version.
    ///
    /// # Errors
    /// [`Code::NotExportable`]; [`Code::NotLatestVersion`]; the errors of [`Keystore::authorize`];
    /// [`Code::KeyUsageMismatch`] if the recipient's key does not encapsulate; the errors of
    /// [`Keystore::decapsulate`] about the key's state.
    #[cfg(feature = "transfer")]
    pub fn export_key(
        &self,
        key: &KeyVersionId,
        recipient: &PublicKey,
        token: &Token,
        revoked: &Revocations,
    ) -> Result<crate::transfer::WrappedPrivateKey> {
        self.observed(Subject::key(AuditOperation::Export, key), || {
            let now = crate::time::Timestamp::now()?;
            let request = TokenRequest::on_key(crate::token::TokenOperation::Export, key.key_id(), now);
            self.authorize(token, &request, revoked)?;
            self.wrap_key(key, recipient)
        })
    }

    /// Exports the private key of a version as it is, if a token permits exactly that: `export`
    /// is not enough. This is for programs that know only plain keys; prefer
    /// [`Keystore::export_key`].
    ///
    /// ```
    /// use bulla_kms::token::{Grant, GrantedKeys, Revocations, TokenOperation};
    /// use bulla_kms::{Algorithm, Keystore, NewKey, Timestamp};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let tenant: bulla_kms::Name = "local".parse()?;
    /// keystore.create_token_root(&tenant)?;
    /// let new = NewKey::new(tenant.clone(), "backups".parse()?, Algorithm::Aes256Gcm);
    /// let key = keystore.create_key(new.exportable(true))?;
    /// let expires = Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + 60_000)?;
    /// let operations = vec![TokenOperation::ExportPlaintext];
    /// let grant = Grant::new(tenant, GrantedKeys::All, operations, expires);
    /// let token = keystore.mint_token(&grant)?;
    /// let secret = keystore.export_plaintext(&key, &token, &Revocations::default())?;
    /// assert_eq!(secret.to_vault()?.len(), 44, "the base64 of 32 bytes");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Keystore::export_key`].
    #[cfg(feature = "transfer")]
    pub fn export_plaintext(
        &self,
        key: &KeyVersionId,
        token: &Token,
        revoked: &Revocations,
    ) -> Result<crate::transfer::PrivateKeyData> {
        self.observed(Subject::key(AuditOperation::ExportPlaintext, key), || {
            let now = crate::time::Timestamp::now()?;
            let operation = crate::token::TokenOperation::ExportPlaintext;
            self.authorize(token, &TokenRequest::on_key(operation, key.key_id(), now), revoked)?;
            let (material, public_key) = self.exportable(key)?;
            let public_key = public_key.as_ref().map(PublicKey::as_bytes);
            crate::transfer::PrivateKeyData::new(key.key_id().algorithm(), material, public_key)
        })
    }

    /// Exports a private key, wrapped for the holder of an RSA key, as
    /// [`WrappedForRsa`](crate::transfer::WrappedForRsa) says. A token must permit the export.
    ///
    /// ```
    /// # #[cfg(feature = "nist")]
    /// # (|| {
    /// use bulla_kms::token::{Grant, GrantedKeys, Revocations, TokenOperation};
    /// use bulla_kms::{Algorithm, Keystore, NewKey, Timestamp};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let tenant: bulla_kms::Name = "local".parse()?;
    /// keystore.create_token_root(&tenant)?;
    /// let new = |algorithm| NewKey::new(tenant.clone(), "moving".parse().unwrap(), algorithm);
    /// let key = keystore.create_key(new(Algorithm::Ed25519).exportable(true))?;
    /// let expires = Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + 60_000)?;
    /// let operations = vec![TokenOperation::Export];
    /// let grant = Grant::new(tenant.clone(), GrantedKeys::All, operations, expires);
    /// let (token, revoked) = (keystore.mint_token(&grant)?, Revocations::default());
    /// // In practice, the recipient is a key elsewhere.
    /// let recipient = keystore.create_key(new(Algorithm::Rsa2048))?;
    /// let public_key = keystore.public_key(&recipient)?;
    /// let wrapped = keystore.export_for_rsa(&key, &public_key, &token, &revoked)?;
    /// let found = keystore.unwrap_for_rsa(&recipient, Algorithm::Ed25519, &wrapped)?;
    /// assert_eq!(found.public_key(), Some(&keystore.public_key(&key)?));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// # })().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] if the recipient's key is not one of RSA; otherwise those of
    /// [`Keystore::export_key`].
    #[cfg(feature = "transfer")]
    pub fn export_for_rsa(
        &self,
        key: &KeyVersionId,
        recipient: &PublicKey,
        token: &Token,
        revoked: &Revocations,
    ) -> Result<crate::transfer::WrappedForRsa> {
        self.observed(Subject::key(AuditOperation::Export, key), || {
            let now = crate::time::Timestamp::now()?;
            let request = TokenRequest::on_key(crate::token::TokenOperation::Export, key.key_id(), now);
            self.authorize(token, &request, revoked)?;
            let (material, _) = self.exportable(key)?;
            crate::transfer::WrappedForRsa::wrap(key.key_id().algorithm(), &material, recipient)
        })
    }

    fn token_root(&self, tenant: &Name) -> Result<crate::id::KeyId> {
        let missing = || {
            let message = format!("the tenant {tenant} has no root key for tokens; make one first");
            KmsError::new(Code::KeyNotFound, message)
        };
        let root = self.find(tenant, &TOKEN_ROOT_PURPOSE.parse()?)?.ok_or_else(missing)?;
        if root.purpose().as_str() == TOKEN_ROOT_PURPOSE && root.algorithm() == Algorithm::Ed25519 {
            Ok(root)
        } else {
            Err(missing())
        }
    }
}
