//! The container: headers, attrs of all sizes, features, streams, skipped data, chunks.

mod by_hand;

use by_hand::{Attr, bodies, file, file_with, open, read_all, record, stream, string, words};
use perfdata::{Chunk, Error, Recording, SampleFormat as F};

fn attr() -> Attr {
    Attr { sample_type: F::IP.0 | F::TIME.0, ids: vec![7, 8], ..Attr::default() }
}

fn sample(ip: u64) -> Vec<u8> {
    record(9, 2, &words(&[ip, ip + 1]))
}

fn error(bytes: Vec<u8>) -> Error {
    Recording::from_bytes(bytes).unwrap_err()
}

#[test]
fn what_is_no_recording_is_refused() {
    assert!(matches!(error(Vec::new()), Error::Empty));
    assert!(error(Vec::new()).to_string().starts_with("it is empty"));
    assert!(error(b"\x7fELF............".to_vec()).to_string().contains("not a perf.data file"));
    assert!(matches!(error(b"PERFILE2".to_vec()), Error::Short { .. }));
    assert!(matches!(error(b"PERFFILE........".to_vec()), Error::VersionOne));
    let mut bytes = file(&[attr()], &[]);
    bytes[8] = 105;
    assert!(matches!(error(bytes), Error::HeaderSize { size: 105 }));
    assert!(matches!(error(stream(&[], &[sample(1)])), Error::NoEvents));
    assert!(matches!(error(file(&[], &[sample(1)])), Error::NoEvents));
}

#[test]
fn a_big_endian_recording_is_refused_as_such() {
    let mut bytes = file(&[attr()], &[]);
    bytes[..8].reverse();
    bytes[8..16].reverse();
    let error = error(bytes);
    assert!(matches!(error, Error::BigEndian), "{error}");
    assert!(error.to_string().contains("big-endian"));
}

#[test]
fn a_directory_with_the_recording_in_it_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Recording::open(folder.path());
    assert!(matches!(open().unwrap_err(), Error::Directory));
    let data = folder.path().join("data");
    // DIR_FORMAT: a single file, or one for each thread.
    let records = sample(5);
    let of_version = |version: u64| file_with(&[attr()], &records, records.len() as u64, &[(24, words(&[version]))]);
    std::fs::write(&data, of_version(0)).unwrap();
    let recording = open().unwrap();
    assert_eq!((recording.directory(), recording.events().len()), (Some(folder.path()), 1));
    assert_eq!(Recording::open(&data).unwrap().directory(), None);
    std::fs::write(folder.path().join("data.0"), b"").unwrap();
    assert!(matches!(open().unwrap_err(), Error::SeveralFiles));
    std::fs::remove_file(folder.path().join("data.0")).unwrap();
    std::fs::write(&data, of_version(1)).unwrap();
    assert!(matches!(open().unwrap_err(), Error::SeveralFiles));
    assert!(matches!(Recording::open(&data).unwrap_err(), Error::SeveralFiles));
    std::fs::remove_file(&data).unwrap();
    std::fs::create_dir(&data).unwrap();
    assert!(matches!(open().unwrap_err(), Error::Directory));
}

/// Before 2.6.33 the header had no feature bits.
#[test]
fn a_header_without_feature_bits() {
    let mut bytes = file(&[attr()], &[sample(5)]);
    bytes[8] = 72;
    // What lies there then is not taken for bits.
    bytes[72..80].copy_from_slice(&[0xff; 8]);
    let recording = Recording::from_bytes(bytes).unwrap();
    assert_eq!(recording.notes(), [""; 0]);
    assert_eq!(bodies(&recording), [(9, words(&[5, 6]))]);
}

/// Attrs of any version, also later than known, in entries of their own size.
#[test]
fn attrs_of_all_sizes() {
    for size in [64u64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 200] {
        let mut entry = by_hand::attr(&attr());
        entry.resize(size as usize, 0);
        entry[4..8].copy_from_slice(&(size as u32).to_le_bytes());
        let data_at = 104 + size + 16 + 16;
        let mut bytes = b"PERFILE2".to_vec();
        bytes.extend(words(&[104, size + 16, 104, size + 16, data_at, 24, 0, 0, 0, 0, 0, 0]));
        bytes.extend(entry);
        bytes.extend(words(&[104 + size + 16, 16, 7, 8]));
        bytes.extend(sample(5));
        let recording = Recording::from_bytes(bytes).unwrap();
        assert_eq!(recording.events().len(), 1);
        let event = &recording.events()[0];
        assert_eq!((event.attr.size as u64, &event.ids), (size, &vec![7, 8]));
        assert_eq!(event.attr.sample_format, F::IP | F::TIME);
        read_all(&recording, |raw| assert_eq!(recording.sample(raw).unwrap().time, Some(6)));
    }
}

/// An attr may be shorter than its entry has room: then its ids are at the entry's end.
#[test]
fn an_attr_shorter_than_its_entry() {
    let mut bytes = file(&[attr(), attr()], &[sample(5)]);
    for entry in [104, 104 + 144] {
        bytes[entry + 4..entry + 8].copy_from_slice(&96u32.to_le_bytes());
    }
    let recording = Recording::from_bytes(bytes).unwrap();
    assert_eq!(recording.events().iter().map(|event| event.ids.len()).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(recording.events()[1].attr.size, 96);
}

#[test]
fn impossible_attr_sizes_are_refused() {
    let mut bytes = file(&[attr()], &[]);
    bytes[108..112].copy_from_slice(&129u32.to_le_bytes());
    let message = error(bytes).to_string();
    assert!(message.contains("event 0") && message.contains("129") && message.contains("128"), "{message}");
    for entry_size in [0u64, 16, 79, u64::MAX] {
        let mut bytes = file(&[attr()], &[]);
        bytes[16..24].copy_from_slice(&entry_size.to_le_bytes());
        assert!(Recording::from_bytes(bytes).is_err(), "entry size {entry_size}");
    }
}

#[test]
fn sections_beyond_the_end_are_refused() {
    // Offset and size of the attrs, offset of the data, size of the ids.
    for place in [24, 32, 40, 104 + 136] {
        let mut bytes = file(&[attr()], &[sample(1)]);
        bytes[place..place + 8].copy_from_slice(&(u64::MAX - 7).to_le_bytes());
        let error = error(bytes);
        assert!(matches!(error, Error::Short { .. }), "at {place}: {error}");
    }
}

/// Ids that every event claims would be read once per event: a small file would take much memory.
#[test]
fn ids_shared_by_many_events_are_refused() {
    let attrs = vec![attr(); 50];
    let mut bytes = file(&attrs, &[]);
    let len = bytes.len() as u64;
    for index in 0..50 {
        let at = 104 + index * 144 + 128;
        bytes[at..at + 16].copy_from_slice(&words(&[0, len]));
    }
    assert!(matches!(error(bytes), Error::Short { what: "ids section", .. }));
}

#[test]
fn a_data_size_of_zero_is_a_killed_recorder() {
    let data = [sample(1), sample(3), sample(5)[..12].to_vec()].concat();
    let recording = Recording::from_bytes(file_with(&[attr()], &data, 0, &[])).unwrap();
    assert!(
        recording.notes()[0].contains("could not write on: reading the 60 bytes there are"),
        "{:?}",
        recording.notes()
    );
    let mut ips = Vec::new();
    let damage = read_all(&recording, |raw| ips.push(recording.sample(raw).unwrap().ip.unwrap().0)).unwrap();
    assert_eq!(ips, [1, 3]);
    assert!(damage.contains("(PERF_RECORD_SAMPLE) says it is 24 bytes long, 12 bytes left"), "{damage}");
    assert!(damage.contains(&format!("{:#x}", 104 + 144 + 16 + 48)), "{damage}");
}

#[test]
fn an_empty_recording_is_not_a_killed_recorder() {
    let recording = open(&[attr()], &[]);
    assert_eq!(recording.notes(), [""; 0]);
    assert_eq!(bodies(&recording), []);
    assert_eq!(recording.data_size(), 0);
}

#[test]
fn a_file_cut_short_keeps_what_it_has() {
    let data = [sample(1), sample(3)].concat();
    let mut bytes = file_with(&[attr()], &data, data.len() as u64, &[(3, vec![0; 4])]);
    bytes.truncate(104 + 144 + 16 + 40);
    let recording = Recording::from_bytes(bytes).unwrap();
    assert!(recording.notes()[0].contains("48 bytes of data, the file has 40"), "{:?}", recording.notes());
    let mut count = 0;
    let damage = read_all(&recording, |_| count += 1).unwrap();
    assert_eq!(count, 1);
    assert!(damage.contains("24 bytes long, 16 bytes left"), "{damage}");
}

#[test]
fn an_impossible_record_size_ends_the_reading() {
    for size in [0u16, 7] {
        let mut broken = sample(3);
        broken[6..8].copy_from_slice(&size.to_le_bytes());
        let recording = open(&[attr()], &[sample(1), broken, sample(5)]);
        let mut count = 0;
        let damage = read_all(&recording, |_| count += 1).unwrap();
        assert_eq!(count, 1);
        assert!(damage.contains(&format!("says it is {size} bytes long; its header alone has 8")), "{damage}");
    }
    let recording = open(&[attr()], &[sample(1), vec![0; 5]]);
    let damage = read_all(&recording, |_| ()).unwrap();
    assert!(damage.contains("record header") && damage.contains("needs 8 bytes, 5 bytes left"), "{damage}");
}

#[test]
fn events_of_a_stream_may_come_late() {
    let mut bytes = stream(&[attr()], &[sample(1)]);
    let second = Attr { ids: vec![9], ..attr() };
    bytes.extend(record(64, 0, &[by_hand::attr(&second), words(&[9, 10, 11])].concat()));
    // EVENT_UPDATE: its name.
    bytes.extend(record(78, 0, &[words(&[2, 10]), string("later")].concat()));
    bytes.extend(sample(3));
    for recording in [Recording::from_bytes(bytes.clone()), Recording::from_stream(&bytes[..])] {
        let recording = recording.unwrap();
        assert_eq!(recording.events().len(), 2);
        assert_eq!((recording.events()[1].name.as_str(), &recording.events()[1].ids), ("later", &vec![9, 10, 11]));
        let kinds: Vec<_> = bodies(&recording).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [64, 9, 64, 78, 9]);
    }
}

#[test]
fn features_of_a_stream_are_records() {
    let name = [&64u32.to_le_bytes()[..], b"host", &[0; 60]].concat();
    let feature = record(80, 0, &[words(&[3]), name].concat());
    let build_id = [&(-1i32).to_le_bytes()[..], &[7; 20], &[16, 0, 0, 0], &string("/bin/true")].concat();
    let with_size = record(67, 1 << 15 | 2, &build_id);
    let without_size = record(67, 2, &build_id);
    let broken = record(80, 0, &[words(&[4]), vec![9, 0, 0, 0]].concat());
    let recording = Recording::from_bytes(stream(&[attr()], &[feature, with_size, without_size, broken])).unwrap();
    assert_eq!(recording.features().hostname.as_deref(), Some("host"));
    let ids = &recording.features().build_ids;
    assert_eq!(ids.iter().map(|entry| entry.build_id.len()).collect::<Vec<_>>(), [16, 20]);
    assert!(ids.iter().all(|entry| entry.path == b"/bin/true" && entry.misc == 2 && entry.pid == -1));
    assert!(recording.notes()[0].contains("OSRELEASE"), "{:?}", recording.notes());
}

#[test]
fn unknown_features_of_a_stream_are_noted_but_not_without_end() {
    let end = record(80, 0, &words(&[200]));
    let recording = Recording::from_bytes(stream(&[attr()], &[end])).unwrap();
    assert_eq!(recording.notes(), [""; 0]);
    let unknown: Vec<_> = (0..1000).map(|bit| record(80, 0, &words(&[1 << 40 | bit, 1]))).collect();
    let recording = Recording::from_bytes(stream(&[attr()], &unknown)).unwrap();
    let notes = recording.notes();
    assert!(notes[0].contains("the number 1099511627776, which is not known"), "{notes:?}");
    assert_eq!((notes.len(), notes[100].as_str()), (101, "900 more header records cannot be read"));
}

/// Naming is not a search through all events for each name.
#[test]
fn many_named_events_in_a_stream() {
    let mut records = Vec::new();
    for id in 0..20_000u64 {
        let event = Attr { ids: vec![id], ..attr() };
        records.push(record(64, 0, &[by_hand::attr(&event), words(&event.ids)].concat()));
        records.push(record(78, 0, &[words(&[2, id]), string(&format!("event-{id}"))].concat()));
    }
    let recording = Recording::from_bytes(stream(&[], &records)).unwrap();
    assert_eq!(recording.events()[19_999].name, "event-19999");
}

#[test]
fn a_recording_of_a_fifo_is_copied() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        testing::skip!(Tool, "no mkfifo");
        return;
    }
    let bytes = file(&[attr()], &[sample(5)]);
    let writer = {
        let path = path.clone();
        std::thread::spawn(move || std::fs::write(path, bytes).unwrap())
    };
    let recording = Recording::open(&path).unwrap();
    writer.join().unwrap();
    assert_eq!(bodies(&recording), [(9, words(&[5, 6]))]);
}

#[test]
fn a_directory_is_refused_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let error = Recording::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("directory"), "{error}");
    let error = Recording::open(&directory.path().join("absent")).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn broken_features_are_noted_and_the_others_read() {
    let name = |text: &str| [&64u32.to_le_bytes()[..], text.as_bytes(), &vec![0; 64 - text.len()]].concat();
    let sections = [
        (3, name("host")),
        (4, vec![200, 0, 0, 0, 1]),
        (6, name("x86_64")),
        (11, words(&[u64::from(u32::MAX)])),
        (12, words(&[u64::from(u32::MAX) | 128 << 32])),
        (77, vec![1]),
        (250, b"{}".to_vec()),
    ];
    let data = sample(1);
    let bytes = file_with(&[attr()], &data, data.len() as u64, &sections);
    let recording = Recording::from_bytes(bytes.clone()).unwrap();
    let features = recording.features();
    assert_eq!((features.hostname.as_deref(), features.arch.as_deref()), (Some("host"), Some("x86_64")));
    let other: Vec<_> = features.other.iter().map(|(bit, section)| (bit.0, section.as_slice())).collect();
    assert_eq!(other, [(77, &[1][..]), (250, b"{}")]);
    let notes = recording.notes().join("\n");
    for expected in [
        "feature OSRELEASE: OSRELEASE at",
        "says 200 bytes of a string, 1 bytes left",
        "CMDLINE at",
        "says 4294967295 entries, 4 bytes left",
        "EVENT_DESC",
    ] {
        assert!(notes.contains(expected), "{expected:?} is not in {notes}");
    }
    // A table that is cut off costs the features, not the samples.
    let recording = Recording::from_bytes(bytes[..104 + 144 + 16 + data.len() + 20].to_vec()).unwrap();
    assert!(recording.notes()[0].contains("feature table"), "{:?}", recording.notes());
    assert_eq!(bodies(&recording).len(), 1);
}

/// Sections that all claim the whole file would take many times its size.
#[test]
fn overlapping_feature_sections_take_no_more_than_the_file() {
    let sections: Vec<_> = (1..250).map(|bit| (bit, Vec::new())).collect();
    let data = vec![sample(1); 1000].concat();
    let mut bytes = file_with(&[attr()], &data, data.len() as u64, &sections);
    let table = 104 + 144 + 16 + data.len();
    let len = bytes.len() as u64;
    for index in 0..sections.len() {
        bytes[table + index * 16..table + index * 16 + 16].copy_from_slice(&words(&[0, len]));
    }
    let recording = Recording::from_bytes(bytes).unwrap();
    assert!(recording.notes().iter().filter(|note| note.contains("feature section")).count() >= 200);
}

/// AUX data is not records: it is stepped over, wherever the chunk's end falls.
#[test]
fn aux_data_is_skipped() {
    let aux = |size: usize| {
        let header = record(71, 0, &words(&[size as u64, 0, 0, 0, 0]));
        [header, vec![0xff; size]].concat()
    };
    for size in [0, 8, 1000, (1 << 20) - 48, (1 << 20) - 1, 1 << 20, 3 << 20] {
        let recording = open(&[attr()], &[sample(1), aux(size), sample(3), aux(16), sample(5)]);
        let kinds: Vec<_> = bodies(&recording).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [9, 71, 9, 71, 9], "{size} bytes of AUX data");
        let mut offsets = Vec::new();
        read_all(&recording, |raw| offsets.push(raw.offset));
        let first = offsets[0];
        let expected = [0, 24, 72 + size as u64, 96 + size as u64, 160 + size as u64];
        assert_eq!(offsets, expected.map(|offset| first + offset));
    }
}

#[test]
fn aux_data_beyond_the_end_is_damage() {
    for size in [1u64, 1 << 20, u64::MAX] {
        let aux = record(71, 0, &words(&[size, 0, 0, 0, 0]));
        let recording = open(&[attr()], &[sample(1), aux]);
        let mut count = 0;
        let damage = read_all(&recording, |_| count += 1).unwrap();
        assert_eq!(count, 2);
        assert!(damage.contains(&format!("needs {size} bytes, 0 bytes left")), "{damage}");
    }
}

#[test]
fn tracing_data_of_a_stream_is_skipped() {
    let tracing = [record(66, 0, &24u32.to_le_bytes()), vec![0xee; 24]].concat();
    let recording = Recording::from_bytes(stream(&[attr()], &[tracing, sample(3)])).unwrap();
    let kinds: Vec<_> = bodies(&recording).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [64, 66, 9]);
}

/// Records of all sizes over many chunks: none is lost, cut or seen twice.
#[test]
fn chunks_hold_whole_records() {
    let mut records = Vec::new();
    let mut size = 1usize;
    for number in 0..400u64 {
        size = (size * 31 + 17) % 8000;
        let body = [words(&[number]), vec![number as u8; size]].concat();
        records.push(record(70, 0, &body));
    }
    let biggest = 65_535 - 8;
    records.push(record(70, 0, &vec![9; biggest]));
    records.push(record(70, 0, &[]));
    let total: usize = records.iter().map(Vec::len).sum();
    assert!(total > 1 << 20);
    let recording = open(&[attr()], &records);
    let found: Vec<_> = bodies(&recording).into_iter().map(|(_, body)| body).collect();
    assert!(found.iter().zip(&records).all(|(found, record)| found[..] == record[8..]));
    assert_eq!(found.len(), records.len());

    let mut reader = recording.chunks();
    let mut chunk = Chunk::new();
    let mut last = 0;
    while reader.next_into(&mut chunk).unwrap() {
        assert!(chunk.records().map(|raw| raw.body.len() + 8).sum::<usize>() <= perfdata::CHUNK_SIZE);
        assert!(reader.position() > last);
        last = reader.position();
    }
    assert_eq!(last, recording.data_size());
    assert_eq!(recording.data_size(), total as u64);
}

/// Two readers of one recording do not disturb each other.
#[test]
fn readers_are_independent() {
    let records: Vec<_> = (0..100_000).map(sample).collect();
    let recording = open(&[attr()], &records);
    let (mut first, mut second) = (recording.chunks(), recording.chunks());
    let (mut chunk, mut other) = (Chunk::new(), Chunk::new());
    let mut counts = [0, 0];
    while first.next_into(&mut chunk).unwrap() {
        counts[0] += chunk.records().count();
        if second.next_into(&mut other).unwrap() {
            counts[1] += other.records().count();
        }
    }
    assert_eq!(counts, [100_000, 100_000]);
}

#[test]
fn a_recording_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    fn is_sent<T: Send>() {}
    is_shared::<Recording>();
    is_sent::<Chunk>();
    is_sent::<perfdata::ChunkReader<'static>>();
}
