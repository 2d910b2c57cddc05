//! Every kind of record but samples, laid out as in `include/uapi/linux/perf_event.h` and `tools/lib/perf/include/perf/event.h`.

mod by_hand;

use by_hand::{Attr, SAMPLE_ID_ALL, open, read_all, record, string, with_only_record, words};
use perfdata::{
    Aux, AuxOutputHwId, Auxtrace, Avma, BpfEvent, BuildId, Cgroup, Comm, CpuMode, ItraceStart, Ksymbol, Lost,
    LostSamples, MappedFile, Mmap, ReadFormat, ReadValue, Record, RecordType, SampleFormat as F, SampleId, Switch,
    Task, TextPoke, Throttle, TimeConv,
};

/// A trailer with all its fields, and what it says.
fn trailer() -> (Vec<u8>, SampleId) {
    let bytes = words(&[12 << 32 | 11, 13, 14, 15, 0xdead << 32 | 16, 17]);
    let id = SampleId {
        pid: Some(11),
        tid: Some(12),
        time: Some(13),
        id: Some(14),
        stream_id: Some(15),
        cpu: Some(16),
        identifier: Some(17),
    };
    (bytes, id)
}

const TRAILER: u64 = F::TID.0 | F::TIME.0 | F::ID.0 | F::STREAM_ID.0 | F::CPU.0 | F::IDENTIFIER.0;

fn attr() -> Attr {
    Attr { sample_type: TRAILER | F::IP.0, flags: SAMPLE_ID_ALL, ids: vec![17], ..Attr::default() }
}

/// Checks the record with a trailer and without one.
fn check(record_type: RecordType, misc: u16, own: &[u8], expected: impl Fn(SampleId) -> Record<'static>) {
    let (bytes, id) = trailer();
    let with = open(&[attr()], &[record(record_type.0, misc, &[own, &bytes].concat())]);
    with_only_record(&with, |raw| assert_eq!(with.parse(raw).unwrap(), expected(id)));
    let plain = Attr { flags: 0, ..attr() };
    let without = open(&[plain], &[record(record_type.0, misc, own)]);
    with_only_record(&without, |raw| assert_eq!(without.parse(raw).unwrap(), expected(SampleId::default())));
}

/// Two 32-bit numbers as a word.
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[test]
fn mappings() {
    let body = [words(&[pair(1, 2), 0x40_0000, 0x2000, 0x1000]), string("/bin/true")].concat();
    let mmap = |sample_id| Mmap {
        cpu_mode: CpuMode::User,
        pid: 1,
        tid: 2,
        start: Avma(0x40_0000),
        len: 0x2000,
        pgoff: 0x1000,
        file: MappedFile::Unknown,
        prot: 5,
        flags: 0,
        data: false,
        path: b"/bin/true",
        sample_id,
    };
    check(RecordType::MMAP, 2, &body, |id| Record::Mmap(mmap(id)));
    check(RecordType::MMAP, 1 << 13 | 1, &body, |id| {
        Record::Mmap(Mmap { cpu_mode: CpuMode::Kernel, data: true, prot: 1, ..mmap(id) })
    });

    let inode = words(&[pair(8, 3), 4711, 5, pair(4, 2)]);
    let body = [words(&[pair(1, 2), 0x40_0000, 0x2000, 0x1000]), inode, string("/bin/true")].concat();
    let file = MappedFile::Inode { maj: 8, min: 3, ino: 4711, generation: 5 };
    check(RecordType::MMAP2, 2, &body, |id| Record::Mmap2(Mmap { file, prot: 4, flags: 2, ..mmap(id) }));

    let build_id = [&[3, 0, 0, 0, 0xab, 0xcd, 0xef][..], &[0x99; 17], &words(&[pair(7, 1)])].concat();
    let body = [words(&[pair(1, 2), 0x40_0000, 0x2000, 0x1000]), build_id, string("/bin/true")].concat();
    let file = MappedFile::BuildId(BuildId::new(&[0xab, 0xcd, 0xef]).unwrap());
    check(RecordType::MMAP2, 1 << 14 | 2, &body, |id| Record::Mmap2(Mmap { file, prot: 7, flags: 1, ..mmap(id) }));
}

#[test]
fn a_build_id_that_says_it_is_too_long_is_cut() {
    let build_id = [&[200, 0, 0, 0][..], &[7; 20], &words(&[0])].concat();
    let body = [words(&[0, 0, 0, 0]), build_id, string("")].concat();
    let recording = open(&[Attr { flags: 0, ..attr() }], &[record(10, 1 << 14, &body)]);
    with_only_record(&recording, |raw| {
        let Record::Mmap2(mmap) = recording.parse(raw).unwrap() else { panic!() };
        assert_eq!(mmap.file, MappedFile::BuildId(BuildId::new(&[7; 20]).unwrap()));
    });
}

#[test]
fn names_need_no_nul_at_their_end() {
    let body = [words(&[pair(1, 2)]), b"12345678".to_vec()].concat();
    check(RecordType::COMM, 0, &body, |sample_id| {
        Record::Comm(Comm { pid: 1, tid: 2, exec: false, name: b"12345678", sample_id })
    });
}

#[test]
fn threads() {
    let body = [words(&[pair(1, 2)]), string("name")].concat();
    let comm = |sample_id, exec| Record::Comm(Comm { pid: 1, tid: 2, exec, name: b"name", sample_id });
    check(RecordType::COMM, 0, &body, |id| comm(id, false));
    check(RecordType::COMM, 1 << 13, &body, |id| comm(id, true));

    let body = words(&[pair(1, 2), pair(3, 4), 5]);
    let task = |sample_id| Task { pid: 1, ppid: 2, tid: 3, ptid: 4, time: 5, sample_id };
    check(RecordType::FORK, 0, &body, |id| Record::Fork(task(id)));
    check(RecordType::EXIT, 0, &body, |id| Record::Exit(task(id)));

    let links = |count: u64| words(&[pair(1, 2), count, 3, 4, 5, 6]);
    let recording = open(&[Attr { flags: 0, ..attr() }], &[record(16, 0, &links(2))]);
    with_only_record(&recording, |raw| {
        let Record::Namespaces(namespaces) = recording.parse(raw).unwrap() else { panic!() };
        assert_eq!((namespaces.pid, namespaces.tid), (1, 2));
        assert_eq!(namespaces.links.iter().collect::<Vec<_>>(), [3, 4, 5, 6]);
    });
    let recording = open(&[Attr { flags: 0, ..attr() }], &[record(16, 0, &links(3))]);
    with_only_record(&recording, |raw| {
        let error = recording.parse(raw).unwrap_err().to_string();
        assert!(error.contains("says 3 namespaces, 32 bytes left, needs 48"), "{error}");
    });
}

#[test]
fn losses_and_throttling() {
    check(RecordType::LOST, 0, &words(&[1, 2]), |sample_id| Record::Lost(Lost { id: 1, lost: 2, sample_id }));
    check(RecordType::LOST_SAMPLES, 1 << 15 | 2, &words(&[7]), |sample_id| {
        Record::LostSamples(LostSamples { lost: 7, misc: 1 << 15, sample_id })
    });
    let throttle = |sample_id| Throttle { time: 1, id: 2, stream_id: 3, sample_id };
    check(RecordType::THROTTLE, 0, &words(&[1, 2, 3]), |id| Record::Throttle(throttle(id)));
    check(RecordType::UNTHROTTLE, 0, &words(&[1, 2, 3]), |id| Record::Unthrottle(throttle(id)));
}

#[test]
fn context_switches() {
    let switch = |out, preempt, next_prev, sample_id| Record::Switch(Switch { out, preempt, next_prev, sample_id });
    check(RecordType::SWITCH, 0, &[], |id| switch(false, false, None, id));
    check(RecordType::SWITCH, 1 << 13, &[], |id| switch(true, false, None, id));
    check(RecordType::SWITCH, 3 << 13, &[], |id| switch(true, true, None, id));
    check(RecordType::SWITCH_CPU_WIDE, 1 << 13, &words(&[pair(8, 9)]), |id| switch(true, false, Some((8, 9)), id));
}

#[test]
fn kernel_text_and_programs() {
    let body = [words(&[0xffff, pair(64, 1 << 16 | 1)]), string("bpf_prog")].concat();
    check(RecordType::KSYMBOL, 0, &body, |sample_id| {
        let (addr, len, ksym_type, name) = (Avma(0xffff), 64, 1, b"bpf_prog");
        Record::Ksymbol(Ksymbol { addr, len, ksym_type, unregister: true, name, sample_id })
    });
    check(RecordType::BPF_EVENT, 0, &words(&[pair(2 << 16 | 1, 33), u64::from_le_bytes(*b"abcdefgh")]), |sample_id| {
        Record::BpfEvent(BpfEvent { event_type: 1, flags: 2, id: 33, tag: *b"abcdefgh", sample_id })
    });
    let body = [words(&[0xffff]), vec![3, 0, 2, 0], b"oldnw\0\0\0\0\0\0\0".to_vec()].concat();
    check(RecordType::TEXT_POKE, 0, &body, |sample_id| {
        Record::TextPoke(TextPoke { addr: Avma(0xffff), old: b"old", new: b"nw", sample_id })
    });
}

#[test]
fn aux_and_the_rest() {
    check(RecordType::CGROUP, 0, &[words(&[9]), string("/a/b")].concat(), |sample_id| {
        Record::Cgroup(Cgroup { id: 9, path: b"/a/b", sample_id })
    });
    check(RecordType::AUX, 0, &words(&[1, 2, 3]), |sample_id| {
        Record::Aux(Aux { aux_offset: 1, aux_size: 2, flags: 3, sample_id })
    });
    check(RecordType::ITRACE_START, 0, &words(&[pair(1, 2)]), |sample_id| {
        Record::ItraceStart(ItraceStart { pid: 1, tid: 2, sample_id })
    });
    check(RecordType::AUX_OUTPUT_HW_ID, 0, &words(&[5]), |sample_id| {
        Record::AuxOutputHwId(AuxOutputHwId { hw_id: 5, sample_id })
    });
    let recording = open(&[Attr { flags: 0, ..attr() }], &[record(22, 0, &words(&[5, 2, 6, 7]))]);
    with_only_record(&recording, |raw| {
        let Record::CallchainDeferred(chain) = recording.parse(raw).unwrap() else { panic!() };
        assert_eq!((chain.cookie, chain.ips.iter().collect()), (5, vec![6, 7]));
    });
}

/// Records of perf's own never have a trailer.
#[test]
fn perfs_own_records() {
    let check = |record_type: RecordType, body: &[u8], expected: Record<'_>| {
        let recording = open(&[attr()], &[record(record_type.0, 0, body)]);
        with_only_record(&recording, |raw| assert_eq!(recording.parse(raw).unwrap(), expected));
    };
    check(RecordType::FINISHED_ROUND, &[], Record::FinishedRound);
    check(RecordType::FINISHED_INIT, &[], Record::FinishedInit);
    check(RecordType::TIME_CONV, &words(&[1, 2, 3, 4]), Record::TimeConv(TimeConv { shift: 1, mult: 2, zero: 3 }));
    let aux = Auxtrace { size: 0, offset: 2, reference: 3, idx: 4, tid: 5, cpu: 6 };
    check(RecordType::AUXTRACE, &words(&[0, 2, 3, pair(4, 5), pair(6, 0)]), Record::Auxtrace(aux));
    for known in [RecordType::THREAD_MAP, RecordType::CPU_MAP, RecordType::ID_INDEX, RecordType::SCHEDSTAT_DOMAIN] {
        let recording = open(&[attr()], &[record(known.0, 0, &[1, 2, 3])]);
        with_only_record(&recording, |raw| {
            assert!(matches!(recording.parse(raw).unwrap(), Record::Other(other) if other.body == [1, 2, 3]));
        });
    }
}

#[test]
fn unknown_kinds_come_out_whole() {
    for unknown in [0, 40, 63, 87, u32::MAX] {
        let recording = open(&[Attr { flags: 0, ..attr() }], &[record(unknown, 5, &[1, 2, 3])]);
        with_only_record(&recording, |raw| {
            assert_eq!(recording.parse(raw).unwrap(), Record::Unknown(*raw));
            assert_eq!((raw.record_type.0, raw.misc, raw.body), (unknown, 5, &[1, 2, 3][..]));
        });
    }
}

#[test]
fn counter_values() {
    let read_format = ReadFormat::GROUP.0 | ReadFormat::ID.0 | ReadFormat::TOTAL_TIME_ENABLED.0;
    let (bytes, id) = trailer();
    let body = [words(&[pair(1, 2), 2, 100, 5, 6, 7, 8]), bytes].concat();
    let recording = open(&[Attr { read_format, ..attr() }], &[record(8, 0, &body)]);
    with_only_record(&recording, |raw| {
        let Record::Read(read) = recording.parse(raw).unwrap() else { panic!() };
        assert_eq!((read.pid, read.tid, read.sample_id), (1, 2, id));
        assert_eq!((read.values.time_enabled, read.values.time_running), (Some(100), None));
        let value = |value, id| ReadValue { value, id: Some(id), lost: None };
        assert_eq!(read.values.iter().collect::<Vec<_>>(), [value(5, 6), value(7, 8)]);
    });
}

/// Of all combinations of trailer fields, each at its place.
#[test]
fn every_trailer() {
    const FIELDS: [F; 6] = [F::TID, F::TIME, F::ID, F::STREAM_ID, F::CPU, F::IDENTIFIER];
    let (_, all) = trailer();
    for set in 0u32..64 {
        let has = |index: usize| set & 1 << index != 0;
        let fields = (0..6).filter(|&index| has(index));
        let sample_type = fields.clone().map(|index| FIELDS[index].0).sum::<u64>() | F::IP.0 | F::PERIOD.0;
        let (whole, _) = trailer();
        let bytes: Vec<u8> = fields.flat_map(|index| whole[index * 8..index * 8 + 8].to_vec()).collect();
        let body = [words(&[1, 2]), bytes].concat();
        let attr = Attr { sample_type, flags: SAMPLE_ID_ALL, ..Attr::default() };
        let recording = open(&[attr], &[record(2, 0, &body)]);
        let expected = SampleId {
            pid: all.pid.filter(|_| has(0)),
            tid: all.tid.filter(|_| has(0)),
            time: all.time.filter(|_| has(1)),
            id: all.id.filter(|_| has(2)),
            stream_id: all.stream_id.filter(|_| has(3)),
            cpu: all.cpu.filter(|_| has(4)),
            identifier: all.identifier.filter(|_| has(5)),
        };
        with_only_record(&recording, |raw| {
            let lost = Lost { id: 1, lost: 2, sample_id: expected };
            assert_eq!(recording.parse(raw).unwrap(), Record::Lost(lost));
        });
    }
}

#[test]
fn a_record_shorter_than_its_trailer_is_refused() {
    let recording = open(&[attr()], &[record(14, 0, &[0; 40])]);
    with_only_record(&recording, |raw| {
        let error = recording.parse(raw).unwrap_err().to_string();
        assert!(error.contains("needs 48 bytes, 40 bytes left"), "{error}");
    });
}

#[test]
fn the_wrong_parser_says_so() {
    let recording = open(&[attr()], &[record(9, 0, &[0; 64]), record(68, 0, &[])]);
    let mut messages = Vec::new();
    read_all(&recording, |raw| {
        let error =
            if raw.is_sample() { recording.parse(raw).unwrap_err() } else { recording.sample(raw).unwrap_err() };
        messages.push(error.to_string());
    });
    assert!(messages[0].contains("is a PERF_RECORD_SAMPLE, not a record other than"), "{messages:?}");
    assert!(messages[1].contains("is a PERF_RECORD_FINISHED_ROUND, not a PERF_RECORD_SAMPLE"), "{messages:?}");
}
