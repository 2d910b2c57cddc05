//! A recording that is made: who ran, what is mapped, each sample where its innermost frame is.

use std::collections::{HashMap, HashSet};
use std::io::{Seek, Write};
use std::rc::Rc;

use formats::cgroup_mark::{CgroupMark, RECORD_TYPE};
use formats::mapped_files::{ID_BYTES, UNKNOWN_ID};
use formats::metadata::{FEATURE, Metadata, SCHEMA};
use perfdata::{Avma, BuildId, Comm, CpuMode, FeatureBit, Features, Mmap, RecordType, SampleFields, SampleId, Writer};

use crate::Error;
use crate::attributes::Whose;
use crate::events::{Event, Meaning};
use crate::frames::{Frames, Leaf, Mapped};
use crate::message::Sample;
use crate::modules::{At, Code, Place, Places, of_kernel, unknown};
use crate::notes::{Notes, add};
use crate::processes::{Processes, Thread};

/// What is known of the files that were profiled: whoever looks for binaries knows it.
pub trait Files {
    /// The offset in a file of the byte that is at `address`, an address as the file states it. `None` if the file is not there.
    fn offset(&self, path: &str, build_id: Option<&BuildId>, address: u64) -> Option<u64>;

    /// The id of the bytes of a file without a build id ([`formats::mapped_files`]), if it is there and has this `htlhash`: in hexadecimal
    /// digits, the first 16 bytes of the SHA-256 of its first and its last 4 KiB and its length (u64, big-endian).
    fn id_of(&self, path: &str, htlhash: &str) -> Option<[u8; ID_BYTES]>;
}

/// What all recordings that are made of a file share.
pub(crate) struct Shared<'f> {
    /// Bytes that all of them may have.
    pub most: u64,
    files: &'f dyn Files,
    /// Bytes that they have.
    used: u64,
    /// How many more records sums may become.
    splits: u64,
    /// Of the times of sums.
    seed: u64,
    /// Files by path and hash.
    identified: HashMap<(Rc<str>, Rc<str>), Option<BuildId>>,
}

impl<'f> Shared<'f> {
    pub(crate) fn new(files: &'f dyn Files, most: u64) -> Self {
        Shared { most, files, used: 0, splits: MOST_SPLITS, seed: 0, identified: HashMap::new() }
    }
}

/// Bytes of the name of a process or a thread, as Linux has them (`TASK_COMM_LEN`, without the zero at the end).
const MOST_NAME: usize = 15;
/// A sum of samples becomes so many records, at most, and all sums so many more than there are.
const MOST_OF_SUM: u64 = 1000;
const MOST_SPLITS: u64 = 1 << 20;
type Spots = HashMap<(i32, Option<Rc<str>>), Spot>;

/// A recording that is made.
pub(crate) struct Made<W: Write> {
    writer: Writer<W>,
    /// Bytes that count as used.
    used: u64,
    /// The last profile that a sample was of.
    profile: u64,
    /// Where the stacks of a message are, and which message that is.
    spots: (usize, Spots),
    places: Places,
    /// Which places the processes have.
    mapped: HashSet<(u32, usize)>,
    processes: Processes,
    pub notes: Notes,
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

/// What the samples of a profile count as.
pub(crate) struct Profiled<'p> {
    /// Which profile it is, from 1 on.
    pub number: u64,
    /// Who made it: name and version.
    pub producers: &'p [(String, String)],
    /// Its values are no numbers of executions.
    pub is_relative: bool,
    pub meaning: Meaning,
    pub began: u64,
    pub duration: u64,
}

impl<W: Write + Seek> Made<W> {
    /// A recording with nothing in it.
    pub(crate) fn new(out: W) -> Result<Self, Error> {
        Ok(Made {
            writer: Writer::create(out, &Event::descriptions())?,
            used: 0,
            profile: 0,
            spots: (0, Spots::new()),
            places: Places::default(),
            mapped: HashSet::new(),
            processes: Processes::default(),
            notes: Notes::default(),
            hosts: HashSet::new(),
            first: u64::MAX,
            last: 0,
        })
    }

    /// Takes a sample. `message`: which one it is in, for indexes are of one message.
    pub(crate) fn sample(
        &mut self,
        sample: &Sample,
        (profiled, own): (&Profiled<'_>, &Whose),
        (message, frames): (usize, &mut Frames<'_>),
        shared: &mut Shared<'_>,
    ) -> Result<(), Error> {
        if self.spots.0 != message {
            self.spots = (message, Spots::new());
        }
        if self.profile != profiled.number {
            self.profile = profiled.number;
            profiled.producers.iter().for_each(|(name, version)| self.notes.producer(name, version));
            self.notes.relative += u64::from(profiled.is_relative);
        }
        let key = (sample.stack_index, own.executable_path.clone());
        let spot = match self.spots.1.get(&key) {
            Some(known) => known.clone(),
            None => {
                let (leaf, has_callers) = frames.leaf(sample.stack_index)?;
                let spot = Spot { has_callers, ..self.spot(&leaf, own, shared) };
                self.spots.1.entry(key).or_insert(spot).clone()
            }
        };
        let thread = self.thread(own)?;
        self.map(thread.pid, &spot)?;
        let (values, times) = (&sample.values, &sample.timestamps_unix_nano);
        let before = self.notes.samples;
        match (values.len(), times.len()) {
            (0, _) => times.iter().try_for_each(|&time| self.count(1, time, thread, &spot, (profiled, shared)))?,
            (of_values, of_times) if of_values == of_times => {
                let each = values.iter().zip(times);
                each.into_iter()
                    .try_for_each(|(&value, &time)| self.count(value, time, thread, &spot, (profiled, shared)))?;
            }
            (_, of_times) => {
                self.notes.mismatched += u64::from(of_times > 0);
                values.iter().try_for_each(|&value| self.sum(value, thread, &spot, (profiled, shared)))?;
            }
        }
        let samples = self.notes.samples - before;
        self.notes.with_callers += if spot.has_callers { samples } else { 0 };
        let is_unsaid = profiled.meaning.event == Event::Samples && profiled.meaning.per_sample.is_some();
        self.notes.without_period += if is_unsaid { samples } else { 0 };
        if let Some(what) = &spot.without_address {
            add(&mut self.notes.without_address, what, samples);
        }
        // Also what a sample without values brought with it.
        self.check_size(shared)
    }

    /// Writes a sum of samples, as samples at random times.
    fn sum(
        &mut self,
        value: i64,
        thread: Thread,
        spot: &Spot,
        (profiled, shared): (&Profiled<'_>, &mut Shared<'_>),
    ) -> Result<(), Error> {
        let value = self.positive(value);
        let samples = profiled.meaning.per_sample.map_or(1, |units| value / units).clamp(1, MOST_OF_SUM);
        let parts = samples.min(shared.splits + 1).min(value);
        shared.splits -= parts.saturating_sub(1);
        match profiled.meaning.per_sample {
            Some(_) => self.notes.timeless += parts,
            None => self.notes.sums += parts,
        }
        for part in 0..parts {
            shared.seed = shared.seed.wrapping_add(1);
            let time = profiled.began.saturating_add(mixed(shared.seed) % profiled.duration);
            let units = value / parts + u64::from(part < value % parts);
            self.write(units, time, thread, spot, (profiled, shared))?;
        }
        Ok(())
    }

    fn count(
        &mut self,
        value: i64,
        time: u64,
        thread: Thread,
        spot: &Spot,
        of: (&Profiled<'_>, &mut Shared<'_>),
    ) -> Result<(), Error> {
        match self.positive(value) {
            0 => Ok(()),
            units => self.write(units, time, thread, spot, of),
        }
    }

    fn positive(&mut self, value: i64) -> u64 {
        self.notes.negative += u64::from(value < 0);
        u64::try_from(value).unwrap_or(0)
    }

    fn write(
        &mut self,
        units: u64,
        time: u64,
        thread: Thread,
        spot: &Spot,
        (of, shared): (&Profiled<'_>, &mut Shared<'_>),
    ) -> Result<(), Error> {
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
        self.check_size(shared)
    }

    fn check_size(&mut self, shared: &mut Shared<'_>) -> Result<(), Error> {
        let used = self.writer.data_size();
        shared.used += used - self.used;
        self.used = used;
        match shared.used > shared.most {
            true => Err(Error::Grows { what: "the recording made of it", most: shared.most }),
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
        Ok(thread)
    }

    /// Maps what a sample is in, if its process has not got it.
    fn map(&mut self, pid: u32, spot: &Spot) -> Result<(), Error> {
        let Some(place) = &spot.place else { return Ok(()) };
        let mmap = place.mmap(pid);
        if self.mapped.insert((mmap.pid, place.id())) {
            self.writer.write_mmap2(&Mmap { sample_id: at_begin(mmap.pid, mmap.pid), ..mmap })?;
        }
        Ok(())
    }

    fn spot(&mut self, leaf: &Leaf, whose: &Whose, shared: &mut Shared<'_>) -> Spot {
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
                let (path, build_id) = file(mapping, whose, shared);
                let of_file = || shared.files.offset(&path, build_id.as_ref(), *address);
                let at = mapping.offset_of(*address).or_else(of_file).map_or(At::Address(*address), At::Offset);
                (Code::File { path, build_id }, at, None)
            }
            Leaf::Named { mapping } => {
                // Where in the file is not said: the file's own code would be taken for that at address 0.
                let (path, _) = file(mapping, whose, shared);
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

    /// Writes what is said of it; an error if nothing in it counts.
    pub(crate) fn finish(self) -> Result<W, Error> {
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

/// The path and the id of a file that was mapped.
fn file(mapping: &Mapped, whose: &Whose, shared: &mut Shared<'_>) -> (Rc<str>, Option<BuildId>) {
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
            let find = || shared.files.id_of(&path, hash).and_then(|id| BuildId::new(&id));
            shared.identified.entry(key).or_insert_with(find).or_else(unknown)
        }
        // Any file could have this name.
        (None, None) if !path.contains('/') => unknown(),
        (None, None) => None,
    };
    (path, id)
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
