//! Hostile calls: no pointer, no such handle, buffers too short, calls out of order. Each gives one
//! of the standard's codes, and the module works as before.

use crate::compare_operations::plain;
use crate::session_keys::{logged_in, secret};
use crate::support::codes::name;
use crate::support::raw::{Module, Session, attribute, call};
use crate::support::{TOKEN, apart};
use cryptoki_sys::*;
use std::ptr::{null, null_mut};

/// Calls functions, and lists each one's name and code.
macro_rules! all {
    ($module:expr; $($name:ident($($argument:expr),*);)*) => {
        vec![$((stringify!($name), call!($module, $name($($argument),*))),)*]
    };
}

/// Calls every function of the table that could end in nothing but a code, with no pointer and a
/// length that says otherwise. Gives each function's name and its code.
pub(crate) fn call_all(
    module: &Module,
    session: CK_SESSION_HANDLE,
    slot: CK_SLOT_ID,
) -> Vec<(&'static str, CK_RV)> {
    [slots_and_objects(module, session, slot), operations(module, session)].concat()
}

fn slots_and_objects(module: &Module, s: CK_SESSION_HANDLE, slot: CK_SLOT_ID) -> Vec<(&'static str, CK_RV)> {
    all! { module;
        C_GetInfo(null_mut());
        C_GetFunctionList(null_mut());
        C_GetSlotList(CK_TRUE, null_mut(), null_mut());
        C_GetSlotInfo(slot, null_mut());
        C_GetTokenInfo(slot, null_mut());
        C_GetMechanismList(slot, null_mut(), null_mut());
        C_GetMechanismInfo(slot, CKM_ECDSA, null_mut());
        C_InitToken(slot, null_mut(), 9, null_mut());
        C_InitPIN(s, null_mut(), 9);
        C_SetPIN(s, null_mut(), 9, null_mut(), 9);
        C_OpenSession(slot, CKF_SERIAL_SESSION, null_mut(), None, null_mut());
        C_GetSessionInfo(s, null_mut());
        C_GetOperationState(s, null_mut(), null_mut());
        C_SetOperationState(s, null_mut(), 9, 0, 0);
        C_Login(s, CKU_USER, null_mut(), 9);
        C_CreateObject(s, null_mut(), 9, null_mut());
        C_CopyObject(s, 0, null_mut(), 9, null_mut());
        C_DestroyObject(s, 0);
        C_GetObjectSize(s, 0, null_mut());
        C_GetAttributeValue(s, 0, null_mut(), 9);
        C_SetAttributeValue(s, 0, null_mut(), 9);
        C_FindObjects(s, null_mut(), 9, null_mut());
        C_FindObjectsInit(s, null_mut(), 9);
        C_FindObjectsFinal(s);
        C_GetFunctionStatus(s);
        C_CancelFunction(s);
        C_WaitForSlotEvent(CKF_DONT_BLOCK, null_mut(), null_mut());
    }
}

fn operations(module: &Module, s: CK_SESSION_HANDLE) -> Vec<(&'static str, CK_RV)> {
    all! { module;
        C_EncryptInit(s, null_mut(), 0);
        C_Encrypt(s, null_mut(), 9, null_mut(), null_mut());
        C_EncryptUpdate(s, null_mut(), 9, null_mut(), null_mut());
        C_EncryptFinal(s, null_mut(), null_mut());
        C_DecryptInit(s, null_mut(), 0);
        C_Decrypt(s, null_mut(), 9, null_mut(), null_mut());
        C_DecryptUpdate(s, null_mut(), 9, null_mut(), null_mut());
        C_DecryptFinal(s, null_mut(), null_mut());
        C_DigestInit(s, null_mut());
        C_Digest(s, null_mut(), 9, null_mut(), null_mut());
        C_DigestUpdate(s, null_mut(), 9);
        C_DigestKey(s, 0);
        C_DigestFinal(s, null_mut(), null_mut());
        C_SignInit(s, null_mut(), 0);
        C_Sign(s, null_mut(), 9, null_mut(), null_mut());
        C_SignUpdate(s, null_mut(), 9);
        C_SignFinal(s, null_mut(), null_mut());
        C_SignRecoverInit(s, null_mut(), 0);
        C_SignRecover(s, null_mut(), 9, null_mut(), null_mut());
        C_VerifyInit(s, null_mut(), 0);
        C_Verify(s, null_mut(), 9, null_mut(), 9);
        C_VerifyUpdate(s, null_mut(), 9);
        C_VerifyFinal(s, null_mut(), 9);
        C_VerifyRecoverInit(s, null_mut(), 0);
        C_VerifyRecover(s, null_mut(), 9, null_mut(), null_mut());
        C_DigestEncryptUpdate(s, null_mut(), 9, null_mut(), null_mut());
        C_DecryptDigestUpdate(s, null_mut(), 9, null_mut(), null_mut());
        C_SignEncryptUpdate(s, null_mut(), 9, null_mut(), null_mut());
        C_DecryptVerifyUpdate(s, null_mut(), 9, null_mut(), null_mut());
        C_GenerateKey(s, null_mut(), null_mut(), 9, null_mut());
        C_GenerateKeyPair(s, null_mut(), null_mut(), 9, null_mut(), 9, null_mut(), null_mut());
        C_WrapKey(s, null_mut(), 0, 0, null_mut(), null_mut());
        C_UnwrapKey(s, null_mut(), 0, null_mut(), 9, null_mut(), 9, null_mut());
        C_DeriveKey(s, null_mut(), 0, null_mut(), 9, null_mut());
        C_SeedRandom(s, null_mut(), 9);
        C_GenerateRandom(s, null_mut(), 9);
    }
}

/// Asserts that each function gave one of these codes.
#[track_caller]
fn assert_codes(answers: Vec<(&'static str, CK_RV)>, permitted: &[CK_RV], exceptions: &[(&str, CK_RV)]) {
    let is_wrong = |(function, code): &(&str, CK_RV)| {
        !permitted.contains(code) && !exceptions.contains(&(function, *code))
    };
    let wrong: Vec<_> = answers
        .into_iter()
        .filter(is_wrong)
        .map(|(function, code)| format!("{function}: {}", name(code)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The functions that never have another answer.
const ALWAYS: [(&str, CK_RV); 3] = [
    ("C_GetFunctionStatus", CKR_FUNCTION_NOT_PARALLEL),
    ("C_CancelFunction", CKR_FUNCTION_NOT_PARALLEL),
    ("C_GetFunctionList", CKR_ARGUMENTS_BAD),
];

#[test]
fn every_function_refuses_calls_without_pointers_at_any_time() {
    apart("hostile::every_function_refuses_calls_without_pointers_at_any_time", |place| {
        let (_serving, token) = place.service();
        let module = token.module;
        let uninitialized = [CKR_CRYPTOKI_NOT_INITIALIZED, CKR_FUNCTION_NOT_SUPPORTED];
        assert_codes(call_all(&module, 1, 0), &uninitialized, &ALWAYS);
        module.initialize().expect("it is initialized");
        let no_session = [
            CKR_ARGUMENTS_BAD,
            CKR_SESSION_HANDLE_INVALID,
            CKR_SLOT_ID_INVALID,
            CKR_FUNCTION_NOT_SUPPORTED,
            CKR_MECHANISM_INVALID,
            CKR_NO_EVENT,
        ];
        assert_codes(call_all(&module, 0x7777, 0x7fff), &no_session, &ALWAYS);
        let session = module.open(module.slot(TOKEN)).expect("a session");
        let no_pointers = [
            &no_session[..],
            &[
                CKR_OBJECT_HANDLE_INVALID,
                CKR_KEY_HANDLE_INVALID,
                CKR_OPERATION_NOT_INITIALIZED,
                CKR_USER_NOT_LOGGED_IN,
                CKR_RANDOM_SEED_NOT_SUPPORTED,
                CKR_TOKEN_WRITE_PROTECTED,
            ],
        ]
        .concat();
        let slot = module.slot(TOKEN);
        assert_codes(call_all(&module, session.handle, slot), &no_pointers, &ALWAYS);
        session.login(&token.pin).expect("the token is the PIN");
        assert_codes(call_all(&module, session.handle, slot), &no_pointers, &ALWAYS);
        // Each kind of operation is active now, and the next call has nothing.
        for _ in 0..2 {
            begin_everything(&session);
            let active = [&no_pointers[..], &[CKR_OPERATION_ACTIVE]].concat();
            // No mechanism ends an operation that is active, since version 3.0.
            let ends = ["C_FindObjectsFinal", "C_DigestInit", "C_SignInit", "C_VerifyInit"];
            let exceptions = [&ALWAYS[..], &ends.map(|function| (function, CKR_OK))].concat();
            assert_codes(call_all(&module, session.handle, slot), &active, &exceptions);
        }
        let fresh = module.open(slot).expect("a session");
        let key = fresh.only(CKO_PRIVATE_KEY, "ed");
        assert_eq!(fresh.sign(CKM_EDDSA, key, b"message").expect("a signature").len(), 64);
    });
}

/// Begins operations of all kinds, as far as the session permits.
fn begin_everything(session: &Session) {
    let (module, handle) = (session.module, session.handle);
    let (private, public) = (session.named(CKO_PRIVATE_KEY, "p256"), session.named(CKO_PUBLIC_KEY, "p256"));
    let begin = |kind, key: CK_OBJECT_HANDLE, verify: bool| {
        let mut mechanism = CK_MECHANISM { mechanism: kind, pParameter: null_mut(), ulParameterLen: 0 };
        if verify {
            call!(module, C_VerifyInit(handle, &mut mechanism, key))
        } else {
            call!(module, C_SignInit(handle, &mut mechanism, key))
        }
    };
    if let (Ok(private), Ok(public)) = (private, public) {
        begin(CKM_ECDSA_SHA256, private[0], false);
        begin(CKM_ECDSA_SHA256, public[0], true);
    }
    let mut digest = CK_MECHANISM { mechanism: CKM_SHA256, pParameter: null_mut(), ulParameterLen: 0 };
    call!(module, C_DigestInit(handle, &mut digest));
    call!(module, C_FindObjectsInit(handle, null_mut(), 0));
}

#[test]
fn a_buffer_that_is_too_short_changes_nothing_but_the_length() {
    apart("hostile::a_buffer_that_is_too_short_changes_nothing_but_the_length", |place| {
        let (_serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let session = module.open(module.slot(TOKEN)).expect("a session");
        session.login(&token.pin).expect("the token is the PIN");
        let handle = session.handle;
        for (label, kind, expected) in
            [("ed", CKM_EDDSA, 64), ("p256", CKM_ECDSA_SHA256, 64), ("rsa", CKM_SHA256_RSA_PKCS, 256)]
        {
            session.sign_init(kind, session.only(CKO_PRIVATE_KEY, label)).expect("an operation");
            let sign = |to: *mut u8, length: &mut CK_ULONG| {
                let mut message = *b"message";
                call!(module, C_Sign(handle, message.as_mut_ptr(), 7, to, length))
            };
            for short in [0, 1, expected - 1] {
                let (mut to, mut length) = (vec![0xaa; 256], short);
                assert_eq!(name(sign(to.as_mut_ptr(), &mut length)), "CKR_BUFFER_TOO_SMALL", "{label}");
                assert_eq!((length, to.iter().all(|byte| *byte == 0xaa)), (expected, true), "{label}");
            }
            let mut length = 0;
            assert_eq!((sign(null_mut(), &mut length), length), (CKR_OK, expected), "{label}");
            let (mut to, mut length) = (vec![0xaa; 300], 300);
            assert_eq!((sign(to.as_mut_ptr(), &mut length), length), (CKR_OK, expected), "{label}");
            let end = usize::try_from(expected).expect("a length");
            assert!(to[end..].iter().all(|byte| *byte == 0xaa), "{label}");
            assert_eq!(name(sign(null_mut(), &mut length)), "CKR_OPERATION_NOT_INITIALIZED", "{label}");
        }
        // Several attributes at once: what fits is written, and what does not says so.
        let key = session.only(CKO_PUBLIC_KEY, "p256");
        let (mut label, mut point, mut kind) = ([0_u8; 32], [0_u8; 3], [0_u8; 8]);
        let mut template = [
            CK_ATTRIBUTE { type_: CKA_LABEL, pValue: label.as_mut_ptr().cast(), ulValueLen: 32 },
            CK_ATTRIBUTE { type_: CKA_EC_POINT, pValue: point.as_mut_ptr().cast(), ulValueLen: 3 },
            CK_ATTRIBUTE { type_: CKA_VENDOR_DEFINED, pValue: null_mut(), ulValueLen: 0 },
            CK_ATTRIBUTE { type_: CKA_KEY_TYPE, pValue: kind.as_mut_ptr().cast(), ulValueLen: 8 },
        ];
        let code = call!(module, C_GetAttributeValue(handle, key, template.as_mut_ptr(), 4));
        assert!([CKR_BUFFER_TOO_SMALL, CKR_ATTRIBUTE_TYPE_INVALID].contains(&code), "{}", name(code));
        let lengths = template.map(|one| one.ulValueLen);
        assert_eq!(lengths, [4, CK_UNAVAILABLE_INFORMATION, CK_UNAVAILABLE_INFORMATION, 8]);
        assert_eq!((&label[..4], point, kind), (&b"p256"[..], [0; 3], CKK_EC.to_ne_bytes()));
    });
}

/// Begins an operation, and makes a call with bad arguments. It begins again for the next call, so
/// the call before has ended the operation.
macro_rules! ends {
    ($module:expr, $begin:expr; $($name:ident($($given:expr),*);)*) => {
        $(
            assert_eq!(name($begin), "CKR_OK", "before {}", stringify!($name));
            assert_eq!(name(call!($module, $name($($given),*))), "CKR_ARGUMENTS_BAD");
        )*
        assert_eq!(name($begin), "CKR_OK", "after the last one");
    };
}

#[test]
fn bad_arguments_end_an_operation() {
    apart("hostile::bad_arguments_end_an_operation", |place| {
        let (_serving, token) = place.service();
        let session = logged_in(&token);
        let (module, s) = (session.module, session.handle);
        let (private, public) = (session.only(CKO_PRIVATE_KEY, "p256"), session.only(CKO_PUBLIC_KEY, "p256"));
        let aes = secret(&session, &CKK_AES, &[7; 16]);
        let (mut data, mut out) = ([7; 32], [0; 128]);
        let (data, to, none) = (data.as_mut_ptr(), out.as_mut_ptr(), null_mut());
        ends! { module, call!(module, C_DigestInit(s, &mut plain(CKM_SHA256)));
            C_Digest(s, data, 32, to, null_mut());
            C_Digest(s, none, 32, to, &mut { 128 });
            C_DigestUpdate(s, none, 32);
            C_DigestFinal(s, to, null_mut());
        }
        ends! { module, call!(module, C_SignInit(s, &mut plain(CKM_ECDSA_SHA256), private));
            C_Sign(s, data, 32, to, null_mut());
            C_Sign(s, none, 32, to, &mut { 128 });
            C_SignUpdate(s, none, 32);
            C_SignFinal(s, to, null_mut());
        }
        ends! { module, call!(module, C_VerifyInit(s, &mut plain(CKM_ECDSA_SHA256), public));
            C_Verify(s, none, 32, to, 64);
            C_Verify(s, data, 32, none, 64);
            C_VerifyUpdate(s, none, 32);
            C_VerifyFinal(s, none, 64);
        }
        ends! { module, call!(module, C_EncryptInit(s, &mut plain(CKM_AES_ECB), aes));
            C_Encrypt(s, data, 32, to, null_mut());
            C_Encrypt(s, none, 32, to, &mut { 128 });
            C_EncryptUpdate(s, data, 32, to, null_mut());
            C_EncryptUpdate(s, none, 32, to, &mut { 128 });
            C_EncryptFinal(s, to, null_mut());
        }
        ends! { module, call!(module, C_DecryptInit(s, &mut plain(CKM_AES_ECB), aes));
            C_Decrypt(s, data, 32, to, null_mut());
            C_Decrypt(s, none, 32, to, &mut { 128 });
            C_DecryptUpdate(s, data, 32, to, null_mut());
            C_DecryptUpdate(s, none, 32, to, &mut { 128 });
            C_DecryptFinal(s, to, null_mut());
        }
    });
}

#[test]
fn lengths_that_nothing_has_are_refused() {
    apart("hostile::lengths_that_nothing_has_are_refused", |place| {
        let (_serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let slot = module.slot(TOKEN);
        let session = module.open(slot).expect("a session");
        session.login(&token.pin).expect("the token is the PIN");
        let handle = session.handle;
        let key = session.only(CKO_PRIVATE_KEY, "rsa");
        // A parameter that is shorter than its structure, longer, or absent.
        let mut parameter = [0_u8; 64];
        for length in [1, 23, 25, 64] {
            let mut mechanism = CK_MECHANISM {
                mechanism: CKM_RSA_PKCS_PSS,
                pParameter: parameter.as_mut_ptr().cast(),
                ulParameterLen: length,
            };
            let code = call!(module, C_SignInit(handle, &mut mechanism, key));
            assert!([CKR_MECHANISM_PARAM_INVALID, CKR_ARGUMENTS_BAD].contains(&code), "{}", name(code));
        }
        let mut mechanism =
            CK_MECHANISM { mechanism: CKM_RSA_PKCS_PSS, pParameter: null_mut(), ulParameterLen: 24 };
        let code = call!(module, C_SignInit(handle, &mut mechanism, key));
        assert!([CKR_MECHANISM_PARAM_INVALID, CKR_ARGUMENTS_BAD].contains(&code), "{}", name(code));
        // More than there can be, with a pointer to a byte: nothing may read there.
        for length in [CK_ULONG::MAX, CK_ULONG::MAX / 2 + 1] {
            let template: [CK_ATTRIBUTE; 1] = [attribute(CKA_LABEL, b"p")];
            let mut wrong = template;
            wrong[0].ulValueLen = length;
            let code = call!(module, C_FindObjectsInit(handle, wrong.as_mut_ptr(), 1));
            assert_ne!(code, CKR_OK);
            let code = call!(module, C_FindObjectsInit(handle, wrong.as_mut_ptr(), length));
            assert_ne!(code, CKR_OK);
            let mut byte = 0;
            let code = call!(module, C_Login(handle, CKU_USER, &mut byte, length));
            assert_ne!(code, CKR_OK);
            let other = module.open(slot).expect("a session");
            other.sign_init(CKM_SHA256_RSA_PKCS, key).expect("an operation");
            let code = call!(module, C_SignUpdate(other.handle, &mut byte, length));
            assert_ne!(code, CKR_OK);
            let code = call!(module, C_SeedRandom(handle, &mut byte, length));
            assert_ne!(code, CKR_OK);
        }
        assert_eq!(session.sign(CKM_SHA256_RSA_PKCS, key, b"message").expect("a signature").len(), 256);
    });
}

#[test]
fn the_table_of_version_3_is_there_by_its_name_and_version() {
    apart("hostile::the_table_of_version_3_is_there_by_its_name_and_version", |place| {
        let (_serving, token) = place.service();
        let path = crate::support::module_path();
        // SAFETY: the module is loaded already.
        let library = unsafe { libloading::Library::new(path) }.expect("the module");
        type Get = unsafe extern "C" fn(*mut u8, *mut CK_VERSION, *mut *mut CK_INTERFACE, CK_FLAGS) -> CK_RV;
        // SAFETY: the standard gives this function this type.
        let get: libloading::Symbol<'_, Get> =
            unsafe { library.get(b"C_GetInterface") }.expect("it is there");
        let interface = |name: *const u8, version: Option<(u8, u8)>, flags| {
            let mut version = version.map(|(major, minor)| CK_VERSION { major, minor });
            let version = version.as_mut().map_or(null_mut(), |version| &raw mut *version);
            let mut found = null_mut();
            // SAFETY: the name ends with a zero, and the others live until the call ends.
            let code = unsafe { get(name.cast_mut(), version, &mut found, flags) };
            // SAFETY: an interface and its table begin with their version, and live as long as the
            // module. A program may put another table there, as pkcs11-spy does.
            let list = |found: *mut CK_INTERFACE| unsafe {
                let table = (*found).pFunctionList;
                (&raw mut (*found).pFunctionList).write_volatile(table);
                *table.cast::<CK_VERSION>()
            };
            (code == CKR_OK).then(|| list(found)).map(|version| (version.major, version.minor))
        };
        let ours = c"PKCS 11".as_ptr().cast::<u8>();
        assert_eq!(interface(ours, Some((3, 0)), 0), Some((3, 0)));
        assert_eq!(interface(ours, Some((2, 40)), 0), Some((2, 40)));
        assert_eq!(interface(null(), None, 0), Some((3, 0)));
        assert_eq!(interface(ours, Some((9, 9)), 0), None);
        assert_eq!(interface(c"Vendor other".as_ptr().cast(), None, 0), None);
        let version = token.module.list.version;
        assert_eq!((version.major, version.minor), (2, 40));
        // SAFETY: a null pointer is what is tested.
        let code = unsafe { get(null_mut(), null_mut(), null_mut(), 0) };
        assert_eq!(name(code), "CKR_ARGUMENTS_BAD");
    });
}
