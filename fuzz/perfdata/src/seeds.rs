//! Small recordings that have everything in them once.

use perfdata::SampleFormat as F;
use zstd::stream::raw::{Encoder, Operation, OutBuffer};

use super::by_hand::{Attr, SAMPLE_ID_ALL, file_with, record, stream, string, words};

/// Recordings by name.
pub fn recordings() -> Vec<(&'static str, Vec<u8>)> {
    let data = records().concat();
    let size = data.len() as u64;
    let mut compressed = stream(&attrs(), &[]);
    // AUX data is never compressed.
    let plain: Vec<_> = records().into_iter().filter(|record| record[0] != 71).collect();
    compressed.extend(compress(&plain.concat()));
    vec![
        ("file", file_with(&attrs(), &data, size, &features())),
        ("killed", file_with(&attrs(), &data, 0, &[])),
        ("stream", [stream(&attrs(), &header_records()), data].concat()),
        ("compressed", compressed),
        ("one-event", file_with(&attrs()[..1], &sample_with_everything(), 504, &[])),
    ]
}

/// Starts for the target that reads one sample: what the event records, then the sample's body.
pub fn samples() -> Vec<Vec<u8>> {
    let all = words(&[F::KNOWN.0 & !F::WEIGHT.0, 0x1f, 1 << 17 | 1 << 19, 0b111, 0b11]);
    let some = words(&[F::IP.0 | F::TID.0 | F::BRANCH_STACK.0, 0, 0, 0, 0]);
    let stack = words(&[0x1000, 7, 1, 0x2000, 0x3000, 1]);
    vec![[all, sample_with_everything()[8..].to_vec()].concat(), [some, stack].concat()]
}

fn attrs() -> Vec<Attr> {
    let all = Attr {
        sample_type: F::KNOWN.0 & !F::WEIGHT.0,
        read_format: 0x1f,
        flags: SAMPLE_ID_ALL,
        branch_sample_type: 1 << 17 | 1 << 19,
        regs_user: 0b111,
        regs_intr: 0b11,
        ids: vec![7, 8],
        ..Attr::default()
    };
    let few = Attr {
        sample_type: F::IDENTIFIER.0 | F::IP.0 | F::BRANCH_STACK.0,
        flags: SAMPLE_ID_ALL,
        ids: vec![9],
        ..Attr::default()
    };
    vec![all, few]
}

/// All fields but the plain weight: 496 bytes of body.
fn sample_with_everything() -> Vec<u8> {
    let body = [
        // identifier, ip, pid and tid, time, addr, id, stream id, cpu, period
        words(&[7, 0x1000, 2 << 32 | 1, 3, 0x4000, 7, 8, 5, 1_000_003]),
        // read: a group of two: enabled, running, (value, id, lost) twice
        words(&[2, 10, 11, 12, 7, 0, 13, 8, 1]),
        // call chain
        words(&[3, u64::MAX - 511, 0x1000, 0x1100]),
        // raw: 12 bytes
        words(&[12 | 1 << 32, 2]),
        // two branches with their index and counters
        words(&[2, 1, 0x1010, 0x2000, 1, 0x2010, 0x1000, 2, 21, 22]),
        // user registers; user stack of 16 bytes
        words(&[2, 31, 32, 33]),
        words(&[16, 41, 42, 8]),
        // weight, data source, transaction
        words(&[51, 52, 53]),
        // registers at the interrupt
        words(&[2, 61, 62]),
        // physical address, control group, page sizes
        words(&[71, 72, 4096, 4096]),
        // AUX data of 16 bytes
        words(&[16, 81, 82]),
    ];
    let mut body = body.concat();
    body.resize(496, 0);
    record(9, 2, &body)
}

/// Every kind of record there is, with the first event's trailer.
fn records() -> Vec<Vec<u8>> {
    let trailer = words(&[2 << 32 | 1, 3, 7, 8, 5, 7]);
    let own = |record_type: u32, misc: u16, body: &[Vec<u8>]| {
        record(record_type, misc, &[body.concat(), trailer.clone()].concat())
    };
    let one = words(&[1]);
    vec![
        own(3, 1 << 13, &[words(&[2 << 32 | 1]), string("name")]),
        own(1, 2, &[words(&[2 << 32 | 1, 0x1000, 0x1000, 0]), string("/bin/a")]),
        own(10, 2, &[words(&[2 << 32 | 1, 0x2000, 0x1000, 0, 1, 2, 3, 5]), string("/bin/b")]),
        own(10, 1 << 14 | 2, &[words(&[2 << 32 | 1, 0x3000, 0x1000, 0, 20, 2, 3, 5]), string("/bin/c")]),
        own(7, 0, &[words(&[1, 2, 3])]),
        own(2, 0, &[words(&[7, 1])]),
        own(5, 0, &[words(&[1, 7, 7])]),
        own(6, 0, &[words(&[1, 7, 7])]),
        own(8, 0, &[words(&[1, 2, 10, 11, 12, 7, 0, 13, 8, 1])]),
        own(11, 0, &[words(&[0, 8, 1])]),
        own(12, 0, std::slice::from_ref(&one)),
        own(13, 0, std::slice::from_ref(&one)),
        own(14, 1 << 13, &[]),
        own(15, 0, std::slice::from_ref(&one)),
        own(16, 0, &[words(&[1, 1, 2, 3])]),
        own(17, 0, &[words(&[0x9000, 64 | 1 << 32]), string("symbol")]),
        own(18, 0, &[words(&[1, 2])]),
        own(19, 0, &[one.clone(), string("/group")]),
        own(20, 0, &[words(&[0x9000]), vec![2, 0, 2, 0, 1, 2, 3, 4]]),
        own(21, 0, &[one]),
        own(22, 0, &[words(&[1, 1, 0x1000])]),
        sample_with_everything(),
        record(9, 2, &words(&[9, 0x1000, 1, 0x1010, 0x1000, 1])),
        record(68, 0, &[]),
        record(79, 0, &words(&[1, 2, 3])),
        [record(71, 0, &words(&[16, 0, 0, 0, 0])), vec![0xff; 16]].concat(),
        record(4711, 0, &[1, 2, 3]),
        own(4, 0, &[words(&[1, 2, 3])]),
    ]
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(8, 0);
    [&8u32.to_le_bytes()[..], &bytes].concat()
}

fn number(number: u32) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

fn features() -> Vec<(u32, Vec<u8>)> {
    let build_id = [&(-1i32).to_le_bytes()[..], &[7; 20], &[16, 0, 0, 0], &string("/bin/a")].concat();
    let pair = [number(1), text("a"), text("b")].concat();
    let desc = [number(1), number(128), super::by_hand::attr(&attrs()[0]), number(1), text("event"), words(&[7])];
    vec![
        (2, record(0, 1 << 15 | 2, &build_id)),
        (3, text("host")),
        (4, text("6.12")),
        (5, text("1")),
        (6, text("x86_64")),
        (7, words(&[2 << 32 | 1])),
        (8, text("cpu")),
        (9, text("id")),
        (10, words(&[1 << 20])),
        (11, [number(2), text("perf"), text("record")].concat()),
        (12, desc.concat()),
        (15, Vec::new()),
        (16, [number(1), number(4), text("cpu")].concat()),
        (17, [number(1), text("g"), number(0), number(2)].concat()),
        (21, words(&[1, 2])),
        (23, words(&[1])),
        (27, words(&[1, 1, 1])),
        (28, pair.clone()),
        (29, [number(1), number(1), words(&[1, 2])].concat()),
        (30, pair.clone()),
        (31, [number(1), pair, text("cpu")].concat()),
        (250, b"{}".to_vec()),
    ]
}

fn header_records() -> Vec<Vec<u8>> {
    let build_id = [&(-1i32).to_le_bytes()[..], &[7; 20], &[16, 0, 0, 0], &string("/bin/a")].concat();
    let mut records = vec![
        record(78, 0, &[words(&[2, 7]), string("event")].concat()),
        record(67, 1 << 15 | 2, &build_id),
        [record(66, 0, &number(8)), vec![0; 8]].concat(),
    ];
    records
        .extend(features().into_iter().map(|(bit, section)| record(80, 0, &[words(&[bit.into()]), section].concat())));
    records
}

/// The bytes as two compressed records, one of each kind.
fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(3).expect("zstd works");
    let mut output = vec![0; bytes.len() * 2 + 1024];
    let status = encoder.run_on_buffers(bytes, &mut output).expect("zstd works");
    assert_eq!(status.bytes_read, bytes.len());
    let mut rest = OutBuffer::around(&mut output[status.bytes_written..]);
    assert_eq!(encoder.flush(&mut rest).expect("zstd works"), 0);
    let written = status.bytes_written + rest.pos();
    let (first, second) = output[..written].split_at(written / 2);
    [record(81, 0, first), record(83, 0, &[words(&[second.len() as u64]), second.to_vec()].concat())].concat()
}
