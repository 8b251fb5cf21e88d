//! What one backend signs all others verify, and all have one verdict on what was changed.
//!
//! Signatures are made once, by every backend that can; properties then change them, their messages
//! and their keys, and ask everybody.

use std::ops::Range;
use std::sync::Arc;

use bulla_kms::backend::{Backend, Backends, PrivateKey, SOFTWARE, VerifyRequest};
use bulla_kms::{Algorithm, KeyUsage, Keystore, NewKey, PublicKey, Verdict, VerifyItem};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The order of Ed25519's group and of P-256's, as numbers are written in their signatures: the one
/// little-endian, the other big-endian.
const ED25519_ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];
const P256_ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
    0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// A backend under a name that says which.
struct Named {
    name: String,
    backend: Arc<dyn Backend>,
}

/// Every backend that serves an algorithm; those on tokens are given.
fn backends(algorithm: Algorithm, tokens: &[Arc<dyn Backend>]) -> Vec<Named> {
    let software = Backends::software().find(SOFTWARE, algorithm).into_iter().cloned();
    #[cfg(feature = "fast")]
    let software = software.chain(Backends::plain().find(SOFTWARE, algorithm).into_iter().cloned());
    let all = software.chain(tokens.iter().filter(|token| token.capabilities(algorithm).is_some()).cloned());
    all.map(|backend| Named { name: format!("{backend:?}"), backend }).collect()
}

struct Signed {
    by: String,
    public_key: PublicKey,
    message: Vec<u8>,
    signature: Vec<u8>,
}

/// What every backend makes of some messages, under two keys of each.
struct Corpus {
    algorithm: Algorithm,
    backends: Vec<Named>,
    signed: Vec<Signed>,
}

/// Sets whose signatures take a second.
fn is_slow(algorithm: Algorithm) -> bool {
    algorithm.as_str().starts_with("slh-dsa")
}

impl Corpus {
    fn new(algorithm: Algorithm, tokens: &[Arc<dyn Backend>]) -> Self {
        let backends = backends(algorithm, tokens);
        let mut signed = Vec::new();
        let lengths: &[usize] = match algorithm {
            Algorithm::Ed25519 | Algorithm::EcdsaP256 => &[0, 1, 63, 64, 65, 127, 128, 1000, 1 << 20],
            _ if is_slow(algorithm) => &[0],
            // A megabyte takes SHAKE256 ten times as long as such a signature.
            _ => &[0, 1, 63, 64, 65, 127, 128, 1000, 100_000],
        };
        for Named { name, backend } in &backends {
            for turn in 0..2 {
                let key = new_key(&**backend, algorithm);
                let public_key = PublicKey::from_bytes(algorithm, &key.public_key().unwrap()).unwrap();
                for length in lengths {
                    let message = vec![turn; *length];
                    let signature = key.sign(&message).unwrap();
                    signed.push(Signed {
                        by: name.clone(),
                        public_key: public_key.clone(),
                        message,
                        signature,
                    });
                }
            }
        }
        Self { algorithm, backends, signed }
    }
}

fn new_key(backend: &dyn Backend, algorithm: Algorithm) -> Arc<dyn PrivateKey> {
    backend.load(algorithm, &backend.generate(algorithm).unwrap()).unwrap()
}

/// What is done to a signature of the corpus before it is verified.
#[derive(Clone, Debug)]
enum Change {
    Nothing,
    FlipSignature(prop::sample::Index),
    FlipMessage(prop::sample::Index),
    AppendToMessage(u8),
    CutSignature(prop::sample::Index),
    AppendToSignature(u8),
    Zeros,
    /// The other value of s that satisfies the equation, where the algorithm has one.
    OtherScalar,
    /// The key, the message or the signature of another one.
    Key(prop::sample::Index),
    Message(prop::sample::Index),
    Signature(prop::sample::Index),
}

fn changes() -> impl Strategy<Value = Change> {
    use prop::sample::Index;
    prop_oneof![
        3 => Just(Change::Nothing),
        3 => any::<Index>().prop_map(Change::FlipSignature),
        1 => any::<Index>().prop_map(Change::FlipMessage),
        1 => any::<u8>().prop_map(Change::AppendToMessage),
        1 => any::<Index>().prop_map(Change::CutSignature),
        1 => any::<u8>().prop_map(Change::AppendToSignature),
        1 => Just(Change::Zeros),
        2 => Just(Change::OtherScalar),
        1 => any::<Index>().prop_map(Change::Key),
        1 => any::<Index>().prop_map(Change::Message),
        1 => any::<Index>().prop_map(Change::Signature),
    ]
}

/// A signature as it is verified, and whether it must be valid; `None` where that depends on what
/// was changed.
struct Changed {
    public_key: PublicKey,
    message: Vec<u8>,
    signature: Vec<u8>,
    expected: Option<Verdict>,
}

fn apply(corpus: &Corpus, which: &prop::sample::Index, change: &Change) -> Changed {
    let signed = &corpus.signed;
    let Signed { public_key, message, signature, .. } = which.get(signed);
    let (mut public_key, mut message, mut signature) =
        (public_key.clone(), message.clone(), signature.clone());
    let mut expected = Some(Verdict::Invalid);
    match change {
        Change::Nothing => expected = Some(Verdict::Valid),
        Change::FlipSignature(bit) => flip(&mut signature, bit),
        Change::FlipMessage(_) if message.is_empty() => message.push(0),
        Change::FlipMessage(bit) => flip(&mut message, bit),
        Change::AppendToMessage(byte) => message.push(*byte),
        Change::CutSignature(length) => signature.truncate(length.index(signature.len())),
        Change::AppendToSignature(byte) => signature.push(*byte),
        Change::Zeros => signature.fill(0),
        Change::OtherScalar => match corpus.algorithm {
            Algorithm::Ed25519 => add(&mut signature[32..], ED25519_ORDER, 0..32),
            Algorithm::EcdsaP256 => negate(&mut signature[32..]),
            _ => expected = Some(Verdict::Valid),
        },
        Change::Key(other) => {
            public_key = other.get(signed).public_key.clone();
            expected = None;
        }
        Change::Message(other) => {
            message = other.get(signed).message.clone();
            expected = None;
        }
        Change::Signature(other) => {
            signature = other.get(signed).signature.clone();
            expected = None;
        }
    }
    Changed { public_key, message, signature, expected }
}

fn flip(bytes: &mut [u8], bit: &prop::sample::Index) {
    let bit = bit.index(bytes.len() * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
}

/// Adds a number, its digits taken in this order.
fn add(to: &mut [u8], number: [u8; 32], places: Range<usize>) {
    let mut carry = 0;
    for place in places {
        let sum = u16::from(to[place]) + u16::from(number[place]) + carry;
        to[place] = sum as u8;
        carry = sum >> 8;
    }
}

/// The order of P-256 minus the number.
fn negate(scalar: &mut [u8]) {
    let mut borrow = 0;
    for place in (0..32).rev() {
        let difference = i16::from(P256_ORDER[place]) - i16::from(scalar[place]) - borrow;
        scalar[place] = difference.rem_euclid(256) as u8;
        borrow = i16::from(difference < 0);
    }
}

/// All backends on all of them, one by one and together.
fn check(corpus: &Corpus, changed: &[Changed]) -> Result<(), TestCaseError> {
    let requests: Vec<_> = changed
        .iter()
        .map(|Changed { public_key, message, signature, .. }| {
            VerifyRequest::new(public_key.encoded(), message, signature)
        })
        .collect();
    let single: Vec<_> = changed.iter().map(|c| c.public_key.verify(&c.message, &c.signature)).collect();
    for (verdict, changed) in single.iter().zip(changed) {
        prop_assert!(changed.expected.is_none_or(|expected| expected == *verdict), "{:?}", changed.expected);
    }
    for Named { name, backend } in &corpus.backends {
        let alone: Vec<_> = requests.iter().map(|request| backend.verify(*request)).collect();
        prop_assert_eq!(&alone, &single, "{} one by one", name);
        prop_assert_eq!(&backend.verify_many(&requests), &single, "{} together", name);
    }
    Ok(())
}

/// The properties, for one algorithm.
fn hold_for(algorithm: Algorithm, tokens: &[Arc<dyn Backend>]) {
    let corpus = Corpus::new(algorithm, tokens);
    assert!(!corpus.backends.is_empty(), "{algorithm} has a backend");
    for signed in &corpus.signed {
        let Signed { by, public_key, message, signature } = signed;
        assert_eq!(public_key.verify(message, signature), Verdict::Valid, "{algorithm} signed by {by}");
    }
    let cases = if is_slow(algorithm) { 4 } else { 96 };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let some = prop::collection::vec((any::<prop::sample::Index>(), changes()), 0..20);
    runner
        .run(&some, |some| {
            let changed: Vec<_> = some.iter().map(|(which, change)| apply(&corpus, which, change)).collect();
            check(&corpus, &changed)
        })
        .unwrap_or_else(|error| panic!("{algorithm}: {error}"));
}

/// The tokens that there are, and what is proved with them.
fn with_tokens(test: &str, body: impl FnOnce(&[Arc<dyn Backend>])) {
    #[cfg(feature = "pkcs11")]
    crate::support::softhsm::with_token(test, |hsm| {
        let token = bulla_kms::pkcs11::Pkcs11::open(&hsm.config()).unwrap();
        body(&[Arc::new(token)]);
    });
    #[cfg(not(feature = "pkcs11"))]
    {
        let _ = test;
        body(&[]);
    }
}

fn signing() -> impl Iterator<Item = Algorithm> {
    let served = |algorithm: &Algorithm| Backends::software().verifier(*algorithm).is_ok();
    Algorithm::ALL.iter().copied().filter(|algorithm| algorithm.usage() == KeyUsage::Signature).filter(served)
}

#[test]
fn every_backend_of_ed25519_and_p256_has_the_same_verdicts() {
    with_tokens("parity::every_backend_of_ed25519_and_p256_has_the_same_verdicts", |tokens| {
        for algorithm in signing().filter(|a| matches!(a, Algorithm::Ed25519 | Algorithm::EcdsaP256)) {
            let backends = 1 + tokens.len() + usize::from(cfg!(feature = "fast"));
            assert_eq!(self::backends(algorithm, tokens).len(), backends, "{algorithm}");
            hold_for(algorithm, tokens);
        }
    });
}

#[test]
fn every_post_quantum_backend_has_the_same_verdicts_alone_and_together() {
    for algorithm in signing().filter(|a| !matches!(a, Algorithm::Ed25519 | Algorithm::EcdsaP256)) {
        // One of each kind of SLH-DSA: the others take long and differ in numbers only.
        if !is_slow(algorithm) || algorithm.as_str().ends_with("-128f") {
            hold_for(algorithm, &[]);
        }
    }
}

#[test]
#[cfg(feature = "fast")]
fn a_key_of_the_fast_backend_is_one_of_the_plain_backend() {
    let algorithms: Vec<_> =
        signing().filter(|a| matches!(a, Algorithm::Ed25519 | Algorithm::EcdsaP256)).collect();
    assert_eq!(algorithms.len(), 1 + usize::from(cfg!(feature = "p256")));
    for algorithm in algorithms {
        let fast = Backends::software().find(SOFTWARE, algorithm).unwrap();
        let plain = Backends::plain().find(SOFTWARE, algorithm).unwrap();
        for (from, to) in [(fast, plain), (plain, fast)] {
            let material = from.generate(algorithm).unwrap();
            let keys = [from, to].map(|backend| backend.load(algorithm, &material).unwrap());
            assert_eq!(keys[0].public_key().unwrap(), keys[1].public_key().unwrap());
            if algorithm == Algorithm::Ed25519 {
                for length in 0..300 {
                    let message = vec![length as u8; length];
                    assert_eq!(keys[0].sign(&message).unwrap(), keys[1].sign(&message).unwrap());
                }
            }
        }
    }
}

#[test]
fn a_batch_of_a_keystore_has_the_verdicts_of_its_single_signatures() {
    let keystore = Keystore::in_memory().unwrap();
    let quick: Vec<_> = signing().filter(|algorithm| !is_slow(*algorithm)).collect();
    let keys: Vec<_> = quick
        .iter()
        .map(|algorithm| {
            let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), *algorithm);
            keystore.create_key(new).unwrap()
        })
        .collect();
    let signatures: Vec<_> =
        keys.iter().map(|key| keystore.sign(key.key_id(), b"a message").unwrap().bytes).collect();
    let which = || any::<prop::sample::Index>();
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    runner
        .run(&prop::collection::vec((which(), which(), any::<Option<bool>>()), 0..40), |some| {
            let items: Vec<_> = some
                .iter()
                .map(|(key, signature, message)| VerifyItem {
                    key: key.get(&keys),
                    // Mostly the signature of the key, with the message that was signed.
                    signature: if message.is_some() {
                        &signatures[key.index(keys.len())]
                    } else {
                        &signature.get::<Vec<u8>>(&signatures)[..]
                    },
                    message: if *message == Some(true) { b"another" } else { b"a message" },
                })
                .collect();
            let single: Vec<_> = items
                .iter()
                .map(|item| keystore.verify(item.key, item.message, item.signature).unwrap())
                .collect();
            prop_assert_eq!(&keystore.verify_batch(&items), &single);
            prop_assert_eq!(keystore.verify_all(&items), single.iter().all(|verdict| verdict.is_valid()));
            Ok(())
        })
        .unwrap();
}
