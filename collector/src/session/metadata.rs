//! What a recording says of itself: hbbp's own metadata, as JSON, and the features every `perf.data` has.

use std::time::Duration;

use perf_event_open_sys::bindings as sys;
use perfdata::{BuildIdEntry, Features};
use serde::Serialize;

use crate::machine::Machine;
use crate::plan::branch_filter::branch_filter_text;
use crate::plan::choice::{Choice, Source};
use crate::plan::event_spec::{EventSpec, Levels, Period, Provenance, Role, Unit};
use crate::session::open::Totals;
use crate::session::tally::Counts;
use crate::simulation::SimulationStatistics;
use crate::tracer::TracerStatistics;

/// `hbbp-recording/1`: feature 250 of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct Metadata {
    /// `hbbp-recording/1`.
    pub schema: &'static str,
    /// Version of hbbp that recorded.
    pub version: &'static str,
    /// What the counts come from.
    pub source: Source,
    /// `command`, `processes`, `threads` or `system`.
    pub target: &'static str,
    /// The events, in the order of the recording.
    pub events: Vec<EventMetadata>,
    /// Entries of a full branch stack, where the kernel says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_depth: Option<u32>,
    /// What the software tracer did, if it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracer: Option<TracerStatistics>,
    /// What the simulated PMU did, if it made the samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationStatistics>,
    /// Everything that is less than it could be, in sentences.
    pub degradations: Vec<String>,
    /// Samples and losses.
    #[serde(flatten)]
    pub counts: Counts,
    /// Time from start to stop, ns.
    pub duration_ns: u64,
    /// CPU time of the collector itself, ns.
    pub collector_cpu_ns: u64,
}

/// One event of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct EventMetadata {
    /// Its name in the recording.
    pub name: String,
    /// What its samples are for.
    pub role: Role,
    /// What its period counts.
    pub unit: Unit,
    /// `{"every": N}` or `{"frequency": N}`.
    pub period: Period,
    /// `precise_ip`.
    pub precise: u8,
    /// Levels sampled.
    pub levels: Levels,
    /// Branches its samples hold, in the words of `-j`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branches: Option<String>,
    /// Where those come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Samples in the recording.
    pub samples: u64,
    /// What it counted in all.
    #[serde(flatten)]
    pub totals: Totals,
    /// `perf_event_attr.type`.
    #[serde(skip)]
    kind: u32,
}

/// Below this, the few moments between the readings of two times would look like a share.
const ENOUGH_TIME_NS: u64 = 100_000_000;

impl EventMetadata {
    pub(crate) fn new(spec: &EventSpec, samples: u64, totals: Totals) -> Self {
        Self {
            name: spec.name(),
            role: spec.role,
            unit: spec.unit,
            period: spec.period,
            precise: spec.precise,
            levels: spec.levels,
            branches: spec.branches.map(branch_filter_text),
            provenance: spec.branches.map(|_| Provenance::Hardware),
            samples,
            totals,
            kind: spec.code.kind,
        }
    }

    /// A sentence if it counted less than it was to, though it has all CPUs. Only a PMU's counters are shared: software events,
    /// tracepoints and breakpoints always count.
    fn multiplexed(&self, machine: &Machine) -> Option<String> {
        let Totals { enabled_ns, running_ns, .. } = self.totals;
        let share = running_ns as f64 / enabled_ns.max(1) as f64;
        let on_counter = match self.kind {
            sys::PERF_TYPE_HARDWARE | sys::PERF_TYPE_HW_CACHE | sys::PERF_TYPE_RAW => true,
            kind => machine
                .core_pmus()
                .chain(machine.pmu("ibs_op"))
                .chain(machine.pmu("ibs_fetch"))
                .any(|pmu| pmu.kind == kind),
        };
        (on_counter && enabled_ns >= ENOUGH_TIME_NS && share < 0.99).then(|| {
            format!(
                "{}: it counted {:.1} % of the time, other events had the counters for the rest",
                self.name,
                share * 100.0
            )
        })
    }
}

impl Metadata {
    /// `all_cpus`: the events were to count wherever their threads run.
    pub(crate) fn new(
        choice: &Choice,
        machine: &Machine,
        target: &'static str,
        events: Vec<EventMetadata>,
        all_cpus: bool,
    ) -> Self {
        let depth = machine.core_pmus().find_map(|pmu| pmu.cap("branches")).filter(|&depth| depth > 0);
        let mut degradations = choice.degradations.clone();
        if all_cpus {
            degradations.extend(events.iter().filter_map(|event| event.multiplexed(machine)));
        }
        Self {
            schema: "hbbp-recording/1",
            version: env!("CARGO_PKG_VERSION"),
            source: choice.source,
            target,
            events,
            branch_depth: depth.filter(|_| choice.source == Source::BranchRecords),
            tracer: None,
            simulation: None,
            degradations,
            counts: Counts::default(),
            duration_ns: 0,
            collector_cpu_ns: 0,
        }
    }
}

/// CPU time this process has used.
pub(crate) fn own_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The features of a recording.
pub(crate) fn features(
    machine: &Machine,
    metadata: &Metadata,
    cmdline: &[String],
    build_ids: Vec<BuildIdEntry>,
    sample_time: Option<(u64, u64)>,
) -> Features {
    let mut mappings: Vec<(u32, String)> = machine.pmus.iter().map(|pmu| (pmu.kind, pmu.name.clone())).collect();
    mappings.sort();
    let pairs =
        |caps: &std::collections::BTreeMap<String, String>| caps.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let cpu_pmu_caps: Vec<(String, String)> = machine.pmu("cpu").map(|pmu| pairs(&pmu.caps)).unwrap_or_default();
    let hybrid = machine.core_pmus().filter_map(|pmu| Some((pmu.name.clone(), pmu.cpus.as_ref()?.to_string())));
    Features {
        hostname: Some(machine.kernel.hostname.clone()),
        os_release: Some(machine.kernel.release.clone()),
        version: Some(format!("hbbp {}", env!("CARGO_PKG_VERSION"))),
        arch: Some(machine.kernel.arch.clone()),
        cpu_desc: Some(machine.cpu.name.clone()),
        cpuid: Some(machine.cpuid()),
        nr_cpus: Some((machine.present, machine.online.len() as u32)),
        total_mem: Some(machine.memory_kb),
        cmdline: cmdline.to_vec(),
        build_ids,
        pmu_mappings: mappings,
        sample_time,
        branch_stack: metadata.events.iter().any(|event| event.branches.is_some()),
        cpu_pmu_caps,
        hybrid_topology: hybrid.collect(),
        hbbp: serde_json::to_vec(metadata).ok(),
        ..Features::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::pmu::{EventCode, Pmu};

    /// What is said of an event of type `kind` that counted for `running_ms` of `enabled_ms`.
    fn degradations(kind: u32, enabled_ms: u64, running_ms: u64) -> Vec<String> {
        let pmu = |name: &str, kind| Pmu { name: name.into(), kind, ..Pmu::default() };
        let machine = Machine { pmus: vec![pmu("cpu_atom", 10), pmu("uprobe", 9)], ..Machine::default() };
        let spec = EventSpec {
            role: Role::Ebs,
            unit: Unit::Other,
            base_name: "event".into(),
            code: EventCode::new(kind, 0),
            cpus: None,
            period: Period::Every(1000),
            precise: 0,
            levels: Levels::All,
            excludes_guests: false,
            branches: None,
        };
        let totals =
            Totals { enabled_ns: enabled_ms * 1_000_000, running_ns: running_ms * 1_000_000, ..Totals::default() };
        let choice = Choice { source: Source::Other, events: vec![spec.clone()], degradations: Vec::new() };
        Metadata::new(&choice, &machine, "command", vec![EventMetadata::new(&spec, 1, totals)], true).degradations
    }

    #[test]
    fn sharing_of_counters_is_said_of_events_that_have_counters() {
        for kind in [sys::PERF_TYPE_HARDWARE, sys::PERF_TYPE_HW_CACHE, sys::PERF_TYPE_RAW, 10] {
            let said = degradations(kind, 1000, 500);
            assert_eq!(said, ["event: it counted 50.0 % of the time, other events had the counters for the rest"]);
            assert_eq!(degradations(kind, 1000, 995), [""; 0], "{kind}");
        }
        // The ninth is a probe in a program.
        for kind in [sys::PERF_TYPE_SOFTWARE, sys::PERF_TYPE_TRACEPOINT, sys::PERF_TYPE_BREAKPOINT, 9] {
            assert_eq!(degradations(kind, 1000, 500), [""; 0], "{kind}");
        }
    }

    #[test]
    fn a_share_of_a_short_time_says_nothing() {
        assert_eq!(degradations(sys::PERF_TYPE_RAW, 99, 50), [""; 0]);
        assert_eq!(degradations(sys::PERF_TYPE_RAW, 100, 50).len(), 1);
    }
}
