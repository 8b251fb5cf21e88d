//! The functions that programs call, and the tables of them.
//!
//! Each function reads the program's memory, calls safe code, and writes what that returns. It
//! catches panics, because one that reached the program would end it.

#![allow(non_snake_case, reason = "functions and arguments have the names of the standard")]

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cryptoki_sys::*;

use crate::backend::generate;
use crate::config;
use crate::error::{FUNCTION, Failure, Result, fail, require};
use crate::ffi::raw;
use crate::module;
use crate::object::attributes::{Attribute, Template};
use crate::operation::mechanism::Direction;
use crate::reply::{Reply, without_room};
use crate::session::create::{generate_pair, generate_secret};
use crate::session::objects;
use crate::session::{InSession, Purpose};

/// Runs the work of a call, and turns a failure or a panic into its code.
fn call(name: &'static str, work: impl FnOnce() -> Result<()>) -> CK_RV {
    FUNCTION.set(name);
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => CKR_OK,
        Ok(Err(Failure(code))) => code,
        Err(panic) => {
            // The destructor of what was thrown could panic again.
            std::mem::forget(panic);
            CKR_GENERAL_ERROR
        }
    }
}

/// A call that the module does not support.
fn unsupported() -> Result<()> {
    module::state()?;
    fail(CKR_FUNCTION_NOT_SUPPORTED)
}

/// Whether a template asks for a key of the session: objects of the token say so.
fn is_of_session(template: &[Attribute]) -> Result<bool> {
    Ok(Template(template).flag(CKA_TOKEN)? != Some(true))
}

/// The handle of a key's object of a class.
fn handle_of(made: &[(CK_OBJECT_CLASS, Handle)], class: CK_OBJECT_CLASS) -> Result<Handle> {
    let found = made.iter().find(|(made, _)| *made == class);
    found.map(|(_, handle)| *handle).ok_or(Failure(CKR_DEVICE_ERROR))
}

/// Fills memory with bytes of its length.
fn copy(out: &mut [u8], bytes: &[u8]) -> Result<()> {
    require(out.len() == bytes.len(), CKR_DEVICE_ERROR)?;
    out.copy_from_slice(bytes);
    Ok(())
}

/// Defines functions. Their bodies read and write through the pointers of the program.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $body:block)*) => {
        $(
            #[allow(unused_unsafe, reason = "some functions have no pointers")]
            unsafe extern "C" fn $name($($argument: $type),*) -> CK_RV {
                // SAFETY: the program promises that its pointers are as PKCS #11 describes them.
                call(stringify!($name), || unsafe { $body })
            }
        )*
    };
}

/// Defines functions that the module does not support.
macro_rules! unsupported {
    ($($name:ident($($type:ty),*);)*) => {
        $(
            unsafe extern "C" fn $name($(_: $type),*) -> CK_RV {
                call(stringify!($name), unsupported)
            }
        )*
    };
}

type Session = CK_SESSION_HANDLE;
type Handle = CK_OBJECT_HANDLE;
type Bytes = *mut CK_BYTE;
type Length = *mut CK_ULONG;

functions! {
    fn C_Initialize(args: *mut c_void) {
        raw::check_initialize_args(args.cast())?;
        module::initialize(config::read)
    }

    fn C_Finalize(reserved: *mut c_void) {
        require(reserved.is_null(), CKR_ARGUMENTS_BAD)?;
        module::finalize()
    }

    fn C_GetInfo(info: *mut CK_INFO) {
        module::state()?;
        raw::write(info, module::info())
    }

    fn C_GetSlotList(_token_present: CK_BBOOL, list: *mut CK_SLOT_ID, count: Length) {
        raw::write_list(list, count, &module::state()?.slot_ids())
    }

    fn C_GetSlotInfo(slot: CK_SLOT_ID, info: *mut CK_SLOT_INFO) {
        raw::write(info, module::state()?.slot_info(slot)?)
    }

    fn C_GetTokenInfo(slot: CK_SLOT_ID, info: *mut CK_TOKEN_INFO) {
        raw::write(info, module::state()?.token_info(slot)?)
    }

    fn C_GetMechanismList(slot: CK_SLOT_ID, list: *mut CK_MECHANISM_TYPE, count: Length) {
        module::state()?.slot(slot)?;
        let kinds: Vec<_> = crate::operation::mechanism::MECHANISMS.iter().map(|info| info.kind).collect();
        raw::write_list(list, count, &kinds)
    }

    fn C_GetMechanismInfo(slot: CK_SLOT_ID, kind: CK_MECHANISM_TYPE, info: *mut CK_MECHANISM_INFO) {
        module::state()?.slot(slot)?;
        raw::write(info, module::mechanism_info(kind)?)
    }

    fn C_OpenSession(
        slot: CK_SLOT_ID,
        flags: CK_FLAGS,
        _application: *mut c_void,
        _notify: CK_NOTIFY,
        session: *mut CK_SESSION_HANDLE
    ) {
        let state = module::state()?;
        require(!session.is_null(), CKR_ARGUMENTS_BAD)?;
        raw::write(session, state.open_session(slot, flags)?)
    }

    fn C_CloseSession(session: Session) {
        module::state()?.close_session(session)
    }

    fn C_CloseAllSessions(slot: CK_SLOT_ID) {
        module::state()?.close_all_sessions(slot)
    }

    fn C_GetSessionInfo(session: Session, info: *mut CK_SESSION_INFO) {
        raw::write(info, module::state()?.session_info(session)?)
    }

    fn C_Login(session: Session, user: CK_USER_TYPE, pin: Bytes, length: CK_ULONG) {
        let state = module::state()?;
        state.session(session)?;
        state.log_in(session, user, raw::bytes(pin, length)?)
    }

    fn C_LoginUser(
        session: Session,
        user: CK_USER_TYPE,
        pin: Bytes,
        length: CK_ULONG,
        _name: Bytes,
        name_length: CK_ULONG
    ) {
        let state = module::state()?;
        state.session(session)?;
        // A token says whose it is.
        require(name_length == 0, CKR_ARGUMENTS_BAD)?;
        state.log_in(session, user, raw::bytes(pin, length)?)
    }

    fn C_Logout(session: Session) {
        module::state()?.log_out(session)
    }

    fn C_SessionCancel(session: Session, flags: CK_FLAGS) {
        InSession::new(&*module::state()?, session)?.cancel(flags);
        Ok(())
    }

    fn C_GetObjectSize(session: Session, object: Handle, size: Length) {
        let state = module::state()?;
        let called = InSession::new(&state, session)?;
        require(!size.is_null(), CKR_ARGUMENTS_BAD)?;
        let object = called.slot.object(object)?;
        raw::write(size, object.attributes.size() as CK_ULONG)
    }

    fn C_GetAttributeValue(session: Session, object: Handle, template: *mut CK_ATTRIBUTE, count: CK_ULONG) {
        let state = module::state()?;
        let called = InSession::new(&state, session)?;
        require(!template.is_null(), CKR_ARGUMENTS_BAD)?;
        let object = called.slot.object(object)?;
        raw::answer_attributes(template, count, |wanted| object.attributes.answer(wanted))
    }

    fn C_FindObjectsInit(session: Session, template: *mut CK_ATTRIBUTE, count: CK_ULONG) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        session.find_init(&raw::attributes(template, count)?)
    }

    fn C_FindObjects(session: Session, list: *mut Handle, max: CK_ULONG, count: Length) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        require(!list.is_null() && !count.is_null(), CKR_ARGUMENTS_BAD)?;
        let found = session.find(usize::try_from(max).unwrap_or(usize::MAX))?;
        raw::write(count, max)?;
        raw::write_list(list, count, &found)
    }

    fn C_FindObjectsFinal(session: Session) {
        InSession::new(&*module::state()?, session)?.find_final()
    }

    fn C_DigestInit(session: Session, mechanism: *mut CK_MECHANISM) {
        let state = module::state()?;
        InSession::new(&state, session)?.digest_init(raw::mechanism(mechanism)?)
    }

    fn C_Digest(session: Session, data: Bytes, length: CK_ULONG, out: Bytes, out_length: Length) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_DIGEST, |session| {
            let data = raw::bytes(data, length)?;
            raw::output(out, out_length, |room| session.digest(data, room))
        })
    }

    fn C_DigestUpdate(session: Session, data: Bytes, length: CK_ULONG) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_DIGEST, |session| {
            session.digest_update(raw::bytes(data, length)?)
        })
    }

    fn C_DigestKey(session: Session, key: Handle) {
        let state = module::state()?;
        InSession::new(&state, session)?.digest_key(key)
    }

    fn C_DigestFinal(session: Session, out: Bytes, out_length: Length) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_DIGEST, |session| {
            raw::output(out, out_length, |room| session.digest(&[], room))
        })
    }

    fn C_SignInit(session: Session, mechanism: *mut CK_MECHANISM, key: Handle) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        session.signature_init(Purpose::Sign, raw::mechanism(mechanism)?, key)
    }

    fn C_Sign(session: Session, data: Bytes, length: CK_ULONG, out: Bytes, out_length: Length) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_SIGN, |session| {
            let data = raw::bytes(data, length)?;
            raw::output(out, out_length, |room| session.sign(data, room))
        })
    }

    fn C_SignUpdate(session: Session, data: Bytes, length: CK_ULONG) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_SIGN, |session| {
            session.signature_update(Purpose::Sign, raw::bytes(data, length)?)
        })
    }

    fn C_SignFinal(session: Session, out: Bytes, out_length: Length) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_SIGN, |session| {
            raw::output(out, out_length, |room| session.sign_final(room))
        })
    }

    fn C_VerifyInit(session: Session, mechanism: *mut CK_MECHANISM, key: Handle) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        session.signature_init(Purpose::Verify, raw::mechanism(mechanism)?, key)
    }

    fn C_Verify(
        session: Session,
        data: Bytes,
        length: CK_ULONG,
        signature: Bytes,
        signature_length: CK_ULONG
    ) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_VERIFY, |session| {
            session.verify(raw::bytes(data, length)?, raw::bytes(signature, signature_length)?)
        })
    }

    fn C_VerifyUpdate(session: Session, data: Bytes, length: CK_ULONG) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_VERIFY, |session| {
            session.signature_update(Purpose::Verify, raw::bytes(data, length)?)
        })
    }

    fn C_VerifyFinal(session: Session, signature: Bytes, length: CK_ULONG) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_VERIFY, |session| {
            session.verify_final(raw::bytes(signature, length)?)
        })
    }

    fn C_CreateObject(session: Session, template: *mut CK_ATTRIBUTE, count: CK_ULONG, object: *mut Handle) {
        let state = module::state()?;
        InSession::new(&state, session)?;
        require(!object.is_null(), CKR_ARGUMENTS_BAD)?;
        let created = objects::create(&raw::template(template, count)?, session)?;
        let [handle] = state.add(session, [created])?;
        raw::write(object, handle)
    }

    fn C_CopyObject(
        session: Session,
        object: Handle,
        template: *mut CK_ATTRIBUTE,
        count: CK_ULONG,
        copy: *mut Handle
    ) {
        let state = module::state()?;
        let called = InSession::new(&state, session)?;
        require(!copy.is_null(), CKR_ARGUMENTS_BAD)?;
        let copied = called.copy(object, &raw::template(template, count)?, session)?;
        let [handle] = state.add(session, [copied])?;
        raw::write(copy, handle)
    }

    fn C_DestroyObject(session: Session, object: Handle) {
        InSession::new(&*module::state()?, session)?.destroy(object)
    }

    fn C_SetAttributeValue(session: Session, object: Handle, template: *mut CK_ATTRIBUTE, count: CK_ULONG) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        session.change(object, &raw::template(template, count)?)
    }

    fn C_GenerateKey(
        session: Session,
        mechanism: *mut CK_MECHANISM,
        template: *mut CK_ATTRIBUTE,
        count: CK_ULONG,
        key: *mut Handle
    ) {
        let state = module::state()?;
        let called = InSession::new(&state, session)?;
        require(!key.is_null(), CKR_ARGUMENTS_BAD)?;
        let mechanism = raw::mechanism(mechanism)?.ok_or(Failure(CKR_ARGUMENTS_BAD))?;
        let template = raw::template(template, count)?;
        if is_of_session(&template)? {
            let [handle] = state.add(session, [generate_secret(&mechanism, &template, session)?])?;
            return raw::write(key, handle);
        }
        let made = called.create_key(&generate::secret_key(&mechanism, &template)?)?;
        raw::write(key, handle_of(&made, CKO_SECRET_KEY)?)
    }

    fn C_GenerateKeyPair(
        session: Session,
        mechanism: *mut CK_MECHANISM,
        public_template: *mut CK_ATTRIBUTE,
        public_count: CK_ULONG,
        private_template: *mut CK_ATTRIBUTE,
        private_count: CK_ULONG,
        public: *mut Handle,
        private: *mut Handle
    ) {
        let state = module::state()?;
        let called = InSession::new(&state, session)?;
        require(!public.is_null() && !private.is_null(), CKR_ARGUMENTS_BAD)?;
        let mechanism = raw::mechanism(mechanism)?.ok_or(Failure(CKR_ARGUMENTS_BAD))?;
        let public_template = raw::template(public_template, public_count)?;
        let private_template = raw::template(private_template, private_count)?;
        if is_of_session(&private_template)? {
            let pair = generate_pair(&mechanism, &public_template, &private_template, session)?;
            let [public_handle, private_handle] = state.add(session, pair)?;
            raw::write(public, public_handle)?;
            return raw::write(private, private_handle);
        }
        let made = called.create_key(&generate::key_pair(&mechanism, &public_template, &private_template)?)?;
        raw::write(public, handle_of(&made, CKO_PUBLIC_KEY)?)?;
        raw::write(private, handle_of(&made, CKO_PRIVATE_KEY)?)
    }

    fn C_DeriveKey(
        session: Session,
        mechanism: *mut CK_MECHANISM,
        base: Handle,
        template: *mut CK_ATTRIBUTE,
        count: CK_ULONG,
        key: *mut Handle
    ) {
        let state = module::state()?;
        let called = InSession::new(&state, session)?;
        require(!key.is_null(), CKR_ARGUMENTS_BAD)?;
        let mechanism = raw::mechanism(mechanism)?.ok_or(Failure(CKR_ARGUMENTS_BAD))?;
        let template = raw::template(template, count)?;
        let derived = called.derive(mechanism, base, &template, session)?;
        let [handle] = state.add(session, [derived])?;
        raw::write(key, handle)
    }

    fn C_WrapKey(
        session: Session,
        mechanism: *mut CK_MECHANISM,
        wrapping: Handle,
        key: Handle,
        out: Bytes,
        out_length: Length
    ) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        let mechanism = raw::mechanism(mechanism)?.ok_or(Failure(CKR_ARGUMENTS_BAD))?;
        raw::output(out, out_length, |room| session.wrap(mechanism, wrapping, key, room))
    }

    fn C_UnwrapKey(
        session: Session,
        mechanism: *mut CK_MECHANISM,
        unwrapping: Handle,
        wrapped: Bytes,
        length: CK_ULONG,
        template: *mut CK_ATTRIBUTE,
        count: CK_ULONG,
        key: *mut Handle
    ) {
        let state = module::state()?;
        let called = InSession::new(&state, session)?;
        require(!key.is_null(), CKR_ARGUMENTS_BAD)?;
        let mechanism = raw::mechanism(mechanism)?.ok_or(Failure(CKR_ARGUMENTS_BAD))?;
        let (wrapped, template) = (raw::bytes(wrapped, length)?, raw::template(template, count)?);
        let unwrapped = called.unwrap(mechanism, unwrapping, wrapped, &template, session)?;
        let [handle] = state.add(session, [unwrapped])?;
        raw::write(key, handle)
    }

    fn C_EncryptInit(session: Session, mechanism: *mut CK_MECHANISM, key: Handle) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        session.cipher_init(Direction::Encrypt, raw::mechanism(mechanism)?, key)
    }

    fn C_Encrypt(session: Session, data: Bytes, length: CK_ULONG, out: Bytes, out_length: Length) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_ENCRYPT, |session| {
            let data = raw::bytes(data, length)?;
            raw::output(out, out_length, |room| session.cipher(Direction::Encrypt, data, room))
        })
    }

    fn C_EncryptUpdate(session: Session, data: Bytes, length: CK_ULONG, out: Bytes, out_length: Length) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_ENCRYPT, |session| {
            let data = raw::bytes(data, length)?;
            raw::output(out, out_length, |room| session.cipher_update(Direction::Encrypt, data, room))
        })
    }

    fn C_EncryptFinal(session: Session, out: Bytes, out_length: Length) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_ENCRYPT, |session| {
            raw::output(out, out_length, |room| session.cipher(Direction::Encrypt, &[], room))
        })
    }

    fn C_MessageEncryptInit(session: Session, mechanism: *mut CK_MECHANISM, key: Handle) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        session.messages_init(Direction::Encrypt, raw::mechanism_without_parameters(mechanism)?, key)
    }

    fn C_MessageEncryptFinal(session: Session) {
        InSession::new(&*module::state()?, session)?.messages_final(Direction::Encrypt)
    }

    fn C_DecryptInit(session: Session, mechanism: *mut CK_MECHANISM, key: Handle) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        session.cipher_init(Direction::Decrypt, raw::mechanism(mechanism)?, key)
    }

    fn C_Decrypt(session: Session, data: Bytes, length: CK_ULONG, out: Bytes, out_length: Length) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_DECRYPT, |session| {
            let data = raw::bytes(data, length)?;
            raw::output(out, out_length, |room| session.cipher(Direction::Decrypt, data, room))
        })
    }

    fn C_DecryptUpdate(session: Session, data: Bytes, length: CK_ULONG, out: Bytes, out_length: Length) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_DECRYPT, |session| {
            let data = raw::bytes(data, length)?;
            raw::output(out, out_length, |room| session.cipher_update(Direction::Decrypt, data, room))
        })
    }

    fn C_DecryptFinal(session: Session, out: Bytes, out_length: Length) {
        let state = module::state()?;
        InSession::new(&state, session)?.ending(CKF_DECRYPT, |session| {
            raw::output(out, out_length, |room| session.cipher(Direction::Decrypt, &[], room))
        })
    }

    fn C_MessageDecryptInit(session: Session, mechanism: *mut CK_MECHANISM, key: Handle) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        session.messages_init(Direction::Decrypt, raw::mechanism_without_parameters(mechanism)?, key)
    }

    fn C_MessageDecryptFinal(session: Session) {
        InSession::new(&*module::state()?, session)?.messages_final(Direction::Decrypt)
    }

    fn C_EncryptMessage(
        session: Session,
        parameters: *mut c_void,
        parameters_length: CK_ULONG,
        associated_data: Bytes,
        associated_data_length: CK_ULONG,
        plaintext: Bytes,
        plaintext_length: CK_ULONG,
        out: Bytes,
        out_length: Length
    ) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        session.message_key(Direction::Encrypt)?;
        let message = raw::message_parameters(parameters, parameters_length)?;
        // The program cannot choose the nonce, nor a part of it.
        let is_free = message.ivGenerator != CKG_NO_GENERATE && message.ulIvFixedBits == 0;
        require(is_free, CKR_MECHANISM_PARAM_INVALID)?;
        let associated_data = raw::bytes(associated_data, associated_data_length)?;
        let plaintext = raw::bytes(plaintext, plaintext_length)?;
        raw::output(out, out_length, |room| {
            if let Some(reply) = without_room(room, plaintext.len()) {
                return Ok(reply);
            }
            let made = session.encrypt_message(plaintext, associated_data)?;
            raw::fill(message.pIv, message.ulIvLen, |out| copy(out, &made.nonce))?;
            raw::fill(message.pTag, message.ulTagBits / 8, |out| copy(out, &made.tag))?;
            Ok(Reply::Bytes(made.ciphertext.into()))
        })
    }

    fn C_DecryptMessage(
        session: Session,
        parameters: *mut c_void,
        parameters_length: CK_ULONG,
        associated_data: Bytes,
        associated_data_length: CK_ULONG,
        ciphertext: Bytes,
        ciphertext_length: CK_ULONG,
        out: Bytes,
        out_length: Length
    ) {
        let state = module::state()?;
        let session = InSession::new(&state, session)?;
        session.message_key(Direction::Decrypt)?;
        let message = raw::message_parameters(parameters, parameters_length)?;
        let associated_data = raw::bytes(associated_data, associated_data_length)?;
        let ciphertext = raw::bytes(ciphertext, ciphertext_length)?;
        let nonce = raw::bytes(message.pIv, message.ulIvLen)?;
        let tag = raw::bytes(message.pTag, message.ulTagBits / 8)?;
        raw::output(out, out_length, |room| {
            if let Some(reply) = without_room(room, ciphertext.len()) {
                return Ok(reply);
            }
            session.decrypt_message(&[nonce, ciphertext, tag].concat(), associated_data).map(Reply::Bytes)
        })
    }

    fn C_SeedRandom(session: Session, seed: Bytes, length: CK_ULONG) {
        module::state()?.session(session)?;
        raw::bytes(seed, length)?;
        fail(CKR_RANDOM_SEED_NOT_SUPPORTED)
    }

    fn C_GenerateRandom(session: Session, out: Bytes, length: CK_ULONG) {
        module::state()?.session(session)?;
        raw::fill(out, length, |out| getrandom::fill(out).map_err(|_| Failure(CKR_DEVICE_ERROR)))
    }

    fn C_GetFunctionStatus(_session: Session) {
        module::state()?;
        fail(CKR_FUNCTION_NOT_PARALLEL)
    }

    fn C_CancelFunction(_session: Session) {
        module::state()?;
        fail(CKR_FUNCTION_NOT_PARALLEL)
    }

    fn C_WaitForSlotEvent(flags: CK_FLAGS, _slot: *mut CK_SLOT_ID, reserved: *mut c_void) {
        module::state()?;
        require(reserved.is_null(), CKR_ARGUMENTS_BAD)?;
        // Slots never change, so nobody may wait for that.
        fail(if flags & CKF_DONT_BLOCK != 0 { CKR_NO_EVENT } else { CKR_FUNCTION_NOT_SUPPORTED })
    }
}

unsupported! {
    C_InitToken(CK_SLOT_ID, Bytes, CK_ULONG, Bytes);
    C_InitPIN(Session, Bytes, CK_ULONG);
    C_SetPIN(Session, Bytes, CK_ULONG, Bytes, CK_ULONG);
    C_GetOperationState(Session, Bytes, Length);
    C_SetOperationState(Session, Bytes, CK_ULONG, Handle, Handle);
    C_SignRecoverInit(Session, *mut CK_MECHANISM, Handle);
    C_SignRecover(Session, Bytes, CK_ULONG, Bytes, Length);
    C_VerifyRecoverInit(Session, *mut CK_MECHANISM, Handle);
    C_VerifyRecover(Session, Bytes, CK_ULONG, Bytes, Length);
    C_DigestEncryptUpdate(Session, Bytes, CK_ULONG, Bytes, Length);
    C_DecryptDigestUpdate(Session, Bytes, CK_ULONG, Bytes, Length);
    C_SignEncryptUpdate(Session, Bytes, CK_ULONG, Bytes, Length);
    C_DecryptVerifyUpdate(Session, Bytes, CK_ULONG, Bytes, Length);
    C_EncryptMessageBegin(Session, *mut c_void, CK_ULONG, Bytes, CK_ULONG);
    C_EncryptMessageNext(Session, *mut c_void, CK_ULONG, Bytes, CK_ULONG, Bytes, Length, CK_FLAGS);
    C_DecryptMessageBegin(Session, *mut c_void, CK_ULONG, Bytes, CK_ULONG);
    C_DecryptMessageNext(Session, *mut c_void, CK_ULONG, Bytes, CK_ULONG, Bytes, Length, CK_FLAGS);
    C_MessageSignInit(Session, *mut CK_MECHANISM, Handle);
    C_SignMessage(Session, *mut c_void, CK_ULONG, Bytes, CK_ULONG, Bytes, Length);
    C_SignMessageBegin(Session, *mut c_void, CK_ULONG);
    C_SignMessageNext(Session, *mut c_void, CK_ULONG, Bytes, CK_ULONG, Bytes, Length);
    C_MessageSignFinal(Session);
    C_MessageVerifyInit(Session, *mut CK_MECHANISM, Handle);
    C_VerifyMessage(Session, *mut c_void, CK_ULONG, Bytes, CK_ULONG, Bytes, CK_ULONG);
    C_VerifyMessageBegin(Session, *mut c_void, CK_ULONG);
    C_VerifyMessageNext(Session, *mut c_void, CK_ULONG, Bytes, CK_ULONG, Bytes, CK_ULONG);
    C_MessageVerifyFinal(Session);
}

/// Gives the table of functions of PKCS #11 2.40.
///
/// # Safety
/// If it is not NULL, a pointer is writable at `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_GetFunctionList(list: *mut *mut CK_FUNCTION_LIST) -> CK_RV {
    // SAFETY: the caller's promise.
    call("C_GetFunctionList", || unsafe { raw::write(list, (&raw const LIST_2_40).cast_mut()) })
}

/// Lists the tables of functions: of PKCS #11 3.0 and of 2.40.
///
/// # Safety
/// If `count` is not NULL, a number is readable and writable there. If `list` is not NULL, that
/// many elements are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_GetInterfaceList(list: *mut CK_INTERFACE, count: *mut CK_ULONG) -> CK_RV {
    // SAFETY: the caller's promise.
    call("C_GetInterfaceList", || unsafe { raw::write_list(list, count, &*INTERFACES.0.get()) })
}

/// Gives a table of functions. Without a version it is that of PKCS #11 3.0.
///
/// # Safety
/// If they are not NULL, `name` is a C string, `version` is readable, and `interface` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_GetInterface(
    name: *mut CK_UTF8CHAR,
    version: *mut CK_VERSION,
    interface: *mut *mut CK_INTERFACE,
    flags: CK_FLAGS,
) -> CK_RV {
    // SAFETY: the caller's promise.
    call("C_GetInterface", || unsafe {
        let is_named = name.is_null() || raw::is_text(name, INTERFACE_NAME);
        let version = if version.is_null() { None } else { Some(raw::read(version)?) };
        let place = match version {
            None | Some(CK_VERSION { major: 3, minor: 0 }) => 0,
            Some(CK_VERSION { major: 2, minor: 40 }) => 1,
            Some(_) => return fail(CKR_FUNCTION_FAILED),
        };
        // No table works on in a child with the parent's sessions.
        require(is_named && flags == 0, CKR_FUNCTION_FAILED)?;
        raw::write(interface, INTERFACES.0.get().cast::<CK_INTERFACE>().add(place))
    })
}

const INTERFACE_NAME: &std::ffi::CStr = c"PKCS 11";

/// Tables that all threads may read. A program may also put a table of its own in the place of one:
/// pkcs11-spy of OpenSC does so, to show the calls of another program.
struct Interfaces(UnsafeCell<[CK_INTERFACE; 2]>);

// SAFETY: the module writes neither to these, nor to what their pointers point to. A program that
// writes to them does not ask for them at the same time.
unsafe impl Sync for Interfaces {}

const fn interface<T>(table: &'static T) -> CK_INTERFACE {
    CK_INTERFACE {
        pInterfaceName: INTERFACE_NAME.as_ptr().cast_mut().cast(),
        pFunctionList: (&raw const *table).cast_mut().cast(),
        flags: 0,
    }
}

static INTERFACES: Interfaces = Interfaces(UnsafeCell::new([interface(&LIST_3_0), interface(&LIST_2_40)]));

/// Makes a table of the functions that both versions have, and of others.
macro_rules! table {
    ($type:ident, ($major:literal, $minor:literal), $($other:ident)*) => {
        table!(@ $type, ($major, $minor),
            C_Initialize C_Finalize C_GetInfo C_GetFunctionList C_GetSlotList C_GetSlotInfo C_GetTokenInfo
            C_GetMechanismList C_GetMechanismInfo C_InitToken C_InitPIN C_SetPIN C_OpenSession
            C_CloseSession C_CloseAllSessions C_GetSessionInfo C_GetOperationState C_SetOperationState
            C_Login C_Logout C_CreateObject C_CopyObject C_DestroyObject C_GetObjectSize
            C_GetAttributeValue C_SetAttributeValue C_FindObjectsInit C_FindObjects C_FindObjectsFinal
            C_EncryptInit C_Encrypt C_EncryptUpdate C_EncryptFinal C_DecryptInit C_Decrypt C_DecryptUpdate
            C_DecryptFinal C_DigestInit C_Digest C_DigestUpdate C_DigestKey C_DigestFinal C_SignInit
            C_Sign C_SignUpdate C_SignFinal C_SignRecoverInit C_SignRecover C_VerifyInit C_Verify
            C_VerifyUpdate C_VerifyFinal C_VerifyRecoverInit C_VerifyRecover C_DigestEncryptUpdate
            C_DecryptDigestUpdate C_SignEncryptUpdate C_DecryptVerifyUpdate C_GenerateKey
            C_GenerateKeyPair C_WrapKey C_UnwrapKey C_DeriveKey C_SeedRandom C_GenerateRandom
            C_GetFunctionStatus C_CancelFunction C_WaitForSlotEvent $($other)*)
    };
    (@ $type:ident, ($major:literal, $minor:literal), $($name:ident)*) => {
        $type { version: CK_VERSION { major: $major, minor: $minor }, $($name: Some($name)),* }
    };
}

static LIST_2_40: CK_FUNCTION_LIST = table!(CK_FUNCTION_LIST, (2, 40),);

static LIST_3_0: CK_FUNCTION_LIST_3_0 = table!(CK_FUNCTION_LIST_3_0, (3, 0),
    C_GetInterfaceList C_GetInterface C_LoginUser C_SessionCancel C_MessageEncryptInit C_EncryptMessage
    C_EncryptMessageBegin C_EncryptMessageNext C_MessageEncryptFinal C_MessageDecryptInit C_DecryptMessage
    C_DecryptMessageBegin C_DecryptMessageNext C_MessageDecryptFinal C_MessageSignInit C_SignMessage
    C_SignMessageBegin C_SignMessageNext C_MessageSignFinal C_MessageVerifyInit C_VerifyMessage
    C_VerifyMessageBegin C_VerifyMessageNext C_MessageVerifyFinal
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code() {
        assert_eq!(call("C_Sign", || panic!("broken")), CKR_GENERAL_ERROR);
    }

    #[test]
    fn null_is_an_argument_that_is_bad() {
        // SAFETY: NULL is allowed everywhere.
        let codes = unsafe {
            [
                C_GetFunctionList(std::ptr::null_mut()),
                C_GetInterfaceList(std::ptr::null_mut(), std::ptr::null_mut()),
                C_GetInterface(std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut(), 0),
            ]
        };
        assert_eq!(codes, [CKR_ARGUMENTS_BAD; 3]);
    }
}
