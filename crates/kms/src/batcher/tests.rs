use std::any::Any;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::thread::ThreadId;

use super::*;
use crate::backend::test_backend::{self, Replaced, software};
use crate::backend::{PrivateKey, SignRequest, VerifyRequest};
use crate::{Algorithm, KeystoreOptions, NewKey};

/// A message at which the backend panics.
const PANIC: &[u8] = b"panic";

/// The software backend behind a gate. While the gate is shut, calls wait before it. The gate
/// records the calls.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    shut: bool,
    /// How many calls wait before it.
    standing: usize,
    /// The messages of each call, and the thread of the call.
    seen: Vec<(ThreadId, Vec<Vec<u8>>)>,
}

#[derive(Debug)]
struct Gated(Arc<Gate>);

struct GatedKey(Arc<Gate>, Arc<dyn PrivateKey>);

impl Gate {
    fn shut(&self) {
        self.state.lock().unwrap().shut = true;
    }

    fn open(&self) {
        self.state.lock().unwrap().shut = false;
        self.changed.notify_all();
    }

    fn pass(&self, messages: &[&[u8]]) {
        let messages: Vec<_> = messages.iter().map(|message| message.to_vec()).collect();
        let mut state = self.state.lock().unwrap();
        state.seen.push((std::thread::current().id(), messages.clone()));
        state.standing += 1;
        self.changed.notify_all();
        while state.shut {
            state = self.changed.wait(state).unwrap();
        }
        state.standing -= 1;
        drop(state);
        assert!(!messages.iter().any(|message| message == PANIC), "on purpose");
    }

    /// Waits until this many calls of the backend wait before the gate.
    fn wait_for(&self, standing: usize) {
        let mut state = self.state.lock().unwrap();
        while state.standing < standing {
            state = self.changed.wait(state).unwrap();
        }
    }

    /// The messages of each call so far.
    fn batches(&self) -> Vec<Vec<Vec<u8>>> {
        self.state.lock().unwrap().seen.iter().map(|(_, messages)| messages.clone()).collect()
    }
}

impl Replaced for Gated {
    fn load(&self, key: Arc<dyn PrivateKey>) -> Arc<dyn PrivateKey> {
        Arc::new(GatedKey(Arc::clone(&self.0), key))
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        self.0.pass(&[request.message]);
        software().verify(request)
    }

    fn verify_many(&self, requests: &[VerifyRequest<'_>]) -> Vec<Verdict> {
        self.0.pass(&requests.iter().map(|request| request.message).collect::<Vec<_>>());
        software().verify_many(requests)
    }

    fn sign_many(&self, requests: &[SignRequest<'_>]) -> Vec<Result<Vec<u8>>> {
        self.0.pass(&requests.iter().map(|request| request.message).collect::<Vec<_>>());
        let inner_keys = requests.iter().map(|request| {
            let key: &dyn Any = request.key;
            let GatedKey(_, key) = key.downcast_ref().expect("a key that this backend loaded");
            SignRequest { key: &**key, ..*request }
        });
        software().sign_many(Algorithm::Ed25519, &inner_keys.collect::<Vec<_>>())
    }
}

impl PrivateKey for GatedKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        self.1.public_key()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        self.0.pass(&[message]);
        self.1.sign(message)
    }
}

struct GatedKeystore {
    gate: Arc<Gate>,
    keystore: Arc<Keystore>,
    /// One key for each tenant.
    keys: Vec<KeyVersionId>,
}

fn place(tenants: usize) -> GatedKeystore {
    let gate = Arc::new(Gate::default());
    let backends = test_backend::backends_with(Gated(Arc::clone(&gate)));
    let keystore = Arc::new(KeystoreOptions::default().backends(backends).in_memory().unwrap());
    let new = |tenant: usize| {
        NewKey::new(format!("tenant-{tenant}").parse().unwrap(), "test".parse().unwrap(), Algorithm::Ed25519)
    };
    let keys = (0..tenants).map(|tenant| keystore.create_key(new(tenant)).unwrap()).collect();
    GatedKeystore { gate, keystore, keys }
}

impl GatedKeystore {
    fn batcher(&self, options: BatcherOptions) -> Batcher {
        let workers = options.workers.unwrap_or(NonZeroUsize::MIN);
        Batcher::new(Arc::clone(&self.keystore), &options.workers(workers)).unwrap()
    }

    /// Shuts the gate and sends one call to it, so that later calls gather.
    fn occupy(&self, batcher: &Batcher) -> Answer<Signature> {
        self.gate.shut();
        let answer = batcher.sign(self.keys[0].clone(), *b"first");
        self.gate.wait_for(1);
        answer
    }
}

fn options() -> BatcherOptions {
    // No deadline: the result of a test does not depend on how long it takes.
    BatcherOptions::default().max_wait(Duration::from_secs(3600))
}

#[test]
fn a_lone_call_of_a_thread_is_computed_on_that_thread() {
    let place = place(1);
    let batcher = place.batcher(options());
    let signature = batcher.sign_blocking(&place.keys[0], b"message").unwrap();
    let verdict = batcher.verify_blocking(&place.keys[0], b"message", &signature.bytes).unwrap();
    assert_eq!(verdict, Verdict::Valid);
    let state = place.gate.state.lock().unwrap();
    assert_eq!(state.seen.len(), 2);
    assert!(state.seen.iter().all(|(thread, _)| *thread == std::thread::current().id()));
}

#[test]
fn calls_that_come_while_one_is_computed_are_computed_together() {
    let place = place(1);
    let batcher = place.batcher(options());
    let first = place.occupy(&batcher);
    let calls: Vec<_> =
        (0..20_u8).map(|call| batcher.verify(place.keys[0].clone(), [call], [0; 64])).collect();
    assert_eq!(batcher.waiting(), 20);
    place.gate.open();
    first.wait().unwrap();
    for call in calls {
        assert_eq!(call.wait().unwrap(), Verdict::Invalid);
    }
    let together: Vec<_> = (0..20_u8).map(|call| vec![call]).collect();
    assert_eq!(place.gate.batches(), [vec![b"first".to_vec()], together]);
}

#[test]
fn every_caller_gets_the_answer_to_its_own_call() {
    let place = place(3);
    let batcher = place.batcher(options());
    let message = |call: u32| call.to_be_bytes();
    // Ed25519 is deterministic: a later signature is the same.
    let sign = |call: u32| place.keystore.sign(&place.keys[call as usize % 3], &message(call)).unwrap().bytes;
    let signed: Vec<_> = (0..100).map(sign).collect();
    let first = place.occupy(&batcher);
    let verified: Vec<_> = (0..100_u32)
        .map(|call| {
            let mut signature = signed[call as usize].clone();
            signature[0] ^= u8::from(call % 7 == 0);
            batcher.verify(place.keys[call as usize % 3].clone(), message(call), signature)
        })
        .collect();
    let signing: Vec<_> =
        (0..100_u32).map(|call| batcher.sign(place.keys[call as usize % 3].clone(), message(call))).collect();
    place.gate.open();
    first.wait().unwrap();
    for (call, verdict) in verified.into_iter().enumerate() {
        assert_eq!(verdict.wait().unwrap().is_valid(), call % 7 != 0, "{call}");
    }
    for (call, signature) in signing.into_iter().enumerate() {
        let signature = signature.wait().unwrap();
        assert_eq!((&signature.key, &signature.bytes), (&place.keys[call % 3], &signed[call]));
    }
}

#[test]
fn a_full_queue_refuses_and_takes_again_when_there_is_room() {
    let place = place(2);
    let batcher = place.batcher(options().target_batch(4).max_batch(4).capacity(10).tenant_capacity(8));
    let first = place.occupy(&batcher);
    let call = |tenant: usize| batcher.verify(place.keys[tenant].clone(), *b"message", [0; 64]);
    let mut calls: Vec<_> = (0..8).map(|_| call(0)).collect();
    let error = call(0).wait().unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::Busy, true));
    calls.extend([call(1), call(1)]);
    assert_eq!(call(1).wait().unwrap_err().code, Code::Busy);
    place.gate.open();
    first.wait().unwrap();
    calls.into_iter().for_each(|call| assert_eq!(call.wait().unwrap(), Verdict::Invalid));
    assert_eq!(call(1).wait().unwrap(), Verdict::Invalid);
}

#[test]
fn a_call_that_is_dropped_is_not_computed_and_makes_room() {
    let place = place(1);
    let batcher = place.batcher(options().target_batch(4).max_batch(4).capacity(4).tenant_capacity(4));
    let first = place.occupy(&batcher);
    let call = |message: u8| batcher.verify(place.keys[0].clone(), [message], [0; 64]);
    let mut calls: Vec<_> = (0..4).map(call).collect();
    drop(calls.remove(2));
    drop(calls.remove(0));
    assert_eq!(batcher.waiting(), 2);
    calls.extend([call(4), call(5)]);
    assert_eq!(call(6).wait().unwrap_err().code, Code::Busy);
    place.gate.open();
    first.wait().unwrap();
    calls.into_iter().for_each(|call| assert_eq!(call.wait().unwrap(), Verdict::Invalid));
    assert_eq!(place.gate.batches()[1], [[1], [3], [4], [5]]);
}

#[test]
fn a_call_that_is_dropped_while_it_is_computed_harms_nobody() {
    let place = place(1);
    let batcher = place.batcher(options());
    drop(place.occupy(&batcher));
    let next = batcher.verify(place.keys[0].clone(), *b"next", [0; 64]);
    place.gate.open();
    assert_eq!(next.wait().unwrap(), Verdict::Invalid);
}

#[test]
fn tenants_take_turns_in_a_batch() {
    let place = place(3);
    let batcher = place.batcher(options().target_batch(8).max_batch(8));
    let first = place.occupy(&batcher);
    let call = |tenant: usize, message: u8| batcher.verify(place.keys[tenant].clone(), [message], [0; 64]);
    let mut calls: Vec<_> = (0..20).map(|message| call(0, message)).collect();
    calls.extend([call(1, 100), call(2, 200), call(1, 101)]);
    place.gate.open();
    first.wait().unwrap();
    calls.into_iter().for_each(|call| assert_eq!(call.wait().unwrap(), Verdict::Invalid));
    assert_eq!(place.gate.batches()[1], [[0], [100], [200], [1], [101], [2], [3], [4]]);
}

#[test]
fn a_batcher_that_is_closed_answers_what_it_took_and_takes_no_more() {
    let place = place(1);
    let batcher = place.batcher(options());
    let first = place.occupy(&batcher);
    let calls: Vec<_> =
        (0..50_u8).map(|call| batcher.verify(place.keys[0].clone(), [call], [0; 64])).collect();
    batcher.close();
    assert_eq!(batcher.sign(place.keys[0].clone(), *b"late").wait().unwrap_err().code, Code::ShuttingDown);
    assert_eq!(batcher.sign_blocking(&place.keys[0], b"late").unwrap_err().code, Code::ShuttingDown);
    place.gate.open();
    drop(batcher);
    first.wait().unwrap();
    calls.into_iter().for_each(|call| assert_eq!(call.wait().unwrap(), Verdict::Invalid));
}

#[test]
fn a_panic_fails_the_call_at_fault_and_no_other_one() {
    let place = place(1);
    let batcher = place.batcher(options());
    let first = place.occupy(&batcher);
    let key = || place.keys[0].clone();
    let message = |call: u8| if call == 5 { PANIC.to_vec() } else { vec![call] };
    let verify: Vec<_> = (0..10).map(|call| batcher.verify(key(), message(call), [0; 64])).collect();
    let sign: Vec<_> = (0..10).map(|call| batcher.sign(key(), message(call))).collect();
    place.gate.open();
    first.wait().unwrap();
    for (call, verdict) in verify.into_iter().enumerate() {
        assert_eq!(
            verdict.wait().map_err(|error| error.code),
            if call == 5 { Err(Code::Internal) } else { Ok(Verdict::Invalid) }
        );
    }
    for (call, signature) in sign.into_iter().enumerate() {
        assert_eq!(signature.wait().err().map(|error| error.code), (call == 5).then_some(Code::Internal));
    }
    let alone = batcher.verify_blocking(&place.keys[0], PANIC, &[0; 64]);
    assert_eq!(alone.unwrap_err().code, Code::Internal);
    assert_eq!(batcher.verify(key(), *b"after", [0; 64]).wait().unwrap(), Verdict::Invalid);
}

#[test]
fn errors_are_those_of_single_calls() {
    let place = place(1);
    let batcher = place.batcher(options());
    let first = place.occupy(&batcher);
    let unknown: KeyVersionId =
        "nobody/test/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v1".parse().unwrap();
    let newer: KeyVersionId = format!("{}/v9", place.keys[0].key_id()).parse().unwrap();
    let verify = [unknown.clone(), newer.clone()].map(|key| batcher.verify(key, *b"message", [0; 64]));
    let sign = [unknown, newer].map(|key| batcher.sign(key, *b"message"));
    let reserved = batcher.sign(place.keys[0].clone(), crate::reserved::RESERVED_PREFIX);
    place.gate.open();
    first.wait().unwrap();
    let code = |error: KmsError| error.code;
    let codes = verify.map(|answer| code(answer.wait().unwrap_err()));
    assert_eq!(codes, [Code::KeyNotFound, Code::UnknownVersion]);
    let codes = sign.map(|answer| code(answer.wait().unwrap_err()));
    assert_eq!(codes, [Code::KeyNotFound, Code::UnknownVersion]);
    assert_eq!(code(reserved.wait().unwrap_err()), Code::ReservedMessage);
}

#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_future_wakes_whom_it_was_last_polled_by_and_nobody_after_it_is_dropped() {
    let place = place(1);
    let batcher = place.batcher(options());
    let mut first = place.occupy(&batcher);
    let mut dropped = batcher.verify(place.keys[0].clone(), *b"dropped", [0; 64]);
    let wakers = [(); 3].map(|()| Arc::new(Counting::default()));
    let poll = |answer: Pin<&mut Answer<Signature>>, waker: &Arc<Counting>| {
        answer.poll(&mut Context::from_waker(&Waker::from(Arc::clone(waker))))
    };
    assert!(poll(Pin::new(&mut first), &wakers[0]).is_pending());
    assert!(poll(Pin::new(&mut first), &wakers[1]).is_pending());
    let context = Waker::from(Arc::clone(&wakers[2]));
    assert!(Pin::new(&mut dropped).poll(&mut Context::from_waker(&context)).is_pending());
    drop(dropped);
    place.gate.open();
    drop(batcher);
    assert!(poll(Pin::new(&mut first), &wakers[0]).is_ready());
    assert_eq!(wakers.map(|waker| waker.0.load(Ordering::SeqCst)), [0, 1, 0]);
}

/// Records, whenever it is woken, how many calls have no answer yet.
struct Looking {
    cells: Vec<Arc<Oneshot<Verdict>>>,
    pending: Mutex<Vec<usize>>,
}

impl Wake for Looking {
    fn wake(self: Arc<Self>) {
        let pending = self.cells.iter().filter(|cell| cell.is_pending()).count();
        self.pending.lock().unwrap().push(pending);
    }
}

#[test]
fn whoever_is_woken_finds_all_answers_of_the_batch() {
    let place = place(1);
    let batcher = place.batcher(options());
    let _first = place.occupy(&batcher);
    let mut calls: Vec<_> =
        (0..20_u8).map(|call| batcher.verify(place.keys[0].clone(), [call], [0; 64])).collect();
    let cells = calls.iter().map(|call| Arc::clone(&call.cell)).collect();
    let looking = Arc::new(Looking { cells, pending: Mutex::default() });
    let waker = Waker::from(Arc::clone(&looking));
    for call in &mut calls {
        assert!(Pin::new(call).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    place.gate.open();
    drop(batcher);
    assert_eq!(*looking.pending.lock().unwrap(), [0; 20]);
}

/// Holds up the thread that wakes it.
struct HoldingUp {
    reached: Barrier,
    released: Barrier,
}

impl Wake for HoldingUp {
    fn wake(self: Arc<Self>) {
        self.reached.wait();
        self.released.wait();
    }
}

#[test]
fn who_finds_its_answer_wakes_the_rest_of_the_batch_while_the_worker_is_held_up() {
    let place = place(1);
    let batcher = place.batcher(options());
    let _first = place.occupy(&batcher);
    let call = |number: u8| batcher.verify(place.keys[0].clone(), [number], [0; 64]);
    let (mut one, mut other) = (call(0), call(1));
    let holding_up = Arc::new(HoldingUp { reached: Barrier::new(2), released: Barrier::new(2) });
    let woken = Arc::new(Counting::default());
    let wakers = (Waker::from(Arc::clone(&holding_up)), Waker::from(Arc::clone(&woken)));
    assert!(Pin::new(&mut one).poll(&mut Context::from_waker(&wakers.0)).is_pending());
    assert!(Pin::new(&mut other).poll(&mut Context::from_waker(&wakers.1)).is_pending());
    place.gate.open();
    holding_up.reached.wait();
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    assert!(Pin::new(&mut one).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    holding_up.released.wait();
    drop(batcher);
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "once");
}

struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

#[test]
fn a_waker_that_panics_harms_nobody_else() {
    let place = place(1);
    let batcher = place.batcher(options());
    let first = place.occupy(&batcher);
    let call = |number: u8| batcher.verify(place.keys[0].clone(), [number], [0; 64]);
    let (mut faulty, mut other) = (call(0), call(1));
    let woken = Arc::new(Counting::default());
    let panicking = Waker::from(Arc::new(Panicking));
    assert!(Pin::new(&mut faulty).poll(&mut Context::from_waker(&panicking)).is_pending());
    let counting = Waker::from(Arc::clone(&woken));
    assert!(Pin::new(&mut other).poll(&mut Context::from_waker(&counting)).is_pending());
    place.gate.open();
    first.wait().unwrap();
    assert_eq!(call(2).wait().unwrap(), Verdict::Invalid, "the worker goes on");
    drop(batcher);
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
}

#[test]
fn entries_of_the_audit_log_name_who_called() {
    use crate::audit_log::{AuditLog, AuditLogOptions, Verifications};
    let options_of_log = AuditLogOptions::default().verifications(Verifications::Recorded);
    let log = Arc::new(AuditLog::in_memory(options_of_log).unwrap());
    let keystore = KeystoreOptions::default().audit(log.clone()).in_memory().unwrap();
    let new = NewKey::new("tenant".parse().unwrap(), "test".parse().unwrap(), Algorithm::Ed25519);
    let key = keystore.create_key(new).unwrap();
    let batcher = Batcher::new(Arc::new(keystore), &options()).unwrap();
    let alice: Actor = "alice".parse().unwrap();
    let answer = batcher.sign_on_behalf_of(&alice, key.clone(), *b"message");
    let signature = answer.wait().unwrap();
    assert_eq!(batcher.verify(key, *b"message", signature.bytes).wait().unwrap(), Verdict::Valid);
    let entries = log.entries().unwrap();
    let told: Vec<_> = entries.iter().map(|entry| (entry.actor.as_str(), entry.operation.as_str())).collect();
    assert_eq!(told, [("-", "create"), ("alice", "sign"), ("-", "verify")]);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let keystore = Arc::new(Keystore::in_memory().unwrap());
    let good = BatcherOptions::default();
    for bad in [
        good.target_batch(0),
        good.target_batch(257),
        good.capacity(100),
        good.tenant_capacity(0),
        good.tenant_capacity(9000),
    ] {
        let error = Batcher::new(Arc::clone(&keystore), &bad).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
    }
}

/// Many threads at once, some of which cancel their calls: every answer arrives and is right.
#[test]
fn nothing_is_lost_when_many_threads_call_and_give_up() {
    let place = place(4);
    let two = NonZeroUsize::new(2).unwrap();
    let batcher = &place.batcher(BatcherOptions::default().workers(two));
    let place = &place;
    std::thread::scope(|scope| {
        for thread in 0..8_u32 {
            scope.spawn(move || {
                let key = &place.keys[thread as usize % 4];
                for round in 0..100_u32 {
                    let message = [thread, round].map(u32::to_be_bytes).concat();
                    let given_up = batcher.sign(key.clone(), message.clone());
                    let kept = batcher.sign(key.clone(), message.clone());
                    drop(given_up);
                    let signature = kept.wait().unwrap();
                    let valid = batcher.verify(key.clone(), message.clone(), signature.bytes.clone());
                    let invalid = batcher.verify(key.clone(), *b"other", signature.bytes.clone());
                    assert_eq!(
                        batcher.verify_blocking(key, &message, &signature.bytes).unwrap(),
                        Verdict::Valid
                    );
                    assert_eq!(
                        (valid.wait().unwrap(), invalid.wait().unwrap()),
                        (Verdict::Valid, Verdict::Invalid)
                    );
                }
            });
        }
    });
    assert_eq!(batcher.waiting(), 0);
}

#[test]
fn without_threads_calls_wait_until_they_are_computed_in_batches_of_the_largest_size() {
    let place = place(2);
    let options = options().target_batch(8).max_batch(8);
    let batcher = Batcher::without_threads(Arc::clone(&place.keystore), &options).unwrap();
    assert_eq!(batcher.compute_waiting(), 0, "there is nothing to compute");
    let calls: Vec<_> = (0..20_u8)
        .map(|call| batcher.verify(place.keys[usize::from(call % 2)].clone(), [call], [0; 64]))
        .collect();
    assert!(place.gate.batches().is_empty());
    assert_eq!([batcher.compute_waiting(), batcher.compute_waiting()], [12, 4]);
    let late = batcher.sign(place.keys[0].clone(), *b"late");
    // The thread that drops the batcher computes the calls that it accepted.
    drop(batcher);
    assert_eq!(place.gate.batches().iter().map(Vec::len).collect::<Vec<_>>(), [8, 8, 4, 1]);
    calls.into_iter().for_each(|call| assert_eq!(call.wait().unwrap(), Verdict::Invalid));
    late.wait().unwrap();
    let own = std::thread::current().id();
    assert!(place.gate.state.lock().unwrap().seen.iter().all(|(thread, _)| *thread == own));
}
