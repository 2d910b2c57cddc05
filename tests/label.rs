//! `hbbp label` on a made-up recording and a made-up truth.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::Path;

use model::Source;
use model::training::{LabelledBlock, read_blocks};
use serde_json::{Value, json};
use synthetic::{A, AROUND, B, C, D, D_JMP, Recorder};

/// As `hbbp truth` writes it; blocks are (start, end, instructions, executions).
fn truth(binary: &Path, blocks: &[(u64, u64, u64, u64)]) -> Value {
    let block = |&(start, end, instructions, count): &(u64, u64, u64, u64)| {
        json!({"module": 0, "start": start, "end": end, "instructions": instructions, "decoded": true, "function": "_start",
            "ebs": 0, "lbr": 0, "count": count, "chosen": "truth", "bias": false, "ebs_samples": 0, "lbr_streams": 0})
    };
    json!({"schema": "hbbp-blocks/1", "source": "truth", "instructions": 0,
        "head": {"source": "truth", "unit": "executions", "engine": "callgrind-3.19.0", "command": "./four", "processes": 1,
            "counted": 0, "left_out": [], "environment": {}},
        "modules": [{"path": binary, "build_id": null, "read": true}],
        "blocks": blocks.iter().map(block).collect::<Vec<_>>()})
}

/// 40 stacks around the program (A 2000, B 1000, C 1000, D 2000), 84 samples in A and 3 in D (A 4000, D 1500).
fn labels(more: &[&str]) -> Option<Vec<LabelledBlock>> {
    let folder = tempfile::tempdir().unwrap();
    let binary = synthetic::program(folder.path(), "four", &[])?;
    let mut recorder = Recorder::new(&binary);
    (0..40).for_each(|_| recorder.stack(&AROUND));
    (0..84).for_each(|i| recorder.sample(A + i % 20));
    (0..3).for_each(|_| recorder.sample(D));
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("run.data"), recorder.finish(&Default::default())).unwrap();
    let truth = truth(&binary, &[(A, B, 21, 1300), (B, C, 4, 650), (C, D, 2, 650), (D, D_JMP + 2, 2, 1300)]);
    std::fs::write(path("truth.json"), truth.to_string()).unwrap();
    let (recording, truth) = (path("run.data"), path("truth.json"));
    let arguments = ["label", "-i", &recording, "--truth", &truth, "--program", "four"];
    let csv = support::stdout(&[&arguments[..], more].concat());
    Some(read_blocks(csv.as_bytes()).unwrap())
}

#[test]
fn both_counts_are_scaled_to_the_truth_and_the_nearer_one_is_named() {
    let Some(blocks) = labels(&[]) else { return };
    // 33,800 instructions by the truth; 52,000 by stacks, which are right everywhere; 87,000 by samples.
    let check = |index: usize, start: u64, instructions: u32, executions: f64, ebs: f64| {
        let block: &LabelledBlock = &blocks[index];
        assert_eq!((block.start, block.features.instructions, block.executions), (start, instructions, executions));
        assert!((block.features.ebs_count - ebs).abs() < 0.01, "{block:?}");
        assert!((block.features.lbr_count - executions).abs() < 0.01, "{block:?}");
        assert_eq!(block.label(), Source::Lbr);
        assert_eq!(
            (block.program.as_str(), block.module.as_str(), block.function.as_str()),
            ("four", "four", "_start")
        );
    };
    check(0, A, 21, 1300.0, 4000.0 * 33_800.0 / 87_000.0);
    check(1, B, 4, 650.0, 0.0);
    check(2, C, 2, 650.0, 0.0);
    check(3, D, 2, 1300.0, 1500.0 * 33_800.0 / 87_000.0);
    let ends: Vec<String> = blocks.iter().map(|block| format!("{:?}", block.features.end)).collect();
    assert_eq!(ends, ["Conditional", "Jump", "FallThrough", "Jump"]);
}

#[test]
fn the_largest_blocks_are_kept_in_order() {
    let Some(blocks) = labels(&["--top", "3"]) else { return };
    let starts: Vec<u64> = blocks.iter().map(|block| block.start).collect();
    assert_eq!(starts, [A, B, D]);
}

const DIVIDES: &str = "
.globl _start
.type _start, @function
_start:
    divq %rcx
    jz 1f
1:  movq (%rsi), %rax
    addq %rax, (%rdi)
    addps %xmm0, %xmm1
    jmp _start
.size _start, .-_start
.section .note.GNU-stack,\"\",@progbits
";

#[test]
fn instructions_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::assemble(folder.path(), "divides", DIVIDES, &[]) else { return };
    let (second, end) = (A + 5, A + 16);
    let mut recorder = Recorder::new(&binary);
    recorder.stack(&[(end - 2, A), (A + 3, second), (end - 2, A)]);
    recorder.sample(A);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("run.data"), recorder.finish(&Default::default())).unwrap();
    std::fs::write(path("truth.json"), truth(&binary, &[(A, second, 2, 10), (second, end, 4, 10)]).to_string())
        .unwrap();
    let csv =
        support::stdout(&["label", "-i", &path("run.data"), "--truth", &path("truth.json"), "--program", "divides"]);
    let blocks = read_blocks(csv.as_bytes()).unwrap();
    let kinds: Vec<_> = blocks
        .iter()
        .map(|block| block.features)
        .map(|f| ([f.long_latency, f.memory_reads, f.memory_writes, f.simd], f.shadowed, f.casts_shadow, f.bytes))
        .collect();
    assert_eq!(kinds, [([1, 0, 0, 0], false, true, 5), ([0, 2, 1, 1], true, false, 11)]);
}
