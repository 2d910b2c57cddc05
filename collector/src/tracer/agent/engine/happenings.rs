//! What the program does: threads begin and end, processes fork and become other programs.

use std::collections::HashSet;

use perfdata::{AttrFlags, EventAttr};

use crate::errno::Errno;
use crate::sys::process::{exists, is_alive};
use crate::sys::{own_thread, realtime_signal, share_memory};
use crate::tracer::agent::engine::{AgentEngine, YOUNG};
use crate::tracer::agent::injection::lets_through;
use crate::tracer::agent::sideband::Happening;
use crate::tracer::agent::tree::{State, Watched};
use crate::tracer::burst::ThreadId;
use crate::tracer::kernel::{Kernel, Processes};
use crate::tracer::statistics::TracerStatistics;

/// Files that clocks leave to others: to breakpoints, to what is read of processes, to the recording and the copies that it makes.
const FILES_FOR_OTHERS: u64 = 16;

impl AgentEngine {
    pub(super) fn see_happenings(&mut self) {
        let began = self.kernel.own_time();
        let happened = self.sideband.happened();
        // What is over already needs no clock.
        let ended: HashSet<i32> = happened.iter().filter_map(|(_, happening)| happening.ended_thread()).collect();
        for (time, happening) in happened {
            // Of a CPU, what all processes do is told.
            if self.is_by_cpu() && !self.is_of_known(&happening) {
                continue;
            }
            match happening {
                // By CPU, what it has begun meanwhile is known by it.
                Happening::Exec { process: thread } | Happening::Begin { thread, .. }
                    if ended.contains(&thread) && !self.is_by_cpu() => {}
                // Nothing is followed but what was there.
                Happening::Begin { .. } if !self.settings.inherit => {}
                Happening::Exec { process } if !self.settings.inherit && !self.was_there(process) => {}
                // It was there already when it was listed.
                Happening::Begin { thread, .. } if self.tree.get(thread).is_some_and(|watched| watched.begun == 0) => {}
                Happening::Exec { process } => self.became_another_program(process, time),
                Happening::Begin { process, thread, parent } if process == parent => {
                    self.watch(process, thread, 1.0, time);
                }
                Happening::Begin { process, parent, .. } => self.forked(process, parent),
                Happening::End { process, thread } => self.ended(process, thread),
            }
        }
        self.looking += self.kernel.own_time().saturating_sub(began);
    }

    fn was_there(&self, process: i32) -> bool {
        self.settings.command == Some(process) || self.tree.state(process).is_some()
    }

    /// What the process was before is gone with its threads. Those that the new program has begun may be known already.
    fn became_another_program(&mut self, process: i32, time: u64) {
        let threads = self.tree.threads_of(process).into_iter();
        let begun = threads.filter_map(|thread| Some((thread, self.tree.get(thread)?.begun)));
        let (before, after): (Vec<_>, Vec<_>) = begun.partition(|(_, begun)| *begun < time);
        for (thread, _) in before {
            self.stop_watching(thread);
        }
        self.tree.set_state(process, State::Without);
        self.owed.remove(&process);
        self.on_the_way.remove(&process);
        self.visits.forget_process(process);
        if self.settings.group.is_some() {
            // It may have come into the group without being seen.
            self.budget.count_process(process, &self.kernel);
        }
        self.shared.made_code().begins_anew(process as u32);
        self.tree.begins_anew(process, self.kernel.cpu_time(process).unwrap_or_default());
        self.stops.forget_waiting(process);
        self.forget_followed(process);
        self.kernel.forget_let_through(process);
        // The clock that was to stop it is no more.
        if self.stops.is_under_way(process) && self.kernel.interrupt(process).is_err() {
            // It was another thread, which is gone.
            self.stops.forget(process);
        }
        // Their clocks told an agent that is no more.
        for (thread, begun) in after {
            self.watch(process, thread, 1.0, begun);
        }
        self.watch(process, process, self.attention.part(), time);
    }

    /// A child of fork has its parent's agent, one of vfork its parent's memory.
    fn forked(&mut self, process: i32, parent: i32) {
        self.budget.process_begins(process);
        if self.is_by_cpu() {
            // It has its turns like any other: nothing is begun with it.
            return self.tree.set_state(process, State::Without);
        }
        self.tree.set_state(process, State::Young);
        let begun = self.kernel.now();
        self.young.push_back((begun, process, parent));
        self.next_tick = self.next_tick.min(begun + 2 * YOUNG);
    }

    pub(super) fn watch_grown_up(&mut self) {
        let now = self.kernel.now();
        while self.young.front().is_some_and(|(begun, ..)| now >= *begun + YOUNG)
            && let Some((_, process, parent)) = self.young.pop_front()
        {
            if self.tree.state(process) != Some(State::Young) {
                continue;
            }
            // Where the kernel does not say, nothing is risked: what an agent writes there the parent would find. A parent that is gone has
            // no memory.
            let has_agents = self.settings.kind.has_agents();
            if has_agents && share_memory(process, parent) != Some(false) && exists(parent as u32) {
                continue;
            }
            self.tree.set_state(process, State::Without);
            for thread in self.kernel.threads(process) {
                self.watch(process, thread, 1.0, 0);
            }
        }
    }

    /// Opens the clock of a thread, unless it has its turns by those of CPUs. The first burst comes within this part of a period.
    pub(super) fn watch(&mut self, process: i32, thread: i32, part: f64, begun: u64) {
        if !self.is_by_cpu() {
            let mean = self.budget.period();
            // A first overflow may come at any time: threads that live shorter than a period get their share.
            let first = self.by_chance(mean * part);
            self.open_clock(process, thread, mean, Some(first), begun);
        }
    }

    /// Opens the clock of a thread, which tells the tracer, or the agent if the process has it. The burst after its first overflow stands for
    /// `mean`, ns. Without a first overflow the clock stands.
    pub(super) fn open_clock(&mut self, process: i32, thread: i32, mean: f64, first: Option<u64>, begun: u64) {
        let state = self.tree.state(process).unwrap_or(State::Without);
        if state == State::Young || self.tree.is_left_out(process) {
            return;
        }
        let attr = self.settings.clock.attr();
        // Since Linux 5.13.
        let on_exec = EventAttr { flags: attr.flags | AttrFlags::REMOVE_ON_EXEC, ..attr.clone() };
        let opened = self.kernel.open(&on_exec, thread).or_else(|_| self.kernel.open(&attr, thread));
        let files = if self.tree.thread_count() == 0 && !self.is_by_cpu() { 0 } else { FILES_FOR_OTHERS };
        let clock = match opened.and_then(|clock| clock.leaving_room_for(files)) {
            Ok(clock) => clock,
            Err(errno) if errno.is_permission() => return self.bar(process),
            Err(Errno::EMFILE) => return self.has_no_file(thread),
            Err(_) => return,
        };
        // A short period that went on would leave the thread no time of its own.
        let (whom, signal, tells_agent) = match state {
            State::With { signal } if lets_through(thread, signal) => (thread, signal, true),
            _ => (own_thread(), realtime_signal(), false),
        };
        let period = first.unwrap_or(mean as u64);
        let started = clock.signal_to(whom, signal).and_then(|()| clock.set_period(period));
        let is_off = self.is_off(process);
        let stands = is_off || first.is_none();
        if started.and_then(|()| if stands { Ok(()) } else { clock.once() }).is_err() {
            return;
        }
        if self.tree.get(thread).is_some() {
            self.stop_watching(thread);
        }
        let number = clock.number();
        let (new_thread, new_process) = self.tree.add(
            thread,
            Watched {
                process,
                begun,
                clock,
                period,
                stands: tells_agent,
                will_overflow: !stands,
                tells_agent,
                is_off,
                tries: 0,
                computes: false,
            },
        );
        let mut held = self.collecting.held();
        held.clocks.insert(number, (ThreadId { pid: process, tid: thread }, mean as u64));
        // With turns, clocks come and go.
        let new_thread = if self.is_by_cpu() { self.turned.insert(thread) } else { new_thread };
        held.statistics.threads += u64::from(new_thread);
        held.statistics.processes += u64::from(new_process);
        drop(held);
        if tells_agent {
            self.stands(thread);
        }
    }

    /// A thread gets no clock: no more files may be open.
    fn has_no_file(&mut self, thread: i32) {
        if self.is_by_cpu() {
            // It may have one at its next turn.
            self.agents.put_off += 1;
            return;
        }
        let is_first_time = self.without_file.insert(thread);
        self.collecting.held().statistics.threads_without_file += u64::from(is_first_time);
    }

    pub(super) fn stop_watching(&mut self, thread: i32) {
        // What it has left in the slots is still its own.
        if let (Some(image), Some(watched)) = (self.collecting.made_image(), self.tree.get(thread)) {
            let number = watched.clock.number();
            image.slots.release(|event| event == number);
        }
        self.collecting.collect(&self.shared);
        self.visits.forget_thread(thread);
        if let Some(number) = self.tree.remove(thread) {
            self.collecting.held().clocks.remove(&number);
            if let Some(image) = self.collecting.made_image() {
                let left = image.slots.reclaim(|event| event == number);
                if left > 0
                    && let Some(checks) = &mut self.collecting.held().statistics.checks
                {
                    TracerStatistics::add(&mut checks.unfinished, "its thread has ended", left);
                }
            }
        }
    }

    pub(super) fn ended(&mut self, process: i32, thread: i32) {
        self.starting.ended(thread);
        self.without_file.remove(&thread);
        self.turned.remove(&thread);
        self.owed.remove(&thread);
        self.stop_watching(thread);
        // The other threads of one whose threads have no clocks are not known.
        // A thread that has called exec has the number of the first one, which has ended.
        if self.is_by_cpu() && (!self.last_threads.ends(process as u32, thread as u32) || is_alive(process as u32)) {
            return;
        }
        if self.tree.is_left_out(process) && self.kernel.threads(process).iter().any(|id| is_alive(*id as u32)) {
            return;
        }
        if self.tree.forget(process) {
            self.on_the_way.remove(&process);
            self.visits.forget_process(process);
            self.shared.made_code().ended(process as u32);
            self.budget.thread_ends(process, &self.kernel);
        }
    }
}
