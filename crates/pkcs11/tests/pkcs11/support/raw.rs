//! A module's functions, as a host program calls them.

use cryptoki_sys::{
    CK_ATTRIBUTE, CK_ATTRIBUTE_TYPE, CK_C_INITIALIZE_ARGS, CK_FUNCTION_LIST, CK_MECHANISM, CK_MECHANISM_TYPE,
    CK_OBJECT_CLASS, CK_OBJECT_HANDLE, CK_RSA_PKCS_PSS_PARAMS, CK_RV, CK_SESSION_HANDLE, CK_SLOT_ID,
    CK_TOKEN_INFO, CK_TRUE, CK_ULONG, CKA_CLASS, CKA_LABEL, CKF_OS_LOCKING_OK, CKF_RW_SESSION,
    CKF_SERIAL_SESSION, CKR_OK, CKU_USER,
};
use libloading::{Library, Symbol};
use std::mem::{MaybeUninit, size_of};
use std::path::Path;
use std::ptr::{from_mut, from_ref, null_mut};

/// Calls a function of a module's table, with arguments that may be as wrong as a host program's.
macro_rules! call {
    ($module:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let function = $module.list.$name.expect(concat!("the table has ", stringify!($name)));
        // SAFETY: each pointer is null, or is to memory of the length beside it, which lives until
        // the call ends.
        unsafe { function($($argument),*) }
    }};
}
pub(crate) use call;

/// What a call gives: bytes, or the standard's code.
pub(crate) type Outcome<T = Vec<u8>> = Result<T, CK_RV>;

/// `CKR_OK` as a success.
pub(crate) fn ok(code: CK_RV) -> Outcome<()> {
    if code == CKR_OK { Ok(()) } else { Err(code) }
}

/// A loaded module.
#[derive(Clone, Copy)]
pub(crate) struct Module {
    pub(crate) list: &'static CK_FUNCTION_LIST,
}

impl Module {
    /// Loads it, for the rest of the process.
    pub(crate) fn load(path: &Path) -> Self {
        // SAFETY: the module's initializers are those of Rust's and C++'s libraries.
        let library = unsafe { Library::new(path) }.unwrap_or_else(|error| panic!("{error}"));
        let library = Box::leak(Box::new(library));
        let mut list = null_mut();
        // SAFETY: the standard gives this function this type.
        let code = unsafe {
            let get: Symbol<'_, unsafe extern "C" fn(*mut *mut CK_FUNCTION_LIST) -> CK_RV> =
                library.get(b"C_GetFunctionList").expect("a PKCS #11 module");
            get(&mut list)
        };
        assert_eq!(code, CKR_OK);
        // SAFETY: the table is the module's, which stays loaded.
        Self { list: unsafe { &*list } }
    }

    /// `C_Initialize`, for threads with the system's locks.
    pub(crate) fn initialize(&self) -> Outcome<()> {
        let mut args = CK_C_INITIALIZE_ARGS {
            CreateMutex: None,
            DestroyMutex: None,
            LockMutex: None,
            UnlockMutex: None,
            flags: CKF_OS_LOCKING_OK,
            pReserved: null_mut(),
        };
        ok(call!(self, C_Initialize(from_mut(&mut args).cast())))
    }

    pub(crate) fn finalize(&self) -> Outcome<()> {
        ok(call!(self, C_Finalize(null_mut())))
    }

    /// The slots with a token.
    pub(crate) fn slots(&self) -> Outcome<Vec<CK_SLOT_ID>> {
        let mut count = 0;
        ok(call!(self, C_GetSlotList(CK_TRUE, null_mut(), &mut count)))?;
        let mut slots = vec![0; usize::try_from(count).expect("a count")];
        ok(call!(self, C_GetSlotList(CK_TRUE, slots.as_mut_ptr(), &mut count)))?;
        slots.truncate(usize::try_from(count).expect("a count"));
        Ok(slots)
    }

    pub(crate) fn token(&self, slot: CK_SLOT_ID) -> Outcome<CK_TOKEN_INFO> {
        let mut info = MaybeUninit::zeroed();
        ok(call!(self, C_GetTokenInfo(slot, info.as_mut_ptr())))?;
        // SAFETY: every pattern of bits is such a value: it has numbers and bytes alone.
        Ok(unsafe { info.assume_init() })
    }

    /// The slot whose token has this label.
    ///
    /// # Panics
    /// No token has this label.
    pub(crate) fn slot(&self, label: &str) -> CK_SLOT_ID {
        let is_it = |slot: &CK_SLOT_ID| {
            let info = self.token(*slot).expect("information about a token");
            String::from_utf8_lossy(&info.label).trim_end() == label
        };
        let slots = self.slots().expect("a list of slots");
        *slots.iter().find(|slot| is_it(slot)).unwrap_or_else(|| panic!("no token {label:?} in {slots:?}"))
    }

    /// A session that may write.
    pub(crate) fn open(&self, slot: CK_SLOT_ID) -> Outcome<Session> {
        let mut handle = 0;
        let flags = CKF_SERIAL_SESSION | CKF_RW_SESSION;
        ok(call!(self, C_OpenSession(slot, flags, null_mut(), None, &mut handle)))?;
        Ok(Session { module: *self, handle })
    }
}

/// An open session. It stays open when it is dropped.
#[derive(Clone, Copy)]
pub(crate) struct Session {
    pub(crate) module: Module,
    pub(crate) handle: CK_SESSION_HANDLE,
}

/// A mechanism with its parameters.
#[derive(Clone, Copy)]
pub(crate) struct Mechanism {
    pub(crate) kind: CK_MECHANISM_TYPE,
    pub(crate) pss: Option<CK_RSA_PKCS_PSS_PARAMS>,
}

impl From<CK_MECHANISM_TYPE> for Mechanism {
    fn from(kind: CK_MECHANISM_TYPE) -> Self {
        Self { kind, pss: None }
    }
}

impl Mechanism {
    fn with<T>(mut self, work: impl FnOnce(*mut CK_MECHANISM) -> T) -> T {
        let length = self.pss.map_or(0, |_| size_of::<CK_RSA_PKCS_PSS_PARAMS>());
        let parameter = self.pss.as_mut().map_or(null_mut(), |parameters| from_mut(parameters).cast());
        work(&mut CK_MECHANISM {
            mechanism: self.kind,
            pParameter: parameter,
            ulParameterLen: length as CK_ULONG,
        })
    }
}

/// An attribute for a template. It only reads from `value`.
pub(crate) fn attribute(kind: CK_ATTRIBUTE_TYPE, value: &[u8]) -> CK_ATTRIBUTE {
    CK_ATTRIBUTE {
        type_: kind,
        pValue: value.as_ptr().cast_mut().cast(),
        ulValueLen: value.len() as CK_ULONG,
    }
}

/// Where a module reads from: it has no `const`.
fn input(bytes: &[u8]) -> (*mut u8, CK_ULONG) {
    (bytes.as_ptr().cast_mut(), bytes.len() as CK_ULONG)
}

/// Asks for the length first and for the bytes then, as the standard says.
fn output(mut write: impl FnMut(*mut u8, *mut CK_ULONG) -> CK_RV) -> Outcome {
    let mut length = 0;
    ok(write(null_mut(), &mut length))?;
    let mut bytes = vec![0; usize::try_from(length).expect("a length")];
    ok(write(bytes.as_mut_ptr(), &mut length))?;
    bytes.truncate(usize::try_from(length).expect("a length"));
    Ok(bytes)
}

impl Session {
    pub(crate) fn close(self) -> Outcome<()> {
        ok(call!(self.module, C_CloseSession(self.handle)))
    }

    pub(crate) fn login(&self, pin: &str) -> Outcome<()> {
        let (pin, length) = input(pin.as_bytes());
        ok(call!(self.module, C_Login(self.handle, CKU_USER, pin, length)))
    }

    pub(crate) fn logout(&self) -> Outcome<()> {
        ok(call!(self.module, C_Logout(self.handle)))
    }

    /// The objects that have these attributes.
    pub(crate) fn find(&self, template: &[CK_ATTRIBUTE]) -> Outcome<Vec<CK_OBJECT_HANDLE>> {
        let count = template.len() as CK_ULONG;
        let template = template.as_ptr().cast_mut();
        ok(call!(self.module, C_FindObjectsInit(self.handle, template, count)))?;
        let mut all = Vec::new();
        loop {
            // A small number, so that there are several calls.
            let (mut some, mut count) = ([0; 3], 0);
            let code = call!(self.module, C_FindObjects(self.handle, some.as_mut_ptr(), 3, &mut count));
            let count = usize::try_from(count).expect("a count");
            if code != CKR_OK || count == 0 {
                let end = call!(self.module, C_FindObjectsFinal(self.handle));
                return ok(code).and(ok(end)).map(|()| all);
            }
            all.extend_from_slice(&some[..count]);
        }
    }

    /// The objects of this class with this label.
    pub(crate) fn named(&self, class: CK_OBJECT_CLASS, label: &str) -> Outcome<Vec<CK_OBJECT_HANDLE>> {
        self.find(&[attribute(CKA_CLASS, &class.to_ne_bytes()), attribute(CKA_LABEL, label.as_bytes())])
    }

    /// The only object of this class with this label.
    ///
    /// # Panics
    /// There is no such object, or there are several.
    pub(crate) fn only(&self, class: CK_OBJECT_CLASS, label: &str) -> CK_OBJECT_HANDLE {
        let found = self.named(class, label).unwrap_or_else(|code| panic!("{label}: {code:#x}"));
        assert_eq!(found.len(), 1, "objects of the class {class} with the label {label}");
        found[0]
    }

    /// One attribute's value.
    pub(crate) fn attribute(&self, object: CK_OBJECT_HANDLE, kind: CK_ATTRIBUTE_TYPE) -> Outcome {
        output(|bytes, length| {
            // SAFETY: `output` gives a pointer to its own length.
            let room = unsafe { *length };
            let mut one = CK_ATTRIBUTE { type_: kind, pValue: bytes.cast(), ulValueLen: room };
            let code = call!(self.module, C_GetAttributeValue(self.handle, object, &mut one, 1));
            // SAFETY: as above.
            unsafe { *length = one.ulValueLen };
            code
        })
    }

    pub(crate) fn sign_init(&self, mechanism: impl Into<Mechanism>, key: CK_OBJECT_HANDLE) -> Outcome<()> {
        let mechanism = mechanism.into();
        ok(mechanism.with(|mechanism| call!(self.module, C_SignInit(self.handle, mechanism, key))))
    }

    pub(crate) fn sign(
        &self,
        mechanism: impl Into<Mechanism>,
        key: CK_OBJECT_HANDLE,
        message: &[u8],
    ) -> Outcome {
        self.sign_init(mechanism, key)?;
        let (message, length) = input(message);
        output(|to, room| call!(self.module, C_Sign(self.handle, message, length, to, room)))
    }

    /// Signs a message in several parts.
    pub(crate) fn sign_parts(
        &self,
        mechanism: impl Into<Mechanism>,
        key: CK_OBJECT_HANDLE,
        parts: &[&[u8]],
    ) -> Outcome {
        self.sign_init(mechanism, key)?;
        for part in parts {
            let (part, length) = input(part);
            ok(call!(self.module, C_SignUpdate(self.handle, part, length)))?;
        }
        output(|to, room| call!(self.module, C_SignFinal(self.handle, to, room)))
    }

    pub(crate) fn verify(
        &self,
        mechanism: impl Into<Mechanism>,
        key: CK_OBJECT_HANDLE,
        message: &[u8],
        signature: &[u8],
    ) -> Outcome<()> {
        let mechanism = mechanism.into();
        ok(mechanism.with(|mechanism| call!(self.module, C_VerifyInit(self.handle, mechanism, key))))?;
        let ((message, length), (signature, room)) = (input(message), input(signature));
        ok(call!(self.module, C_Verify(self.handle, message, length, signature, room)))
    }

    pub(crate) fn digest(&self, kind: CK_MECHANISM_TYPE, message: &[u8]) -> Outcome {
        let mechanism = Mechanism::from(kind);
        ok(mechanism.with(|mechanism| call!(self.module, C_DigestInit(self.handle, mechanism))))?;
        let (message, length) = input(message);
        output(|to, room| call!(self.module, C_Digest(self.handle, message, length, to, room)))
    }

    pub(crate) fn random<const N: usize>(&self) -> Outcome<[u8; N]> {
        let mut bytes = [0; N];
        ok(call!(self.module, C_GenerateRandom(self.handle, bytes.as_mut_ptr(), N as CK_ULONG)))?;
        Ok(bytes)
    }
}

/// A number of the standard as the bytes of an attribute.
pub(crate) fn number(value: &CK_ULONG) -> &[u8] {
    // SAFETY: it is that many initialized bytes.
    unsafe { std::slice::from_raw_parts(from_ref(value).cast(), size_of::<CK_ULONG>()) }
}
