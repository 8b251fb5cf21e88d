//! AES-GCM, whose nonces the service makes. The functions of PKCS #11 3.0 encrypt messages, and
//! those that every program has decrypt them.

use crate::support::codes::name;
use crate::support::raw::{Session, attribute, call, number, ok};
use crate::support::{OPEN, apart, module_path};
use cryptoki_sys::*;
use std::ptr::{from_mut, null_mut};

const ASSOCIATED_DATA: &[u8] = b"a header";

/// The table of PKCS #11 3.0, for the rest of the process.
fn newer_table() -> &'static CK_FUNCTION_LIST_3_0 {
    // SAFETY: the module is loaded already, so nothing begins here.
    let library = Box::leak(Box::new(unsafe { libloading::Library::new(module_path()) }.expect("a module")));
    type Get = unsafe extern "C" fn(*mut u8, *mut CK_VERSION, *mut *mut CK_INTERFACE, CK_FLAGS) -> CK_RV;
    // SAFETY: the standard gives this function this type.
    let get: libloading::Symbol<'_, Get> = unsafe { library.get(b"C_GetInterface") }.expect("it is there");
    let (mut version, mut found) = (CK_VERSION { major: 3, minor: 0 }, null_mut());
    // SAFETY: the name ends with a zero, and the others live until the call ends.
    let code = unsafe { get(c"PKCS 11".as_ptr().cast_mut().cast(), &mut version, &mut found, 0) };
    assert_eq!(name(code), "CKR_OK");
    // SAFETY: this version of the interface has this table, which lives as long as the module.
    unsafe { &*(*found).pFunctionList.cast() }
}

/// Makes a key of AES-256.
fn generate(session: &Session) -> CK_OBJECT_HANDLE {
    let (yes, length) = ([CK_TRUE], 32);
    let mut template = [
        attribute(CKA_LABEL, b"secret"),
        attribute(CKA_TOKEN, &yes),
        attribute(CKA_ENCRYPT, &yes),
        attribute(CKA_DECRYPT, &yes),
        attribute(CKA_VALUE_LEN, number(&length)),
    ];
    let mut mechanism =
        CK_MECHANISM { mechanism: CKM_AES_KEY_GEN, pParameter: null_mut(), ulParameterLen: 0 };
    let (count, mut key) = (template.len() as CK_ULONG, 0);
    let code = call!(
        session.module,
        C_GenerateKey(session.handle, &mut mechanism, template.as_mut_ptr(), count, &mut key)
    );
    assert_eq!(name(code), "CKR_OK");
    key
}

/// A message and what decrypts it.
struct Encrypted {
    nonce: [u8; 12],
    /// With the tag at its end.
    ciphertext: Vec<u8>,
}

fn encrypt(session: &Session, key: CK_OBJECT_HANDLE, plaintext: &[u8]) -> Encrypted {
    let (table, handle) = (newer_table(), session.handle);
    let mut mechanism = CK_MECHANISM { mechanism: CKM_AES_GCM, pParameter: null_mut(), ulParameterLen: 0 };
    let begin = table.C_MessageEncryptInit.expect("the table has it");
    // SAFETY: the mechanism lives until the call ends.
    assert_eq!(name(unsafe { begin(handle, &mut mechanism, key) }), "CKR_OK");
    let (mut nonce, mut tag) = ([0; 12], [0; 16]);
    let mut parameters = CK_GCM_MESSAGE_PARAMS {
        pIv: nonce.as_mut_ptr(),
        ulIvLen: 12,
        ulIvFixedBits: 0,
        ivGenerator: CKG_GENERATE_RANDOM,
        pTag: tag.as_mut_ptr(),
        ulTagBits: 128,
    };
    let mut ciphertext = vec![0; plaintext.len()];
    let mut length = ciphertext.len() as CK_ULONG;
    let encrypt = table.C_EncryptMessage.expect("the table has it");
    // SAFETY: each pointer is to memory of the length beside it, which lives until the call ends.
    let code = unsafe {
        encrypt(
            handle,
            from_mut(&mut parameters).cast(),
            size_of::<CK_GCM_MESSAGE_PARAMS>() as CK_ULONG,
            ASSOCIATED_DATA.as_ptr().cast_mut(),
            ASSOCIATED_DATA.len() as CK_ULONG,
            plaintext.as_ptr().cast_mut(),
            plaintext.len() as CK_ULONG,
            ciphertext.as_mut_ptr(),
            &mut length,
        )
    };
    assert_eq!((name(code).as_str(), length), ("CKR_OK", plaintext.len() as CK_ULONG));
    let end = table.C_MessageEncryptFinal.expect("the table has it");
    // SAFETY: it has no pointers.
    assert_eq!(name(unsafe { end(handle) }), "CKR_OK");
    ciphertext.extend_from_slice(&tag);
    Encrypted { nonce, ciphertext }
}

fn decrypt(session: &Session, key: CK_OBJECT_HANDLE, message: &Encrypted) -> Result<Vec<u8>, String> {
    let mut nonce = message.nonce;
    let mut parameters = CK_GCM_PARAMS {
        pIv: nonce.as_mut_ptr(),
        ulIvLen: 12,
        ulIvBits: 96,
        pAAD: ASSOCIATED_DATA.as_ptr().cast_mut(),
        ulAADLen: ASSOCIATED_DATA.len() as CK_ULONG,
        ulTagBits: 128,
    };
    let mut mechanism = CK_MECHANISM {
        mechanism: CKM_AES_GCM,
        pParameter: from_mut(&mut parameters).cast(),
        ulParameterLen: size_of::<CK_GCM_PARAMS>() as CK_ULONG,
    };
    ok(call!(session.module, C_DecryptInit(session.handle, &mut mechanism, key))).map_err(name)?;
    let (mut plaintext, mut ciphertext) = (vec![0; message.ciphertext.len()], message.ciphertext.clone());
    let mut length = plaintext.len() as CK_ULONG;
    let code = call!(
        session.module,
        C_Decrypt(
            session.handle,
            ciphertext.as_mut_ptr(),
            ciphertext.len() as CK_ULONG,
            plaintext.as_mut_ptr(),
            &mut length
        )
    );
    ok(code).map_err(name)?;
    plaintext.truncate(length as usize);
    Ok(plaintext)
}

#[test]
fn messages_are_encrypted_with_a_nonce_of_the_service_and_decrypted_again() {
    let test = "ciphers::messages_are_encrypted_with_a_nonce_of_the_service_and_decrypted_again";
    apart(test, |place| {
        let (_serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let session = module.open(module.slot(OPEN)).expect("a session");
        let key = generate(&session);
        let [mut first, second] = [(); 2].map(|()| encrypt(&session, key, b"a plaintext"));
        assert_ne!(first.nonce, second.nonce);
        for message in [&first, &second] {
            assert_eq!(decrypt(&session, key, message).as_deref(), Ok(&b"a plaintext"[..]));
        }
        first.ciphertext[0] ^= 1;
        assert_eq!(decrypt(&session, key, &first), Err("CKR_ENCRYPTED_DATA_INVALID".to_owned()));
    });
}
