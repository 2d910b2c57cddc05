//! Bytes that mean harm, or that met with an accident: no panic, no hang, no memory beyond what the bytes account for.
//!
//! Runs the fuzz targets' functions on their seeds, cut at every byte and with bits turned over.

mod by_hand;
#[path = "../../fuzz/perfdata/src/read.rs"]
mod read;
#[path = "../../fuzz/perfdata/src/seeds.rs"]
mod seeds;

use by_hand::{Attr, file, file_with, record, stream, words};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use read::{Found, read_everything, read_sample_of_any_event};

#[test]
fn seeds_are_sound() {
    for (name, bytes) in seeds::recordings() {
        let found = read_everything(&bytes).unwrap_or_else(|| panic!("{name} is no recording"));
        let samples = if name == "one-event" { 1 } else { 2 };
        let records = match name {
            "one-event" => 1,
            "stream" => 28 + 2 + 25,
            "compressed" => 27 + 2,
            _ => 28,
        };
        let branches = samples + 1;
        assert_eq!(found, Found { records, samples, branches, refused: 0, damaged: false }, "{name}");
    }
    for bytes in seeds::samples() {
        let found = read_sample_of_any_event(&bytes).unwrap();
        assert_eq!((found.samples, found.refused), (1, 0));
        assert!(found.branches > 0);
    }
}

#[test]
fn recordings_cut_at_every_byte() {
    for (name, bytes) in seeds::recordings() {
        let whole = read_everything(&bytes).unwrap();
        for len in 0..bytes.len() {
            if let Some(found) = read_everything(&bytes[..len]) {
                assert!(found.records <= whole.records, "{name} cut at {len}");
            }
        }
    }
    for bytes in seeds::samples() {
        for len in 0..bytes.len() {
            read_sample_of_any_event(&bytes[..len]);
        }
    }
}

#[test]
fn recordings_with_one_bit_turned_over() {
    for (_, bytes) in seeds::recordings() {
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            for bit in [0, 3, 7] {
                bytes[at] ^= 1 << bit;
                read_everything(&bytes);
                bytes[at] ^= 1 << bit;
            }
        }
    }
}

/// Counts, sizes and offsets are words: each made as large as can be, or as odd.
#[test]
fn recordings_with_one_extreme_word() {
    for (_, bytes) in seeds::recordings() {
        for at in (0..bytes.len().saturating_sub(8)).step_by(2) {
            let mut bytes = bytes.clone();
            for word in [u64::MAX, i64::MAX as u64, u64::from(u32::MAX), 0xffff, 0] {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
                read_everything(&bytes);
            }
        }
    }
    for bytes in seeds::samples() {
        for at in 0..bytes.len().saturating_sub(8) {
            let mut bytes = bytes.clone();
            for word in [u64::MAX, u64::MAX / 24, u64::MAX / 8, 1 << 61, 0] {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
                read_sample_of_any_event(&bytes);
            }
        }
    }
}

/// Random bytes, the same in every run.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    SplitMix64::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

#[test]
fn noise_for_data() {
    for seed in 0..300 {
        let data = noise(5000, seed);
        let attr = Attr { sample_type: seed.wrapping_mul(0x9e37_79b9), flags: u64::MAX, ..Attr::default() };
        read_everything(&file_with(&[attr], &data, data.len() as u64, &[]));
        // Records that are whole, with noise in them.
        let records: Vec<_> = (0..100)
            .map(|kind| record(kind, data[kind as usize].into(), &noise(200, seed ^ u64::from(kind))))
            .collect();
        let attr = Attr { sample_type: seed << 12 | seed, flags: 1 << 18, ..Attr::default() };
        read_everything(&file(std::slice::from_ref(&attr), &records));
        read_everything(&stream(&[attr], &records));
    }
}

/// A megabyte of the records that make the reader do most.
#[test]
fn many_small_steps() {
    let attr = [Attr { ids: vec![1], ..Attr::default() }];
    for piece in [
        record(71, 0, &words(&[0, 0, 0, 0, 0])),
        [record(71, 0, &words(&[8, 0, 0, 0, 0])), vec![0; 8]].concat(),
        record(81, 0, &[]),
        record(83, 0, &words(&[0])),
        record(68, 0, &[]),
        [record(81, 0, &[]), record(71, 0, &words(&[8, 0, 0, 0, 0])), vec![0; 8]].concat(),
    ] {
        let data = piece.repeat((4 << 20) / piece.len());
        let found = read_everything(&file_with(&attr, &data, data.len() as u64, &[])).unwrap();
        assert!(!found.damaged);
    }
    // Pipe mode: an event a record.
    let events = vec![attr[0].clone(); 5000];
    assert_eq!(read_everything(&stream(&events, &[])).unwrap().records, 5000);
}

/// Set for the child process that runs under a limit.
const CHILD: &str = "PERFDATA_TEST_UNDER_LIMIT";

/// Files of a megabyte at most, read by a process that may have 400 MB in all (zstd alone may take 128 for its window).
#[test]
fn memory_stays_within_a_limit() {
    if std::env::var_os(CHILD).is_some() {
        for bytes in greedy_files() {
            read_everything(&bytes);
        }
        return;
    }
    let this = std::env::current_exe().unwrap();
    let limited = "ulimit -v 400000 && exec \"$0\" --exact memory_stays_within_a_limit --test-threads=1";
    let output = std::process::Command::new("sh").args(["-c", limited]).arg(this).env(CHILD, "1").output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

/// Files that claim to hold much, or the same bytes many times.
fn greedy_files() -> Vec<Vec<u8>> {
    let attr = Attr { sample_type: 1, ids: vec![1], ..Attr::default() };
    let data = record(9, 0, &[0; 1000]).repeat(500);
    let size = data.len() as u64;
    let plain = |features: &[(u32, Vec<u8>)]| file_with(std::slice::from_ref(&attr), &data, size, features);
    let mut files = Vec::new();

    // Every size and offset of the header as large as can be.
    for at in (16..72).step_by(8).chain([104 + 128, 104 + 136]) {
        for claim in [u64::MAX, 1 << 40, 1 << 31] {
            let mut bytes = plain(&[]);
            bytes[at..at + 8].copy_from_slice(&claim.to_le_bytes());
            files.push(bytes);
        }
    }
    // Many events, all with the whole file for their ids.
    let mut bytes = file(&vec![attr.clone(); 5000], &[]);
    let len = bytes.len() as u64;
    (0..5000).for_each(|index| bytes[232 + index * 144..][..16].copy_from_slice(&words(&[0, len])));
    files.push(bytes);
    // Every feature with the whole file for its section.
    let mut bytes = plain(&(0..256).map(|bit| (bit, Vec::new())).collect::<Vec<_>>());
    let (table, len) = (bytes.len() - 256 * 16, bytes.len() as u64);
    (0..256).for_each(|index| bytes[table + index * 16..][..16].copy_from_slice(&words(&[0, len])));
    files.push(bytes);
    // Counts in features.
    for bit in 2..32 {
        files.push(plain(&[(bit, vec![0xff; 64])]));
        files.push(plain(&[(bit, [&[0xff, 0xff, 0xff, 0x7f][..], &[0; 1 << 19]].concat())]));
        files.push(plain(&[(bit, [&[0xff, 0xff, 1, 0][..], &[0; 1 << 20]].concat())]));
    }
    // zstd frames that ask for windows of 128 MiB, 2 GiB and more, and one that promises 2^63 bytes.
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    for window in [17u8, 21, 31] {
        let frame = [&magic[..], &[0, window << 3, 1, 0, 0]].concat();
        files.push(file(std::slice::from_ref(&attr), &[record(81, 0, &frame)]));
    }
    let frame = [&magic[..], &[0xc0, 21 << 3], &words(&[1 << 63]), &[1, 0, 0]].concat();
    files.push(file(std::slice::from_ref(&attr), &[record(81, 0, &frame)]));
    files
}
