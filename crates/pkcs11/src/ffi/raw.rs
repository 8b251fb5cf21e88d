//! The program's memory: what a call's pointers point to, read and written.
//!
//! Nothing can tell whether memory is really there and really that long: that remains the program's
//! promise, as PKCS #11 states it. So the functions here are unsafe, and their callers pass that
//! promise on. What can be checked is checked: NULL, lengths that no object has, and the length of
//! a mechanism's parameters. No pointer needs to be aligned.

use std::ffi::{CStr, c_void};
use std::{ptr, slice};

use cryptoki_sys::*;

use crate::error::{Failure, Result, fail, require};
use crate::object::attributes::{Answer, Attribute, Wanted, check_unique};
use crate::operation::mechanism::{Mechanism, NONCE_LEN, Parameters, TAG_LEN};
use crate::reply::Reply;

/// The most attributes of a template. The standard has about 130.
const MAX_ATTRIBUTES: CK_ULONG = 1024;
/// The length of an attribute that a program cannot have.
const CK_UNAVAILABLE_INFORMATION: CK_ULONG = CK_ULONG::MAX;
/// The longest value that a program gives, and the most bytes of a template: a long certificate.
const MAX_VALUE_LEN: CK_ULONG = 1 << 20;

/// Bytes from a program. NULL is the same as no bytes only if the length is 0.
///
/// # Safety
/// If it is not NULL, `length` bytes are readable, and nobody writes to them during the call.
pub(crate) unsafe fn bytes<'a>(at: *const CK_BYTE, length: CK_ULONG) -> Result<&'a [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    let length = isize::try_from(length).map_err(|_| Failure(CKR_ARGUMENTS_BAD))?.unsigned_abs();
    require(!at.is_null() && at.addr().checked_add(length).is_some(), CKR_ARGUMENTS_BAD)?;
    // SAFETY: not NULL, and of a length that an object may have; the caller promised the rest.
    Ok(unsafe { slice::from_raw_parts(at, length) })
}

/// Reads a value.
///
/// # Safety
/// If it is not NULL, a `T` is readable there.
pub(crate) unsafe fn read<T: Copy>(at: *const T) -> Result<T> {
    require(!at.is_null(), CKR_ARGUMENTS_BAD)?;
    // SAFETY: not NULL; the caller promised the rest.
    Ok(unsafe { at.read_unaligned() })
}

/// Writes a value.
///
/// # Safety
/// If it is not NULL, a `T` is writable there.
pub(crate) unsafe fn write<T>(at: *mut T, value: T) -> Result<()> {
    require(!at.is_null(), CKR_ARGUMENTS_BAD)?;
    // SAFETY: not NULL; the caller promised the rest.
    unsafe { at.write_unaligned(value) };
    Ok(())
}

/// Fills memory with what `fill` makes.
///
/// # Safety
/// If it is not NULL, `length` bytes are writable, and nobody else uses them during the call.
pub(crate) unsafe fn fill(
    at: *mut CK_BYTE,
    length: CK_ULONG,
    fill: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<()> {
    if length == 0 {
        return Ok(());
    }
    let length = isize::try_from(length).map_err(|_| Failure(CKR_ARGUMENTS_BAD))?.unsigned_abs();
    require(!at.is_null() && at.addr().checked_add(length).is_some(), CKR_ARGUMENTS_BAD)?;
    // SAFETY: not NULL, and of a length that an object may have; the caller promised the rest.
    fill(unsafe { slice::from_raw_parts_mut(at, length) })
}

/// Writes a list by the rule for lists: without memory only its length, and nothing if there is not
/// enough memory.
///
/// # Safety
/// If `count` is not NULL, a number is readable and writable there. If `at` is not NULL, that many
/// elements are writable.
pub(crate) unsafe fn write_list<T: Copy>(at: *mut T, count: *mut CK_ULONG, list: &[T]) -> Result<()> {
    // SAFETY: the caller's promise.
    let room = unsafe { read(count) }?;
    // SAFETY: as above.
    unsafe { write(count, list.len() as CK_ULONG) }?;
    if at.is_null() {
        return Ok(());
    }
    require(room >= list.len() as CK_ULONG, CKR_BUFFER_TOO_SMALL)?;
    // SAFETY: the caller promised `room` elements, and they are enough. As bytes, they need not be
    // aligned.
    unsafe { ptr::copy_nonoverlapping(list.as_ptr().cast::<u8>(), at.cast::<u8>(), size_of_val(list)) };
    Ok(())
}

/// Gets a result of a length that the program may not know, and writes it. `make` gets the room
/// that there is, none if the program only asks for the length.
///
/// # Safety
/// As for [`write_list`].
pub(crate) unsafe fn output(
    at: *mut CK_BYTE,
    length: *mut CK_ULONG,
    make: impl FnOnce(Option<usize>) -> Result<Reply>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let room = unsafe { read(length) }?;
    let room = (!at.is_null()).then(|| usize::try_from(room).unwrap_or(usize::MAX));
    match make(room)? {
        // SAFETY: as above.
        Reply::Length(needed) => unsafe { write(length, needed as CK_ULONG) },
        Reply::TooSmall(needed) => {
            // SAFETY: as above.
            unsafe { write(length, needed as CK_ULONG) }?;
            fail(CKR_BUFFER_TOO_SMALL)
        }
        Reply::Bytes(made) => {
            require(room.is_some_and(|room| room >= made.len()), CKR_GENERAL_ERROR)?;
            // SAFETY: the caller promised `room` bytes, and they are enough.
            unsafe { ptr::copy_nonoverlapping(made.as_ptr(), at, made.len()) };
            // SAFETY: as above.
            unsafe { write(length, made.len() as CK_ULONG) }
        }
    }
}

/// A template of an object. No attribute is there twice.
///
/// # Safety
/// As for [`attributes`].
pub(crate) unsafe fn template(at: *const CK_ATTRIBUTE, count: CK_ULONG) -> Result<Vec<Attribute>> {
    // SAFETY: the caller's promise.
    let template = unsafe { attributes(at, count) }?;
    check_unique(&template)?;
    Ok(template)
}

/// Attributes with their values.
///
/// # Safety
/// If it is not NULL, `count` attributes are readable, and so are their values.
pub(crate) unsafe fn attributes(at: *const CK_ATTRIBUTE, count: CK_ULONG) -> Result<Vec<Attribute>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    require(!at.is_null() && count <= MAX_ATTRIBUTES, CKR_ARGUMENTS_BAD)?;
    let mut left = MAX_VALUE_LEN;
    let one = |place: usize| {
        // SAFETY: the caller promised `count` attributes.
        let CK_ATTRIBUTE { type_, pValue, ulValueLen } = unsafe { read(at.wrapping_add(place)) }?;
        left = left.checked_sub(ulValueLen).ok_or(Failure(CKR_ATTRIBUTE_VALUE_INVALID))?;
        require(ulValueLen == 0 || !pValue.is_null(), CKR_ATTRIBUTE_VALUE_INVALID)?;
        // SAFETY: the caller promised the value.
        let value = unsafe { bytes(pValue.cast(), ulValueLen) }?;
        Ok(Attribute::new(type_, value))
    };
    (0..count as usize).map(one).collect()
}

/// Asks for the attributes of a template, and writes them into it. Each attribute that cannot be
/// given gets the length `CK_UNAVAILABLE_INFORMATION`, and the others their values.
///
/// # Safety
/// If it is not NULL, `count` attributes are readable and writable. Each value that is not NULL has
/// the length that its attribute says.
pub(crate) unsafe fn answer_attributes(
    at: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
    answer: impl Fn(Wanted) -> Answer,
) -> Result<()> {
    require(!at.is_null() && count <= MAX_ATTRIBUTES, CKR_ARGUMENTS_BAD)?;
    let mut result = Ok(());
    for place in 0..count as usize {
        let at = at.wrapping_add(place);
        // SAFETY: the caller promised `count` attributes.
        let mut attribute = unsafe { read(at) }?;
        let room = (!attribute.pValue.is_null())
            .then(|| usize::try_from(attribute.ulValueLen).unwrap_or(usize::MAX));
        let code = match answer(Wanted { kind: attribute.type_, room }) {
            Answer::Length(length) => {
                attribute.ulValueLen = length as CK_ULONG;
                CKR_OK
            }
            Answer::Value(value) => {
                require(room.is_some_and(|room| room >= value.len()), CKR_GENERAL_ERROR)?;
                // SAFETY: the caller promised `room` bytes, and they are enough.
                unsafe { ptr::copy_nonoverlapping(value.as_ptr(), attribute.pValue.cast(), value.len()) };
                attribute.ulValueLen = value.len() as CK_ULONG;
                CKR_OK
            }
            Answer::Unavailable(code) => {
                attribute.ulValueLen = CK_UNAVAILABLE_INFORMATION;
                code
            }
        };
        // SAFETY: as above.
        unsafe { write(at, attribute) }?;
        if code != CKR_OK {
            result = fail(code);
        }
    }
    result
}

/// A mechanism with its parameters; none for NULL.
///
/// # Safety
/// If it is not NULL, a mechanism is readable, and so are its parameters.
pub(crate) unsafe fn mechanism(at: *const CK_MECHANISM) -> Result<Option<Mechanism>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller promised a mechanism.
    let CK_MECHANISM { mechanism: kind, pParameter, ulParameterLen } = unsafe { read(at) }?;
    // SAFETY: the caller promised the parameters.
    let parameters = unsafe { parameters(kind, pParameter, ulParameterLen) }?;
    Ok(Some(Mechanism { kind, parameters }))
}

/// The mechanism of operations with messages: each message has its own parameters.
///
/// # Safety
/// If it is not NULL, a mechanism is readable.
pub(crate) unsafe fn mechanism_without_parameters(at: *const CK_MECHANISM) -> Result<Option<Mechanism>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller promised a mechanism.
    let CK_MECHANISM { mechanism: kind, .. } = unsafe { read(at) }?;
    Ok(Some(Mechanism { kind, parameters: Parameters::None }))
}

/// # Safety
/// The parameters of the mechanism are readable.
unsafe fn parameters(kind: CK_MECHANISM_TYPE, at: *const c_void, length: CK_ULONG) -> Result<Parameters> {
    if length == 0 {
        return Ok(Parameters::None);
    }
    match kind {
        CKM_RSA_PKCS_PSS
        | CKM_SHA1_RSA_PKCS_PSS
        | CKM_SHA224_RSA_PKCS_PSS
        | CKM_SHA256_RSA_PKCS_PSS
        | CKM_SHA384_RSA_PKCS_PSS
        | CKM_SHA512_RSA_PKCS_PSS => {
            // SAFETY: the caller's promise.
            let pss: CK_RSA_PKCS_PSS_PARAMS = unsafe { parameter(at, length) }?;
            Ok(Parameters::Pss { hash: pss.hashAlg, mgf: pss.mgf, salt_length: pss.sLen })
        }
        CKM_RSA_PKCS_OAEP => {
            // SAFETY: the caller's promise.
            let oaep: CK_RSA_PKCS_OAEP_PARAMS = unsafe { parameter(at, length) }?;
            let is_known = oaep.source == CKZ_DATA_SPECIFIED || oaep.ulSourceDataLen == 0;
            require(is_known, CKR_MECHANISM_PARAM_INVALID)?;
            // SAFETY: the caller's promise.
            let label = unsafe { bounded(oaep.pSourceData.cast(), oaep.ulSourceDataLen) }?;
            Ok(Parameters::Oaep { hash: oaep.hashAlg, mgf: oaep.mgf, label })
        }
        CKM_AES_GCM => {
            // SAFETY: the caller's promise.
            let gcm: CK_GCM_PARAMS = unsafe { parameter(at, length) }?;
            // SAFETY: the caller's promise.
            let nonce = unsafe { bounded(gcm.pIv, gcm.ulIvLen) }?;
            // SAFETY: the caller's promise.
            let associated_data = unsafe { bounded(gcm.pAAD, gcm.ulAADLen) }?;
            Ok(Parameters::Gcm { nonce, associated_data, tag_bits: gcm.ulTagBits })
        }
        CKM_AES_CBC | CKM_AES_CBC_PAD => {
            // SAFETY: the caller's promise.
            Ok(Parameters::Iv(unsafe { parameter(at, length) }?))
        }
        CKM_AES_CTR => {
            // SAFETY: the caller's promise.
            let counter: CK_AES_CTR_PARAMS = unsafe { parameter(at, length) }?;
            Ok(Parameters::Counter { bits: counter.ulCounterBits, first: counter.cb })
        }
        CKM_AES_ECB_ENCRYPT_DATA => {
            // SAFETY: the caller's promise.
            let string: CK_KEY_DERIVATION_STRING_DATA = unsafe { parameter(at, length) }?;
            // SAFETY: the caller's promise.
            let data = unsafe { bounded(string.pData, string.ulLen) }?;
            Ok(Parameters::Data { iv: None, data })
        }
        CKM_AES_CBC_ENCRYPT_DATA => {
            // SAFETY: the caller's promise.
            let cbc: CK_AES_CBC_ENCRYPT_DATA_PARAMS = unsafe { parameter(at, length) }?;
            // SAFETY: the caller's promise.
            let data = unsafe { bounded(cbc.pData, cbc.length) }?;
            Ok(Parameters::Data { iv: Some(cbc.iv), data })
        }
        CKM_ECDH1_DERIVE => {
            // SAFETY: the caller's promise.
            let ecdh: CK_ECDH1_DERIVE_PARAMS = unsafe { parameter(at, length) }?;
            // SAFETY: the caller's promise.
            let shared_data = unsafe { bounded(ecdh.pSharedData, ecdh.ulSharedDataLen) }?;
            // SAFETY: the caller's promise.
            let public_data = unsafe { bounded(ecdh.pPublicData, ecdh.ulPublicDataLen) }?;
            Ok(Parameters::Ecdh { kdf: ecdh.kdf, shared_data, public_data })
        }
        _ => Ok(Parameters::Unknown),
    }
}

/// Bytes of a parameter.
///
/// # Safety
/// As for [`bytes`].
unsafe fn bounded(at: *const CK_BYTE, length: CK_ULONG) -> Result<Vec<u8>> {
    require(length <= MAX_VALUE_LEN, CKR_MECHANISM_PARAM_INVALID)?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(at, length) }.map_err(|_| Failure(CKR_MECHANISM_PARAM_INVALID))?;
    Ok(bytes.to_vec())
}

/// The parameters of a message of AES-GCM.
///
/// # Safety
/// If it is not NULL, `length` bytes are readable.
pub(crate) unsafe fn message_parameters(
    at: *const c_void,
    length: CK_ULONG,
) -> Result<CK_GCM_MESSAGE_PARAMS> {
    // SAFETY: the caller's promise.
    let message: CK_GCM_MESSAGE_PARAMS = unsafe { parameter(at, length) }?;
    let fits = message.ulIvLen == NONCE_LEN as CK_ULONG && message.ulTagBits == 8 * TAG_LEN as CK_ULONG;
    let is_there = !message.pIv.is_null() && !message.pTag.is_null();
    require(fits && is_there, CKR_MECHANISM_PARAM_INVALID)?;
    Ok(message)
}

/// Reads parameters that have exactly the length of their type.
///
/// # Safety
/// If it is not NULL, `length` bytes are readable.
unsafe fn parameter<T: Copy>(at: *const c_void, length: CK_ULONG) -> Result<T> {
    require(!at.is_null() && length == size_of::<T>() as CK_ULONG, CKR_MECHANISM_PARAM_INVALID)?;
    // SAFETY: the length is that of the type; the caller promised the rest.
    unsafe { read(at.cast()) }
}

/// The arguments of `C_Initialize`, checked.
///
/// # Safety
/// If it is not NULL, a `CK_C_INITIALIZE_ARGS` is readable.
pub(crate) unsafe fn check_initialize_args(at: *const CK_C_INITIALIZE_ARGS) -> Result<()> {
    if at.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let args = unsafe { read(at) }?;
    require(args.pReserved.is_null(), CKR_ARGUMENTS_BAD)?;
    let functions = [
        args.CreateMutex.is_some(),
        args.DestroyMutex.is_some(),
        args.LockMutex.is_some(),
        args.UnlockMutex.is_some(),
    ];
    // The module locks by the operating system, whatever functions a program has.
    require(functions.iter().all(|is_there| *is_there == functions[0]), CKR_ARGUMENTS_BAD)
}

/// Whether a C string is this text.
///
/// # Safety
/// It ends with a zero byte.
pub(crate) unsafe fn is_text(at: *const CK_UTF8CHAR, text: &CStr) -> bool {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(at.cast()) == text }
}
