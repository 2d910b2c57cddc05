//! Errors computed by hand, on made-up recordings of a program with a made-up truth.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};

use analyzer::truth::{Reference, Truth};
use perfdata::Features;
use serde_json::{Value, json};
use synthetic::{A, A_JNE, AROUND, B, B_JMP, Burst, C, D, D_JMP, Recorder, burst_metadata};

const BUILD_ID: &str = "0102030405060708";

struct Setup {
    folder: tempfile::TempDir,
    binary: PathBuf,
}

fn setup() -> Option<Setup> {
    let folder = tempfile::tempdir().unwrap();
    let binary = synthetic::program(folder.path(), "four", &["-Wl,--build-id=0x0102030405060708"])?;
    Some(Setup { folder, binary })
}

impl Setup {
    fn write(&self, name: &str, bytes: &[u8]) -> String {
        let file = self.folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        file.to_str().unwrap().to_string()
    }

    /// Hardware events: 40 stacks around the program, 84 samples in A and 3 in D.
    fn recording(&self) -> String {
        let mut recorder = Recorder::new(&self.binary);
        (0..40).for_each(|_| recorder.stack(&AROUND));
        (0..84).for_each(|i| recorder.sample(A + i % 20));
        (0..3).for_each(|_| recorder.sample(D));
        self.write("run.data", &recorder.finish(&Features::default()))
    }

    /// The truth cuts A behind its fifth instruction, and C and D not at all (as if D were entered from C only).
    fn truth(&self) -> Value {
        truth(
            &self.binary,
            BUILD_ID,
            &[(A, A + 5, 5, 1000), (A + 5, B, 16, 900), (B, C, 4, 600), (C, D_JMP + 2, 4, 400)],
        )
    }

    fn validate(&self, recording: &str, truth: &Value) -> Value {
        let truth = self.write("truth.json", truth.to_string().as_bytes());
        let json = support::stdout(&["validate", "-i", recording, "--truth", &truth, "--format", "json"]);
        serde_json::from_str(&json).unwrap()
    }

    fn error_of(&self, truth: &[u8]) -> String {
        let (recording, truth) = (self.recording(), self.write("truth", truth));
        let output = support::run(&["validate", "-i", &recording, "--truth", &truth]);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

/// A document as `hbbp truth` writes it; blocks are (start, end, instructions, executions).
fn truth(binary: &Path, build_id: &str, blocks: &[(u64, u64, u64, u64)]) -> Value {
    let instructions: u64 = blocks.iter().map(|(_, _, instructions, count)| instructions * count).sum();
    let block = |&(start, end, instructions, count): &(u64, u64, u64, u64)| {
        json!({"module": 0, "start": start, "end": end, "instructions": instructions, "decoded": true, "function": "_start",
            "ebs": 0, "lbr": 0, "count": count, "chosen": "truth", "bias": false, "ebs_samples": 0, "lbr_streams": 0})
    };
    json!({"schema": "hbbp-blocks/1", "source": "truth", "instructions": instructions,
        "head": {"source": "truth", "unit": "executions", "engine": "callgrind-3.19.0", "command": "./four", "processes": 1,
            "counted": instructions, "left_out": [], "environment": {}},
        "modules": [{"path": binary, "build_id": build_id, "read": true}],
        "blocks": blocks.iter().map(block).collect::<Vec<_>>()})
}

/// Sum of the differences of shares.
fn error(truth: &[f64], estimate: &[f64]) -> f64 {
    let [truth_total, estimate_total] = [truth, estimate].map(|counts| counts.iter().sum::<f64>());
    truth.iter().zip(estimate).map(|(r, m)| (r / truth_total - m / estimate_total).abs()).sum()
}

fn assert_near(found: &Value, expected: f64, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}"));
    assert!((found - expected).abs() < 1e-12, "{what}: {found}, expected {expected}");
}

#[test]
fn errors_are_those_of_the_paper() {
    let Some(setup) = setup() else { return };
    let document = setup.validate(&setup.recording(), &setup.truth());
    assert_eq!(document["schema"], "hbbp-validate/1");
    assert_eq!(document["compared"], json!({"truth": 1.0, "recording": 1.0}));
    // Instructions in A's 5 and 16, B, C, D. The recording's executions: EBS 4000 0 0 1500, LBR 2000 1000 1000 2000.
    let blocks = [5.0 * 1000.0, 16.0 * 900.0, 4.0 * 600.0, 2.0 * 400.0, 2.0 * 400.0];
    // nop, jne, jmp
    let mnemonics = [5.0 * 1000.0 + 15.0 * 900.0 + 3.0 * 600.0 + 3.0 * 400.0, 900.0, 600.0 + 400.0];
    let function: f64 = blocks.iter().sum();
    for (source, [a, b, c, d]) in [
        ("ebs", [4000.0, 0.0, 0.0, 1500.0]),
        ("lbr", [2000.0, 1000.0, 1000.0, 2000.0]),
        ("hybrid", [4000.0, 1000.0, 1000.0, 2000.0]),
    ] {
        let estimated = [5.0 * a, 16.0 * a, 4.0 * b, 2.0 * c, 2.0 * d];
        let found = &document["sources"][source];
        let block_error = error(&blocks, &estimated);
        assert_near(&found["block_error"], block_error, source);
        assert_near(&found["mnemonic_error"], error(&mnemonics, &[20.0 * a + 3.0 * b + 2.0 * c + d, a, b + d]), source);
        assert_near(&found["function_error"], error(&[function], &[1.0]), source);
        assert_near(&found["block_overlap"], 1.0 - block_error / 2.0, source);
        assert_near(&found["function_overlap"], 1.0, source);
    }
    let jmp = document["mnemonics"].as_array().unwrap().iter().find(|row| row["mnemonic"] == "jmp").unwrap();
    let (truth, hybrid) = (1000.0 / function, 3000.0 / 94000.0);
    assert_near(&jmp["truth"], truth, "jmp");
    assert_near(&jmp["hybrid"]["share"], hybrid, "jmp");
    assert_near(&jmp["hybrid"]["error"], (truth - hybrid).abs() / truth, "jmp");
    // The worst piece is the larger part of A.
    let worst = &document["worst_blocks"][0];
    assert_eq!((worst["start"].as_u64(), worst["end"].as_u64()), (Some(A + 5), Some(B)));
    assert_near(&worst["contribution"], (14400.0 / function - 64000.0 / 94000.0).abs(), "A");
    assert_eq!(worst["reason"], "only 84 samples");
}

#[test]
fn a_perfect_recording_has_no_error() {
    let Some(setup) = setup() else { return };
    let mut recorder = Recorder::new(&setup.binary);
    (0..40).for_each(|_| recorder.stack(&AROUND));
    let recording = setup.write("run.data", &recorder.finish(&Features::default()));
    // The same proportions, in other numbers.
    let truth = truth(&setup.binary, BUILD_ID, &[(A, B, 21, 50), (B, C, 4, 25), (C, D, 2, 25), (D, D_JMP + 2, 2, 50)]);
    let document = setup.validate(&recording, &truth);
    let lbr = &document["sources"]["lbr"];
    for key in ["mnemonic_error", "block_error", "function_error"] {
        assert_near(&lbr[key], 0.0, key);
        assert_near(&lbr["noise"][key], 0.0, key);
        assert_near(&lbr["bias"][key], 0.0, key);
    }
    assert_near(&lbr["block_overlap"], 1.0, "overlap");
    assert_eq!(document["sources"]["ebs"], Value::Null);
    assert_eq!(document["worst_blocks"], json!([]));
}

/// Each burst goes once through A and B, then once through C and D, in two pieces. Halves that have whole bursts are alike.
#[test]
fn pieces_of_a_burst_stay_in_one_half() {
    let Some(setup) = setup() else { return };
    let mut recorder = Recorder::traced(&setup.binary);
    for _ in 0..100 {
        let piece = |ip, branches, instructions| Burst { ip, branches, instructions, period: 1_000_000 };
        recorder.pieces(&[piece(A, &[(B_JMP, C)], 25), piece(C, &[(D_JMP, A)], 4)]);
    }
    let recording = setup.write("run.data", &recorder.finish(&burst_metadata("nanoseconds")));
    let document = setup.validate(&recording, &setup.truth());
    assert_eq!(document["head"]["lbr_source"]["bursts"]["bursts"], 100);
    assert_near(&document["sources"]["hybrid"]["noise"]["block_error"], 0.0, "pieces apart");
    assert!(document["sources"]["hybrid"]["block_error"].as_f64().unwrap() > 0.1);
}

/// Bursts of two kinds, one of 25 instructions in A and B, one of 4 in C and D, as many of each: what falls into a half is chance.
#[test]
fn noise_shrinks_with_the_number_of_bursts() {
    let Some(setup) = setup() else { return };
    let noise = |bursts: usize| {
        let mut recorder = Recorder::traced(&setup.binary);
        for number in 0..bursts {
            let burst = |ip, branches, instructions| Burst { ip, branches, instructions, period: 1_000_000 };
            recorder.burst(&if number % 2 == 0 { burst(A, &[(B_JMP, C)], 25) } else { burst(C, &[(D_JMP, A)], 4) });
        }
        let recording = setup.write("run.data", &recorder.finish(&burst_metadata("nanoseconds")));
        let document = setup.validate(&recording, &setup.truth());
        let hybrid = &document["sources"]["hybrid"];
        let (error, noise) =
            (hybrid["block_error"].as_f64().unwrap(), hybrid["noise"]["block_error"].as_f64().unwrap());
        assert_near(&hybrid["bias"]["block_error"], (error * error - noise * noise).max(0.0).sqrt(), "bias");
        noise
    };
    // The share of A and B is p = 1/2 with a deviation of 1/(2 sqrt n); the error is twice that. Four deviations are allowed.
    for bursts in [64, 4096] {
        let noise = noise(bursts);
        assert!(noise > 0.0 && noise < 4.0 / (bursts as f64).sqrt(), "{bursts} bursts: {noise}");
    }
}

#[test]
fn code_of_one_side_is_left_out_and_said() {
    let Some(setup) = setup() else { return };
    let mut truth = setup.truth();
    truth["head"]["counted"] = json!(30_000);
    truth["head"]["left_out"] = json!([{"what": "code of no object", "instructions": 2_000}]);
    truth["modules"].as_array_mut().unwrap().push(json!({"path": "/no/such/library", "build_id": null, "read": true}));
    let mut block = truth["blocks"][2].clone();
    block["module"] = json!(1);
    truth["blocks"].as_array_mut().unwrap().push(block);
    let mut recorder = Recorder::traced(&setup.binary);
    (0..40).for_each(|_| recorder.burst(&Burst { ip: C, branches: &AROUND, instructions: 60, period: 1_000_000 }));
    (0..10).for_each(|_| recorder.sample(A));
    (0..10).for_each(|_| recorder.kernel_sample(0xffff_ffff_8100_0000));
    let recording = setup.write("run.data", &recorder.finish(&burst_metadata("nanoseconds")));
    let document = setup.validate(&recording, &truth);
    let left_out: Vec<(&str, &str)> = document["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|left| (left["side"].as_str().unwrap(), left["what"].as_str().unwrap()))
        .collect();
    assert_eq!(
        left_out,
        [
            ("truth", "/no/such/library: the recording does not name it"),
            ("truth", "code of no object"),
            ("recording", "[kernel.kallsyms]: the truth is of user code only")
        ]
    );
    assert_near(&document["left_out"][0]["share"], 2400.0 / 30000.0, "library");
    assert_near(&document["left_out"][1]["share"], 2000.0 / 30000.0, "no object");
    assert_near(&document["compared"]["truth"], 23_400.0 / 30000.0, "compared");
}

/// `one` ran in the truth, `two` in the recording: the CPU decided so, in the resolver `pick`.
#[test]
fn functions_that_the_cpu_chose_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let text = "
.globl _start, pick
.type _start, @function
.type one, @function
.type two, @function
.type pick, @gnu_indirect_function
_start: nop                     # 0x401000
    jmp _start                  # 0x401001
.size _start, .-_start
one: nop; nop; ret              # 0x401003
.size one, .-one
two: nop; ret                   # 0x401006
.size two, .-two
pick: lea one(%rip), %rax
    lea two(%rip), %rcx
    ret
.size pick, .-pick
.section .note.GNU-stack,\"\",@progbits
";
    let Some(binary) = synthetic::assemble(folder.path(), "picks", text, &["-Wl,--build-id=0x0102030405060708"]) else {
        return;
    };
    let setup = Setup { folder, binary };
    let mut recorder = Recorder::new(&setup.binary);
    let (start, two) = ((0x40_1007, 0x40_1000), (0x40_1001, 0x40_1006));
    (0..10).for_each(|_| recorder.stack(&[start, two, start, two, start]));
    let recording = setup.write("run.data", &recorder.finish(&Features::default()));
    let ran_one = truth(&setup.binary, BUILD_ID, &[(0x40_1000, 0x40_1003, 2, 10), (0x40_1003, 0x40_1006, 3, 5)]);
    let document = setup.validate(&recording, &ran_one);
    assert_near(&document["sources"]["lbr"]["block_error"], 0.0, "the rest");
    assert_near(&document["compared"]["truth"], 20.0 / 35.0, "compared");
    assert_near(&document["compared"]["recording"], 0.5, "compared");
    for (place, share) in [(0, 15.0 / 35.0), (1, 0.5)] {
        let left = &document["left_out"][place];
        assert!(left["what"].as_str().unwrap().starts_with("functions chosen by the CPU at run time"), "{left}");
        assert_near(&left["share"], share, "variants");
    }
    // What merely was not sampled stays.
    let ran_both = truth(&setup.binary, BUILD_ID, &[(0x40_1003, 0x40_1006, 3, 5), (0x40_1006, 0x40_1008, 2, 5)]);
    let document = setup.validate(&recording, &ran_both);
    assert_eq!(document["left_out"], json!([]));
    assert!(document["sources"]["lbr"]["block_error"].as_f64().unwrap() > 0.5);
}

/// The mix tool's sums of all mnemonics serve where its blocks cannot be placed.
#[test]
fn mnemonics_of_sde_are_compared_without_blocks() {
    let Some(setup) = setup() else { return };
    let text = "# Mix output version 14\n# $global-dynamic-counts\nNOP 900\nJNZ 40\nJMP 60\n*total 1000\n# END_GLOBAL_DYNAMIC_STATS\n";
    let truth = setup.write("sde-mix-out.txt", text.as_bytes());
    let recording = setup.recording();
    let json = support::stdout(&["validate", "-i", &recording, "--truth", &truth, "--format", "json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    let hybrid = &document["sources"]["hybrid"];
    assert_near(&hybrid["mnemonic_error"], error(&[900.0, 40.0, 60.0], &[87.0, 4.0, 3.0]), "mnemonics");
    assert_eq!(hybrid["block_error"], Value::Null);
    assert_eq!(document["mnemonics_of_all_code"], true);
}

/// The mix tool names the blocks that ran most: only those are compared, but all mnemonics.
#[test]
fn blocks_that_sde_does_not_name_are_left_out() {
    let Some(setup) = setup() else { return };
    let block = |start: u64, end: u64, executions: u64| {
        let image = setup.binary.display();
        let first = format!(
            "BLOCK: 0   PC: {start:x}   ICOUNT: 9   EXECUTIONS: {executions}   #BYTES: 9   FN: _start   IMG: {image}\n"
        );
        first + &(start..end).map(|at| format!("XDIS {at:x}: BASE 90 nop\n")).collect::<String>()
    };
    let text = format!(
        "# Mix output version 14\n{}{}# $global-dynamic-counts\nNOP 246\nJNZ 10\nJMP 16\n*total 272\n# END_GLOBAL_DYNAMIC_STATS\n",
        block(A, A_JNE + 1, 10),
        block(B, B_JMP + 1, 6)
    );
    let (recording, truth) = (setup.recording(), setup.write("sde-mix-out.txt", text.as_bytes()));
    let json = support::stdout(&["validate", "-i", &recording, "--truth", &truth, "--format", "json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    let lbr = &document["sources"]["lbr"];
    assert_near(&lbr["block_error"], error(&[210.0, 24.0], &[42_000.0, 4_000.0]), "blocks");
    let mnemonics = [40_000.0 + 3_000.0 + 2_000.0 + 2_000.0, 2_000.0, 3_000.0];
    assert_near(&lbr["mnemonic_error"], error(&[246.0, 10.0, 16.0], &mnemonics), "mnemonics");
    assert_near(&document["compared"]["truth"], 234.0 / 272.0, "compared");
    let left = &document["left_out"][1];
    assert_eq!(left["what"], "blocks that the truth does not name");
    assert_near(&left["share"], 6_000.0 / 94_000.0, "C and D");
}

/// A file of callgrind is read as it is.
#[test]
fn callgrind_files_are_read_directly() {
    let Some(setup) = setup() else { return };
    let mut text =
        "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npositions: instr line\nevents: Ir\n\n".to_string();
    text += &format!("ob={}\nfn=_start\n", setup.binary.display());
    let (mut total, addresses) = (0, (A..=A_JNE).map(|at| (at, 50)));
    let others = [(B, 25), (B + 1, 25), (B + 2, 25), (B_JMP, 25), (C, 25), (C + 1, 25), (D, 50), (D_JMP, 50)];
    for (at, count) in addresses.chain(others) {
        text += &format!("{at:#x} 0 {count}\n");
        total += count;
    }
    text += &format!("totals: {total}\n");
    let truth = setup.write("callgrind.out", text.as_bytes());
    let recording = setup.recording();
    let json = support::stdout(&["validate", "-i", &recording, "--truth", &truth, "--format", "json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_near(&document["sources"]["lbr"]["block_error"], 0.0, "callgrind");
    assert_eq!(document["truth"]["instructions"], total);
    let cut = setup.error_of(&text.as_bytes()[..text.len() - 20]);
    assert!(cut.contains("truth: it ends without `totals:`"), "{cut}");
}

#[test]
fn a_truth_of_something_else_is_refused() {
    let Some(setup) = setup() else { return };
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut truth = setup.truth();
        change(&mut truth);
        setup.error_of(truth.to_string().as_bytes())
    };
    let check = |said: String, what: &str| assert!(said.contains(what), "{said}");
    check(
        changed(&|truth| truth["schema"] = json!("hbbp-mix/1")),
        "is what `hbbp mix --format json` printed; --truth reads exact counts, of `hbbp truth`,",
    );
    check(
        changed(&|truth| truth["source"] = json!("hybrid")),
        "is what `hbbp blocks --format json` printed; --truth reads exact counts, of `hbbp truth`,",
    );
    check(changed(&|truth| truth["blocks"][0]["module"] = json!(3)), "block 0 is of module 3, but there are 1");
    check(changed(&|truth| truth["blocks"][1]["instructions"] = json!(0)), "block 1 says it has 0 instructions");
    check(
        changed(&|truth| truth["blocks"][0]["end"] = json!(A + 6)),
        "two blocks with the same code: 0x401000 to 0x401006",
    );
    check(
        changed(&|truth| truth["head"] = json!(null)),
        "it is no list of blocks as `hbbp truth` and `hbbp blocks` write them",
    );
    check(
        setup.error_of(truth_of_another_binary(&setup).to_string().as_bytes()),
        "another binary: the truth has build id ff, the recording 0102030405060708",
    );
    // Behind B's first nop are three instructions.
    check(
        changed(&|truth| truth["blocks"][2]["start"] = json!(B + 1)),
        &format!("another binary: the truth has a block at {:#x} that is not in the file", B + 1),
    );
    let of_another =
        changed(&|truth| truth["modules"][0] = json!({"path": "/bin/other", "build_id": "ff", "read": true}));
    check(of_another, "no code in common");
    check(setup.error_of(b"{"), "it is no list of blocks");
    check(setup.error_of(b"nonsense"), "it begins neither like a file of callgrind");
}

/// What a tool that labels blocks asks for.
#[test]
fn every_block_of_an_analysis_has_a_reference() {
    let Some(setup) = setup() else { return };
    let recording = perfdata::Recording::open(Path::new(&setup.recording())).unwrap();
    let options = analyzer::Options {
        search: analyzer::BinarySearch::default(),
        subset: analyzer::recording::Subset::Whole,
        group_by: analyzer::counting::GroupBy::default(),
        detail: analyzer::counting::Detail::Blocks,
        core: None,
        threads: 1,
        rules: &model::Rules::default(),
    };
    let analysis = analyzer::analyze(&recording, &options, &|_| {}).unwrap();
    let truth = Truth::read_json(setup.truth().to_string().as_bytes()).unwrap();
    let reference = Reference::of(&analysis, &truth);
    let module = &analysis.counted[0];
    let of_module = reference.module(0).unwrap();
    let found: Vec<(u64, f64)> =
        module.blocks.iter().map(|block| (block.start.0, of_module.executions(module, block))).collect();
    let mean_of_a = (5.0 * 1000.0 + 16.0 * 900.0) / 21.0;
    assert_eq!(found, [(A, mean_of_a), (B, 600.0), (C, 400.0), (D, 400.0)]);
    let other = Truth::read_json(truth_of_another_binary(&setup).to_string().as_bytes()).unwrap();
    let why = Reference::of(&analysis, &other).module(0).unwrap_err().to_string();
    assert_eq!(why, "another binary: the truth has build id ff, the recording 0102030405060708");
}

fn truth_of_another_binary(setup: &Setup) -> Value {
    let mut truth = setup.truth();
    truth["modules"][0]["build_id"] = json!("ff");
    truth
}

#[test]
fn what_people_see() {
    let Some(setup) = setup() else { return };
    let mut truth = setup.truth();
    truth["modules"][0]["path"] = json!("/bin/four");
    let (recording, truth) = (setup.recording(), setup.write("truth.json", truth.to_string().as_bytes()));
    let plot = setup.folder.path().join("plot.svg");
    let run = |more: &[&str]| {
        let mut arguments = vec!["validate", "-i", &recording, "--truth", &truth, "--plot", plot.to_str().unwrap()];
        arguments.extend(more);
        support::stdout(&arguments)
    };
    insta::assert_snapshot!("validate_table", run(&[]));
    insta::assert_snapshot!("validate_plot", std::fs::read_to_string(&plot).unwrap());
    let folder = setup.folder.path().canonicalize().unwrap();
    insta::assert_snapshot!("validate_csv", run(&["--format", "csv"]).replace(folder.to_str().unwrap(), "FOLDER"));
    assert_eq!(run(&["--format", "json", "--threads", "1"]), run(&["--format", "json", "--threads", "4"]));
}

#[test]
fn the_verdict_is_the_last_line_and_rows_of_no_weight_are_left_out() {
    let fixture = support::Fixture::bursts("parse");
    let truth = fixture.truth();
    let command = ["validate", "--truth", truth.to_str().unwrap()];
    let of = |more: &[&str]| support::stdout_of(&[&command, more].concat(), &fixture);
    let document: Value = serde_json::from_str(&of(&["--format", "json"])).unwrap();
    let verdict = &document["verdict"];
    let hybrid = &document["sources"]["hybrid"];
    let [error, overlap] = [&hybrid["mnemonic_error"], &hybrid["block_overlap"]].map(|value| value.as_f64().unwrap());
    let grade = match (error, overlap) {
        (..=0.01, 0.98..) => "excellent",
        (..=0.03, 0.92..) => "good",
        (..=0.08, 0.85..) => "fair",
        _ => "poor",
    };
    assert_eq!((&verdict["grade"], &verdict["mnemonic_error"]), (&json!(grade), &hybrid["mnemonic_error"]));
    let table = of(&[]);
    let last = table.lines().last().unwrap();
    assert_eq!(last, format!("# verdict  {}", verdict["text"].as_str().unwrap()));
    assert!(last.contains(&format!("{grade}: mean mnemonic error ")), "{last}");
    // The mnemonic that adds most to the error.
    let off = |row: &&Value| (row["truth"].as_f64().unwrap() - row["hybrid"]["share"].as_f64().unwrap()).abs();
    let mnemonics = document["mnemonics"].as_array().unwrap();
    let worst = mnemonics.iter().max_by(|one, other| off(one).total_cmp(&off(other))).unwrap();
    assert_eq!(verdict["worst_mnemonics"][0], worst["mnemonic"]);
    assert!(last.contains(&format!("the worst rows are {} (", worst["mnemonic"].as_str().unwrap())), "{last}");
    // `memset` has 0.01 % of the instructions.
    assert!(table.contains(" of less than 0.05 % each (--top 0 shows them)"), "{table}");
    assert!(!table.contains("memset") && of(&["--top", "0"]).contains("memset"), "{table}");
}

/// One function takes nearly all of a program's time; whatever records it must see that.
#[test]
fn a_command_is_recorded_counted_and_compared() {
    let _alone = testing::Alone::wait();
    if !support::has("valgrind") || !support::has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("loop.c");
    // valgrind sets that variable for what it runs.
    let text = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { for (volatile int i = 0; i < 60000000; i++) {} \
                return puts(getenv(\"LD_PRELOAD\") ? \"counted\" : \"recorded\") < 0; }";
    std::fs::write(&source, text).unwrap();
    let program = folder.path().join("loop");
    let status = std::process::Command::new("gcc").args(["-O1", "-o"]).arg(&program).arg(&source).status();
    assert!(status.unwrap().success());
    let (printed, program) = (folder.path().join("printed"), program.to_str().unwrap());
    let to_file = ["--stdout", printed.to_str().unwrap()];
    let output =
        support::run(&[&["validate", "--overhead", "20", "--format", "json"], &to_file[..], &["--", program]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("could not be recorded") || said.contains("the recording has no samples") {
        testing::skip!(NoSampling, "nothing can be recorded here: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["compared"]["truth"].as_f64().unwrap() > 0.99, "{}", document["left_out"]);
    // In a short run a burst or two can be of the program's start.
    let hybrid = &document["sources"]["hybrid"];
    assert!(hybrid["function_overlap"].as_f64().unwrap() > 0.5, "{hybrid:#}");
    assert!(document["truth"]["environment"]["GLIBC_TUNABLES"].is_string());
    assert_eq!(std::fs::read_to_string(printed).unwrap(), "recorded\n", "what the second run prints is not kept");
}
