//! From slots to samples, where timers start the bursts.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent::{Clock, Image, ImageError, Limits, Part, Preload};
use perfdata::EventDescription;
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::sys::process::Mapping;
use crate::tracer::agent::collecting::{NewBurst, Source};
use crate::tracer::burst::{Burst, BurstEvent, ThreadId};
use crate::tracer::shared::{Shared, monotonic_time};
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::timer::processes::{NoPart, Process, Records};

/// Bursts of a recording, and the processes they come from.
pub(crate) struct TimedBursts {
    pub(crate) image: Image,
    pub(crate) clock: Clock,
    event: BurstEvent,
    held: Mutex<Held>,
}

pub(crate) struct Held {
    pub(crate) processes: HashMap<i32, Process>,
    pub(crate) statistics: TracerStatistics,
    /// What came since the engine last asked; `clock` is the process.
    pub(crate) new: Vec<NewBurst>,
    /// CPU time that a burst stands for, ns.
    pub(crate) period: u64,
    pub(crate) records: Records,
    taken: agent::Burst,
    burst: Burst,
    /// When bursts were taken out last, ns.
    last: u64,
}

impl TimedBursts {
    /// Makes the image, and the shared object by which programs get it.
    ///
    /// # Errors
    /// The machine does not allow it.
    pub(crate) fn new(
        event: &EventDescription,
        statistics: TracerStatistics,
        limits: Limits,
        clock: Clock,
    ) -> Result<(Self, Preload), ImageError> {
        let image = Image::make()?;
        image.slots.set_limits(limits);
        let failed = |what: &str| ImageError::Executable(what.to_owned());
        let preload = Preload::of(&image, clock).ok_or_else(|| failed("the code that loads it has no room"))?;
        let records = Records::of(event).map_err(|error| failed(&error.to_string()))?;
        let held = Held {
            processes: HashMap::new(),
            statistics,
            new: Vec::new(),
            period: 0,
            records,
            taken: agent::Burst::default(),
            burst: Burst::default(),
            last: 0,
        };
        let id = event.ids.first().copied().unwrap_or_default();
        let event = BurstEvent { attr: event.attr.clone(), id };
        Ok((Self { image, clock, event, held: Mutex::new(held) }, preload))
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a process begins, somebody wakes the engine, or so much time has passed. `rung`: what the bell showed.
    pub(crate) fn wait(&self, rung: u32, timeout: Duration) {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let _ = futex::wait(self.image.slots.timers().bell(), futex::Flags::empty(), rung, Some(&timeout));
    }

    /// Ends the wait.
    pub(crate) fn wake(&self) {
        let timers = self.image.slots.timers();
        timers.bell().fetch_add(1, std::sync::atomic::Ordering::Release);
        let _ = futex::wake(timers.bell(), futex::Flags::empty(), i32::MAX as u32);
    }

    /// Looks at a process that has begun, and lets it take bursts if it may. `harm`: what harm they would do in one with these mappings.
    pub(crate) fn admit(
        &self,
        process: i32,
        place: usize,
        harm: impl FnOnce(&[Mapping]) -> Option<&'static str>,
        shared: &Shared,
    ) -> Result<(), NoPart> {
        // What the process took before it executed another program is of before.
        self.collect(shared);
        let mut held = self.held();
        let Held { processes, records, .. } = &mut *held;
        let known = processes.remove(&process);
        shared.made_code().begins_anew(process as u32);
        if let Some(known) = &known {
            self.image.slots.timers().free(known.place);
        }
        let (is_known, now) = (known.is_some(), monotonic_time());
        let looked = Process::look(process, place, &self.image, harm, is_known, now, records);
        hand_over(records, shared);
        let part = if looked.is_ok() { Part::Allowed } else { Part::Barred };
        let result = looked.map(|looked| drop(processes.insert(process, looked)));
        self.image.slots.timers().set(place, part);
        result
    }

    /// A process has ended.
    pub(crate) fn ended(&self, process: i32, shared: &Shared) {
        self.collect(shared);
        let mut held = self.held();
        let Held { processes, records, .. } = &mut *held;
        if let Some(ended) = processes.remove(&process) {
            self.image.slots.timers().free(ended.place);
            shared.made_code().ended(process as u32);
            records.end(process, monotonic_time());
            hand_over(records, shared);
        }
    }

    /// Makes samples of what is in the slots.
    pub(crate) fn collect(&self, shared: &Shared) {
        let mut held = self.held();
        let began = monotonic_time();
        let Held { processes, statistics, new, period, records, taken, burst, last } = &mut *held;
        self.image.slots.drain(taken, |taken| {
            // The program could have written anything.
            let (pid, tid) = (taken.process, taken.event);
            let Some(process) = processes.get_mut(&pid) else {
                statistics.lost_bursts += 1;
                return;
            };
            let time = taken.time.clamp(*last, monotonic_time().max(*last));
            statistics.threads += u64::from(process.thread(pid, tid, *last, records));
            let branches = taken.branches.iter().flat_map(|branch| [branch.from, branch.to]);
            if !process.covers([taken.start].into_iter().chain(branches)) {
                process.look_again(pid, *last, began, records);
            }
            hand_over(records, shared);
            let source = Source { thread: ThreadId { pid, tid }, period: *period, time };
            let publish = |process, ranges: &[_]| self.image.slots.set_file_code(process, ranges);
            source.add_code(taken, shared, publish);
            let done = source.take_in(taken, burst, statistics, &self.event, shared);
            new.push(NewBurst { clock: pid, ..done });
        });
        *last = began;
    }
}

fn hand_over(records: &mut Records, shared: &Shared) {
    let bytes = records.take();
    if !bytes.is_empty() && !shared.push_at(|records| records.extend_from_slice(&bytes)) {
        records.put_back(bytes);
    }
}
