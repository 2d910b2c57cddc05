//! Clocks of CPUs, which say whose turn it is to have a burst, where clocks of threads would cost too much.
//!
//! An event of a thread's own costs at every switch to and from the thread (decision 030). One of a CPU costs nothing but its overflows, whatever
//! runs there: each is a sample of who computes at that moment, and stands for a period of CPU time. So a thread has as many bursts as by a clock
//! of its own. It gets one for the moments that its burst takes.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, EventAttr, SampleFormat};

use crate::errno::Errno;
use crate::machine::cpu_list::CpuList;
use crate::session::record_layout::{SAMPLE, halves, records, word};
use crate::sys::control_group::ControlGroup;
use crate::sys::{EventFd, Ring, Scope};

/// A thread that was computing in user space when the clock of its CPU overflowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) process: i32,
    pub(crate) thread: i32,
    /// What its burst stands for, ns of CPU time in user space.
    pub(crate) period: u64,
}

struct CpuClock {
    event: EventFd,
    ring: Ring,
    /// The mean of those that it may have, ns.
    period: u64,
}

/// One for each CPU.
pub(crate) struct CpuClocks {
    clocks: Vec<CpuClock>,
    bytes: Vec<u8>,
}

impl CpuClocks {
    /// They see what is in a control group, or everything that runs. None runs yet.
    ///
    /// # Errors
    /// What the kernel says: it needs the rights to sample everything that runs.
    pub(crate) fn open(cpus: &CpuList, group: Option<&ControlGroup>) -> Result<Self, Errno> {
        let folder = group.map(ControlGroup::open).transpose()?;
        let scope = |cpu| folder.as_ref().map_or(Scope::Cpu(cpu), |folder| Scope::Group(folder.as_raw_fd(), cpu));
        let mut clocks = Vec::new();
        for cpu in cpus.iter() {
            let event = match EventFd::open(&attr(), scope(cpu)) {
                Ok(event) => event,
                // It went offline meanwhile.
                Err(Errno::ENODEV) => continue,
                Err(errno) => return Err(errno),
            };
            let ring = Ring::map(&event, 1)?;
            clocks.push(CpuClock { event, ring, period: 0 });
        }
        Ok(Self { clocks, bytes: Vec::new() })
    }

    /// Starts all. Each overflows after so many ns, times what `jitter` gives it. One whose CPU is gone does not.
    pub(crate) fn start(&mut self, mean: u64, mut jitter: impl FnMut() -> f64) {
        for clock in &mut self.clocks {
            let _ = clock.set_period(mean, jitter()).and_then(|()| clock.event.enable());
        }
    }

    /// Starts those anew whose periods are more than twice as long as they should be by now: on a CPU that has little to do it takes long until one
    /// has a turn.
    pub(crate) fn shorten(&mut self, mean: u64, mut jitter: impl FnMut() -> f64) {
        for clock in self.clocks.iter_mut().filter(|clock| clock.period > 2 * mean) {
            let _ = clock.set_period(mean, jitter());
        }
    }

    /// None overflows any more.
    pub(crate) fn stop(&self) {
        for clock in &self.clocks {
            let _ = clock.event.disable();
        }
    }

    /// What becomes readable when a clock has overflowed.
    pub(crate) fn polled(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.clocks.iter().map(|clock| clock.event.as_fd())
    }

    /// Whose turn it is since the last time. A clock that has overflowed has another period from then on, as at the start: programs that do
    /// something once in a while must not fall in step with it.
    pub(crate) fn turns(&mut self, mean: u64, mut jitter: impl FnMut() -> f64) -> Vec<Turn> {
        let mut turns = Vec::new();
        for clock in &mut self.clocks {
            self.bytes.clear();
            if clock.ring.drain(&mut self.bytes) > 0 {
                turns.extend(read(&self.bytes, clock.period));
                let _ = clock.set_period(mean, jitter());
            }
        }
        turns
    }
}

impl CpuClock {
    fn set_period(&mut self, mean: u64, jitter: f64) -> Result<(), Errno> {
        self.event.set_period(((mean as f64 * jitter) as u64).max(1))?;
        self.period = mean;
        Ok(())
    }
}

/// A clock of wall time that tells of each overflow at once, but for those where its CPU is idle or in the kernel.
fn attr() -> EventAttr {
    EventAttr {
        kind: sys::PERF_TYPE_SOFTWARE,
        config: u64::from(sys::PERF_COUNT_SW_CPU_CLOCK),
        sample_period_or_freq: 1_000_000_000,
        sample_format: SampleFormat::TID,
        flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV | AttrFlags::EXCLUDE_IDLE,
        wakeup_events_or_watermark: 1,
        ..EventAttr::default()
    }
}

/// The turns in what a ring held. The idle task, and who has no number here, have none.
fn read(bytes: &[u8], period: u64) -> impl Iterator<Item = Turn> {
    let samples = records(bytes).map_while(Result::ok).filter(|record| record.kind == SAMPLE);
    let ids = samples.filter_map(|record| Some(halves(word(record.body, 0)?).map(|id| id as i32)));
    ids.filter(|[process, thread]| *process > 0 && *thread > 0).map(move |[process, thread]| Turn {
        process,
        thread,
        period,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, ids: [i32; 2]) -> Vec<u8> {
        let header = [kind.to_ne_bytes().as_slice(), &0_u16.to_ne_bytes(), &16_u16.to_ne_bytes()].concat();
        ids.iter().fold(header, |bytes, id| [bytes, id.to_ne_bytes().to_vec()].concat())
    }

    #[test]
    fn samples_are_turns_of_threads() {
        // Two of one thread, something else, the idle task, one of another namespace.
        let bytes = [(SAMPLE, [7, 8]), (SAMPLE, [7, 8]), (2, [5, 5]), (SAMPLE, [0, 0]), (SAMPLE, [-1, -1])];
        let bytes: Vec<u8> = bytes.into_iter().flat_map(|(kind, ids)| record(kind, ids)).collect();
        let turn = Turn { process: 7, thread: 8, period: 50 };
        assert_eq!(read(&bytes, 50).collect::<Vec<_>>(), [turn, turn]);
        assert_eq!(read(&bytes[..24], 50).count(), 1, "what is broken ends it");
        assert_eq!(read(&[], 50).count(), 0);
    }

    #[test]
    fn what_computes_has_its_turn() {
        let cpus = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().parse().unwrap();
        let mut clocks = match CpuClocks::open(&cpus, None) {
            Ok(clocks) => clocks,
            Err(why) => return testing::skip!(Privileges, "no event of a CPU opens: {why}"),
        };
        clocks.start(1_000_000, || 1.0);
        let (own, began) = (std::process::id() as i32, std::time::Instant::now());
        let mut own_turns = 0;
        while own_turns < 5 {
            assert!(began.elapsed().as_secs() < 60, "{own_turns} turns of a thread that computes for a minute");
            let turns = clocks.turns(2_000_000, || 0.5);
            own_turns += turns.iter().filter(|turn| turn.process == own).count();
        }
        clocks.stop();
        clocks.turns(1_000_000, || 1.0);
        assert_eq!(clocks.turns(1_000_000, || 1.0), [], "they stand still");
    }
}
