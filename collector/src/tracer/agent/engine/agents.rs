//! Which processes have the agent, and whether the clocks of their threads come through to it.

use std::time::{Duration, Instant};

use agent::LoadStatus;

use crate::sys::process::{guards, user_time};
use crate::tracer::agent::engine::serving::SERVED;
use crate::tracer::agent::engine::{AgentEngine, SOON_SEEN};
use crate::tracer::agent::filter_makers::makes_filters;
use crate::tracer::agent::injection::{Refusal, lets_through, load_status, own_filters, waits_for};
use crate::tracer::agent::quiet::{LOOKS, longest_quiet};
use crate::tracer::agent::tree::State;
use crate::tracer::kernel::{Kernel, Processes};
use crate::tracer::statistics::TracerStatistics;

/// Threads that are turned to the agent at once.
const MANY: usize = 16;
/// The first burst of a thread comes as soon after it is turned to the agent as this, ns of CPU time, if its moment was chosen before.
const FIRST_PERIOD: u64 = 50_000;
/// How often at most processes are looked after.
const LOOK_AFTER: Duration = Duration::from_millis(200);
/// How long a clock waits for a first burst,
const LONGEST_STAND: Duration = Duration::from_secs(1);
/// and how long before it is looked whether the thread blocks the signal; then twice as long, and so on.
const BLOCKED: Duration = Duration::from_millis(20);

/// A thread whose clock overflows once and stands then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    thread: i32,
    since: Instant,
    next_look: Instant,
}

impl AgentEngine {
    /// From now on its clocks tell the agent.
    pub(super) fn has_agent(&mut self, process: i32, signal: i32) {
        self.tree.set_state(process, State::With { signal });
        self.stops.forget_waiting(process);
        let threads = self.tree.threads_of(process);
        let are_many = threads.len() > MANY;
        for thread in threads {
            let Some(watched) = self.tree.get(thread) else { continue };
            // Of many, most may not compute: each is looked at when its clock overflows.
            if watched.tells_agent || are_many && watched.will_overflow {
                continue;
            }
            if !lets_through(thread, signal) {
                self.begin_visits(thread);
            } else {
                self.let_agent_know(thread, signal);
            }
        }
    }

    /// The clock of a thread, which has overflowed, tells the agent from now on, at once.
    pub(super) fn let_agent_know_at_once(&mut self, thread: i32, signal: i32) {
        self.let_agent_know(thread, signal);
        if let Some(watched) = self.tree.get_mut(thread) {
            watched.arm(FIRST_PERIOD);
        }
    }

    /// The clock of a thread tells the agent from now on, first at a moment that chance chooses.
    pub(super) fn let_agent_know(&mut self, thread: i32, signal: i32) {
        let first = self.by_chance(self.budget.period());
        let Some(watched) = self.tree.get_mut(thread) else { return };
        let _ = watched.clock.disable();
        let _ = watched.clock.signal_to(thread, signal);
        (watched.tells_agent, watched.stands) = (true, true);
        watched.arm(first);
        let _ = watched.start_once();
        self.stands(thread);
    }

    /// From now on a thread is stopped for its bursts.
    fn begin_visits(&mut self, thread: i32) {
        let next = self.by_chance(self.budget.period());
        let Some(watched) = self.tree.get_mut(thread) else { return };
        watched.tell_tracer();
        watched.tries = 0;
        watched.arm(next);
    }

    /// Looks whether agents could be mapped.
    pub(super) fn see_loaded(&mut self) {
        for (process, signal) in self.tree.loading() {
            let threads = self.tree.threads_of(process).len().min(self.cpus) as u32;
            let Some(way) = self.on_the_way.get(&process) else { continue };
            match way.status(process, threads) {
                LoadStatus::Loaded => {
                    self.see_arrived(process);
                    self.has_agent(process, signal);
                }
                LoadStatus::Working => {}
                LoadStatus::Failed => {
                    self.see_arrived(process);
                    self.agents.injected -= 1;
                    self.refused(
                        process,
                        process,
                        Refusal::Never("it could not map the agent (another namespace, a limit?)"),
                    );
                }
            }
        }
    }

    /// Takes away what a thread needed to map the agent, if it has. One that has not come may do so at any time.
    pub(super) fn see_arrived(&mut self, process: i32) {
        if load_status(process) != LoadStatus::Working
            && let Some(way) = self.on_the_way.remove(&process)
        {
            way.has_come(process);
        }
    }

    pub(super) fn refused(&mut self, process: i32, thread: i32, refusal: Refusal) {
        match refusal {
            Refusal::NotNow => self.try_again(thread),
            Refusal::Never(why) => {
                TracerStatistics::count(&mut self.agents.refused, why);
                self.tree.set_state(process, State::Visited);
                self.stops.forget_waiting(process);
                for thread in self.tree.threads_of(process) {
                    self.begin_visits(thread);
                }
            }
            Refusal::Barred => {
                self.bar(process);
                self.stop_watching_all(process);
            }
            Refusal::Bits32 => {
                let is_first = self.tree.leave_out(process, State::Bits32);
                self.collecting.held().statistics.processes_of_32_bits += u64::from(is_first);
                self.stops.forget_waiting(process);
                self.stop_watching_all(process);
            }
        }
    }

    /// Its threads have no clocks any more.
    fn stop_watching_all(&mut self, process: i32) {
        for thread in self.tree.threads_of(process) {
            self.stop_watching(thread);
        }
    }

    /// A process that may not be traced.
    pub(super) fn bar(&mut self, process: i32) {
        self.agents.barred += u64::from(self.tree.leave_out(process, State::Barred));
    }

    /// Looks whether processes with an agent have begun to filter their system calls, or can do so by now: the agent's might not be let through.
    pub(super) fn look_after(&mut self) {
        self.next_look_after = self.kernel.now() + LOOK_AFTER;
        for process in self.turns.next(self.tree.with_agent().into_iter(), LOOKS) {
            // The clock that is to stop a thread must not be sent elsewhere.
            if self.stops.is_under_way(process) || self.is_off(process) {
                continue;
            }
            let user_time = user_time(process as u32).unwrap_or_default();
            let guards = guards(process as u32);
            let why = if guards.filters > own_filters() {
                "it began to filter its system calls (seccomp)"
            } else if self.tree.has_other_code(process, guards.code)
                && let Some(why) = self.harm_of_code(process)
            {
                why
            } else if self.starting.is_over()
                && self.tree.quiet_for(process, user_time) > longest_quiet(self.tree.longest_period(process))
            {
                "the clock's signal does not come through: blocked, or the program has a handler for it now"
            } else {
                continue;
            };
            self.refused(process, process, Refusal::Never(why));
        }
    }

    /// What harm the agent does by now in a process that has other code.
    fn harm_of_code(&mut self, process: i32) -> Option<&'static str> {
        let maps = self.kernel.mappings(process);
        if self.is_served(process, &maps) {
            return Some(SERVED);
        }
        let mut harmless = self.tree.take_harmless(process, self.kernel.now());
        let makes_none = makes_filters(process, &maps, &mut harmless, &self.settings.searched) == Some(false);
        (!makes_none).then_some("it loaded code that makes filters of system calls (seccomp)")
    }

    /// The clock of a thread overflows once, until its burst is seen, which is soon.
    pub(super) fn stands(&mut self, thread: i32) {
        let now = self.kernel.now();
        self.standing.push(Standing { thread, since: now, next_look: now + BLOCKED });
        self.last_stand = Some(now);
        self.next_tick = self.next_tick.min(now + SOON_SEEN);
    }

    /// A clock that overflows once, and whose burst does not come, is started again.
    pub(super) fn start_standing(&mut self) {
        let now = self.kernel.now();
        let mut looks = LOOKS;
        for Standing { thread, since, mut next_look } in std::mem::take(&mut self.standing) {
            let Some(watched) = self.tree.get(thread).filter(|watched| watched.stands) else { continue };
            if now >= next_look
                && looks > 0
                && let Some(State::With { signal }) = self.tree.state(watched.process)
            {
                looks -= 1;
                if waits_for(thread, signal) {
                    self.begin_visits(thread);
                    continue;
                }
                next_look = now + (now - since);
            }
            let waits = now < since + LONGEST_STAND;
            if !waits {
                // If it has overflowed, and the burst failed, this starts it; one that has not is left as it is.
                watched.go_on();
            }
            self.standing.push(Standing { thread, since: if waits { since } else { now }, next_look });
        }
    }
}
