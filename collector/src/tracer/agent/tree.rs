//! The processes and threads of the program, and which processes have the agent.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::errno::Errno;
use crate::sys::process::Mapping;
use crate::sys::{EventFd, own_thread, realtime_signal};

/// For how long a mapping is believed to be of the code that was searched.
const MOMENT: Duration = Duration::from_secs(1);

/// Whether a process has the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A child of fork, or of vfork, which has its parent's memory: it has no clocks yet.
    Young,
    /// Not yet: its clocks tell the tracer.
    Without,
    /// It is being mapped, by a thread whose clock sends this signal already.
    Loading { signal: i32 },
    /// Its clocks send the threads this signal.
    With { signal: i32 },
    /// It will not get it: its clocks tell the tracer.
    Visited,
    /// It cannot be traced at all.
    Barred,
    /// It executes code of 32 bits, which bursts do not follow.
    Bits32,
}

pub(crate) struct Watched {
    pub(crate) process: i32,
    /// When it began, or its program, by the kernel's clock of events, ns; 0: unknown.
    pub(crate) begun: u64,
    pub(crate) clock: EventFd,
    /// After so many ns of its CPU time the clock overflows.
    pub(crate) period: u64,
    /// It overflows once only, until its burst is seen.
    pub(crate) stands: bool,
    /// It is to overflow once, and did not yet, as far as is known. The kernel adds up how often it is told so.
    pub(crate) will_overflow: bool,
    /// It tells the agent, not the tracer.
    pub(crate) tells_agent: bool,
    /// Its process is switched off: the clock stands.
    pub(crate) is_off: bool,
    /// Times in a row that it could not be given the agent just then, or be visited.
    pub(crate) tries: u32,
    /// It has had a burst.
    pub(crate) computes: bool,
}

impl Watched {
    /// The clock tells the tracer, as soon as it is armed.
    pub(crate) fn tell_tracer(&mut self) {
        let _ = self.clock.disable();
        let _ = self.clock.signal_to(own_thread(), realtime_signal());
        (self.tells_agent, self.stands) = (false, false);
    }

    /// Chooses when the clock overflows, ns of CPU time.
    pub(crate) fn arm(&mut self, period: u64) {
        self.period = period.max(1);
        let _ = self.clock.set_period(self.period);
        if !self.tells_agent {
            let _ = self.start_once();
        }
    }

    /// The clock goes on until it overflows.
    pub(crate) fn start_once(&mut self) -> Result<(), Errno> {
        if self.is_off {
            return Ok(());
        }
        if std::mem::replace(&mut self.will_overflow, true) { self.clock.enable() } else { self.clock.once() }
    }
}

impl Watched {
    /// The clock goes on.
    pub(crate) fn go_on(&self) {
        if !self.is_off {
            let _ = self.clock.enable();
        }
    }

    /// The process is switched off, or on again.
    pub(crate) fn switch(&mut self, off: bool) {
        self.is_off = off;
        if off {
            let _ = self.clock.disable();
        } else if self.tells_agent && !self.stands {
            self.go_on();
        } else {
            let _ = self.start_once();
        }
    }
}

struct Process {
    state: State,
    threads: usize,
    /// Times that one of its threads was not found where it could be stopped.
    tries: u32,
    /// CPU time that it had used when its program began.
    used_before: Duration,
    /// It has been watched before, by another program perhaps.
    was_watched: bool,
    /// Its user time when it was last looked at after a burst; `None`: a burst came since the last look.
    quiet_since: Option<Duration>,
    /// How much code it had mapped when it was last looked at, KiB.
    code: u64,
    /// When its code was searched, and the mappings that make no filters of system calls.
    harmless: Option<(Instant, Vec<Mapping>)>,
    /// A clock of its program has overflowed.
    has_computed: bool,
    /// It was counted as one that has no bursts: its next program is not counted again.
    is_counted_out: bool,
}

impl Process {
    fn new(state: State) -> Self {
        Self {
            state,
            threads: 0,
            tries: 0,
            used_before: Duration::ZERO,
            was_watched: false,
            quiet_since: None,
            code: 0,
            harmless: None,
            has_computed: false,
            is_counted_out: false,
        }
    }
}

#[derive(Default)]
pub(crate) struct Tree {
    threads: HashMap<i32, Watched>,
    processes: HashMap<i32, Process>,
}

impl Tree {
    pub(crate) fn state(&self, process: i32) -> Option<State> {
        self.processes.get(&process).map(|process| process.state)
    }

    pub(crate) fn set_state(&mut self, process: i32, state: State) {
        self.processes.entry(process).or_insert(Process::new(state)).state = state;
    }

    /// A process has no bursts from now on, until it has another program. Returns whether it is the first time.
    pub(crate) fn leave_out(&mut self, process: i32, state: State) -> bool {
        self.set_state(process, state);
        self.processes.get_mut(&process).is_some_and(|process| !std::mem::replace(&mut process.is_counted_out, true))
    }

    /// Whether a process is known to have no bursts, and so no threads here.
    pub(crate) fn is_left_out(&self, process: i32) -> bool {
        matches!(self.state(process), Some(State::Barred | State::Bits32))
    }

    /// One of the threads of a process was put off.
    pub(crate) fn put_off(&mut self, process: i32) {
        if let Some(process) = self.processes.get_mut(&process) {
            process.tries = process.tries.saturating_add(1);
        }
    }

    /// How often threads of a process were put off.
    pub(crate) fn tries(&self, process: i32) -> u32 {
        self.processes.get(&process).map_or(0, |process| process.tries)
    }

    /// Whether a process has another amount of code, KiB, than when this was last asked.
    pub(crate) fn has_other_code(&mut self, process: i32, code: u64) -> bool {
        let known = self.processes.get_mut(&process);
        known.is_some_and(|process| std::mem::replace(&mut process.code, code) != code)
    }

    /// These mappings of a process are known to make no filters of system calls, for a moment. The next look asks again, whatever amount of code
    /// it finds.
    pub(crate) fn set_harmless(&mut self, process: i32, maps: Vec<Mapping>, now: Instant) {
        if let Some(process) = self.processes.get_mut(&process) {
            (process.harmless, process.code) = (Some((now, maps)), 0);
        }
    }

    /// Which are. Later, the same file may be another one at the same place.
    pub(crate) fn take_harmless(&mut self, process: i32, now: Instant) -> Vec<Mapping> {
        let known = self.processes.get_mut(&process).and_then(|process| process.harmless.take());
        known
            .filter(|(then, _)| now.saturating_duration_since(*then) < MOMENT)
            .map(|(_, maps)| maps)
            .unwrap_or_default()
    }

    /// A process has another program, and has used so much CPU time.
    pub(crate) fn begins_anew(&mut self, process: i32, used: Duration) {
        if let Some(process) = self.processes.get_mut(&process) {
            (process.used_before, process.has_computed) = (used, false);
            (process.harmless, process.code) = (None, 0);
        }
    }

    /// A clock of a process has overflowed. Returns whether it is the first time in its present program.
    pub(crate) fn computes(&mut self, process: i32) -> bool {
        let process = self.processes.get_mut(&process);
        process.is_some_and(|process| !std::mem::replace(&mut process.has_computed, true))
    }

    /// What a process has used for its present program, of so much CPU time.
    pub(crate) fn used_by(&self, process: i32, used: Duration) -> Duration {
        let before = self.processes.get(&process).map(|process| process.used_before);
        used.saturating_sub(before.unwrap_or_default())
    }

    pub(crate) fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// How many threads have had a burst. Many others may not compute at all.
    pub(crate) fn computing(&self) -> usize {
        self.threads.values().filter(|watched| watched.computes).count()
    }

    pub(crate) fn get(&self, thread: i32) -> Option<&Watched> {
        self.threads.get(&thread)
    }

    pub(crate) fn get_mut(&mut self, thread: i32) -> Option<&mut Watched> {
        self.threads.get_mut(&thread)
    }

    /// Adds a thread that is not there. Returns whether it, and whether its process, are there for the first time.
    pub(crate) fn add(&mut self, thread: i32, watched: Watched) -> (bool, bool) {
        let process = self.processes.entry(watched.process).or_insert(Process::new(State::Without));
        process.threads += 1;
        let was_watched = std::mem::replace(&mut process.was_watched, true);
        let is_new = (!was_watched || thread != watched.process, !was_watched);
        self.threads.insert(thread, watched);
        is_new
    }

    /// Forgets a thread; its process stays known until [`Self::forget`]. Returns the descriptor of its clock, which is closed.
    pub(crate) fn remove(&mut self, thread: i32) -> Option<i32> {
        let watched = self.threads.remove(&thread)?;
        if let Some(process) = self.processes.get_mut(&watched.process) {
            process.threads -= 1;
        }
        Some(watched.clock.number())
    }

    /// Forgets a process that has no thread any more. Returns whether it did.
    pub(crate) fn forget(&mut self, process: i32) -> bool {
        self.processes.get(&process).is_some_and(|process| process.threads == 0)
            && self.processes.remove(&process).is_some()
    }

    /// All processes, ascending.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mut processes: Vec<i32> = self.processes.keys().copied().collect();
        processes.sort_unstable();
        processes
    }

    /// The processes that have the agent, ascending.
    pub(crate) fn with_agent(&self) -> Vec<i32> {
        let has_it = |process: &Process| matches!(process.state, State::With { .. });
        let with = self.processes.iter().filter(|(_, process)| has_it(process)).map(|(id, _)| *id);
        let mut with: Vec<i32> = with.collect();
        with.sort_unstable();
        with
    }

    /// The processes of which it is not known yet whether the agent could be mapped, and its signal there.
    pub(crate) fn loading(&self) -> Vec<(i32, i32)> {
        let loading = |(id, process): (&i32, &Process)| match process.state {
            State::Loading { signal } => Some((*id, signal)),
            _ => None,
        };
        self.processes.iter().filter_map(loading).collect()
    }

    /// A burst of a thread has come, by its agent.
    pub(crate) fn saw_burst(&mut self, thread: i32) {
        self.is_not_quiet(thread);
        if let Some(watched) = self.threads.get_mut(&thread) {
            watched.computes = true;
        }
    }

    /// That the process of a thread had no burst so far means nothing.
    pub(crate) fn is_not_quiet(&mut self, thread: i32) {
        if let Some(watched) = self.threads.get(&thread)
            && let Some(process) = self.processes.get_mut(&watched.process)
        {
            process.quiet_since = None;
        }
    }

    /// How long a process has computed without a burst, that has so much user time now.
    pub(crate) fn quiet_for(&mut self, process: i32, user_time: Duration) -> Duration {
        let Some(process) = self.processes.get_mut(&process) else { return Duration::ZERO };
        user_time.saturating_sub(*process.quiet_since.get_or_insert(user_time))
    }

    /// The longest period of the clocks of a process.
    pub(crate) fn longest_period(&self, process: i32) -> Duration {
        let of_process = self.threads.values().filter(|watched| watched.process == process);
        Duration::from_nanos(of_process.map(|watched| watched.period).max().unwrap_or(0))
    }

    /// No thread is told anything any more.
    pub(crate) fn stop_clocks(&self) {
        for watched in self.threads.values() {
            watched.clock.silence();
        }
    }

    /// All threads.
    pub(crate) fn threads_mut(&mut self) -> impl Iterator<Item = (i32, &mut Watched)> {
        self.threads.iter_mut().map(|(thread, watched)| (*thread, watched))
    }

    pub(crate) fn threads_of(&self, process: i32) -> Vec<i32> {
        let of_process = |(thread, watched): (&i32, &Watched)| (watched.process == process).then_some(*thread);
        self.threads.iter().filter_map(of_process).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_code_is_believed_for_a_moment_in_one_program() {
        let map = Mapping {
            start: 0x1000,
            end: 0x2000,
            prot: 5,
            shared: false,
            offset: 0,
            device: (8, 1),
            inode: 7,
            path: b"/lib/it.so".to_vec(),
        };
        let mut tree = Tree::default();
        tree.set_state(3, State::Without);
        let now = Instant::now();
        let later = |milliseconds| now + Duration::from_millis(milliseconds);
        let set = |tree: &mut Tree| tree.set_harmless(3, vec![map.clone()], now);
        set(&mut tree);
        assert_eq!(tree.take_harmless(3, later(900)), std::slice::from_ref(&map));
        assert_eq!(tree.take_harmless(3, now), [], "taken");
        set(&mut tree);
        assert_eq!(tree.take_harmless(3, later(1000)), [], "late");
        set(&mut tree);
        tree.begins_anew(3, Duration::ZERO);
        assert_eq!(tree.take_harmless(3, now), [], "another program");

        // As much code as before is looked at again in a process that gets the agent, and in another program.
        assert!(tree.has_other_code(3, 40) && !tree.has_other_code(3, 40));
        set(&mut tree);
        assert!(tree.has_other_code(3, 40) && !tree.has_other_code(3, 40));
        tree.begins_anew(3, Duration::ZERO);
        assert!(tree.has_other_code(3, 40));
    }
}
