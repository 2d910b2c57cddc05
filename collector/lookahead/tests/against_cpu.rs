//! The proof: programs of this machine and random instructions, in lockstep with the CPU.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use support::lockstep::{Plan, Report, lockstep};
use support::tracee::Tracee;
use testing::Alone;

#[test]
fn random_instructions() {
    let _alone = Alone::wait();
    let report = support::fuzz::fuzz(7, 20_000);
    assert!(report.divergences.is_empty(), "{:?}\n{}", report.divergences, report.examples.join("\n"));
    assert!(report.executed > 15_000 && report.mnemonics.len() > 300, "{} executed", report.executed);
}

/// The seeds of the fuzz target: the instructions of `semantics.txt` on random states.
#[test]
fn fuzz_seeds() {
    let _alone = Alone::wait();
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/lookahead/seeds/instructions");
    let mut bench = support::fuzz::Bench::new();
    let mut tried = 0;
    for entry in std::fs::read_dir(&seeds).expect("the seeds") {
        let seed = std::fs::read(entry.expect("a seed").path()).expect("a seed");
        assert_eq!(seed.len() % support::fuzz::CASE, 0);
        tried += bench.input(&seed);
    }
    let report = bench.report;
    assert!(report.divergences.is_empty(), "{:?}\n{}", report.divergences, report.examples.join("\n"));
    assert!(tried > 250 && report.executed > 150, "{tried} tried, {} executed", report.executed);
}

/// Programs see OF after a shift or rotation by more than one bit although the manuals leave it undefined, and CPUs differ: what a prediction
/// gives is what this one gives.
#[test]
fn shifts_and_rotations_leave_the_flags_that_this_cpu_leaves() {
    let _alone = Alone::wait();
    let rotations: [&[u8]; 24] = [
        &[0xc0, 0xe0, 3],        // shl al, 3
        &[0xc0, 0xe8, 3],        // shr al, 3
        &[0x66, 0xd3, 0xe0],     // shl ax, cl
        &[0xc1, 0xe0, 13],       // shl eax, 13
        &[0x48, 0xd3, 0xe8],     // shr rax, cl
        &[0x48, 0xc1, 0xf8, 13], // sar rax, 13
        &[0x48, 0xd3, 0x23],     // shl qword ptr [rbx], cl
        &[0xc1, 0x2b, 13],       // shr dword ptr [rbx], 13
        &[0xc0, 0xc0, 3],        // rol al, 3
        &[0xc0, 0xc8, 3],        // ror al, 3
        &[0x66, 0xc1, 0xc0, 3],  // rol ax, 3
        &[0x66, 0xc1, 0xc8, 3],
        &[0xc1, 0xc0, 13], // rol eax, 13
        &[0xc1, 0xc8, 13],
        &[0x48, 0xc1, 0xc0, 13], // rol rax, 13
        &[0x48, 0xc1, 0xc8, 13],
        &[0x48, 0xc1, 0x03, 13], // rol qword ptr [rbx], 13
        &[0xc1, 0x0b, 13],       // ror dword ptr [rbx], 13
        &[0xd2, 0xc0],           // rol al, cl
        &[0x66, 0xd3, 0xc8],     // ror ax, cl
        &[0xd3, 0xc0],           // rol eax, cl
        &[0x48, 0xd3, 0xc0],     // rol rax, cl
        &[0x48, 0xd3, 0xc8],
        &[0x48, 0xd3, 0x03], // rol qword ptr [rbx], cl
    ];
    let mut bench = support::fuzz::Bench::new();
    let mut tried = 0;
    for rotation in rotations {
        for seed in 1..100_u64 {
            let mut case = [0x90; support::fuzz::CASE];
            case[..rotation.len()].copy_from_slice(rotation);
            case[support::fuzz::CASE - 8..].copy_from_slice(&seed.to_le_bytes());
            tried += bench.input(&case);
        }
    }
    let report = bench.report;
    assert_eq!((tried, report.executed), (rotations.len() * 99, rotations.len() as u64 * 99));
    assert!(report.divergences.is_empty(), "{:?}\n{}", report.divergences, report.examples.join("\n"));
    assert!(report.undefined.is_empty(), "differences in OF: {:?}", report.undefined);
}

fn follow(program: &Path, arguments: &[&str], plan: Plan) -> Option<Report> {
    if !program.exists() {
        testing::skip!(Tool, "{} is not there", program.display());
        return None;
    }
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let report = match Tracee::start(command) {
        Ok(mut tracee) => lockstep(&mut tracee, plan),
        Err(error) => {
            testing::skip!(NoTracing, "{} cannot be traced: {error}", program.display());
            return None;
        }
    };
    let name = program.display();
    eprintln!("{name}: {} steps, {:?} unsupported, {:?}", report.steps, report.unsupported, report.stops);
    assert!(report.divergences.is_empty(), "{name}: {:?}\n{}", report.divergences, report.examples.join("\n"));
    Some(report)
}

#[test]
fn programs() {
    let _alone = Alone::wait();
    let plan = Plan { steps: 25_000, windows: 3, pause: Duration::from_millis(15) };
    let text = tempfile_with_text();
    let text = text.to_str().expect("a plain name");
    let shell = "for((i=0;i<100000;i++));do x=$((x+i*3)); y=\"${y:0:20}a$i\"; case $y in *b*) z=1;; esac; done";
    let perl = "for(1..1000000){$h{$_%1017}.=$_%9; $x+=sqrt($_); $y=~s/a(.)/$1b/; $y.='abc'; $y=substr($y,0,50)}";
    let awk =
        "{for(i=1;i<=NF;i++)c[$i]++; n+=length($0)} END{for(j=0;j<100000;j++){n=n/1.1; s=s substr($0,1,2)} print n}";
    let mut all = Report::default();
    for (program, arguments) in [
        ("/usr/bin/gzip", vec!["-c", text]),
        ("/usr/bin/sort", vec!["--parallel=1", text]),
        ("/usr/bin/mawk", vec![awk, text]),
        ("/usr/bin/perl", vec!["-e", perl]),
        ("/usr/bin/bash", vec!["-c", shell]),
        ("/usr/bin/python3", vec!["-c", "import json\nfor i in range(10**6): json.dumps({'a': [i, i / 3]})"]),
    ] {
        all.add(follow(Path::new(program), &arguments, plan).unwrap_or_default());
    }
    let _ = std::fs::remove_file(text);
    eprintln!("{} steps, {} mnemonics", all.steps, all.instructions.len());
    assert!(all.unsupported_count() * 2000 <= all.steps, "{:?}", all.unsupported);
}

/// Loops that the compiler turns into everything this machine's vector units can do.
#[test]
fn vector_code() {
    let _alone = Alone::wait();
    let plan = Plan { steps: 30_000, windows: 4, pause: Duration::from_millis(3) };
    let report = follow_compiled("vectors.c", &["-O3", "-march=native", "-ffast-math"], &["100000"], plan);
    if let Some(report) = report {
        assert!(report.unsupported_count() * 2000 <= report.steps, "{:?}", report.unsupported);
    }
}

/// What the dynamic linker does around lazy binding, with every mix of components, formats and initial states.
#[test]
fn vector_state_saved_and_restored() {
    let _alone = Alone::wait();
    if !std::arch::is_x86_feature_detected!("xsavec") {
        testing::skip!(CpuInstruction, "this CPU has no xsavec");
        return;
    }
    let plan = Plan { steps: 40_000, windows: 2, pause: Duration::from_millis(3) };
    let options = ["-O1", "-march=native", "-static", "-fno-builtin"];
    if let Some(report) = follow_compiled("save_restore.c", &options, &[], plan) {
        for name in ["Xsave", "Xsavec", "Xrstor"] {
            assert!(
                report.instructions.get(name).is_some_and(|&count| count > 20),
                "{name}: {:?}",
                report.instructions
            );
            assert_eq!(report.unsupported.get(name), None);
        }
    }
}

/// Compiles a program of this directory and follows it; `None`, said on stderr, without a compiler.
fn follow_compiled(source: &str, options: &[&str], arguments: &[&str], plan: Plan) -> Option<Report> {
    let directory = std::env::temp_dir().join(format!("lookahead-{}-{source}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory for a program");
    let program = directory.join("program");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let built = Command::new("cc").args(options).arg("-o").arg(&program).arg(path).arg("-lm").status();
    let report = if built.is_ok_and(|status| status.success()) {
        follow(&program, arguments, plan)
    } else {
        testing::skip!(Tool, "no C compiler for {source}");
        None
    };
    let _ = std::fs::remove_dir_all(directory);
    report
}

fn tempfile_with_text() -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("lookahead-{}.txt", std::process::id()));
    let mut text = String::new();
    let mut random = SplitMix64::seed_from_u64(1);
    for _ in 0..100_000 {
        let number = random.next_u64();
        text.push_str(&format!("{:x} {}\n", number >> 40, number >> 50));
    }
    std::fs::write(&path, text).expect("a text to work on");
    path
}
