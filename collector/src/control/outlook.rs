//! Who is switched off as far as was heard: no bursts need be taken there.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How long something is off before its bursts stop, ns. Where it is switched on and off in quick succession they go on, and those that were
/// taken while it was off are left out: what is heard late would cost some that belong into the recording.
const SETTLED: u64 = 100_000_000;

/// The last turn of all, and those of processes that said something after it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlook {
    /// Since when all are off, ns; `None`: they are on.
    pub(super) all: Option<u64>,
    pub(super) own: HashMap<u32, Option<u64>>,
}

impl Outlook {
    fn is_off(&self, pid: u32, now: u64) -> bool {
        self.own.get(&pid).unwrap_or(&self.all).is_some_and(|since| now >= since.saturating_add(SETTLED))
    }
}

/// What was heard last, for those who make samples. A child of fork counts as said nothing.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<Option<Outlook>>);

impl Heard {
    /// Something new was heard.
    pub(super) fn hear(&self, outlook: Outlook) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outlook);
    }

    /// Whether anything was ever said.
    pub(crate) fn is_used(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether a process is off, and has been for a while, at `now`, ns.
    pub(crate) fn is_off(&self, pid: i32, now: u64) -> bool {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.as_ref().is_some_and(|outlook| outlook.is_off(pid as u32, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_stop_a_while_after_the_word() {
        let heard = Heard::default();
        assert!(!heard.is_off(7, u64::MAX));
        heard.hear(Outlook { all: Some(10), own: [(7, None), (8, Some(500))].into() });
        let off_at = |now| [7, 8, 9].map(|pid| heard.is_off(pid, now));
        assert_eq!(off_at(SETTLED), [false, false, false]);
        assert_eq!(off_at(SETTLED + 10), [false, false, true]);
        assert_eq!(off_at(SETTLED + 500), [false, true, true]);
    }
}
