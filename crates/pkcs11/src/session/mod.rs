//! Sessions, and the operations that are active in them.

pub(crate) mod aes;
pub(crate) mod cipher;
pub(crate) mod create;
pub(crate) mod curve;
pub(crate) mod key;
pub(crate) mod objects;
pub(crate) mod rsa;
pub(crate) mod signature;
pub(crate) mod template;
pub(crate) mod wrap;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::backend::{Backend, NewKey};
use crate::error::{Failure, Result, fail, require};
use crate::object::Object;
use crate::object::attributes::Attribute;
use crate::operation::cipher::{CipherOperation, EncryptedMessage, decrypt, encrypt_message};
use crate::operation::derive::derive;
use crate::operation::digest::{Hash, Hasher};
use crate::operation::mechanism::{Direction, Mechanism, Parameters, is_aes};
use crate::operation::signing::SignatureOperation;
use crate::reply::{Reply, without_room};
use crate::slot::{Access, Slot};

/// A session.
pub(crate) struct Session {
    pub(crate) slot: CK_SLOT_ID,
    pub(crate) access: Access,
    operations: Mutex<Operations>,
}

/// The active operations.
#[derive(Default)]
struct Operations {
    find: Option<Box<[CK_OBJECT_HANDLE]>>,
    /// How many of the handles that were found the program has.
    found: usize,
    digest: Option<Box<Hasher>>,
    encrypt: Option<Box<CipherOperation>>,
    decrypt: Option<Box<CipherOperation>>,
    /// The keys of operations with messages.
    encrypt_messages: Option<Arc<Object>>,
    decrypt_messages: Option<Arc<Object>>,
    sign: Option<Box<Signing>>,
    verify: Option<Box<Signing>>,
    sign_authentication: Authentication,
    decrypt_authentication: Authentication,
}

/// A signature operation, and what it has had.
struct Signing {
    operation: SignatureOperation,
    pieces: Pieces,
}

/// Whether the program gave the PIN for one operation, if its key asks for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Authentication {
    #[default]
    Done,
    Needed,
}

impl Authentication {
    fn of(key: &Object) -> Self {
        if key.attributes.is_set(CKA_ALWAYS_AUTHENTICATE) { Self::Needed } else { Self::Done }
    }

    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`.
    fn check(self) -> Result<()> {
        require(self == Self::Done, CKR_USER_NOT_LOGGED_IN)
    }
}

/// Whether the message came in pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pieces {
    None,
    Some,
}

/// A session of a call, with its slot.
pub(crate) struct InSession<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) session: Arc<Session>,
}

/// Which of two operations with signatures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Sign,
    Verify,
}

impl Session {
    pub(crate) fn new(slot: CK_SLOT_ID, access: Access) -> Self {
        Self { slot, access, operations: Mutex::default() }
    }

    /// Permits the operations that wait for the PIN, once it is checked.
    ///
    /// # Errors
    /// `CKR_OPERATION_NOT_INITIALIZED` if none waits; those of the check.
    pub(crate) fn authenticate(&self, check: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut operations = self.operations();
        let waits = [
            operations.sign.is_some() && operations.sign_authentication == Authentication::Needed,
            operations.decrypt.is_some() && operations.decrypt_authentication == Authentication::Needed,
        ];
        require(waits.contains(&true), CKR_OPERATION_NOT_INITIALIZED)?;
        check()?;
        operations.sign_authentication = Authentication::Done;
        operations.decrypt_authentication = Authentication::Done;
        Ok(())
    }

    /// Ends all operations.
    pub(crate) fn end_operations(&self) {
        *self.operations() = Operations::default();
    }

    fn operations(&self) -> MutexGuard<'_, Operations> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Operations {
    fn signing(&mut self, purpose: Purpose) -> &mut Option<Box<Signing>> {
        match purpose {
            Purpose::Sign => &mut self.sign,
            Purpose::Verify => &mut self.verify,
        }
    }

    fn cipher(&mut self, direction: Direction) -> &mut Option<Box<CipherOperation>> {
        match direction {
            Direction::Encrypt => &mut self.encrypt,
            Direction::Decrypt => &mut self.decrypt,
        }
    }

    fn messages(&mut self, direction: Direction) -> &mut Option<Arc<Object>> {
        match direction {
            Direction::Encrypt => &mut self.encrypt_messages,
            Direction::Decrypt => &mut self.decrypt_messages,
        }
    }

    /// Checks whether an encryption or a decryption waits for the PIN.
    fn check_pin(&self, direction: Direction) -> Result<()> {
        match (direction, &self.decrypt) {
            (Direction::Decrypt, Some(_)) => self.decrypt_authentication.check(),
            _ => Ok(()),
        }
    }

    /// Takes an operation that has had no pieces, or some.
    fn take(&mut self, purpose: Purpose, pieces: Pieces) -> Result<SignatureOperation> {
        let active = self.signing(purpose).take().ok_or(Failure(CKR_OPERATION_NOT_INITIALIZED))?;
        // A message in one piece cannot follow pieces.
        let fits = pieces == Pieces::Some || active.pieces == Pieces::None;
        require(fits, CKR_OPERATION_NOT_INITIALIZED)?;
        Ok(active.operation)
    }
}

impl InSession<'_> {
    fn key(&self, handle: CK_OBJECT_HANDLE) -> Result<Arc<Object>> {
        self.slot.object(handle).map_err(|_| Failure(CKR_KEY_HANDLE_INVALID))
    }

    fn backend(&self) -> Result<Arc<dyn Backend>> {
        self.slot.backend()
    }

    pub(crate) fn find_init(&self, template: &[Attribute]) -> Result<()> {
        let mut operations = self.session.operations();
        require(operations.find.is_none(), CKR_OPERATION_ACTIVE)?;
        operations.find = Some(self.slot.find(template)?.into());
        operations.found = 0;
        Ok(())
    }

    /// The next objects that were found, at most `max`.
    pub(crate) fn find(&self, max: usize) -> Result<Vec<CK_OBJECT_HANDLE>> {
        let mut operations = self.session.operations();
        let found = operations.found;
        let handles = operations.find.as_deref().ok_or(Failure(CKR_OPERATION_NOT_INITIALIZED))?;
        let next: Vec<_> = handles[found..].iter().copied().take(max).collect();
        operations.found += next.len();
        Ok(next)
    }

    pub(crate) fn find_final(&self) -> Result<()> {
        let found = self.session.operations().find.take();
        require(found.is_some(), CKR_OPERATION_NOT_INITIALIZED)
    }

    pub(crate) fn digest_init(&self, mechanism: Option<Mechanism>) -> Result<()> {
        let mut operations = self.session.operations();
        let Some(mechanism) = mechanism else { return canceled(operations.digest.take().is_some()) };
        require(operations.digest.is_none(), CKR_OPERATION_ACTIVE)?;
        let hasher = Hash::of_mechanism(mechanism.kind)?.hasher();
        require(mechanism.parameters == Parameters::None, CKR_MECHANISM_PARAM_INVALID)?;
        operations.digest = Some(Box::new(hasher));
        Ok(())
    }

    pub(crate) fn digest_update(&self, data: &[u8]) -> Result<()> {
        let mut operations = self.session.operations();
        let hasher = operations.digest.as_mut().ok_or(Failure(CKR_OPERATION_NOT_INITIALIZED))?;
        hasher.update(data);
        Ok(())
    }

    /// The digest, with a last piece.
    pub(crate) fn digest(&self, data: &[u8], room: Option<usize>) -> Result<Reply> {
        let mut operations = self.session.operations();
        let hasher = operations.digest.take().ok_or(Failure(CKR_OPERATION_NOT_INITIALIZED))?;
        if let Some(reply) = without_room(room, hasher.output_len()) {
            operations.digest = Some(hasher);
            return Ok(reply);
        }
        let mut hasher = *hasher;
        hasher.update(data);
        Ok(Reply::Bytes(hasher.finish().into()))
    }

    /// Begins a signature or its verification.
    pub(crate) fn signature_init(
        &self,
        purpose: Purpose,
        mechanism: Option<Mechanism>,
        key: CK_OBJECT_HANDLE,
    ) -> Result<()> {
        let mut operations = self.session.operations();
        let active = operations.signing(purpose);
        let Some(mechanism) = mechanism else { return canceled(active.take().is_some()) };
        require(active.is_none(), CKR_OPERATION_ACTIVE)?;
        let object = self.key(key)?;
        let authentication = Authentication::of(&object);
        let operation = match purpose {
            Purpose::Sign => SignatureOperation::to_sign(&mechanism, object)?,
            Purpose::Verify => SignatureOperation::to_verify(&mechanism, object)?,
        };
        *active = Some(Box::new(Signing { operation, pieces: Pieces::None }));
        if purpose == Purpose::Sign {
            operations.sign_authentication = authentication;
        }
        Ok(())
    }

    pub(crate) fn signature_update(&self, purpose: Purpose, data: &[u8]) -> Result<()> {
        let mut operations = self.session.operations();
        let authentication = operations.sign_authentication;
        let active = operations.signing(purpose);
        let signing = active.as_mut().ok_or(Failure(CKR_OPERATION_NOT_INITIALIZED))?;
        if purpose == Purpose::Sign {
            authentication.check()?;
        }
        signing.pieces = Pieces::Some;
        let updated = signing.operation.update(data);
        if updated.is_err() {
            *active = None;
        }
        updated
    }

    /// Signs a message in one piece.
    pub(crate) fn sign(&self, data: &[u8], room: Option<usize>) -> Result<Reply> {
        self.finish_signature(Pieces::None, data, room)
    }

    /// Signs a message that came in pieces.
    pub(crate) fn sign_final(&self, room: Option<usize>) -> Result<Reply> {
        self.finish_signature(Pieces::Some, &[], room)
    }

    fn finish_signature(&self, pieces: Pieces, data: &[u8], room: Option<usize>) -> Result<Reply> {
        let mut operations = self.session.operations();
        let active = operations.sign.as_ref().ok_or(Failure(CKR_OPERATION_NOT_INITIALIZED))?;
        if let Some(reply) = without_room(room, active.operation.output_len()) {
            return Ok(reply);
        }
        operations.sign_authentication.check()?;
        let operation = operations.take(Purpose::Sign, pieces)?;
        let signature = operation.sign(|| self.backend(), data)?;
        // The service decides how long a signature is.
        match without_room(room, signature.len()) {
            None => Ok(Reply::Bytes(signature.into())),
            Some(_) => fail(CKR_DEVICE_ERROR),
        }
    }

    /// Verifies a signature of a message in one piece.
    pub(crate) fn verify(&self, data: &[u8], signature: &[u8]) -> Result<()> {
        self.finish_verification(Pieces::None, data, signature)
    }

    /// Verifies a signature of a message that came in pieces.
    pub(crate) fn verify_final(&self, signature: &[u8]) -> Result<()> {
        self.finish_verification(Pieces::Some, &[], signature)
    }

    fn finish_verification(&self, pieces: Pieces, data: &[u8], signature: &[u8]) -> Result<()> {
        let mut operations = self.session.operations();
        let operation = operations.take(Purpose::Verify, pieces)?;
        operation.verify(|| self.backend(), data, signature)
    }

    /// Begins an encryption or a decryption.
    pub(crate) fn cipher_init(
        &self,
        direction: Direction,
        mechanism: Option<Mechanism>,
        key: CK_OBJECT_HANDLE,
    ) -> Result<()> {
        let mut operations = self.session.operations();
        let active = operations.cipher(direction);
        let Some(mechanism) = mechanism else { return canceled(active.take().is_some()) };
        require(active.is_none(), CKR_OPERATION_ACTIVE)?;
        let flag = if direction == Direction::Encrypt { CKA_ENCRYPT } else { CKA_DECRYPT };
        let object = self.key(key)?;
        let authentication = Authentication::of(&object);
        *active = Some(Box::new(CipherOperation::new(direction, mechanism, object, flag)?));
        if direction == Direction::Decrypt {
            operations.decrypt_authentication = authentication;
        }
        Ok(())
    }

    /// Adds a piece, and gives what is known by then. With a tag, that is nothing before the end,
    /// because nobody may see a plaintext before its tag is checked.
    pub(crate) fn cipher_update(
        &self,
        direction: Direction,
        data: &[u8],
        room: Option<usize>,
    ) -> Result<Reply> {
        let mut operations = self.session.operations();
        operations.check_pin(direction)?;
        let active = operations.cipher(direction);
        let operation = active.as_mut().ok_or(Failure(CKR_OPERATION_NOT_INITIALIZED))?;
        let updated = operation.update(data, room);
        if updated.is_err() {
            *active = None;
        }
        updated
    }

    /// The result of an encryption or a decryption, with a last piece.
    pub(crate) fn cipher(&self, direction: Direction, data: &[u8], room: Option<usize>) -> Result<Reply> {
        let mut operations = self.session.operations();
        operations.check_pin(direction)?;
        let mut operation =
            operations.cipher(direction).take().ok_or(Failure(CKR_OPERATION_NOT_INITIALIZED))?;
        let Some(room) = room else {
            let length = operation.output_len(data.len());
            *operations.cipher(direction) = Some(operation);
            return Ok(Reply::Length(length));
        };
        let output = operation.finish(|| self.backend(), data)?;
        if let Some(reply) = without_room(Some(room), output.len()) {
            *operations.cipher(direction) = Some(operation);
            return Ok(reply);
        }
        Ok(Reply::Bytes(output.clone()))
    }

    /// Begins encryptions or decryptions of messages.
    pub(crate) fn messages_init(
        &self,
        direction: Direction,
        mechanism: Option<Mechanism>,
        key: CK_OBJECT_HANDLE,
    ) -> Result<()> {
        let mut operations = self.session.operations();
        let active = operations.messages(direction);
        let Some(mechanism) = mechanism else { return canceled(active.take().is_some()) };
        require(active.is_none(), CKR_OPERATION_ACTIVE)?;
        require(mechanism.kind == CKM_AES_GCM, CKR_MECHANISM_INVALID)?;
        let object = self.key(key)?;
        require(is_aes(object.key()?.algorithm), CKR_KEY_TYPE_INCONSISTENT)?;
        let flag = if direction == Direction::Encrypt { CKA_ENCRYPT } else { CKA_DECRYPT };
        require(object.attributes.is_set(flag), CKR_KEY_FUNCTION_NOT_PERMITTED)?;
        *active = Some(object);
        Ok(())
    }

    pub(crate) fn messages_final(&self, direction: Direction) -> Result<()> {
        let key = self.session.operations().messages(direction).take();
        require(key.is_some(), CKR_OPERATION_NOT_INITIALIZED)
    }

    /// The key of an operation with messages.
    pub(crate) fn message_key(&self, direction: Direction) -> Result<Arc<Object>> {
        self.session.operations().messages(direction).clone().ok_or(Failure(CKR_OPERATION_NOT_INITIALIZED))
    }

    /// Encrypts a message with a nonce of the service.
    pub(crate) fn encrypt_message(
        &self,
        plaintext: &[u8],
        associated_data: &[u8],
    ) -> Result<EncryptedMessage> {
        let object = self.message_key(Direction::Encrypt)?;
        let key = object.key.as_ref().ok_or(Failure(CKR_GENERAL_ERROR))?;
        encrypt_message(&*self.backend()?, key, plaintext, associated_data)
    }

    /// Decrypts a message: its nonce, its ciphertext and its tag in a row.
    pub(crate) fn decrypt_message(&self, body: &[u8], associated_data: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let object = self.message_key(Direction::Decrypt)?;
        let key = object.key.as_ref().ok_or(Failure(CKR_GENERAL_ERROR))?;
        decrypt(&*self.backend()?, key, body, associated_data)
    }

    /// Makes a key. It is one of the token.
    pub(crate) fn create_key(&self, new: &NewKey) -> Result<Vec<(CK_OBJECT_CLASS, CK_OBJECT_HANDLE)>> {
        require(self.session.access == Access::ReadWrite, CKR_SESSION_READ_ONLY)?;
        self.slot.create_key(new)
    }

    /// Derives a secret, which is an object of this session.
    pub(crate) fn derive(
        &self,
        mechanism: Mechanism,
        base: CK_OBJECT_HANDLE,
        template: &[Attribute],
        session: CK_SESSION_HANDLE,
    ) -> Result<Object> {
        derive(mechanism, &*self.key(base)?, || self.backend(), template, session)
    }

    /// Adds the value of a secret key of a session to what is hashed.
    pub(crate) fn digest_key(&self, key: CK_OBJECT_HANDLE) -> Result<()> {
        let mut operations = self.session.operations();
        let hasher = operations.digest.as_mut().ok_or(Failure(CKR_OPERATION_NOT_INITIALIZED))?;
        let object = self.key(key)?;
        hasher.update(object.secret().map_err(|_| Failure(CKR_KEY_INDIGESTIBLE))?);
        Ok(())
    }

    /// Wraps a key of a session.
    pub(crate) fn wrap(
        &self,
        mechanism: Mechanism,
        wrapping: CK_OBJECT_HANDLE,
        key: CK_OBJECT_HANDLE,
        room: Option<usize>,
    ) -> Result<Reply> {
        let wrapping = self.slot.object(wrapping);
        let wrapping = wrapping.map_err(|_| Failure(CKR_WRAPPING_KEY_HANDLE_INVALID))?;
        let wrapped = wrap::wrap(mechanism, wrapping, &*self.key(key)?)?;
        Ok(without_room(room, wrapped.len()).unwrap_or(Reply::Bytes(wrapped)))
    }

    /// Unwraps a key, which is then an object of this session.
    pub(crate) fn unwrap(
        &self,
        mechanism: Mechanism,
        unwrapping: CK_OBJECT_HANDLE,
        wrapped: &[u8],
        template: &[Attribute],
        session: CK_SESSION_HANDLE,
    ) -> Result<Object> {
        let unwrapping = self.slot.object(unwrapping);
        let unwrapping = unwrapping.map_err(|_| Failure(CKR_UNWRAPPING_KEY_HANDLE_INVALID))?;
        // To unwrap is to decrypt, and a program could not give the PIN for it.
        Authentication::of(&unwrapping).check()?;
        wrap::unwrap(mechanism, unwrapping, || self.backend(), wrapped, template, session)
    }

    /// Copies an object of a session to this one.
    pub(crate) fn copy(
        &self,
        object: CK_OBJECT_HANDLE,
        template: &[Attribute],
        session: CK_SESSION_HANDLE,
    ) -> Result<Object> {
        template::copy(&*self.slot.object(object)?, template, session)
    }

    pub(crate) fn destroy(&self, object: CK_OBJECT_HANDLE) -> Result<()> {
        self.slot.destroy(object, self.session.access)
    }

    pub(crate) fn change(&self, object: CK_OBJECT_HANDLE, template: &[Attribute]) -> Result<()> {
        self.slot.change(object, template, self.session.access)
    }

    /// Makes a call for an operation, which bad arguments end: the standard lets no error but
    /// `CKR_BUFFER_TOO_SMALL` leave an operation active. Other errors end it in the call itself.
    pub(crate) fn ending(&self, operation: CK_FLAGS, call: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        let called = call(self);
        if called == fail(CKR_ARGUMENTS_BAD) {
            self.cancel(operation);
        }
        called
    }

    /// Ends operations, which the flags of their functions name.
    pub(crate) fn cancel(&self, flags: CK_FLAGS) {
        let mut operations = self.session.operations();
        if flags & CKF_FIND_OBJECTS != 0 {
            operations.find = None;
        }
        if flags & CKF_DIGEST != 0 {
            operations.digest = None;
        }
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let (cipher, messages) = match direction {
                Direction::Encrypt => (CKF_ENCRYPT, CKF_MESSAGE_ENCRYPT),
                Direction::Decrypt => (CKF_DECRYPT, CKF_MESSAGE_DECRYPT),
            };
            if flags & cipher != 0 {
                *operations.cipher(direction) = None;
            }
            if flags & messages != 0 {
                *operations.messages(direction) = None;
            }
        }
        if flags & CKF_SIGN != 0 {
            operations.sign = None;
        }
        if flags & CKF_VERIFY != 0 {
            operations.verify = None;
        }
    }
}

/// The result of a call without a mechanism, which ends an active operation.
fn canceled(was_active: bool) -> Result<()> {
    require(was_active, CKR_ARGUMENTS_BAD)
}
