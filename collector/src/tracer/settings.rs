//! How the tracer is to trace.

use std::sync::Arc;
use std::time::Duration;

use formats::metadata::TracerMetadata;
use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, EventAttr, ReadFormat};

use crate::sys::control_group::ControlGroup;
use crate::tracer::agent::searched_files::SearchedFiles;
use crate::tracer::options::{BurstEnd, TracerKind};
use crate::tracer::statistics::nanoseconds;

/// How the tracer is to trace, and how much it may cost.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) kind: TracerKind,
    pub(crate) end: BurstEnd,
    /// What recording may take, in percent of the threads' CPU time.
    pub(crate) overhead: f64,
    /// What it may take on top of that in the first seconds of CPU time.
    pub(crate) start_credit: Duration,
    /// The part of it that is for bursts.
    pub(crate) burst_share: f64,
    /// Follow threads and processes that start later.
    pub(crate) inherit: bool,
    /// The command, which begins to run when tracing has begun.
    pub(crate) command: Option<i32>,
    /// The process of the command, whoever is recorded: the recorder waits for it, and who traces it is told first how it ends.
    pub(crate) waited_for: Option<i32>,
    /// Whose bursts clocks of CPUs start; `None`: clocks of threads do.
    pub(crate) by_cpu: Option<ByCpu>,
    /// The control group that is recorded, if one is: who is in it may change.
    pub(crate) group: Option<ControlGroup>,
    pub(crate) clock: Clock,
    /// What is known of the code of files before a process gets an agent.
    pub(crate) searched: Arc<SearchedFiles>,
}

/// Who is recorded where clocks of CPUs start the bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByCpu {
    /// Processes, and all that they start: not everything that the clocks see.
    Family,
    /// What is in the control group, which is all that the clocks see.
    Group,
    /// Everything that runs.
    Everything,
}

impl Settings {
    /// Whether threads are traced for moments only: each is stopped for its burst and let go, or takes it itself. Breakpoints need tracing all
    /// the time, and so do clocks that count something else than time.
    pub(crate) fn visits(&self) -> bool {
        self.kind.has_agents() || self.kind == TracerKind::Lookahead && self.clock == Clock::Time
    }

    /// What is known of the tracer before it has done anything.
    pub(crate) fn metadata(&self) -> TracerMetadata {
        let start_credit_ns = nanoseconds(self.start_credit);
        TracerMetadata { start_credit_ns, ..self.end.metadata(self.kind, self.overhead) }
    }
}

#[cfg(test)]
impl Settings {
    /// Looking ahead at what runs already, for a test.
    pub(crate) fn of_test(end: BurstEnd, overhead: f64) -> Self {
        Self {
            kind: TracerKind::Lookahead,
            end,
            overhead,
            start_credit: Duration::ZERO,
            burst_share: 1.0,
            inherit: true,
            command: None,
            waited_for: None,
            by_cpu: None,
            group: None,
            clock: Clock::Time,
            searched: Arc::default(),
        }
    }
}

/// What starts a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The CPU time of the thread.
    Time,
    /// Instructions in user space, where the machine counts them.
    Instructions,
}

impl Clock {
    /// The event of a thread. It counts, with the time it counted, and tells of one overflow at a time.
    pub(crate) fn attr(self) -> EventAttr {
        let (kind, config) = match self {
            Self::Time => (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_TASK_CLOCK),
            Self::Instructions => (sys::PERF_TYPE_HARDWARE, sys::PERF_COUNT_HW_INSTRUCTIONS),
        };
        EventAttr {
            kind,
            config: u64::from(config),
            sample_period_or_freq: 1_000_000_000,
            read_format: ReadFormat::TOTAL_TIME_RUNNING,
            flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            wakeup_events_or_watermark: 1,
            ..EventAttr::default()
        }
    }
}
