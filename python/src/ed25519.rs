//! The functions behind the Python module `bulla_hash.ed25519`, where they are documented.

use crate::buffer::{Input, compute};
use bulla_ed25519::{InvalidReason, SignItem, Signer as _, Verdict, VerifyItem, sign_many, verify_many};
use ed25519::pkcs8::{
    DecodePrivateKey as _, EncodePrivateKey as _, KeypairBytes, spki::der::pem::LineEnding,
};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use zeroize::Zeroizing;

/// The verdict on a key or a signature of another length than those of Ed25519.
const WRONG_LENGTH: u8 = 6;

/// The number of a verdict, by which `bulla_hash/ed25519.py` names it.
const fn number(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Valid => 0,
        Verdict::Invalid(InvalidReason::ScalarNotCanonical) => 1,
        Verdict::Invalid(InvalidReason::KeyNotAPoint) => 2,
        Verdict::Invalid(InvalidReason::KeyOfSmallOrder) => 3,
        Verdict::Invalid(InvalidReason::ROfSmallOrder) => 4,
        // Mismatch; a reason that has no number yet is reported as one too.
        Verdict::Invalid(_) => 5,
    }
}

/// A public key, a message and a signature.
type Three<T> = (T, T, T);

/// The numbers of the verdicts, one byte each.
#[pyfunction]
#[pyo3(signature = (items, /))]
pub(crate) fn ed25519_verify_many<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    // Another thread may change the caller's list meanwhile: these are references of our own.
    let objects: Vec<Three<Bound<'py, PyAny>>> =
        items.try_iter()?.map(|item| item?.extract()).collect::<PyResult<_>>()?;
    let inputs = objects
        .iter()
        .map(|(key, message, signature)| {
            let signature = Input::of_any(signature.as_borrowed())?;
            Ok((Input::of_any(key.as_borrowed())?, Input::of_any(message.as_borrowed())?, signature))
        })
        .collect::<PyResult<Vec<Three<Input<'_, '_>>>>>();
    let inputs = inputs?;
    let slices: Vec<_> = inputs
        .iter()
        .map(|(key, message, signature)| (key.as_slice(), message.as_slice(), signature.as_slice()))
        .collect();
    let verdicts = py.detach(|| verdicts(&slices));
    Ok(PyBytes::new(py, &verdicts))
}

fn verdicts(slices: &[Three<&[u8]>]) -> Vec<u8> {
    let mut numbers = vec![WRONG_LENGTH; slices.len()];
    let (mut places, mut items) = (Vec::new(), Vec::new());
    for (place, (key, message, signature)) in slices.iter().enumerate() {
        if let (Ok(public_key), Ok(signature)) = ((*key).try_into(), (*signature).try_into()) {
            places.push(place);
            items.push(VerifyItem { public_key, message, signature });
        }
    }
    for (place, verdict) in places.into_iter().zip(verify_many(&items)) {
        numbers[place] = number(verdict);
    }
    numbers
}

/// A private key of Ed25519, which signs.
///
/// `seed` has 32 bytes from a cryptographic generator: RFC 8032 calls them the private key.
#[pyclass(module = "bulla_hash.ed25519", frozen)]
pub(crate) struct SigningKey {
    seed: Zeroizing<[u8; 32]>,
    key: bulla_ed25519::SigningKey,
}

impl SigningKey {
    fn from_seed(seed: Zeroizing<[u8; 32]>) -> Self {
        let key = bulla_ed25519::SigningKey::from_bytes(&seed);
        Self { seed, key }
    }

    fn keypair(&self) -> KeypairBytes {
        KeypairBytes { secret_key: *self.seed, public_key: None }
    }
}

/// The exception for a text or DER that is no PKCS #8 key of Ed25519.
fn not_pkcs8(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("this is not a private key of Ed25519 in PKCS #8: {error}"))
}

#[pymethods]
impl SigningKey {
    #[new]
    #[pyo3(signature = (seed, /))]
    fn new(seed: Input<'_, '_>) -> PyResult<Self> {
        let bytes = seed.as_slice();
        let seed = bytes.try_into().map_err(|_| {
            PyValueError::new_err(format!("a seed has 32 bytes, and this one has {}", bytes.len()))
        })?;
        Ok(Self::from_seed(Zeroizing::new(seed)))
    }

    /// Makes a new key, by the generator of the operating system.
    #[staticmethod]
    fn generate() -> PyResult<Self> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed)
            .map_err(|error| PyOSError::new_err(format!("the system has no random bytes: {error}")))?;
        Ok(Self::from_seed(seed))
    }

    /// The key in PKCS #8 (RFC 8410): DER as bytes, or PEM as text.
    ///
    /// Raises `ValueError` for anything else, also for a key that is encrypted, and for one whose
    /// public half is that of another key.
    #[staticmethod]
    #[pyo3(signature = (data, /))]
    fn from_pkcs8(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let keypair = match data.cast::<PyString>() {
            Ok(text) => KeypairBytes::from_pkcs8_pem(&text.to_cow()?),
            Err(_) => KeypairBytes::from_pkcs8_der(Input::of_any(data.as_borrowed())?.as_slice()),
        };
        let keypair = keypair.map_err(not_pkcs8)?;
        let key = Self::from_seed(Zeroizing::new(keypair.secret_key));
        match keypair.public_key {
            Some(public) if public.0 != *key.key.as_ref().as_bytes() => {
                Err(not_pkcs8("the public key is that of another private key"))
            }
            _ => Ok(key),
        }
    }

    /// The public key, 32 bytes.
    #[getter]
    fn public_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.key.as_ref().as_bytes())
    }

    /// The signature of a message, 64 bytes.
    #[pyo3(signature = (message, /))]
    fn sign<'py>(&self, py: Python<'py>, message: Input<'_, '_>) -> Bound<'py, PyBytes> {
        let message = message.as_slice();
        PyBytes::new(py, &compute(py, message.len(), || self.key.sign(message).to_bytes()))
    }

    /// The seed, 32 bytes. It is secret, and Python may keep copies of it in memory.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &*self.seed)
    }

    /// The key in PKCS #8 as DER, without its public half, as OpenSSL writes it. It is secret.
    fn to_pkcs8<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let document = self.keypair().to_pkcs8_der().map_err(not_pkcs8)?;
        Ok(PyBytes::new(py, document.as_bytes()))
    }

    /// The key in PKCS #8 as PEM, as OpenSSL writes it. It is secret.
    fn to_pem(&self) -> PyResult<String> {
        let text = self.keypair().to_pkcs8_pem(LineEnding::LF).map_err(not_pkcs8)?;
        Ok(text.to_string())
    }

    fn __repr__(&self) -> String {
        let public: String = self.key.as_ref().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("<SigningKey of the public key {public}>")
    }
}

/// The signatures of the messages, one for each.
#[pyfunction]
#[pyo3(signature = (items, /))]
pub(crate) fn ed25519_sign_many<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    // Another thread may change the caller's list meanwhile: these are references of our own.
    let objects: Vec<(Py<SigningKey>, Bound<'py, PyAny>)> =
        items.try_iter()?.map(|item| item?.extract()).collect::<PyResult<_>>()?;
    let inputs = objects
        .iter()
        .map(|(_, message)| Input::of_any(message.as_borrowed()))
        .collect::<PyResult<Vec<_>>>()?;
    let items: Vec<_> = objects
        .iter()
        .zip(&inputs)
        .map(|((key, _), message)| SignItem { key: &key.get().key, message: message.as_slice() })
        .collect();
    let signatures = py.detach(|| sign_many(&items));
    PyList::new(py, signatures.iter().map(|signature| PyBytes::new(py, signature)))
}
