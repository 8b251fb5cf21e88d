//! Two tracks. Suites that need the programs of the workspace run one after another and print as
//! they go. The other suites run in the background, and their output is shown when they have ended,
//! between two suites of the main track.
//!
//! In most suites, one processor idles at times: during a link, an interpreter, one long test. More
//! than two tracks would only compete.

use std::{
    any::Any,
    collections::VecDeque,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

use super::suite::{Suite, Track};
use crate::summary::SuiteResult;

/// The suites that have not begun.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    main: VecDeque<Suite>,
    background: VecDeque<Suite>,
}

impl Plan {
    /// If all suites are of one track, they run one after another, in the order given.
    fn of(suites: &[Suite]) -> Self {
        let on =
            |track| suites.iter().copied().filter(|suite| suite.track() == track).collect::<VecDeque<_>>();
        let (main, background) = (on(Track::Main), on(Track::Background));
        if main.is_empty() { Self { main: background, background: main } } else { Self { main, background } }
    }

    fn next(&mut self) -> Option<Suite> {
        self.main.pop_front()
    }

    /// When the other track is done, it takes the last suite of the main track. Its programs are
    /// built by then.
    fn next_background(&mut self) -> Option<Suite> {
        self.background.pop_front().or_else(|| self.main.pop_back())
    }
}

/// A suite that ran in the background.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) result: SuiteResult,
    /// What it printed.
    pub(super) output: Vec<u8>,
}

/// Runs the suites, each with `here` or `background`, and returns their results in the order of
/// `suites`. The output of those in the background goes to `out`. A suite that panics has failed.
pub(super) fn run(
    suites: &[Suite],
    mut here: impl FnMut(Suite) -> SuiteResult,
    background: impl Fn(Suite) -> Ended + Send,
    out: &mut impl Write,
) -> Vec<SuiteResult> {
    let plan = Plan::of(suites);
    let has_two_tracks = !plan.background.is_empty();
    let plan = Mutex::new(plan);
    let take =
        |next: fn(&mut Plan) -> Option<Suite>| next(&mut plan.lock().unwrap_or_else(PoisonError::into_inner));
    let mut results = Vec::new();
    thread::scope(|scope| {
        let (sender, ended) = mpsc::channel();
        if has_two_tracks {
            scope.spawn(move || {
                while let Some(suite) = take(Plan::next_background) {
                    let lost = |reason| Ended {
                        result: SuiteResult::lost(suite.name(), reason),
                        output: Vec::new(),
                    };
                    // Nobody receives it only if the main track has panicked outside of a suite.
                    let _ = sender.send(caught(|| background(suite)).unwrap_or_else(lost));
                }
            });
        } else {
            drop(sender);
        }
        while let Some(suite) = take(Plan::next) {
            results.push(
                caught(|| here(suite)).unwrap_or_else(|reason| SuiteResult::lost(suite.name(), reason)),
            );
            results.extend(ended.try_iter().map(|ended| shown(ended, out)));
        }
        results.extend(ended.iter().map(|ended| shown(ended, out)));
    });
    results.sort_by_key(|result| suites.iter().position(|suite| suite.name() == result.name));
    results
}

/// Prints the whole output of a suite at once.
fn shown(ended: Ended, out: &mut impl Write) -> SuiteResult {
    // An error means that nobody reads our output any more.
    let _ = out.write_all(&ended.output).and_then(|()| out.flush());
    ended.result
}

/// The result of `suite`, or why it panicked.
fn caught<T>(suite: impl FnOnce() -> T) -> Result<T, String> {
    let why = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        format!("it panicked: {}", text.unwrap_or_default())
    };
    catch_unwind(AssertUnwindSafe(suite)).map_err(why)
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, sync::mpsc::sync_channel, time::Duration};

    use clap::ValueEnum as _;

    use super::*;
    use crate::{count::Tally, summary::Slowest};

    fn passed(suite: Suite) -> SuiteResult {
        let (build, run, slow) = (Duration::ZERO, Duration::ZERO, Slowest::default());
        SuiteResult {
            name: suite.name().to_owned(),
            tally: Tally::PASS,
            build,
            run,
            slow,
            failures: Vec::new(),
            untested: Default::default(),
            missing: Default::default(),
        }
    }

    fn printed(suite: Suite) -> Ended {
        Ended { result: passed(suite), output: format!("{0} one\n{0} two\n", suite.name()).into_bytes() }
    }

    fn names(results: &[SuiteResult]) -> Vec<&str> {
        results.iter().map(|result| result.name.as_str()).collect()
    }

    fn failed(results: &[SuiteResult]) -> Vec<(&str, &str)> {
        let failed = results.iter().filter(|result| result.tally == Tally::FAIL);
        failed.map(|result| (result.name.as_str(), result.failures[0].as_str())).collect()
    }

    #[test]
    fn every_suite_is_on_one_track() {
        let plan = Plan::of(Suite::value_variants());
        assert_eq!(plan.main.len() + plan.background.len(), Suite::value_variants().len());
        assert_eq!((plan.main[0], plan.main[1]), (Suite::Tidy, Suite::Rust));
        assert!(plan.background.contains(&Suite::Go) && plan.background.contains(&Suite::Miri));
    }

    #[test]
    fn suites_of_one_track_run_one_after_another_in_the_order_given() {
        for suites in [&[Suite::Js, Suite::Go][..], &[Suite::Kms, Suite::Tidy], &[Suite::Page]] {
            let plan = Plan::of(suites);
            assert!(plan.background.is_empty());
            assert_eq!(plan.main, suites);
            let (ran, mut out) = (RefCell::new(Vec::new()), Vec::new());
            let here = |suite| {
                ran.borrow_mut().push(suite);
                passed(suite)
            };
            run(suites, here, |suite| panic!("{suite:?} ran in the background"), &mut out);
            assert_eq!((ran.into_inner().as_slice(), out.as_slice()), (suites, &b""[..]));
        }
    }

    #[test]
    fn the_second_track_takes_the_last_suites_of_the_first_when_its_own_are_done() {
        let mut plan = Plan::of(&[Suite::Tidy, Suite::Cli, Suite::Lab, Suite::Go]);
        assert_eq!((plan.next_background(), plan.next_background()), (Some(Suite::Go), Some(Suite::Lab)));
        assert_eq!((plan.next(), plan.next(), plan.next()), (Some(Suite::Tidy), Some(Suite::Cli), None));
        assert_eq!(plan.next_background(), None);
    }

    #[test]
    fn results_are_in_the_order_of_the_suites() {
        let all = Suite::value_variants();
        let results = run(all, passed, printed, &mut Vec::new());
        assert_eq!(names(&results), all.iter().map(|suite| suite.name()).collect::<Vec<_>>());
    }

    #[test]
    fn what_a_suite_in_the_background_prints_is_shown_whole_and_never_within_another() {
        let (ended, wait) = sync_channel(0);
        let out = RefCell::new(Vec::new());
        struct Shared<'a>(&'a RefCell<Vec<u8>>);
        impl Write for Shared<'_> {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.borrow_mut().write(bytes)
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let here = |suite: Suite| {
            out.borrow_mut().extend(b"tidy begins\n");
            // The suite in the background has printed everything by now.
            wait.recv().unwrap();
            out.borrow_mut().extend(b"tidy ends\n");
            passed(suite)
        };
        let background = |suite| {
            let result = printed(suite);
            ended.send(()).unwrap();
            result
        };
        run(&[Suite::Tidy, Suite::Go], here, background, &mut Shared(&out));
        assert_eq!(out.into_inner(), b"tidy begins\ntidy ends\ngo one\ngo two\n");
    }

    #[test]
    fn a_suite_that_panics_has_failed_and_the_others_run() {
        let suites = [Suite::Tidy, Suite::Rust, Suite::Go, Suite::Js];
        let ((begun, wait_for_tidy), (done, wait)) = (sync_channel(1), sync_channel(1));
        let here = |suite| match suite {
            Suite::Tidy => {
                begun.send(()).unwrap();
                // Otherwise the other track could take the last suite before this one ends.
                wait.recv().unwrap();
                panic!("no {}", "style")
            }
            suite => passed(suite),
        };
        let background = move |suite| match suite {
            Suite::Go => {
                wait_for_tidy.recv().unwrap();
                panic!("no gopher")
            }
            suite => {
                let _ = done.try_send(());
                printed(suite)
            }
        };
        let mut out = Vec::new();
        let results = run(&suites, here, background, &mut out);
        assert_eq!(names(&results), ["tidy", "rust", "go", "js"]);
        assert_eq!(failed(&results), [("tidy", "it panicked: no style"), ("go", "it panicked: no gopher")]);
        assert!(out.starts_with(b"js one\njs two\n"));
    }
}
