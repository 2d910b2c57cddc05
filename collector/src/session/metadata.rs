//! What a recording says of itself: hbbp's own metadata, as JSON, and the features every `perf.data` has.

use std::time::Duration;

use formats::metadata::{EventMetadata, FEATURE, Metadata, SCHEMA};
use perf_event_open_sys::bindings as sys;
use perfdata::{BuildIdEntry, FeatureBit, Features};

use crate::machine::Machine;
use crate::plan::branch_filter::branch_filter_text;
use crate::plan::choice::{Choice, Source};
use crate::plan::event_spec::{EventSpec, Provenance};
use crate::session::open::Totals;

/// Below this, the few moments between the readings of two times would look like a share.
const ENOUGH_TIME_NS: u64 = 100_000_000;

/// What the metadata says of an event: what is known when it is opened.
pub(crate) fn event_metadata(spec: &EventSpec) -> EventMetadata {
    EventMetadata {
        name: spec.name(),
        role: Some(spec.role),
        unit: Some(spec.unit),
        period: Some(spec.period),
        precise: Some(spec.precise),
        levels: Some(spec.levels),
        branches: spec.branches.map(branch_filter_text),
        provenance: spec.branches.map(|_| Provenance::Hardware),
        ..EventMetadata::default()
    }
}

/// The same with what came of it.
pub(crate) fn counted_event(event: EventMetadata, samples: u64, totals: Totals) -> EventMetadata {
    EventMetadata {
        samples: Some(samples),
        counted: Some(totals.counted),
        enabled_ns: Some(totals.enabled_ns),
        running_ns: Some(totals.running_ns),
        lost: Some(totals.lost),
        ..event
    }
}

/// A sentence if an event counted less than it was to, though it has all CPUs. Only a PMU's counters are shared: software events,
/// tracepoints and breakpoints always count.
pub(crate) fn multiplexed(spec: &EventSpec, totals: &Totals, machine: &Machine) -> Option<String> {
    let Totals { enabled_ns, running_ns, .. } = *totals;
    let share = running_ns as f64 / enabled_ns.max(1) as f64;
    let on_counter = match spec.code.kind {
        sys::PERF_TYPE_HARDWARE | sys::PERF_TYPE_HW_CACHE | sys::PERF_TYPE_RAW => true,
        kind => {
            machine.core_pmus().chain(machine.pmu("ibs_op")).chain(machine.pmu("ibs_fetch")).any(|pmu| pmu.kind == kind)
        }
    };
    (on_counter && enabled_ns >= ENOUGH_TIME_NS && share < 0.99).then(|| {
        format!(
            "{}: it counted {:.1} % of the time, other events had the counters for the rest",
            spec.name(),
            share * 100.0
        )
    })
}

/// The metadata of a recording that begins: what is known of it before anything is recorded.
pub(crate) fn metadata(choice: &Choice, machine: &Machine, target: &str) -> Metadata {
    let depth = machine.core_pmus().find_map(|pmu| pmu.cap("branches")).filter(|&depth| depth > 0);
    Metadata {
        schema: Some(SCHEMA.to_owned()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        source: Some(choice.source),
        target: Some(target.to_owned()),
        events: choice.events.iter().map(event_metadata).collect(),
        branch_depth: depth.filter(|_| choice.source == Source::BranchRecords),
        degradations: choice.degradations.clone(),
        ..Metadata::default()
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
        other: [(FeatureBit(FEATURE), metadata.to_json())].into(),
        ..Features::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::pmu::{EventCode, Pmu};
    use crate::plan::event_spec::{Levels, Period, Role, Unit};

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
        multiplexed(&spec, &totals, &machine).into_iter().collect()
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
