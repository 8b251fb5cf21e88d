//! Nodes that have a key together and change its shares, while they sign and everything befalls
//! them. For minutes instead of seconds: `BULLA_GROUP_FAULT_SECONDS=600 cargo test -p bulla-server
//! --features etcd --test cluster group_faults -- --nocapture`

use crate::faults::{Random, number};
use crate::group_liar::{Liar, NodeIdentity};
use crate::node::{Guarded, Nodes, eventually};
use base64_simd::STANDARD;
use bulla_testing::etcd::{Cluster, free_port};
use bulla_testing::proxy::{Gate, Proxy};
use ed25519_dalek::{Signature, VerifyingKey};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const COUNT: usize = 4;
const KEY: &str = "/api/v1/keys/releases";

/// What went over all ways between nodes, as far as it is about nonces.
#[derive(Default)]
struct Seen {
    /// The commitments that nodes told in advance.
    told: HashSet<String>,
    /// The order in which each commitment was used.
    used: HashMap<String, String>,
    /// The order for which each nonce of each node was used.
    spent: HashMap<(usize, String), String>,
    wrong: Vec<String>,
}

impl Seen {
    fn note(&mut self, to: usize, request: &Value, answer: &Value) {
        for nonce in [&answer["ready"]["nonces"], &answer["signed"]["nonces"]]
            .into_iter()
            .filter_map(Value::as_array)
            .flatten()
        {
            if !self.told.insert(nonce["commitments"].to_string()) {
                self.wrong.push(format!("node{to} told the same commitments twice: {nonce}"));
            }
        }
        for order in request["sign"]["orders"].as_array().into_iter().flatten() {
            let content = &order["order"];
            // Each message is signed once, so this is one signature of one epoch. What is left out
            // for the receiver is bound to the number of the nonce.
            let signature = format!("{} {}", content["shares"], content["message"]);
            let attempt = format!("{signature} {}", content["commitments"]);
            let nonce = (to, order["nonce"].to_string());
            if self.spent.insert(nonce, attempt.clone()).is_some_and(|before| before != attempt) {
                self.wrong.push(format!("node{to} is asked to use a nonce twice: {order}"));
            }
            for (name, commitments) in content["commitments"].as_object().into_iter().flatten() {
                let used = self.used.insert(commitments.to_string(), signature.clone());
                if used.is_some_and(|before| before != signature) {
                    self.wrong.push(format!("the commitments of {name} are in two orders: {order}"));
                }
            }
        }
    }
}

/// Nodes of a group, with a way from each to each other one that notes what goes over it.
struct Group {
    // The first field, so that the nodes end before the rest.
    nodes: Nodes,
    ways: Vec<Vec<Option<Proxy>>>,
    _watchers: Vec<Liar>,
    identities: Vec<Arc<NodeIdentity>>,
    ports: Vec<u16>,
    seen: Arc<Mutex<Seen>>,
    /// The nodes that have shares, and how many of them sign.
    members: Vec<usize>,
    threshold: usize,
    signed: Option<Signed>,
    _cluster: Cluster,
}

impl Group {
    /// Three nodes with a key, of which two sign, and one that may join.
    fn start() -> Self {
        let cluster = Cluster::start(1);
        let identities: Vec<_> =
            (0..COUNT).map(|number| Arc::new(NodeIdentity::new(&format!("node{number}")))).collect();
        let ports: Vec<_> = (0..COUNT).map(|_| free_port()).collect();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut watchers = Vec::new();
        let mut ways: Vec<Vec<Option<Proxy>>> = Vec::new();
        for from in 0..COUNT {
            let mut row = Vec::new();
            for to in 0..COUNT {
                row.push((from != to).then(|| {
                    let noted = Arc::clone(&seen);
                    let note = move |request: &Value, answer: &Value| {
                        noted.lock().expect("no panic").note(to, request, answer);
                    };
                    let watcher = Liar::watch(&identities[from], &identities[to], ports[to], note);
                    let way = Proxy::start(watcher.port());
                    watchers.push(watcher);
                    way
                }));
            }
            ways.push(row);
        }
        let nodes = Nodes::start_with(&cluster, COUNT, Guarded::No, |number, folder| {
            identities[number].write(folder);
            String::new()
        });
        let members = vec![0, 1, 2];
        let mut group = Self {
            nodes,
            ways,
            _watchers: watchers,
            identities,
            ports,
            seen,
            members,
            threshold: 2,
            signed: None,
            _cluster: cluster,
        };
        group.configure();
        let new = json!({ "purpose": "files", "label": "releases", "backend": "group" });
        let made = group.nodes.all[0].client().post("/api/v1/keys", &new).expect("an answer");
        assert!(made.is_ok(), "{made:?}");
        group.signed = Some(Signed::with_key(&made.body));
        group.all_sign();
        group
    }

    fn signed(&self) -> &Signed {
        self.signed.as_ref().expect("there is a key")
    }

    /// Starts all nodes with settings that name the members and the threshold.
    fn configure(&mut self) {
        for number in 0..COUNT {
            let folder = self.nodes.all[number].folder().to_owned();
            let mut settings = String::new();
            if self.members.contains(&number) {
                settings = format!(
                    "[group]\nname = \"node{number}\"\nlisten = \"127.0.0.1:{}\"\nfolder = \"{1}/group\"\n\
                     certificate = \"{1}/group.pem\"\nkey = \"{1}/group.key\"\nthreshold = {2}\n\
                     timeout_milliseconds = 1000\n",
                    self.ports[number],
                    folder.display(),
                    self.threshold,
                );
                for peer in self.members.iter().filter(|peer| **peer != number) {
                    let way = self.ways[number][*peer].as_ref().expect("two nodes");
                    settings += &format!(
                        "\n[[group.peer]]\nname = \"node{peer}\"\naddress = \"127.0.0.1:{}\"\ncertificate_sha256 = \"{}\"\n",
                        way.port(),
                        self.identities[*peer].sha256(),
                    );
                }
            }
            self.nodes.all[number].kill();
            self.nodes.all[number].configure(Guarded::No, &settings);
            self.nodes.all[number].spawn();
        }
        self.nodes.wait();
    }

    /// One signature by one node, which is verified. Returns the error of the service.
    fn sign(&self, node: usize) -> Result<(), String> {
        self.signed().one(&mut self.nodes.all[node].client())
    }

    fn change(&self, node: usize, what: &str) -> Result<(), String> {
        let answer = self.nodes.all[node].client().post(&format!("{KEY}/{what}"), &json!({}));
        match answer {
            Ok(answer) if answer.is_ok() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    fn epoch(&self, node: usize) -> Option<u64> {
        let key = self.nodes.all[node].client().get(KEY).ok()?;
        key.body["versions"][0]["shares"]["epoch"].as_u64()
    }

    /// Each member signs, and all have shares of one epoch.
    #[track_caller]
    fn all_sign(&self) {
        for &node in &self.members {
            let mut last = String::new();
            let end = Instant::now() + Duration::from_secs(60);
            while let Err(error) = self.sign(node) {
                last.clone_from(&error);
                assert!(Instant::now() < end, "node{node}: {last}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        eventually("all members have shares of one epoch", || {
            let epochs: HashSet<_> = self.members.iter().map(|node| self.epoch(*node)).collect();
            epochs.len() == 1 && !epochs.contains(&None)
        });
    }

    fn set_ways(&self, node: usize, gate: Gate) {
        for other in (0..COUNT).filter(|other| *other != node) {
            for (from, to) in [(node, other), (other, node)] {
                self.ways[from][to].as_ref().expect("two nodes").set(gate);
            }
        }
    }
}

/// Signatures, each of a message of its own. All are verified.
#[derive(Clone)]
struct Signed {
    asked: Arc<AtomicU64>,
    made: Arc<AtomicU64>,
    key: VerifyingKey,
}

impl Signed {
    fn with_key(key: &Value) -> Self {
        let text = key["versions"][0]["public_key"].as_str().expect("a public key");
        let bytes = STANDARD.decode_to_vec(text).expect("base64");
        let key = VerifyingKey::from_bytes(&bytes.try_into().expect("32 bytes")).expect("a key");
        Self { asked: Arc::default(), made: Arc::default(), key }
    }

    fn one(&self, client: &mut crate::client::Client) -> Result<(), String> {
        let message = self.asked.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let body = json!({ "message": STANDARD.encode_to_string(message) });
        let answer = client.post(&format!("{KEY}/sign"), &body).map_err(|error| error.to_string())?;
        if !answer.is_ok() {
            return Err(answer.body.to_string());
        }
        let signature = answer.body["signature"].as_str().expect("a signature");
        let signature = STANDARD.decode_to_vec(signature).expect("base64");
        let signature = Signature::from_slice(&signature).expect("64 bytes");
        self.key.verify_strict(&message, &signature).expect("every signature is valid");
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// What happened how often.
#[derive(Debug, Default)]
struct Summary {
    faults: BTreeMap<&'static str, u64>,
    done: BTreeMap<&'static str, u64>,
    refused: BTreeMap<&'static str, u64>,
}

/// Lets something befall one member while the shares are changed, and heals it.
fn fault(group: &mut Group, random: &mut Random, summary: &mut Summary) {
    let victim = group.members[random.below(group.members.len())];
    let others: Vec<_> = group.members.iter().copied().filter(|node| *node != victim).collect();
    let other = others[random.below(others.len())];
    let kind = ["nothing", "killed", "suspended", "cut off", "hangs", "killed in a change"][random.below(6)];
    *summary.faults.entry(kind).or_default() += 1;
    match kind {
        "killed" => group.nodes.all[victim].kill(),
        "suspended" => group.nodes.all[victim].signal(Signal::STOP),
        "cut off" => group.set_ways(victim, Gate::Closed),
        "hangs" => group.set_ways(victim, Gate::Paused),
        _ => {}
    }
    // Sometimes the one that everything befalls changes the shares itself.
    let by = if kind == "nothing" || random.below(3) == 0 { victim } else { other };
    let refreshed = if kind == "killed in a change" {
        let delay = Duration::from_millis(random.below(120) as u64);
        let mut client = group.nodes.all[by].client();
        let changing = std::thread::spawn(move || client.post(&format!("{KEY}/refresh-shares"), &json!({})));
        std::thread::sleep(delay);
        group.nodes.all[victim].kill();
        changing.join().expect("no panic").is_ok_and(|answer| answer.is_ok())
    } else {
        // A node that is suspended or killed answers nobody.
        let by = if ["killed", "suspended"].contains(&kind) { other } else { by };
        group.change(by, "refresh-shares").is_ok()
    };
    *(if refreshed { &mut summary.done } else { &mut summary.refused }).entry("refresh").or_default() += 1;
    // As many as sign together are there, so the key is usable.
    if others.len() >= group.threshold {
        eventually("a node signs while another one is away", || group.sign(other).is_ok());
    }
    match kind {
        "killed" | "killed in a change" => group.nodes.all[victim].spawn(),
        "suspended" => group.nodes.all[victim].signal(Signal::CONT),
        "cut off" | "hangs" => group.set_ways(victim, Gate::Open),
        _ => {}
    }
    group.nodes.wait();
    group.all_sign();
}

/// Takes a member's share away, or its whole folder, and lets the others repair it.
fn repair(group: &mut Group, random: &mut Random, summary: &mut Summary) {
    let lost = group.members[random.below(group.members.len())];
    if group.members.len() <= group.threshold {
        return;
    }
    group.nodes.all[lost].kill();
    let folder = group.nodes.all[lost].folder().join("group");
    if random.below(2) == 0 {
        fs::remove_dir_all(&folder).expect("the folder was there");
    } else {
        let files = fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file").path());
        files.filter(|file| file.extension().is_some_and(|end| end == "share")).for_each(|file| {
            fs::remove_file(file).expect("it was there");
        });
    }
    group.nodes.all[lost].spawn();
    group.nodes.wait();
    let mut last = String::new();
    let end = Instant::now() + Duration::from_secs(60);
    while let Err(error) = group.change(lost, "repair-shares") {
        last.clone_from(&error);
        assert!(Instant::now() < end, "{last}");
    }
    *summary.done.entry("repair").or_default() += 1;
    group.all_sign();
}

/// Lets a node join or leave, or another number of nodes sign.
fn reshare(group: &mut Group, random: &mut Random, summary: &mut Summary) {
    let old = (group.members.clone(), group.threshold);
    group.threshold = 2 + random.below(2);
    if group.members.len() < COUNT {
        group.members = (0..COUNT).collect();
    } else {
        group.members.remove(random.below(COUNT));
    }
    group.configure();
    let by = *old.0.iter().find(|node| group.members.contains(node)).expect("somebody stays");
    let mut last = String::new();
    let end = Instant::now() + Duration::from_secs(60);
    while let Err(error) = group.change(by, "refresh-shares") {
        last.clone_from(&error);
        assert!(Instant::now() < end, "{old:?}: {last}");
    }
    *summary.done.entry("other nodes").or_default() += 1;
    group.all_sign();
}

#[test]
fn random_faults_while_shares_change_lose_no_key_and_repeat_no_nonce() {
    let seconds = number("BULLA_GROUP_FAULT_SECONDS").unwrap_or(10);
    let seed = number("BULLA_CLUSTER_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    println!("BULLA_CLUSTER_SEED={seed}");
    let mut random = Random::new(seed);
    let mut group = Group::start();
    let signed = group.signed().clone();
    let (done, mut summary) = (AtomicBool::new(false), Summary::default());
    let places = group.nodes.places();
    std::thread::scope(|scope| {
        for place in places {
            let (signed, done) = (signed.clone(), &done);
            scope.spawn(move || {
                // Errors are what faults do. What is signed is verified.
                while !done.load(Ordering::Relaxed) {
                    let mut client = crate::client::Client::new(place.clone());
                    if signed.one(&mut client).is_err() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            });
        }
        let stop = StopAtEnd(&done);
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            match random.below(8) {
                0 => repair(&mut group, &mut random, &mut summary),
                1 => reshare(&mut group, &mut random, &mut summary),
                _ => fault(&mut group, &mut random, &mut summary),
            }
        }
        drop(stop);
    });
    let seen = group.seen.lock().expect("no panic");
    assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
    let epoch = group.epoch(group.members[0]).expect("an epoch");
    println!(
        "{} signatures, {} commitments told, {} used, epoch {epoch}; {summary:?}",
        signed.made.load(Ordering::Relaxed),
        seen.told.len(),
        seen.used.len(),
    );
    assert!(signed.made.load(Ordering::Relaxed) > 0 && !seen.told.is_empty() && !seen.used.is_empty());
}

/// Also after a panic, the clients end.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
