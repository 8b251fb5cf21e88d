//! What one call signs, another one verifies, and with one bit changed it does not.

use super::arguments::{Input, Mechanism, SIGNING};
use super::{CODES, OTHER_CODES, TABLE};
use cryptoki_sys::*;
use std::ptr::null_mut;

/// Signs a message, in one piece or two, and verifies the signature with the key of the same id.
pub(super) fn check(input: &mut Input<'_>, sessions: &[CK_SESSION_HANDLE], objects: &[CK_OBJECT_HANDLE]) {
    let (session, key) = (input.handle(sessions), input.handle(objects));
    let mechanism = Mechanism::new(input, &[], SIGNING);
    let mut message = input.vector();
    if mechanism.at.is_null() || call!(C_SignInit(session, mechanism.at, key)) != CKR_OK {
        return;
    }
    let (mut signature, mut length) = (vec![0; 1024], 1024);
    let code = match input.byte() % 2 {
        0 => {
            let (at, count) = (message.as_mut_ptr(), message.len() as CK_ULONG);
            call!(C_Sign(session, at, count, signature.as_mut_ptr(), &mut length))
        }
        _ => {
            let middle = message.len() / 2;
            for piece in [0..middle, middle..message.len()] {
                let piece = &mut message[piece];
                call!(C_SignUpdate(session, piece.as_mut_ptr(), piece.len() as CK_ULONG));
            }
            call!(C_SignFinal(session, signature.as_mut_ptr(), &mut length))
        }
    };
    if code != CKR_OK {
        return;
    }
    signature.truncate(length as usize);
    let Some(verifies) = public_of(session, key) else { return };
    let verify = |signature: &mut [u8], message: &mut [u8]| {
        // Another operation may be active.
        call!(C_VerifyInit(session, null_mut(), 0));
        assert_eq!(call!(C_VerifyInit(session, mechanism.at, verifies)), CKR_OK);
        let (at, count) = (message.as_mut_ptr(), message.len() as CK_ULONG);
        call!(C_Verify(session, at, count, signature.as_mut_ptr(), signature.len() as CK_ULONG))
    };
    assert_eq!(verify(&mut signature, &mut message), CKR_OK, "what was signed verifies");
    let place = usize::from(input.byte()) % signature.len();
    signature[place] ^= 1 << (input.byte() % 8);
    let code = verify(&mut signature, &mut message);
    assert_eq!(code, CKR_SIGNATURE_INVALID, "with bit {place} changed it does not");
}

/// The object that verifies what a key of the token signs: itself, if it is a secret key, also one
/// of a session.
fn public_of(session: CK_SESSION_HANDLE, key: CK_OBJECT_HANDLE) -> Option<CK_OBJECT_HANDLE> {
    let (mut class, mut id, mut verifies): (CK_OBJECT_CLASS, _, _) = (0, [0; 1024], [CK_TRUE]);
    let mut of_token = [CK_FALSE];
    let mut template = [
        CK_ATTRIBUTE { type_: CKA_CLASS, pValue: (&raw mut class).cast(), ulValueLen: 8 },
        CK_ATTRIBUTE { type_: CKA_TOKEN, pValue: of_token.as_mut_ptr().cast(), ulValueLen: 1 },
        CK_ATTRIBUTE { type_: CKA_ID, pValue: id.as_mut_ptr().cast(), ulValueLen: 1024 },
        CK_ATTRIBUTE { type_: CKA_VERIFY, pValue: verifies.as_mut_ptr().cast(), ulValueLen: 1 },
    ];
    assert_eq!(call!(C_GetAttributeValue(session, key, template.as_mut_ptr(), 3)), CKR_OK);
    if class == CKO_SECRET_KEY {
        // The program may have asked for one that only signs.
        assert_eq!(call!(C_GetAttributeValue(session, key, template[3..].as_mut_ptr(), 1)), CKR_OK);
        return (verifies == [CK_TRUE]).then_some(key);
    }
    if of_token == [CK_FALSE] {
        return None;
    }
    // Another search may be active.
    call!(C_FindObjectsFinal(session));
    assert_eq!(call!(C_FindObjectsInit(session, template[1..].as_mut_ptr(), 3)), CKR_OK);
    let (mut found, mut count) = (0, 0);
    assert_eq!(call!(C_FindObjects(session, &mut found, 1, &mut count)), CKR_OK);
    assert_eq!(call!(C_FindObjectsFinal(session)), CKR_OK);
    // Another caller may have destroyed it.
    (count == 1).then_some(found)
}
