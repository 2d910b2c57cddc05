//! Branch stacks traced in software, on made-up recordings whose counts are known by hand.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::PathBuf;

use perfdata::{BranchSampleType, Features};
use serde_json::Value;
use synthetic::{A, A_JNE, AROUND, B, B_JMP, Burst, C, D, D_JMP, Recorder, burst_metadata, note};

/// From C on: C D, A B, D, A, C D. A 2, B 1, C 2, D 3 times, then some of A's nops.
const BURST: Burst<'_> = Burst { ip: C, branches: &AROUND, instructions: 100, period: 1000 };

/// Recordings of one program.
struct Setup {
    folder: tempfile::TempDir,
    binary: PathBuf,
}

fn setup() -> Option<Setup> {
    let folder = tempfile::tempdir().unwrap();
    let binary = synthetic::program(folder.path(), "four", &[])?;
    Some(Setup { folder, binary })
}

impl Setup {
    fn blocks(&self, recorder: Recorder, features: &Features) -> Value {
        let file = self.folder.path().join("run.data");
        std::fs::write(&file, recorder.finish(features)).unwrap();
        let json = support::stdout(&["blocks", "-i", file.to_str().unwrap(), "--format", "json"]);
        serde_json::from_str(&json).unwrap()
    }

    fn blocks_of(&self, bursts: &[Burst<'_>]) -> Value {
        let mut recorder = Recorder::traced(&self.binary);
        bursts.iter().for_each(|burst| recorder.burst(burst));
        self.blocks(recorder, &burst_metadata("nanoseconds"))
    }
}

/// Start, instructions and count of every block.
fn counts(document: &Value) -> Vec<(u64, u64, f64)> {
    let blocks = document["blocks"].as_array().unwrap();
    let row = |block: &Value| {
        (block["start"].as_u64().unwrap(), block["instructions"].as_u64().unwrap(), block["count"].as_f64().unwrap())
    };
    blocks.iter().map(row).collect()
}

/// The program's blocks with these counts.
fn abcd(a: f64, b: f64, c: f64, d: f64) -> Vec<(u64, u64, f64)> {
    vec![(A, 21, a), (B, 4, b), (C, 2, c), (D, 2, d)]
}

fn no_broken_streams(document: &Value) {
    let broken = document["head"]["lbr_source"]["broken"].as_object().unwrap();
    assert!(broken.values().all(|count| count == 0), "{broken:?}");
}

#[test]
fn a_stream_weighs_what_the_burst_stands_for_by_its_instructions() {
    let Some(setup) = setup() else { return };
    let document = setup.blocks_of(&[BURST]);
    assert_eq!(counts(&document), abcd(20.0, 10.0, 20.0, 30.0));
    assert_eq!((&document["source"], &document["head"]["unit"]), (&"lbr".into(), &"relative".into()));
    let lbr = &document["head"]["lbr_source"];
    assert_eq!((&lbr["provenance"], &lbr["samples"], &lbr["streams"]), (&"software".into(), &1.into(), &5.into()));
    assert_eq!(lbr["bursts"]["bursts"], 1);
    assert_eq!(lbr["bursts"]["mean_instructions"], 100.0);
    assert_eq!(lbr["bursts"]["mean_branches"], 5.0);
    assert_eq!(lbr["bursts"]["weighted_by"], "nanoseconds");
    assert_eq!(lbr["bursts"]["tracer"]["kind"], "lookahead");
    assert_eq!(document["head"]["ebs_source"], Value::Null, "a burst's start is no sample");
    no_broken_streams(&document);
}

#[test]
fn bursts_of_different_length_and_period_weigh_differently() {
    let Some(setup) = setup() else { return };
    let around_b = [(B_JMP, D), (D_JMP, A), (B_JMP, D)];
    let other = Burst { ip: A, branches: &around_b, instructions: 64, period: 2560 };
    let document = setup.blocks_of(&[BURST, other]);
    // A B, D, A B of weight 40 each.
    assert_eq!(counts(&document), abcd(20.0 + 80.0, 10.0 + 80.0, 20.0, 30.0 + 40.0));
    let bursts = &document["head"]["lbr_source"]["bursts"];
    assert_eq!(
        (&bursts["bursts"], &bursts["mean_instructions"], &bursts["mean_branches"]),
        (&2.into(), &82.0.into(), &4.0.into())
    );
}

#[test]
fn what_is_above_the_instructions_in_a_weight_is_passed_over() {
    let Some(setup) = setup() else { return };
    let document = setup.blocks_of(&[Burst { instructions: BURST.instructions | 1000 << 32 | 10_000 << 48, ..BURST }]);
    assert_eq!(counts(&document), abcd(20.0, 10.0, 20.0, 30.0));
    assert_eq!(document["head"]["lbr_source"]["bursts"]["mean_instructions"], 100.0);
}

#[test]
fn any_lines_of_data_are_survived() {
    let Some(setup) = setup() else { return };
    let plain = setup.blocks_of(&[BURST; 5]);
    let mut recorder = Recorder::traced(&setup.binary);
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let garbage =
        [words(&[]), vec![0xff; 16_004], vec![0; 800], words(&[3 << 32 | 9, 1 << 32 | 9, 2 << 32]), vec![7; 3]];
    garbage.iter().for_each(|data| recorder.burst_with_data(&BURST, data));
    let document = setup.blocks(recorder, &burst_metadata("nanoseconds"));
    // All code is in one place, so what it costs there changes nothing.
    assert_eq!(counts(&document), counts(&plain));
}

#[test]
fn pieces_of_a_burst_count_as_the_burst() {
    let Some(setup) = setup() else { return };
    let whole = setup.blocks_of(&[BURST, BURST]);
    let (start, rest) = AROUND.split_at(2);
    let pieces = [
        Burst { ip: C, branches: start, instructions: 30, period: 300 },
        Burst { ip: start[1].1, branches: rest, instructions: 55, period: 550 },
        Burst { ip: rest[2].1, branches: &[], instructions: 15, period: 150 },
    ];
    let mut recorder = Recorder::traced(&setup.binary);
    recorder.pieces(&pieces);
    recorder.pieces(&pieces);
    let in_pieces = setup.blocks(recorder, &burst_metadata("nanoseconds"));
    assert_eq!(whole["blocks"], in_pieces["blocks"]);
    let head = |document: &Value, key: &str| document["head"]["lbr_source"][key].clone();
    assert_eq!(head(&whole, "bursts"), head(&in_pieces, "bursts"));
    assert_eq!((head(&whole, "samples"), head(&in_pieces, "samples")), (2.into(), 6.into()));
}

#[test]
fn where_a_burst_starts_no_block_does() {
    let Some(setup) = setup() else { return };
    let document =
        setup.blocks_of(&[Burst { ip: A + 5, branches: &[(B_JMP, D), (D_JMP, A)], instructions: 50, period: 100 }]);
    assert_eq!(counts(&document), [(A, 21, 2.0), (B, 4, 2.0), (D, 2, 2.0)]);
    no_broken_streams(&document);
}

#[test]
fn a_long_block_is_as_fast_as_a_short_one() {
    const SOURCE: &str = "
.globl _start
.type _start, @function
_start:
    .rept 2043
    nop
    .endr
    jmp _start
.size _start, .-_start
.type short, @function
short:
    .rept 123
    nop
    .endr
    jmp short
.size short, .-short
.section .note.GNU-stack,\"\",@progbits
";
    const SHORT: u64 = A + 2048;
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::assemble(folder.path(), "long", SOURCE, &[]) else { return };
    let setup = Setup { folder, binary };
    // Of the same time, bursts start all over the long block as often as all over the short one.
    let bursts: Vec<Burst<'_>> = (0..400)
        .map(|number| match number % 2 {
            0 => Burst { ip: A + number * 5, branches: &[(A + 2043, A); 5], instructions: 10_000, period: 1000 },
            _ => Burst {
                ip: SHORT + number % 123,
                branches: &[(SHORT + 123, SHORT); 80],
                instructions: 10_000,
                period: 1000,
            },
        })
        .collect();
    let document = setup.blocks_of(&bursts);
    let executed: Vec<f64> =
        counts(&document).iter().map(|(_, instructions, count)| *instructions as f64 * count).collect();
    let [long, short] = executed[..] else { panic!("{document}") };
    assert!((long / short - 1.0).abs() < 0.05, "{long} {short}");
}

#[test]
fn a_burst_without_branches_counts_nothing() {
    let Some(setup) = setup() else { return };
    let empty = Burst { branches: &[], ..BURST };
    let document = setup.blocks_of(&[BURST, empty]);
    assert_eq!(counts(&document), abcd(20.0, 10.0, 20.0, 30.0));
    assert_eq!(document["head"]["lbr_source"]["bursts"]["bursts"], 2);
    assert_eq!(document["head"]["lbr_source"]["bursts"]["mean_branches"], 2.5);
}

#[test]
fn where_no_burst_reached_a_branch_the_clock_counts() {
    let Some(setup) = setup() else { return };
    for unit in ["nanoseconds", "instructions"] {
        let mut recorder = Recorder::traced(&setup.binary);
        recorder.burst(&Burst { branches: &[], ..BURST });
        recorder.burst(&Burst { instructions: 0, ..BURST });
        (0..42).for_each(|_| recorder.sample(A));
        let document = setup.blocks(recorder, &burst_metadata(unit));
        assert_eq!(counts(&document), [(A, 21, 2000.0)]);
        assert_eq!((&document["source"], &document["head"]["unit"]), (&"ebs".into(), &"relative".into()));
    }
}

#[test]
fn a_burst_with_fewer_instructions_than_branches_is_left_out_and_said() {
    let Some(setup) = setup() else { return };
    let document = setup.blocks_of(&[BURST, Burst { instructions: 0, ..BURST }, Burst { instructions: 4, ..BURST }]);
    assert_eq!(counts(&document), abcd(20.0, 10.0, 20.0, 30.0));
    let degraded = document["head"]["degraded"].to_string();
    assert!(degraded.contains("2 samples of burst:u claim fewer instructions than branches"), "{degraded}");
}

#[test]
fn streams_run_straight_through_system_calls() {
    let folder = tempfile::tempdir().unwrap();
    let calls = "
        .globl _start
        _start: nop; syscall
                nop; nop; int $0x80
                nop; nop; nop; sysenter
                nop; jmp _start
        .size _start, .-_start
        .section .note.GNU-stack,\"\",@progbits
        ";
    let Some(binary) = synthetic::assemble(folder.path(), "calls", calls, &[]) else { return };
    let setup = Setup { folder, binary };
    const JMP: u64 = 0x40_100d;
    let once_round = Burst { ip: A, branches: &[(JMP, A)], instructions: 11, period: 110 };
    // From behind the first system call to the end and once round.
    let from_syscall = Burst { ip: 0x40_1003, branches: &[(JMP, A), (JMP, A)], instructions: 20, period: 400 };
    let document = setup.blocks_of(&[once_round, from_syscall]);
    let expected =
        [(A, 2, 10.0 + 20.0), (0x40_1003, 3, 10.0 + 40.0), (0x40_1007, 4, 10.0 + 40.0), (0x40_100c, 2, 10.0 + 40.0)];
    assert_eq!(counts(&document), expected);
    no_broken_streams(&document);
}

#[test]
fn bursts_of_instructions_count_executions() {
    let Some(setup) = setup() else { return };
    let mut recorder = Recorder::traced(&setup.binary);
    recorder.burst(&Burst { period: 1_000_000, ..BURST });
    (0..5).for_each(|_| recorder.sample(A));
    let document = setup.blocks(recorder, &burst_metadata("instructions"));
    assert_eq!(counts(&document), abcd(20_000.0, 10_000.0, 20_000.0, 30_000.0));
    assert_eq!(document["head"]["unit"], "executions");
    assert_eq!(document["head"]["lbr_source"]["bursts"]["weighted_by"], "instructions");
    assert_eq!(document["head"]["ebs_source"]["event"], "task-clock");
}

#[test]
fn without_the_recorders_word_it_is_an_ordinary_stack() {
    let Some(setup) = setup() else { return };
    for features in [
        Features::default(),
        note(r#"{"events":[{"name":"burst:u","provenance":"hardware","unit":"nanoseconds"}]}"#),
        note(r#"{"events":[{"name":"burst","provenance":"software","unit":"nanoseconds"}]}"#),
        note(r#"{"events":"#),
    ] {
        let mut recorder = Recorder::traced(&setup.binary);
        recorder.burst(&BURST);
        let document = setup.blocks(recorder, &features);
        // Four streams of 250 each: the code before the oldest branch is not known.
        let lbr: Vec<f64> =
            document["blocks"].as_array().unwrap().iter().map(|block| block["lbr"].as_f64().unwrap()).collect();
        assert_eq!(lbr, [500.0, 250.0, 250.0, 500.0]);
        assert_eq!(document["head"]["lbr_source"]["provenance"], "hardware");
        assert_eq!(document["head"]["lbr_source"].get("bursts"), None);
        assert_eq!(document["head"]["lbr_source"]["streams"], 4);
    }
}

#[test]
fn time_beside_bursts_counts_only_what_bursts_cannot_see() {
    let Some(setup) = setup() else { return };
    let mut recorder = Recorder::traced(&setup.binary);
    recorder.burst(&Burst { branches: &[(B_JMP, D), (D_JMP, A)], ip: A, ..BURST });
    // By time A and C take as much as the bursts saw in 27 instructions of weight 10: a sample is 45.
    (0..4).for_each(|_| recorder.sample(A + 3));
    (0..2).for_each(|_| recorder.sample(C));
    (0..3).for_each(|_| recorder.kernel_sample(0xffff_ffff_8100_0000));
    let document = setup.blocks(recorder, &burst_metadata("nanoseconds"));
    let of = |start: u64| {
        let blocks = document["blocks"].as_array().unwrap();
        let block = blocks.iter().find(|block| block["start"] == start).unwrap();
        (block["chosen"].as_str().unwrap(), block["count"].as_f64().unwrap().round(), block["ebs"].as_f64().unwrap())
    };
    assert_eq!((of(A).0, of(A).1), ("lbr", 10.0));
    assert_eq!((of(C).0, of(C).1), ("lbr", 0.0));
    assert!((of(C).2 - 45.0).abs() < 1e-6, "{:?}", of(C));
    assert_eq!((of(0xffff_ffff_8100_0000).0, of(0xffff_ffff_8100_0000).1), ("ebs", 135.0));
    assert_eq!(document["source"], "lbr");
    let choice = "lbr outside the kernel: trees trained on such sources do not beat it";
    assert_eq!(document["head"]["choice"], choice);
}

#[test]
fn bursts_follow_the_filter_of_branches_like_all_stacks() {
    let Some(setup) = setup() else { return };
    let record = |filter: BranchSampleType| {
        let mut recorder = Recorder::traced_with(&setup.binary, filter);
        recorder.burst(&BURST);
        recorder.sample(A);
        setup.blocks(recorder, &burst_metadata("nanoseconds"))
    };
    let all = BranchSampleType::ANY | BranchSampleType::USER | BranchSampleType::TYPE_SAVE;
    assert_eq!(counts(&record(all)), abcd(20.0, 10.0, 20.0, 30.0));
    let calls = record(BranchSampleType::ANY_CALL | BranchSampleType::USER);
    assert_eq!(calls["head"]["lbr_source"], Value::Null);
    assert_eq!(calls["head"]["ebs_source"]["event"], "task-clock");
    assert_eq!(calls["head"]["unused_events"][0]["event"], "burst:u");
    let degraded = calls["head"]["degraded"].to_string();
    assert!(degraded.contains("burst:u has stacks of some branch kinds only"), "{degraded}");
}

#[test]
fn a_path_that_cannot_be_is_broken_from_its_start_on() {
    let Some(setup) = setup() else { return };
    let branches = [(A_JNE, C), (D_JMP, A)];
    let bursts = [
        Burst { ip: D, branches: &branches, ..BURST }, // ends before it starts
        Burst { ip: 0x30_0000, branches: &branches, ..BURST }, // starts in no module
        Burst { ip: B, branches: &branches[1..], ..BURST }, // runs through B's jmp
    ];
    let document = setup.blocks_of(&bursts);
    let broken = &document["head"]["lbr_source"]["broken"];
    assert_eq!(
        (&broken["backwards"], &broken["crosses_module"], &broken["through_branch"]),
        (&1.into(), &1.into(), &1.into()),
        "{broken}"
    );
    // What they count against others is estimated; both blocks were in the same two streams.
    let [(C, 2, of_c), (D, 2, of_d)] = counts(&document)[..] else { panic!("{document}") };
    assert!(of_c > 0.0 && of_c == of_d, "{of_c} {of_d}");
}

#[test]
fn where_a_burst_starts_an_instruction_does() {
    let folder = tempfile::tempdir().unwrap();
    // Decoded in a line, the two bytes of data swallow the eight nops behind them.
    let behind_data = "
        .globl _start
        _start: jmp *%rax
                .byte 0x48, 0xb8
                .rept 9
                nop
                .endr
                jmp _start
        .size _start, .-_start
        .section .note.GNU-stack,\"\",@progbits
        ";
    let Some(binary) = synthetic::assemble(folder.path(), "data", behind_data, &[]) else { return };
    let setup = Setup { folder, binary };
    let behind = Burst { ip: 0x40_1004, branches: &[(0x40_100d, A)], instructions: 10, period: 10 };
    let document = setup.blocks_of(&[behind]);
    assert_eq!(counts(&document), [(0x40_1004, 10, 1.0)]);
}
