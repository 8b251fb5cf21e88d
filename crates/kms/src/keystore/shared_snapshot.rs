//! Keeps readers and the store consistent. Readers take the one snapshot without waiting. Writers
//! replace it one after another, first in the store and then for readers.
//!
//! The locks are traits, so that a model checker can run exactly this code: see the tests.

use std::ops::DerefMut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

/// The place where readers find the newest snapshot.
pub(super) trait Snapshot {
    type Value;

    fn newest(&self) -> Arc<Self::Value>;

    fn publish(&self, next: Self::Value);
}

/// A value that one writer at a time may use.
pub(super) trait Exclusive {
    type Value;

    fn exclusively(&self) -> impl DerefMut<Target = Self::Value>;
}

/// The result of one attempt to change the store.
pub(super) enum Attempt<S, T> {
    /// There was nothing to change.
    Unneeded,
    /// The store has the change. From now on, readers see `next`.
    Made { next: S, result: T },
    /// Another process changed the store first; the attempt changed nothing.
    Outrun,
}

/// How an edit ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edited<T> {
    Unneeded,
    Made(T),
    /// Other processes were quicker each time.
    GaveUp,
}

/// Makes a change. `attempt` derives it from the newest snapshot and writes it to the store,
/// provided that the store is still as the snapshot shows it. If another process was quicker and
/// `again` allows it, `catch_up` reads the newer state, readers get to see it, and `attempt` is
/// called again.
///
/// That there is nothing to change is said of the newest state, too: the snapshot may be older than
/// a change that was acknowledged elsewhere.
///
/// # Errors
/// The errors of `attempt` and `catch_up`. Readers then see what they saw before.
pub(super) fn edit<S: Snapshot, W: Exclusive, T, E>(
    snapshot: &S,
    writer: &W,
    mut attempt: impl FnMut(&mut W::Value, &S::Value) -> Result<Attempt<S::Value, T>, E>,
    mut catch_up: impl FnMut(&mut W::Value, &S::Value) -> Result<Option<S::Value>, E>,
    mut again: impl FnMut() -> bool,
) -> Result<Edited<T>, E> {
    let mut writer = writer.exclusively();
    loop {
        let newest = snapshot.newest();
        match attempt(&mut writer, &newest)? {
            Attempt::Unneeded => match catch_up(&mut writer, &newest)? {
                None => return Ok(Edited::Unneeded),
                Some(next) => {
                    snapshot.publish(next);
                    if !again() {
                        return Ok(Edited::GaveUp);
                    }
                }
            },
            Attempt::Made { next, result } => {
                snapshot.publish(next);
                return Ok(Edited::Made(result));
            }
            Attempt::Outrun if again() => {
                if let Some(next) = catch_up(&mut writer, &newest)? {
                    snapshot.publish(next);
                }
            }
            Attempt::Outrun => return Ok(Edited::GaveUp),
        }
    }
}

/// Shows readers the changes that other processes made to the store; `catch_up` returns `None` if
/// there are none.
///
/// # Errors
/// The errors of `catch_up`. Readers then see what they saw before.
pub(super) fn refresh<S: Snapshot, W: Exclusive, E>(
    snapshot: &S,
    writer: &W,
    catch_up: impl FnOnce(&mut W::Value, &S::Value) -> Result<Option<S::Value>, E>,
) -> Result<(), E> {
    let mut writer = writer.exclusively();
    // Read under the lock, so that the snapshot of a writer that published meanwhile is not
    // overwritten.
    let newest = snapshot.newest();
    if let Some(next) = catch_up(&mut writer, &newest)? {
        snapshot.publish(next);
    }
    Ok(())
}

impl<T> Snapshot for ArcSwap<T> {
    type Value = T;

    fn newest(&self) -> Arc<T> {
        self.load_full()
    }

    fn publish(&self, next: T) {
        self.store(Arc::new(next));
    }
}

/// A panic while the lock is held leaves nothing half-changed: snapshots are replaced as a whole,
/// and the store compares its state before each change.
impl<T> Exclusive for Mutex<T> {
    type Value = T;

    fn exclusively(&self) -> impl DerefMut<Target = T> {
        let guard: MutexGuard<'_, T> = self.lock().unwrap_or_else(PoisonError::into_inner);
        guard
    }
}

#[cfg(test)]
mod tests {
    use loom::sync::{Arc as LoomArc, Mutex as LoomMutex, RwLock as LoomRwLock};

    use super::*;

    /// A key, as the list of the processes that made its versions.
    type Versions = Vec<&'static str>;

    /// The pointer of `arc-swap`, as the checker can see it.
    struct Pointer(LoomRwLock<Arc<Versions>>);

    impl Snapshot for Pointer {
        type Value = Versions;

        fn newest(&self) -> Arc<Versions> {
            Arc::clone(&self.0.read().unwrap())
        }

        fn publish(&self, next: Versions) {
            *self.0.write().unwrap() = Arc::new(next);
        }
    }

    impl<T> Exclusive for LoomMutex<T> {
        type Value = T;

        fn exclusively(&self) -> impl DerefMut<Target = T> {
            self.lock().unwrap()
        }
    }

    /// The store that the nodes share. It accepts a change only from a node that saw all earlier
    /// changes.
    type Store = LoomArc<LoomMutex<Versions>>;

    /// A writer, with its belief about the store's content.
    struct Writer {
        store: Store,
        seen: usize,
    }

    impl Writer {
        fn commit(&mut self, versions: &Versions) -> bool {
            let mut stored = self.store.lock().unwrap();
            let unchanged = stored.len() == self.seen;
            if unchanged {
                stored.clone_from(versions);
                self.seen = versions.len();
            }
            unchanged
        }

        fn catch_up(&mut self, known: &Versions) -> Option<Versions> {
            let stored = self.store.lock().unwrap().clone();
            self.seen = stored.len();
            (stored != *known).then_some(stored)
        }
    }

    /// One process: the snapshot of its readers, and the state of its writers.
    struct Node {
        snapshot: Pointer,
        writer: LoomMutex<Writer>,
    }

    impl Node {
        fn new(store: &Store) -> LoomArc<Self> {
            let writer = Writer { store: LoomArc::clone(store), seen: 0 };
            let snapshot = Pointer(LoomRwLock::new(Arc::default()));
            LoomArc::new(Self { snapshot, writer: LoomMutex::new(writer) })
        }

        /// Adds a version and returns its number.
        fn rotate(&self, who: &'static str) -> usize {
            let attempt = |writer: &mut Writer, newest: &Versions| {
                let mut next = newest.clone();
                next.push(who);
                let result = next.len();
                let committed = writer.commit(&next);
                Ok::<_, ()>(if committed { Attempt::Made { next, result } } else { Attempt::Outrun })
            };
            let catch_up = |writer: &mut Writer, newest: &Versions| Ok(writer.catch_up(newest));
            match edit(&self.snapshot, &self.writer, attempt, catch_up, || true).unwrap() {
                Edited::Made(version) => version,
                other => panic!("a rotation is made: {other:?}"),
            }
        }

        /// Adds a version, unless this process made the newest one. Returns whether it did.
        fn lead(&self, who: &'static str) -> bool {
            let attempt = |writer: &mut Writer, newest: &Versions| {
                if newest.last() == Some(&who) {
                    return Ok::<_, ()>(Attempt::Unneeded);
                }
                let mut next = newest.clone();
                next.push(who);
                let committed = writer.commit(&next);
                Ok(if committed { Attempt::Made { next, result: () } } else { Attempt::Outrun })
            };
            let catch_up = |writer: &mut Writer, newest: &Versions| Ok(writer.catch_up(newest));
            edit(&self.snapshot, &self.writer, attempt, catch_up, || true) == Ok(Edited::Made(()))
        }

        fn refresh(&self) {
            refresh(&self.snapshot, &self.writer, |writer, newest| Ok::<_, ()>(writer.catch_up(newest)))
                .unwrap();
        }

        fn seen(&self) -> Versions {
            Versions::clone(&self.snapshot.newest())
        }
    }

    fn model(threads: impl Fn() + Sync + Send + 'static) {
        let mut checker = loom::model::Builder::new();
        checker.preemption_bound = Some(3);
        checker.check(threads);
    }

    #[test]
    fn two_nodes_lose_none_of_each_others_rotations_in_any_order_of_their_steps() {
        model(|| {
            let store = Store::default();
            let nodes = [Node::new(&store), Node::new(&store)];
            let other = LoomArc::clone(&nodes[1]);
            let thread = loom::thread::spawn(move || other.rotate("b"));
            let mut versions = [nodes[0].rotate("a"), thread.join().unwrap()];
            versions.sort_unstable();
            assert_eq!(versions, [1, 2]);
            nodes.iter().for_each(|node| node.refresh());
            let stored = store.lock().unwrap().clone();
            assert!(stored == ["a", "b"] || stored == ["b", "a"], "{stored:?}");
            assert_eq!([nodes[0].seen(), nodes[1].seen()], [stored.clone(), stored]);
        });
    }

    #[test]
    fn a_node_that_missed_a_change_does_not_say_that_there_is_nothing_to_change() {
        model(|| {
            let store = Store::default();
            let nodes = [Node::new(&store), Node::new(&store)];
            assert!(nodes[0].lead("a") && nodes[1].lead("b"));
            assert_eq!(nodes[0].seen(), ["a"], "it does not know of the other change yet");
            assert!(nodes[0].lead("a"));
            assert_eq!(*store.lock().unwrap(), ["a", "b", "a"]);
            assert!(!nodes[0].lead("a"), "now there is nothing to change");
        });
    }

    #[test]
    fn readers_never_see_what_the_store_has_not_and_never_go_back() {
        model(|| {
            let store = Store::default();
            let node = Node::new(&store);
            let threads = {
                let (first, second) = (LoomArc::clone(&node), LoomArc::clone(&node));
                [
                    loom::thread::spawn(move || first.rotate("a")),
                    loom::thread::spawn(move || second.rotate("b")),
                ]
            };
            let before = node.seen();
            let after = node.seen();
            let stored = store.lock().unwrap().clone();
            assert!(after.starts_with(&before), "{before:?} and then {after:?}");
            assert!(stored.starts_with(&after), "{after:?} was read, {stored:?} is stored");
            let mut versions = threads.map(|thread| thread.join().unwrap());
            versions.sort_unstable();
            assert_eq!(versions, [1, 2], "each rotation has a number of its own");
            assert_eq!(node.seen().len(), 2);
        });
    }

    #[test]
    fn a_refresh_beside_a_rotation_undoes_nothing() {
        model(|| {
            let store = Store::default();
            let nodes = [Node::new(&store), Node::new(&store)];
            nodes[1].rotate("b");
            let refreshed = LoomArc::clone(&nodes[0]);
            let thread = loom::thread::spawn(move || refreshed.refresh());
            assert_eq!(nodes[0].rotate("a"), 2);
            assert_eq!(nodes[0].seen(), ["b", "a"], "who rotated sees it at once");
            thread.join().unwrap();
            assert_eq!(nodes[0].seen(), ["b", "a"]);
        });
    }

    /// Tests the checker itself: a store that does not compare loses rotations, and the checker
    /// finds that.
    #[test]
    #[should_panic(expected = "a rotation was lost")]
    fn a_store_that_does_not_compare_is_found_out() {
        model(|| {
            let store = Store::default();
            let nodes = [Node::new(&store), Node::new(&store)];
            let careless = |node: &Node, who: &'static str| {
                let mut versions = node.writer.lock().unwrap().store.lock().unwrap().clone();
                versions.push(who);
                *node.writer.lock().unwrap().store.lock().unwrap() = versions;
            };
            let other = LoomArc::clone(&nodes[1]);
            let thread = loom::thread::spawn(move || careless(&other, "b"));
            careless(&nodes[0], "a");
            thread.join().unwrap();
            assert_eq!(store.lock().unwrap().len(), 2, "a rotation was lost");
        });
    }
}
