//! What the writer writes, the reader reads.

use std::io::Cursor;

use perfdata::{
    AttrFlags, Avma, Branch, BranchFlags, BranchSampleType, BuildId, BuildIdEntry, Cache, Chunk, ClockData, Comm,
    CpuMode, Error, EventAttr, EventDescription, EventGroup, FeatureBit, Features, Ksymbol, Lost, LostSamples,
    MappedFile, Mmap, Record, RecordType, Recording, SampleFields, SampleFormat, SampleId, Task, TextPoke, Writer,
};

fn format() -> SampleFormat {
    SampleFormat::IDENTIFIER
        | SampleFormat::IP
        | SampleFormat::TID
        | SampleFormat::TIME
        | SampleFormat::CPU
        | SampleFormat::PERIOD
        | SampleFormat::BRANCH_STACK
}

fn events() -> Vec<EventDescription> {
    let attr = |config, sample_format| EventAttr {
        kind: 1,
        config,
        sample_period_or_freq: 1_000_003,
        sample_format,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_KERNEL,
        branch_sample_type: BranchSampleType::USER | BranchSampleType::ANY,
        ..EventAttr::default()
    };
    vec![
        EventDescription { attr: attr(1, format()), name: "task-clock:u".into(), ids: vec![11, 12] },
        EventDescription {
            attr: attr(0, format().difference(SampleFormat::BRANCH_STACK) | SampleFormat::ADDR),
            name: "cpu-clock:u".into(),
            ids: vec![13],
        },
    ]
}

fn features() -> Features {
    let text = |text: &str| Some(text.to_owned());
    Features {
        hostname: text("host"),
        os_release: text("6.12.1"),
        version: text("0.1.0"),
        arch: text("x86_64"),
        cpu_desc: text("A CPU @ 1 GHz"),
        cpuid: text("GenuineIntel,6,85,7"),
        nr_cpus: Some((8, 4)),
        total_mem: Some(123_456),
        cmdline: vec!["hbbp".into(), "record".into(), "--".into(), "x".repeat(100)],
        build_ids: vec![
            BuildIdEntry { misc: 2, pid: -1, build_id: vec![7; 20], path: b"/usr/bin/true".to_vec() },
            BuildIdEntry { misc: 1, pid: -1, build_id: vec![1, 2, 3], path: b"[kernel.kallsyms]".to_vec() },
        ],
        event_names: vec!["task-clock:u".into(), "cpu-clock:u".into()],
        pmu_mappings: vec![(1, "software".into()), (4, "cpu".into())],
        groups: vec![EventGroup { name: String::new(), leader: 0, members: 2 }],
        caches: vec![Cache {
            level: 1,
            line_size: 64,
            sets: 64,
            ways: 12,
            kind: "Data".into(),
            size: "48K".into(),
            cpus: "0-1".into(),
        }],
        sample_time: Some((5, 99)),
        branch_stack: true,
        clockid: Some(1),
        clock_data: Some(ClockData { clockid: 1, wall_clock_ns: 77, clockid_time_ns: 88 }),
        cpu_pmu_caps: vec![("branches".into(), "32".into())],
        pmu_caps: vec![("cpu".into(), vec![("branches".into(), "32".into()), ("max_precise".into(), "3".into())])],
        hybrid_topology: vec![("cpu_core".into(), "0-3".into())],
        other: [(FeatureBit(250), br#"{"provenance":"software"}"#.to_vec())].into(),
        ..Features::default()
    }
}

fn sample_id(time: u64) -> SampleId {
    let (pid, tid, cpu, identifier) = (Some(100), Some(101), Some(3), Some(11));
    SampleId { pid, tid, cpu, identifier, time: Some(time), ..SampleId::default() }
}

fn branches(count: u64) -> Vec<Branch> {
    let branch = |n: u64| Branch { from: Avma(0x1000 + n), to: Avma(0x2000 + n), flags: BranchFlags(n & 0x3ff_ffff) };
    (0..count).map(branch).collect()
}

/// Everything that `mmap`, `comm`, ... below write, as the reader must return it.
fn records<'a>(inode: &'a Mmap<'a>, with_id: &'a Mmap<'a>, comm: &'a Comm<'a>) -> Vec<Record<'a>> {
    let task = Task { pid: 100, ppid: 100, tid: 102, ptid: 101, time: 4, sample_id: sample_id(4) };
    vec![
        Record::Comm(*comm),
        Record::Mmap2(*inode),
        Record::Mmap2(*with_id),
        Record::Fork(task),
        Record::Exit(task),
        Record::Lost(Lost { id: 11, lost: 5, sample_id: sample_id(6) }),
        Record::LostSamples(LostSamples { lost: 9, misc: 0, sample_id: sample_id(7) }),
        Record::Ksymbol(Ksymbol {
            addr: Avma(0xffff_ffff_c000_1000),
            len: 96,
            ksym_type: 1,
            unregister: false,
            name: b"bpf_prog_6deef7357e7b4530",
            sample_id: sample_id(8),
        }),
        Record::Ksymbol(Ksymbol { unregister: true, name: b"bpf_prog", sample_id: sample_id(9), ..Ksymbol::default() }),
        Record::TextPoke(TextPoke {
            addr: Avma(0xffff_ffff_8100_0000),
            old: b"\x0f\x1f\x44\x00\x00",
            new: b"\xe8\x01",
            sample_id: sample_id(10),
        }),
        Record::FinishedRound,
    ]
}

fn write_record(writer: &mut Writer<Cursor<Vec<u8>>>, record: &Record<'_>) {
    match record {
        Record::Comm(comm) => writer.write_comm(comm),
        Record::Mmap2(mmap) => writer.write_mmap2(mmap),
        Record::Fork(task) => writer.write_fork(task),
        Record::Exit(task) => writer.write_exit(task),
        Record::Lost(lost) => writer.write_lost(lost),
        Record::LostSamples(lost) => writer.write_lost_samples(lost),
        Record::Ksymbol(symbol) => writer.write_ksymbol(symbol),
        Record::TextPoke(poke) => writer.write_text_poke(poke),
        Record::FinishedRound => writer.write_finished_round(),
        other => panic!("no writer for {other:?}"),
    }
    .unwrap();
}

#[test]
fn records_samples_events_and_features_come_back() {
    come_back(Writer::create(Cursor::new(Vec::new()), &events()).unwrap());
}

/// A stream has all that a file has. What it has for the features that perf does not know is filled up with spaces.
#[test]
fn streams_come_back() {
    come_back(Writer::create_stream(Cursor::new(Vec::new()), &events()).unwrap());
}

/// Nothing is gone back in.
#[test]
fn a_stream_needs_no_seeking() {
    let mut pipe = Vec::new();
    let writer = Writer::create_stream(&mut pipe, &events()).unwrap();
    let features_of = |word: usize| Features { cmdline: vec!["x".repeat(word)], ..features() };
    // The number of words, the length of the word, and the word, which a NUL ends and zeros fill up to a multiple of 64.
    assert_eq!(writer.too_large(&features_of(65_472 - 1)).unwrap(), []);
    assert_eq!(writer.too_large(&features_of(65_472)).unwrap(), [FeatureBit::CMDLINE]);
    writer.finish(&features_of(65_472)).unwrap();
    let recording = Recording::from_stream(&*pipe).unwrap();
    assert_eq!(recording.events(), events());
    assert_eq!(recording.features().cmdline, [""; 0], "too long for a record");
    assert_eq!(recording.features().hostname, features().hostname);
}

fn come_back(mut writer: Writer<Cursor<Vec<u8>>>) {
    let inode = Mmap {
        cpu_mode: CpuMode::User,
        pid: 100,
        tid: 101,
        start: Avma(0x5555_0000),
        len: 0x3000,
        pgoff: 0x1000,
        file: MappedFile::Inode { maj: 8, min: 1, ino: 4711, generation: 3 },
        prot: 5,
        flags: 2,
        data: false,
        path: b"/usr/bin/true",
        sample_id: sample_id(2),
    };
    let file = MappedFile::BuildId(BuildId::new(&[9; 16]).unwrap());
    let with_id = Mmap { file, data: true, path: b"/usr/lib/libc.so.6-", ..inode };
    let comm = Comm { pid: 100, tid: 101, exec: true, name: b"true", sample_id: sample_id(1) };
    let records = records(&inode, &with_id, &comm);
    let branches = branches(2000);
    let traced = SampleFields {
        cpu_mode: CpuMode::User,
        ip: Avma(0x5555_0010),
        pid: 100,
        tid: 101,
        time: 9,
        cpu: 3,
        period: 1_000_003,
        branches: &branches,
        ..SampleFields::default()
    };
    let plain = SampleFields { event: 1, exact_ip: true, addr: Avma(0xdead), branches: &[], ..traced };

    for record in &records {
        write_record(&mut writer, record);
    }
    writer.write_sample(&traced).unwrap();
    writer.write_sample(&plain).unwrap();
    let bytes = writer.finish(&features()).unwrap().into_inner();

    let recording = Recording::from_bytes(bytes).unwrap();
    assert_eq!(recording.events(), events());
    assert_eq!(*recording.features(), features());
    assert_eq!(recording.notes(), [""; 0]);
    let mut chunk = Chunk::new();
    let mut reader = recording.chunks();
    assert!(reader.next_into(&mut chunk).unwrap());
    let of_stream = [
        RecordType::HEADER_ATTR,
        RecordType::HEADER_EVENT_TYPE,
        RecordType::HEADER_BUILD_ID,
        RecordType::EVENT_UPDATE,
        RecordType::HEADER_FEATURE,
    ];
    let raw: Vec<_> = chunk.records().filter(|raw| !of_stream.contains(&raw.record_type)).collect();
    assert_eq!(raw.len(), records.len() + 2);
    for (raw, expected) in raw.iter().zip(&records) {
        assert_eq!(recording.parse(raw).unwrap(), *expected);
    }
    let [first, second] = raw[records.len()..] else { unreachable!() };
    let sample = recording.sample(&first).unwrap();
    assert_eq!((sample.event, sample.identifier, sample.ip), (0, Some(11), Some(traced.ip)));
    assert_eq!((sample.pid, sample.tid, sample.time), (Some(100), Some(101), Some(9)));
    assert_eq!((sample.cpu, sample.period, sample.addr), (Some(3), Some(1_000_003), None));
    assert_eq!(sample.branch_stack.unwrap().iter().collect::<Vec<_>>(), branches);
    assert_eq!((first.cpu_mode(), first.exact_ip()), (CpuMode::User, false));
    let sample = recording.sample(&second).unwrap();
    assert_eq!((sample.event, sample.identifier, sample.addr), (1, Some(13), Some(plain.addr)));
    assert_eq!(sample.branch_stack, None);
    assert!(second.exact_ip());
    assert!(!reader.next_into(&mut chunk).unwrap());
    assert!(reader.damage().is_none());
    assert_eq!(reader.position(), recording.data_size());
}

#[test]
fn raw_records_pass_through() {
    let mut writer = Writer::create(Cursor::new(Vec::new()), &events()).unwrap();
    let comm = Comm { pid: 1, tid: 2, exec: false, name: b"a", sample_id: sample_id(1) };
    writer.write_comm(&comm).unwrap();
    let first = Recording::from_bytes(writer.finish(&features()).unwrap().into_inner()).unwrap();
    let mut chunk = Chunk::new();
    first.chunks().next_into(&mut chunk).unwrap();
    let raw = chunk.records().next().unwrap();
    let size = (raw.body.len() + 8) as u16;
    let mut record = [&3u32.to_le_bytes()[..], &raw.misc.to_le_bytes(), &size.to_le_bytes(), raw.body].concat();

    let mut writer = Writer::create(Cursor::new(Vec::new()), &events()).unwrap();
    writer.write_raw(&[&record[..], &record[..]].concat()).unwrap();
    record.pop();
    let error = writer.write_raw(&record).unwrap_err();
    assert!(matches!(error, Error::CannotWrite { .. }), "{error}");
    let second = Recording::from_bytes(writer.finish(&features()).unwrap().into_inner()).unwrap();
    second.chunks().next_into(&mut chunk).unwrap();
    let read: Vec<_> = chunk.records().map(|raw| second.parse(&raw).unwrap()).collect();
    assert_eq!(read, [Record::Comm(comm), Record::Comm(comm)]);
}

#[test]
fn a_writer_that_died_leaves_a_readable_file() {
    let mut out = Cursor::new(Vec::new());
    let mut writer = Writer::create(&mut out, &events()).unwrap();
    for time in 0..10 {
        writer.write_sample(&SampleFields { time, ..SampleFields::default() }).unwrap();
    }
    drop(writer);
    let mut bytes = out.into_inner();
    bytes.truncate(bytes.len() - 1);
    let recording = Recording::from_bytes(bytes).unwrap();
    assert!(recording.notes()[0].contains("killed"), "{:?}", recording.notes());
    let mut chunk = Chunk::new();
    let mut reader = recording.chunks();
    assert!(reader.next_into(&mut chunk).unwrap());
    let times: Vec<_> = chunk.records().map(|raw| recording.sample(&raw).unwrap().time.unwrap()).collect();
    assert_eq!(times, (0..9).collect::<Vec<_>>());
    assert!(!reader.next_into(&mut chunk).unwrap());
    let damage = reader.damage().unwrap().to_string();
    assert!(damage.contains("64 bytes long, 63 bytes left"), "{damage}");
}

#[test]
fn records_over_65535_bytes_are_refused() {
    let mut writer = Writer::create(Cursor::new(Vec::new()), &events()).unwrap();
    // 64 bytes of header, fields and count, then 24 a branch.
    let most = branches((65_535 - 64) / 24);
    writer.write_sample(&SampleFields { branches: &most, ..SampleFields::default() }).unwrap();
    let over = branches(most.len() as u64 + 1);
    let error = writer.write_sample(&SampleFields { branches: &over, ..SampleFields::default() }).unwrap_err();
    assert!(error.to_string().contains("at most 65535 fit"), "{error}");
}

#[test]
fn samples_only_the_kernel_can_fill_are_refused() {
    let mut events = events();
    events[0].attr.sample_format |= SampleFormat::REGS_USER;
    let mut writer = Writer::create(Cursor::new(Vec::new()), &events).unwrap();
    let error = writer.write_sample(&SampleFields::default()).unwrap_err();
    assert!(error.to_string().contains("REGS_USER"), "{error}");
}

#[test]
fn events_that_cannot_be_told_apart_are_refused() {
    let mut events = events();
    events[1].attr.sample_format = SampleFormat::IP | SampleFormat::ID;
    let error = Writer::create(Cursor::new(Vec::new()), &events).unwrap_err();
    assert!(matches!(error, Error::SampleIdPlaces { first: 0, second: 1 }), "{error}");
    assert!(matches!(Writer::create(Cursor::new(Vec::new()), &[]).unwrap_err(), Error::NoEvents));
}

#[test]
fn sections_that_cannot_be_found_again_are_refused() {
    let finish = |other: &[(u32, &[u8])], hostname: Option<&str>| {
        let mut writer = Writer::create(Cursor::new(Vec::new()), &events()).unwrap();
        writer.write_finished_round().unwrap();
        let other = other.iter().map(|&(bit, section)| (FeatureBit(bit), section.to_vec())).collect();
        let features = Features { other, hostname: hostname.map(str::to_owned), ..Features::default() };
        writer.finish(&features).map(Cursor::into_inner).map_err(|error| error.to_string())
    };
    let error = finish(&[(256, b"x")], None).unwrap_err();
    assert_eq!(error, "cannot write a feature section: its number is 256, the header has room for 0 to 255");
    let error = finish(&[(3, b"x")], Some("host")).unwrap_err();
    assert_eq!(error, "cannot write a feature section: there is a field for HOSTNAME, which is set, too");

    let bytes = finish(&[(255, b"last"), (13, b"in the middle"), (77, b"")], Some("host")).unwrap();
    let recording = Recording::from_bytes(bytes).unwrap();
    let features = recording.features();
    let found: Vec<_> = features.other.iter().map(|(bit, section)| (bit.0, section.as_slice())).collect();
    assert_eq!(found, [(13, &b"in the middle"[..]), (77, b""), (255, b"last")]);
    assert_eq!(features.hostname.as_deref(), Some("host"));
    assert_eq!(recording.notes(), [""; 0]);
}

/// A tool's own section at the front, as recorders write it so that it is there if they are killed.
#[test]
fn a_stream_without_its_end_is_cut_off() {
    const EVENT_TYPE: RecordType = RecordType::HEADER_EVENT_TYPE;
    let own = [&250_u64.to_le_bytes()[..], b"[1, 2,3]"].concat();
    let begun = |own: Option<&[u8]>| {
        let mut pipe = Vec::new();
        let mut writer = Writer::create_stream(&mut pipe, &events()).unwrap();
        if let Some(own) = own {
            writer.write_user_record(EVENT_TYPE, own).unwrap();
        }
        writer.write_finished_round().unwrap();
        drop(writer);
        pipe
    };
    let finished = |own: Option<&[u8]>, features: &Features| {
        let mut writer = Writer::create_stream(Vec::new(), &events()).unwrap();
        if let Some(own) = own {
            writer.write_user_record(EVENT_TYPE, own).unwrap();
        }
        writer.finish(features).unwrap()
    };
    let was_cut_off = |bytes: Vec<u8>| Recording::from_bytes(bytes).unwrap().was_cut_off();
    let last = Features { other: [(FeatureBit(250), b"[]".to_vec())].into(), ..Features::default() };
    assert!(was_cut_off(begun(Some(&own))));
    assert!(!was_cut_off(begun(None)), "nothing tells");
    assert!(!was_cut_off(finished(Some(&own), &last)));
    assert!(!was_cut_off(finished(Some(&own), &Features::default())));
    assert!(!was_cut_off(finished(None, &last)));
}

#[test]
fn a_stream_takes_a_section_of_its_own_only_as_text() {
    let finish = |section: &[u8]| {
        let writer = Writer::create_stream(Vec::new(), &events()).unwrap();
        let features = Features { other: [(FeatureBit(250), section.to_vec())].into(), ..Features::default() };
        writer.finish(&features)
    };
    for section in [&b""[..], b"text\0", b"text\n"] {
        let error = finish(section).unwrap_err().to_string();
        assert!(error.contains("a stream holds feature 250 as a text"), "{error}");
    }
    let recording = Recording::from_bytes(finish(b"[]").unwrap()).unwrap();
    assert_eq!(recording.features().other, [(FeatureBit(250), b"[]".to_vec())].into());
}
