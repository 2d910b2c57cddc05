//! Reads feature sections (`tools/perf/util/header.c` writes them).

use crate::chunk::RecordHeader;
use crate::feature::{Cache, ClockData, Compression, EventGroup};
use crate::fields::{Fields, until_nul};
use crate::record_parse::build_id;
use crate::record_walk::{Step, step};
use crate::{Error, EventAttr, EventDescription, FeatureBit, Features, RawRecord, RecordType};

/// What feature sections say: the features, and the events as the EVENT_DESC section lists them.
#[derive(Debug, Default)]
pub(crate) struct FeatureSections {
    pub(crate) features: Features,
    pub(crate) event_desc: Vec<EventDescription>,
}

impl FeatureSections {
    /// Takes in one section; `offset` is where it is.
    pub(crate) fn add(&mut self, bit: FeatureBit, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let what = bit.name().unwrap_or("feature section");
        let mut fields = Fields::new(what, offset, bytes);
        let f = &mut fields;
        let features = &mut self.features;
        match bit {
            FeatureBit::BUILD_ID => features.build_ids = build_ids(offset, bytes)?,
            FeatureBit::HOSTNAME => features.hostname = Some(string(f)?),
            FeatureBit::OSRELEASE => features.os_release = Some(string(f)?),
            FeatureBit::VERSION => features.version = Some(string(f)?),
            FeatureBit::ARCH => features.arch = Some(string(f)?),
            FeatureBit::NRCPUS => features.nr_cpus = Some((f.u32()?, f.u32()?)),
            FeatureBit::CPUDESC => features.cpu_desc = Some(string(f)?),
            FeatureBit::CPUID => features.cpuid = Some(string(f)?),
            FeatureBit::TOTAL_MEM => features.total_mem = Some(f.u64()?),
            FeatureBit::CMDLINE => features.cmdline = list(f, 4, string)?,
            FeatureBit::EVENT_DESC => self.event_desc = event_desc(f)?,
            FeatureBit::BRANCH_STACK => features.branch_stack = true,
            FeatureBit::PMU_MAPPINGS => features.pmu_mappings = list(f, 8, |f| Ok((f.u32()?, string(f)?)))?,
            FeatureBit::GROUP_DESC => {
                features.groups =
                    list(f, 12, |f| Ok(EventGroup { name: string(f)?, leader: f.u32()?, members: f.u32()? }))?;
            }
            FeatureBit::AUXTRACE => features.auxtrace = true,
            FeatureBit::CACHE if bytes.starts_with(&CACHE_VERSION.to_le_bytes()) => features.caches = caches(f)?,
            FeatureBit::SAMPLE_TIME => features.sample_time = Some((f.u64()?, f.u64()?)),
            FeatureBit::CLOCKID => features.clockid = Some(f.u64()?),
            FeatureBit::COMPRESSED => {
                features.compressed = Some(Compression {
                    version: f.u32()?,
                    kind: f.u32()?,
                    level: f.u32()?,
                    ratio: f.u32()?,
                    mmap_len: f.u32()?,
                });
            }
            FeatureBit::CPU_PMU_CAPS => features.cpu_pmu_caps = caps(f)?,
            FeatureBit::CLOCK_DATA => {
                let _version = f.u32()?;
                features.clock_data =
                    Some(ClockData { clockid: f.u32()?, wall_clock_ns: f.u64()?, clockid_time_ns: f.u64()? });
            }
            FeatureBit::HYBRID_TOPOLOGY => features.hybrid_topology = list(f, 8, |f| Ok((string(f)?, string(f)?)))?,
            FeatureBit::PMU_CAPS => {
                features.pmu_caps = list(f, 8, |f| {
                    let caps = caps(f)?;
                    Ok((string(f)?, caps))
                })?;
            }
            other => {
                features.other.insert(other, bytes.to_vec());
            }
        }
        Ok(())
    }
}

/// The version of the section that this takes apart.
pub(crate) const CACHE_VERSION: u32 = 1;

fn caches(f: &mut Fields<'_>) -> Result<Vec<Cache>, Error> {
    let _version = f.u32()?;
    list(f, 28, |f| {
        let (level, line_size, sets, ways) = (f.u32()?, f.u32()?, f.u32()?, f.u32()?);
        Ok(Cache { level, line_size, sets, ways, kind: string(f)?, size: string(f)?, cpus: string(f)? })
    })
}

/// A 32-bit length (padding included) and a NUL-terminated string.
fn string(f: &mut Fields<'_>) -> Result<String, Error> {
    let len = f.u32()?;
    let bytes = f.items(len.into(), 1, "bytes of a string")?;
    Ok(String::from_utf8_lossy(until_nul(bytes)).into_owned())
}

/// A 32-bit count and as many items of at least `least` bytes each.
fn list<'a, T>(
    f: &mut Fields<'a>,
    least: u64,
    mut item: impl FnMut(&mut Fields<'a>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let count = f.u32()?;
    // Checks that the count is possible, without taking anything.
    Fields::clone(f).items(count.into(), least, "entries")?;
    (0..count).map(|_| item(f)).collect()
}

fn caps(f: &mut Fields<'_>) -> Result<Vec<(String, String)>, Error> {
    list(f, 8, |f| Ok((string(f)?, string(f)?)))
}

fn event_desc(f: &mut Fields<'_>) -> Result<Vec<EventDescription>, Error> {
    let count = f.u32()?;
    let attr_size = f.u32()?;
    Fields::clone(f).items(count.into(), u64::from(attr_size).saturating_add(8), "events")?;
    let mut events = Vec::new();
    for index in 0..count as usize {
        let attr = EventAttr::parse_entry(f, index, attr_size.into())?;
        let id_count = f.u32()?;
        let name = string(f)?;
        let (ids, _) = f.items(id_count.into(), 8, "event ids")?.as_chunks();
        events.push(EventDescription { attr, name, ids: ids.iter().map(|id| u64::from_le_bytes(*id)).collect() });
    }
    Ok(events)
}

/// A list of build-id records without a count.
fn build_ids(offset: u64, bytes: &[u8]) -> Result<Vec<crate::BuildIdEntry>, Error> {
    let mut entries = Vec::new();
    let mut rest = bytes;
    // perf leaves the type of the records 0.
    let record_type = RecordType::HEADER_BUILD_ID;
    while rest.len() >= RecordHeader::SIZE {
        let offset = offset + (bytes.len() - rest.len()) as u64;
        let whole = match step(rest, offset) {
            Step::Whole(whole) => whole,
            Step::Cut(Error::RecordCut { offset, size, left, .. }) => {
                return Err(Error::RecordCut { offset, record_type, size, left });
            }
            Step::Cut(error) | Step::Broken(error) => return Err(error),
        };
        entries.push(build_id(&RawRecord { offset, record_type, misc: whole.header.misc, body: whole.body })?);
        rest = whole.rest;
    }
    Ok(entries)
}
