//! Arguments of calls, decoded from the fuzzer's bytes: good ones, and those of a hostile program.
//!
//! Each argument owns the memory that its pointers point to, exactly as long as the call is told,
//! so that the address sanitizer sees every access beyond it.

use cryptoki_sys::*;
use std::ffi::c_void;
use std::ptr::{from_mut, null_mut};

/// What memory has that a call must not touch.
const UNTOUCHED: u8 = 0xaa;
/// The lengths that lists, digests, keys, points and signatures have, and others.
const LENGTHS: [usize; 24] =
    [0, 1, 2, 3, 8, 12, 16, 20, 28, 32, 33, 48, 51, 64, 65, 66, 67, 83, 97, 132, 133, 256, 257, 1000];

/// The fuzzer's bytes. After their end come zeros.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl Input<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(super) fn choose<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }

    /// Usually a good value, and sometimes one of the others.
    pub(super) fn handle(&mut self, good: &[CK_ULONG]) -> CK_ULONG {
        let place = self.byte();
        match good.get(usize::from(place) % (good.len() + 1)) {
            Some(handle) => *handle,
            None => self.choose(&[0, 1, 2, 3, 7, 0x7777, CK_ULONG::MAX, CK_ULONG::MAX - 1]),
        }
    }

    pub(super) fn number(&mut self) -> CK_ULONG {
        match self.byte() % 4 {
            0 => CK_ULONG::from(self.byte()),
            1 => self.choose(&[128, 2048, 3072, 1024, 65536, CK_ULONG::MAX, CK_ULONG::MAX / 2 + 1]),
            2 => self.choose(&[16, 24, 32, 48, 64]),
            _ => CK_ULONG::from(self.byte()) << 8 | CK_ULONG::from(self.byte()),
        }
    }

    /// Bytes of one of the usual lengths.
    pub(super) fn vector(&mut self) -> Vec<u8> {
        let (length, first, step) = (self.choose(&LENGTHS), self.byte(), self.byte());
        (0..length).map(|place| first.wrapping_add(step.wrapping_mul(place as u8))).collect()
    }

    fn of_pool(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        if pool.is_empty() || self.byte().is_multiple_of(2) {
            return self.vector();
        }
        let mut bytes = pool[usize::from(self.byte()) % pool.len()].clone();
        if let (1, false) = (self.byte() % 4, bytes.is_empty()) {
            let place = usize::from(self.byte()) % bytes.len();
            bytes[place] ^= 1;
        }
        bytes
    }
}

/// Bytes that a call reads.
pub(super) struct Bytes {
    _bytes: Vec<u8>,
    pub(super) at: *mut u8,
    pub(super) length: CK_ULONG,
}

impl Bytes {
    /// New bytes, or some of the pool: what calls wrote before.
    pub(super) fn new(input: &mut Input<'_>, pool: &[Vec<u8>]) -> Self {
        let mut bytes = input.of_pool(pool);
        let length = bytes.len() as CK_ULONG;
        let (at, length) = match input.byte() % 16 {
            0 => (null_mut(), 0),
            1 => (null_mut(), 9),
            // No object is that long, so nothing may be read.
            2 => (bytes.as_mut_ptr(), CK_ULONG::MAX / 2 + 1),
            3 => (bytes.as_mut_ptr(), CK_ULONG::MAX),
            _ => (bytes.as_mut_ptr(), length),
        };
        Self { _bytes: bytes, at, length }
    }
}

/// Memory for a result, and for its length.
pub(super) struct Room {
    bytes: Vec<u8>,
    length: Box<CK_ULONG>,
    pub(super) at: *mut u8,
    pub(super) length_at: *mut CK_ULONG,
}

impl Room {
    pub(super) fn new(input: &mut Input<'_>) -> Self {
        let mut bytes = vec![UNTOUCHED; input.choose(&LENGTHS)];
        let mut length = Box::new(bytes.len() as CK_ULONG);
        let kind = input.byte() % 8;
        let at = if kind == 0 { null_mut() } else { bytes.as_mut_ptr() };
        let length_at = if kind == 1 { null_mut() } else { from_mut(&mut *length) };
        Self { bytes, length, at, length_at }
    }

    /// Checks what a call wrote. Gives the bytes of a result.
    pub(super) fn check(self, function: &str, code: CK_RV) -> Option<Vec<u8>> {
        let written = match (code, self.at.is_null()) {
            (CKR_OK, false) => *self.length as usize,
            _ => 0,
        };
        assert!(written <= self.bytes.len(), "{function}: {written} bytes of {}", self.bytes.len());
        let rest = &self.bytes[written..];
        assert!(
            rest.iter().all(|byte| *byte == UNTOUCHED),
            "{function}: {code:#x} and bytes after the result"
        );
        if code == CKR_BUFFER_TOO_SMALL {
            assert!(*self.length as usize > self.bytes.len(), "{function}: the room was enough");
        }
        (written > 0).then(|| self.bytes[..written].to_vec())
    }
}

/// A place for a number, or none.
pub(super) struct NumberRoom {
    number: Box<CK_ULONG>,
    pub(super) at: *mut CK_ULONG,
}

impl NumberRoom {
    pub(super) fn new(input: &mut Input<'_>) -> Self {
        let mut number = Box::new(0);
        let at = if input.byte() % 16 == 1 { null_mut() } else { from_mut(&mut *number) };
        Self { number, at }
    }

    pub(super) fn get(&self) -> CK_ULONG {
        *self.number
    }
}

const KINDS: [CK_ATTRIBUTE_TYPE; 38] = [
    CKA_CLASS,
    CKA_TOKEN,
    CKA_PRIVATE,
    CKA_LABEL,
    CKA_VALUE,
    CKA_CERTIFICATE_TYPE,
    CKA_KEY_TYPE,
    CKA_ID,
    CKA_SENSITIVE,
    CKA_ENCRYPT,
    CKA_DECRYPT,
    CKA_SIGN,
    CKA_VERIFY,
    CKA_DERIVE,
    CKA_MODULUS,
    CKA_MODULUS_BITS,
    CKA_PUBLIC_EXPONENT,
    CKA_PRIVATE_EXPONENT,
    CKA_VALUE_LEN,
    CKA_EXTRACTABLE,
    CKA_EC_PARAMS,
    CKA_EC_POINT,
    CKA_ALLOWED_MECHANISMS,
    CKA_SUBJECT,
    CKA_ISSUER,
    CKA_SERIAL_NUMBER,
    CKA_PUBLIC_KEY_INFO,
    CKA_MODIFIABLE,
    CKA_UNIQUE_ID,
    CKA_START_DATE,
    CKA_WRAP,
    CKA_UNWRAP,
    CKA_COPYABLE,
    CKA_DESTROYABLE,
    CKA_ALWAYS_AUTHENTICATE,
    CKA_WRAP_WITH_TRUSTED,
    CKA_VENDOR_DEFINED,
    CK_ATTRIBUTE_TYPE::MAX,
];

/// The curves of the module, and one that it does not have.
pub(super) const CURVES: [&[u8]; 7] = [
    b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
    b"\x06\x05\x2b\x81\x04\x00\x22",
    b"\x06\x05\x2b\x81\x04\x00\x23",
    b"\x06\x03\x2b\x65\x70",
    b"\x06\x03\x2b\x65\x6e",
    b"\x13\x0cedwards25519",
    b"\x06\x05\x2b\x81\x04\x00\x0a",
];

/// Attributes, whose values a call reads or writes.
pub(super) struct Template {
    values: Vec<Vec<u8>>,
    list: Vec<CK_ATTRIBUTE>,
    pub(super) at: *mut CK_ATTRIBUTE,
    pub(super) count: CK_ULONG,
}

impl Template {
    /// Attributes that a call reads.
    pub(super) fn new(input: &mut Input<'_>, pool: &[Vec<u8>]) -> Self {
        let count = usize::from(input.byte() % 8);
        let (mut values, mut list) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let type_ = input.choose(&KINDS);
            let mut value = match (input.byte() % 8, type_) {
                (0, _) => input.of_pool(pool),
                (1, _) => input.number().to_ne_bytes().to_vec(),
                (_, CKA_CLASS) => input.choose(&[0, 1, 2, 3, 4, CKO_VENDOR_DEFINED]).to_ne_bytes().to_vec(),
                (_, CKA_KEY_TYPE) => input
                    .choose(&[
                        CKK_RSA,
                        CKK_EC,
                        CKK_EC_EDWARDS,
                        CKK_EC_MONTGOMERY,
                        CKK_AES,
                        CKK_GENERIC_SECRET,
                        CKK_SHA256_HMAC,
                    ])
                    .to_ne_bytes()
                    .to_vec(),
                (_, CKA_CERTIFICATE_TYPE) => CKC_X_509.to_ne_bytes().to_vec(),
                (_, CKA_EC_PARAMS) => input.choose(&CURVES).to_vec(),
                (_, CKA_PUBLIC_EXPONENT) => vec![1, 0, 1],
                // A longer key takes too long to make.
                (_, CKA_MODULUS_BITS) => {
                    input.choose(&[1024, 0, 100, 1000, 65536, CK_ULONG::MAX]).to_ne_bytes().to_vec()
                }
                (_, CKA_VALUE_LEN) => input.number().to_ne_bytes().to_vec(),
                (_, CKA_LABEL | CKA_ID | CKA_VALUE | CKA_MODULUS | CKA_EC_POINT | CKA_SUBJECT) => {
                    input.of_pool(pool)
                }
                _ => vec![input.byte() % 2],
            };
            let (pointer, length) = pointer(input, &mut value);
            list.push(CK_ATTRIBUTE { type_, pValue: pointer, ulValueLen: length });
            values.push(value);
        }
        Self::of(input, values, list)
    }

    /// Attributes whose values a call writes.
    pub(super) fn to_write(input: &mut Input<'_>) -> Self {
        let count = usize::from(input.byte() % 8);
        let (mut values, mut list) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let type_ = input.choose(&KINDS);
            let mut value = vec![UNTOUCHED; input.choose(&LENGTHS)];
            let at = if input.byte().is_multiple_of(4) { null_mut() } else { value.as_mut_ptr().cast() };
            list.push(CK_ATTRIBUTE { type_, pValue: at, ulValueLen: value.len() as CK_ULONG });
            values.push(value);
        }
        Self::of(input, values, list)
    }

    fn of(input: &mut Input<'_>, values: Vec<Vec<u8>>, mut list: Vec<CK_ATTRIBUTE>) -> Self {
        let count = list.len() as CK_ULONG;
        let (at, count) = match input.byte() % 16 {
            0 => (null_mut(), 0),
            1 => (null_mut(), 3),
            2 => (list.as_mut_ptr(), CK_ULONG::MAX),
            3 => (list.as_mut_ptr(), 1 << 20),
            _ => (list.as_mut_ptr(), count),
        };
        Self { values, list, at, count }
    }

    /// Checks what `C_GetAttributeValue` wrote. Gives the values.
    pub(super) fn check(self, function: &str) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for (attribute, value) in self.list.iter().zip(&self.values) {
            let length = attribute.ulValueLen as usize;
            let written = match attribute.pValue.is_null() || attribute.ulValueLen == CK_ULONG::MAX {
                true => 0,
                // A call that failed may have written nothing.
                false if value.iter().all(|byte| *byte == UNTOUCHED) => 0,
                false => length,
            };
            assert!(written <= value.len(), "{function}: {written} bytes of {}", value.len());
            let rest = &value[written..];
            assert!(rest.iter().all(|byte| *byte == UNTOUCHED), "{function}: bytes after a value");
            if written > 0 {
                all.push(value[..written].to_vec());
            }
        }
        all
    }
}

/// A pointer to a value and its length, or what a hostile program gives for them.
fn pointer(input: &mut Input<'_>, value: &mut [u8]) -> (*mut c_void, CK_ULONG) {
    let length = value.len() as CK_ULONG;
    match input.byte() % 32 {
        0 => (null_mut(), 0),
        1 => (null_mut(), length),
        2 => (value.as_mut_ptr().cast(), CK_ULONG::MAX),
        3 => (value.as_mut_ptr().cast(), (1 << 20) + 1),
        _ => (value.as_mut_ptr().cast(), length),
    }
}

/// Those that sign come first.
pub(super) const MECHANISMS: [CK_MECHANISM_TYPE; 48] = [
    CKM_EDDSA,
    CKM_ECDSA,
    CKM_ECDSA_SHA256,
    CKM_ECDSA_SHA384,
    CKM_ECDSA_SHA512,
    CKM_RSA_PKCS,
    CKM_SHA256_RSA_PKCS,
    CKM_SHA384_RSA_PKCS,
    CKM_SHA512_RSA_PKCS,
    CKM_SHA1_RSA_PKCS,
    CKM_SHA224_RSA_PKCS,
    CKM_RSA_PKCS_PSS,
    CKM_SHA1_RSA_PKCS_PSS,
    CKM_SHA256_RSA_PKCS_PSS,
    CKM_SHA384_RSA_PKCS_PSS,
    CKM_SHA512_RSA_PKCS_PSS,
    CKM_SHA256_HMAC,
    CKM_SHA384_HMAC,
    CKM_SHA512_HMAC,
    CKM_SHA_1_HMAC,
    CKM_SHA224_HMAC,
    CKM_RSA_PKCS_OAEP,
    CKM_AES_GCM,
    CKM_EC_EDWARDS_KEY_PAIR_GEN,
    CKM_EC_KEY_PAIR_GEN,
    CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
    CKM_RSA_PKCS_KEY_PAIR_GEN,
    CKM_AES_KEY_GEN,
    CKM_GENERIC_SECRET_KEY_GEN,
    CKM_ECDH1_DERIVE,
    CKM_SHA224,
    CKM_SHA256,
    CKM_SHA384,
    CKM_SHA512,
    CKM_AES_ECB,
    CKM_AES_CBC,
    CKM_AES_CBC_PAD,
    CKM_AES_CTR,
    CKM_AES_KEY_WRAP,
    CKM_AES_KEY_WRAP_PAD,
    CKM_AES_KEY_WRAP_KWP,
    CKM_AES_ECB_ENCRYPT_DATA,
    CKM_AES_CBC_ENCRYPT_DATA,
    CKM_AES_MAC,
    CKM_SHA_1,
    CKM_DES3_CBC,
    CKM_VENDOR_DEFINED,
    CK_MECHANISM_TYPE::MAX,
];

/// Those that sign.
pub(super) const SIGNING: &[CK_MECHANISM_TYPE] = MECHANISMS.split_at(21).0;

/// A mechanism with its parameters.
pub(super) struct Mechanism {
    _mechanism: Box<CK_MECHANISM>,
    _parameters: Vec<u8>,
    _inner: [Bytes; 2],
    pub(super) at: *mut CK_MECHANISM,
}

/// The bytes of a structure.
fn bytes_of<T: Copy>(value: T) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<T>()];
    // SAFETY: there is room for the value.
    unsafe { bytes.as_mut_ptr().cast::<T>().write_unaligned(value) };
    bytes
}

impl Mechanism {
    pub(super) fn new(input: &mut Input<'_>, pool: &[Vec<u8>], kinds: &[CK_MECHANISM_TYPE]) -> Self {
        let kind =
            if input.byte().is_multiple_of(8) { input.choose(&MECHANISMS) } else { input.choose(kinds) };
        let inner = [(); 2].map(|()| Bytes::new(input, pool));
        let mut parameters = parameters_of(input, kind, &inner);
        let (pointer, length) = pointer(input, &mut parameters);
        let mut mechanism =
            Box::new(CK_MECHANISM { mechanism: kind, pParameter: pointer, ulParameterLen: length });
        let at = if input.byte() % 32 == 1 { null_mut() } else { from_mut(&mut *mechanism) };
        Self { _mechanism: mechanism, _parameters: parameters, _inner: inner, at }
    }
}

/// The parameters of a mechanism, usually those that it takes.
fn parameters_of(input: &mut Input<'_>, kind: CK_MECHANISM_TYPE, [first, second]: &[Bytes; 2]) -> Vec<u8> {
    let (hash, mgf) = input.choose(&[
        (CKM_SHA256, CKG_MGF1_SHA256),
        (CKM_SHA384, CKG_MGF1_SHA384),
        (CKM_SHA512, CKG_MGF1_SHA512),
        (CKM_SHA_1, CKG_MGF1_SHA1),
        (CKM_SHA256, CKG_MGF1_SHA512),
    ]);
    match kind {
        _ if input.byte() % 16 == 1 => input.vector(),
        CKM_RSA_PKCS_PSS
        | CKM_SHA1_RSA_PKCS_PSS
        | CKM_SHA256_RSA_PKCS_PSS
        | CKM_SHA384_RSA_PKCS_PSS
        | CKM_SHA512_RSA_PKCS_PSS => {
            bytes_of(CK_RSA_PKCS_PSS_PARAMS { hashAlg: hash, mgf, sLen: input.choose(&[32, 48, 64, 20, 0]) })
        }
        CKM_RSA_PKCS_OAEP => bytes_of(CK_RSA_PKCS_OAEP_PARAMS {
            hashAlg: hash,
            mgf,
            source: input.choose(&[CKZ_DATA_SPECIFIED, 0]),
            pSourceData: first.at.cast(),
            ulSourceDataLen: first.length,
        }),
        CKM_AES_GCM => bytes_of(CK_GCM_PARAMS {
            pIv: first.at,
            ulIvLen: first.length,
            ulIvBits: 8 * (first.length & 0xff),
            pAAD: second.at,
            ulAADLen: second.length,
            ulTagBits: input.choose(&[128, 96, 0, CK_ULONG::MAX]),
        }),
        CKM_AES_CBC | CKM_AES_CBC_PAD => vec![input.byte(); 16],
        CKM_AES_CTR => bytes_of(CK_AES_CTR_PARAMS {
            ulCounterBits: input.choose(&[128, 32, 1, 0, 129, CK_ULONG::MAX]),
            cb: [input.choose(&[0, 1, 0xff]); 16],
        }),
        CKM_AES_ECB_ENCRYPT_DATA => {
            bytes_of(CK_KEY_DERIVATION_STRING_DATA { pData: first.at, ulLen: first.length })
        }
        CKM_AES_CBC_ENCRYPT_DATA => bytes_of(CK_AES_CBC_ENCRYPT_DATA_PARAMS {
            iv: [input.byte(); 16],
            pData: first.at,
            length: first.length,
        }),
        CKM_ECDH1_DERIVE => bytes_of(CK_ECDH1_DERIVE_PARAMS {
            kdf: input.choose(&[CKD_NULL, CKD_SHA256_KDF, CKD_SHA1_KDF, CKD_SHA256_KDF_SP800]),
            ulSharedDataLen: second.length,
            pSharedData: second.at,
            ulPublicDataLen: first.length,
            pPublicData: first.at,
        }),
        _ => Vec::new(),
    }
}

/// The parameters of a message of AES-GCM, with memory for the nonce and the tag.
pub(super) struct Message {
    _nonce: Vec<u8>,
    _tag: Vec<u8>,
    _parameters: Box<CK_GCM_MESSAGE_PARAMS>,
    pub(super) at: *mut c_void,
    pub(super) length: CK_ULONG,
}

impl Message {
    pub(super) fn new(input: &mut Input<'_>) -> Self {
        let (mut nonce, mut tag) = (vec![input.byte(); 12], vec![input.byte(); 16]);
        let kind = input.byte() % 16;
        let mut parameters = Box::new(CK_GCM_MESSAGE_PARAMS {
            pIv: if kind == 0 { null_mut() } else { nonce.as_mut_ptr() },
            ulIvLen: if kind == 1 { 11 } else { 12 },
            ulIvFixedBits: CK_ULONG::from(kind == 2),
            ivGenerator: input.choose(&[CKG_GENERATE, CKG_GENERATE_RANDOM, CKG_NO_GENERATE]),
            pTag: if kind == 3 { null_mut() } else { tag.as_mut_ptr() },
            ulTagBits: if kind == 4 { 96 } else { 128 },
        });
        let at = if kind == 5 { null_mut() } else { from_mut(&mut *parameters).cast() };
        let length = size_of::<CK_GCM_MESSAGE_PARAMS>() as CK_ULONG;
        let length = if kind == 6 { length - 1 } else { length };
        Self { _nonce: nonce, _tag: tag, _parameters: parameters, at, length }
    }
}
