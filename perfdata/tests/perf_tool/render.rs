//! Writes what this crate reads in the words of `perf script -D`.

use std::fmt::Write;

use perfdata::{
    EventAttr, MappedFile, Mmap, RawRecord, ReadFormat, ReadValues, Record, RecordType, Recording, Registers, Sample,
    SampleFormat, SampleId, Weight,
};

use super::{for_each_record, one_space};

/// One text per record, as `dump::records` makes of perf's output.
///
/// `header_size` is what perf leaves out of its offsets: 16 of a stream, 0 of a file.
pub fn records(recording: &Recording, header_size: u64) -> Vec<String> {
    let combined = recording.events().iter().fold(SampleFormat::default(), |all, event| all | event.attr.sample_format);
    let mut records = Vec::new();
    for_each_record(recording, |raw| {
        if raw.record_type == RecordType::HEADER_ATTR {
            // How perf prints these depends on how many it has seen.
            return;
        }
        let text = if raw.is_sample() { sample_text(recording, raw) } else { record_text(recording, raw) };
        let (cpu, time, text) = text;
        let mut line = String::new();
        let all_have_ids = recording.events().iter().all(|event| event.attr.sample_id_all());
        if !raw.is_sample() && !all_have_ids {
            line.push_str("-1 -1 ");
        } else {
            if combined.contains(SampleFormat::CPU) {
                write!(line, "{cpu} ").unwrap();
            }
            if combined.contains(SampleFormat::TIME) {
                write!(line, "{time} ").unwrap();
            }
        }
        let size = raw.body.len() + 8;
        write!(line, "{:#x} [{size:#x}]: PERF_RECORD_{text}", raw.offset - header_size).unwrap();
        records.push(line);
    });
    records
}

/// Numbers of an Intel PT recording's AUXTRACE_INFO, in the order in which `perf` prints them (tools/perf/util/intel-pt.h).
const INTEL_PT_NUMBERS: usize = 17;

/// CPU, time and the rest; -1 where not recorded.
type Texts = (u32, u64, String);

fn record_text(recording: &Recording, raw: &RawRecord<'_>) -> Texts {
    let record = recording.parse(raw).unwrap();
    let (text, id) = match record {
        Record::Mmap(mmap) => {
            let letter = if mmap.data { 'r' } else { 'x' };
            (format!("MMAP {}]: {letter} {}", mapping(&mmap), lossy(mmap.path)), Some(mmap.sample_id))
        }
        Record::Mmap2(mmap) => (mmap2(&mmap), Some(mmap.sample_id)),
        Record::Comm(comm) => {
            let exec = if comm.exec { " exec" } else { "" };
            let (pid, tid) = (comm.pid as i32, comm.tid as i32);
            (format!("COMM{exec}: {}:{pid}/{tid}", lossy(comm.name)), Some(comm.sample_id))
        }
        Record::Fork(task) | Record::Exit(task) => {
            let name = raw.record_type.name().unwrap();
            let numbers = [task.pid, task.tid, task.ppid, task.ptid].map(|number| number as i32);
            let [pid, tid, ppid, ptid] = numbers;
            (format!("{name}({pid}:{tid}):({ppid}:{ptid})"), Some(task.sample_id))
        }
        Record::Lost(lost) => (format!("LOST: id:{}: lost:{}", lost.id, lost.lost), Some(lost.sample_id)),
        Record::LostSamples(lost) => {
            let id = lost.sample_id.identifier.or(lost.sample_id.id).unwrap_or(u64::MAX);
            (format!("LOST_SAMPLES: id:{id}: lost samples :{}", lost.lost), Some(lost.sample_id))
        }
        Record::Throttle(throttle) => ("THROTTLE".to_owned(), Some(throttle.sample_id)),
        Record::Unthrottle(throttle) => ("UNTHROTTLE".to_owned(), Some(throttle.sample_id)),
        Record::Read(read) => {
            let event = read.values.get(0).and_then(|value| value.id);
            let event = recording.events().iter().find(|e| event.is_none_or(|id| e.ids.contains(&id))).unwrap();
            let value = read.values.get(0).unwrap();
            let mut text = format!("READ: {} {} {} {}", read.pid as i32, read.tid as i32, event.name, value.value);
            for (name, number) in [
                ("time enabled", read.values.time_enabled),
                ("time running", read.values.time_running),
                ("id", value.id),
                ("lost", value.lost),
            ] {
                if let Some(number) = number {
                    write!(text, "\n... {name} : {number}").unwrap();
                }
            }
            (text, Some(read.sample_id))
        }
        Record::Switch(switch) => {
            let direction = match (switch.out, switch.preempt) {
                (true, true) => "OUT preempt",
                (true, false) => "OUT",
                (false, _) => "IN",
            };
            let text = match switch.next_prev {
                None => format!("SWITCH {direction}"),
                Some((pid, tid)) => {
                    let which = if switch.out { "next" } else { "prev" };
                    format!("SWITCH_CPU_WIDE {direction} {which} pid/tid: {}/{}", pid as i32, tid as i32)
                }
            };
            (text, Some(switch.sample_id))
        }
        Record::Namespaces(namespaces) => {
            const NAMES: [&str; 7] = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];
            let links: Vec<_> = namespaces.links.iter().collect();
            let count = links.len() / 2;
            let (pid, tid) = (namespaces.pid as i32, namespaces.tid as i32);
            let mut text = format!("NAMESPACES {pid}/{tid} - nr_namespaces: {count}\n[");
            for (index, link) in links.chunks(2).enumerate() {
                let name = NAMES.get(index).unwrap_or(&"unknown");
                let end = match index {
                    _ if index + 1 == count => "]",
                    3 => ",\n",
                    _ => ", ",
                };
                write!(text, "{index}/{name}: {}/{:#x}{end}", link[0], link[1]).unwrap();
            }
            (text, Some(namespaces.sample_id))
        }
        Record::Ksymbol(symbol) => {
            let flags = u16::from(symbol.unregister);
            let text = format!(
                "KSYMBOL addr {:x} len {} type {} flags {flags:#x} name {}",
                symbol.addr.0,
                symbol.len,
                symbol.ksym_type,
                lossy(symbol.name)
            );
            (text, Some(symbol.sample_id))
        }
        Record::BpfEvent(bpf) => {
            (format!("BPF_EVENT type {}, flags {}, id {}", bpf.event_type, bpf.flags, bpf.id), Some(bpf.sample_id))
        }
        Record::Cgroup(cgroup) => {
            (format!("CGROUP cgroup: {} {}", cgroup.id, lossy(cgroup.path)), Some(cgroup.sample_id))
        }
        Record::Aux(aux) => {
            let mut letters = String::new();
            for (bit, letter) in [(1, "T"), (2, "O"), (4, "P")] {
                letters.push_str(if aux.flags & bit != 0 { letter } else { "" });
            }
            let (offset, size, flags) = (hex(aux.aux_offset), hex(aux.aux_size), hex(aux.flags));
            (format!("AUX offset: {offset} size: {size} flags: {flags} [{letters}]"), Some(aux.sample_id))
        }
        Record::ItraceStart(start) => {
            (format!("ITRACE_START pid: {} tid: {}", start.pid as i32, start.tid as i32), Some(start.sample_id))
        }
        Record::Auxtrace(aux) => {
            let (size, offset, reference) = (hex(aux.size), hex(aux.offset), hex(aux.reference));
            let numbers = format!("idx: {} tid: {} cpu: {}", aux.idx, aux.tid as i32, aux.cpu as i32);
            (format!("AUXTRACE size: {size} offset: {offset} ref: {reference} {numbers}"), None)
        }
        // Of Intel PT. After the words that are numbers comes the text of a filter.
        Record::AuxtraceInfo(info) if info.kind == 1 => {
            let words = info.words.iter().take(INTEL_PT_NUMBERS).map(|word| format!("\n{word}"));
            (format!("AUXTRACE_INFO type: {}{}", info.kind, words.collect::<String>()), None)
        }
        Record::FinishedRound | Record::FinishedInit | Record::TimeConv(_) | Record::Other(_) => {
            (perf_name(raw.record_type), None)
        }
        other => panic!("perf's words for {other:?} are not known"),
    };
    let text = text.lines().map(one_space).collect::<Vec<_>>().join("\n");
    match id {
        Some(SampleId { cpu, time, .. }) => (cpu.unwrap_or(u32::MAX), time.unwrap_or(u64::MAX), text),
        None => (0, 0, text),
    }
}

fn perf_name(record_type: RecordType) -> String {
    let name = record_type.name().unwrap();
    match record_type {
        RecordType::HEADER_ATTR
        | RecordType::HEADER_EVENT_TYPE
        | RecordType::HEADER_TRACING_DATA
        | RecordType::HEADER_BUILD_ID
        | RecordType::HEADER_FEATURE => name.trim_start_matches("HEADER_").to_owned(),
        _ => name.to_owned(),
    }
}

/// As printf's `%#lx`: 0 has no prefix.
fn hex(number: u64) -> String {
    if number == 0 { "0".to_owned() } else { format!("{number:#x}") }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn mapping(mmap: &Mmap<'_>) -> String {
    let (pid, tid) = (mmap.pid as i32, mmap.tid as i32);
    format!("{pid}/{tid}: [{}({}) @ {}", hex(mmap.start.0), hex(mmap.len), hex(mmap.pgoff))
}

fn mmap2(mmap: &Mmap<'_>) -> String {
    let file = match mmap.file {
        MappedFile::Inode { maj, min, ino, generation } => format!("{maj:02x}:{min:02x} {ino} {generation}"),
        MappedFile::BuildId(id) => format!("<{id}>"),
        MappedFile::Unknown => "?".to_owned(),
    };
    let letter = |bit, letter| if mmap.prot & bit != 0 { letter } else { '-' };
    let shared = if mmap.flags & 1 != 0 { 's' } else { 'p' };
    let prot: String = [letter(1, 'r'), letter(2, 'w'), letter(4, 'x'), shared].iter().collect();
    format!("MMAP2 {} {file}]: {prot} {}", mapping(mmap), lossy(mmap.path))
}

fn sample_text(recording: &Recording, raw: &RawRecord<'_>) -> Texts {
    let sample = recording.sample(raw).unwrap();
    let attr = &recording.events()[sample.event].attr;
    let period = sample.period.unwrap_or(attr.sample_period_or_freq);
    let (pid, tid) = (sample.pid.unwrap_or(u32::MAX) as i32, sample.tid.unwrap_or(u32::MAX) as i32);
    let ip = hex(sample.ip.unwrap_or_default().0);
    let addr = hex(sample.addr.unwrap_or_default().0);
    let misc = hex(raw.misc.into());
    let mut text = format!("SAMPLE(IP, {misc}): {pid}/{tid}: {ip} period: {period} addr: {addr}");
    let mut line = |line: String| {
        text.push('\n');
        text.push_str(&one_space(&line));
    };
    if let Some(chain) = sample.callchain {
        line(format!("... FP chain: nr:{}", chain.len()));
        for (index, ip) in chain.iter().enumerate() {
            line(format!("..... {index:2}: {ip:016x}"));
        }
    }
    if let Some(stack) = sample.branch_stack {
        line(format!("... branch stack: nr:{}", stack.len()));
        for (index, branch) in stack.iter().enumerate() {
            let flags = branch.flags;
            let letter = |set, letter| if set { letter } else { "" };
            line(format!(
                "..... {index:2}: {:016x} -> {:016x} {} cycles {} {} {} {} {:x} {}",
                branch.from.0,
                branch.to.0,
                flags.cycles(),
                letter(flags.mispredicted(), "M"),
                letter(flags.predicted(), "P"),
                letter(flags.abort(), "A"),
                letter(flags.in_tx(), "T"),
                flags.0 >> 33,
                if flags.kind().0 == 0 { String::new() } else { flags.kind().to_string() },
            ));
        }
    }
    if let Some(registers) = sample.user_regs {
        registers_text("user", &registers, &mut line);
    }
    if let Some(registers) = sample.intr_regs {
        registers_text("intr", &registers, &mut line);
    }
    if let Some(stack) = sample.user_stack {
        // Where the size is: a word before the data, in a record whose header has a word.
        let offset = stack.data.as_ptr().addr() - raw.body.as_ptr().addr();
        line(format!("... ustack: size {}, offset {offset:#x}", stack.dyn_size));
    }
    other_fields(attr, &sample, &mut line);
    if let Some(read) = sample.read {
        read_text(attr.read_format, &read, &mut line);
    }
    (sample.cpu.unwrap_or(u32::MAX), sample.time.unwrap_or(u64::MAX), text)
}

fn other_fields(attr: &EventAttr, sample: &Sample<'_>, line: &mut impl FnMut(String)) {
    match sample.weight {
        Some(Weight::Full(weight)) => line(format!("... weight: {weight}")),
        Some(Weight::Struct { var1, var2, .. }) => line(format!("... weight: {var1},0x{var2:x}")),
        None => {}
    }
    if let Some(data_src) = sample.data_src {
        line(format!(" . data_src: 0x{data_src:x}"));
    }
    if let Some(phys_addr) = sample.phys_addr {
        line(format!(" .. phys_addr: 0x{phys_addr:x}"));
    }
    if let Some(size) = sample.data_page_size {
        line(format!(" .. data page size: {}", page_size(size)));
    }
    if let Some(size) = sample.code_page_size {
        line(format!(" .. code page size: {}", page_size(size)));
    }
    if attr.sample_format.contains(SampleFormat::TRANSACTION) {
        line(format!("... transaction: {:x}", sample.transaction.unwrap()));
    }
}

fn page_size(size: u64) -> String {
    match size {
        0 => "N/A".to_owned(),
        _ if size.is_multiple_of(1 << 30) => format!("{}G", size >> 30),
        _ if size.is_multiple_of(1 << 20) => format!("{}M", size >> 20),
        _ => format!("{}K", size >> 10),
    }
}

fn registers_text(name: &str, registers: &Registers<'_>, line: &mut impl FnMut(String)) {
    const NAMES: [&str; 24] = [
        "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS", "GS", "R8", "R9",
        "R10", "R11", "R12", "R13", "R14", "R15",
    ];
    let abi = match registers.abi {
        0 => return,
        1 => "32-bit",
        2 => "64-bit",
        _ => "unknown",
    };
    line(format!("... {name} regs: mask {:#x} ABI {abi}", registers.mask));
    for (number, name) in (0..).zip(NAMES) {
        if let Some(value) = registers.get(number) {
            line(format!(".... {name} 0x{value:016x}"));
        }
    }
}

fn read_text(format: ReadFormat, read: &ReadValues<'_>, line: &mut impl FnMut(String)) {
    line("... sample_read:".to_owned());
    if let Some(time) = read.time_enabled {
        line(format!("...... time enabled {time:016x}"));
    }
    if let Some(time) = read.time_running {
        line(format!("...... time running {time:016x}"));
    }
    if format.contains(ReadFormat::GROUP) {
        line(format!(".... group nr {}", read.len()));
    }
    for value in read.iter() {
        let lost = value.lost.map(|lost| format!(", lost {lost}")).unwrap_or_default();
        line(format!("..... id {:016x}, value {:016x}{lost}", value.id.unwrap_or(0), value.value));
    }
}
