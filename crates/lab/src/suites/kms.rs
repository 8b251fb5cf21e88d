//! The keystore and its batcher: their overhead over the backend below them, and the gain of a
//! program that calls them instead of a signature library.
//!
//! Peers have their keys decoded beforehand, as a program that keeps keys would have. `ring` cannot
//! do this, and decodes in each call.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use bulla_kms::backend::{Backends, SOFTWARE};
use bulla_kms::batcher::{Batcher, BatcherOptions};
use bulla_kms::{Algorithm, KeyMessage, KeyVersionId, Keystore, NewKey, VerifyItem};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use rayon::prelude::*;

use super::ed25519::{case, suite, verifies};
use super::suite::{Case, Make, Peer, Suite, THREADS};
use crate::measure::Subject;

/// The length of a message in bytes, as in the suite `ed25519`.
const MESSAGE: usize = 128;

/// The number of simultaneous callers of a batcher.
const CALLERS: usize = 64;

/// The number of calls that each caller makes, one after the other.
const CALLS: usize = 8;

/// A keystore with `count` keys, each of which has signed a message.
struct Signed {
    keystore: Arc<Keystore>,
    keys: Vec<KeyVersionId>,
    public_keys: Vec<[u8; 32]>,
    messages: Vec<[u8; MESSAGE]>,
    signatures: Vec<[u8; 64]>,
}

impl Signed {
    fn new(count: usize) -> &'static Self {
        let mut random = fastrand::Rng::with_seed(2);
        let keystore = Arc::new(Keystore::in_memory().unwrap());
        let (tenant, purpose) = ("lab".parse().expect("a name"), "bench".parse().expect("a name"));
        let new = NewKey::new(tenant, purpose, Algorithm::Ed25519);
        let mut signed =
            Self { keystore, keys: vec![], public_keys: vec![], messages: vec![], signatures: vec![] };
        for _ in 0..count {
            let key = signed.keystore.create_key(new.clone()).expect("a key in memory");
            let mut message = [0; MESSAGE];
            random.fill(&mut message);
            let signature = signed.keystore.sign(&key, &message).expect("the key signs").bytes;
            let public_key = signed.keystore.public_key(&key).expect("the key is there");
            signed.public_keys.push(public_key.as_bytes().try_into().expect("32 bytes"));
            signed.signatures.push(signature.try_into().expect("64 bytes"));
            signed.messages.push(message);
            signed.keys.push(key);
        }
        Box::leak(Box::new(signed))
    }

    fn items(&self) -> Vec<VerifyItem<'_>> {
        let parts = self.keys.iter().zip(&self.messages).zip(&self.signatures);
        parts.map(|((key, message), signature)| VerifyItem { key, message, signature }).collect()
    }

    /// The signatures for a peer, with decoded keys.
    fn decoded(&self) -> Vec<(VerifyingKey, &[u8], Signature)> {
        let key = |bytes: &[u8; 32]| VerifyingKey::from_bytes(bytes).expect("a key of the keystore");
        let parts = self.public_keys.iter().zip(&self.messages).zip(&self.signatures);
        parts
            .map(|((bytes, message), signature)| (key(bytes), &message[..], Signature::from_bytes(signature)))
            .collect()
    }
}

/// How many threads a contender has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Threads {
    One,
    All,
}

/// One suite for a single thread, and one for all threads.
pub(super) fn suites() -> [Suite; 2] {
    [suite("kms", cases), suite("kms-threads", threads)]
}

fn cases() -> Vec<Case> {
    let mut cases = vec![verify_beside_library(64), sign_beside_backend()];
    cases.push(case("sign", 1, keystore_sign(), vec![dalek_sign(), ring_sign(), aws_lc_sign()]));
    cases.push(case("verify", 1, keystore_verify(), verifying_peers(1, Threads::One)));
    cases.push(sign_batch(64));
    cases.extend([8, 32, 64].map(|count| verify_batch("batch", count, Threads::One)));
    cases
}

fn threads() -> Vec<Case> {
    let parallel = [32, 64].map(|count| verify_batch("parallel", count, Threads::All));
    let throughput = [64, 128, 256, 512].map(|count| verify_batch("throughput", count, Threads::All));
    let cases = parallel.into_iter().chain(throughput).chain([callers()]);
    cases.map(|case| Case { threads: THREADS, ..case }).collect()
}

fn verify_batch(group: &str, count: usize, threads: Threads) -> Case {
    case(group, count, keystore_batch(count, threads), verifying_peers(count, threads))
}

fn pool() -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread")
}

/// `Keystore::verify_batch`. The case with one thread calls it in a pool with only that thread.
fn keystore_batch(count: usize, threads: Threads) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let items = signed.items();
        let pool = pool();
        let run = move |out: &mut [bool]| {
            for (out, verdict) in out.iter_mut().zip(signed.keystore.verify_batch(&items)) {
                *out = verdict.is_valid();
            }
        };
        verifies(count, move |out| match threads {
            Threads::One => pool.install(|| run(out)),
            Threads::All => run(out),
        })
    })
}

/// The overhead of a keystore over the library that verifies for it.
fn verify_beside_library(count: usize) -> Case {
    let library = move || {
        let signed = Signed::new(count);
        let parts = signed.public_keys.iter().zip(&signed.messages).zip(&signed.signatures);
        let items: Vec<_> = parts
            .map(|((public_key, message), signature)| bulla_ed25519::VerifyItem {
                public_key,
                message,
                signature,
            })
            .collect();
        let pool = pool();
        let run = move |out: &mut [bool]| {
            for (out, verdict) in out.iter_mut().zip(bulla_ed25519::verify_many(&items)) {
                *out = verdict.is_valid();
            }
        };
        verifies(count, move |out| pool.install(|| run(out)))
    };
    case(
        "verify-above-library",
        count,
        keystore_batch(count, Threads::One),
        vec![Peer::of_package("bulla-ed25519", library)],
    )
}

/// An operation that signs once. Contenders have different keys, so they only agree that there is a
/// signature.
fn signs_once(mut sign: impl FnMut(&[u8], &mut [u8; 64]) + 'static) -> Box<dyn Subject> {
    let signed = Signed::new(1);
    verifies(1, move |out| {
        let mut signature = [0; 64];
        sign(&signed.messages[0], std::hint::black_box(&mut signature));
        out[0] = signature != [0; 64];
    })
}

fn keystore_sign() -> Make {
    Box::new(|| {
        let signed = Signed::new(1);
        signs_once(|message, out| {
            out.copy_from_slice(
                &signed.keystore.sign(&signed.keys[0], message).expect("the key signs").bytes,
            );
        })
    })
}

/// The overhead of a keystore over the backend that signs for it.
fn sign_beside_backend() -> Case {
    let backend = || {
        let backend = Backends::software().find(SOFTWARE, Algorithm::Ed25519).expect("Ed25519 in software");
        let material = backend.generate(Algorithm::Ed25519).expect("a key");
        let key = backend.load(Algorithm::Ed25519, &material).expect("the key loads");
        signs_once(move |message, out| out.copy_from_slice(&key.sign(message).expect("the key signs")))
    };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let peer = Peer { name: "backend", version, isa_limit: "", make: Box::new(backend) };
    case("sign-above-backend", 1, keystore_sign(), vec![peer])
}

fn keystore_verify() -> Make {
    Box::new(|| {
        let signed = Signed::new(1);
        let item = signed.items()[0];
        verifies(1, move |out| {
            let verdict = signed.keystore.verify(item.key, item.message, item.signature);
            out[0] = verdict.expect("the key is there").is_valid();
        })
    })
}

fn dalek_sign() -> Peer {
    Peer::of_package("ed25519-dalek", || {
        let key = SigningKey::from_bytes(&[7; 32]);
        signs_once(move |message, out| *out = key.sign(message).to_bytes())
    })
}

fn ring_sign() -> Peer {
    Peer::of_package("ring", || {
        let key = ring::signature::Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed of 32 bytes");
        signs_once(move |message, out| out.copy_from_slice(key.sign(message).as_ref()))
    })
}

fn aws_lc_sign() -> Peer {
    Peer::of_package("aws-lc-rs", || {
        let key = aws_lc_rs::signature::Ed25519KeyPair::from_seed_unchecked(&[7; 32]);
        let key = key.expect("a seed of 32 bytes");
        signs_once(move |message, out| out.copy_from_slice(key.sign(message).as_ref()))
    })
}

/// Messages that are signed together, each with a different key.
fn sign_batch(count: usize) -> Case {
    let ours = Box::new(move || {
        let signed = Signed::new(count);
        let items: Vec<_> = (signed.keys.iter().zip(&signed.messages))
            .map(|(key, message)| KeyMessage { key: key.into(), message })
            .collect();
        verifies(count, move |out| {
            for (out, signature) in out.iter_mut().zip(signed.keystore.sign_batch(&items)) {
                *out = std::hint::black_box(signature).is_ok();
            }
        })
    });
    let seed = |number: usize| [number as u8; 32];
    let dalek = move || {
        let keys: Vec<_> = (0..count).map(|number| SigningKey::from_bytes(&seed(number))).collect();
        one_by_one(count, move |number, message| keys[number].sign(message).to_bytes() != [0; 64])
    };
    let aws_lc = move || {
        let key = |number| aws_lc_rs::signature::Ed25519KeyPair::from_seed_unchecked(&seed(number));
        let keys: Vec<_> = (0..count).map(|number| key(number).expect("a seed of 32 bytes")).collect();
        one_by_one(count, move |number, message| keys[number].sign(message).as_ref() != [0; 64])
    };
    let peers = vec![Peer::of_package("ed25519-dalek", dalek), Peer::of_package("aws-lc-rs", aws_lc)];
    case("sign-batch", count, ours, peers)
}

/// Signs one message after the other. `sign` returns whether there is a signature.
fn one_by_one(count: usize, sign: impl Fn(usize, &[u8]) -> bool + 'static) -> Box<dyn Subject> {
    let signed = Signed::new(count);
    verifies(count, move |out| {
        for (number, (out, message)) in out.iter_mut().zip(&signed.messages).enumerate() {
            *out = sign(number, message);
        }
    })
}

fn verifying_peers(count: usize, threads: Threads) -> Vec<Peer> {
    let dalek = move || {
        let items = Signed::new(count).decoded();
        let verify = |(key, message, signature): &(VerifyingKey, &[u8], Signature)| {
            key.verify_strict(message, signature).is_ok()
        };
        verifies(count, move |out| run(out, &items, verify, threads))
    };
    let ring = move || {
        let signed = Signed::new(count);
        let items: Vec<_> = signed.items().into_iter().zip(&signed.public_keys).collect();
        let verify = |(item, key): &(VerifyItem<'_>, &[u8; 32])| {
            let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, key);
            key.verify(item.message, item.signature).is_ok()
        };
        verifies(count, move |out| run(out, &items, verify, threads))
    };
    let aws_lc = move || {
        let signed = Signed::new(count);
        let key = |bytes: &[u8; 32]| {
            let key = aws_lc_rs::signature::ParsedPublicKey::new(&aws_lc_rs::signature::ED25519, bytes);
            key.expect("a key of the keystore")
        };
        let items: Vec<_> = signed.items().into_iter().zip(signed.public_keys.iter().map(key)).collect();
        let verify = |(item, key): &(VerifyItem<'_>, aws_lc_rs::signature::ParsedPublicKey)| {
            key.verify_sig(item.message, item.signature).is_ok()
        };
        verifies(count, move |out| run(out, &items, verify, threads))
    };
    vec![
        Peer::of_package("ed25519-dalek", dalek),
        Peer::of_package("ring", ring),
        Peer::of_package("aws-lc-rs", aws_lc),
    ]
}

/// One verification after the other, or shared by all threads.
fn run<T: Sync>(out: &mut [bool], items: &[T], verify: impl Fn(&T) -> bool + Sync, threads: Threads) {
    match threads {
        Threads::One => out.iter_mut().zip(items).for_each(|(out, item)| *out = verify(item)),
        Threads::All => out.par_iter_mut().zip(items).for_each(|(out, item)| *out = verify(item)),
    }
}

/// Concurrent callers, through a batcher and separately, on the same processors.
fn callers() -> Case {
    let count = CALLERS * CALLS;
    let ours = Box::new(move || {
        let signed = Signed::new(CALLERS);
        let batcher =
            Batcher::new(Arc::clone(&signed.keystore), &BatcherOptions::default()).expect("threads start");
        verifies(count, move |out| callers_of(&batcher, signed, out))
    });
    let alone = move || {
        let items = Signed::new(CALLERS).decoded();
        let items: Vec<_> = std::iter::repeat_n(items, CALLS).flatten().collect();
        let verify = |(key, message, signature): &(VerifyingKey, &[u8], Signature)| {
            key.verify_strict(message, signature).is_ok()
        };
        verifies(count, move |out| run(out, &items, verify, Threads::All))
    };
    case("callers", CALLERS, ours, vec![Peer::of_package("ed25519-dalek", alone)])
}

/// Each caller is a task that makes one call after the other. One thread runs all tasks, as in a
/// server.
fn callers_of(batcher: &Batcher, signed: &Signed, out: &mut [bool]) {
    let task = |caller: usize| async move {
        let mut verdicts = [false; CALLS];
        for verdict in &mut verdicts {
            let (message, signature) = (&signed.messages[caller][..], &signed.signatures[caller][..]);
            let answer = batcher.verify(signed.keys[caller].clone(), message, signature).await;
            *verdict = answer.is_ok_and(|verdict| verdict.is_valid());
        }
        (caller, verdicts)
    };
    let mut tasks: FuturesUnordered<_> = (0..CALLERS).map(task).collect();
    while let Some((caller, verdicts)) = block_on(tasks.next()) {
        out[caller * CALLS..][..CALLS].copy_from_slice(&verdicts);
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite::locked_version;

    #[test]
    fn the_peers_are_in_the_lock_file() {
        for peer in ["ed25519-dalek", "ring", "aws-lc-rs", "bulla-ed25519"] {
            assert_ne!(locked_version(peer), "of unknown version", "{peer}");
        }
    }
}
