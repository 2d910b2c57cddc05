//! The agents of processes that ran before the recording, and go on after it, are taken out again.

use std::thread::sleep;
use std::time::Duration;

use agent::LoadStatus;

use crate::sys::share_memory;
use crate::tracer::agent::engine::AgentEngine;
use crate::tracer::agent::injection::load_status;
use crate::tracer::agent::removal::{release_asked, take_out};
use crate::tracer::agent::residents::{left_over, own_agent};
use crate::tracer::agent::tree::State;
use crate::tracer::kernel::Kernel;
use crate::tracer::kernel::linux::LinuxKernel;
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::waits::may_be_interrupted;

/// How long it may take in all processes together.
const LONGEST: Duration = Duration::from_secs(5);
/// How long an agent may be on its way in.
const LOADING: Duration = Duration::from_millis(50);

/// Takes out the agents of recorders that are gone. Where that fails, the process gets none, and it is said why.
pub(super) fn take_out_what_is_left(processes: &[i32], kernel: &mut LinuxKernel) {
    for &process in processes {
        if let Some(resident) = left_over(process) {
            let _ = take_out(process, &resident, kernel);
        }
    }
}

impl AgentEngine {
    /// Takes the agents out. None gets a signal any more.
    pub(super) fn leave(&mut self) {
        let (began, parents) = (self.kernel.now(), std::mem::take(&mut self.young));
        // Where system calls are filtered, making one again could kill, and nothing is taken out: the kernel lets these threads go. So it does
        // with those that wait where they must not be interrupted.
        let mut asked = self.stops.asked();
        asked.iter().for_each(|asked| self.silence_events(asked.thread));
        asked.retain(|asked| may_be_interrupted(asked.process, asked.thread));
        let events = asked.into_iter().map(|asked| (asked.thread, self.event_of(asked.thread))).collect();
        release_asked(&events, &mut self.kernel);
        if self.settings.command.is_some() {
            return;
        }
        if self.collecting.made_image().is_none() {
            return;
        }
        for process in self.tree.processes() {
            let is_young = self.tree.state(process) == Some(State::Young);
            let parent = parents.iter().find(|(_, young, _)| *young == process).map(|(.., parent)| *parent);
            if is_young && parent.and_then(|parent| share_memory(process, parent)) != Some(false) {
                continue;
            }
            let is_loading = matches!(self.tree.state(process), Some(State::Loading { .. }));
            while is_loading && load_status(process) == LoadStatus::Working && self.kernel.now() < began + LOADING {
                sleep(LOADING / 50);
            }
            self.see_arrived(process);
            let Some(resident) = self.collecting.made_image().and_then(|image| own_agent(process, image)) else {
                continue;
            };
            let is_late = self.kernel.now() > began + LONGEST;
            let done =
                if is_late { Err("there was no time left") } else { take_out(process, &resident, &mut self.kernel) };
            if let Err(why) = done {
                TracerStatistics::count(&mut self.agents.kept, why);
            }
        }
    }
}
