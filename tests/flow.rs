//! Ranges and branches of recordings and exact counts that are known by hand.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::io::Cursor;
use std::path::Path;

use analyzer::counting::{AnalysedModule, Detail, GroupBy};
use analyzer::flow::{Flow, LeftOut, ModuleFlow};
use analyzer::recording::Subset;
use analyzer::truth::{Truth, TruthBlock, TruthModule};
use analyzer::{Analysis, BinaryOverride, BinarySearch, Options, analyze};
use perfdata::{BranchFlags, Features, Recording};
use support::Fixture;
use synthetic::*;

const KERNEL: u64 = 0xffff_ffff_8100_0000;

fn flow_of(recorder: Recorder, features: &Features) -> Flow {
    let recording = Recording::from_stream(&mut Cursor::new(recorder.finish(features))).unwrap();
    analysis_of(&recording, BinarySearch::default()).flow.expect("it was asked for").into_flow()
}

fn analysis_of(recording: &Recording, search: BinarySearch) -> Analysis {
    let options = Options {
        search,
        subset: Subset::Whole,
        group_by: GroupBy::default(),
        detail: Detail::Branches,
        core: None,
        threads: 2,
        rules: &model::Rules::default(),
    };
    analyze(recording, &options, &|_| {}).unwrap()
}

/// First, last, count.
fn ranges(module: &ModuleFlow) -> Vec<(u64, u64, f64)> {
    module.ranges.iter().map(|range| (range.first.0, range.last.0, range.count)).collect()
}

/// From, to, count, mispredicted.
fn branches(module: &ModuleFlow) -> Vec<(u64, u64, f64, f64)> {
    let ends =
        |branch: &analyzer::flow::BranchCount| (branch.from.0, branch.to.at.0, branch.count, branch.mispredicted);
    module.branches.iter().map(ends).collect()
}

fn module<'a>(flow: &'a Flow, binary: &Path) -> &'a ModuleFlow {
    flow.modules.iter().find(|module| Path::new(&module.module.path) == binary).expect("the program is a module")
}

#[test]
fn stacks_become_ranges_and_branches() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    recorder.stack(&AROUND);
    recorder.stack_with(&AROUND, BranchFlags::MISPREDICTED);
    recorder.sample(B);
    let flow = flow_of(recorder, &Features::default());
    assert!(flow.executions);
    assert_eq!(flow.left_out, LeftOut::default());
    let module = module(&flow, &binary);
    assert!(module.read);
    assert_eq!(ranges(module), [(A, A_JNE, 50.0), (A, B_JMP, 50.0), (C, D_JMP, 50.0), (D, D_JMP, 50.0)]);
    assert_eq!(branches(module), [(A_JNE, C, 50.0, 25.0), (B_JMP, D, 50.0, 25.0), (D_JMP, A, 100.0, 50.0)]);
    assert_eq!(module.samples.iter().map(|sample| (sample.at.0, sample.count)).collect::<Vec<_>>(), [(B, 1000.0)]);
}

#[test]
fn an_interrupt_is_no_branch_and_its_instruction_did_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    // Interrupted at the first instruction of B behind the jump that was not taken, and at that of D, to which a jump went.
    recorder.stack(&[(D_JMP, A), (B, KERNEL), (KERNEL + 8, B), (B_JMP, D), (D_JMP, A)]);
    recorder.stack(&[(B_JMP, D), (D, KERNEL), (KERNEL + 8, D), (D_JMP, A), (B_JMP, D)]);
    let flow = flow_of(recorder, &Features::default());
    let module = module(&flow, &binary);
    // The line to B ends with the instruction before it; the one to D has none.
    assert_eq!(ranges(module), [(A, A_JNE, 25.0), (A, B_JMP, 25.0), (B, B_JMP, 25.0), (D, D_JMP, 50.0)]);
    assert_eq!(branches(module), [(B_JMP, D, 50.0, 0.0), (D_JMP, A, 50.0, 0.0)]);
}

#[test]
fn what_does_not_fit_the_code_is_left_out_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    // Three streams end before they start, from A to the last jump another one is in the way; A + 3 is no branch; 0x10 is mapped nowhere.
    recorder.stack(&[(A_JNE, C), (A_JNE, C), (A + 3, A), (0x10, A), (D_JMP, A)]);
    let flow = flow_of(recorder, &Features::default());
    let module = module(&flow, &binary);
    assert_eq!(ranges(module), []);
    assert_eq!(branches(module), [(A_JNE, C, 25.0, 0.0), (D_JMP, A, 25.0, 0.0)]);
    assert_eq!(flow.left_out, LeftOut { streams: 100.0, branches: 50.0, samples: 0.0 });
}

#[test]
fn bursts_weigh_what_their_starts_weigh() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::traced(&binary);
    for _ in 0..4 {
        recorder.sample(A);
        recorder.burst(&Burst { ip: A, branches: &AROUND[1..], instructions: 100, period: 10_000 });
    }
    let flow = flow_of(recorder, &burst_metadata("nanoseconds"));
    assert!(!flow.executions);
    let module = module(&flow, &binary);
    let found = ranges(module);
    let ends: Vec<(u64, u64)> = found.iter().map(|(first, last, _)| (*first, *last)).collect();
    assert_eq!(ends, [(A, A_JNE), (A, B_JMP), (C, D_JMP), (D, D_JMP)]);
    // All bursts start in one place: the mean weight is 1, and each stream stands for 10,000 / 100.
    assert!(found.iter().all(|(.., count)| (count - 400.0).abs() < 1e-6), "{found:?}");
}

fn block(start: u64, end: u64, instructions: u32, executions: u64) -> TruthBlock {
    let [start, end] = [start, end].map(analyzer::address::Svma);
    TruthBlock { start, end, instructions, executions, function: None }
}

#[test]
fn ranges_and_branches_give_the_exact_counts() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), "four", &[]) else { return };
    let path = binary.to_str().unwrap().to_string();
    // What never ran needs not be in the file.
    let never = block(D_JMP + 0x100, D_JMP + 0x102, 2, 0);
    let blocks = vec![block(A, B, 21, 10), block(B, C, 4, 6), block(C, D, 2, 4), block(D, D_JMP + 2, 2, 10), never];
    let truth = Truth {
        modules: vec![
            TruthModule { path, build_id: None, blocks },
            TruthModule { path: "/nowhere".into(), build_id: None, blocks: vec![block(1, 2, 1, 5)] },
        ],
        ..Truth::default()
    };
    let (flow, notes) = Flow::of_truth(&truth, &BinarySearch::default());
    let module = module(&flow, &binary);
    // The branch was not taken 6 times, as often as B ran; D was jumped to 6 times and fallen into 4 times.
    assert_eq!(ranges(module), [(A, A_JNE, 4.0), (A, B_JMP, 6.0), (C, D_JMP, 4.0), (D, D_JMP, 6.0)]);
    assert_eq!(branches(module), [(A_JNE, C, 4.0, 0.0), (B_JMP, D, 6.0, 0.0), (D_JMP, A, 10.0, 0.0)]);
    assert_eq!(flow.left_out.streams, 5.0);
    assert!(notes[0].starts_with("/nowhere: ") && notes[1].contains("100.00 %") && notes.len() == 2, "{notes:?}");
}

/// A branch jumps over a prefix: the block behind it overlaps the instruction with the prefix, which goes on behind both.
const OVERLAP: &str = "
.globl _start
.type _start, @function
_start:
    nop
    je 1f + 1
1:  lock cmpxchg %ecx, (%rdi)
    jmp _start
.size _start, .-_start
.section .note.GNU-stack,\"\",@progbits
";
const START: u64 = 0x40_1000;
const JE: u64 = START + 1;
const LOCKED: u64 = START + 3;
const UNLOCKED: u64 = START + 4;
const BACK: u64 = START + 7;

#[test]
fn blocks_that_a_straight_line_jumps_over_did_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = assemble(folder.path(), "overlap", OVERLAP, &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    // Three times around, once past the prefix.
    recorder.stack(&[(BACK, START), (BACK, START), (JE, UNLOCKED), (BACK, START), (BACK, START)]);
    let recorded = flow_of(recorder, &Features::default());
    let blocks = vec![
        block(START, LOCKED, 2, 75),
        block(LOCKED, UNLOCKED, 1, 50),
        block(UNLOCKED, BACK, 1, 25),
        block(BACK, BACK + 2, 1, 75),
    ];
    let path = binary.to_str().unwrap().to_string();
    let truth = Truth { modules: vec![TruthModule { path, build_id: None, blocks }], ..Truth::default() };
    let (exact, _) = Flow::of_truth(&truth, &BinarySearch::default());
    for flow in [&recorded, &exact] {
        let index = flow.modules.iter().position(|of| Path::new(&of.module.path) == binary).unwrap();
        let binary = BinarySearch::default().open(&flow.modules[index].module).unwrap();
        let code = AnalysedModule::of_flows(&[(flow, index)], binary);
        let starts: Vec<u64> = code.blocks.blocks().iter().map(|block| block.start.0).collect();
        assert_eq!(starts, [START, LOCKED, UNLOCKED, BACK]);
        assert_eq!(code.executions(&flow.modules[index].ranges), [75.0, 50.0, 25.0, 75.0]);
        let ways = code.fall_throughs(&flow.modules[index].ranges);
        let ways: Vec<(u64, u64, f64)> = ways.iter().map(|way| (way.from.0, way.to.0, way.count)).collect();
        let behind_prefix = (LOCKED, BACK, 50.0);
        let expected = [(JE, LOCKED, 50.0), behind_prefix, (UNLOCKED, BACK, 25.0)];
        // Exact counts do not say how often control went on behind the prefix.
        let known = expected.into_iter().filter(|way| flow == &recorded || *way != behind_prefix);
        assert_eq!(ways, known.collect::<Vec<_>>());
    }
}

/// Branch stacks of real programs: blocks ran as often by the ranges as by the streams they were made from.
#[test]
fn blocks_run_as_often_as_their_ranges() {
    for (fixture, blocks) in Fixture::all_stacks().iter().zip([150, 300]) {
        check_ranges(fixture, blocks);
    }
}

fn check_ranges(fixture: &Fixture, blocks: usize) {
    let given = BinaryOverride::new(Some(fixture.recorded_as.into()), fixture.binary.clone());
    let search = BinarySearch { overrides: vec![given], ..BinarySearch::default() };
    let analysis = analysis_of(&Recording::open(&fixture.recording).unwrap(), search.clone());
    let analysed = analysis.flow.as_ref().unwrap();
    let flow = analysed.flow();
    let (index, of) = flow.modules.iter().enumerate().find(|(_, of)| of.read).unwrap();
    let code = AnalysedModule::of_flows(&[(flow, index)], search.open(&of.module).unwrap());
    let executions = code.executions(&of.ranges);
    // The same blocks as those that the recording was counted in.
    let counted_in = analysed.code(index, &search).unwrap();
    assert_eq!(code.blocks.blocks(), counted_in.blocks.blocks());
    assert_eq!(executions, analysed.block_counts(index, &counted_in));
    let counted = analysis.counted.iter().find(|module| module.is_read()).unwrap();
    let mut compared = 0;
    for block in &counted.blocks {
        let at = code.blocks.block_at(block.start).unwrap();
        let same = &code.blocks.blocks()[at];
        assert_eq!((same.start, same.end), (block.start, block.end));
        let (by_ranges, by_streams) = (executions[at], block.count.lbr);
        assert!(
            (by_ranges - by_streams).abs() < 1e-6 * by_streams.max(1.0),
            "{}: {by_ranges}, {by_streams}",
            block.start
        );
        compared += 1;
    }
    assert!(compared > blocks, "{}: {compared}", fixture.name);
}
