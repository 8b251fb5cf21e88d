//! Digests, signatures and encryption, as `compare` calls them.

use crate::compare::{Answer, STALE, calls};
use crate::support::raw::{Session, call};
use cryptoki_sys::*;
use std::ptr::{from_mut, null_mut};

/// A mechanism without parameters.
pub(crate) fn plain(kind: CK_MECHANISM_TYPE) -> CK_MECHANISM {
    CK_MECHANISM { mechanism: kind, pParameter: null_mut(), ulParameterLen: 0 }
}

/// Another session of the same slot, in which nothing is active.
fn fresh(session: &Session) -> Session {
    let mut info = std::mem::MaybeUninit::<CK_SESSION_INFO>::zeroed();
    assert_eq!(call!(session.module, C_GetSessionInfo(session.handle, info.as_mut_ptr())), CKR_OK);
    // SAFETY: every pattern of bits is such a value: it has numbers alone.
    let slot = unsafe { info.assume_init() }.slotID;
    session.module.open(slot).expect("a session")
}

pub(crate) fn answers(session: &Session) -> Vec<Answer> {
    let parts = [of_digests, of_signing, of_pieces, of_data, of_verifying, of_encryption, of_decryption];
    let mut all: Vec<_> = parts.iter().flat_map(|part| part(&fresh(session))).collect();
    all.extend(of_both(&fresh(session)));
    all
}

fn of_digests(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let (mut data, mut out) = (*b"a message", [0; 64]);
    let (data, to) = (data.as_mut_ptr(), out.as_mut_ptr());
    let mut parameter = 0_u64;
    let mut with_parameter = CK_MECHANISM {
        mechanism: CKM_SHA256,
        pParameter: from_mut(&mut parameter).cast(),
        ulParameterLen: 8,
    };
    let key = session.only(CKO_PRIVATE_KEY, "rsa");
    let mut answers = Vec::new();
    calls! { answers, module;
        "not active" C_Digest(s, data, 9, to, &mut { 64 });
        "not active" C_DigestUpdate(s, data, 9);
        "not active" C_DigestFinal(s, to, &mut { 64 });
        "no such mechanism" C_DigestInit(s, &mut plain(CKM_VENDOR_DEFINED));
        "a mechanism that signs" C_DigestInit(s, &mut plain(CKM_ECDSA));
        "parameters that it does not take" C_DigestInit(fresh(session).handle, &mut with_parameter);
        "no such session" C_DigestInit(STALE, &mut plain(CKM_SHA256));
        "good" C_DigestInit(s, &mut plain(CKM_SHA256));
        "active" C_DigestInit(s, &mut plain(CKM_SHA256));
        "the length" C_Digest(s, data, 9, null_mut(), &mut { 0 });
        "a short buffer" C_Digest(s, data, 9, to, &mut { 31 });
        "good" C_Digest(s, data, 9, to, &mut { 64 });
        "after the end" C_Digest(s, data, 9, to, &mut { 64 });
        "before pieces" C_DigestInit(s, &mut plain(CKM_SHA256));
        "a piece" C_DigestUpdate(s, data, 9);
        "an empty piece" C_DigestUpdate(s, data, 0);
        "a private key" C_DigestKey(s, key);
        "a short buffer" C_DigestFinal(s, to, &mut { 31 });
        "good" C_DigestFinal(s, to, &mut { 64 });
        "before one piece" C_DigestInit(s, &mut plain(CKM_SHA256));
        "without a piece" C_DigestFinal(s, to, &mut { 64 });
        "for a whole message after a piece" C_DigestInit(s, &mut plain(CKM_SHA256));
        "the first of two ways" C_DigestUpdate(s, data, 9);
        "after a piece" C_Digest(s, data, 9, to, &mut { 64 });
        "before bad arguments" C_DigestInit(s, &mut plain(CKM_SHA256));
        "no place for the length" C_Digest(s, data, 9, to, null_mut());
        "after bad arguments" C_DigestInit(s, &mut plain(CKM_SHA256));
    }
    answers
}

fn of_signing(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    // What begins here does not end what others begin.
    let other = || fresh(session).handle;
    let of = |class, key| session.only(class, key);
    let (p256, public) = (of(CKO_PRIVATE_KEY, "p256"), of(CKO_PUBLIC_KEY, "p256"));
    let rsa = of(CKO_PRIVATE_KEY, "rsa");
    let mut short = [0_u8; 3];
    let mut pss = CK_MECHANISM {
        mechanism: CKM_RSA_PKCS_PSS,
        pParameter: short.as_mut_ptr().cast(),
        ulParameterLen: 3,
    };
    let mut wrong_hash = CK_RSA_PKCS_PSS_PARAMS { hashAlg: CKM_SHA384, mgf: CKG_MGF1_SHA384, sLen: 48 };
    let mut wrong_pss = CK_MECHANISM {
        mechanism: CKM_SHA256_RSA_PKCS_PSS,
        pParameter: from_mut(&mut wrong_hash).cast(),
        ulParameterLen: size_of::<CK_RSA_PKCS_PSS_PARAMS>() as CK_ULONG,
    };
    let (mut digest, mut out) = ([7; 32], [0; 512]);
    let (data, to) = (digest.as_mut_ptr(), out.as_mut_ptr());
    let mut answers = Vec::new();
    calls! { answers, module;
        "no such key" C_SignInit(other(), &mut plain(CKM_ECDSA), STALE);
        "a public key" C_SignInit(other(), &mut plain(CKM_ECDSA), public);
        "no such mechanism" C_SignInit(other(), &mut plain(CKM_VENDOR_DEFINED), p256);
        "a mechanism of other keys" C_SignInit(other(), &mut plain(CKM_ECDSA), rsa);
        "a mechanism that hashes" C_SignInit(other(), &mut plain(CKM_SHA256), p256);
        "PSS without parameters" C_SignInit(other(), &mut plain(CKM_RSA_PKCS_PSS), rsa);
        "short parameters" C_SignInit(other(), &mut pss, rsa);
        "another hash function than the mechanism's" C_SignInit(other(), &mut wrong_pss, rsa);
        "not active" C_Sign(s, data, 32, to, &mut { 64 });
        "not active" C_SignUpdate(s, data, 32);
        "not active" C_SignFinal(s, to, &mut { 64 });
        "good" C_SignInit(s, &mut plain(CKM_ECDSA), p256);
        "active" C_SignInit(s, &mut plain(CKM_ECDSA), p256);
        "the length" C_Sign(s, data, 32, null_mut(), &mut { 0 });
        "a short buffer" C_Sign(s, data, 32, to, &mut { 63 });
        "good" C_Sign(s, data, 32, to, &mut { 64 });
        "after the end" C_Sign(s, data, 32, to, &mut { 64 });
        "before bad arguments" C_SignInit(s, &mut plain(CKM_ECDSA), p256);
        "no place for the length" C_Sign(s, data, 32, to, null_mut());
        "after bad arguments" C_SignInit(s, &mut plain(CKM_ECDSA), p256);
        "a private key" C_SignRecoverInit(other(), &mut plain(CKM_RSA_PKCS), rsa);
        "not active" C_SignRecover(s, data, 32, to, &mut { 512 });
    }
    answers
}

/// Messages in pieces, by mechanisms that take them and by others.
fn of_pieces(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let (mut digest, mut out) = ([7; 32], [0; 512]);
    let (data, to) = (digest.as_mut_ptr(), out.as_mut_ptr());
    let mut answers = Vec::new();
    for (key, kind) in
        [("rsa", CKM_SHA256_RSA_PKCS), ("rsa", CKM_RSA_PKCS), ("p256", CKM_ECDSA), ("ed", CKM_EDDSA)]
    {
        let private = session.only(CKO_PRIVATE_KEY, key);
        // Each way begins in a session of its own.
        let [one, two] = [(); 2].map(|()| fresh(session).handle);
        let mut some = Vec::new();
        calls! { some, module;
            "in pieces" C_SignInit(one, &mut plain(kind), private);
            "a piece" C_SignUpdate(one, data, 32);
            "the whole message after a piece" C_Sign(one, data, 32, to, &mut { 512 });
            "without pieces" C_SignInit(two, &mut plain(kind), private);
            "without pieces" C_SignFinal(two, to, &mut { 512 });
        }
        answers.extend(some.into_iter().map(|(call, code)| (format!("{call}, {key} by {kind:#x}"), code)));
    }
    let private = session.only(CKO_PRIVATE_KEY, "rsa");
    calls! { answers, module;
        "by RSA in pieces" C_SignInit(s, &mut plain(CKM_SHA256_RSA_PKCS), private);
        "by RSA" C_SignUpdate(s, data, 32);
        "by RSA, the length" C_SignFinal(s, null_mut(), &mut { 0 });
        "by RSA, a short buffer" C_SignFinal(s, to, &mut { 255 });
        "by RSA" C_SignFinal(s, to, &mut { 512 });
        "by RSA, after the end" C_SignFinal(s, to, &mut { 512 });
    }
    answers
}

/// Data that a mechanism takes, or does not.
fn of_data(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let (mut data, mut out) = ([7; 1000], [0; 512]);
    let (data, to) = (data.as_mut_ptr(), out.as_mut_ptr());
    let private = |key| session.only(CKO_PRIVATE_KEY, key);
    let begin = |kind, key| call!(module, C_SignInit(s, &mut plain(kind), private(key)));
    let mut answers = Vec::new();
    for length in [0, 20, 32, 48, 64, 1000] {
        for (key, kind) in
            [("p256", CKM_ECDSA), ("p384", CKM_ECDSA), ("rsa", CKM_RSA_PKCS), ("ed", CKM_EDDSA)]
        {
            assert_eq!(begin(kind, key), CKR_OK, "{key}");
            let code = call!(module, C_Sign(s, data, length, to, &mut { 512 }));
            answers.push((format!("C_Sign, {length} bytes, {key} by {kind:#x}"), code));
            // An error may leave the operation active.
            let _ = call!(module, C_Sign(s, data, 32, to, &mut { 512 }));
        }
    }
    answers
}

fn of_verifying(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    // What begins here does not end what others begin.
    let other = || fresh(session).handle;
    let of = |class, key| session.only(class, key);
    let (p256, private) = (of(CKO_PUBLIC_KEY, "p256"), of(CKO_PRIVATE_KEY, "p256"));
    let rsa = of(CKO_PUBLIC_KEY, "rsa");
    let (mut digest, mut signature) = ([7; 32], [9; 256]);
    let (data, signature) = (digest.as_mut_ptr(), signature.as_mut_ptr());
    let mut answers = Vec::new();
    calls! { answers, module;
        "no such key" C_VerifyInit(other(), &mut plain(CKM_ECDSA), STALE);
        "a private key" C_VerifyInit(other(), &mut plain(CKM_ECDSA), private);
        "no such mechanism" C_VerifyInit(other(), &mut plain(CKM_VENDOR_DEFINED), p256);
        "a mechanism of other keys" C_VerifyInit(other(), &mut plain(CKM_RSA_PKCS), p256);
        "not active" C_Verify(s, data, 32, signature, 64);
        "not active" C_VerifyUpdate(s, data, 32);
        "not active" C_VerifyFinal(s, signature, 64);
        "good" C_VerifyInit(s, &mut plain(CKM_ECDSA), p256);
        "active" C_VerifyInit(s, &mut plain(CKM_ECDSA), p256);
        "another signature" C_Verify(s, data, 32, signature, 64);
        "after the end" C_Verify(s, data, 32, signature, 64);
        "for a signature of another length" C_VerifyInit(s, &mut plain(CKM_ECDSA), p256);
        "a signature of another length" C_Verify(s, data, 32, signature, 63);
        "for an empty signature" C_VerifyInit(s, &mut plain(CKM_ECDSA), p256);
        "an empty signature" C_Verify(s, data, 32, signature, 0);
        "by RSA in pieces" C_VerifyInit(s, &mut plain(CKM_SHA256_RSA_PKCS), rsa);
        "by RSA" C_VerifyUpdate(s, data, 32);
        "by RSA, another signature" C_VerifyFinal(s, signature, 256);
        "by RSA, after the end" C_VerifyFinal(s, signature, 256);
        "for a signature of another length" C_VerifyInit(s, &mut plain(CKM_SHA256_RSA_PKCS), rsa);
        "by RSA, a signature of another length" C_Verify(s, data, 32, signature, 255);
        "a public key" C_VerifyRecoverInit(other(), &mut plain(CKM_RSA_PKCS), rsa);
        "not active" C_VerifyRecover(s, signature, 64, data, &mut { 32 });
    }
    answers
}

/// OAEP with SHA-256 and an empty label.
fn oaep() -> CK_RSA_PKCS_OAEP_PARAMS {
    CK_RSA_PKCS_OAEP_PARAMS {
        hashAlg: CKM_SHA_1,
        mgf: CKG_MGF1_SHA1,
        source: CKZ_DATA_SPECIFIED,
        pSourceData: null_mut(),
        ulSourceDataLen: 0,
    }
}

fn of_encryption(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    // What begins here does not end what others begin.
    let other = || fresh(session).handle;
    let (rsa, p256) = (session.only(CKO_PUBLIC_KEY, "rsa"), session.only(CKO_PUBLIC_KEY, "p256"));
    let mut parameters = oaep();
    let mut mechanism = CK_MECHANISM {
        mechanism: CKM_RSA_PKCS_OAEP,
        pParameter: from_mut(&mut parameters).cast(),
        ulParameterLen: size_of::<CK_RSA_PKCS_OAEP_PARAMS>() as CK_ULONG,
    };
    let (mut data, mut out) = ([7; 32], [0; 512]);
    let (data, to) = (data.as_mut_ptr(), out.as_mut_ptr());
    let mut answers = Vec::new();
    calls! { answers, module;
        "not active" C_Encrypt(s, data, 32, to, &mut { 512 });
        "not active" C_EncryptUpdate(s, data, 32, to, &mut { 512 });
        "not active" C_EncryptFinal(s, to, &mut { 512 });
        "no such key" C_EncryptInit(other(), &mut mechanism, STALE);
        "no such mechanism" C_EncryptInit(other(), &mut plain(CKM_VENDOR_DEFINED), rsa);
        "a key of another type" C_EncryptInit(other(), &mut mechanism, p256);
        "OAEP without parameters" C_EncryptInit(other(), &mut plain(CKM_RSA_PKCS_OAEP), rsa);
        "OAEP with SHA-1" C_EncryptInit(other(), &mut mechanism, rsa);
    }
    answers
}

fn of_decryption(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    // What begins here does not end what others begin.
    let other = || fresh(session).handle;
    let (rsa, p256) = (session.only(CKO_PRIVATE_KEY, "rsa"), session.only(CKO_PRIVATE_KEY, "p256"));
    let (mut data, mut out) = ([7; 256], [0; 512]);
    let (data, to) = (data.as_mut_ptr(), out.as_mut_ptr());
    let mut answers = Vec::new();
    calls! { answers, module;
        "not active" C_Decrypt(s, data, 256, to, &mut { 512 });
        "not active" C_DecryptUpdate(s, data, 256, to, &mut { 512 });
        "not active" C_DecryptFinal(s, to, &mut { 512 });
        "no such key" C_DecryptInit(other(), &mut plain(CKM_RSA_PKCS), STALE);
        "no such mechanism" C_DecryptInit(other(), &mut plain(CKM_VENDOR_DEFINED), rsa);
        "PKCS #1 1.5" C_DecryptInit(other(), &mut plain(CKM_RSA_PKCS), rsa);
        "a key of another type" C_DecryptInit(other(), &mut plain(CKM_RSA_PKCS_OAEP), p256);
        "OAEP without parameters" C_DecryptInit(other(), &mut plain(CKM_RSA_PKCS_OAEP), rsa);
    }
    answers
}

/// Two operations at once.
fn of_both(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let (mut data, mut out) = ([7; 32], [0; 512]);
    let (data, to) = (data.as_mut_ptr(), out.as_mut_ptr());
    let mut answers = Vec::new();
    calls! { answers, module;
        "not active" C_DigestEncryptUpdate(s, data, 32, to, &mut { 512 });
        "not active" C_DecryptDigestUpdate(s, data, 32, to, &mut { 512 });
        "not active" C_SignEncryptUpdate(s, data, 32, to, &mut { 512 });
        "not active" C_DecryptVerifyUpdate(s, data, 32, to, &mut { 512 });
    }
    answers
}
