//! What clients asked and what they were answered, and the program that checks it against the
//! promises of `docs/cluster.md`.

use std::time::Duration;

/// A time since the beginning of the history, by one clock for all clients.
pub(crate) type Time = Duration;

/// When a request was sent, and when its answer had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) sent: Time,
    pub(crate) answered: Time,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<T> {
    /// It was made.
    Made(T),
    /// It was refused: nothing was changed.
    NotMade,
    /// The connection broke, or the node does not know.
    Unknown,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A rotation, and the version that it made.
    Rotate(Span, Outcome<u64>),
    /// A signature, and the version that made it.
    Sign(Span, u64),
    /// The second key is disabled (true), or enabled again.
    Disable(Span, Outcome<()>, bool),
    /// A signature by the second key.
    SignSecond(Span),
    /// A node was asked for the head with the revision of an acknowledged rotation.
    Read { least: u64, head: u64 },
}

/// Checks a history. `head` is the key's latest version when all is over, and `bound` the time
/// after which no node uses an old view.
///
/// # Errors
/// What was promised and not kept.
pub(crate) fn check(events: &[Event], head: u64, bound: Duration) -> Result<Summary, String> {
    let rotations: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Rotate(span, outcome) => Some((*span, *outcome)),
            _ => None,
        })
        .collect();
    let mut made: Vec<_> = rotations
        .iter()
        .filter_map(|(span, outcome)| match outcome {
            Outcome::Made(version) => Some((*span, *version)),
            _ => None,
        })
        .collect();
    made.sort_unstable_by_key(|(_, version)| *version);
    let unknown = rotations.iter().filter(|(_, outcome)| *outcome == Outcome::Unknown).count() as u64;
    for pair in made.windows(2) {
        let [(first, version), (second, next)] = pair else { continue };
        if version == next {
            return Err(format!("two rotations made version {version}: {first:?}, {second:?}"));
        }
        if second.answered < first.sent {
            return Err(format!("version {next} was there before version {version} was asked for"));
        }
    }
    if let Some((span, version)) = made.last().filter(|(_, version)| *version > head) {
        return Err(format!(
            "version {version} was acknowledged ({span:?}), and the newest is {head}: it is lost"
        ));
    }
    let versions = head - 1;
    if versions > made.len() as u64 + unknown {
        let made = made.len();
        return Err(format!("there are {versions} new versions, of {made} rotations and {unknown} in doubt"));
    }
    let signatures = check_signatures(events, (&made, &rotations), head, bound)?;
    check_second(events, bound)?;
    let mut reads = 0;
    for event in events {
        if let Event::Read { least, head } = event {
            reads += 1;
            if head < least {
                return Err(format!("a caller who made version {least} saw version {head} as the newest"));
            }
        }
    }
    Ok(Summary { rotations: made.len() as u64, unknown, signatures, reads })
}

/// What a history has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) rotations: u64,
    pub(crate) unknown: u64,
    pub(crate) signatures: u64,
    pub(crate) reads: u64,
}

/// Rotations, with when they were asked for.
type Rotations<T> = [(Span, T)];

/// No signature is by a version before it was asked for, or after a later one was acknowledged for
/// longer than the bound.
fn check_signatures(
    events: &[Event],
    (made, rotations): (&Rotations<u64>, &Rotations<Outcome<u64>>),
    head: u64,
    bound: Duration,
) -> Result<u64, String> {
    // At each version, the earliest moment from which signatures by older ones are late.
    let mut late: Vec<(u64, Time)> = made.iter().map(|(span, version)| (*version, span.answered)).collect();
    for place in (1..late.len()).rev() {
        late[place - 1].1 = late[place - 1].1.min(late[place].1);
    }
    let doubt =
        rotations.iter().filter(|(_, outcome)| *outcome == Outcome::Unknown).map(|(span, _)| span.sent).min();
    let mut signatures = 0;
    for event in events {
        let Event::Sign(span, version) = event else { continue };
        signatures += 1;
        if *version > head {
            return Err(format!("version {version} signed ({span:?}), and the newest is {head}: it is lost"));
        }
        let begun = match made.binary_search_by_key(version, |(_, version)| *version) {
            Ok(place) => Some(made[place].0.sent),
            Err(_) if *version == 1 => Some(Time::ZERO),
            // A rotation in doubt made it.
            Err(_) => doubt,
        };
        match begun {
            Some(begun) if begun <= span.answered => {}
            _ => return Err(format!("version {version} signed before it was asked for: {span:?}")),
        }
        let next = late.partition_point(|(made, _)| made <= version);
        if let Some((newer, since)) = late.get(next)
            && span.sent > *since + bound
        {
            return Err(format!(
                "version {version} signed ({span:?}), and version {newer} or a later one was acknowledged at {since:?}"
            ));
        }
    }
    Ok(signatures)
}

/// The second key does not sign after it was disabled for longer than the bound, until somebody
/// asks to enable it. One client alone disables and enables it, one after the other.
fn check_second(events: &[Event], bound: Duration) -> Result<(), String> {
    let mut forbidden = Vec::new();
    let mut since: Option<Time> = None;
    for event in events {
        if let Event::Disable(span, outcome, disable) = event {
            match (disable, outcome) {
                (true, Outcome::Made(())) => since = since.or(Some(span.answered)),
                (true, _) => {}
                // Whatever became of it, the key may sign from now on.
                (false, _) => forbidden.extend(since.take().map(|since| (since + bound, span.sent))),
            }
        }
    }
    forbidden.extend(since.map(|since| (since + bound, Time::MAX)));
    let signed = events.iter().filter_map(|event| match event {
        Event::SignSecond(span) => Some(span),
        _ => None,
    });
    let late = signed.filter_map(|span| {
        let is_within = |(from, to): &&(Time, Time)| span.sent > *from && span.answered < *to;
        Some((span, forbidden.iter().find(is_within)?))
    });
    let late: Vec<_> = late.collect();
    let (Some((first, (from, to))), Some((last, _))) = (late.first(), late.last()) else { return Ok(()) };
    Err(format!(
        "the disabled key signed {} times ({first:?} to {last:?}), which it must not, at first from {from:?} to {to:?}",
        late.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_secs(3);

    fn span(sent: u64, answered: u64) -> Span {
        Span { sent: Duration::from_secs(sent), answered: Duration::from_secs(answered) }
    }

    fn made(sent: u64, answered: u64, version: u64) -> Event {
        Event::Rotate(span(sent, answered), Outcome::Made(version))
    }

    fn sign(sent: u64, answered: u64, version: u64) -> Event {
        Event::Sign(span(sent, answered), version)
    }

    fn disable(sent: u64, answered: u64, disable: bool) -> Event {
        Event::Disable(span(sent, answered), Outcome::Made(()), disable)
    }

    #[track_caller]
    fn bad(events: &[Event], head: u64, why: &str) {
        let found = check(events, head, BOUND).unwrap_err();
        assert!(found.contains(why), "{found}");
    }

    #[test]
    fn a_history_that_keeps_the_promises_passes() {
        let events = [
            sign(0, 1, 1),
            made(1, 3, 2),
            sign(2, 3, 2),
            // Rotations at the same time may be acknowledged in any order.
            made(4, 9, 3),
            made(4, 8, 4),
            Event::Rotate(span(9, 10), Outcome::Unknown),
            Event::Rotate(span(9, 10), Outcome::NotMade),
            sign(5, 6, 2),
            sign(10, 11, 5),
            // By the bound, the older version may sign.
            sign(6, 12, 2),
            Event::Read { least: 4, head: 5 },
            disable(1, 2, true),
            Event::SignSecond(span(5, 6)),
            disable(7, 8, false),
            Event::SignSecond(span(8, 9)),
        ];
        let summary = check(&events, 5, BOUND).unwrap();
        assert_eq!(summary, Summary { rotations: 3, unknown: 1, signatures: 5, reads: 1 });
    }

    #[test]
    fn lost_and_doubled_and_invented_versions_are_found() {
        bad(&[made(0, 1, 2), made(1, 2, 3)], 2, "lost");
        bad(&[made(0, 1, 2), made(0, 1, 2)], 3, "two rotations");
        bad(&[made(0, 1, 2)], 3, "in doubt");
        bad(&[made(0, 1, 2), Event::Rotate(span(1, 2), Outcome::NotMade)], 3, "in doubt");
        bad(&[made(5, 6, 2), made(1, 2, 3)], 3, "before version 2");
    }

    #[test]
    fn signatures_that_are_too_early_or_too_late_are_found() {
        bad(&[made(5, 6, 2), sign(1, 2, 2)], 2, "before it was asked for");
        bad(&[sign(1, 2, 7)], 7, "in doubt");
        bad(&[sign(1, 2, 7)], 1, "lost");
        bad(&[made(0, 1, 2), sign(5, 6, 1)], 2, "version 1 signed");
        // Not the next version was acknowledged first, but a later one.
        bad(&[made(0, 9, 2), made(0, 1, 3), sign(5, 6, 1)], 3, "version 1 signed");
    }

    #[test]
    fn a_disabled_key_that_signs_is_found() {
        bad(&[disable(0, 1, true), Event::SignSecond(span(5, 6))], 1, "disabled key");
        let enabled = disable(9, 10, false);
        bad(&[disable(0, 1, true), enabled, Event::SignSecond(span(5, 6))], 1, "disabled key");
        check(&[disable(0, 1, true), enabled, Event::SignSecond(span(5, 10))], 1, BOUND).unwrap();
    }

    #[test]
    fn a_caller_who_does_not_see_its_own_write_is_found() {
        bad(&[made(0, 1, 2), Event::Read { least: 2, head: 1 }], 2, "saw version 1");
    }
}
