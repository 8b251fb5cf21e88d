//! Clients that sign, rotate, disable and read through all nodes, and write down what they were
//! answered.

use crate::client::{Answer, Client, ListenAddress};
use crate::history::{Event, Outcome, Span, Summary, check};
use crate::node::{Nodes, STALE_AFTER, eventually};
use crate::tally::{Asked, NOTHING, Tally, nobody_was_there};
use serde_json::{Value, json};
use std::io::Result;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const KEY: &str = "/api/v1/keys/default";
const SECOND: &str = "/api/v1/keys/second";
const ONCE: &str = "/api/v1/keys/once";

/// Clients of all nodes, and what they saw.
pub(crate) struct Load {
    places: Vec<ListenAddress>,
    start: Instant,
    done: AtomicBool,
    events: Mutex<Vec<Event>>,
    /// Answers that no fault explains.
    unexpected: Mutex<Vec<String>>,
    tally: Mutex<Tally>,
}

/// Requests with idempotency keys: how many there were, and how many were answered with success.
#[derive(Clone, Copy, Debug, Default)]
struct Repeated {
    keys: u64,
    made: u64,
}

/// Runs clients while `during` does something, and checks what they saw. `during` leaves all nodes
/// and members running.
pub(crate) fn run(nodes: &mut Nodes, during: impl FnOnce(&Load, &mut Nodes)) -> Summary {
    let load = Load {
        places: nodes.places(),
        start: Instant::now(),
        done: AtomicBool::new(false),
        events: Mutex::default(),
        unexpected: Mutex::default(),
        tally: Mutex::new(Tally::new()),
    };
    let mut client = nodes.all[0].client();
    for label in ["second", "once"] {
        let made = client.post("/api/v1/keys", &json!({ "label": label })).expect("an answer");
        assert!(made.is_ok(), "{made:?}");
    }
    let before = [KEY, SECOND, ONCE].map(|key| load.head_of(nodes, key));
    assert_eq!(before, [1; 3], "the history begins with the keys");
    let mut repeated = Repeated::default();
    std::thread::scope(|scope| {
        for node in 0..load.places.len() {
            let load = &load;
            scope.spawn(move || load.sign(node));
        }
        for thread in 0..2 {
            let load = &load;
            scope.spawn(move || load.rotate(thread));
        }
        scope.spawn(|| load.disable());
        let repeating = scope.spawn(|| load.repeat());
        during(&load, nodes);
        load.done.store(true, Ordering::SeqCst);
        repeated = repeating.join().expect("the client ends");
    });
    nodes.wait();
    let unexpected = load.unexpected.lock().unwrap();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    let heads = [KEY, ONCE].map(|key| load.head_of(nodes, key));
    let Repeated { keys, made } = repeated;
    let changes = heads[1] - 1;
    assert!(
        (made..=keys).contains(&changes),
        "{keys} requests with a key, {made} of them with success, made {changes} changes"
    );
    let mut events = load.events.lock().unwrap().clone();
    events.sort_by_key(|event| match event {
        Event::Rotate(span, _) | Event::Sign(span, _) | Event::SignSecond(span) => span.sent,
        Event::Disable(span, ..) => span.sent,
        Event::Read { .. } => Duration::ZERO,
    });
    check(&events, heads[0], STALE_AFTER).unwrap_or_else(|wrong| panic!("{wrong}"))
}

impl Load {
    /// The latest version, on which all nodes agree in the end.
    #[track_caller]
    fn head_of(&self, nodes: &Nodes, key: &str) -> u64 {
        let mut heads = Vec::new();
        eventually("all nodes know the same head", || {
            heads = nodes.all.iter().map(|node| head(node.client().get(key).ok().as_ref())).collect();
            heads[0].is_some() && heads.iter().all(|head| *head == heads[0])
        });
        heads[0].expect("a head")
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }

    fn note(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }

    fn client(&self, node: usize) -> Client {
        Client::new(self.places[node % self.places.len()].clone())
    }

    /// One request, and when it was sent and answered.
    fn ask(&self, asked: Asked, ask: impl FnOnce() -> Result<Answer>) -> (Span, Result<Answer>) {
        let matter = self.tally.lock().unwrap().now();
        let sent = self.start.elapsed();
        let answer = ask();
        let span = Span { sent, answered: self.start.elapsed() };
        self.tally.lock().unwrap().count(matter, asked, &answer);
        (span, answer)
    }

    /// From now on, clients are answered under this fault.
    pub(crate) fn begin(&self, fault: &'static str) {
        self.tally.lock().unwrap().begin(fault);
    }

    /// From now on, all is well again.
    pub(crate) fn end(&self) {
        self.begin(NOTHING);
    }

    /// What clients were answered under each fault so far.
    pub(crate) fn table(&self) -> String {
        self.tally.lock().unwrap().to_string()
    }

    /// What became of a change.
    fn outcome(&self, answer: &Result<Answer>) -> Outcome<()> {
        match answer {
            // Nobody was there who could have been asked.
            Err(error) if nobody_was_there(error.kind()) => Outcome::NotMade,
            Err(_) => Outcome::Unknown,
            Ok(answer) if answer.is_ok() => Outcome::Made(()),
            Ok(answer) => match answer.code() {
                "outcome_unknown" => Outcome::Unknown,
                "unavailable" | "busy" | "revision_unavailable" | "sealed" => Outcome::NotMade,
                _ => {
                    self.unexpected.lock().unwrap().push(format!("{answer:?}"));
                    Outcome::Unknown
                }
            },
        }
    }

    /// Signs through one node, with both keys.
    fn sign(&self, node: usize) {
        let (mut client, body) = (self.client(node), json!({ "message": "eA==" }));
        while !self.is_done() {
            for key in [KEY, SECOND] {
                let (span, answer) =
                    self.ask(Asked::Signature, || client.post(&format!("{key}/sign"), &body));
                match answer {
                    Ok(answer) if answer.is_ok() && key == KEY => {
                        self.note(Event::Sign(span, answer.body["version"].as_u64().expect("a version")));
                    }
                    Ok(answer) if answer.is_ok() => self.note(Event::SignSecond(span)),
                    Ok(answer) if ["unavailable", "key_disabled", "sealed"].contains(&answer.code()) => {}
                    Ok(answer) => self.unexpected.lock().unwrap().push(format!("{answer:?}")),
                    // The node does not answer for now.
                    Err(_) => std::thread::sleep(Duration::from_millis(50)),
                }
            }
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Rotates through one node after another, and reads what it wrote from the next one.
    fn rotate(&self, thread: usize) {
        for round in thread.. {
            if self.is_done() {
                return;
            }
            let rotate = || self.client(round).post(&format!("{KEY}/rotate"), &Value::Null);
            let (span, answer) = self.ask(Asked::Change, rotate);
            let outcome = match self.outcome(&answer) {
                Outcome::Made(()) => Outcome::Made(head(answer.as_ref().ok()).expect("a head")),
                Outcome::NotMade => Outcome::NotMade,
                Outcome::Unknown => Outcome::Unknown,
            };
            self.note(Event::Rotate(span, outcome));
            if let (Outcome::Made(least), Some(revision)) =
                (outcome, answer.ok().and_then(|answer| answer.revision()))
            {
                let revision = revision.to_string();
                let headers = [("bulla-min-revision", revision.as_str())];
                let read = || self.client(round + 1).send("GET", KEY, &headers, &Value::Null);
                let read = self.ask(Asked::Read, read).1.ok();
                if let Some(head) = head(read.as_ref().filter(|read| read.is_ok())) {
                    self.note(Event::Read { least, head });
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Disables the second key through one node, and enables it through another one.
    fn disable(&self) {
        for round in 0.. {
            for disable in [true, false] {
                let body = json!({ "enabled": !disable });
                let mut made = false;
                while !made && !self.is_done() {
                    let change = || self.client(round).send("PATCH", SECOND, &[], &body);
                    let (span, answer) = self.ask(Asked::Change, change);
                    let outcome = self.outcome(&answer);
                    self.note(Event::Disable(span, outcome, disable));
                    made = outcome == Outcome::Made(());
                    std::thread::sleep(Duration::from_millis(50));
                }
                // A disabled key stays so for long enough that a late signature is found.
                let end = Instant::now() + if disable { STALE_AFTER * 2 } else { STALE_AFTER / 3 };
                while Instant::now() < end && !self.is_done() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            if self.is_done() {
                return;
            }
        }
    }

    /// Repeats each request with the same idempotency key through other nodes, until it is
    /// answered.
    fn repeat(&self) -> Repeated {
        let mut repeated = Repeated::default();
        while !self.is_done() {
            repeated.keys += 1;
            let key = format!("key-{}", repeated.keys);
            for try_ in 0.. {
                let headers = [("idempotency-key", key.as_str())];
                let mut client = self.client(try_ + repeated.keys as usize);
                let rotate = || client.send("POST", &format!("{ONCE}/rotate"), &headers, &Value::Null);
                match self.ask(Asked::Change, rotate).1 {
                    Ok(answer) if answer.is_ok() => {
                        repeated.made += 1;
                        // A repetition gets the same answer.
                        if let Ok(again) =
                            self.client(try_).send("POST", &format!("{ONCE}/rotate"), &headers, &Value::Null)
                            && again.is_ok()
                            && again.body != answer.body
                        {
                            self.unexpected.lock().unwrap().push(format!("{answer:?} and then {again:?}"));
                        }
                        break;
                    }
                    Ok(answer) if answer.body["retryable"] == true => {}
                    Ok(answer) if ["conflict", "outcome_unknown"].contains(&answer.code()) => break,
                    Ok(answer) => self.unexpected.lock().unwrap().push(format!("{answer:?}")),
                    Err(_) => {}
                }
                if self.is_done() {
                    return repeated;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        repeated
    }

    /// Waits while the clients go on.
    pub(crate) fn goes_on(&self, time: Duration) {
        std::thread::sleep(time);
    }

    /// Waits until somebody rotates and signs from now on.
    pub(crate) fn makes_progress(&self) {
        let now = self.start.elapsed();
        eventually("clients rotate and sign", || {
            let events = self.events.lock().unwrap();
            let new = |is: &dyn Fn(&Event) -> bool| events.iter().rev().any(is);
            new(&|event| matches!(event, Event::Rotate(span, Outcome::Made(_)) if span.sent > now))
                && new(&|event| matches!(event, Event::Sign(span, _) if span.sent > now))
        });
    }

    /// Asserts that nothing was changed and acknowledged between now and the end of `time`.
    pub(crate) fn changes_nothing(&self, time: Duration) {
        let now = self.start.elapsed();
        std::thread::sleep(time);
        let events = self.events.lock().unwrap();
        let made = events
            .iter()
            .find(|event| matches!(event, Event::Rotate(span, Outcome::Made(_)) if span.sent > now));
        assert!(made.is_none(), "without a majority, {made:?} was acknowledged");
    }
}

fn head(answer: Option<&Answer>) -> Option<u64> {
    answer?.body["head"].as_u64()
}
