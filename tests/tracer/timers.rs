//! Bursts that timers start, where neither perf events nor ptrace are to be had: as in a container.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::bursts::Traced;
use crate::{Place, errors, programs, text, wait_for};

/// Runs a command without perf events and ptrace, and without other calls that containers refuse with them.
const DENIED: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#define REFUSE(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
int main(int argc, char **argv) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_perf_event_open), REFUSE(SYS_ptrace), REFUSE(SYS_kcmp),
        REFUSE(SYS_process_vm_readv), REFUSE(SYS_process_vm_writev),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 125;
    execvp(argv[1], argv + 1);
    return 126 + argc * 0;
}
"#;

/// A folder, and the program that refuses.
struct Denied {
    place: Place,
    launcher: PathBuf,
}

impl Denied {
    fn new() -> Option<Self> {
        let place = Place::to_time()?;
        let launcher = place.program("denied", DENIED)?;
        let refuses = Command::new(&launcher).arg("true").status().unwrap();
        assert!(refuses.success(), "a filter of system calls: {refuses}");
        Some(Self { place, launcher })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.launcher);
        command.arg(env!("CARGO_BIN_EXE_hbbp")).args(arguments).current_dir(self.place.folder()).stdin(Stdio::null());
        command
    }

    fn record(&self, options: &[&str], command: &[&str]) -> Output {
        self.command(&[&["record", "--tracer", "timer"], options, &["--"], command].concat()).output().unwrap()
    }

    /// A recording without a word of how; what the command writes, and its exit status, are those that it has alone.
    fn trace(&self, options: &[&str], command: &[&str]) -> (Traced, Output) {
        let alone = Command::new(command[0]).args(&command[1..]).current_dir(self.place.folder()).output().unwrap();
        let output = self.record(options, command);
        assert_eq!(output.status.code(), alone.status.code(), "{command:?}: {}", errors(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&alone.stdout), "{command:?}");
        let traced = Traced::read(&self.place.recording());
        assert_eq!(traced.tracer()["kind"], "timer");
        assert_eq!(traced.number("/agents/given_up"), 0, "{:#}", traced.tracer());
        (traced, output)
    }

    /// The functions of the last recording, the most frequent first.
    fn functions(&self) -> Vec<Executed> {
        let mix = self.place.json(&["mix", "--rows", "function", "--format", "json"]);
        let executed = |row: &serde_json::Value| Executed {
            function: row["function"].as_str().unwrap().to_owned(),
            count: row["count"].as_f64().unwrap(),
            share: row["share"].as_f64().unwrap(),
        };
        mix["rows"].as_array().unwrap().iter().map(executed).collect()
    }
}

/// What was executed of a function: instructions, and their share of all.
#[derive(Debug)]
struct Executed {
    function: String,
    count: f64,
    share: f64,
}

/// Folders of recordings in progress, or left over by them.
fn folders(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.path("tmp")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join("agent.so").exists()).collect()
}

#[test]
fn where_neither_events_nor_ptrace_are_to_be_had_timers_start_bursts() {
    let Some(denied) = Denied::new() else { return };
    let Some(hot) = denied.place.program("hot", programs::HOT) else { return };
    let doctor = denied.command(&["doctor", "--format", "json"]).output().unwrap();
    let doctor: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(doctor["software_tracing"]["timers"], true, "{doctor:#}");
    let without = denied.command(&["record", "--", text(&hot), "1"]).output().unwrap();
    assert_eq!(without.status.code(), Some(1), "{}", errors(&without));
    assert!(errors(&without).contains("`--tracer timer` does without"), "{}", errors(&without));
    assert_ne!(doctor["software_tracing"]["ptrace"], "works", "{doctor:#}");

    let (traced, output) = denied.trace(&["--overhead", "10"], &[text(&hot), "800"]);
    assert!(traced.bursts_in("hot").count() >= 20, "{:#}", traced.tracer());
    assert_eq!((traced.number("/threads"), traced.number("/processes")), (1, 1), "{:#}", traced.tracer());
    assert!(traced.samples.keys().all(|event| event == "burst:u"), "{:?}", traced.samples);
    assert!(errors(&output).contains("perf_event_open is not permitted"), "{}", errors(&output));
    let mix = denied.place.json(&["mix", "--format", "json"]);
    let degraded = mix["head"]["degraded"].to_string();
    assert!(degraded.contains("bursts are started by timers of CPU time: no samples of a clock"), "{degraded}");
    // What a burst stands for adds up to the CPU time, but for the first and last moments and the kernel's part.
    let stood_for: u64 = traced.bursts.iter().flat_map(|burst| &burst.pieces).map(|piece| piece.period).sum();
    let computed = traced.number("/time/application_ns");
    assert!(stood_for > computed / 3 && stood_for < computed * 3, "{stood_for} {:#}", traced.tracer());
    for range in &traced.mappings {
        assert!(range.pid == traced.bursts[0].pid, "{range:?}");
    }
}

#[test]
fn the_hot_function_is_on_top() {
    let Some(denied) = Denied::new() else { return };
    let Some(known) = denied.place.program("unequal", UNEQUAL) else { return };
    let (traced, _) = denied.trace(&["--overhead", "10"], &[text(&known), "40000"]);
    assert!(traced.bursts.len() >= 20, "{:#}", traced.tracer());
    let functions = denied.functions();
    assert_eq!([&functions[0].function, &functions[1].function], ["often", "seldom"]);
    let share = functions[0].share;
    assert!((0.75..0.97).contains(&share), "{share}: 8 of 9 instructions");
}

/// Eight times as many instructions in one function as in the other.
const UNEQUAL: &str = r#"
KEEP unsigned often(unsigned x) { for (int i = 0; i < 8000; i++) x = x * 3 + i; return x; }
KEEP unsigned seldom(unsigned x) { for (int i = 0; i < 1000; i++) x = x * 5 + i; return x; }
int main(int argc, char **argv) {
    unsigned x = argc;
    for (int i = atoi(argv[1]); i > 0; i--) x = seldom(often(x));
    printf("%u\n", x);
    return 7;
}
"#;

#[test]
fn threads_forks_and_execs_take_part() {
    let Some(denied) = Denied::new() else { return };
    let place = &denied.place;
    let (Some(hot), Some(crowd)) = (place.program("hot", programs::HOT), place.program("crowd", CROWD)) else {
        return;
    };
    let script = format!("{0} 400; {1} 100000; exec {0} 400", hot.display(), crowd.display());
    let (traced, _) = denied.trace(&["--overhead", "20"], &["sh", "-c", &script]);
    assert!(traced.bursts_in("hot").count() > 0, "{:#}", traced.tracer());
    let by_crowd: Vec<_> = traced.bursts_in("crowd").collect();
    let processes: std::collections::HashSet<u32> = by_crowd.iter().map(|burst| burst.pid).collect();
    let threads: std::collections::HashSet<u32> = by_crowd.iter().map(|burst| burst.tid).collect();
    assert!(processes.len() >= 2, "a child of fork has none: {processes:?} {:#}", traced.tracer());
    assert!(threads.len() >= 4, "{threads:?} {:#}", traced.tracer());
    for tid in threads {
        assert!(traced.names.contains_key(&tid), "thread {tid} has no name");
    }
    let functions = denied.functions();
    for function in ["of_thread", "of_child"] {
        assert!(functions.iter().any(|found| found.function == function), "{function}: {functions:?}");
    }
}

/// What a process maps after it was looked at first.
#[test]
fn what_is_mapped_later_is_in_the_recording() {
    let Some(denied) = Denied::new() else { return };
    let Some(loads) = denied.place.program("loads", LOADS) else { return };
    let library = denied.place.path("late.so");
    let source = denied.place.path("late.c");
    fs::write(&source, LATE).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    assert!(compiler.status().unwrap().success());
    // Several, so that the recorder looks seldom by then: what is mapped between two looks is of after the first.
    let script = format!("for i in $(seq 5); do {} {}; done", text(&loads), text(&library));
    let (traced, _) = denied.trace(&["--overhead", "20"], &["sh", "-c", &script]);
    assert!(traced.bursts.len() >= 20, "{:#}", traced.tracer());
    let functions = denied.functions();
    assert!(functions[0].function == "late" && functions[0].share > 0.8, "{functions:?}");
}

/// Computes for a moment and then for longer in a library.
const LOADS: &str = r#"
#include <dlfcn.h>
int main(int argc, char **argv) {
    volatile unsigned long sum = 0;
    for (long end = used() + 15; used() < end;) for (int i = 0; i < 1000; i++) sum += i;
    void *library = dlopen(argv[1], RTLD_NOW);
    unsigned (*late)(unsigned) = (unsigned (*)(unsigned))dlsym(library, "late");
    unsigned x = 1;
    for (long end = used() + 500; used() < end;) for (int i = 0; i < 100; i++) x = late(x);
    return x == 0;
}
"#;
const LATE: &str = "unsigned late(unsigned x) { for (int i = 0; i < 1000; i++) x = x * 3 + i; return x; }\n";

/// Three threads, and a child of fork that executes nothing.
const CROWD: &str = r#"
#include <sys/wait.h>
KEEP unsigned of_thread(unsigned x) { for (int i = 0; i < 10000; i++) x = x * 3 + i; return x; }
KEEP unsigned of_child(unsigned x) { for (int i = 0; i < 10000; i++) x = x * 5 + i; return x; }
static long count;
static void *work(void *x) {
    unsigned y = (unsigned)(uintptr_t)x;
    for (long i = 0; i < count; i++) y = of_thread(y);
    return (void *)(uintptr_t)y;
}
int main(int argc, char **argv) {
    count = atol(argv[1]);
    if (fork() == 0) {
        unsigned x = argc;
        for (long i = 0; i < 3 * count; i++) x = of_child(x);
        printf("child %u\n", x);
        return 0;
    }
    int status;
    wait(&status);
    pthread_t threads[3];
    unsigned sum = 0;
    for (intptr_t i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 3; i++) { void *result; pthread_join(threads[i], &result); sum += (unsigned)(uintptr_t)result; }
    printf("%u %d\n", sum, status);
    return 0;
}
"#;

#[test]
fn programs_without_a_loader_say_so() {
    let Some(denied) = Denied::new() else { return };
    let Some(_) = denied.place.program("hot", programs::HOT) else { return };
    let (source, program) = (denied.place.path("hot.c"), denied.place.path("static"));
    let gcc = Command::new("gcc").args(["-O1", "-pthread", "-static", "-o"]).arg(&program).arg(&source).output();
    if !gcc.is_ok_and(|gcc| gcc.status.success()) {
        testing::skip!(ToolVersion, "gcc cannot link static programs");
        return;
    }
    let (traced, output) = denied.trace(&[], &[text(&program), "300"]);
    assert!(traced.bursts.is_empty());
    let said = errors(&output);
    assert!(said.contains("no process took part") && said.contains("static: it has no dynamic loader"), "{said}");
    // A short one had no time.
    let (_, output) = denied.trace(&[], &["true"]);
    assert!(errors(&output).contains("no process took part: true has taken no signal"), "{}", errors(&output));
}

#[test]
fn system_calls_are_not_interrupted_and_code_around_them_counts_alike() {
    let Some(denied) = Denied::new() else { return };
    let Some(program) = denied.place.program("around", programs::AROUND) else { return };
    // Bursts much shorter than the two functions: one that starts at the end of `after` goes on into `before`, but none goes on after the calls.
    let (traced, _) = denied.trace(&["--overhead", "50", "--burst", "1000"], &[text(&program), "300000"]);
    // So many that chance does not make twice as many of one as of the other.
    assert!(traced.bursts.len() >= 100, "{:#}", traced.tracer());
    assert!(traced.number("/agents/put_off") > 0, "no signal came in a system call: {:#}", traced.tracer());
    let functions = denied.functions();
    let count = |name: &str| {
        let found = functions.iter().find(|one| one.function == name);
        found.unwrap_or_else(|| panic!("{name}: {functions:?}")).count
    };
    let ratio = count("before") / count("after");
    println!("{ratio:.2} times as much before as after, {} bursts", traced.bursts.len());
    assert!((0.5..2.0).contains(&ratio), "{ratio}, {} bursts", traced.bursts.len());
}

#[test]
fn a_handler_of_the_programs_gets_what_is_its_own() {
    let Some(denied) = Denied::new() else { return };
    let Some(program) = denied.place.program("urgent", URGENT) else { return };
    let (traced, _) = denied.trace(&["--overhead", "20"], &[text(&program), "20000"]);
    assert!(!traced.bursts.is_empty(), "{:#}", traced.tracer());
}

/// Has a handler for the signal of timers after it has computed for a while; sends it to itself. One at most may come beside those.
const URGENT: &str = r#"
#include <signal.h>
static volatile sig_atomic_t came;
static void urgent(int signal) { (void)signal; came++; }
KEEP unsigned work(unsigned x) { for (int i = 0; i < 10000; i++) x = x * 3 + i; return x; }
int main(int argc, char **argv) {
    unsigned x = argc;
    long count = atol(argv[1]);
    for (long i = 0; i < count; i++) x = work(x);
    signal(SIGURG, urgent);
    for (long i = 0; i < count; i++) {
        x = work(x);
        if (i % 2000 == 0) raise(SIGURG);
    }
    printf("%u %d\n", x, came >= count / 2000 && came <= count / 2000 + 1);
    return 0;
}
"#;

#[test]
fn a_program_goes_on_without_its_recorder_and_its_timer_goes() {
    let Some(denied) = Denied::new() else { return };
    let Some(program) = denied.place.program("lasting", LASTING) else { return };
    if fs::metadata("/proc/self/timers").is_err() {
        testing::skip!(ToolVersion, "this kernel does not show timers");
        return;
    }
    fs::create_dir(denied.place.path("tmp")).unwrap();
    let mut command = denied.command(&["record", "--tracer", "timer", "--overhead", "20", "--", text(&program)]);
    command.env("TMPDIR", denied.place.path("tmp")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut recorder = command.spawn().unwrap();
    let mut lines = BufReader::new(recorder.stdout.take().unwrap()).lines();
    let mut stdin = recorder.stdin.take().unwrap();
    let pid: u32 = lines.next().unwrap().unwrap().parse().unwrap();
    let timers = || fs::read_to_string(format!("/proc/{pid}/timers")).unwrap_or_default();
    let recording = denied.place.recording();
    wait_for("bursts", || fs::metadata(&recording).is_ok_and(|file| file.len() > 100_000));
    assert!(timers().contains("ID:"), "{}", timers());
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    wait_for("the end of the timer", || !timers().contains("ID:"));
    // It goes on, and what it starts does not complain.
    stdin.write_all(b"\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "right");
    let left = folders(&denied.place);
    assert_eq!(left.len(), 1, "the loader of what it starts finds its file: {left:?}");
}

/// Says its process id, computes until a line comes in, starts a program, and says whether all was right.
const LASTING: &str = r#"
#include <poll.h>
#include <sys/wait.h>
KEEP unsigned work(unsigned x) { for (int i = 0; i < 10000; i++) x = x * 3 + i; return x; }
int main(int argc, char **argv) {
    printf("%d\n", getpid());
    fflush(stdout);
    unsigned expected = work(argc);
    int wrong = 0;
    struct pollfd line = {0, POLLIN, 0};
    while (poll(&line, 1, 0) == 0) for (int i = 0; i < 100; i++) wrong |= work(argc) != expected;
    wrong |= system("test -z \"$(true 2>&1)\"") != 0;
    puts(wrong ? "wrong" : "right");
    return (int)(uintptr_t)argv * 0;
}
"#;

#[test]
fn nothing_is_left_of_a_recording() {
    let Some(denied) = Denied::new() else { return };
    let Some(hot) = denied.place.program("hot", programs::HOT) else { return };
    fs::create_dir(denied.place.path("tmp")).unwrap();
    // The first program looks at its environment.
    let script = "stat -c %a:%u \"$LD_PRELOAD\" \"${LD_PRELOAD%/*}\"; id -u; exec \"$0\" 300";
    let output = denied
        .command(&["record", "--tracer", "timer", "--", "sh", "-c", script, text(&hot)])
        .env("TMPDIR", denied.place.path("tmp"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = said.lines();
    let (file, folder, user) = (lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap());
    assert_eq!((file, folder), (format!("600:{user}").as_str(), format!("700:{user}").as_str()), "{said}");
    assert_eq!(folders(&denied.place), Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(denied.place.path("tmp")).unwrap().count(), 0);
}

#[test]
fn timers_are_to_be_had_where_events_are_too() {
    let Some(place) = Place::to_time() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let output = place.record(&["--tracer", "timer", "--overhead", "10", "--", text(&hot), "500"]);
    assert!(output.status.success(), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    assert!(traced.bursts_in("hot").count() >= 10, "{:#}", traced.tracer());
    assert!(!errors(&output).contains("perf_event_open"), "{}", errors(&output));
    let output = place.record(&["--tracer", "timer", "--ebs-event", "none", "--", text(&hot), "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
}
