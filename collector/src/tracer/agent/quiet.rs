//! How processes with agents are looked after: how many at a time, and when one is taken for one whose signals do not come through.

use std::time::Duration;

/// Processes that are looked at each time.
pub(crate) const LOOKS: usize = 8;
/// How long a process with an agent may compute without a burst: this, and so many periods. A program's own handler would get the signals.
pub(crate) const LONGEST_QUIET: Duration = Duration::from_millis(200);
const QUIET_PERIODS: u32 = 20;

/// How long a process may compute without a burst whose periods are at most so long.
pub(crate) fn longest_quiet(period: Duration) -> Duration {
    LONGEST_QUIET + period * QUIET_PERIODS
}
