//! Takes records apart, field by field as `include/uapi/linux/perf_event.h` lists them.

use crate::fields::{Fields, until_nul};
use crate::mapping::{BuildId, MappedFile, Mmap};
use crate::record::{
    Aux, AuxOutputHwId, Auxtrace, AuxtraceInfo, BpfEvent, CallchainDeferred, Cgroup, Comm, ItraceStart, Ksymbol, Lost,
    LostSamples, MISC_13, MISC_14, Namespaces, Read, Switch, Task, TextPoke, Throttle, TimeConv,
};
use crate::words::Words;
use crate::{Avma, Error, RawRecord, ReadFormat, ReadValues, Record, RecordType, SampleId, U64s};

/// Reads a record of the kernel's (type below 64) whose trailer has been split off.
pub(crate) fn kernel_record<'a>(
    raw: &RawRecord<'a>,
    own: &'a [u8],
    sample_id: SampleId,
    read_format: ReadFormat,
) -> Result<Record<'a>, Error> {
    let mut fields = Fields::new(what(raw.record_type), raw.offset, own);
    let f = &mut fields;
    Ok(match raw.record_type {
        RecordType::MMAP => Record::Mmap(mmap(f, raw, sample_id)?),
        RecordType::MMAP2 => Record::Mmap2(mmap2(f, raw, sample_id)?),
        RecordType::COMM => Record::Comm(Comm {
            pid: f.u32()?,
            tid: f.u32()?,
            exec: raw.misc & MISC_13 != 0,
            name: f.c_string(),
            sample_id,
        }),
        RecordType::FORK => Record::Fork(task(f, sample_id)?),
        RecordType::EXIT => Record::Exit(task(f, sample_id)?),
        RecordType::LOST => Record::Lost(Lost { id: f.u64()?, lost: f.u64()?, sample_id }),
        RecordType::LOST_SAMPLES => Record::LostSamples(LostSamples { lost: f.u64()?, misc: raw.misc & !7, sample_id }),
        RecordType::THROTTLE => Record::Throttle(throttle(f, sample_id)?),
        RecordType::UNTHROTTLE => Record::Unthrottle(throttle(f, sample_id)?),
        RecordType::READ => Record::Read(Read {
            pid: f.u32()?,
            tid: f.u32()?,
            values: {
                let words = Words(f.rest().as_chunks().0);
                ReadValues::take(read_format, words, what(raw.record_type), raw.offset)?.0
            },
            sample_id,
        }),
        RecordType::SWITCH => Record::Switch(switch(raw, None, sample_id)),
        RecordType::SWITCH_CPU_WIDE => Record::Switch(switch(raw, Some((f.u32()?, f.u32()?)), sample_id)),
        RecordType::NAMESPACES => Record::Namespaces(Namespaces {
            pid: f.u32()?,
            tid: f.u32()?,
            links: {
                let count = f.u64()?;
                U64s(f.items(count, 16, "namespaces")?.as_chunks().0)
            },
            sample_id,
        }),
        RecordType::KSYMBOL => Record::Ksymbol(Ksymbol {
            addr: Avma(f.u64()?),
            len: f.u32()?,
            ksym_type: f.u16()?,
            unregister: f.u16()? & 1 != 0,
            name: f.c_string(),
            sample_id,
        }),
        RecordType::BPF_EVENT => Record::BpfEvent(BpfEvent {
            event_type: f.u16()?,
            flags: f.u16()?,
            id: f.u32()?,
            tag: f.u64()?.to_le_bytes(),
            sample_id,
        }),
        RecordType::CGROUP => Record::Cgroup(Cgroup { id: f.u64()?, path: f.c_string(), sample_id }),
        RecordType::TEXT_POKE => {
            let addr = Avma(f.u64()?);
            let (old_len, new_len) = (f.u16()?, f.u16()?);
            let old = f.items(old_len.into(), 1, "old bytes")?;
            let new = f.items(new_len.into(), 1, "new bytes")?;
            Record::TextPoke(TextPoke { addr, old, new, sample_id })
        }
        RecordType::AUX_OUTPUT_HW_ID => Record::AuxOutputHwId(AuxOutputHwId { hw_id: f.u64()?, sample_id }),
        RecordType::AUX => Record::Aux(Aux { aux_offset: f.u64()?, aux_size: f.u64()?, flags: f.u64()?, sample_id }),
        RecordType::ITRACE_START => Record::ItraceStart(ItraceStart { pid: f.u32()?, tid: f.u32()?, sample_id }),
        RecordType::CALLCHAIN_DEFERRED => {
            let cookie = f.u64()?;
            let count = f.u64()?;
            let ips = U64s(f.items(count, 8, "addresses")?.as_chunks().0);
            Record::CallchainDeferred(CallchainDeferred { cookie, ips, sample_id })
        }
        _ => Record::Unknown(*raw),
    })
}

/// Reads a record of `perf`'s own (type 64 and above).
pub(crate) fn user_record<'a>(raw: &RawRecord<'a>) -> Result<Record<'a>, Error> {
    let mut fields = Fields::new(what(raw.record_type), raw.offset, raw.body);
    let f = &mut fields;
    Ok(match raw.record_type {
        RecordType::AUXTRACE_INFO => {
            let (kind, _reserved) = (f.u32()?, f.u32()?);
            let words = f.rest().as_chunks().0;
            Record::AuxtraceInfo(AuxtraceInfo { kind, words: U64s(words) })
        }
        RecordType::AUXTRACE => Record::Auxtrace(Auxtrace {
            size: f.u64()?,
            offset: f.u64()?,
            reference: f.u64()?,
            idx: f.u32()?,
            tid: f.u32()?,
            cpu: f.u32()?,
        }),
        RecordType::FINISHED_ROUND => Record::FinishedRound,
        RecordType::FINISHED_INIT => Record::FinishedInit,
        RecordType::TIME_CONV => Record::TimeConv(TimeConv { shift: f.u64()?, mult: f.u64()?, zero: f.u64()? }),
        known if known.name().is_some() => Record::Other(*raw),
        _ => Record::Unknown(*raw),
    })
}

/// The type's name for error messages.
pub(crate) fn what(record_type: RecordType) -> &'static str {
    record_type.name().unwrap_or("record")
}

fn mmap<'a>(f: &mut Fields<'a>, raw: &RawRecord<'a>, sample_id: SampleId) -> Result<Mmap<'a>, Error> {
    const PROT_READ: u32 = 1;
    const PROT_EXEC: u32 = 4;
    let data = raw.misc & MISC_13 != 0;
    Ok(Mmap {
        cpu_mode: raw.cpu_mode(),
        pid: f.u32()?,
        tid: f.u32()?,
        start: Avma(f.u64()?),
        len: f.u64()?,
        pgoff: f.u64()?,
        file: MappedFile::Unknown,
        prot: if data { PROT_READ } else { PROT_READ | PROT_EXEC },
        flags: 0,
        data,
        path: f.c_string(),
        sample_id,
    })
}

fn mmap2<'a>(f: &mut Fields<'a>, raw: &RawRecord<'a>, sample_id: SampleId) -> Result<Mmap<'a>, Error> {
    Ok(Mmap {
        cpu_mode: raw.cpu_mode(),
        pid: f.u32()?,
        tid: f.u32()?,
        start: Avma(f.u64()?),
        len: f.u64()?,
        pgoff: f.u64()?,
        file: mapped_file(f, raw.misc & MISC_14 != 0)?,
        prot: f.u32()?,
        flags: f.u32()?,
        data: raw.misc & MISC_13 != 0,
        path: f.c_string(),
        sample_id,
    })
}

/// The 24 bytes of an MMAP2 record that hold an inode, or a length, three bytes of nothing and a build id.
fn mapped_file(f: &mut Fields<'_>, is_build_id: bool) -> Result<MappedFile, Error> {
    if !is_build_id {
        return Ok(MappedFile::Inode { maj: f.u32()?, min: f.u32()?, ino: f.u64()?, generation: f.u64()? });
    }
    let (len, _reserved) = (f.u8()?, f.bytes(3)?);
    let bytes = f.bytes(BuildId::MOST)?;
    let id = BuildId::new(bytes.get(..usize::from(len)).unwrap_or(bytes));
    Ok(id.map_or(MappedFile::Unknown, MappedFile::BuildId))
}

fn task(f: &mut Fields<'_>, sample_id: SampleId) -> Result<Task, Error> {
    let (pid, ppid, tid, ptid) = (f.u32()?, f.u32()?, f.u32()?, f.u32()?);
    Ok(Task { pid, ppid, tid, ptid, time: f.u64()?, sample_id })
}

fn throttle(f: &mut Fields<'_>, sample_id: SampleId) -> Result<Throttle, Error> {
    Ok(Throttle { time: f.u64()?, id: f.u64()?, stream_id: f.u64()?, sample_id })
}

fn switch(raw: &RawRecord<'_>, next_prev: Option<(u32, u32)>, sample_id: SampleId) -> Switch {
    let out = raw.misc & MISC_13 != 0;
    Switch { out, preempt: out && raw.misc & MISC_14 != 0, next_prev, sample_id }
}

/// The fields of a build-id record: process, id and path. The id is followed by its size if bit 15 of `misc` is set; else
/// it has 20 bytes, zeros at its end included where it is shorter.
pub(crate) fn build_id(raw: &RawRecord<'_>) -> Result<crate::BuildIdEntry, Error> {
    const MISC_BUILD_ID_SIZE: u16 = 1 << 15;
    let mut f = Fields::new("build id", raw.offset, raw.body);
    let pid = f.u32()? as i32;
    let bytes = f.bytes(BuildId::MOST)?;
    let (size, _reserved) = (f.u8()?, f.bytes(3)?);
    let size = if raw.misc & MISC_BUILD_ID_SIZE != 0 { usize::from(size) } else { bytes.len() };
    Ok(crate::BuildIdEntry {
        misc: raw.misc & !MISC_BUILD_ID_SIZE,
        pid,
        build_id: bytes.get(..size).unwrap_or(bytes).to_vec(),
        path: until_nul(f.rest()).to_vec(),
    })
}
