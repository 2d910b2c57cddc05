//! What stands here without the cargo feature `simulated-pmu`: a session with the simulated PMU cannot be planned.

use perfdata::EventAttr;

use crate::error::RecordError;
use crate::plan::Options;
use crate::plan::choice::Choice;
use crate::plan::request::Request;
use crate::session::followed::{Attached, PlannedFollower};
use crate::simulation::PmuSettings;

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
        _: Option<&EventAttr>,
        _: &mut Choice,
    ) -> Result<Option<Attached>, RecordError> {
        match *self {}
    }
}
