//! What a recording says of itself: hbbp's own metadata, as JSON, and the features every `perf.data` has.

use std::time::SystemTime;

use formats::metadata::{EventMetadata, FEATURE, Metadata, SCHEMA};
use perfdata::{BuildIdEntry, FeatureBit, Features};

use crate::machine::Machine;
use crate::plan::branch_filter::branch_filter_text;
use crate::plan::choice::{Choice, CountsFrom};
use crate::plan::event_spec::{EventSpec, Provenance};
use crate::session::nanoseconds;
use crate::session::open::Totals;

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

/// Adds what an event counted.
pub(crate) fn count_event(event: &mut EventMetadata, totals: &Totals) {
    let Totals { counted, enabled_ns, running_ns, lost } = *totals;
    event.counted = Some(counted);
    event.enabled_ns = Some(enabled_ns);
    event.running_ns = Some(running_ns);
    event.lost = Some(lost);
}

/// The metadata of a recording that begins, without its events, which their producers introduce.
pub(crate) fn metadata(choice: &Choice, machine: &Machine, target: &str, began: SystemTime) -> Metadata {
    let depth = machine.core_pmus().find_map(|pmu| pmu.cap("branches")).filter(|&depth| depth > 0);
    Metadata {
        schema: Some(SCHEMA.to_owned()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        source: Some(choice.source),
        target: Some(target.to_owned()),
        branch_depth: depth.filter(|_| choice.source == CountsFrom::BranchRecords),
        degradations: choice.degradations.clone(),
        // A clock from before 1970 was never set.
        began_unix_ns: began.duration_since(SystemTime::UNIX_EPOCH).ok().map(nanoseconds),
        ..Metadata::default()
    }
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
        caches: machine.caches.clone(),
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
