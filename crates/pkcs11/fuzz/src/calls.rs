//! Calls of every function in any order, with arguments as wrong as a hostile program's. Each gives
//! a code of the standard and touches no other memory; and what was signed verifies.

/// Calls a function, and checks its code.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        let function = TABLE.$name.expect(stringify!($name));
        // SAFETY: each pointer is NULL, or is to memory of the length beside it, which lives until
        // the call ends; or the length is one that nothing has.
        let code = unsafe { function($($argument),*) };
        let is_known = CODES.contains(&code) || OTHER_CODES.contains(&code);
        assert!(is_known, "{}: {code:#x}", stringify!($name));
        code
    }};
}

mod arguments;
mod signed;

use arguments::{Bytes, Input, Mechanism, Message, NumberRoom, Room, Template};
use cryptoki_sys::*;
use std::mem::MaybeUninit;
use std::ptr::{from_mut, null_mut};
use std::sync::LazyLock;

/// A key for the keystore: to make one takes longer than a thousand cases.
const RSA: &[u8] = include_bytes!("../rsa.pem");
/// The most results that later calls may get as their arguments.
const MAX_POOL: usize = 32;
/// The most calls of one case.
const MAX_CALLS: usize = 64;

/// The codes that the module may give. `CKR_GENERAL_ERROR` is not one: it is a mistake of ours.
const CODES: [CK_RV; 39] = [
    CKR_OK,
    CKR_SLOT_ID_INVALID,
    CKR_ARGUMENTS_BAD,
    CKR_NO_EVENT,
    CKR_FUNCTION_FAILED,
    CKR_ATTRIBUTE_READ_ONLY,
    CKR_ATTRIBUTE_SENSITIVE,
    CKR_ATTRIBUTE_TYPE_INVALID,
    CKR_ATTRIBUTE_VALUE_INVALID,
    CKR_ACTION_PROHIBITED,
    CKR_DATA_INVALID,
    CKR_DATA_LEN_RANGE,
    CKR_ENCRYPTED_DATA_INVALID,
    CKR_ENCRYPTED_DATA_LEN_RANGE,
    CKR_FUNCTION_NOT_PARALLEL,
    CKR_FUNCTION_NOT_SUPPORTED,
    CKR_KEY_HANDLE_INVALID,
    CKR_KEY_SIZE_RANGE,
    CKR_KEY_TYPE_INCONSISTENT,
    CKR_KEY_FUNCTION_NOT_PERMITTED,
    CKR_MECHANISM_INVALID,
    CKR_MECHANISM_PARAM_INVALID,
    CKR_OBJECT_HANDLE_INVALID,
    CKR_OPERATION_ACTIVE,
    CKR_OPERATION_NOT_INITIALIZED,
    CKR_PIN_INCORRECT,
    CKR_SESSION_HANDLE_INVALID,
    CKR_SESSION_PARALLEL_NOT_SUPPORTED,
    CKR_SESSION_READ_ONLY,
    CKR_SIGNATURE_INVALID,
    CKR_SIGNATURE_LEN_RANGE,
    CKR_TEMPLATE_INCOMPLETE,
    CKR_TEMPLATE_INCONSISTENT,
    CKR_USER_ALREADY_LOGGED_IN,
    CKR_USER_NOT_LOGGED_IN,
    CKR_USER_TYPE_INVALID,
    CKR_RANDOM_SEED_NOT_SUPPORTED,
    CKR_BUFFER_TOO_SMALL,
    CKR_CRYPTOKI_NOT_INITIALIZED,
];
/// Those that not every function gives.
const OTHER_CODES: [CK_RV; 11] = [
    CKR_CRYPTOKI_ALREADY_INITIALIZED,
    CKR_CURVE_NOT_SUPPORTED,
    CKR_KEY_INDIGESTIBLE,
    CKR_KEY_NOT_WRAPPABLE,
    CKR_KEY_UNEXTRACTABLE,
    CKR_WRAPPED_KEY_INVALID,
    CKR_WRAPPED_KEY_LEN_RANGE,
    CKR_WRAPPING_KEY_HANDLE_INVALID,
    CKR_WRAPPING_KEY_TYPE_INCONSISTENT,
    CKR_UNWRAPPING_KEY_HANDLE_INVALID,
    CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT,
];

static TABLE: LazyLock<&CK_FUNCTION_LIST_3_0> = LazyLock::new(|| {
    let mut interface = null_mut();
    // SAFETY: the pointers are NULL, or to memory that lives until the call ends.
    let code = unsafe { bulla_pkcs11::C_GetInterface(null_mut(), null_mut(), &mut interface, 0) };
    assert_eq!(code, CKR_OK);
    // SAFETY: without a version, it is the table of 3.0, which lives as long as the module.
    unsafe { &*(*interface).pFunctionList.cast() }
});

/// What calls made so far.
#[derive(Default)]
struct CallerState {
    sessions: Vec<CK_SESSION_HANDLE>,
    objects: Vec<CK_OBJECT_HANDLE>,
    pool: Vec<Vec<u8>>,
}

impl CallerState {
    fn keep(&mut self, made: Option<Vec<u8>>) {
        if let Some(made) = made
            && self.pool.len() < MAX_POOL
        {
            self.pool.push(made);
        }
    }

    fn keep_object(&mut self, code: CK_RV, made: &NumberRoom) {
        if code == CKR_OK {
            self.objects.push(made.get());
        }
    }

    /// A session for most calls, and the objects that it finds.
    fn begin(&mut self, input: &mut Input<'_>) {
        let mut session = 0;
        let flags = CKF_SERIAL_SESSION | CKF_RW_SESSION;
        let slot = CK_SLOT_ID::from(input.byte() % 2);
        assert_eq!(call!(C_OpenSession(slot, flags, null_mut(), None, &mut session)), CKR_OK);
        self.sessions.push(session);
        if slot == 1 {
            let mut pin = bulla_pkcs11::fuzzing::PIN.to_vec();
            assert_eq!(call!(C_Login(session, CKU_USER, pin.as_mut_ptr(), pin.len() as CK_ULONG)), CKR_OK);
        }
        assert_eq!(call!(C_FindObjectsInit(session, null_mut(), 0)), CKR_OK);
        let (mut found, mut count) = ([0; 64], 0);
        assert_eq!(call!(C_FindObjects(session, found.as_mut_ptr(), 64, &mut count)), CKR_OK);
        assert_eq!(call!(C_FindObjectsFinal(session)), CKR_OK);
        self.objects.extend_from_slice(&found[..count as usize]);
        assert!(self.objects.len() > 10, "keys of each kind");
        self.make_session_keys(session);
    }

    /// Keys of the session that programs may read and wrap: of AES, a secret, and a pair of P-256.
    fn make_session_keys(&mut self, session: CK_SESSION_HANDLE) {
        let (mut yes, mut no, mut length) = ([CK_TRUE], [CK_FALSE], 16_u64.to_ne_bytes());
        let mut curve = arguments::CURVES[0].to_vec();
        let of = |type_, value: &mut [u8]| CK_ATTRIBUTE {
            type_,
            pValue: value.as_mut_ptr().cast(),
            ulValueLen: value.len() as CK_ULONG,
        };
        let readable = [of(CKA_EXTRACTABLE, &mut yes), of(CKA_SENSITIVE, &mut no)];
        let mut secret = [readable[0], readable[1], of(CKA_DERIVE, &mut yes), of(CKA_VALUE_LEN, &mut length)];
        let mechanism = |kind| CK_MECHANISM { mechanism: kind, pParameter: null_mut(), ulParameterLen: 0 };
        for kind in [CKM_AES_KEY_GEN, CKM_GENERIC_SECRET_KEY_GEN] {
            let (at, mut key) = (secret.as_mut_ptr(), 0);
            assert_eq!(call!(C_GenerateKey(session, &mut mechanism(kind), at, 4, &mut key)), CKR_OK);
            self.objects.push(key);
        }
        let (mut of_public, mut of_private) = ([of(CKA_EC_PARAMS, &mut curve)], [secret[0], secret[2]]);
        let (public_at, private_at) = (of_public.as_mut_ptr(), of_private.as_mut_ptr());
        let (mut kind, mut public, mut private) = (mechanism(CKM_EC_KEY_PAIR_GEN), 0, 0);
        let code = call!(C_GenerateKeyPair(
            session,
            &mut kind,
            public_at,
            1,
            private_at,
            2,
            &mut public,
            &mut private
        ));
        assert_eq!(code, CKR_OK);
        self.objects.extend([public, private]);
    }
}

/// Makes the calls that these bytes say.
pub(crate) fn run(bytes: &[u8]) {
    call!(C_Finalize(null_mut()));
    assert_eq!(bulla_pkcs11::fuzzing::initialize(RSA), CKR_OK);
    let (mut input, mut state) = (Input(bytes), CallerState::default());
    if !input.byte().is_multiple_of(16) {
        state.begin(&mut input);
    }
    for _ in 0..MAX_CALLS {
        if input.is_empty() {
            break;
        }
        match input.byte() % 8 {
            0 => of_module(&mut input, &mut state),
            1 => of_session(&mut input, &mut state),
            2 => of_objects(&mut input, &mut state),
            3 => of_keys(&mut input, &mut state),
            4 => of_signatures(&mut input, &mut state),
            5 => of_ciphers(&mut input, &mut state),
            6 => signed::check(&mut input, &state.sessions, &state.objects),
            _ => of_others(&mut input, &mut state),
        }
    }
}

fn of_module(input: &mut Input<'_>, state: &mut CallerState) {
    let slot = input.handle(&[0, 1]);
    let mut place = NumberRoom::new(input);
    let (null, kind) = (input.byte().is_multiple_of(8), input.choose(&arguments::MECHANISMS));
    match input.byte() % 10 {
        0 => _ = call!(C_GetInfo(pointer(null, &mut MaybeUninit::uninit()))),
        1 => _ = call!(C_GetSlotInfo(slot, pointer(null, &mut MaybeUninit::uninit()))),
        2 => _ = call!(C_GetTokenInfo(slot, pointer(null, &mut MaybeUninit::uninit()))),
        3 => _ = call!(C_GetMechanismInfo(slot, kind, pointer(null, &mut MaybeUninit::uninit()))),
        4 => list(input, |at, count| call!(C_GetSlotList(CK_TRUE, at, count))),
        5 => list(input, |at, count| call!(C_GetMechanismList(slot, at, count))),
        6 => _ = call!(C_WaitForSlotEvent(CKF_DONT_BLOCK, place.at, null_mut())),
        7 => {
            let reserved = if null { from_mut(&mut place).cast() } else { null_mut() };
            if call!(C_Finalize(reserved)) == CKR_OK {
                // Every other call until the next beginning says so.
                let code = call!(C_GetSlotInfo(slot, null_mut()));
                assert_eq!(code, CKR_CRYPTOKI_NOT_INITIALIZED);
                if !input.byte().is_multiple_of(8) {
                    assert_eq!(bulla_pkcs11::fuzzing::initialize(RSA), CKR_OK);
                }
            }
        }
        8 => {
            let code = bulla_pkcs11::fuzzing::initialize(RSA);
            assert!([CKR_OK, CKR_CRYPTOKI_ALREADY_INITIALIZED].contains(&code));
        }
        _ => {
            if call!(C_CloseAllSessions(slot)) == CKR_OK {
                state.sessions.truncate(16);
            }
        }
    }
}

fn pointer<T>(null: bool, value: &mut MaybeUninit<T>) -> *mut T {
    if null { null_mut() } else { value.as_mut_ptr() }
}

/// Calls a function that writes a list of numbers, with room for some.
fn list(input: &mut Input<'_>, call: impl Fn(*mut CK_ULONG, *mut CK_ULONG) -> CK_RV) {
    let room = input.choose(&[0, 1, 2, 8, 64]);
    let (mut list, mut count) = (vec![CK_ULONG::MAX; room], room as CK_ULONG);
    let kind = input.byte() % 8;
    let at = if kind == 0 { null_mut() } else { list.as_mut_ptr() };
    let code = call(at, if kind == 1 { null_mut() } else { &mut count });
    if code == CKR_OK && !at.is_null() {
        assert!(count as usize <= room);
        assert!(list[count as usize..].iter().all(|element| *element == CK_ULONG::MAX));
    }
}

fn of_session(input: &mut Input<'_>, state: &mut CallerState) {
    let session = input.handle(&state.sessions);
    match input.byte() % 8 {
        0 | 1 => {
            let slot = input.handle(&[0, 1]);
            let flags = input.choose(&[CKF_SERIAL_SESSION, CKF_SERIAL_SESSION | CKF_RW_SESSION, 0]);
            let made = NumberRoom::new(input);
            if call!(C_OpenSession(slot, flags, null_mut(), None, made.at)) == CKR_OK {
                state.sessions.push(made.get());
            }
        }
        2 => _ = call!(C_CloseSession(session)),
        3 => {
            let null = input.byte().is_multiple_of(8);
            call!(C_GetSessionInfo(session, pointer(null, &mut MaybeUninit::uninit())));
        }
        4 => {
            let mut pin = bulla_pkcs11::fuzzing::PIN.to_vec();
            call!(C_Login(session, CKU_USER, pin.as_mut_ptr(), pin.len() as CK_ULONG));
        }
        5 => {
            let (user, pin) = (input.choose(&[0, 1, 2, 3, CK_ULONG::MAX]), Bytes::new(input, &state.pool));
            if input.byte().is_multiple_of(2) {
                call!(C_Login(session, user, pin.at, pin.length));
            } else {
                let name = Bytes::new(input, &[]);
                call!(C_LoginUser(session, user, pin.at, pin.length, name.at, name.length));
            }
        }
        6 => _ = call!(C_Logout(session)),
        _ => {
            let flags = input.choose(&[CK_FLAGS::MAX, 0, CKF_SIGN, CKF_DECRYPT, CKF_FIND_OBJECTS]);
            call!(C_SessionCancel(session, flags));
        }
    }
}

fn of_objects(input: &mut Input<'_>, state: &mut CallerState) {
    let (session, object) = (input.handle(&state.sessions), input.handle(&state.objects));
    match input.byte() % 9 {
        0 => {
            let (template, made) = (Template::new(input, &state.pool), NumberRoom::new(input));
            let code = call!(C_CreateObject(session, template.at, template.count, made.at));
            state.keep_object(code, &made);
        }
        1 => {
            let template = Template::to_write(input);
            call!(C_GetAttributeValue(session, object, template.at, template.count));
            template.check("C_GetAttributeValue").into_iter().for_each(|value| state.keep(Some(value)));
        }
        2 => {
            let template = Template::new(input, &state.pool);
            call!(C_SetAttributeValue(session, object, template.at, template.count));
        }
        3 => {
            let template = Template::new(input, &state.pool);
            call!(C_FindObjectsInit(session, template.at, template.count));
        }
        4 => list(input, |at, count| {
            // SAFETY: the number is there if the pointer is not NULL.
            let max = if count.is_null() { 4 } else { unsafe { *count } };
            call!(C_FindObjects(session, at, max, count))
        }),
        5 => _ = call!(C_FindObjectsFinal(session)),
        6 => _ = call!(C_DestroyObject(session, object)),
        7 => {
            let size = NumberRoom::new(input);
            call!(C_GetObjectSize(session, object, size.at));
        }
        _ => {
            let (template, made) = (Template::new(input, &state.pool), NumberRoom::new(input));
            let code = call!(C_CopyObject(session, object, template.at, template.count, made.at));
            state.keep_object(code, &made);
        }
    }
}

fn of_keys(input: &mut Input<'_>, state: &mut CallerState) {
    const PAIRS: [CK_MECHANISM_TYPE; 3] =
        [CKM_EC_KEY_PAIR_GEN, CKM_EC_EDWARDS_KEY_PAIR_GEN, CKM_EC_MONTGOMERY_KEY_PAIR_GEN];
    const WRAPPING: [CK_MECHANISM_TYPE; 5] =
        [CKM_RSA_PKCS_OAEP, CKM_RSA_PKCS, CKM_AES_KEY_WRAP, CKM_AES_KEY_WRAP_PAD, CKM_AES_CBC_PAD];
    let (session, key) = (input.handle(&state.sessions), input.handle(&state.objects));
    let template = Template::new(input, &state.pool);
    let made = NumberRoom::new(input);
    match input.byte() % 5 {
        0 => {
            let kinds = [CKM_AES_KEY_GEN, CKM_GENERIC_SECRET_KEY_GEN];
            let mechanism = Mechanism::new(input, &state.pool, &kinds);
            let code = call!(C_GenerateKey(session, mechanism.at, template.at, template.count, made.at));
            state.keep_object(code, &made);
        }
        1 => {
            let (private, other) = (Template::new(input, &state.pool), NumberRoom::new(input));
            let mechanism = Mechanism::new(input, &state.pool, &PAIRS);
            let (public_at, private_at) = (made.at, other.at);
            let code = call!(C_GenerateKeyPair(
                session,
                mechanism.at,
                template.at,
                template.count,
                private.at,
                private.count,
                public_at,
                private_at
            ));
            state.keep_object(code, &made);
            state.keep_object(code, &other);
        }
        2 => {
            let kinds = [CKM_ECDH1_DERIVE, CKM_AES_ECB_ENCRYPT_DATA, CKM_AES_CBC_ENCRYPT_DATA];
            let mechanism = Mechanism::new(input, &state.pool, &kinds);
            let code = call!(C_DeriveKey(session, mechanism.at, key, template.at, template.count, made.at));
            state.keep_object(code, &made);
        }
        3 => {
            let (mechanism, room) = (Mechanism::new(input, &state.pool, &WRAPPING), Room::new(input));
            let other = input.handle(&state.objects);
            let code = call!(C_WrapKey(session, mechanism.at, key, other, room.at, room.length_at));
            state.keep(room.check("C_WrapKey", code));
        }
        _ => {
            let mechanism = Mechanism::new(input, &state.pool, &WRAPPING);
            let wrapped = Bytes::new(input, &state.pool);
            let (at, count) = (template.at, template.count);
            let (from, length) = (wrapped.at, wrapped.length);
            let code = call!(C_UnwrapKey(session, mechanism.at, key, from, length, at, count, made.at));
            state.keep_object(code, &made);
        }
    }
}

/// Calls a function that reads bytes and writes others.
macro_rules! through {
    ($state:ident, $input:ident, $session:ident, $name:ident) => {{
        let (data, room) = (Bytes::new($input, &$state.pool), Room::new($input));
        let code = call!($name($session, data.at, data.length, room.at, room.length_at));
        $state.keep(room.check(stringify!($name), code));
    }};
}

/// Calls a function that writes bytes.
macro_rules! out {
    ($state:ident, $input:ident, $session:ident, $name:ident) => {{
        let room = Room::new($input);
        let code = call!($name($session, room.at, room.length_at));
        $state.keep(room.check(stringify!($name), code));
    }};
}

fn of_signatures(input: &mut Input<'_>, state: &mut CallerState) {
    const DIGESTS: [CK_MECHANISM_TYPE; 5] = [CKM_SHA_1, CKM_SHA224, CKM_SHA256, CKM_SHA384, CKM_SHA512];
    let (session, key) = (input.handle(&state.sessions), input.handle(&state.objects));
    match input.byte() % 16 {
        0..3 => {
            let mechanism = Mechanism::new(input, &state.pool, arguments::SIGNING);
            call!(C_SignInit(session, mechanism.at, key));
        }
        3 => through!(state, input, session, C_Sign),
        4 => {
            let data = Bytes::new(input, &state.pool);
            call!(C_SignUpdate(session, data.at, data.length));
        }
        5 => out!(state, input, session, C_SignFinal),
        6..8 => {
            let mechanism = Mechanism::new(input, &state.pool, arguments::SIGNING);
            call!(C_VerifyInit(session, mechanism.at, key));
        }
        8 => {
            let (data, signature) = (Bytes::new(input, &state.pool), Bytes::new(input, &state.pool));
            call!(C_Verify(session, data.at, data.length, signature.at, signature.length));
        }
        9 => {
            let data = Bytes::new(input, &state.pool);
            call!(C_VerifyUpdate(session, data.at, data.length));
        }
        10 => {
            let signature = Bytes::new(input, &state.pool);
            call!(C_VerifyFinal(session, signature.at, signature.length));
        }
        11 => {
            let mechanism = Mechanism::new(input, &state.pool, &DIGESTS);
            call!(C_DigestInit(session, mechanism.at));
        }
        12 => through!(state, input, session, C_Digest),
        13 => {
            let data = Bytes::new(input, &state.pool);
            call!(C_DigestUpdate(session, data.at, data.length));
        }
        14 => out!(state, input, session, C_DigestFinal),
        _ => _ = call!(C_DigestKey(session, key)),
    }
}

fn of_ciphers(input: &mut Input<'_>, state: &mut CallerState) {
    const CIPHERS: [CK_MECHANISM_TYPE; 7] = [
        CKM_RSA_PKCS_OAEP,
        CKM_AES_GCM,
        CKM_AES_CBC_PAD,
        CKM_AES_CBC,
        CKM_AES_ECB,
        CKM_AES_CTR,
        CKM_RSA_PKCS,
    ];
    let (session, key) = (input.handle(&state.sessions), input.handle(&state.objects));
    let operation = input.byte() % 16;
    let mechanism = match operation {
        0..4 | 8 | 9 => Some(Mechanism::new(input, &state.pool, &CIPHERS)),
        _ => None,
    };
    let at = mechanism.as_ref().map_or(null_mut(), |mechanism| mechanism.at);
    match operation {
        0..2 => _ = call!(C_EncryptInit(session, at, key)),
        2..4 => _ = call!(C_DecryptInit(session, at, key)),
        4 => through!(state, input, session, C_Encrypt),
        5 => through!(state, input, session, C_EncryptUpdate),
        6 => out!(state, input, session, C_EncryptFinal),
        7 => through!(state, input, session, C_Decrypt),
        8 => _ = call!(C_MessageEncryptInit(session, at, key)),
        9 => _ = call!(C_MessageDecryptInit(session, at, key)),
        10 => through!(state, input, session, C_DecryptUpdate),
        11 => out!(state, input, session, C_DecryptFinal),
        12 => _ = call!(C_MessageEncryptFinal(session)),
        13 => _ = call!(C_MessageDecryptFinal(session)),
        _ => {
            let (message, data) = (Message::new(input), Bytes::new(input, &state.pool));
            let (associated, room) = (Bytes::new(input, &[]), Room::new(input));
            let function = if operation == 14 { TABLE.C_EncryptMessage } else { TABLE.C_DecryptMessage };
            let function = function.expect("the table has it");
            // SAFETY: as for the other calls.
            let code = unsafe {
                function(
                    session,
                    message.at,
                    message.length,
                    associated.at,
                    associated.length,
                    data.at,
                    data.length,
                    room.at,
                    room.length_at,
                )
            };
            assert!(CODES.contains(&code), "{code:#x}");
            state.keep(room.check("C_EncryptMessage, C_DecryptMessage", code));
        }
    }
}

fn of_others(input: &mut Input<'_>, state: &mut CallerState) {
    let (session, key) = (input.handle(&state.sessions), input.handle(&state.objects));
    let data = Bytes::new(input, &state.pool);
    match input.byte() % 14 {
        0 => _ = call!(C_SeedRandom(session, data.at, data.length)),
        1 => {
            // What is written is random, so it is not compared.
            let mut room = input.vector();
            call!(C_GenerateRandom(session, room.as_mut_ptr(), room.len() as CK_ULONG));
            call!(C_GenerateRandom(session, null_mut(), input.number()));
        }
        2 => _ = call!(C_GetFunctionStatus(session)),
        3 => _ = call!(C_CancelFunction(session)),
        4 => _ = call!(C_InitToken(input.handle(&[0, 1]), data.at, data.length, null_mut())),
        5 => _ = call!(C_InitPIN(session, data.at, data.length)),
        6 => _ = call!(C_SetPIN(session, data.at, data.length, data.at, data.length)),
        7 => out!(state, input, session, C_GetOperationState),
        8 => _ = call!(C_SetOperationState(session, data.at, data.length, key, key)),
        9 => through!(state, input, session, C_SignRecover),
        10 => through!(state, input, session, C_DigestEncryptUpdate),
        11 => through!(state, input, session, C_DecryptVerifyUpdate),
        12 => _ = call!(C_SignRecoverInit(session, null_mut(), key)),
        _ => _ = call!(C_MessageSignInit(session, null_mut(), key)),
    }
}
