//! Processes whose memory another process serves (userfaultfd(2), FUSE) have no agent: what it reads would be served before the program comes there, by one
//! who may wait for what the program does until then.

use std::time::{Duration, Instant};

use crate::sys::Server;
use crate::sys::process::{Mapping, has_userfaultfd};
use crate::tracer::agent::engine::AgentEngine;
use crate::tracer::agent::injection::Refusal;
use crate::tracer::agent::quiet::LOOKS;
use crate::tracer::kernel::{Kernel, Processes};
use crate::tracer::turns::Turns;

/// Why.
pub(super) const SERVED: &str = "another process serves its memory (userfaultfd, FUSE)";
/// How often at most processes are looked at, and how small a share of the time that takes: processes may have many files.
const LOOK: Duration = Duration::from_millis(200);
const SHARE: u32 = 1000;

/// Whose turn it is to be looked at, and when.
pub(super) struct Looks {
    turns: Turns,
    next: Instant,
}

impl Looks {
    pub(super) fn new(now: Instant) -> Self {
        Self { turns: Turns::default(), next: now }
    }
}

impl AgentEngine {
    /// Whether another process, or another thread, may serve memory of a process that has these mappings.
    pub(super) fn is_served(&self, process: i32, maps: &[Mapping]) -> bool {
        // There are few file systems, and looking at one takes a system call or two.
        let mut maps: Vec<&Mapping> = maps.iter().filter(|map| map.inode != 0).collect();
        maps.sort_unstable_by_key(|map| map.device);
        maps.dedup_by_key(|map| map.device);
        let of_process = |map: &Mapping| self.kernel.server(process, map) == Some(Server::Process);
        has_userfaultfd(process as u32) || maps.into_iter().any(of_process)
    }

    /// Looks whether memory of processes with an agent is served by now.
    pub(super) fn look_for_served(&mut self) {
        let (now, began) = (self.kernel.now(), self.kernel.own_time());
        if now < self.served.next {
            return;
        }
        for process in self.served.turns.next(self.tree.with_agent().into_iter(), LOOKS) {
            if !self.stops.is_under_way(process)
                && !self.is_off(process)
                && self.is_served(process, &self.kernel.mappings(process))
            {
                self.refused(process, process, Refusal::Never(SERVED));
            }
        }
        let took = self.kernel.own_time().saturating_sub(began);
        self.served.next = now + LOOK.max(took * SHARE);
    }
}
