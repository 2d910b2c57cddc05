//! Debug information of compilers, cut short and with bits flipped: no panic, and what is promised of the index is kept.

mod debug_sections;

use debug_sections::{SECTIONS, check_input, input_of};

/// What compilers wrote for a small program: the seeds of the fuzz target, by name.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/analyzer/seeds/lines");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut seeds: Vec<(String, Vec<u8>)> =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect();
    seeds.sort();
    seeds
}

/// The sections of a seed.
fn sections(input: &[u8]) -> Vec<Vec<u8>> {
    let (lengths, mut rest) = input.split_at(2 * SECTIONS.len());
    let lengths = lengths.chunks_exact(2).map(|length| usize::from(u16::from_le_bytes([length[0], length[1]])));
    lengths
        .map(|length| {
            let (section, behind) = rest.split_at(length);
            rest = behind;
            section.to_vec()
        })
        .collect()
}

#[test]
fn seeds_are_whole() {
    let spans: Vec<(String, usize)> = seeds().into_iter().map(|(name, seed)| (name, check_input(&seed))).collect();
    assert_eq!(spans.len(), 4, "{spans:?}");
    assert!(spans.iter().all(|(_, spans)| *spans > 15), "{spans:?}");
}

#[test]
fn cut_sections() {
    let mut less = 0;
    for (_, seed) in seeds() {
        let whole = check_input(&seed);
        let sections = sections(&seed);
        for (index, section) in sections.iter().enumerate() {
            for length in 0..section.len() {
                let mut cut = sections.clone();
                cut[index].truncate(length);
                less += usize::from(check_input(&input_of(&cut)) < whole);
            }
        }
    }
    assert!(less > 1000, "{less}");
}

#[test]
fn flipped_bits() {
    let mut changed = 0;
    for (_, seed) in seeds() {
        let whole = check_input(&seed);
        for at in 2 * SECTIONS.len()..seed.len() {
            for bit in [0, 3, 7] {
                let mut damaged = seed.clone();
                damaged[at] ^= 1 << bit;
                changed += usize::from(check_input(&damaged) != whole);
            }
        }
    }
    assert!(changed > 1000, "{changed}");
}

/// Several bits, and numbers that claim very much.
#[test]
fn large_numbers() {
    let mut random = fastrand::Rng::with_seed(1);
    for (_, input) in seeds() {
        for _ in 0..3000 {
            let mut damaged = input.clone();
            for _ in 0..3 {
                let at = 2 * SECTIONS.len() + random.usize(..input.len() - 2 * SECTIONS.len() - 8);
                let length = random.choice([1, 1, 2, 4, 8]).unwrap();
                damaged[at..at + length].fill(if random.bool() { 0xff } else { 0x7f });
            }
            check_input(&damaged);
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 1 << 18, "{kilobytes} kB");
}
