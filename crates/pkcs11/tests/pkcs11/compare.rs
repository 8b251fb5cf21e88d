//! The same calls to SoftHSM and to the module, with good and bad arguments in each state. The
//! document `docs/pkcs11-softhsm.md` has a row for each difference; any other one is a mistake.

use crate::support::codes::name;
use crate::support::raw::{Module, Session, attribute, call, number};
use crate::support::{TOKEN, Token, apart};
use crate::{compare_keys as keys, compare_operations as operations, hostile};
use cryptoki_sys::*;
use std::mem::MaybeUninit;
use std::ptr::{from_mut, null_mut};

/// What a call is named, and its code.
pub(crate) type Answer = (String, CK_RV);

/// The handle of nothing.
pub(crate) const STALE: CK_ULONG = 0x7fff_ffff;

/// Calls functions, and adds each one's name, what is special in the call, and the code.
macro_rules! calls {
    ($answers:expr, $module:expr; $($what:literal $name:ident($($argument:expr),* $(,)?);)*) => {
        $($answers.push((
            format!("{}, {}", stringify!($name), $what),
            crate::support::raw::call!($module, $name($($argument),*)),
        ));)*
    };
}
pub(crate) use calls;

/// The document with the differences.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pkcs11-softhsm.md");

/// A row of the document's table.
struct Difference<'a> {
    /// The name of a call, in which `*` stands for any text.
    call: &'a str,
    /// Codes between commas.
    theirs: &'a str,
    ours: &'a str,
}

impl Difference<'_> {
    fn is_of(&self, call: &str, theirs: &str, ours: &str) -> bool {
        let is_named = match self.call.split_once('*') {
            Some((start, end)) => call.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
            None => call == self.call,
        };
        is_named && ours == self.ours && self.theirs.split("`, `").any(|code| code == theirs)
    }
}

fn differences(document: &str) -> Vec<Difference<'_>> {
    let rows = document.lines().filter(|line| line.contains("| `CKR_"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, call, theirs, ours, why, _] = cells[..] else { panic!("not a row: {row}") };
        assert!(!why.is_empty(), "no reason: {row}");
        Difference { call, theirs, ours }
    })
    .collect()
}

#[test]
fn each_call_has_the_code_of_softhsm_or_a_reason_for_another_one() {
    apart("compare::each_call_has_the_code_of_softhsm_or_a_reason_for_another_one", |place| {
        let (theirs, (_serving, ours)) = (place.softhsm(), place.service());
        let [theirs, ours] = [&theirs, &ours].map(answers);
        assert_eq!(theirs.len(), ours.len());
        let document = std::fs::read_to_string(DOCUMENT).expect("the document");
        let known = differences(&document);
        let mut used = vec![false; known.len()];
        let mut unnamed = Vec::new();
        for ((call, theirs), (other, ours)) in theirs.iter().zip(&ours) {
            assert_eq!(call, other);
            if theirs == ours {
                continue;
            }
            let (theirs, ours) = (name(*theirs), name(*ours));
            match known.iter().position(|row| row.is_of(call, &theirs, &ours)) {
                Some(row) => used[row] = true,
                None => unnamed.push(format!("| `{call}` | `{theirs}` | `{ours}` | |")),
            }
        }
        assert!(unnamed.is_empty(), "differences without a reason:\n{}", unnamed.join("\n"));
        let unused = known.iter().zip(used).find(|(_, used)| !used);
        assert!(unused.is_none(), "no such difference: {}", unused.map_or("", |(row, _)| row.call));
        // The document says how many calls were compared.
        let count = format!("{} calls", theirs.len());
        assert!(document.contains(&count), "the document does not say {count}");
    });
}

/// The answers of one module, in all states.
fn answers(token: &Token) -> Vec<Answer> {
    let module = &token.module;
    let mut all = without_pointers("not initialized", module, 1, 0);
    all.extend(of_initialize(module));
    let slot = module.slot(TOKEN);
    all.extend(without_pointers("no session", module, STALE, STALE));
    all.extend(of_slots(module, slot));
    let session = module.open(slot).expect("a session");
    all.extend(without_pointers("public session", module, session.handle, slot));
    all.extend(of_sessions(module, slot, session));
    all.extend(of_logins(&session, slot, &token.pin));
    session.login(&token.pin).expect("the PIN is right");
    all.extend(without_pointers("logged in", module, session.handle, slot));
    all.extend(of_objects(&session, slot));
    all.extend(operations::answers(&session));
    all.extend(keys::answers(&session, slot));
    all.extend(of_ends(&session, slot));
    all
}

/// Every function without a pointer.
fn without_pointers(
    state: &str,
    module: &Module,
    session: CK_SESSION_HANDLE,
    slot: CK_SLOT_ID,
) -> Vec<Answer> {
    let answers = hostile::call_all(module, session, slot).into_iter();
    answers.map(|(function, code)| (format!("{function}, without pointers, {state}"), code)).collect()
}

fn of_initialize(module: &Module) -> Vec<Answer> {
    unsafe extern "C" fn lock(_mutex: *mut std::ffi::c_void) -> CK_RV {
        CKR_OK
    }
    let args = |lock: CK_LOCKMUTEX, reserved| CK_C_INITIALIZE_ARGS {
        CreateMutex: None,
        DestroyMutex: None,
        LockMutex: lock,
        UnlockMutex: None,
        flags: CKF_OS_LOCKING_OK,
        pReserved: reserved,
    };
    let (mut some, mut reserved, mut good) = (args(Some(lock), null_mut()), args(None, null_mut()), 0_u8);
    let mut plain = args(None, null_mut());
    reserved.pReserved = from_mut(&mut good).cast();
    let mut answers = Vec::new();
    calls! { answers, module;
        "before the beginning" C_Finalize(null_mut());
        "one of four functions for locks" C_Initialize(from_mut(&mut some).cast());
        "reserved is not NULL" C_Initialize(from_mut(&mut reserved).cast());
        "good" C_Initialize(from_mut(&mut plain).cast());
        "again" C_Initialize(from_mut(&mut plain).cast());
        "reserved is not NULL" C_Finalize(from_mut(&mut good).cast());
    }
    answers
}

fn of_slots(module: &Module, slot: CK_SLOT_ID) -> Vec<Answer> {
    let mut list = [0; 64];
    let [mut none, mut one] = [0, 1];
    let (mut info, mut token, mut kind) =
        (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
    let mut answers = Vec::new();
    calls! { answers, module;
        "no room" C_GetSlotList(CK_TRUE, list.as_mut_ptr(), &mut none);
        "good" C_GetSlotInfo(slot, info.as_mut_ptr());
        "no such slot" C_GetSlotInfo(STALE, info.as_mut_ptr());
        "good" C_GetTokenInfo(slot, token.as_mut_ptr());
        "no such slot" C_GetTokenInfo(STALE, token.as_mut_ptr());
        "room for one" C_GetMechanismList(slot, list.as_mut_ptr(), &mut one);
        "no such slot" C_GetMechanismList(STALE, null_mut(), &mut one);
        "good" C_GetMechanismInfo(slot, CKM_ECDSA, kind.as_mut_ptr());
        "no such slot" C_GetMechanismInfo(STALE, CKM_ECDSA, kind.as_mut_ptr());
        "no such mechanism" C_GetMechanismInfo(slot, CKM_VENDOR_DEFINED, kind.as_mut_ptr());
        "good" C_WaitForSlotEvent(CKF_DONT_BLOCK, &mut one, null_mut());
        "no such slot" C_CloseAllSessions(STALE);
        "no sessions" C_CloseAllSessions(slot);
    }
    answers
}

fn of_sessions(module: &Module, slot: CK_SLOT_ID, session: Session) -> Vec<Answer> {
    let closed = module.open(slot).expect("a session");
    closed.close().expect("it was open");
    let (mut made, mut info) = (0, MaybeUninit::uninit());
    let s = session.handle;
    let mut answers = Vec::new();
    calls! { answers, module;
        "parallel" C_OpenSession(slot, CKF_RW_SESSION, null_mut(), None, &mut made);
        "no such slot" C_OpenSession(STALE, CKF_SERIAL_SESSION, null_mut(), None, &mut made);
        "good" C_OpenSession(slot, CKF_SERIAL_SESSION, null_mut(), None, &mut made);
        "good" C_CloseSession(made);
        "closed before" C_CloseSession(made);
        "no such session" C_CloseSession(STALE);
        "closed before" C_GetSessionInfo(closed.handle, info.as_mut_ptr());
        "good" C_GetSessionInfo(s, info.as_mut_ptr());
        "0" C_GetSessionInfo(0, info.as_mut_ptr());
        "good" C_GetFunctionStatus(s);
        "good" C_CancelFunction(s);
        "closed before" C_GetFunctionStatus(closed.handle);
    }
    answers
}

fn of_logins(session: &Session, slot: CK_SLOT_ID, pin: &str) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let mut read_only = 0;
    let code = call!(module, C_OpenSession(slot, CKF_SERIAL_SESSION, null_mut(), None, &mut read_only));
    assert_eq!(code, CKR_OK);
    let (at, length) = (pin.as_ptr().cast_mut(), pin.len() as CK_ULONG);
    let mut wrong = *b"9999";
    let wrong = wrong.as_mut_ptr();
    let mut answers = Vec::new();
    calls! { answers, module;
        "not logged in" C_Logout(s);
        "no such session" C_Logout(STALE);
        "a wrong PIN" C_Login(s, CKU_USER, wrong, 4);
        "an empty PIN" C_Login(s, CKU_USER, wrong, 0);
        "no such user" C_Login(s, 99, at, length);
        "security officer, and a session that only reads" C_Login(s, CKU_SO, wrong, 4);
        "for one operation, and none is active" C_Login(s, CKU_CONTEXT_SPECIFIC, at, length);
        "no such session" C_Login(STALE, CKU_USER, at, length);
        "good, in a session that only reads" C_Login(read_only, CKU_USER, at, length);
        "again" C_Login(s, CKU_USER, at, length);
        "security officer after the user" C_Login(s, CKU_SO, wrong, 4);
        "a wrong PIN before" C_SetPIN(s, wrong, 4, wrong, 4);
        "by a user" C_InitPIN(s, wrong, 4);
        "good" C_Logout(s);
        "again" C_Logout(s);
        "good" C_CloseSession(read_only);
    }
    let mut label = [b' '; 32];
    calls! { answers, module;
        "with a session" C_InitToken(slot, wrong, 4, label.as_mut_ptr());
        "no such slot" C_InitToken(STALE, wrong, 4, label.as_mut_ptr());
        "good" C_GetOperationState(s, null_mut(), &mut { 0 });
        "good" C_SetOperationState(s, wrong, 4, 0, 0);
    }
    answers
}

/// An attribute to be read.
pub(crate) fn wanted(kind: CK_ATTRIBUTE_TYPE, room: &mut [u8]) -> CK_ATTRIBUTE {
    CK_ATTRIBUTE { type_: kind, pValue: room.as_mut_ptr().cast(), ulValueLen: room.len() as CK_ULONG }
}

fn of_objects(session: &Session, slot: CK_SLOT_ID) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let (private, public) = (session.only(CKO_PRIVATE_KEY, "p256"), session.only(CKO_PUBLIC_KEY, "p256"));
    let (mut room, mut short, mut size) = ([0; 512], [0; 1], 0);
    let mut read_only = 0;
    let code = call!(module, C_OpenSession(slot, CKF_SERIAL_SESSION, null_mut(), None, &mut read_only));
    assert_eq!(code, CKR_OK);
    let [mut secret, mut other, mut label, mut few] = [
        wanted(CKA_VALUE, &mut room),
        wanted(CKA_VENDOR_DEFINED, &mut room),
        wanted(CKA_LABEL, &mut room),
        wanted(CKA_LABEL, &mut short),
    ];
    let mut modulus = wanted(CKA_MODULUS, &mut room);
    let mut answers = Vec::new();
    calls! { answers, module;
        "good" C_GetAttributeValue(s, public, &mut label, 1);
        "no attributes" C_GetAttributeValue(s, public, &mut label, 0);
        "no such object" C_GetAttributeValue(s, STALE, &mut label, 1);
        "the private key's value" C_GetAttributeValue(s, private, &mut secret, 1);
        "no such attribute" C_GetAttributeValue(s, public, &mut other, 1);
        "an attribute of other keys" C_GetAttributeValue(s, public, &mut modulus, 1);
        "a short buffer" C_GetAttributeValue(s, public, &mut few, 1);
        "good" C_GetObjectSize(s, public, &mut size);
        "no such object" C_GetObjectSize(s, STALE, &mut size);
    }
    let mut class = attribute(CKA_CLASS, number(&CKO_SECRET_KEY));
    let mut same = attribute(CKA_LABEL, b"p256");
    let mut short_class = attribute(CKA_CLASS, &[3]);
    let (mut found, mut count, mut copy) = ([0; 4], 0, 0);
    calls! { answers, module;
        "the label, in a session that only reads" C_SetAttributeValue(read_only, public, &mut same, 1);
        "the label" C_SetAttributeValue(s, public, &mut same, 1);
        "the class" C_SetAttributeValue(s, public, &mut class, 1);
        "no such object" C_SetAttributeValue(s, STALE, &mut same, 1);
        "no such object" C_DestroyObject(s, STALE);
        "in a session that only reads" C_DestroyObject(read_only, public);
        "no such object" C_CopyObject(s, STALE, &mut same, 1, &mut copy);
        "a key of the token" C_CopyObject(s, public, &mut same, 1, &mut copy);
    }
    // Only one public key has the label, as before.
    call!(module, C_DestroyObject(s, copy));
    calls! { answers, module;
        "not active" C_FindObjects(s, found.as_mut_ptr(), 4, &mut count);
        "not active" C_FindObjectsFinal(s);
        "a class of one byte" C_FindObjectsInit(s, &mut short_class, 1);
        "good" C_FindObjectsFinal(s);
        "good" C_FindObjectsInit(s, &mut same, 1);
        "active" C_FindObjectsInit(s, &mut same, 1);
        "at most none" C_FindObjects(s, found.as_mut_ptr(), 0, &mut count);
        "good" C_FindObjects(s, found.as_mut_ptr(), 4, &mut count);
        "after the last one" C_FindObjects(s, found.as_mut_ptr(), 4, &mut count);
        "good" C_FindObjectsFinal(s);
        "good" C_CloseSession(read_only);
    }
    answers
}

/// Handles after what they name has ended.
fn of_ends(session: &Session, slot: CK_SLOT_ID) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let private = session.only(CKO_PRIVATE_KEY, "p256");
    let mut mechanism = CK_MECHANISM { mechanism: CKM_ECDSA, pParameter: null_mut(), ulParameterLen: 0 };
    let mut room = [0; 64];
    let mut label = wanted(CKA_LABEL, &mut room);
    let mut answers = Vec::new();
    calls! { answers, module;
        "good" C_Logout(s);
        "a private key after the logout" C_SignInit(s, &mut mechanism, private);
        "a private key after the logout" C_GetAttributeValue(s, private, &mut label, 1);
        "good" C_CloseAllSessions(slot);
        "after all sessions were closed" C_SignInit(s, &mut mechanism, private);
        "good" C_Finalize(null_mut());
        "after the end" C_Finalize(null_mut());
        "after the end" C_SignInit(s, &mut mechanism, private);
    }
    answers
}
