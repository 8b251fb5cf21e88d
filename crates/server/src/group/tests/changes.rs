//! Changes of shares: a refresh, other nodes, another threshold, a repair; and nodes that are
//! killed in between.

use bulla_threshold::{
    Card, Group, Handover, KeyGeneration, KeyShare, Message, ParticipantKeys, Resharing, SessionId, confirm,
    withdraw,
};

use super::super::fail_points::FailPoints;
use super::super::shares::ShareFolder;

use super::*;

impl Three {
    fn material(&self) -> KeyMaterial {
        self.made.lock().unwrap()[0].clone()
    }

    pub(super) fn group(&self) -> SessionId {
        let material = self.material();
        std::str::from_utf8(&material).unwrap().split(' ').next().unwrap().parse().unwrap()
    }

    fn refresh(&self, number: usize) -> Result<()> {
        self.node(number).backend().refresh_shares(Algorithm::Ed25519, &self.material())
    }

    fn repair(&self, number: usize) -> Result<()> {
        self.node(number).backend().repair_share(Algorithm::Ed25519, &self.material())
    }

    fn share(&self, number: usize) -> Option<Arc<KeyShare>> {
        self.node(number).0.shares.find(self.group()).unwrap()
    }

    fn epoch(&self, number: usize) -> u32 {
        self.share(number).unwrap().epoch()
    }

    fn path(&self, number: usize, kind: &str) -> std::path::PathBuf {
        self.configs[number].folder.join(format!("{}.{kind}", self.group()))
    }

    /// Nodes with the settings of some of all nodes, and this threshold.
    fn set_nodes(&mut self, all: &[GroupConfig], numbers: &[usize], threshold: u16) {
        for number in 1..self.nodes.len() {
            self.end(number);
        }
        for (&number, config) in numbers.iter().zip(configs_of(all, numbers, threshold)) {
            self.configs[number] = config;
            if number != 0 {
                self.start_again(number);
            }
        }
    }

    /// Lets each node find out what became of a change. The threads of the nodes do it, too.
    fn ask_for_ends(&self) {
        for _ in 0..2 {
            self.nodes.iter().flatten().for_each(|node| node.0.ask_for_ends());
        }
    }

    /// All nodes have shares of one epoch, which sign, and nothing else.
    #[track_caller]
    fn is_settled(&self, numbers: &[usize]) -> u32 {
        let shares: Vec<_> = numbers.iter().map(|number| self.share(*number).unwrap()).collect();
        assert!(shares.iter().all(|share| share.shares_id() == shares[0].shares_id()), "{shares:?}");
        assert!(shares.iter().all(|share| share.public_key() == self.public_key));
        numbers.iter().for_each(|number| self.signs(*number));
        shares[0].epoch()
    }
}

#[test]
fn refreshed_shares_sign_and_an_old_one_that_was_kept_does_not() {
    let mut three = Three::start();
    let old = fs::read(three.path(2, "share")).unwrap();
    (0..3).for_each(|number| three.signs(number));
    three.keystore.refresh_shares(three.version.key_id()).unwrap();
    assert_eq!(three.is_settled(&[0, 1, 2]), 1);
    assert!((0..3).all(|number| three.node(number).0.shares.unsettled().is_empty()));
    let shares = three.keystore.attest(three.version.key_id()).unwrap().versions[0].shares.clone().unwrap();
    assert_eq!((shares.threshold, shares.holders.len(), shares.epoch), (2, 3, 1));
    let signed = three.keystore.attest_signed(three.version.key_id()).unwrap();
    assert!(signed.verify().is_valid());
    assert_eq!(signed.attestation.versions[0].shares.as_ref(), Some(&shares));
    three.refresh(2).unwrap();
    assert_eq!(three.is_settled(&[0, 1, 2]), 2);

    // A folder from before: the node does not sign, the others pass it over, and repair its share.
    three.end(2);
    fs::write(three.path(2, "share"), old).unwrap();
    three.start_again(2);
    assert_eq!(three.epoch(2), 0);
    (0..4).for_each(|_| three.signs(0));
    let error = three.key(2).sign(MESSAGE).unwrap_err();
    assert!(error.message.contains("older or newer shares"), "{error}");
    let error = three.refresh(2).unwrap_err();
    assert!(error.message.contains("repair it"), "{error}");
    // A refresh by another node heals it as well, and so does a repair.
    three.refresh(1).unwrap();
    assert_eq!(three.is_settled(&[0, 1, 2]), 3);
}

#[test]
fn a_lost_share_is_repaired_by_the_others_and_is_the_same() {
    let mut three = Three::start();
    three.refresh(0).unwrap();
    let share = three.share(2).unwrap().to_secret_bytes();
    let error = three.repair(2).unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error}");
    for lost in ["share", "everything"] {
        three.end(2);
        match lost {
            "share" => fs::remove_file(three.path(2, "share")).unwrap(),
            _ => fs::remove_dir_all(&three.configs[2].folder).unwrap(),
        }
        three.start_again(2);
        let error = three.key(2).sign(MESSAGE).unwrap_err();
        assert!(error.message.contains("has no share of the key"), "{error}");
        three.repair(2).unwrap();
        assert_eq!(three.share(2).unwrap().to_secret_bytes(), share, "{lost}");
        assert_eq!(three.is_settled(&[0, 1, 2]), 1);
    }
    // Too few others.
    three.end(1);
    three.end(2);
    fs::remove_file(three.path(2, "share")).unwrap();
    three.start_again(2);
    let error = three.repair(2).unwrap_err();
    assert!(error.message.contains("too few with shares answer"), "{error}");
    three.start_again(1);
    // With the new keys of the node, shares are changed as before.
    three.refresh(1).unwrap();
    assert_eq!(three.is_settled(&[0, 1, 2]), 2);
}

#[test]
fn nodes_join_and_leave_and_the_threshold_changes() {
    let folder = tempfile::tempdir().unwrap();
    let all = configs(&folder, 5);
    let first = configs_of(&all, &[0, 1, 2], 2);
    let mut three = Three::start_with(folder, first);
    three.configs.extend(all[3..].iter().cloned());
    three.nodes.resize(5, None);
    let stays = three.share(1).unwrap();
    // The first node leaves, two others join, and three of four sign.
    three.set_nodes(&all, &[1, 2, 3, 4], 3);
    let error = three.refresh(3).unwrap_err();
    assert!(error.message.contains("has no share of the key"), "{error}");
    three.refresh(1).unwrap();
    assert_eq!(three.is_settled(&[1, 2, 3, 4]), 1);
    let shares = three.key(3).shares().unwrap();
    assert_eq!((shares.threshold, shares.holders.len(), shares.epoch), (3, 4, 1));
    assert_eq!(stays.epoch(), 0);
    three.end(2);
    (0..3).for_each(|_| three.signs(4));
    three.end(3);
    let error = three.key(4).sign(MESSAGE).map(drop).unwrap_err();
    assert_eq!(error.code, Code::DeviceUnavailable, "{error}");
    three.start_again(2);
    three.start_again(3);
    // Those who joined go on without those who were there first.
    three.set_nodes(&all, &[2, 3, 4], 2);
    three.refresh(4).unwrap();
    assert_eq!(three.is_settled(&[2, 3, 4]), 2);
    // Nodes with other settings refuse, and nothing has changed.
    three.end(4);
    three.configs[4].threshold = 3;
    three.start_again(4);
    let error = three.refresh(2).unwrap_err();
    assert!(error.message.contains("that 2 nodes sign"), "{error}");
    three.end(4);
    three.configs[4].threshold = 2;
    three.start_again(4);
    assert_eq!(three.is_settled(&[2, 3, 4]), 2);
    three.refresh(2).unwrap();
    assert_eq!(three.is_settled(&[2, 3, 4]), 3);
}

fn configs_of(all: &[GroupConfig], numbers: &[usize], threshold: u16) -> Vec<GroupConfig> {
    let named = |peer: &&GroupPeerConfig| numbers.iter().any(|one| all[*one].name == peer.name);
    let one = |number: &usize| GroupConfig {
        peer: all[*number].peer.iter().filter(named).cloned().collect(),
        threshold,
        ..all[*number].clone()
    };
    numbers.iter().map(one).collect()
}

/// The keys and shares of two participants.
fn two_with_shares() -> ([ParticipantKeys; 2], [Arc<KeyShare>; 2]) {
    let keys = ["a", "b"].map(|name| ParticipantKeys::generate(name.parse().unwrap()).unwrap());
    let group = Group::new("key".parse().unwrap(), 2, cards(&keys)).unwrap();
    let proposal = group.propose(&keys[0]).unwrap();
    let mut sides = keys.each_ref().map(|keys| KeyGeneration::join(keys, &proposal).unwrap());
    while !sides.iter().all(KeyGeneration::is_complete) {
        let sent: Vec<_> = sides.iter().flat_map(KeyGeneration::messages).cloned().collect();
        for (side, keys) in sides.iter_mut().zip(&keys) {
            sent.iter().for_each(|message| assert!(side.receive(message).is_ok()));
            side.advance(keys).unwrap();
        }
    }
    (keys, sides.map(|side| Arc::new(side.into_share().unwrap())))
}

fn cards(keys: &[ParticipantKeys]) -> Vec<Card> {
    keys.iter().map(ParticipantKeys::card).collect()
}

/// A change of their shares: its opening, with nothing said yet, and the new shares.
fn change_of(keys: &[ParticipantKeys; 2], shares: &[Arc<KeyShare>; 2]) -> (Message, [KeyShare; 2]) {
    let to = Group::new("key".parse().unwrap(), 2, cards(keys)).unwrap();
    let opening = Resharing::propose(&keys[0], &shares[0], &cards(keys), to).unwrap();
    let mut sides = [0, 1].map(|one| Resharing::join(&keys[one], Some(&shares[one]), &opening).unwrap());
    let sent: Vec<_> = sides.iter().flat_map(Resharing::messages).cloned().collect();
    sides.iter_mut().for_each(|side| sent.iter().for_each(|message| assert!(side.receive(message).is_ok())));
    let new = [0, 1].map(|one| sides[one].new_share(&keys[one]).unwrap().unwrap());
    (opening, new)
}

#[test]
fn a_confirmed_share_is_a_promise_and_follows_the_proof_whatever_somebody_else_said() {
    let folder = tempfile::tempdir().unwrap();
    let open = || ShareFolder::open(folder.path(), Arc::new(FailPoints::default())).unwrap();
    let (keys, old) = two_with_shares();
    let group = old[0].group_id();
    open().keep(&old[0]).unwrap();
    let (first, new) = change_of(&keys, &old);
    let (second, other) = change_of(&keys, &old);
    let [mut first, mut second] = [first, second].map(|opening| Handover::of(&opening).unwrap());

    // Whoever has withdrawn never confirms, and whoever has confirmed never withdraws.
    let shares = open();
    shares.withdraw(&second).unwrap();
    assert_eq!(open().prepare(&second, &other[0]).unwrap_err().code, Code::Conflict);
    shares.prepare(&first, &new[0]).unwrap();
    assert_eq!(open().withdraw(&first).unwrap_err().code, Code::Conflict);
    let (third, another) = change_of(&keys, &old);
    let third = Handover::of(&third).unwrap();
    assert_eq!(open().prepare(&third, &another[0]).unwrap_err().code, Code::Conflict, "one is open");
    assert_eq!(open().commit(&second).unwrap_err().code, Code::Conflict);

    // The other one lies: it withdraws here, and confirms elsewhere.
    let opening = second.messages().next().unwrap().clone();
    second.receive(&withdraw(&keys[1], &opening).unwrap()).unwrap();
    assert!(second.failure().is_some());
    open().note_withdrawn(&first).unwrap();
    open().prepare(&third, &another[0]).unwrap();
    for (keys, share) in keys.iter().zip(&new) {
        first.receive(&confirm(keys, share).unwrap()).unwrap();
    }
    let shares = open();
    shares.commit(&first).unwrap();
    assert_eq!(shares.find(group).unwrap().unwrap().shares_id(), new[0].shares_id());
    assert!(shares.unsettled().is_empty(), "no share of another change is left");
    shares.commit(&first).unwrap();
    let again = open().holding(group).unwrap();
    assert_eq!(again.share.unwrap().to_secret_bytes(), new[0].to_secret_bytes());
    assert_eq!(again.proof.len(), 3);
}

#[test]
fn an_old_share_is_wiped_and_no_file_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let shares = ShareFolder::open(folder.path(), Arc::new(FailPoints::default())).unwrap();
    let (keys, old) = two_with_shares();
    shares.keep(&old[0]).unwrap();
    let path = folder.path().join(format!("{}.share", old[0].group_id()));
    // An open file can still be read after its name is removed, as can its blocks on the disk.
    let mut opened = fs::File::open(&path).unwrap();
    let (opening, new) = change_of(&keys, &old);
    let mut change = Handover::of(&opening).unwrap();
    for (keys, share) in keys.iter().zip(&new) {
        change.receive(&confirm(keys, share).unwrap()).unwrap();
    }
    shares.prepare(&change, &new[0]).unwrap();
    shares.commit(&change).unwrap();
    let mut left = Vec::new();
    std::io::Read::read_to_end(&mut opened, &mut left).unwrap();
    assert!(!left.is_empty() && left.iter().all(|byte| *byte == 0));
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path().extension().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["key", "proof", "share"]);
}

/// Kills one node before each of its steps, one after the other: as the one that changes the
/// shares, or as another one.
fn kills_at_every_step(victim: usize) {
    let mut three = Three::start();
    for steps in 0.. {
        let before = three.epoch(0);
        let fail_points = Arc::clone(&three.node(victim).0.fail_points);
        fail_points.kill_after(Some(steps));
        let refreshed = three.refresh(1);
        let left = fail_points.kill_after(Some(0)).unwrap();
        // The others sign while it is dead, with old shares or with new ones.
        let other = 3 - victim;
        eventually(|| three.key(0).sign(MESSAGE).is_ok());
        eventually(|| three.key(other).sign(MESSAGE).is_ok());
        three.end(victim);
        three.start_again(victim);
        eventually(|| {
            three.ask_for_ends();
            let ids: Vec<_> = (0..3).map(|number| three.share(number).unwrap().shares_id()).collect();
            ids.iter().all(|id| *id == ids[0])
        });
        let after = three.epoch(0);
        three.signs(victim);
        // All or none, and what was reported as done is done.
        assert!(after == before + 1 || (after == before && refreshed.is_err()), "{steps}: {before} {after}");
        if left > 0 {
            assert!(steps > 10, "it was killed at {steps} steps");
            // Whatever was left open before, this change worked.
            refreshed.unwrap();
            three.is_settled(&[0, 1, 2]);
            return;
        }
    }
}

/// Leaves a change open: the first node has confirmed it, and the second one has not.
fn leave_a_change_open(three: &mut Three) {
    for steps in 0.. {
        three.node(1).0.fail_points.kill_after(Some(steps));
        let refreshed = three.refresh(1);
        three.end(1);
        three.start_again(1);
        let [first, second] = [0, 1].map(|number| three.node(number).0.shares.unsettled().len());
        if (first, second) == (1, 0) {
            return;
        }
        assert!(refreshed.is_err(), "no step is between the two confirmations");
        three.refresh(0).unwrap();
    }
}

#[test]
fn nodes_that_change_shares_at_the_same_time_are_told_to_try_again() {
    let three = Three::start();
    let state = &three.node(0).0;
    {
        let _changes = state.changing.lock().unwrap();
        let error = three.refresh(1).unwrap_err();
        assert!(error.code == Code::DeviceUnavailable && error.retryable, "{error}");
        assert!(error.message.contains("node0 is changing shares itself: try again"), "{error}");
    }
    // A node that only asks what became of an earlier change keeps nobody waiting.
    let _asks = state.settling.lock().unwrap();
    three.refresh(1).unwrap();
    three.is_settled(&[0, 1, 2]);
}

#[test]
fn a_change_ends_although_a_node_has_lost_the_keys_that_it_names() {
    let mut three = Three::start();
    leave_a_change_open(&mut three);
    let before = three.epoch(0);
    three.end(2);
    fs::remove_dir_all(&three.configs[2].folder).unwrap();
    three.start_again(2);
    three.repair(2).unwrap();
    three.refresh(0).unwrap();
    assert_eq!(three.is_settled(&[0, 1, 2]), before + 1);
}

/// The most rounds of `gone_at_every_step`. Nearly always, one is enough.
const MAX_ROUNDS: usize = 10;

/// Kills a node before each of its steps, one after the other, while the first of three nodes
/// changes the shares: that node, or the last one. The last one is gone for good then: the others
/// take it out of their settings, go on without it, and nothing that it does when it comes back
/// matters to them.
fn gone_at_every_step(killed: usize) {
    let folder = tempfile::tempdir().unwrap();
    let all = configs(&folder, 4);
    let mut three = Three::start_with(folder, configs_of(&all, &[0, 1, 2], 2));
    three.configs.push(all[3].clone());
    three.nodes.push(None);
    // The first node of all has the keystore, and cannot be started again.
    three.set_nodes(&all, &[1, 2, 3], 2);
    three.refresh(1).unwrap();
    let gone = 3;
    let (mut after_confirming, mut before_confirming) = (0, 0);
    // Where the others are at a step is not always the same, so it may take another round to meet
    // both cases.
    for _ in 0..MAX_ROUNDS {
        for steps in 0.. {
            let before = three.is_settled(&[1, 2, 3]);
            three.node(killed).0.fail_points.kill_after(Some(steps));
            let refreshed = three.refresh(1);
            let left = three.node(killed).0.fail_points.kill_after(Some(0)).unwrap();
            let is_open = |three: &Three, number: usize| !three.node(number).0.shares.unsettled().is_empty();
            if is_open(&three, 1) || is_open(&three, 2) {
                match is_open(&three, gone) {
                    true => after_confirming += 1,
                    false => before_confirming += 1,
                }
            }
            three.set_nodes(&all, &[1, 2], 2);
            eventually(|| three.key(1).sign(MESSAGE).is_ok() && three.key(2).sign(MESSAGE).is_ok());
            three.refresh(2).unwrap();
            let after = three.is_settled(&[1, 2]);
            assert!(after > before, "{steps}: {before} {after}");

            // It comes back with what it had: nobody answers it, and nobody asks it.
            three.configs[gone] = configs_of(&all, &[1, 2, 3], 2).pop().unwrap();
            three.start_again(gone);
            three.ask_for_ends();
            let error = three.key(gone).sign(MESSAGE).unwrap_err();
            assert_eq!(error.code, Code::DeviceUnavailable, "{error}");
            assert!(three.refresh(gone).is_err());
            assert!(three.epoch(gone) <= before + 1, "{steps}");
            assert_eq!(three.is_settled(&[1, 2]), after, "{steps}");
            // The others take it in again, and it gets a new share.
            three.set_nodes(&all, &[1, 2, 3], 2);
            three.refresh(1).unwrap();
            assert_eq!(three.is_settled(&[1, 2, 3]), after + 1, "{steps}");
            if left > 0 {
                refreshed.unwrap();
                assert!(steps > 8, "it was killed at {steps} steps");
                break;
            }
        }
        if after_confirming > 0 && before_confirming > 0 {
            break;
        }
    }
    println!("{after_confirming} times after it had confirmed, {before_confirming} times before");
    assert!(after_confirming > 0 && before_confirming > 0, "{after_confirming} {before_confirming}");
}

#[test]
fn a_node_may_be_gone_for_good_at_every_step_of_its_own() {
    gone_at_every_step(3);
}

#[test]
fn a_node_may_be_gone_for_good_at_every_step_of_the_one_that_changes_the_shares() {
    gone_at_every_step(1);
}

#[test]
fn a_node_that_changes_shares_may_be_killed_at_every_step() {
    kills_at_every_step(1);
}

#[test]
fn a_node_that_gets_a_share_may_be_killed_at_every_step() {
    kills_at_every_step(2);
}
