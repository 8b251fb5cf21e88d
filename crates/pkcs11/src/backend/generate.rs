//! Keys that programs make: what a template asks of the service.

use bulla_kms::Algorithm;
use cryptoki_sys::*;
use data_encoding::{BASE32_NOPAD, BASE32_NOPAD_NOCASE};

use crate::backend::NewKey;
use crate::error::{Failure, Result, fail, require};
use crate::object::attributes::{Attribute, Template};
use crate::object::public::{RSA_EXPONENT, algorithm_of_curve, key_type, without_zeros};
use crate::operation::mechanism::{Mechanism, Parameters};

/// The purpose of a key that a program makes.
const PURPOSE: &str = "pkcs11";
/// What is before the program's `CKA_ID`, in base32, in the purpose of such a key.
const PURPOSE_WITH_ID: &str = "pkcs11-";
/// The longest `CKA_ID` for which a purpose has room.
const MAX_ID_LEN: usize = 35;

/// The curve that a template of a public key names, if the mechanism makes keys of it.
///
/// # Errors
/// `CKR_TEMPLATE_INCOMPLETE`; `CKR_CURVE_NOT_SUPPORTED`.
pub(crate) fn curve(mechanism: CK_MECHANISM_TYPE, public: &Template<'_>) -> Result<Algorithm> {
    let parameters = public.get(CKA_EC_PARAMS).ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
    let algorithm = algorithm_of_curve(parameters).ok_or(Failure(CKR_CURVE_NOT_SUPPORTED))?;
    let expected = match algorithm {
        Algorithm::Ed25519 => CKM_EC_EDWARDS_KEY_PAIR_GEN,
        Algorithm::X25519 => CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
        _ => CKM_EC_KEY_PAIR_GEN,
    };
    require(mechanism == expected, CKR_CURVE_NOT_SUPPORTED)?;
    Ok(algorithm)
}

/// What a program asks for with `C_GenerateKeyPair`.
///
/// # Errors
/// `CKR_MECHANISM_INVALID`; codes about the templates.
pub(crate) fn key_pair(mechanism: &Mechanism, public: &[Attribute], private: &[Attribute]) -> Result<NewKey> {
    let (public, private) = (Template(public), Template(private));
    let algorithm = match mechanism.kind {
        CKM_RSA_PKCS_KEY_PAIR_GEN => rsa(&public)?,
        CKM_EC_KEY_PAIR_GEN | CKM_EC_EDWARDS_KEY_PAIR_GEN | CKM_EC_MONTGOMERY_KEY_PAIR_GEN => {
            for_use(curve(mechanism.kind, &public)?, &private)?
        }
        _ => return fail(CKR_MECHANISM_INVALID),
    };
    require(mechanism.parameters == Parameters::None, CKR_MECHANISM_PARAM_INVALID)?;
    check(&public, CKO_PUBLIC_KEY, algorithm)?;
    check(&private, CKO_PRIVATE_KEY, algorithm)?;
    stays_in_the_token(&private)?;
    // Programs that expect a token hash by themselves.
    Ok(NewKey { signs_digests: is_ecdsa_or_rsa(algorithm), ..new_key(algorithm, &[private, public])? })
}

/// The algorithm of a key of a curve. A key that derives and does not sign agrees on secrets; one
/// that may do both signs, because a key of the service has one use.
fn for_use(algorithm: Algorithm, private: &Template<'_>) -> Result<Algorithm> {
    let (derives, signs) = (private.flag(CKA_DERIVE)?, private.flag(CKA_SIGN)?);
    if derives != Some(true) || signs == Some(true) {
        return Ok(algorithm);
    }
    Ok(match algorithm {
        Algorithm::EcdsaP256 => Algorithm::EcdhP256,
        Algorithm::EcdsaP384 => Algorithm::EcdhP384,
        Algorithm::EcdsaP521 => Algorithm::EcdhP521,
        other => other,
    })
}

/// What a program asks for with `C_GenerateKey`.
///
/// # Errors
/// As for [`key_pair`].
pub(crate) fn secret_key(mechanism: &Mechanism, template: &[Attribute]) -> Result<NewKey> {
    let template = Template(template);
    let length = template.number(CKA_VALUE_LEN)?;
    let algorithm = match (mechanism.kind, length) {
        (CKM_AES_KEY_GEN | CKM_GENERIC_SECRET_KEY_GEN, None) => return fail(CKR_TEMPLATE_INCOMPLETE),
        (CKM_AES_KEY_GEN, Some(16)) => Algorithm::Aes128Gcm,
        (CKM_AES_KEY_GEN, Some(32)) => Algorithm::Aes256Gcm,
        (CKM_GENERIC_SECRET_KEY_GEN, Some(32)) => Algorithm::HmacSha256,
        (CKM_GENERIC_SECRET_KEY_GEN, Some(48)) => Algorithm::HmacSha384,
        (CKM_GENERIC_SECRET_KEY_GEN, Some(64)) => Algorithm::HmacSha512,
        (CKM_AES_KEY_GEN | CKM_GENERIC_SECRET_KEY_GEN, Some(_)) => return fail(CKR_ATTRIBUTE_VALUE_INVALID),
        _ => return fail(CKR_MECHANISM_INVALID),
    };
    require(mechanism.parameters == Parameters::None, CKR_MECHANISM_PARAM_INVALID)?;
    check(&template, CKO_SECRET_KEY, algorithm)?;
    stays_in_the_token(&template)?;
    new_key(algorithm, &[template])
}

fn is_ecdsa_or_rsa(algorithm: Algorithm) -> bool {
    algorithm.is_ecdsa() || algorithm.is_rsa()
}

fn rsa(public: &Template<'_>) -> Result<Algorithm> {
    if let Some(exponent) = public.get(CKA_PUBLIC_EXPONENT) {
        require(without_zeros(exponent) == RSA_EXPONENT, CKR_ATTRIBUTE_VALUE_INVALID)?;
    }
    match public.number(CKA_MODULUS_BITS)? {
        None => fail(CKR_TEMPLATE_INCOMPLETE),
        Some(2048) => Ok(Algorithm::Rsa2048),
        Some(3072) => Ok(Algorithm::Rsa3072),
        Some(4096) => Ok(Algorithm::Rsa4096),
        Some(_) => fail(CKR_ATTRIBUTE_VALUE_INVALID),
    }
}

/// Checks what a template says of the object's class and type.
fn check(template: &Template<'_>, class: CK_OBJECT_CLASS, algorithm: Algorithm) -> Result<()> {
    let (asked, kind) = (template.number(CKA_CLASS)?, template.number(CKA_KEY_TYPE)?);
    require(asked.is_none_or(|asked| asked == class), CKR_TEMPLATE_INCONSISTENT)?;
    require(kind.is_none() || kind == key_type(algorithm), CKR_TEMPLATE_INCONSISTENT)
}

/// The service keeps every key, and gives none away.
fn stays_in_the_token(template: &Template<'_>) -> Result<()> {
    require(template.flag(CKA_TOKEN)? == Some(true), CKR_TEMPLATE_INCONSISTENT)?;
    // Every key is sensitive, also one that a program does not ask to be.
    require(template.flag(CKA_EXTRACTABLE)? != Some(true), CKR_TEMPLATE_INCONSISTENT)
}

fn new_key(algorithm: Algorithm, templates: &[Template<'_>]) -> Result<NewKey> {
    let mut new = NewKey { algorithm, purpose: PURPOSE.to_owned(), label: None, signs_digests: false };
    for template in templates.iter().rev() {
        if let Some(label) = template.text(CKA_LABEL)? {
            new.label = Some(label.to_owned());
        }
        match template.get(CKA_ID) {
            None | Some([]) => {}
            Some(id) if id.len() > MAX_ID_LEN => return fail(CKR_ATTRIBUTE_VALUE_INVALID),
            Some(id) => {
                let id = BASE32_NOPAD.encode(id).to_ascii_lowercase();
                new.purpose = format!("{PURPOSE_WITH_ID}{id}");
            }
        }
    }
    Ok(new)
}

/// The `CKA_ID` that a program gave a key, from the key's purpose.
pub(crate) fn id_of_purpose(purpose: &str) -> Option<Vec<u8>> {
    BASE32_NOPAD_NOCASE.decode(purpose.strip_prefix(PURPOSE_WITH_ID)?.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mechanism(kind: CK_MECHANISM_TYPE) -> Mechanism {
        Mechanism { kind, parameters: Parameters::None }
    }

    #[test]
    fn the_id_of_a_program_is_in_the_purpose() {
        for id in [vec![0], vec![0xff; 32], (0..35).collect()] {
            let template = [
                Attribute::new(CKA_TOKEN, &[1]),
                Attribute::new(CKA_ID, &id),
                Attribute::number(CKA_VALUE_LEN, 32),
            ];
            let new = secret_key(&mechanism(CKM_AES_KEY_GEN), &template).unwrap();
            let purpose = new.purpose;
            assert!(purpose.parse::<bulla_kms::Name>().is_ok(), "{purpose}");
            assert_eq!(id_of_purpose(&purpose), Some(id));
        }
        assert_eq!(id_of_purpose(PURPOSE), None);
        assert_eq!(id_of_purpose("files"), None);
    }

    #[test]
    fn a_key_of_a_curve_signs_unless_it_only_derives() {
        let make = |uses: &[(CK_ATTRIBUTE_TYPE, u8)]| {
            let public = [Attribute::new(CKA_EC_PARAMS, b"\x06\x05\x2b\x81\x04\x00\x22")];
            let uses = uses.iter().map(|(flag, value)| Attribute::new(*flag, &[*value]));
            let private: Vec<_> = uses.chain([Attribute::new(CKA_TOKEN, &[1])]).collect();
            key_pair(&mechanism(CKM_EC_KEY_PAIR_GEN), &public, &private)
                .map(|new| (new.algorithm, new.signs_digests))
        };
        assert_eq!(make(&[]), Ok((Algorithm::EcdsaP384, true)));
        assert_eq!(make(&[(CKA_DERIVE, 1), (CKA_SIGN, 1)]), Ok((Algorithm::EcdsaP384, true)));
        assert_eq!(make(&[(CKA_DERIVE, 1)]), Ok((Algorithm::EcdhP384, false)));
        assert_eq!(make(&[(CKA_DERIVE, 1), (CKA_SIGN, 0)]), Ok((Algorithm::EcdhP384, false)));
    }

    #[test]
    fn only_keys_that_stay_are_made() {
        let make = |more: Vec<Attribute>| {
            let template: Vec<_> = [Attribute::number(CKA_VALUE_LEN, 32)].into_iter().chain(more).collect();
            secret_key(&mechanism(CKM_GENERIC_SECRET_KEY_GEN), &template).map(|new| new.algorithm)
        };
        let token = || Attribute::new(CKA_TOKEN, &[1]);
        assert_eq!(make(vec![token()]), Ok(Algorithm::HmacSha256));
        assert_eq!(make(vec![]), fail(CKR_TEMPLATE_INCONSISTENT));
        assert_eq!(
            make(vec![token(), Attribute::new(CKA_EXTRACTABLE, &[1])]),
            fail(CKR_TEMPLATE_INCONSISTENT)
        );
        assert_eq!(
            make(vec![token(), Attribute::number(CKA_KEY_TYPE, CKK_AES)]),
            fail(CKR_TEMPLATE_INCONSISTENT)
        );
    }

    #[test]
    fn rsa_keys_have_the_lengths_and_the_exponent_of_the_service() {
        let make = |bits, exponent: &[u8]| {
            let public =
                [Attribute::number(CKA_MODULUS_BITS, bits), Attribute::new(CKA_PUBLIC_EXPONENT, exponent)];
            let private = [Attribute::new(CKA_TOKEN, &[1])];
            key_pair(&mechanism(CKM_RSA_PKCS_KEY_PAIR_GEN), &public, &private).map(|new| new.algorithm)
        };
        assert_eq!(make(3072, &[1, 0, 1]), Ok(Algorithm::Rsa3072));
        assert_eq!(make(2048, &[0, 1, 0, 1]), Ok(Algorithm::Rsa2048));
        assert_eq!(make(2048, &[3]), fail(CKR_ATTRIBUTE_VALUE_INVALID));
        assert_eq!(make(1024, &[1, 0, 1]), fail(CKR_ATTRIBUTE_VALUE_INVALID));
    }
}
