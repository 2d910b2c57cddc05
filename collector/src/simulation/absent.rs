//! What stands here without the cargo feature `simulated-pmu`: a simulation can be asked for, and is refused.

mod settings;

pub use settings::{PmuSettings, SimulatedCore, UnknownCore};

/// What the simulation did: nothing, for there is none.
#[derive(Clone, Debug)]
pub enum SimulationStatistics {}

pub(crate) mod planned {
    //! A session with the simulated PMU, which cannot be planned.

    use perfdata::EventAttr;

    use super::PmuSettings;
    use crate::error::RecordError;
    use crate::plan::Options;
    use crate::plan::choice::Choice;
    use crate::plan::request::Request;
    use crate::session::followed::{Attached, PlannedFollower};

    /// A simulation that is to be begun.
    pub(crate) enum PlannedSimulation {}

    impl PlannedSimulation {
        /// # Errors
        /// There is no simulated PMU in this build.
        pub(crate) fn plan(_: PmuSettings, _: bool, _: &Options) -> Result<(Self, Choice), RecordError> {
            Err(RecordError::Request("built without the simulated PMU (cargo feature simulated-pmu)".to_owned()))
        }
    }

    impl PlannedFollower for PlannedSimulation {
        fn attach(
            self: Box<Self>,
            _: &Request,
            _: Option<u32>,
            _: &EventAttr,
            _: &mut Choice,
        ) -> Result<Option<Attached>, RecordError> {
            match *self {}
        }
    }
}
