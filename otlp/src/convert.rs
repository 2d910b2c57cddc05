//! Makes a recording of profiles: each sample counts where its innermost frame is.

use std::collections::{HashMap, HashSet};
use std::io::{Seek, Write};
use std::path::Path;
use std::rc::Rc;

use formats::cgroup_mark::{CgroupMark, RECORD_TYPE};
use formats::mapped_files::{ID_BYTES, UNKNOWN_ID};
use formats::metadata::{FEATURE, Metadata, SCHEMA};
use perfdata::{Avma, BuildId, Comm, CpuMode, FeatureBit, Features, Mmap, RecordType, SampleFields, SampleId, Writer};

use crate::Error;
use crate::attributes::{Attribute, Whose};
use crate::container::{for_each_message, most_unpacked, read};
use crate::events::{BY_ADDRESS, Event, Meaning};
use crate::frames::{Frames, Leaf, Mapped};
use crate::message::{InstrumentationScope, ProfileHead, Sample};
use crate::modules::{At, Code, Place, Places, of_kernel, unknown};
use crate::notes::{Notes, add};
use crate::processes::{Processes, Thread};
use crate::tables::{Fields, Table, Tables, decode};

/// What is known of the files that were profiled: whoever looks for binaries knows it.
pub trait Files {
    /// The offset in a file of the byte that is at `address`, an address as the file states it. `None` if the file is not there.
    fn offset(&self, path: &str, build_id: Option<&BuildId>, address: u64) -> Option<u64>;

    /// The id of the bytes of a file without a build id ([`formats::mapped_files`]), if it is there and has this `htlhash`: in hexadecimal
    /// digits, the first 16 bytes of the SHA-256 of its first and its last 4 KiB and its length (u64, big-endian).
    fn id_of(&self, path: &str, htlhash: &str) -> Option<[u8; ID_BYTES]>;
}

/// Writes a recording of what is in a file; returns `out`.
///
/// # Errors
/// The file cannot be read, is no OTLP profile of a version that is known, is damaged, or has nothing that counts; or `out` fails.
pub fn convert<W: Write + Seek>(file: &Path, files: &dyn Files, out: W) -> Result<W, Error> {
    let (bytes, most) = read(file)?;
    convert_unpacked(&bytes, most, files, out)
}

/// The same of what a file has, unpacked.
///
/// # Errors
/// As [`convert`].
pub fn convert_bytes<W: Write + Seek>(bytes: &[u8], files: &dyn Files, out: W) -> Result<W, Error> {
    convert_unpacked(bytes, most_unpacked(bytes), files, out)
}

/// `most`: bytes that a message may have, unpacked.
fn convert_unpacked<W: Write + Seek>(bytes: &[u8], most: u64, files: &dyn Files, out: W) -> Result<W, Error> {
    let mut converter = Converter {
        writer: Writer::create(out, &Event::descriptions())?,
        files,
        most: ALWAYS,
        splits: MOST_SPLITS,
        seed: 0,
        places: Places::default(),
        mapped: HashSet::new(),
        identified: HashMap::new(),
        processes: Processes::default(),
        notes: Notes::default(),
        hosts: HashSet::new(),
        first: u64::MAX,
        last: 0,
    };
    for_each_message(bytes, most, |message, packed| {
        // What was packed inside of the file may count for more than its bytes there, as honest messages do.
        let bytes = (message.len() as u64).min(packed.saturating_mul(MOST_PACKING));
        converter.most = converter.most.saturating_add(bytes.saturating_mul(MOST_GROWTH));
        converter.message(message)
    })?;
    converter.finish()
}

/// How much larger the recording is than the messages, at most, and what it may have beyond that. A sample is 8 bytes and more there,
/// and some 60 in the recording; a file that a process has for one sample, some 200.
const MOST_GROWTH: u64 = 32;
const ALWAYS: u64 = 64 << 20;
/// How many bytes of a message count for one that it was packed to.
const MOST_PACKING: u64 = 32;
/// Bytes of the name of a process or a thread, as Linux has them (`TASK_COMM_LEN`, without the zero at the end).
const MOST_NAME: usize = 15;
/// A sum of samples becomes so many records, at most, and all sums so many more than there are.
const MOST_OF_SUM: u64 = 1000;
const MOST_SPLITS: u64 = 1 << 20;
/// How long a profile without a duration is taken to be, ns.
const DURATION: u64 = 1_000_000_000;

struct Converter<'f, W: Write> {
    writer: Writer<W>,
    files: &'f dyn Files,
    most: u64,
    /// How many more records sums may become.
    splits: u64,
    /// Of the times of sums.
    seed: u64,
    places: Places,
    /// Which places the processes have.
    mapped: HashSet<(u32, usize)>,
    /// Files by path and hash.
    identified: HashMap<(Rc<str>, Rc<str>), Option<BuildId>>,
    processes: Processes,
    notes: Notes,
    hosts: HashSet<Rc<str>>,
    first: u64,
    last: u64,
}

/// Where a sample is in the recording.
#[derive(Clone)]
struct Spot {
    address: Avma,
    place: Option<Rc<Place>>,
    in_kernel: bool,
    has_callers: bool,
    /// What it is of, if it has no address in a file.
    without_address: Option<Rc<str>>,
}

/// A profile that has samples.
struct Headed<'a> {
    bytes: &'a [u8],
    head: ProfileHead,
}

impl<'a> Headed<'a> {
    /// `None` of one without samples.
    fn of(bytes: &'a [u8], tables: &Tables<'_>) -> Result<Option<Self>, Error> {
        if samples(bytes).next().is_none() {
            return Ok(None);
        }
        // Other signals have no such tables, and other versions other ones.
        if tables.is_empty(Table::Texts) {
            return Err(Error::Without { what: "dictionary" });
        }
        if tables.is_empty(Table::Stacks) {
            return Err(Error::Without { what: "table of stacks" });
        }
        Ok(Some(Headed { bytes, head: decode("a profile", bytes)? }))
    }

    fn samples(&self) -> impl Iterator<Item = Result<&'a [u8], Error>> {
        samples(self.bytes)
    }
}

/// The samples of a profile.
fn samples(profile: &[u8]) -> impl Iterator<Item = Result<&[u8], Error>> {
    Fields::of("a profile", profile).numbered(2)
}

/// What the samples of a profile count as.
struct Profiled {
    meaning: Meaning,
    began: u64,
    duration: u64,
}

type Spots = HashMap<(i32, Option<Rc<str>>), Spot>;

impl<W: Write + Seek> Converter<'_, W> {
    fn message(&mut self, message: &[u8]) -> Result<(), Error> {
        let tables = Tables::of(message)?;
        let mut frames = Frames::of(&tables);
        let mut spots = Spots::new();
        for resource in Fields::of("the message", message).numbered(1) {
            let resource = resource?;
            let mut whose = Whose::default();
            for described in Fields::of("profiles of a resource", resource).numbered(1) {
                for attribute in Fields::of("a resource", described?).numbered(1) {
                    whose.set(&Attribute::of_resource(attribute?, &tables)?);
                }
            }
            for scope in Fields::of("profiles of a resource", resource).numbered(2) {
                let scope = scope?;
                for named in Fields::of("profiles of a profiler", scope).numbered(1) {
                    let InstrumentationScope { name, version } = decode("the name of a profiler", named?)?;
                    self.notes.producer(&name, &version);
                }
                let mut profiles = Vec::new();
                for profile in Fields::of("profiles of a profiler", scope).numbered(2) {
                    profiles.extend(Headed::of(profile?, &tables)?);
                }
                let mut by_address = false;
                for Headed { head, .. } in &profiles {
                    by_address |= tables.value_type(head.sample_type)?.0 == BY_ADDRESS;
                }
                for profile in &profiles {
                    self.profile(profile, by_address, &whose, (&tables, &mut frames, &mut spots))?;
                }
            }
        }
        Ok(())
    }

    /// `by_address`: the same profiler has the same instructions by address.
    fn profile(
        &mut self,
        profile: &Headed<'_>,
        by_address: bool,
        whose: &Whose,
        (tables, frames, spots): (&Tables<'_>, &mut Frames<'_>, &mut Spots),
    ) -> Result<(), Error> {
        let head = &profile.head;
        let kind = tables.value_type(head.sample_type)?;
        let Some(mut meaning) = Meaning::of(&kind, &tables.value_type(head.period_type)?, head.period) else {
            self.notes.leave_out(&kind, profile.samples().count() as u64);
            return Ok(());
        };
        if by_address && kind.0 == "instructions" {
            self.notes.by_context += profile.samples().count() as u64;
            return Ok(());
        }
        for &index in &head.attribute_indices {
            if frames.attribute(index)? == Attribute::Relative {
                meaning.event = Event::Samples;
                self.notes.relative += 1;
            }
        }
        let duration = if head.duration_nano == 0 { DURATION } else { head.duration_nano };
        let profiled = Profiled { meaning, began: head.time_unix_nano, duration };
        for sample in profile.samples() {
            let sample: Sample = decode("a sample", sample?)?;
            self.sample(&sample, &profiled, whose, (frames, spots))?;
        }
        Ok(())
    }

    fn sample(
        &mut self,
        sample: &Sample,
        profiled: &Profiled,
        whose: &Whose,
        (frames, spots): (&mut Frames<'_>, &mut Spots),
    ) -> Result<(), Error> {
        let mut own = whose.clone();
        for &index in &sample.attribute_indices {
            own.set(&frames.attribute(index)?);
        }
        let key = (sample.stack_index, own.executable_path.clone());
        let spot = match spots.get(&key) {
            Some(known) => known.clone(),
            None => {
                let (leaf, has_callers) = frames.leaf(sample.stack_index)?;
                let spot = Spot { has_callers, ..self.spot(&leaf, &own) };
                spots.entry(key).or_insert(spot).clone()
            }
        };
        let thread = self.thread(&own)?;
        self.map(thread.pid, &spot)?;
        let (values, times) = (&sample.values, &sample.timestamps_unix_nano);
        let before = self.notes.samples;
        match (values.len(), times.len()) {
            (0, _) => times.iter().try_for_each(|&time| self.count(1, time, thread, &spot, profiled))?,
            (of_values, of_times) if of_values == of_times => {
                let each = values.iter().zip(times);
                each.into_iter().try_for_each(|(&value, &time)| self.count(value, time, thread, &spot, profiled))?;
            }
            (_, of_times) => {
                self.notes.mismatched += u64::from(of_times > 0);
                values.iter().try_for_each(|&value| self.sum(value, thread, &spot, profiled))?;
            }
        }
        let samples = self.notes.samples - before;
        self.notes.with_callers += if spot.has_callers { samples } else { 0 };
        let is_unsaid = profiled.meaning.event == Event::Samples && profiled.meaning.per_sample.is_some();
        self.notes.without_period += if is_unsaid { samples } else { 0 };
        if let Some(what) = &spot.without_address {
            add(&mut self.notes.without_address, what, samples);
        }
        Ok(())
    }

    /// Writes a sum of samples, as samples at random times.
    fn sum(&mut self, value: i64, thread: Thread, spot: &Spot, profiled: &Profiled) -> Result<(), Error> {
        let value = self.positive(value);
        let samples = profiled.meaning.per_sample.map_or(1, |units| value / units).clamp(1, MOST_OF_SUM);
        let parts = samples.min(self.splits + 1).min(value);
        self.splits -= parts.saturating_sub(1);
        match profiled.meaning.per_sample {
            Some(_) => self.notes.timeless += parts,
            None => self.notes.sums += parts,
        }
        for part in 0..parts {
            self.seed = self.seed.wrapping_add(1);
            let time = profiled.began.saturating_add(mixed(self.seed) % profiled.duration);
            let units = value / parts + u64::from(part < value % parts);
            self.write(units, time, thread, spot, profiled)?;
        }
        Ok(())
    }

    fn count(&mut self, value: i64, time: u64, thread: Thread, spot: &Spot, of: &Profiled) -> Result<(), Error> {
        match self.positive(value) {
            0 => Ok(()),
            units => self.write(units, time, thread, spot, of),
        }
    }

    fn positive(&mut self, value: i64) -> u64 {
        self.notes.negative += u64::from(value < 0);
        u64::try_from(value).unwrap_or(0)
    }

    fn write(&mut self, units: u64, time: u64, thread: Thread, spot: &Spot, of: &Profiled) -> Result<(), Error> {
        self.notes.samples += 1;
        (self.first, self.last) = (self.first.min(time), self.last.max(time));
        let cpu_mode = if spot.in_kernel { CpuMode::Kernel } else { CpuMode::User };
        self.writer.write_sample(&SampleFields {
            event: of.meaning.event.index(),
            cpu_mode,
            ip: spot.address,
            pid: thread.pid,
            tid: thread.tid,
            time,
            period: units.saturating_mul(of.meaning.of_one),
            ..SampleFields::default()
        })?;
        self.check_size()
    }

    fn check_size(&self) -> Result<(), Error> {
        match self.writer.data_size() > self.most {
            true => Err(Error::Grows { what: "the recording made of it", most: self.most }),
            false => Ok(()),
        }
    }

    /// The numbers of the thread that a sample is of, which the recording knows from then on.
    fn thread(&mut self, whose: &Whose) -> Result<Thread, Error> {
        let thread = self.processes.of(whose);
        let Thread { pid, tid, is_new_process, is_new } = thread;
        let sample_id = at_begin(pid, tid);
        let process = whose.process().unwrap_or_default();
        if is_new_process {
            self.hosts.extend(whose.host.clone());
            let name = comm(process);
            self.writer.write_comm(&Comm { pid, tid: pid, name, sample_id, ..Comm::default() })?;
            if let Some(path) = whose.container.as_deref() {
                let mark = CgroupMark { time: 0, pid, path: path.to_owned() };
                self.writer.write_user_record(RecordType(RECORD_TYPE), &mark.to_record_body())?;
            }
        }
        if is_new && tid != pid {
            let name = comm(whose.thread.as_deref().unwrap_or(process));
            self.writer.write_comm(&Comm { pid, tid, name, sample_id, ..Comm::default() })?;
        }
        self.check_size()?;
        Ok(thread)
    }

    /// Maps what a sample is in, if its process has not got it.
    fn map(&mut self, pid: u32, spot: &Spot) -> Result<(), Error> {
        let Some(place) = &spot.place else { return Ok(()) };
        let mmap = place.mmap(pid);
        if self.mapped.insert((mmap.pid, place.id())) {
            self.writer.write_mmap2(&Mmap { sample_id: at_begin(mmap.pid, mmap.pid), ..mmap })?;
        }
        self.check_size()
    }

    fn spot(&mut self, leaf: &Leaf, whose: &Whose) -> Spot {
        let nowhere =
            |address, in_kernel| Spot { address, place: None, in_kernel, has_callers: false, without_address: None };
        let of_user = |path: &str| Code::File { path: path.into(), build_id: None };
        let (code, at, what) = match leaf {
            Leaf::Mapped { mapping, address, in_kernel: true } => {
                let offset = mapping.offset_of(*address).map_or(*address, |_| address - mapping.start);
                let code = match mapping.name.trim_matches(['[', ']']) {
                    "vmlinux" | "" => Code::Kernel { build_id: mapping.build_id },
                    name if name.starts_with("kernel") => Code::Kernel { build_id: mapping.build_id },
                    name => Code::InKernel { name: format!("[{name}]").into() },
                };
                (code, At::Offset(offset), None)
            }
            Leaf::Mapped { mapping, address, .. } => {
                let (path, build_id) = self.file(mapping, whose);
                let of_file = || self.files.offset(&path, build_id.as_ref(), *address);
                let at = mapping.offset_of(*address).or_else(of_file).map_or(At::Address(*address), At::Offset);
                (Code::File { path, build_id }, at, None)
            }
            Leaf::Named { mapping } => {
                // Where in the file is not said: the file's own code would be taken for that at address 0.
                let (path, _) = self.file(mapping, whose);
                let path = format!("//{} (no addresses)", path.rsplit('/').next().unwrap_or(&path));
                (of_user(&path), At::Address(0), Some("functions by name".into()))
            }
            Leaf::Made { name, offset } => {
                let name = if name.starts_with("bpf_") { name.clone() } else { format!("[{name}]").into() };
                (Code::InKernel { name }, At::Offset(*offset), Some("programs of the kernel".into()))
            }
            Leaf::Interpreted(what) => (of_user(&format!("//{what}")), At::Address(0), Some(what.clone())),
            Leaf::Anonymous { address } => {
                (of_user("//anon"), At::Offset(*address), Some("memory without a file".into()))
            }
            Leaf::Kernel { address } => {
                return Spot { without_address: Some("kernel".into()), ..nowhere(of_kernel(*address), true) };
            }
            Leaf::Unknown => {
                return Spot { without_address: Some("unknown code".into()), ..nowhere(unknown(0), false) };
            }
        };
        let in_kernel = !matches!(code, Code::File { .. });
        match self.places.of(&code) {
            Some(place) => {
                let address = place.address(at);
                Spot { place: Some(place), without_address: what, ..nowhere(address, in_kernel) }
            }
            None if in_kernel => Spot { without_address: Some("another kernel".into()), ..nowhere(of_kernel(0), true) },
            None => Spot { without_address: Some("too many files".into()), ..nowhere(unknown(0), false) },
        }
    }

    /// The path and the id of a file that was mapped.
    fn file(&mut self, mapping: &Mapped, whose: &Whose) -> (Rc<str>, Option<BuildId>) {
        let path: Rc<str> = match &*mapping.name {
            "" | "<anonymous-blob>" => "//anon".into(),
            "linux-vdso.1.so" => "[vdso]".into(),
            _ => whose.path_of(&mapping.name).clone(),
        };
        let no_file = path.starts_with("//") || path.starts_with('[');
        let unknown = || BuildId::new(&UNKNOWN_ID);
        let id = match (&mapping.build_id, &mapping.hash) {
            _ if no_file => None,
            (Some(id), _) => Some(*id),
            (None, Some(hash)) => {
                let key = (path.clone(), hash.clone());
                let find = || self.files.id_of(&path, hash).and_then(|id| BuildId::new(&id));
                self.identified.entry(key).or_insert_with(find).or_else(unknown)
            }
            // Any file could have this name.
            (None, None) if !path.contains('/') => unknown(),
            (None, None) => None,
        };
        (path, id)
    }

    fn finish(self) -> Result<W, Error> {
        let Notes { samples, .. } = self.notes;
        if samples == 0 {
            return Err(Error::NothingToCount { has: self.notes.instead() });
        }
        let degradations = self.notes.sentences(self.processes.renumbered, self.processes.unnumbered);
        let metadata = Metadata {
            schema: Some(SCHEMA.to_owned()),
            degradations,
            samples: Some(samples),
            began_unix_ns: (self.first > 0).then_some(self.first),
            duration_ns: (self.first > 0).then_some(self.last - self.first),
            ..Metadata::default()
        };
        let mut hosts = self.hosts.iter();
        let host = hosts.next().filter(|_| hosts.next().is_none());
        let features = Features {
            hostname: host.map(|host| host.to_string()),
            arch: Some("x86_64".to_owned()),
            other: [(FeatureBit(FEATURE), metadata.to_json())].into(),
            ..Features::default()
        };
        Ok(self.writer.finish(&features)?)
    }
}

/// A name of a process or a thread, cut as Linux cuts it, but between letters.
fn comm(name: &str) -> &[u8] {
    let kept = (0..=MOST_NAME).rev().find_map(|length| name.get(..length));
    kept.filter(|_| name.len() > MOST_NAME).unwrap_or(name).as_bytes()
}

/// Of what was so before the first sample.
fn at_begin(pid: u32, tid: u32) -> SampleId {
    SampleId { pid: Some(pid), tid: Some(tid), time: Some(0), identifier: Some(1), ..SampleId::default() }
}

/// A number in which every bit of another matters (the finalizer of splitmix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
