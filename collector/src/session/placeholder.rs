//! Events that never happen: opened for the records that come with any event, or for an id.

use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, EventAttr};

use crate::error::RecordError;
use crate::machine::pmu::EventCode;
use crate::plan::event_spec::{EventSpec, Levels, Period, Role, Unit};
use crate::sys::{EventFd, Scope};

/// An event that never happens, for the records that come with any.
pub(crate) fn tracking() -> EventSpec {
    EventSpec {
        role: Role::Ebs,
        unit: Unit::Other,
        base_name: "dummy".to_owned(),
        code: EventCode { kind: sys::PERF_TYPE_SOFTWARE, config: [u64::from(sys::PERF_COUNT_SW_DUMMY), 0, 0, 0] },
        cpus: None,
        period: Period::Every(1),
        precise: 0,
        levels: Levels::User,
        excludes_guests: false,
        branches: None,
    }
}

/// An event that is open for its id alone.
pub(crate) fn placeholder() -> Result<(EventFd, u64), RecordError> {
    let dummy = EventAttr {
        kind: sys::PERF_TYPE_SOFTWARE,
        config: u64::from(sys::PERF_COUNT_SW_DUMMY),
        flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        ..EventAttr::default()
    };
    EventFd::open(&dummy, Scope::Thread(0, None)).and_then(|fd| fd.id().map(|id| (fd, id))).map_err(RecordError::Enable)
}
