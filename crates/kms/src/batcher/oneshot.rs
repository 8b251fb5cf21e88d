//! Where the answer to a call is put, for a future or for a thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::thread::Thread;

use crate::error::{Code, KmsError, Result};

/// Filled once, emptied once.
#[derive(Debug)]
pub(super) struct Oneshot<T>(Mutex<Inner<T>>);

#[derive(Debug)]
enum Inner<T> {
    Pending(Option<Waker>),
    Ready(Result<T>, Option<Arc<Wakers>>),
    Taken,
}

impl<T> Oneshot<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner::Pending(None))))
    }

    /// Stores the answer, if the cell has none yet, and returns whom to wake. `others` goes to the
    /// caller who takes the answer.
    #[must_use = "somebody waits"]
    pub(super) fn fill(&self, answer: Result<T>, others: Option<Arc<Wakers>>) -> Option<Waker> {
        match &mut *self.inner() {
            inner @ Inner::Pending(_) => match std::mem::replace(inner, Inner::Ready(answer, others)) {
                Inner::Pending(waker) => waker,
                Inner::Ready(..) | Inner::Taken => unreachable!("it was pending"),
            },
            Inner::Ready(..) | Inner::Taken => None,
        }
    }

    /// Takes the answer, with those who wait for other answers of the batch. If there is no answer
    /// yet, the cell remembers whom to wake.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<(Result<T>, Option<Arc<Wakers>>)> {
        let mut inner = self.inner();
        match &mut *inner {
            Inner::Pending(waiting) => {
                match waiting {
                    Some(known) => known.clone_from(waker),
                    None => *waiting = Some(waker.clone()),
                }
                Poll::Pending
            }
            Inner::Ready(..) => match std::mem::replace(&mut *inner, Inner::Taken) {
                Inner::Ready(answer, others) => Poll::Ready((answer, others)),
                Inner::Pending(_) | Inner::Taken => unreachable!("it was ready"),
            },
            Inner::Taken => panic!("the future is polled after it was ready"),
        }
    }

    /// Whether there is no answer yet.
    pub(super) fn is_pending(&self) -> bool {
        matches!(*self.inner(), Inner::Pending(_))
    }

    /// Cancels the wait. Returns whether the answer was still missing; if so, it is dropped
    /// when it comes, and nobody is woken.
    pub(super) fn abandon(&self) -> bool {
        matches!(std::mem::replace(&mut *self.inner(), Inner::Taken), Inner::Pending(_))
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a cell through which the answer comes. If it is dropped without an answer, the caller
/// gets an error and does not wait for ever.
#[derive(Debug)]
pub(super) struct Reply<T>(Option<Arc<Oneshot<T>>>);

impl<T> Reply<T> {
    pub(super) fn to(cell: &Arc<Oneshot<T>>) -> Self {
        Self(Some(Arc::clone(cell)))
    }

    /// Stores the answer, and returns whom to wake. `others` wait for answers of the same batch.
    #[must_use = "somebody waits"]
    pub(super) fn send(mut self, answer: Result<T>, others: &Arc<Wakers>) -> Option<Waker> {
        self.0.take()?.fill(answer, Some(Arc::clone(others)))
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(waker) = self.0.take().and_then(|cell| cell.fill(Err(internal()), None)) {
            waker.wake();
        }
    }
}

/// The callers of a batch that are still asleep. All of their answers are in place.
///
/// The first caller that is woken may get the processor before the others are woken. A caller with
/// many calls would then find one answer and sleep again, once for each call. So it can wake the
/// rest itself.
#[derive(Debug, Default)]
pub(super) struct Wakers(Mutex<std::vec::IntoIter<Waker>>);

impl Wakers {
    pub(super) fn set(&self, wakers: Vec<Waker>) {
        *self.rest() = wakers.into_iter();
    }

    /// Wakes whoever was not woken yet.
    pub(super) fn wake(&self) {
        while let Some(waker) = self.next() {
            // The caller wrote the waker. If it panics, the others must still be woken.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    /// A function of its own, so that no waker runs under the lock.
    fn next(&self) -> Option<Waker> {
        self.rest().next()
    }

    fn rest(&self) -> std::sync::MutexGuard<'_, std::vec::IntoIter<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to a call whose computation panicked.
pub(super) fn internal() -> KmsError {
    KmsError::new(
        Code::Internal,
        "the backend failed in a way that it should not have; whether it did anything is not known",
    )
}

/// Wakes a thread that is parked.
pub(super) struct Unpark(pub(super) Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
