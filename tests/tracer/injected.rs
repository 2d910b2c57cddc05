//! Agents that are put into what runs already, and taken out again.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use crate::bursts::Traced;
use crate::{Place, errors, programs, text, wait_for};

/// `steady THREADS [REST]`: computes the same again and again in threads that make system calls, sleep for so many ms, and wait, until its
/// standard input ends; then says whether the results were always the same.
const STEADY: &str = r#"
#include <poll.h>
#include <stdint.h>
static volatile int ends;
static int rest, told[2], wrong, slow;
static volatile uint64_t rounds;
static KEEP uint64_t results(uint64_t x) {
    for (int i = 0; i < 20000; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        if (x >> 63) x ^= x >> 17;
        if (i % 500 == 0) syscall(SYS_getppid);
    }
    return x;
}
static void *work(void *number) {
    uint64_t first = results((uintptr_t)number), round = 0;
    while (!ends) {
        if (results((uintptr_t)number) != first) wrong = 1;
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
        struct timespec pause = {rest / 1000, rest % 1000 * 1000000};
        if (rest) nanosleep(&pause, 0);
        // Half of the threads wait for long now and then, until something is written that nobody reads.
        struct pollfd told_to_end = {told[0], POLLIN, 0};
        if (slow && (uintptr_t)number % 2 && ++round % 100 == 0) poll(&told_to_end, 1, 700);
    }
    return 0;
}
int main(int argc, char **argv) {
    int count = atoi(argv[1]);
    rest = argc > 2 ? atoi(argv[2]) : 0;
    slow = argc > 3;
    pthread_t threads[512];
    if (pipe(told)) return 2;
    for (intptr_t i = 0; i < count; i++) pthread_create(&threads[i], 0, work, (void *)(i + 1));
    puts("begun");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    ends = 1;
    if (write(told[1], "", 1) != 1) return 3;
    for (int i = 0; i < count; i++) pthread_join(threads[i], 0);
    puts(wrong || !rounds ? "wrong" : "right");
    return wrong;
}
"#;

/// Says that it has begun, and computes until standard input ends.
const UNTIL_TOLD: &str = r#"
static volatile unsigned long sink;
static int until_told(void) {
    puts("begun");
    fflush(stdout);
    fcntl(0, F_SETFL, O_NONBLOCK);
    char byte;
    while (read(0, &byte, 1) < 0) for (int i = 0; i < 100000; i++) sink += i;
    puts("right");
    return 0;
}
"#;

/// A program that runs until it is told to end.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    /// It has said that it has begun.
    fn start(program: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut running =
            Self { stdin: child.stdin.take(), stdout: BufReader::new(child.stdout.take().unwrap()), child };
        let mut line = String::new();
        running.stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n");
        running
    }

    fn steady(place: &Place, args: &[&str]) -> Option<Self> {
        Some(Self::start(&place.program("steady", STEADY)?, args))
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// `hbbp record --inject` of it, with these options.
    fn record(&self, place: &Place, options: &[&str]) -> Traced {
        let output = self.try_record(place, options);
        assert!(output.status.success(), "{}", errors(&output));
        let traced = Traced::read(&place.recording());
        assert_eq!(traced.tracer()["kind"], "agent");
        assert_eq!(traced.number("/agents/given_up"), 0, "{:#}", traced.tracer());
        traced
    }

    fn try_record(&self, place: &Place, options: &[&str]) -> Output {
        place.record(&[&["-p", &self.pid(), "--inject"], options].concat())
    }

    /// The same, by an agent that is put in once, in so many threads at least, and is taken out again: the handlers are as they were before.
    fn record_and_leave(&self, place: &Place, options: &[&str], least: usize, before: u64) -> Traced {
        let vdso = self.vdso();
        let traced = self.record(place, options);
        assert_eq!(traced.number("/agents/injected"), 1, "{:#}", traced.tracer());
        assert!(threads(&traced) >= least, "{:#}", traced.tracer());
        assert!(!self.has_agent(), "it is taken out: {}", traced.metadata["degradations"]);
        assert_eq!(self.handlers(), before);
        let now = self.vdso();
        let left: Vec<(usize, u8)> = (0..now.len()).filter(|&at| now[at] != vdso[at]).map(|at| (at, now[at])).collect();
        assert!(left.is_empty(), "code was left: {left:x?}");
        traced
    }

    /// Whether the agent is mapped.
    fn has_agent(&self) -> bool {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap();
        maps.lines().any(|line| line.starts_with("3b6f"))
    }

    /// The kernel's shared object, as it has it.
    fn vdso(&self) -> Vec<u8> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap();
        let range = maps.lines().find(|line| line.ends_with("[vdso]")).and_then(|line| line.split(' ').next());
        let (start, end) = range.and_then(|range| range.split_once('-')).unwrap();
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        let mut bytes = vec![0; (end - start) as usize];
        let memory = fs::File::open(format!("/proc/{}/mem", self.pid())).unwrap();
        memory.read_exact_at(&mut bytes, start).unwrap();
        bytes
    }

    /// Signals that it has handlers for.
    fn handlers(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap()
    }

    /// Tells it to end: it was right all the time.
    fn ends_right(mut self) {
        drop(self.stdin.take());
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!((said.as_str(), status.code()), ("right\n", Some(0)), "{status}");
    }
}

fn threads(traced: &Traced) -> usize {
    traced.bursts.iter().map(|burst| burst.tid).collect::<HashSet<_>>().len()
}

#[test]
fn all_threads_have_bursts_again_and_again() {
    let Some(place) = Place::to_trace() else { return };
    let Some(running) = Running::steady(&place, &["6"]) else { return };
    let before = running.handlers();
    for _ in 0..3 {
        let traced = running.record_and_leave(&place, &["--overhead", "20", "--duration", "1.5"], 6, before);
        assert!(traced.bursts.len() > 30, "{:#}", traced.tracer());
    }
    running.ends_right();
}

/// When the recording ends, some are in the middle of a system call that a burst is to go on after.
#[test]
fn threads_that_wait_for_long_are_not_in_the_way() {
    let Some(place) = Place::to_trace() else { return };
    let Some(running) = Running::steady(&place, &["8", "1", "slow"]) else { return };
    for _ in 0..4 {
        let traced = running.record(&place, &["--overhead", "50", "--duration", "0.9"]);
        assert!(threads(&traced) >= 4, "{:#}", traced.tracer());
        assert!(!running.has_agent(), "{}", traced.metadata["degradations"]);
    }
    running.ends_right();
}

#[test]
fn a_recorder_that_was_killed_is_no_harm_and_no_obstacle() {
    let Some(place) = Place::to_trace() else { return };
    let Some(running) = Running::steady(&place, &["4", "1", "slow"]) else { return };
    let before = running.handlers();
    for _ in 0..3 {
        let mut recorder = place.hbbp(&["record", "-p", &running.pid(), "--inject", "--overhead", "50", "-q"]);
        let mut recorder = recorder.spawn().unwrap();
        wait_for("the agent", || running.has_agent());
        wait_for("a handler", || running.handlers() != before);
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        assert!(running.has_agent(), "nobody takes it out");
    }
    // Two of the threads compute for less than 10 ms a second, and a burst comes every 3 or 4 ms.
    running.record_and_leave(&place, &["--overhead", "20", "--duration", "4"], 4, before);
    running.ends_right();
}

#[test]
fn an_idle_process_is_let_alone() {
    let Some(place) = Place::to_trace() else { return };
    // Its only thread waits for its standard input.
    let Some(running) = Running::steady(&place, &["0"]) else { return };
    let traced = running.record(&place, &["--duration", "0.5"]);
    assert!(traced.bursts.is_empty() && traced.number("/agents/injected") == 0, "{:#}", traced.tracer());
    let mut running = running;
    drop(running.stdin.take());
    running.child.wait().unwrap();
}

#[test]
fn what_it_forks_later_has_bursts_too() {
    const FORKS: &str = r#"
#include <sys/wait.h>
static volatile unsigned long sink;
static KEEP void in_child(void) { long end = used() + 40; do for (int i = 0; i < 1000; i++) sink += i; while (used() < end); }
int main(void) {
    puts("begun");
    fflush(stdout);
    fcntl(0, F_SETFL, O_NONBLOCK);
    int wrong = 0;
    char byte;
    while (read(0, &byte, 1) < 0) {
        for (int i = 0; i < 100000; i++) sink += i;
        pid_t child = fork();
        if (child == 0) { in_child(); _exit(7); }
        int status = 0;
        waitpid(child, &status, 0);
        wrong |= !WIFEXITED(status) || WEXITSTATUS(status) != 7;
    }
    puts(wrong ? "wrong" : "right");
    return wrong;
}
"#;
    let Some(place) = Place::to_trace() else { return };
    let Some(program) = place.program("forks", FORKS) else { return };
    let running = Running::start(&program, &[]);
    let traced = running.record(&place, &["--overhead", "20", "--duration", "2"]);
    let processes: HashSet<u32> = traced.bursts.iter().map(|burst| burst.pid).collect();
    assert!(processes.len() > 3, "{processes:?} {:#}", traced.tracer());
    running.ends_right();
}

#[test]
fn several_processes_at_once() {
    let Some(place) = Place::to_trace() else { return };
    let Some(one) = Running::steady(&place, &["2"]) else { return };
    let other = Running::start(&place.path("steady"), &["1"]);
    let both = format!("{},{}", one.pid(), other.pid());
    let output = place.record(&["-p", &both, "--inject", "--overhead", "20", "--duration", "1.5"]);
    assert!(output.status.success(), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    let processes: HashSet<u32> = traced.bursts.iter().map(|burst| burst.pid).collect();
    assert_eq!(processes.len(), 2, "{:#}", traced.tracer());
    assert!(!one.has_agent() && !other.has_agent());
    one.ends_right();
    other.ends_right();
}

#[test]
fn many_threads_get_their_clocks_as_the_budget_allows() {
    let Some(place) = Place::to_trace() else { return };
    let Some(running) = Running::steady(&place, &["400", "200"]) else { return };
    let traced = running.record(&place, &["--overhead", "10", "--duration", "5"]);
    let started = traced.number("/starting/threads");
    assert!(started > 300, "{started}: {:#}", traced.tracer());
    assert!(threads(&traced) > 20, "{}: {:#}", threads(&traced), traced.tracer());
    running.ends_right();
}

/// A program whose `main` ends with `return until_told();`.
fn until_told(place: &Place, name: &str, source: &str) -> Option<PathBuf> {
    place.program(name, &format!("{UNTIL_TOLD}{source}"))
}

/// It has bursts and no agent, for this reason.
fn is_visited(place: &Place, program: &Path, why: &str) {
    let running = Running::start(program, &[]);
    let traced = running.record(place, &["--overhead", "20", "--duration", "1.5"]);
    assert!(!traced.bursts.is_empty() && traced.number("/agents/injected") == 0, "{:#}", traced.tracer());
    let said = traced.metadata["degradations"].to_string();
    assert!(said.contains(why), "{said}");
    running.ends_right();
}

#[test]
fn a_process_that_cannot_have_an_agent_is_visited() {
    const SEALED: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
int main(void) {
    struct sock_filter rules[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {1, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 3;
    return until_told();
}
"#;
    let Some(place) = Place::to_trace() else { return };
    let Some(program) = until_told(&place, "sealed", SEALED) else { return };
    is_visited(&place, &program, "1 process without an agent, stopped for each burst: it filters its system calls");
}

/// The end of the vdso, where the first code of an agent would be, is in use.
#[test]
fn where_there_is_no_room_for_its_first_code_a_process_is_visited() {
    const FULL: &str = r#"
int main(void) {
    char line[512];
    unsigned long end = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) if (strstr(line, "[vdso]")) sscanf(line, "%*lx-%lx", &end);
    int memory = open("/proc/self/mem", O_RDWR);
    if (!end || pwrite(memory, "x", 1, end - 1) != 1) return 3;
    return until_told();
}
"#;
    let Some(place) = Place::to_trace() else { return };
    let Some(program) = until_told(&place, "full", FULL) else { return };
    is_visited(&place, &program, "stopped for each burst: its vdso has no room");
}

/// As a recorder of another version would have left it: a page at the agent's place, with another number.
#[test]
fn the_agent_of_another_version_is_recognised() {
    const OLD: &str = r#"
#include <sys/mman.h>
int main(void) {
    char *page = mmap((void *)0x3b6f28080000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memcpy(page + 0x900, "hbbp-ag0", 8);
    return until_told();
}
"#;
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let output = place.record(&["--tracer", "agent", "--", text(&hot), "100"]);
    assert!(output.status.success(), "{}", errors(&output));
    let end = Traced::read(&place.recording()).number("/agents/end");
    let source = OLD.replace("0x3b6f28080000", &format!("{:#x}", end - 4096));
    let Some(program) = until_told(&place, "old", &source) else { return };
    let running = Running::start(&program, &[]);
    let traced = running.record(&place, &["--overhead", "20", "--duration", "1.5"]);
    let said = traced.metadata["degradations"].to_string();
    assert!(said.contains("it has the agent of another version of hbbp"), "{said}");
    assert!(!traced.bursts.is_empty(), "it is visited: {:#}", traced.tracer());
    running.ends_right();
}

#[test]
fn two_recorders_do_not_share_a_process() {
    let Some(place) = Place::to_trace() else { return };
    let Some(running) = Running::steady(&place, &["2"]) else { return };
    let mut first = place.hbbp(&["record", "-p", &running.pid(), "--inject", "-q", "-o", "first.data"]);
    let mut first = first.spawn().unwrap();
    wait_for("the first agent", || running.has_agent());
    let traced = running.record(&place, &["--overhead", "20", "--duration", "1"]);
    let said = traced.metadata["degradations"].to_string();
    assert!(said.contains("it has the agent of another recorder"), "{said}");
    assert!(running.has_agent(), "it is the first one's");
    let interrupted = Command::new("kill").args(["-INT", &first.id().to_string()]).status().unwrap();
    assert!(interrupted.success() && first.wait().unwrap().success());
    assert!(!running.has_agent());
    running.ends_right();
}

#[test]
fn a_process_that_someone_else_traces_is_named() {
    let Some(place) = Place::to_trace() else { return };
    let Some(holder) = place.program("holder", programs::HOLDER) else { return };
    let Some(running) = Running::steady(&place, &["0"]) else { return };
    let mut debugger = Command::new(holder);
    let mut debugger = debugger.arg(running.pid()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(debugger.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.trim() == "traced" {
        let output = running.try_record(&place, &["--duration", "0.5"]);
        let said = errors(&output);
        let expected = format!("process {} is traced by process {}", running.pid(), debugger.id());
        assert!(output.status.code() == Some(1) && said.contains(&expected), "{said}");
    } else {
        testing::skip!(Privileges, "the process cannot be traced by another program");
    }
    drop(debugger.stdin.take());
    debugger.wait().unwrap();
    let mut running = running;
    running.child.kill().unwrap();
    running.child.wait().unwrap();
}

#[test]
fn inject_is_for_agents_in_what_runs_already() {
    let Some(place) = Place::to_trace() else { return };
    for (args, reason) in [
        (&["--inject", "--", "true"][..], "--inject is for processes that run already"),
        (&["--inject", "-a", "--", "true"], "--inject is for processes that run already"),
        (&["--inject", "-t", "1"], "use -p PID --inject"),
        (&["--inject", "-p", "1", "--tracer", "lookahead"], "it goes with --tracer agent"),
        (&["--inject", "-p", "1", "--tracer", "none"], "it goes with --tracer agent"),
        (&["--tracer", "agent", "-p", "1"], "if --inject is added"),
    ] {
        let output = place.record(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", errors(&output));
        assert!(errors(&output).contains(reason), "{args:?}: {}", errors(&output));
    }
}
