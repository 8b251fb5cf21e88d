//! When to strike at a process whose speed nobody knows.

use std::time::Duration;

/// Calls `strike` with delays that climb by a quarter until the process got far enough before it
/// was struck, then from a quarter of that again: on a machine of any speed all stages of the work
/// are met, and those after its start most often.
///
/// `strike` tells whether the process got far enough. It is called at least `rounds` times, and
/// until the process once did and once did not.
pub fn strikes(rounds: u32, mut strike: impl FnMut(Duration) -> bool) {
    const MIN_DELAY: Duration = Duration::from_micros(100);
    let (mut delay, mut early, mut late) = (MIN_DELAY, 0, 0);
    while early + late < rounds || early == 0 || late == 0 {
        assert!(early + late < 20 * rounds, "{early} strikes came too early, {late} too late");
        if strike(delay) {
            late += 1;
            delay /= 4;
        } else {
            early += 1;
            delay = delay * 5 / 4;
        }
        delay = delay.max(MIN_DELAY);
    }
}
