//! Writes feature sections as `tools/perf/util/header.c` does.

use crate::chunk::RecordHeader;
use crate::feature::Cache;
use crate::feature_read::CACHE_VERSION;
use crate::{BuildId, BuildIdEntry, Error, EventDescription, FeatureBit, Features, RecordType};

/// The sections of all features that are set, in the order of their numbers.
pub(crate) fn feature_sections(
    features: &Features,
    events: &[EventDescription],
    attr_size: usize,
) -> Result<Vec<(FeatureBit, Vec<u8>)>, Error> {
    let mut sections = Vec::new();
    let mut put = |bit: FeatureBit, present: bool, bytes: Vec<u8>| {
        if present {
            sections.push((bit, bytes));
        }
    };
    let f = features;
    let text = |value: &Option<String>| value.as_deref().map(string).unwrap_or_default();

    put(FeatureBit::BUILD_ID, !f.build_ids.is_empty(), build_ids(&f.build_ids)?);
    put(FeatureBit::HOSTNAME, f.hostname.is_some(), text(&f.hostname));
    put(FeatureBit::OSRELEASE, f.os_release.is_some(), text(&f.os_release));
    put(FeatureBit::VERSION, f.version.is_some(), text(&f.version));
    put(FeatureBit::ARCH, f.arch.is_some(), text(&f.arch));
    let (all, online) = f.nr_cpus.unwrap_or_default();
    put(FeatureBit::NRCPUS, f.nr_cpus.is_some(), [number(all), number(online)].concat());
    put(FeatureBit::CPUDESC, f.cpu_desc.is_some(), text(&f.cpu_desc));
    put(FeatureBit::CPUID, f.cpuid.is_some(), text(&f.cpuid));
    put(FeatureBit::TOTAL_MEM, f.total_mem.is_some(), long(f.total_mem.unwrap_or(0)));
    put(FeatureBit::CMDLINE, !f.cmdline.is_empty(), list(&f.cmdline, |word| string(word)));
    put(FeatureBit::EVENT_DESC, true, event_desc(events, attr_size));
    put(FeatureBit::BRANCH_STACK, f.branch_stack, Vec::new());
    let mappings = list(&f.pmu_mappings, |(kind, name)| [number(*kind), string(name)].concat());
    put(FeatureBit::PMU_MAPPINGS, !f.pmu_mappings.is_empty(), mappings);
    let groups = list(&f.groups, |group| [string(&group.name), number(group.leader), number(group.members)].concat());
    put(FeatureBit::GROUP_DESC, !f.groups.is_empty(), groups);
    let cache = |cache: &Cache| {
        let numbers = [cache.level, cache.line_size, cache.sets, cache.ways].map(number).concat();
        [numbers, string(&cache.kind), string(&cache.size), string(&cache.cpus)].concat()
    };
    let caches = [number(CACHE_VERSION), list(&f.caches, cache)].concat();
    put(FeatureBit::CACHE, !f.caches.is_empty(), caches);
    let (first, last) = f.sample_time.unwrap_or_default();
    put(FeatureBit::SAMPLE_TIME, f.sample_time.is_some(), [long(first), long(last)].concat());
    put(FeatureBit::CLOCKID, f.clockid.is_some(), long(f.clockid.unwrap_or(0)));
    put(FeatureBit::CPU_PMU_CAPS, !f.cpu_pmu_caps.is_empty(), caps(&f.cpu_pmu_caps));
    let clock = f.clock_data.unwrap_or_default();
    let clock = [number(1), number(clock.clockid), long(clock.wall_clock_ns), long(clock.clockid_time_ns)].concat();
    put(FeatureBit::CLOCK_DATA, f.clock_data.is_some(), clock);
    let hybrid = list(&f.hybrid_topology, |(pmu, cpus)| [string(pmu), string(cpus)].concat());
    put(FeatureBit::HYBRID_TOPOLOGY, !f.hybrid_topology.is_empty(), hybrid);
    let pmu_caps = list(&f.pmu_caps, |(pmu, list)| [caps(list), string(pmu)].concat());
    put(FeatureBit::PMU_CAPS, !f.pmu_caps.is_empty(), pmu_caps);
    for (&bit, section) in &f.other {
        if sections.iter().any(|(written, _)| *written == bit) {
            let reason = format!("there is a field for {bit}, which is set, too");
            return Err(Error::CannotWrite { what: "a feature section", reason });
        }
        sections.push((bit, section.clone()));
    }
    sections.sort_by_key(|(bit, _)| *bit);
    Ok(sections)
}

fn number(value: u32) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

fn long(value: u64) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

/// `perf` pads strings to this.
const STRING_ALIGN: usize = 64;

fn string(text: &str) -> Vec<u8> {
    let len = (text.len() + 1).next_multiple_of(STRING_ALIGN);
    let mut bytes = number(len as u32);
    bytes.extend(text.as_bytes());
    bytes.resize(4 + len, 0);
    bytes
}

fn list<T>(items: &[T], item: impl Fn(&T) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = number(items.len() as u32);
    for each in items {
        bytes.extend(item(each));
    }
    bytes
}

fn caps(caps: &[(String, String)]) -> Vec<u8> {
    list(caps, |(name, value)| [string(name), string(value)].concat())
}

fn event_desc(events: &[EventDescription], attr_size: usize) -> Vec<u8> {
    let mut bytes = [number(events.len() as u32), number(attr_size as u32)].concat();
    for event in events {
        bytes.extend(event.attr.to_sized_bytes(attr_size));
        bytes.extend(number(event.ids.len() as u32));
        bytes.extend(string(&event.name));
        bytes.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
    }
    bytes
}

fn build_ids(entries: &[BuildIdEntry]) -> Result<Vec<u8>, Error> {
    const MISC_BUILD_ID_SIZE: u16 = 1 << 15;
    let mut bytes = Vec::new();
    for entry in entries {
        let refuse = |reason| Error::CannotWrite { what: "a build id", reason };
        let len = entry.build_id.len();
        if len > BuildId::MOST {
            return Err(refuse(format!("it has {len} bytes, at most {} fit", BuildId::MOST)));
        }
        let path = (entry.path.len() + 1).next_multiple_of(STRING_ALIGN);
        let size = RecordHeader::SIZE + 4 + 24 + path;
        let size =
            u16::try_from(size).map_err(|_| refuse(format!("its path has {} bytes, too many", entry.path.len())))?;
        let start = bytes.len();
        // perf leaves the type 0 here.
        let header = RecordHeader { record_type: RecordType(0), misc: entry.misc | MISC_BUILD_ID_SIZE, size };
        bytes.extend(header.to_bytes());
        bytes.extend(entry.pid.to_le_bytes());
        bytes.extend(&entry.build_id);
        bytes.resize(start + RecordHeader::SIZE + 4 + BuildId::MOST, 0);
        bytes.extend([len as u8, 0, 0, 0]);
        bytes.extend(&entry.path);
        bytes.resize(start + usize::from(size), 0);
    }
    Ok(bytes)
}
