//! What stands here without the cargo feature `simulated-pmu`: a simulation can be asked for, and is refused.

mod settings;

pub use settings::{PmuSettings, SimulatedCore, UnknownCore};

use formats::metadata::SimulationMetadata;

/// What the simulation did: nothing, for there is none.
#[derive(Clone, Debug)]
pub enum SimulationStatistics {}

impl SimulationStatistics {
    /// What the metadata says of it.
    pub(crate) fn metadata(&self) -> SimulationMetadata {
        match *self {}
    }

    /// What is less than it could be, in sentences.
    pub(crate) fn degradations(&self) -> Vec<String> {
        match *self {}
    }
}

pub(crate) mod planned {
    //! A session with the simulated PMU, which cannot be planned.

    use std::sync::Arc;

    use formats::metadata::{EventMetadata, SimulationMetadata};
    use perfdata::{EventAttr, EventDescription};

    use super::{PmuSettings, SimulationStatistics};
    use crate::error::RecordError;
    use crate::plan::Wishes;
    use crate::plan::choice::Choice;
    use crate::session::open::Totals;
    use crate::tracer::Shared;

    /// The simulation at work.
    pub(crate) enum Simulation {}

    impl Simulation {
        pub(crate) fn shared(&self) -> Arc<Shared> {
            match *self {}
        }

        pub(crate) fn stop(self) -> Option<SimulationStatistics> {
            match self {}
        }
    }

    /// A simulation that is to be begun.
    pub(crate) enum PlannedSimulation {}

    impl PlannedSimulation {
        pub(crate) fn settings(&self) -> SimulationMetadata {
            match *self {}
        }

        /// # Errors
        /// There is no simulated PMU in this build.
        pub(crate) fn plan(_: PmuSettings, _: bool, _: &Wishes) -> Result<(Self, Choice), RecordError> {
            Err(RecordError::Request("built without the simulated PMU (cargo feature simulated-pmu)".to_owned()))
        }

        pub(crate) fn descriptions(&self, _: &EventAttr) -> [EventDescription; 2] {
            match *self {}
        }

        /// # Errors
        /// None: it cannot be called.
        pub(crate) fn begin(&self, _: u32, _: &[EventDescription; 2]) -> Result<Simulation, RecordError> {
            match *self {}
        }

        pub(crate) fn metadata(&self) -> [EventMetadata; 2] {
            match *self {}
        }

        pub(crate) fn totals(_: Option<&SimulationStatistics>) -> [Totals; 2] {
            [Totals::default(), Totals::default()]
        }
    }
}
