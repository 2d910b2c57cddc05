//! What the tracer's thread shares with the one that writes the recording.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, clock_gettime};

use crate::control::Heard;
use crate::sys::wake_waiting_thread;
use crate::tracer::made_code::MadeCode;

/// Bytes that the writer is to take at a time: no more than stays in the caches of a CPU, as it has copies of them.
const ENOUGH: usize = 256 << 10;
/// It is not told to come sooner than this.
const SOONEST: Duration = Duration::from_millis(20);
/// Bytes of memory kept from time to time.
const MOST_SPARE: usize = 4 << 20;
/// Bytes held at most; a burst that finds no room is counted as lost.
const MOST: usize = 64 << 20;

/// Bursts on their way to the recording, and what the two threads have to tell each other.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Sampling is to begin.
    pub(crate) started: AtomicBool,
    /// Tracing is to end.
    pub(crate) stopping: AtomicBool,
    /// How the command ended, in the words of wait(2): the tracer is told first.
    pub(crate) status: OnceLock<i32>,
    /// Hands over what is there, before the writer asks for it.
    pub(crate) before_drain: OnceLock<BeforeDrain>,
    /// Wakes the tracer, if it waits for something else than signals.
    pub(crate) wake_tracer: OnceLock<Wake>,
    /// Who is switched off.
    pub(crate) switch: Heard,
    records: Mutex<Vec<u8>>,
    made_code: Arc<Mutex<MadeCode>>,
    /// When the writer last took what was there, and after how long there will be enough again, ns.
    taken: AtomicU64,
    until_enough: AtomicU64,
    wake: OwnedFd,
}

/// What is done before the writer takes what was handed over.
pub(crate) struct BeforeDrain(pub(crate) Box<dyn Fn(&Shared) + Send + Sync>);

impl fmt::Debug for BeforeDrain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BeforeDrain")
    }
}

/// Wakes the tracer.
pub(crate) struct Wake(pub(crate) Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wake")
    }
}

impl Shared {
    pub(crate) fn new() -> Result<Self, rustix::io::Errno> {
        Ok(Self {
            started: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            status: OnceLock::new(),
            before_drain: OnceLock::new(),
            wake_tracer: OnceLock::new(),
            switch: Heard::default(),
            records: Mutex::new(Vec::new()),
            made_code: Arc::default(),
            taken: AtomicU64::new(monotonic_time()),
            until_enough: AtomicU64::new(u64::MAX),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    fn records(&self) -> MutexGuard<'_, Vec<u8>> {
        // A panic while they were written may have left half of one.
        self.records.lock().unwrap_or_else(|poisoned: PoisonError<MutexGuard<'_, Vec<u8>>>| {
            self.records.clear_poison();
            let mut records = poisoned.into_inner();
            records.clear();
            records
        })
    }

    /// Hands over what `write` appends, at the time it is given (`CLOCK_MONOTONIC`, ns). The time is taken under the lock, so that
    /// records are in order and none is older than what was handed over before. Returns whether there was room.
    pub(crate) fn push(&self, write: impl FnOnce(u64, &mut Vec<u8>)) -> bool {
        self.push_at(|records| write(monotonic_time(), records))
    }

    /// Hands over what `write` appends, whatever time it has: not older than when the writer last took everything. Returns whether
    /// there was room.
    pub(crate) fn push_at(&self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut records = self.records();
        let before = records.len();
        write(&mut records);
        if records.len() > MOST {
            records.truncate(before);
            return false;
        }
        if before < ENOUGH && records.len() >= ENOUGH {
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
        true
    }

    /// The code that bursts executed and that is in no file.
    pub(crate) fn made_code(&self) -> MutexGuard<'_, MadeCode> {
        self.made_code.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It, for others who find some.
    pub(crate) fn shared_made_code(&self) -> Arc<Mutex<MadeCode>> {
        self.made_code.clone()
    }

    /// Wakes the tracer's thread.
    pub(crate) fn wake_tracer(&self) {
        match self.wake_tracer.get() {
            Some(Wake(wake)) => wake(),
            None => wake_waiting_thread(),
        }
    }

    /// How long it takes until there is enough for the writer, if as much comes as lately.
    pub(crate) fn until_enough(&self) -> Duration {
        Duration::from_nanos(self.until_enough.load(Relaxed)).max(SOONEST)
    }

    /// Appends what was handed over since the last time.
    pub(crate) fn drain(&self, records: &mut Vec<u8>) {
        if let Some(BeforeDrain(hand_over)) = self.before_drain.get() {
            hand_over(self);
        }
        let mut held = self.records();
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        let now = monotonic_time();
        let passed = now.saturating_sub(self.taken.swap(now, Relaxed));
        self.until_enough.store(until_enough(held.len(), passed), Relaxed);
        if records.is_empty() {
            std::mem::swap(records, &mut held);
        } else {
            records.append(&mut held);
        }
        held.shrink_to(MOST_SPARE);
    }
}

/// After how long there is enough, if so many bytes came in so many ns.
fn until_enough(bytes: usize, passed: u64) -> u64 {
    passed.saturating_mul(ENOUGH as u64).checked_div(bytes as u64).unwrap_or(u64::MAX)
}

/// The time that records have, ns.
pub(crate) fn monotonic_time() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

impl AsFd for Shared {
    /// Readable when there is much to be drained.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_comes_when_there_is_enough() {
        let second = 1_000_000_000;
        assert_eq!(until_enough(4 * ENOUGH, second), second / 4);
        assert_eq!(until_enough(ENOUGH / 2, second), 2 * second);
        assert_eq!(until_enough(0, second), u64::MAX);
        let shared = Shared::new().unwrap();
        assert!(shared.until_enough() > Duration::from_secs(3600), "nothing came yet");
        assert!(shared.push(|_, records| records.resize(8 * ENOUGH, 0)));
        shared.drain(&mut Vec::new());
        assert_eq!(shared.until_enough(), SOONEST, "much came in no time");
    }
}
