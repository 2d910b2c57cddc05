//! Records: what a recording's data section is made of.

use crate::chunk::RecordHeader;
use crate::{Avma, CpuMode, Mmap, ReadValues, RecordType, SampleId, U64s};

/// One record as it lies in the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RawRecord<'a> {
    /// Where it is in the file or stream, for messages. For a decompressed record, where the compressed record that
    /// completed it is.
    pub offset: u64,
    /// Its type, the first word of the header (`struct perf_event_header`).
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
    /// Where what follows it is in the file or stream; of a record that was not compressed.
    pub fn end(&self) -> u64 {
        self.offset + (RecordHeader::SIZE + self.body.len()) as u64
    }

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
    /// A mapping with its file's identity and protection.
    Mmap2(Mmap<'a>),
    /// A thread has another name, or begins with one.
    Comm(Comm<'a>),
    /// A thread or a process begins.
    Fork(Task),
    /// A thread or a process ends.
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
    /// A CPU goes from one thread to another (SWITCH and SWITCH_CPU_WIDE).
    Switch(Switch),
    /// The namespaces that a thread is in.
    Namespaces(Namespaces<'a>),
    /// A kernel symbol came or went.
    Ksymbol(Ksymbol<'a>),
    /// A BPF program came or went.
    BpfEvent(BpfEvent),
    /// A control group is made, or was there before.
    Cgroup(Cgroup<'a>),
    /// The kernel changes its own code.
    TextPoke(TextPoke<'a>),
    /// The hardware's id of an event whose data is in the AUX area.
    AuxOutputHwId(AuxOutputHwId),
    /// There are new data in the AUX area.
    Aux(Aux),
    /// An instruction trace started.
    ItraceStart(ItraceStart),
    /// The user part of a call chain, delivered late.
    CallchainDeferred(CallchainDeferred<'a>),
    /// What the AUX data is.
    AuxtraceInfo(AuxtraceInfo<'a>),
    /// AUX data followed here; the reader skipped it: [`Recording::aux_data`](crate::Recording::aux_data) reads it.
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

/// `PERF_RECORD_COMM`: the name of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comm<'a> {
    /// Id of its process.
    pub pid: u32,
    /// Id of the thread.
    pub tid: u32,
    /// An exec gave it: all mappings of the process are gone (`PERF_RECORD_MISC_COMM_EXEC`).
    pub exec: bool,
    /// The name without a NUL; the kernel's have at most 15 bytes.
    pub name: &'a [u8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// A thread's start or end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Task {
    /// Id of the process that begins or ends, or that has the thread.
    pub pid: u32,
    /// The parent's process id.
    pub ppid: u32,
    /// Id of the thread.
    pub tid: u32,
    /// The parent's thread id.
    pub ptid: u32,
    /// When it began or ended, ns on the clock of the time stamps.
    pub time: u64,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// Records the kernel had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lost {
    /// Id of the event in whose ring there was no room.
    pub id: u64,
    /// How many records were lost since the last one of this kind, samples among them.
    pub lost: u64,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// Samples the hardware lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LostSamples {
    /// How many samples of the event were lost.
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
    /// When it happened, ns on the clock of the time stamps.
    pub time: u64,
    /// Id of the event; of the group's leader for inherited events.
    pub id: u64,
    /// The event's own id, as in [`crate::Sample::stream_id`].
    pub stream_id: u64,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// Counter values of a thread that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Read<'a> {
    /// Id of its process.
    pub pid: u32,
    /// Id of the thread that ended.
    pub tid: u32,
    /// What the event, or its group, counted for the thread.
    pub values: ReadValues<'a>,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// `PERF_RECORD_SWITCH` and `SWITCH_CPU_WIDE`; which thread it is about says the trailer.
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

/// `PERF_RECORD_NAMESPACES`: the namespaces that a thread is in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Namespaces<'a> {
    /// Id of its process.
    pub pid: u32,
    /// Id of the thread.
    pub tid: u32,
    /// Device and inode of each namespace, in turn.
    pub links: U64s<'a>,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// A kernel symbol came or went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ksymbol<'a> {
    /// First address of its code.
    pub addr: Avma,
    /// Length of its code, bytes.
    pub len: u32,
    /// `PERF_RECORD_KSYMBOL_TYPE_*`: 1 BPF, 2 out of line.
    pub ksym_type: u16,
    /// It went (else it came).
    pub unregister: bool,
    /// Its name without a NUL, such as `bpf_prog_6deef7357e7b4530`.
    pub name: &'a [u8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// A BPF program came or went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BpfEvent {
    /// `PERF_BPF_EVENT_*`: 1 loaded, 2 unloaded.
    pub event_type: u16,
    /// Reserved by the kernel, 0 so far.
    pub flags: u16,
    /// Id of the program, as `bpftool prog` lists it.
    pub id: u32,
    /// Tag of the program: a hash of its instructions.
    pub tag: [u8; 8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// `PERF_RECORD_CGROUP`: the path of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cgroup<'a> {
    /// Its id, as in [`crate::Sample::cgroup`].
    pub id: u64,
    /// Its path below the mount point, without a NUL: `/user.slice`.
    pub path: &'a [u8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// `PERF_RECORD_TEXT_POKE`: a place where the kernel changed its code.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TextPoke<'a> {
    /// Address of the first byte that changed.
    pub addr: Avma,
    /// The bytes that were there; none where code is new.
    pub old: &'a [u8],
    /// The bytes that are there now; none where code was taken away.
    pub new: &'a [u8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// The hardware's id of an event whose data is in the AUX area.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AuxOutputHwId {
    /// The number that the hardware writes into the AUX area for the event.
    pub hw_id: u64,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// `PERF_RECORD_AUX`: there are new data in the AUX area.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Aux {
    /// Where in the AUX area.
    pub aux_offset: u64,
    /// How many bytes are new.
    pub aux_size: u64,
    /// `PERF_AUX_FLAG_*`: bit 0 truncated, 1 overwrite, 2 partial, 3 collision.
    pub flags: u64,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// An instruction trace started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ItraceStart {
    /// Id of its process.
    pub pid: u32,
    /// Id of the thread that is traced.
    pub tid: u32,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// The user part of a call chain, delivered late.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallchainDeferred<'a> {
    /// What links it to its sample.
    pub cookie: u64,
    /// Instruction pointers with context markers, the innermost first.
    pub ips: U64s<'a>,
    /// Which event, when, where.
    pub sample_id: SampleId,
}

/// `PERF_RECORD_AUXTRACE_INFO`: what the AUX data of a recording is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AuxtraceInfo<'a> {
    /// `PERF_AUXTRACE_*` of `perf` (tools/perf/util/auxtrace.h): 1 is Intel PT, 2 Intel BTS, 3 CoreSight, 4 SPE.
    pub kind: u32,
    /// What the decoder of this kind wants to know.
    pub words: U64s<'a>,
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
    /// Bits that the product is shifted to the right.
    pub shift: u64,
    /// What values of the counter are multiplied with.
    pub mult: u64,
    /// Time at which the counter was 0, ns.
    pub zero: u64,
}
