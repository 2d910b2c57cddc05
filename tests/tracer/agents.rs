//! Bursts that agents take inside the program.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bursts::Traced;
use crate::{Place, errors, programs, text};

/// A recording by agents; what the command writes, and its exit status, are those that it has alone.
fn record(place: &Place, options: &[&str], command: &[&str]) -> Traced {
    let alone = Command::new(command[0]).args(&command[1..]).current_dir(place.folder()).output().unwrap();
    let output = place.record(&[&["--tracer", "agent"], options, &["--"], command].concat());
    assert_eq!(output.status.code(), alone.status.code(), "{command:?}: {}", errors(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&alone.stdout), "{command:?}");
    let traced = Traced::read(&place.recording());
    assert_eq!(traced.tracer()["kind"], "agent");
    assert_eq!(traced.number("/agents/given_up"), 0, "{:#}", traced.tracer());
    traced
}

#[test]
fn programs_linked_in_every_way_have_bursts() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let source = place.path("hot.c");
    for flags in [&["-pie"][..], &["-no-pie"], &["-static"], &["-static-pie"]] {
        let program = place.path("linked");
        let gcc = Command::new("gcc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(&source).args(flags).output();
        if !gcc.is_ok_and(|gcc| gcc.status.success()) {
            testing::skip!(ToolVersion, "gcc cannot link {flags:?}");
            continue;
        }
        let traced = record(&place, &["--overhead", "10"], &[text(&program), "300"]);
        assert!(traced.bursts_in("linked").count() >= 5, "{flags:?}: {:#}", traced.tracer());
        assert!(traced.bursts.iter().all(|burst| burst.depth() > 0 || burst.instructions() < 1000), "{flags:?}");
    }
    let traced = record(&place, &["--overhead", "10"], &[text(&hot), "300"]);
    assert_eq!((traced.number("/threads"), traced.number("/processes")), (1, 1), "{:#}", traced.tracer());
}

#[test]
fn forks_and_execs_are_followed() {
    let Some(place) = Place::to_trace() else { return };
    let (Some(hot), Some(known)) = (place.program("hot", programs::HOT), place.program("known", programs::KNOWN))
    else {
        return;
    };
    let script = format!("{0} 300 & (sh -c '{1} 300; true'; true); wait; exec {1} 300", hot.display(), known.display());
    let traced = record(&place, &["--overhead", "20"], &["sh", "-c", &script]);
    assert!(traced.bursts_in("hot").count() > 0 && traced.bursts_in("known").count() > 0, "{:#}", traced.tracer());
    let mut pids: Vec<u32> = traced.bursts.iter().map(|burst| burst.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    assert!(pids.len() >= 3, "{pids:?} {:#}", traced.tracer());
}

#[test]
fn no_sample_of_the_agents_own_code_is_counted() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    // Half of the time in the agent, and many samples of the clock.
    let options = ["--overhead", "100", "--ebs-period", "500000"];
    let traced = record(&place, &options, &[text(&hot), "800"]);
    let start = traced.number("/agents/start");
    let end = traced.number("/agents/end");
    assert!(
        start < end
            && traced.bursts.iter().flat_map(|burst| burst.branches()).all(|(from, _)| !(start..end).contains(&from))
    );
    let mix = place.json(&["mix", "--rows", "module", "--format", "json"]);
    let degraded = mix["head"]["degraded"].to_string();
    assert!(degraded.contains("in the tracer's own code: left out"), "{degraded}");
    for row in mix["rows"].as_array().unwrap() {
        let module = row["module"].as_str().unwrap();
        assert!(!module.contains("hbbp-agent") && !module.ends_with("/hbbp"), "{row}");
    }
}

#[test]
fn threads_do_what_their_bursts_say() {
    let Some(place) = Place::to_trace() else { return };
    let (Some(hot), Some(mixed)) = (place.program("hot", programs::HOT), place.program("mixed", MIXED)) else { return };
    for command in [&[text(&hot), "300"][..], &[text(&mixed), "300000"]] {
        let alone = Command::new(command[0]).args(&command[1..]).output().unwrap();
        let output = place.record(&[&["--tracer", "agent-check", "--overhead", "100", "--"], command].concat());
        assert_eq!((output.status.code(), &output.stdout), (alone.status.code(), &alone.stdout), "{}", errors(&output));
        assert!(errors(&output).contains("that were compared with their threads diverged"), "{}", errors(&output));
        let traced = Traced::read(&place.recording());
        let tracer = traced.tracer();
        assert_eq!((&tracer["kind"], traced.number("/agents/given_up")), (&"agent-check".into(), 0), "{tracer:#}");
        assert!(traced.number("/checks/instructions") > 5000, "{tracer:#}");
        assert!(traced.number("/checks/branches") > 500, "{tracer:#}");
        assert_eq!(traced.number("/checks/diverged"), 0, "{tracer:#}");
        assert_eq!(traced.number("/checks/raced"), 0, "{tracer:#}");
    }
}

/// Calls through pointers, strings, vectors, x87, signals of its own, and faults that it goes on after.
const MIXED: &str = r#"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
static volatile sig_atomic_t ticks, faults;
static char *page;
static void tick(int signal) { (void)signal; ticks++; }
static void fault(int signal) { (void)signal; faults++; mprotect(page, 4096, PROT_READ | PROT_WRITE); }
static double half(double x) { return x / 2; }
static double twice(double x) { return x * 2; }
static double (*const functions[])(double) = { half, twice };
int main(int argc, char **argv) {
    long count = atol(argv[1]);
    signal(SIGALRM, tick);
    signal(SIGSEGV, fault);
    struct itimerval timer = { { 0, 3000 }, { 0, 3000 } };
    setitimer(ITIMER_REAL, &timer, NULL);
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double x = 1; long double y = 1; unsigned long sum = 0; char text[64];
    for (long i = 0; i < count; i++) {
        x = functions[(i >> 3) & 1](x) + i;
        y = y / 3 + x;
        sprintf(text, "%ld %.3f", i, x);
        sum = sum * 31 + strlen(text) + (unsigned long)y;
        memmove(text + 1, text, 40);
        if (i % 5000 == 0) mprotect(page, 4096, PROT_READ);
        page[i % 4096]++;
    }
    printf("%lu %d\n", sum, faults > 0);
    return argc;
}
"#;

/// As much code before each system call as after it, in two functions.
const AROUND: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static __thread volatile unsigned long sum;
__attribute__((noipa)) static void before(int count) { for (int i = 0; i < count; i++) sum += i; }
__attribute__((noipa)) static void after(int count) { for (int i = 0; i < count; i++) sum ^= i; }
static void *work(void *count) {
    for (long i = 0; i < (long)count; i++) {
        before(100);
        getppid();
        after(100);
        if (i % 3 == 0) write(-1, "", 0);
    }
    return (void *)sum;
}
int main(int argc, char **argv) {
    long count = atol(argv[1]);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)count);
    unsigned long all = 0;
    for (int i = 0; i < 2; i++) { void *result; pthread_join(threads[i], &result); all += (unsigned long)result; }
    printf("%lu\n", all);
    return argc;
}
"#;

#[test]
fn bursts_go_on_after_system_calls() {
    let Some(place) = Place::to_trace() else { return };
    let Some(around) = place.program("around", AROUND) else { return };
    let traced = record(&place, &["--overhead", "50"], &[text(&around), "1000000"]);
    let tracer = traced.tracer();
    if tracer["continued"]["system call"].as_u64().is_none() && cannot_dispatch() {
        testing::skip!(Kernel, "the kernel has no syscall user dispatch");
        return;
    }
    // A thousand instructions between two system calls, bursts of ten thousand.
    assert!(tracer["continued"]["system call"].as_u64().unwrap() > traced.number("/bursts"), "{tracer:#}");
    let complete = tracer["ends"]["instruction budget"].as_u64().unwrap();
    assert!(complete * 10 > traced.number("/bursts") * 9, "{tracer:#}");
    assert_eq!(tracer["predictions"]["diverged"], 0, "{tracer:#}");
    let document = place.json(&["blocks", "--top", "0", "--format", "json"]);
    let streams = |function: &str| -> f64 {
        let blocks = document["blocks"].as_array().unwrap();
        blocks.iter().filter(|block| block["function"] == function).map(|b| b["lbr_streams"].as_f64().unwrap()).sum()
    };
    let ratio = streams("after") / streams("before");
    assert!((0.8..1.25).contains(&ratio), "{ratio}: {tracer:#}");
}

/// Bursts that start right after a call stand for no time of the code that follows, and bursts end at calls: weighed otherwise, code on one side of them
/// would count several times what it does.
#[test]
fn code_around_system_calls_counts_as_it_runs() {
    let Some(place) = Place::to_trace() else { return };
    let Some(around) = place.program("around", programs::AROUND) else { return };
    // One of three recordings may be of a bad moment of the machine.
    let recorded = || {
        let traced = record(&place, &["--overhead", "20"], &[text(&around), "100000"]);
        let mix =
            place.json(&["mix", "--rows", "function", "--filter", "module!=[kernel.kallsyms]", "--format", "json"]);
        let share = |name: &str| {
            let row = mix["rows"].as_array().unwrap().iter().find(|row| row["function"] == name);
            row.unwrap_or_else(|| panic!("{name}: {mix:#}"))["share"].as_f64().unwrap()
        };
        let (before, after) = (share("before"), share("after"));
        println!("{before:.3} before, {after:.3} after, {} bursts", traced.bursts.len());
        (before, after)
    };
    let mut all = [recorded(), recorded(), recorded()];
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    // 16,000 instructions each, and some 1,000 of the calls.
    let (before, after) = all[1];
    assert!((before - 0.486).abs() < 0.12 && (after - 0.486).abs() < 0.12, "{all:?}");
}

/// A thread that is asked to stop when it has computed its last waits while it is traced, and only one of a process is traced at a time.
#[test]
fn threads_that_wait_keep_no_others_from_their_bursts() {
    const WAITS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static __thread volatile unsigned long sum;
static void *shortly(void *unused) {
    for (int i = 0; i < 100000; i++) sum += i;
    pause();
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread;
    for (int i = 0; i < 64; i++) pthread_create(&thread, NULL, shortly, NULL);
    for (long i = 0; i < atol(argv[1]); i++) sum += i;
    return 0;
}
"#;
    let Some(place) = Place::to_trace() else { return };
    let Some(waits) = place.program("waits", WAITS) else { return };
    // It happens in one of ten.
    for _ in 0..6 {
        let traced = record(&place, &["--overhead", "50"], &[text(&waits), "15000000"]);
        let pid = traced.bursts.iter().map(|burst| burst.pid).next();
        let of_first = traced.bursts.iter().filter(|burst| Some(burst.tid) == pid).count();
        assert!(of_first > 50, "{of_first}: {:#}", traced.tracer());
    }
}

/// As of a compiler at run time: it comes after the agent.
#[test]
fn a_process_that_makes_code_keeps_its_agent() {
    const JIT: &str = r#"
#include <sys/mman.h>
int main(int argc, char **argv) {
    volatile unsigned long sum = 0;
    unsigned char *code = 0;
    long count = atol(argv[1]);
    for (long i = 0; i < count; i++) {
        for (int k = 0; k < 1000; k++) sum += k;
        if (i == count / 8) {
            code = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memcpy(code, "\x8d\x47\x01\xc3", 4);
            mprotect(code, 1 << 20, PROT_READ | PROT_EXEC);
        }
        if (code) sum += ((int (*)(int))code)(argc);
    }
    printf("%lu\n", sum);
    return 0;
}
"#;
    let Some(place) = Place::to_trace() else { return };
    let Some(jit) = place.program("jit", JIT) else { return };
    // Longer than it takes until processes are looked at again.
    let traced = record(&place, &["--overhead", "10"], &[text(&jit), "2000000"]);
    assert_eq!(traced.number("/agents/injected"), 1, "{:#}", traced.tracer());
    let said = traced.metadata["degradations"].to_string();
    assert!(!said.contains("without an agent"), "{said}");
}

/// Whether the kernel is older than 5.11.
fn cannot_dispatch() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
    (numbers.next(), numbers.next()) < (Some(5), Some(11))
}

#[test]
fn a_start_credit_gives_short_commands_bursts() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let [without, with] = ["0", "50"].map(|credit| {
        let traced = record(&place, &["--overhead", "0.5", "--start-credit", credit], &[text(&hot), "800"]);
        assert_eq!(traced.number("/start_credit_ns"), credit.parse::<u64>().unwrap() * 1_000_000);
        traced.number("/bursts")
    });
    assert!(with > 2 * without + 10, "{with} with, {without} without");
}

#[test]
fn a_process_that_filters_its_system_calls_is_stopped_for_its_bursts() {
    const FILTERED: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sock_filter rules[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {1, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 3;
    execv(argv[1], argv + 1);
    return argc;
}
"#;
    let Some(place) = Place::to_trace() else { return };
    let (Some(hot), Some(filtered)) = (place.program("hot", programs::HOT), place.program("filtered", FILTERED)) else {
        return;
    };
    let traced = record(&place, &["--overhead", "10"], &[text(&filtered), text(&hot), "300"]);
    let agents = &traced.tracer()["agents"];
    let (injected, bursts) = (&agents["injected"], traced.bursts_in("hot").count() as u64);
    assert!(bursts > 20 && agents["visited"].as_u64() >= Some(bursts) && *injected == 0, "{bursts}: {agents}");
    let said = traced.metadata["degradations"].to_string();
    assert!(said.contains("1 process without an agent, stopped for each burst: it filters its system calls"), "{said}");
}

/// It is there when the program is looked at again.
#[test]
fn the_agents_own_code_is_not_taken_for_code_that_makes_filters() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let traced = record(&place, &["--overhead", "10"], &[text(&hot), "1500"]);
    let said = traced.metadata["degradations"].to_string();
    assert!(traced.number("/agents/injected") == 1 && !said.contains("without an agent"), "{said}");
}

/// A library that could make a filter, and never does.
fn library_with_filters(place: &Place) -> PathBuf {
    const SOURCE: &str = "#include <sys/prctl.h>\nint filter(void *rules) { return prctl(PR_SET_SECCOMP, 2, rules); }";
    let (source, library) = (place.path("filters.c"), place.path("filters.so"));
    fs::write(&source, SOURCE).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1"]).arg(&source).arg("-o").arg(&library);
    assert!(compiler.status().unwrap().success());
    library
}

/// A filter that does not know of the agent would end the program.
#[test]
fn a_program_that_can_make_filters_of_system_calls_is_stopped_for_its_bursts() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let preloaded = format!("LD_PRELOAD={}", text(&library_with_filters(&place)));
    let traced = record(&place, &["--overhead", "10"], &["env", &preloaded, text(&hot), "300"]);
    let bursts = traced.bursts_in("hot").count();
    assert!(bursts > 20 && traced.number("/agents/injected") == 0, "{bursts}: {:#}", traced.tracer());
    let said = traced.metadata["degradations"].to_string();
    assert!(said.contains("it has code that makes filters of system calls (seccomp)"), "{said}");
}

/// Recorders keep what they found in the code of files.
#[test]
fn code_that_takes_the_place_of_code_that_was_searched_before_is_searched() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    // A library of the system: what changed a moment ago is searched each time.
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let system =
        maps.split_whitespace().find(|word| word.contains("/libgcc_s")).expect("Rust programs unwind").to_owned();
    let (library, cache) = (place.path("library.so"), place.path("cache"));
    let entries = || {
        let entries = fs::read_dir(cache.join("hbbp/searches")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>()
    };
    let record = |options: &[&str], file: &Path| {
        let _ = fs::remove_file(&library);
        symlink(file, &library).unwrap();
        let mut hbbp = place.hbbp(&["record", "--tracer", "agent", "--overhead", "10"]);
        // So long that its code is searched before it ends, by a recorder that has to wait for a CPU, too.
        hbbp.args(options).args(["--", "env", &format!("LD_PRELOAD={}", text(&library)), text(&hot), "1000"]);
        let output = hbbp.env("XDG_CACHE_HOME", &cache).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        let traced = Traced::read(&place.recording());
        let said = traced.metadata["degradations"].to_string();
        (traced.number("/agents/injected"), said.contains("it has code that makes filters of system calls (seccomp)"))
    };
    let system = Path::new(&system);
    assert_eq!(record(&["--no-cache"], system), (1, false));
    assert!(entries().is_empty(), "nothing is kept");
    assert_eq!(record(&[], system), (1, false));
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(system).output().unwrap().stdout;
    let is_kept = ["ext", "xfs", "btrfs", "f2fs"].iter().any(|kept| kind.starts_with(kept.as_bytes()));
    assert_eq!(entries().len(), usize::from(is_kept), "{}", String::from_utf8_lossy(&kind));
    assert_eq!(record(&[], system), (1, false));
    assert_eq!(record(&[], &library_with_filters(&place)), (0, true));
    entries().iter().for_each(|entry| fs::write(entry, "hbbpkept, and what is no entry").unwrap());
    assert_eq!(record(&[], system), (1, false));
    assert!(entries().iter().all(|entry| fs::metadata(entry).unwrap().len() > 100), "it was written anew");
}

#[test]
fn a_program_that_loads_code_for_filters_later_is_stopped_for_its_bursts_from_then_on() {
    const LOADS: &str = r#"
#include <dlfcn.h>
#include <time.h>
static volatile unsigned long sink;
static __attribute__((noipa)) void work(int ms) {
    for (clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000); clock() < end;)
        for (int i = 0; i < 100000; i++) sink += i;
}
int main(int argc, char **argv) {
    work(300);
    if (argc < 2 || !dlopen(argv[1], RTLD_NOW)) return 1;
    work(1500);
    return 0;
}
"#;
    let Some(place) = Place::to_trace() else { return };
    let Some(loads) = place.program("loads", LOADS) else { return };
    let library = library_with_filters(&place);
    let traced = record(&place, &["--overhead", "10"], &[text(&loads), text(&library)]);
    let agents = &traced.tracer()["agents"];
    assert!(agents["injected"] == 1 && agents["visited"].as_u64() > Some(5), "{agents}");
    let said = traced.metadata["degradations"].to_string();
    assert!(said.contains("it loaded code that makes filters of system calls (seccomp)"), "{said}");
}

/// The clock's signal would wait for ever.
#[test]
fn threads_that_block_all_signals_have_bursts() {
    const BLOCKED: &str = r#"
#include <signal.h>
#include <pthread.h>
static volatile unsigned long sink;
static __attribute__((noipa)) void blocked_work(void) { for (int i = 0; i < 100000; i++) sink += i; }
static void *work(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, 0);
    for (int i = 0; i < 6000; i++) blocked_work();
    return unused;
}
static __attribute__((noipa)) void first_work(void) { for (int i = 0; i < 100000; i++) sink += i; }
int main(void) {
    for (int i = 0; i < 1000; i++) first_work();
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    return 0;
}
"#;
    let Some(place) = Place::to_trace() else { return };
    let Some(blocked) = place.program("blocked", BLOCKED) else { return };
    let traced = record(&place, &["--overhead", "10"], &[text(&blocked)]);
    let by_thread = place.json(&["mix", "--format", "json", "--rows", "function"]);
    let of = |name: &str| {
        let rows = by_thread["rows"].as_array().unwrap().iter();
        rows.filter(|row| row["function"] == name).map(|row| row["share"].as_f64().unwrap()).sum::<f64>()
    };
    assert!(of("blocked_work") > 2.0 * of("first_work"), "{by_thread}: {:#}", traced.tracer());
}

#[test]
fn agents_are_not_put_into_what_runs_already() {
    let Some(place) = Place::to_trace() else { return };
    let output = place.record(&["--tracer", "agent", "-p", "1"]);
    assert!(!output.status.success());
    assert!(errors(&output).contains("if --inject is added"), "{}", errors(&output));
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let mut target = Command::new(hot).arg("60000").spawn().unwrap();
    let output = place.record(&["-p", &target.id().to_string(), "--duration", "1"]);
    assert!(output.status.success(), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    assert_ne!(traced.metadata["tracer"]["kind"], "agent");
    target.kill().unwrap();
    target.wait().unwrap();
}
