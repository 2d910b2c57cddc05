//! Records: what a recording's data section is made of.

use crate::{Avma, CpuMode, Mmap, ReadValues, RecordType, SampleId, U64s};

/// One record as it lies in the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RawRecord<'a> {
    /// Where it is in the file or stream, for messages. For a decompressed record, where the compressed record that
    /// completed it is.
    pub offset: u64,
    /// Its type.
    pub record_type: RecordType,
    /// Its `misc` bits: the CPU's mode, and others that depend on the type.
    pub misc: u16,
    /// What follows the 8-byte header.
    pub body: &'a [u8],
}

/// Bit 13 of `misc`: MMAP_DATA, COMM_EXEC, FORK_EXEC or SWITCH_OUT, depending on the type.
pub(crate) const MISC_13: u16 = 1 << 13;
/// Bit 14 of `misc`: MMAP_BUILD_ID, EXACT_IP or SWITCH_OUT_PREEMPT, depending on the type.
pub(crate) const MISC_14: u16 = 1 << 14;

impl RawRecord<'_> {
    /// Where the CPU was.
    #[inline]
    pub fn cpu_mode(&self) -> CpuMode {
        CpuMode::from_misc(self.misc)
    }

    /// Whether it is a sample, to be read with [`crate::Recording::sample`].
    #[inline]
    pub fn is_sample(&self) -> bool {
        self.record_type == RecordType::SAMPLE
    }

    /// Of a sample: whether its ip is that of the instruction that caused the event (`PERF_RECORD_MISC_EXACT_IP`).
    #[inline]
    pub fn exact_ip(&self) -> bool {
        self.misc & MISC_14 != 0
    }
}

/// Any record but a sample. Borrows from the recording's bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// A mapping (of a kernel before 3.12, or one made up by `perf`): [`Mmap::file`] is [`crate::MappedFile::Unknown`].
    Mmap(Mmap<'a>),
    /// A mapping.
    Mmap2(Mmap<'a>),
    /// A thread's name.
    Comm(Comm<'a>),
    /// A thread's start.
    Fork(Task),
    /// A thread's end.
    Exit(Task),
    /// Records the kernel had no room for.
    Lost(Lost),
    /// Samples the hardware lost.
    LostSamples(LostSamples),
    /// The kernel throttled an event.
    Throttle(Throttle),
    /// The kernel let an event go on.
    Unthrottle(Throttle),
    /// Counter values of a thread that ended.
    Read(Read<'a>),
    /// A context switch.
    Switch(Switch),
    /// A thread's namespaces.
    Namespaces(Namespaces<'a>),
    /// A kernel symbol came or went.
    Ksymbol(Ksymbol<'a>),
    /// A BPF program came or went.
    BpfEvent(BpfEvent),
    /// A control group.
    Cgroup(Cgroup<'a>),
    /// Kernel text changed.
    TextPoke(TextPoke<'a>),
    /// The hardware's id of an event whose data is in the AUX area.
    AuxOutputHwId(AuxOutputHwId),
    /// AUX data landed.
    Aux(Aux),
    /// An instruction trace started.
    ItraceStart(ItraceStart),
    /// The user part of a call chain, delivered late.
    CallchainDeferred(CallchainDeferred<'a>),
    /// AUX data followed here; the reader skipped it.
    Auxtrace(Auxtrace),
    /// All rings were emptied once: what comes later is not older than what came before the last such record.
    FinishedRound,
    /// All that `perf` makes up for what existed before the recording has been written.
    FinishedInit,
    /// How to convert time-stamp-counter values.
    TimeConv(TimeConv),
    /// A record of `perf` itself that is known by name but not taken apart; those of pipe-mode headers were used when the
    /// recording was opened.
    Other(RawRecord<'a>),
    /// A record of a type this version does not know.
    Unknown(RawRecord<'a>),
}

/// A thread's name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comm<'a> {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// An exec gave it: all mappings of the process are gone (`PERF_RECORD_MISC_COMM_EXEC`).
    pub exec: bool,
    /// The name.
    pub name: &'a [u8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// A thread's start or end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Task {
    /// Process id.
    pub pid: u32,
    /// The parent's process id.
    pub ppid: u32,
    /// Thread id.
    pub tid: u32,
    /// The parent's thread id.
    pub ptid: u32,
    /// When.
    pub time: u64,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// Records the kernel had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lost {
    /// Event id.
    pub id: u64,
    /// How many records.
    pub lost: u64,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// Samples the hardware lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LostSamples {
    /// How many samples.
    pub lost: u64,
    /// `perf` made it up from the counters' `lost` values at the end (`PERF_RECORD_MISC_LOST_SAMPLES_BPF` is another
    /// bit of `misc`): bits of `misc` above the CPU's mode.
    pub misc: u16,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// An event throttled, or let go on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttle {
    /// When.
    pub time: u64,
    /// Event id.
    pub id: u64,
    /// Stream id.
    pub stream_id: u64,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// Counter values of a thread that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Read<'a> {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// The values.
    pub values: ReadValues<'a>,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// A context switch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Switch {
    /// Away from the thread (else to it).
    pub out: bool,
    /// The thread was preempted (only with `out`).
    pub preempt: bool,
    /// Process and thread id of the thread that comes next or was there before; only in records of whole CPUs.
    pub next_prev: Option<(u32, u32)>,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// A thread's namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Namespaces<'a> {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Device and inode of each namespace, in turn.
    pub links: U64s<'a>,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// A kernel symbol came or went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ksymbol<'a> {
    /// First address.
    pub addr: Avma,
    /// Length, bytes.
    pub len: u32,
    /// `PERF_RECORD_KSYMBOL_TYPE_*`: 1 BPF, 2 out of line.
    pub ksym_type: u16,
    /// It went (else it came).
    pub unregister: bool,
    /// Its name.
    pub name: &'a [u8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// A BPF program came or went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BpfEvent {
    /// `PERF_BPF_EVENT_*`: 1 loaded, 2 unloaded.
    pub event_type: u16,
    /// Flags.
    pub flags: u16,
    /// Program id.
    pub id: u32,
    /// Program tag.
    pub tag: [u8; 8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// A control group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cgroup<'a> {
    /// Its id, as in [`crate::Sample::cgroup`].
    pub id: u64,
    /// Its path.
    pub path: &'a [u8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// Kernel text changed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TextPoke<'a> {
    /// Where.
    pub addr: Avma,
    /// The bytes before.
    pub old: &'a [u8],
    /// The bytes after.
    pub new: &'a [u8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// The hardware's id of an event whose data is in the AUX area.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AuxOutputHwId {
    /// The id.
    pub hw_id: u64,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// AUX data landed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Aux {
    /// Where in the AUX area.
    pub aux_offset: u64,
    /// How many bytes.
    pub aux_size: u64,
    /// `PERF_AUX_FLAG_*`: bit 0 truncated, 1 overwrite, 2 partial, 3 collision.
    pub flags: u64,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// An instruction trace started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ItraceStart {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// The user part of a call chain, delivered late.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallchainDeferred<'a> {
    /// What links it to its sample.
    pub cookie: u64,
    /// The addresses.
    pub ips: U64s<'a>,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// AUX data followed here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Auxtrace {
    /// How many bytes of it.
    pub size: u64,
    /// Where it was in the AUX area.
    pub offset: u64,
    /// A number that sets it apart.
    pub reference: u64,
    /// Index of the AUX area.
    pub idx: u32,
    /// Thread id, `u32::MAX` for none.
    pub tid: u32,
    /// CPU number, `u32::MAX` for none.
    pub cpu: u32,
}

/// How to convert time-stamp-counter values: `time = zero + (tsc * mult) >> shift`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeConv {
    /// Shift.
    pub shift: u64,
    /// Factor.
    pub mult: u64,
    /// Offset, ns.
    pub zero: u64,
}
