//! Intervals hold the truth as often as they say: of recordings whose counts are known, and of the committed ones.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::Path;

use perfdata::Features;
use serde_json::Value;
use support::Fixture;
use synthetic::{A, A_JNE, B, B_JMP, Burst, C, D, D_JMP, Recorder, burst_metadata};
use testing::{BURSTS, SIMULATED};

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&support::stdout(arguments)).unwrap()
}

/// Numbers that look random and are the same in every run: xorshift64*, from 0 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(2_685_821_657_736_338_717) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The way through the program leads through B so often, otherwise through C.
const THROUGH_B: f64 = 0.3;

/// Blocks with their instructions, and how often each runs while A runs once.
const BLOCKS: [(u64, f64, f64); 4] = [(A, 21.0, 1.0), (B, 4.0, THROUGH_B), (C, 2.0, 1.0 - THROUGH_B), (D, 2.0, 1.0)];

/// The share of each block in all instructions.
fn truth() -> [f64; 4] {
    let all: f64 = BLOCKS.iter().map(|(_, instructions, times)| instructions * times).sum();
    BLOCKS.map(|(_, instructions, times)| instructions * times / all)
}

/// So many rounds of the program from A on: taken branches, oldest first.
fn rounds(random: &mut Random, number: usize) -> Vec<(u64, u64)> {
    let mut branches = Vec::new();
    for _ in 0..number {
        branches.push(if random.next() < THROUGH_B { (B_JMP, D) } else { (A_JNE, C) });
        branches.push((D_JMP, A));
    }
    branches
}

/// A hardware recording: samples of instructions, one every 1,000, and stacks, one every 100 taken branches, which are 1,280 instructions.
fn hardware(binary: &Path, random: &mut Random) -> Vec<u8> {
    let mut recorder = Recorder::new(binary);
    for turn in 0..128 * 3 / 2 {
        if turn * 100 / 128 != (turn + 1) * 100 / 128 {
            recorder.stack(&[vec![(D_JMP, A)], rounds(random, 3)].concat());
        }
        let at = random.next();
        let shares = truth();
        let mut sum = 0.0;
        let block = shares.iter().position(|share| {
            sum += share;
            at < sum
        });
        recorder.sample(BLOCKS[block.unwrap_or(0)].0);
    }
    recorder.finish(&Features::default())
}

/// Bursts that an instruction counter started.
fn bursts(binary: &Path, random: &mut Random) -> Vec<u8> {
    let mut recorder = Recorder::traced(binary);
    for _ in 0..60 {
        let branches = rounds(random, 4);
        let through_b = branches.iter().filter(|branch| branch.0 == B_JMP).count() as u64;
        let instructions = 4 * 23 + 4 * through_b + 2 * (4 - through_b);
        recorder.burst(&Burst { ip: A, branches: &branches, instructions, period: instructions });
    }
    recorder.finish(&burst_metadata("instructions"))
}

/// The share of the blocks whose interval holds the truth, over many recordings of one program.
fn coverage(name: &str, record: impl Fn(&Path, &mut Random) -> Vec<u8>) -> Option<f64> {
    let folder = tempfile::tempdir().unwrap();
    let binary = synthetic::program(folder.path(), "four", &[])?;
    let file = folder.path().join("run.data");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut rows, mut held) = (0, 0);
    for _ in 0..60 {
        std::fs::write(&file, record(&binary, &mut random)).unwrap();
        let document = json(&["blocks", "--format", "json", "-i", file.to_str().unwrap()]);
        let all = document["instructions"].as_f64().unwrap();
        for ((start, instructions, _), truth) in BLOCKS.iter().zip(truth()) {
            let blocks = document["blocks"].as_array().unwrap();
            let Some(block) = blocks.iter().find(|block| block["start"] == *start) else { continue };
            let share = block["count"].as_f64().unwrap() * instructions / all;
            rows += 1;
            held += usize::from((share - truth).abs() <= block["share_error"].as_f64().unwrap());
        }
    }
    println!("{name}: {held} of {rows} rows hold the truth");
    Some(held as f64 / rows as f64)
}

#[test]
fn intervals_of_hardware_recordings_hold_the_truth() {
    let Some(coverage) = coverage("hardware", hardware) else { return };
    assert!((0.9..=0.99).contains(&coverage), "{coverage}");
}

#[test]
fn intervals_of_bursts_hold_the_truth() {
    let Some(coverage) = coverage("bursts", bursts) else { return };
    assert!((0.9..=0.99).contains(&coverage), "{coverage}");
}

#[test]
fn one_burst_tells_no_interval() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::traced(&binary);
    recorder.burst(&Burst { ip: C, branches: &synthetic::AROUND, instructions: 60, period: 1000 });
    let file = folder.path().join("run.data");
    std::fs::write(&file, recorder.finish(&burst_metadata("nanoseconds"))).unwrap();
    let file = file.to_str().unwrap();
    for row in json(&["mix", "--format", "json", "-i", file])["rows"].as_array().unwrap() {
        assert_eq!((&row["share_error"], &row["count_error"]), (&Value::Null, &Value::Null), "{row}");
        assert_eq!(row["rests_on_little"], true);
    }
    let table = support::stdout(&["mix", "-i", file]);
    assert!(table.contains("1 burst: too little to tell") && table.contains("?: seen in too little"), "{table}");
}

/// How many rows of a fixture there are with an interval, and with the truth in it.
fn fixture_rows(fixture: &Fixture) -> (u64, u64) {
    let truth = fixture.truth();
    let arguments = ["validate", "--format", "json", "--truth", truth.to_str().unwrap()];
    let document: Value = serde_json::from_str(&support::stdout_of(&arguments, fixture)).unwrap();
    let sum = |key: &str| {
        let numbers =
            ["mnemonics", "functions", "blocks"].map(|rows| document["coverage"][rows][key].as_u64().unwrap());
        numbers.iter().sum()
    };
    println!("{}: {} of {} rows hold the truth", fixture.name, sum("held"), sum("rows"));
    (sum("rows"), sum("held"))
}

fn fixtures_hold(fixtures: impl Iterator<Item = Fixture>) -> f64 {
    let (mut rows, mut held) = (0, 0);
    for fixture in fixtures {
        let (more, more_held) = fixture_rows(&fixture);
        rows += more;
        held += more_held;
    }
    held as f64 / rows as f64
}

#[test]
fn intervals_of_the_committed_bursts_hold_the_truth() {
    let coverage = fixtures_hold(BURSTS.map(Fixture::bursts).into_iter());
    assert!(coverage >= 0.9, "{coverage}");
}

/// What a simulated PMU gets wrong by its nature (samples that come late, biased branches) is no chance, and in no interval.
#[test]
fn intervals_of_simulated_pmus_know_of_chance_only() {
    let coverage = fixtures_hold(SIMULATED.map(Fixture::simulated).into_iter());
    assert!(coverage >= 0.7, "{coverage}");
}

/// How many changes between pairs of recordings of one program are beyond their own interval, and how many pairs have a finding.
fn changes(record: impl Fn(&Path, &mut Random) -> Vec<u8>) -> Option<(usize, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let binary = synthetic::program(folder.path(), "four", &[])?;
    let files = ["before.data", "after.data"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut beyond, mut findings) = (0, 0);
    for _ in 0..20 {
        for file in &files {
            std::fs::write(file, record(&binary, &mut random)).unwrap();
        }
        let document = json(&["diff", "--format", "json", &files[0], &files[1]]);
        let blocks = document["blocks"].as_array().unwrap();
        assert_eq!(blocks.len(), 4);
        beyond += blocks.iter().filter(|block| block["within_error"] == false).count();
        findings += usize::from(blocks.iter().any(|block| block["finding"] == true));
        assert!(document["functions"].as_array().unwrap().iter().all(|function| function["finding"] == false));
    }
    println!("{beyond} of 80 changes are beyond their interval, {findings} of 20 pairs have a finding");
    Some((beyond, findings))
}

#[test]
fn two_recordings_of_one_program_show_no_finding() {
    for changes in [changes(hardware), changes(bursts)] {
        let Some((beyond, findings)) = changes else { return };
        assert!(beyond <= 8 && findings <= 1, "{beyond}, {findings}");
    }
}

/// Lines are sums over parts of blocks. A mix by line sums up instructions.
#[test]
fn lines_have_the_intervals_that_a_mix_by_line_gives_them() {
    let fixture = Fixture::bursts("compress");
    let [_, file, option, binary] = fixture.input();
    let truth = fixture.truth();
    let truth = truth.to_str().unwrap();
    let diff = |options: &[&str]| {
        json(&[&["diff", &file, truth, &option, &binary, "--format", "json", "--top", "0"][..], options].concat())
    };
    // Shares of the recording differ a little: a mix has code that was not read, too.
    let numbers = |row: &Value| ["after", "change_error"].map(|field| row[field].as_f64().unwrap());
    let whole = diff(&[]);
    let by_key = diff(&["--rows", "line"]);
    let rows: Vec<[f64; 2]> = by_key["rows"].as_array().unwrap().iter().map(numbers).collect();
    let lines: Vec<[f64; 2]> = whole["lines"].as_array().unwrap().iter().map(numbers).collect();
    assert!(lines.len() > 50, "{}", lines.len());
    let is_near = |line: &[f64; 2], row: &[f64; 2]| line.iter().zip(row).all(|(a, b)| (a - b).abs() <= 1e-9);
    let found = lines.iter().filter(|line| rows.iter().any(|row| is_near(line, row))).count();
    // Some lines of code that was inlined are two rows of one, and one of the other.
    assert!(found * 10 >= lines.len() * 9, "{found} of {} lines", lines.len());
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let fixture = Fixture::bursts("objects");
    let [_, file, option, binary] = fixture.input();
    let document = json(&["diff", "--format", "json", &file, &file, &option, &binary]);
    for list in ["functions", "blocks", "lines", "mix"] {
        for row in document[list].as_array().unwrap() {
            assert_eq!(row["within_error"], true, "{row}");
        }
    }
    // So are the sums of instruction sets.
    let table = support::stdout(&["diff", &file, &file, &option, &binary]);
    let (_, sets) = table.rsplit_once(" isa ").unwrap();
    assert!(sets.lines().skip(1).count() > 2 && sets.lines().skip(1).all(|line| line.contains("  =  ")), "{table}");
    // On a terminal they are dim.
    let dim = |variables: &str| {
        let text = support::on_terminal(120, variables, &["diff", &file, &file, &option, &binary, "--top", "3"])?;
        Some(text.lines().filter(|line| line.starts_with("\x1b[2m")).count())
    };
    let Some(lines) = dim("") else { return };
    assert!(lines >= 6, "{lines}");
    assert_eq!(dim("NO_COLOR=1"), Some(0));
}
