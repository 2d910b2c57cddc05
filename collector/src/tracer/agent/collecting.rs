//! From slots to samples: bursts that have come out of programs.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use addresses::Avma;
use agent::{Image, ImageError, Limits};
use lookahead::StopReason;

use crate::tracer::burst::{Burst, BurstEvent, ThreadId};
use crate::tracer::shared::{Shared, monotonic_time};
use crate::tracer::statistics::TracerStatistics;

/// More than any burst takes.
const LONGEST: Duration = Duration::from_secs(1);

/// Takes bursts out of the slots. The tracer does it for its budget, and the recorder before each round, so that no burst comes later
/// than the records around it.
pub(crate) struct Collecting {
    /// Made when the first process has computed for a while.
    image: OnceLock<Result<Image, ImageError>>,
    is_making: AtomicBool,
    pub(crate) event: BurstEvent,
    held: Mutex<Held>,
}

/// A burst that has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewBurst {
    /// The descriptor of its clock.
    pub(crate) clock: i32,
    pub(crate) cost: Duration,
    /// What it stands for, ns of CPU time in user space.
    pub(crate) period: u64,
}

pub(crate) struct Held {
    /// Threads by the descriptors of their clocks, with the period of the next burst.
    pub(crate) clocks: HashMap<i32, (ThreadId, u64)>,
    pub(crate) statistics: TracerStatistics,
    /// What came since the tracer last asked.
    pub(crate) new: Vec<NewBurst>,
    taken: agent::Burst,
    burst: Burst,
    /// When bursts were taken out last, ns: what comes now is not older.
    last: u64,
}

impl Collecting {
    pub(crate) fn new(event: BurstEvent, statistics: TracerStatistics) -> Self {
        let held = Held {
            clocks: HashMap::new(),
            statistics,
            new: Vec::new(),
            taken: agent::Burst::default(),
            burst: Burst::default(),
            last: 0,
        };
        Self { image: OnceLock::new(), is_making: AtomicBool::new(false), event, held: Mutex::new(held) }
    }

    /// The image, if a process was to get it.
    pub(crate) fn made_image(&self) -> Option<&Image> {
        self.image.get()?.as_ref().ok()
    }

    /// The image, or why there is none; `None` while it is being made. The first time this is asked, a thread begins with it: it takes some
    /// milliseconds, in which bursts are due.
    pub(crate) fn image(self: &Arc<Self>, limits: Limits) -> Option<&Result<Image, ImageError>> {
        if !self.is_making.swap(true, Ordering::Relaxed) {
            let own = self.clone();
            let make = move || {
                let checks = own.held().statistics.checks.is_some();
                let made = Image::make().inspect(|image| {
                    image.slots.set_limits(limits);
                    image.slots.check(checks);
                });
                let _ = own.image.set(made);
            };
            // It is tried again where there is no thread to be had.
            if Builder::new().name("hbbp-image".to_owned()).spawn(make).is_err() {
                self.is_making.store(false, Ordering::Relaxed);
            }
        }
        self.image.get()
    }

    /// The thread whose clock has this descriptor.
    pub(crate) fn thread_of_clock(&self, number: i32) -> Option<i32> {
        self.held().clocks.get(&number).map(|(thread, _)| thread.tid)
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes samples of what is in the slots.
    pub(crate) fn collect(&self, shared: &Shared) {
        let Some(image) = self.made_image() else { return };
        let mut held = self.held();
        let began = monotonic_time();
        let Held { clocks, statistics, new, taken, burst, last } = &mut *held;
        image.slots.drain(taken, |taken| {
            let Some(&(thread, period)) = clocks.get(&taken.event) else {
                // Of a thread that has ended meanwhile, or not a burst at all.
                statistics.lost_bursts += 1;
                return;
            };
            if let (Some(checks), Some(checked)) = (&mut statistics.checks, &taken.checked) {
                let is_alone = clocks.values().filter(|(other, _)| other.pid == thread.pid).count() < 2;
                checks.add(checked, taken.start, is_alone);
            }
            let time = taken.time.clamp(*last, monotonic_time().max(*last));
            let source = Source { thread, period, time };
            let publish = |process, ranges: &[_]| image.slots.set_file_code(process, ranges);
            source.add_code(taken, shared, publish);
            new.push(source.take_in(taken, burst, statistics, &self.event, shared));
        });
        *last = began;
    }
}

/// Where a burst comes from, and when it was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) thread: ThreadId,
    pub(crate) period: u64,
    pub(crate) time: u64,
}

impl Source {
    /// Keeps the code that a burst has executed and that is in no file. `publish` tells agents of a process where it has code of files.
    pub(crate) fn add_code(self, taken: &agent::Burst, shared: &Shared, publish: impl FnMut(u32, &[Range<Avma>])) {
        let of = (self.thread.pid as u32, self.time);
        shared.made_code().add_of_agent(of, &taken.code, taken.code_left_out, monotonic_time(), publish);
    }

    /// Makes samples of what an agent has taken, counts them and what they cost.
    pub(crate) fn take_in(
        self,
        taken: &mut agent::Burst,
        burst: &mut Burst,
        statistics: &mut TracerStatistics,
        event: &BurstEvent,
        shared: &Shared,
    ) -> NewBurst {
        let Self { thread, period, time } = self;
        // The program could have written anything.
        let took = Duration::from_nanos(taken.took).min(LONGEST);
        let decoding = Duration::from_nanos(taken.decoding).min(took);
        let system_calls = taken.system_calls.min(agent::Burst::SYSTEM_CALLS);
        let unseen = statistics.signal_cost.of_burst(took, system_calls as u32);
        statistics.time.stops += unseen;
        statistics.time.decoding += decoding;
        statistics.time.lookahead += took - decoding;
        statistics.sampling_stops += 1;
        let new = NewBurst { clock: taken.event, cost: took + unseen, period };
        TracerStatistics::count(&mut statistics.ends, taken.end);
        if let Some(mnemonic) =
            taken.unsupported.and_then(|number| iced_x86::Mnemonic::try_from(usize::from(number)).ok())
        {
            TracerStatistics::count(&mut statistics.unsupported, &format!("{mnemonic:?}").to_lowercase());
        }
        if taken.instructions() == 0 {
            return new;
        }
        burst.take_over(taken, period);
        let mut unwritable = 0;
        let is_written = shared.push_at(|records| unwritable = burst.write(event, thread, time, records));
        statistics.unwritable_samples += unwritable;
        if !is_written {
            statistics.lost_bursts += 1;
            return new;
        }
        statistics.bursts += 1;
        statistics.instructions += taken.instructions();
        statistics.taken_branches += burst.branches.len() as u64;
        statistics.static_branches += burst.static_branches();
        statistics.not_taken += taken.not_taken.min(taken.instructions());
        statistics.pages += taken.pages.min(agent::Burst::PAGES as u64 * (system_calls + 1));
        if system_calls > 0 {
            TracerStatistics::add(&mut statistics.continued, StopReason::SystemCall.name(), system_calls);
        }
        new
    }
}
