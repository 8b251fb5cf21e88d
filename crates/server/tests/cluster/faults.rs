//! Three nodes over three members of etcd under load, and everything that can befall them. For
//! minutes instead of seconds: `BULLA_CLUSTER_FAULT_SECONDS=600 cargo test -p bulla-server
//! --features etcd --test cluster faults::random -- --nocapture`

use crate::load::{self, Load};
use crate::node::{Guarded, Nodes, STALE_AFTER, eventually};
use crate::tally::NOTHING;
use bulla_testing::etcd::Cluster;
use bulla_testing::proxy::Gate;
use rustix::process::Signal;
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_node_that_is_killed_or_stopped_under_load_loses_nothing() {
    let cluster = Cluster::start(3);
    let mut nodes = Nodes::start(&cluster, 3, Guarded::No);
    let summary = load::run(&mut nodes, |load, nodes| {
        for number in 0..3 {
            nodes.all[number].kill();
            load.makes_progress();
            nodes.all[number].spawn();
            load.makes_progress();
        }
        nodes.all[1].stop();
        nodes.all[1].spawn();
        // One that is suspended for longer than it may sign, and goes on as if nothing had
        // happened.
        nodes.all[0].signal(Signal::STOP);
        load.goes_on(STALE_AFTER + Duration::from_secs(1));
        nodes.all[0].signal(Signal::CONT);
        load.makes_progress();
    });
    println!("{summary:?}");
    assert!(summary.rotations > 5 && summary.reads > 0 && summary.signatures > 20, "{summary:?}");
}

#[test]
fn etcd_may_lose_a_member_and_without_a_majority_nothing_is_acknowledged() {
    let mut cluster = Cluster::start(3);
    let mut nodes = Nodes::start(&cluster, 3, Guarded::No);
    let summary = load::run(&mut nodes, |load, nodes| {
        cluster.kill(0);
        load.makes_progress();
        cluster.restart(0);
        cluster.isolate(1);
        load.makes_progress();
        cluster.heal();
        // A node that reaches no member, while the others go on.
        nodes.all[2].set_ways(Gate::Closed);
        load.makes_progress();
        eventually("the node signs no longer", || nodes.all[2].store().is_none());
        // If it signed nonetheless, the history would show it.
        load.goes_on(Duration::from_secs(1));
        nodes.all[2].set_ways(Gate::Open);
        cluster.isolate(0);
        cluster.isolate(2);
        // What was sent before may still be acknowledged.
        load.goes_on(Duration::from_millis(500));
        load.changes_nothing(STALE_AFTER + Duration::from_secs(1));
        for node in &nodes.all {
            assert!(node.store().is_none(), "no node signs without a majority");
            let ready = node.client().get("/api/v1/ready").expect("an answer");
            assert!(ready.is_ok() && ready.body["store"]["stale"] == true, "{ready:?}");
        }
        cluster.heal();
        load.makes_progress();
    });
    println!("{summary:?}");
}

#[test]
fn a_node_that_slept_through_a_compaction_reads_everything_anew() {
    let cluster = Cluster::start(1);
    let nodes = Nodes::start(&cluster, 2, Guarded::No);
    let [one, sleeper] = &nodes.all[..] else { unreachable!("there are two") };
    sleeper.signal(Signal::STOP);
    let mut client = one.client();
    let mut rotated = None;
    for _ in 0..20 {
        rotated = Some(client.post("/api/v1/keys/default/rotate", &json!({})).expect("an answer"));
    }
    compact(&cluster);
    sleeper.signal(Signal::CONT);
    let revision = rotated.and_then(|answer| answer.revision()).expect("a revision").to_string();
    eventually("the node knows the latest version", || {
        let headers = [("bulla-min-revision", revision.as_str())];
        let read = sleeper.client().send("GET", "/api/v1/keys/default", &headers, &json!(null));
        read.is_ok_and(|answer| answer.is_ok() && answer.body["head"] == 21)
    });
}

/// Has etcd forget its history.
fn compact(cluster: &Cluster) {
    let found = cluster.call(0, "/v3/kv/range", &json!({ "key": "AA==" }));
    let revision = &found["header"]["revision"];
    cluster.call(0, "/v3/kv/compaction", &json!({ "revision": revision, "physical": true }));
}

/// Random numbers that a seed repeats (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ mixed >> 31) % end as u64).unwrap_or(0)
    }

    fn pause(&mut self) -> Duration {
        // Some are shorter than nodes may sign without etcd, some longer.
        Duration::from_millis([200, 700, 1500, 4500][self.below(4)])
    }
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    Some(std::env::var(variable).ok()?.parse().expect("a number"))
}

#[test]
fn random_faults_break_no_promise() {
    let seconds = number("BULLA_CLUSTER_FAULT_SECONDS").unwrap_or(8);
    let seed = number("BULLA_CLUSTER_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    println!("BULLA_CLUSTER_SEED={seed}");
    let mut random = Random::new(seed);
    let mut cluster = Cluster::start(3);
    let mut nodes = Nodes::start(&cluster, 3, Guarded::Yes);
    let mut faults = 0;
    let mut table = String::new();
    let summary = load::run(&mut nodes, |load, nodes| {
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            fault(load, &mut cluster, nodes, &mut random);
            faults += 1;
        }
        load.makes_progress();
        table = load.table();
    });
    println!("{faults} faults: {summary:?}\n{table}");
    assert!(faults > 0 && summary.rotations > 0);
}

/// Something that befalls a member of etcd, a node, or one of each at the same time.
fn fault(load: &Load, cluster: &mut Cluster, nodes: &mut Nodes, random: &mut Random) {
    let (member, number) = (random.below(3), random.below(3));
    let (of_node, of_member) = (random.below(5), random.below(5));
    load.begin(name(of_node, of_member));
    match of_node {
        0 => nodes.all[number].kill(),
        1 => nodes.all[number].set_ways(Gate::Closed),
        2 => nodes.all[number].set_ways(Gate::Paused),
        3 => nodes.all[number].signal(Signal::STOP),
        _ => {}
    }
    match of_member {
        0 => cluster.kill(member),
        1 => cluster.isolate(member),
        2 => {
            cluster.isolate(member);
            cluster.isolate((member + 1) % 3);
        }
        3 => compact(cluster),
        _ => {}
    }
    load.goes_on(random.pause());
    match of_member {
        0 => cluster.restart(member),
        1 | 2 => cluster.heal(),
        _ => {}
    }
    let node = &mut nodes.all[number];
    match of_node {
        0 => node.spawn(),
        1 | 2 => node.set_ways(Gate::Open),
        3 => node.signal(Signal::CONT),
        _ => {}
    }
    load.end();
    load.goes_on(random.pause() / 4);
}

/// What befalls a node and a member, in words.
fn name(of_node: usize, of_member: usize) -> &'static str {
    match (of_node, of_member) {
        (0, 4) => "a node is killed",
        (1, 4) => "a node's connections to etcd are cut",
        (2, 4) => "a node's connections to etcd carry nothing",
        (3, 4) => "a node is suspended",
        (4, 0) => "a member of etcd is killed",
        (4, 1) => "a member of etcd is cut off from the others",
        (4, 2) => "etcd has no majority",
        (4, 3) => "etcd forgets its history",
        (4, 4) => NOTHING,
        _ => "one of a node and one of etcd at the same time",
    }
}
