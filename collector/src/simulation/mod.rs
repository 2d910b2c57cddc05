//! Runs a command under the eyes of the simulated PMU: every instruction of it is interpreted, and takes effect.
//!
//! ```text
//! thread stands still -> registers, pages                       slice
//!   interpret, as long as it can be; trace -> PMU -> samples    lookahead, simulated_pmu
//!   write changed memory and registers back                     slice
//!   system call, signal, what is not interpreted: one step of the thread itself
//! thread stands still -> ...                                    engine
//! ```
//!
//! The program truly runs: what it sees is what it would see without, but for the time it takes, and that its threads, which run one after
//! the other, meet in fewer ways. A slice ends before everything that the kernel has to see. While a thread is interpreted, no other
//! runs, unless it is in the kernel: what that writes is not overwritten, as only bytes that were changed are written back.
//!
//! Not followed: 32-bit programs (let go and counted), and code of the kernel. Not exact: memory that others who are not simulated write
//! to at the same time, and memory that is mapped twice in one process.

mod engine;
pub mod pmu;
mod settings;
mod slice;
mod statistics;
mod thread;
mod truth;

use std::sync::mpsc::Sender;

use crate::simulation::engine::Simulator;
use crate::simulation::pmu::SampledEvents;
pub use crate::simulation::settings::{PmuSettings, SimulatedCore, UnknownCore};
pub use crate::simulation::statistics::SimulationStatistics;
pub use crate::simulation::truth::Truth;
use crate::tracer::kernel::linux::LinuxKernel;
use crate::tracer::{AttachError, BurstEvent, Follower};

/// What to simulate, and how.
#[derive(Clone, Debug)]
pub(crate) struct SimulationSettings {
    pub(crate) pmu: PmuSettings,
    pub(crate) sampled: SampledEvents,
    /// The process that is about to become the command.
    pub(crate) command: i32,
    /// The events of the samples: of instructions, and of taken branches.
    pub(crate) events: [BurstEvent; 2],
    /// Interpret nothing, step through everything: slow, to compare with.
    pub(crate) only_steps: bool,
}

impl Follower<SimulationStatistics> {
    /// Becomes the tracer of the command; its simulation begins with its exec.
    ///
    /// # Errors
    /// It cannot be traced, and why.
    pub(crate) fn simulate(settings: SimulationSettings) -> Result<Self, AttachError> {
        Self::begin("hbbp-simulator", move |shared, signals, result: Sender<Result<(), AttachError>>| {
            let mut simulator = Simulator::new(settings, shared, LinuxKernel::of_programs_that_end_with_it(signals));
            let attached = simulator.attach();
            let failed = attached.is_err();
            let _ = result.send(attached);
            if failed { simulator.nothing() } else { simulator.run() }
        })
    }
}
