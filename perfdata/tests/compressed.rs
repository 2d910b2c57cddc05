//! zstd-compressed records: one stream, cut anywhere.

mod by_hand;

use by_hand::{Attr, bodies, open, read_all, record, stream, words};
use perfdata::{Chunk, Recording, SampleFormat as F};
use proptest::prelude::*;
use zstd::stream::raw::{Encoder, Operation};

fn attr() -> Attr {
    Attr { sample_type: F::IP.0 | F::RAW.0, ..Attr::default() }
}

/// A sample with `words_of_raw` words of raw data.
fn sample(number: u64, words_of_raw: usize) -> Vec<u8> {
    let raw: Vec<u64> = (0..words_of_raw as u64).map(|index| number.wrapping_mul(index | 1)).collect();
    let size = (words_of_raw * 8 + 4) as u32;
    record(9, 2, &[words(&[number]), size.to_le_bytes().to_vec(), vec![0; 4], words(&raw)].concat())
}

/// The bytes as one zstd stream, flushed after each of `parts`; one output per part.
fn compress(parts: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(3).unwrap();
    let mut outputs = Vec::new();
    for part in parts {
        let mut output = vec![0; part.len() * 2 + 1024];
        let mut read = 0;
        let mut written = 0;
        while read < part.len() {
            let status = encoder.run_on_buffers(&part[read..], &mut output[written..]).unwrap();
            read += status.bytes_read;
            written += status.bytes_written;
        }
        loop {
            let mut buffer = zstd::stream::raw::OutBuffer::around(&mut output[written..]);
            let left = encoder.flush(&mut buffer).unwrap();
            written += buffer.pos();
            if left == 0 {
                break;
            }
        }
        output.truncate(written);
        outputs.push(output);
    }
    outputs
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    record(81, 0, bytes)
}

/// COMPRESSED2: the size, the bytes, padding.
fn compressed2(bytes: &[u8]) -> Vec<u8> {
    let mut body = [words(&[bytes.len() as u64]), bytes.to_vec()].concat();
    body.resize(body.len().next_multiple_of(8), 0xcc);
    record(83, 0, &body)
}

#[test]
fn records_may_span_compressed_records() {
    let records: Vec<_> = (0..300).map(|number| sample(number, number as usize % 50)).collect();
    let plain = records.concat();
    for part in [1, 7, 8, 100, 4096, plain.len()] {
        let parts: Vec<_> = plain.chunks(part).collect();
        for wrap in [compressed, compressed2] {
            let outputs = compress(&parts);
            let recording = open(&[attr()], &outputs.iter().map(|bytes| wrap(bytes)).collect::<Vec<_>>());
            let found = bodies(&recording);
            assert_eq!(found.len(), records.len());
            assert!(found.iter().zip(&records).all(|((_, body), record)| body[..] == record[8..]));
        }
    }
}

/// What perf writes between compressed records is not compressed.
#[test]
fn plain_records_keep_their_place() {
    let (first, second) = (sample(1, 3), sample(2, 5));
    let both = [&first[..], &second].concat();
    // The second record begins in the first compressed record and ends in the second.
    let outputs = compress(&[&both[..first.len() + 16], &both[first.len() + 16..]]);
    let aux = [record(71, 0, &words(&[16, 0, 0, 0, 0])), vec![0xff; 16]].concat();
    let round = record(68, 0, &[]);
    let records =
        [sample(0, 1), compressed(&outputs[0]), aux, round.clone(), compressed(&outputs[1]), round, sample(3, 1)];
    let recording = open(&[attr()], &records);
    let kinds: Vec<_> = bodies(&recording).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [9, 9, 71, 68, 9, 68, 9]);
    let mut ips = Vec::new();
    read_all(&recording, |raw| {
        if raw.is_sample() {
            ips.push(recording.sample(raw).unwrap().ip.unwrap().0);
        }
    });
    assert_eq!(ips, [0, 1, 2, 3]);
}

#[test]
fn a_compressed_stream_over_many_chunks() {
    let records: Vec<_> = (0..20_000).map(|number| sample(number, 40)).collect();
    let plain = records.concat();
    assert!(plain.len() > 6 << 20);
    let outputs = compress(&plain.chunks(500_000).collect::<Vec<_>>());
    // As perf does where a part does not fit into one record.
    let wrapped: Vec<_> = outputs.iter().flat_map(|bytes| bytes.chunks(60_000)).map(compressed).collect();
    for recording in [open(&[attr()], &wrapped), Recording::from_bytes(stream(&[attr()], &wrapped)).unwrap()] {
        let mut number = 0;
        let damage = read_all(&recording, |raw| {
            if raw.is_sample() {
                assert_eq!(raw.body, &records[number][8..]);
                number += 1;
            }
        });
        assert_eq!((number, damage), (records.len(), None));
        let mut reader = recording.chunks();
        let mut chunk = Chunk::new();
        while reader.next_into(&mut chunk).unwrap() {
            assert!(chunk.records().map(|raw| raw.body.len() + 8).sum::<usize>() <= perfdata::CHUNK_SIZE);
        }
        assert_eq!(reader.position(), recording.data_size());
    }
}

/// One compressed record may hold more than a chunk, and what zstd still has when the chunk is full must not be forgotten.
#[test]
fn one_compressed_record_over_many_chunks() {
    let first = sample(0, 100);
    // 32 bytes each; zstd decompresses 128 KiB at a time, and the chunk's end falls into the last piece.
    for count in [(1 << 20) / 32, (1 << 20) / 32 + 1, 40_000, 50_000, (2 << 20) / 32] {
        let plain = sample(1, 1).repeat(count);
        let outputs = compress(&[&first, &plain]);
        assert!(outputs[1].len() < 60_000);
        for after in [vec![], vec![record(68, 0, &[])]] {
            let wrapped = [vec![compressed(&outputs[0]), compressed(&outputs[1])], after.clone()].concat();
            let kinds: Vec<_> = bodies(&open(&[attr()], &wrapped)).into_iter().map(|(kind, _)| kind).collect();
            assert_eq!(kinds.len(), 1 + count + after.len());
            assert!(kinds[..1 + count].iter().all(|&kind| kind == 9));
        }
    }
}

#[test]
fn broken_compressed_data_ends_the_reading() {
    let outputs = compress(&[&sample(1, 2), &sample(2, 2)]);
    let mut broken = outputs[1].clone();
    broken.iter_mut().for_each(|byte| *byte = !*byte);
    let recording = open(&[attr()], &[compressed(&outputs[0]), compressed(&broken), sample(3, 1)]);
    let mut count = 0;
    let damage = read_all(&recording, |_| count += 1).unwrap();
    assert_eq!(count, 1);
    assert!(damage.contains("compressed record at 0x"), "{damage}");
}

#[test]
fn a_compressed_stream_that_ends_inside_a_record_says_so() {
    let outputs = compress(&[&sample(1, 2), &sample(2, 2)[..20]]);
    let recording = open(&[attr()], &[compressed(&outputs[0]), compressed(&outputs[1])]);
    let mut count = 0;
    let damage = read_all(&recording, |_| count += 1).unwrap();
    assert_eq!(count, 1);
    assert!(damage.contains("says it is 40 bytes long, 20 bytes left"), "{damage}");
}

#[test]
fn an_impossible_size_in_compressed_data_ends_the_reading() {
    let plain = [sample(1, 2), vec![0; 64]].concat();
    let recording = open(&[attr()], &[compressed(&compress(&[&plain])[0])]);
    let mut count = 0;
    let damage = read_all(&recording, |_| count += 1).unwrap();
    assert_eq!(count, 1);
    assert!(damage.contains("its header alone has 8"), "{damage}");
}

/// A compressed record inside compressed data is not followed.
#[test]
fn compression_does_not_nest() {
    let inner = compressed(&compress(&[&sample(1, 2)])[0]);
    let recording = open(&[attr()], &[compressed(&compress(&[&inner])[0])]);
    assert_eq!(bodies(&recording), [(81, inner[8..].to_vec())]);
}

/// A few kilobytes that decompress to gigabytes of sound records.
#[test]
fn a_bomb_is_defused() {
    let piece = record(68, 0, &[]).repeat(1 << 17);
    let mut encoder = Encoder::new(19).unwrap();
    let mut bomb = Vec::new();
    for _ in 0..256 {
        let mut output = vec![0; 1 << 16];
        let mut read = 0;
        while read < piece.len() {
            let status = encoder.run_on_buffers(&piece[read..], &mut output).unwrap();
            bomb.extend(&output[..status.bytes_written]);
            read += status.bytes_read;
        }
    }
    let wrapped: Vec<_> = bomb.chunks(60_000).map(compressed).collect();
    let recording = open(&[attr()], &wrapped);
    let mut bytes = 0u64;
    let damage = read_all(&recording, |_| bytes += 8).expect("a bomb is damage");
    assert!(damage.contains("over 1024 times as many"), "{damage}");
    let allowed = 1024 * recording.data_size() + (32 << 20);
    assert!(bytes <= allowed, "{bytes} bytes came out of {}", recording.data_size());
}

proptest! {
    #[test]
    fn any_cut(sizes in prop::collection::vec(0usize..300, 1..60), flushes in prop::collection::vec(1usize..3000, 1..30),
               cuts in prop::collection::vec(1usize..500, 1..30)) {
        let records: Vec<_> = sizes.iter().enumerate().map(|(number, &size)| sample(number as u64, size)).collect();
        let plain = records.concat();
        let mut parts = Vec::new();
        let mut rest = &plain[..];
        for size in flushes.iter().cycle() {
            let (part, left) = rest.split_at(rest.len().min(*size));
            parts.push(part);
            rest = left;
            if rest.is_empty() {
                break;
            }
        }
        let bytes = compress(&parts).concat();
        let mut wrapped = Vec::new();
        let mut rest = &bytes[..];
        for size in cuts.iter().cycle() {
            let (part, left) = rest.split_at(rest.len().min(*size));
            wrapped.push(compressed(part));
            rest = left;
            if rest.is_empty() {
                break;
            }
        }
        let found = bodies(&open(&[attr()], &wrapped));
        prop_assert_eq!(found.len(), records.len());
        prop_assert!(found.iter().zip(&records).all(|((_, body), record)| body[..] == record[8..]));
    }
}
