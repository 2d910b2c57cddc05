//! `hbbp record --pmu simulated`: programs run as they would, and what is counted of them is what is known of them.
//!
//! These tests need perf events (software events suffice), the right to trace, and gcc; what is missing is said, as `SKIPPED`.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use collector::simulation::pmu::holds_the_stack;
use perfdata::Avma;
use serde_json::Value;
use tempfile::TempDir;
use testing::Alone;

/// Compiles `source` (a file of this extension) with gcc.
fn build(folder: &Path, source: &str, extension: &str, flags: &[&str]) -> Option<PathBuf> {
    let file = folder.join("program").with_extension(extension);
    fs::write(&file, source).unwrap();
    let program = folder.join("program");
    let compiled = Command::new("gcc").args(flags).arg("-o").arg(&program).arg(&file).output();
    let Ok(compiled) = compiled else {
        testing::skip!(Tool, "gcc is not installed");
        return None;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(program)
}

/// Runs a command on the simulated PMU; `None`, said loudly, where that cannot be.
fn record(recording: &Path, options: &[&str], command: &[&str]) -> Option<Output> {
    let mut hbbp = support::hbbp();
    hbbp.args(["record", "--pmu", "simulated", "-o"]).arg(recording).args(options).arg("--").args(command);
    let output = hbbp.output().expect("hbbp starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("not permitted") || said.contains("cannot be traced") {
        testing::skip!(NoTracing, "{said}");
        return None;
    }
    Some(output)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn blocks(recording: &Path) -> Value {
    serde_json::from_str(&support::stdout(&["blocks", "-i", recording.to_str().unwrap(), "--format", "json"])).unwrap()
}

/// What the recording says of itself.
fn metadata(recording: &Path) -> Value {
    let recording = perfdata::Recording::open(recording).unwrap();
    serde_json::from_slice(&recording.features().other[&perfdata::FeatureBit(250)]).unwrap()
}

const FREESTANDING: [&str; 4] = ["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"];

/// Every instruction of it is executed as often as the comment says. `fxsave64` is not interpreted: the program does it itself.
const KNOWN: &str = "
    .globl _start
    .text
_start:
    mov $1000, %ebx         # 1
outer:
    mov $30, %ecx           # 1000
inner:
    call leaf               # 30000
    dec %ecx                # 30000
    jnz inner               # 30000
    lea buffer(%rip), %rdi  # 1000
    mov $200, %ecx          # 1000
    rep stosb               # 1000, whatever the count
    dec %ebx                # 1000
    jnz outer               # 1000
    fxsave64 area(%rip)     # 1
    mov $1, %eax            # 1
    mov $1, %edi            # 1
    lea text(%rip), %rsi    # 1
    mov $6, %edx            # 1
    syscall                 # 1
    mov $60, %eax           # 1
    mov $5, %edi            # 1
    syscall                 # it does not return
leaf:
    test $1, %cl            # 30000
    jz even                 # 30000
    nop                     # 15000
even:
    ret                     # 30000
    .data
    .balign 16
area: .skip 512
buffer: .skip 256
text: .ascii \"known\\n\"
";

/// Counts of `KNOWN`, in the order of its instructions. The last system call ends the process: it does not retire.
const KNOWN_COUNTS: [u64; 22] = [
    1, 1000, 30_000, 30_000, 30_000, 1000, 1000, 1000, 1000, 1000, 1, 1, 1, 1, 1, 1, 1, 1, 30_000, 30_000, 15_000,
    30_000,
];

#[test]
fn every_instruction_is_counted_interpreted_or_not() {
    let _alone = Alone::wait();
    let folder = TempDir::new().unwrap();
    let Some(program) = build(folder.path(), KNOWN, "s", &FREESTANDING) else { return };
    let (recording, truth) = (folder.path().join("recording"), folder.path().join("truth"));
    for further in [None, Some("--only-steps")] {
        // So many steps take a while: fewer rounds for them would be another program.
        let options: Vec<&str> = ["--truth", truth.to_str().unwrap()].into_iter().chain(further).collect();
        let Some(output) = record(&recording, &options, &[program.to_str().unwrap()]) else { return };
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(5), &b"known\n"[..]), "{further:?}");
        let executed = json(&truth);
        let executed = executed["instructions"].as_array().unwrap();
        assert!(executed.iter().all(|one| Path::new(one["path"].as_str().unwrap()) == program));
        let counts: Vec<u64> = executed.iter().map(|one| one["count"].as_u64().unwrap()).collect();
        assert_eq!(counts, KNOWN_COUNTS, "{further:?}");
        let simulation = &metadata(&recording)["simulation"];
        assert_eq!(simulation["instructions"], KNOWN_COUNTS.iter().sum::<u64>(), "{further:?}");
        // Calls, returns, jz, and the two loops, which are left once.
        assert_eq!(simulation["taken_branches"], 30_000 * 2 + 15_000 + 29 * 1000 + 999, "{further:?}");
        let steps = simulation["stepped"].as_u64().unwrap();
        assert!(if further.is_some() { steps > 200_000 } else { steps < 10 }, "{simulation}");
    }
}

/// A loop of blocks of different lengths, each ended by a jump, as often as asked: by hand, so that its counts are known.
fn chain(blocks: usize, rounds: u64) -> String {
    let mut text = format!(
        ".globl _start\n.globl chain\n.text\n_start:\n mov ${rounds}, %ebx\n call chain\n mov $60, %eax\n xor %edi, %edi\n syscall\n"
    );
    text += ".type chain, @function\nchain:\n";
    for block in 0..blocks {
        text += &format!("block{block}:\n");
        (0..block % 7).for_each(|_| text += " add $1, %rax\n");
        text += &if block + 1 < blocks {
            format!(" jmp block{}\n .skip 16, 0x90\n", block + 1)
        } else {
            " dec %ebx\n jnz block0\n ret\n".to_owned()
        };
    }
    text + ".size chain, . - chain\n"
}

const BLOCKS: usize = 61;
const ROUNDS: u64 = 60_000;
const SEED: u64 = 11;

/// How likely the newest branch of a stack is that of each block. Four instructions retire in a cycle. On an Ivy Bridge the first branch 8
/// cycles or more behind the overflow ends the stack: one behind a long block does so more often. On a Westmere it stands still 20 to 60
/// cycles behind the overflow, before some instruction: a branch before a long block is the newest more often.
fn newest_branches(core: &str) -> [f64; BLOCKS] {
    let block_of: Vec<usize> = (0..BLOCKS).flat_map(|block| vec![block; instructions_of(block)]).collect();
    let (delays, blocks_back) = if core == "westmere" { (80..=240, 1) } else { (32..=32, 0) };
    let mut shares = [0.0; BLOCKS];
    for overflow in (0..block_of.len()).filter(|&at| block_of[at] != block_of[(at + 1) % block_of.len()]) {
        for delay in delays.clone() {
            let newest = (block_of[(overflow + delay) % block_of.len()] + BLOCKS - blocks_back) % BLOCKS;
            shares[newest] += 1.0 / (BLOCKS * delays.clone().count()) as f64;
        }
    }
    shares
}

/// Of instructions and of branch stacks, as they are called.
fn events_of(core: &str) -> [&'static str; 2] {
    match core {
        "westmere" => ["simulated/inst_retired.any_p/upp", "simulated/br_inst_exec.taken/u"],
        _ => ["simulated/inst_retired.prec_dist/upp", "simulated/br_inst_retired.near_taken/upp"],
    }
}

fn instructions_of(block: usize) -> usize {
    block % 7 + if block + 1 < BLOCKS { 1 } else { 2 }
}

/// Blocks of the function `chain` with executions and bias flag, by their addresses.
fn chain_blocks(report: &Value) -> BTreeMap<u64, &Value> {
    let all = report["blocks"].as_array().unwrap().iter();
    all.filter(|block| block["function"] == "chain").map(|block| (block["start"].as_u64().unwrap(), block)).collect()
}

fn sampled_chain(folder: &Path, core: &str, bias: &str, depth: &str) -> Option<(PathBuf, Value)> {
    let program = build(folder, &chain(BLOCKS, ROUNDS), "s", &FREESTANDING)?;
    let recording = folder.join("recording");
    let periods = ["--ebs-period", "1009", "--lbr-period", "499"];
    let seed = SEED.to_string();
    let options =
        [&periods[..], &["--pmu-core", core, "--lbr-bias", bias, "--lbr-depth", depth, "--seed", &seed]].concat();
    let output = record(&recording, &options, &[program.to_str().unwrap()])?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = blocks(&recording);
    Some((recording, report))
}

#[test]
fn samples_of_a_known_program_give_its_counts_by_the_hardware_path() {
    let _alone = Alone::wait();
    let folder = TempDir::new().unwrap();
    for (core, depth) in [("ivy-bridge", 16_u64), ("ivy-bridge", 32), ("westmere", 16)] {
        let Some((recording, report)) = sampled_chain(folder.path(), core, "0", &depth.to_string()) else { return };
        let head = &report["head"];
        assert_eq!((&head["source"], &head["unit"]), (&"hybrid".into(), &"executions".into()), "{head}");
        for source in ["ebs_source", "lbr_source"] {
            assert_eq!(head[source]["provenance"], "simulated");
        }
        let events = ["ebs_source", "lbr_source"].map(|source| head[source]["event"].as_str().unwrap());
        assert_eq!(events, events_of(core));
        let degraded = head["degraded"].to_string();
        assert!(degraded.contains("simulated PMU") && degraded.contains("no measurement of hardware"), "{degraded}");
        let stacks = head["lbr_source"]["samples"].as_u64().unwrap();
        assert_eq!(stacks, BLOCKS as u64 * ROUNDS / 499);
        assert_eq!(head["lbr_source"]["branches"], stacks * depth);
        let metadata = metadata(&recording);
        assert_eq!(metadata["branch_depth"], depth);
        assert_eq!(metadata["events"][1]["provenance"], "simulated");
        assert_eq!(metadata["simulation"]["core"], core);

        let newest_ends = newest_branches(core);
        let counted = chain_blocks(&report);
        // The one that returns is executed once.
        assert!(counted.len() >= BLOCKS, "{}", counted.len());
        for (index, block) in counted.values().take(BLOCKS).enumerate() {
            // Of a stack of d branches d - 1 end blocks that count: block i is in those whose newest ends i to i + d - 2.
            let share: f64 = (index..index + depth as usize - 1).map(|newest| newest_ends[newest % BLOCKS]).sum();
            let expected = ROUNDS as f64 * BLOCKS as f64 / (depth - 1) as f64 * share;
            // A binomial distribution deviates so at most: stacks are taken at regular distances.
            let deviation = (stacks as f64 * share * (1.0 - share)).sqrt() / (stacks as f64 * share);
            let lbr = block["lbr"].as_f64().unwrap() / expected - 1.0;
            assert!(lbr.abs() < 5.0 * deviation, "{core}, block {index}: {lbr}, deviation {deviation}");
            // The flag is for branches that are the oldest more than twice as often as they are in a stack.
            let at = |position: usize| newest_ends[(index + position) % BLOCKS];
            let in_stack = (0..depth as usize).map(at).sum::<f64>() / depth as f64;
            let times_its_share = at(depth as usize - 1) / in_stack;
            assert!(
                (times_its_share - 2.0).abs() < 0.1 || block["bias"] == (times_its_share > 2.0),
                "{core}, block {index}: {times_its_share}"
            );
            assert_eq!(block["chosen"], "lbr", "the published rule: 18 instructions or fewer");
        }
        let instructions = (0..BLOCKS).map(instructions_of).sum::<usize>() as u64;
        let ebs: f64 = counted.values().map(|b| b["ebs"].as_f64().unwrap() * b["instructions"].as_f64().unwrap()).sum();
        // One sample is lost at most at either end.
        assert!((ebs - (instructions * ROUNDS) as f64).abs() < 3.0 * 1009.0, "{ebs}");
    }
}

#[test]
fn bias_flags_are_where_the_model_put_the_bias() {
    let _alone = Alone::wait();
    let folder = TempDir::new().unwrap();
    // Its interrupts leave no other branch in the oldest entry that often.
    let Some((_, report)) = sampled_chain(folder.path(), "westmere", "0.05", "16") else { return };
    let blocks = chain_blocks(&report);
    let mut flagged = 0;
    for (index, block) in blocks.values().take(BLOCKS).enumerate() {
        let end = block["end"].as_u64().unwrap();
        // Jumps are 2 bytes long; the one at the end of the loop is too far from its start for that.
        let length = if index + 1 < BLOCKS { 2 } else { 6 };
        let holds = holds_the_stack(Avma(end - length), 0.05, SEED);
        assert_eq!(block["bias"], holds, "block {index}: {block}");
        flagged += u32::from(holds);
    }
    assert!((1..=8).contains(&flagged), "{flagged}");
}

/// Threads, signals with handlers, faults that are repaired, code made at run time, a child, files: as without.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static atomic_long atomic; static long locked; static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused) {
    for (int i = 0; i < 20000; i++) {
        atomic_fetch_add(&atomic, 1);
        if (i % 16 == 0) { pthread_mutex_lock(&mutex); locked++; pthread_mutex_unlock(&mutex); }
    }
    return unused;
}
static volatile sig_atomic_t alarms; static void on_alarm(int s) { (void)s; alarms++; }
static sigjmp_buf back; static void on_fault(int s) { (void)s; siglongjmp(back, 1); }
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 2000}, {0, 2000}}, 0);
    while (alarms < 3) {}
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, 0);
    signal(SIGSEGV, on_fault);
    int faults = 0;
    char *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3; i++) { if (sigsetjmp(back, 1) == 0) page[i] = 1; else faults++; }
    mprotect(page, 4096, PROT_READ | PROT_WRITE); page[0] = 7; mprotect(page, 4096, PROT_READ);
    if (sigsetjmp(back, 1) == 0) page[1] = 1; else faults++;
    unsigned char *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int sum = 0;
    for (int i = 0; i < 50; i++) {
        memcpy(made, (unsigned char[]){0xb8, i, 0, 0, 0, 0xc3}, 6);
        sum += ((int (*)(void))made)();
    }
    signal(SIGUSR1, on_alarm); alarms = 0; raise(SIGUSR1); int raised = alarms; kill(getpid(), SIGUSR1); raised += alarms;
    int status, pipes[2]; char text[6] = "";
    if (pipe(pipes)) return 1;
    if (fork() == 0) { if (write(pipes[1], "child", 5) < 0) _exit(1); _exit(sum % 100); }
    if (read(pipes[0], text, 5) != 5) return 1;
    wait(&status);
    double root = 0; for (int i = 1; i < 100; i++) root += 1.0 / i;
    printf("%ld %ld %d %d %d %s %d %.12f\n", (long)atomic, locked, faults, sum, raised, text, WEXITSTATUS(status), root);
    fflush(stdout);
    raise(SIGTERM);
    return 0;
}
"#;

/// Makes code in memory without a file, and executes it 20 times, for 20,000 rounds. What is before it would swallow the first of it.
const MAKE: &str = r#"
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
// What begins a movabs; then xor eax,eax; add rax,rcx; dec rdi; jne; ret
static const unsigned char add[] = {0x48, 0xb8, 0x31, 0xc0, 0x48, 0x01, 0xc8, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};
int main(void)
{
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, add, sizeof add);
    long sum = 0;
    for (int call = 0; call < 20; call++) {
        sum += ((long (*)(long, long, long, long))(code + 2))(20000, 0, 0, 3);
        // The recorder reads it meanwhile.
        usleep(20000);
    }
    return sum == 42;
}
"#;

/// Stacks of the hardware bring no code: it is read from the process.
#[test]
fn stacks_in_code_without_a_file_are_counted() {
    let _alone = Alone::wait();
    let folder = TempDir::new().unwrap();
    let Some(program) = build(folder.path(), MAKE, "c", &["-O2"]) else { return };
    let recording = folder.path().join("recording");
    let periods = ["--ebs-period", "1009", "--lbr-period", "499"];
    let Some(output) = record(&recording, &periods, &[program.to_str().unwrap()]) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mix = ["mix", "-i", recording.to_str().unwrap(), "--rows", "mnemonic", "--top", "0", "--format", "json"];
    let mix: Value =
        serde_json::from_str(&support::stdout(&[&mix[..], &["--filter", "module=[jit]"]].concat())).unwrap();
    let counts = mix["rows"].as_array().unwrap().iter();
    let counts: BTreeMap<&str, f64> =
        counts.map(|row| (row["mnemonic"].as_str().unwrap(), row["count"].as_f64().unwrap())).collect();
    for mnemonic in ["add", "dec", "jne"] {
        assert!((counts[mnemonic] / 400_000.0 - 1.0).abs() < 0.01, "{counts:?}");
    }
    assert!(counts.keys().all(|name| ["xor", "add", "dec", "jne", "ret"].contains(name)), "{counts:?}");
}

#[test]
fn a_program_does_what_it_does_without() {
    let _alone = Alone::wait();
    let folder = TempDir::new().unwrap();
    let Some(program) = build(folder.path(), PROGRAM, "c", &["-O1", "-pthread"]) else { return };
    let alone = Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&alone.stdout), "80000 5000 4 1225 3 child 25 5.177377517640\n");
    let recording = folder.path().join("recording");
    let options = ["--ebs-period", "10007", "--lbr-period", "1009"];
    let Some(output) = record(&recording, &options, &[program.to_str().unwrap()]) else { return };
    assert_eq!(output.stdout, alone.stdout, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(128 + 15));
    let metadata = metadata(&recording);
    let simulation = &metadata["simulation"];
    assert_eq!((&simulation["threads"], &simulation["processes"]), (&6.into(), &2.into()), "{simulation}");
    assert_eq!((&simulation["failures"], &simulation["not_followed"]), (&Value::Array(vec![]), &serde_json::json!({})));
    // All that it counted is in samples: each thread may have begun one more period.
    for (event, counted, period) in [(1, "instructions", 10_007), (2, "taken_branches", 1009)] {
        let (counted, samples) =
            (simulation[counted].as_u64().unwrap(), metadata["events"][event]["samples"].as_u64().unwrap());
        assert!((samples..=samples + 2 * 6).contains(&(counted / period)), "{counted} {samples}");
    }
}

#[test]
fn what_it_cannot_do_is_refused() {
    let _alone = Alone::wait();
    let folder = TempDir::new().unwrap();
    let recording = folder.path().join("recording");
    for options in [
        &["-F", "99"][..],
        &["-k"],
        &["-j", "any_call"],
        &["-p", "1"],
        &["-i"],
        &["--ebs-event", "none"],
        &["--tracer", "lookahead"],
        &["--lbr-depth", "1"],
        &["--lbr-bias", "2"],
        &["--pmu-core", "skylake"],
    ] {
        let output = record(&recording, options, &["true"]).unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let without = support::hbbp().args(["record", "--lbr-depth", "32", "--", "true"]).output().unwrap();
    assert_eq!(without.status.code(), Some(2));
    assert!(!recording.exists());
}
