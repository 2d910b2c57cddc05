//! `hbbp record` as a process: what it records, what it says, how it ends.
//!
//! These tests need perf events (software events suffice) and the right to sample; they say so and stop where there are none.

mod bpf;
mod cgroup;
mod containers;
mod contents;
mod inherited;
mod kernel_code;
mod limits;
mod linked;
mod mounted;
mod output;
#[path = "../support/place.rs"]
mod place;
mod precision;
#[path = "../support/processes.rs"]
mod processes;
mod programs;
mod rotation;
mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use contents::Contents;
use perfdata::{Chunk, RecordType, Recording};
use place::Place;
use processes::{can_set_signals, send, wait_for, wait_for_cpu_time, wait_or_tell, with_default_signals, with_signals};

impl Place {
    fn recording(&self) -> PathBuf {
        self.path("hbbp.data")
    }

    fn contents(&self) -> Contents {
        Contents::of(&self.recording())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = with_default_signals(hbbp());
        command.arg("record").args(args).current_dir(self.folder()).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Starts it and waits until it records, which is when the command has made the file `started`. Commands that would run for ever do
    /// so while that file is there, and so never outlive the test.
    fn start(&self, args: &[&str]) -> Child {
        let child = self.command(args).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("the command to start", || self.path("started").exists());
        child
    }

    /// Starts recording a shell's `script`, whatever the tests' own signals are; `None`, said on stderr, where `env` cannot set them.
    fn start_with_signals(&self, signals: &str, script: &str) -> Option<Child> {
        if !can_set_signals(signals) {
            testing::skip!(ToolVersion, "env has no {signals}");
            return None;
        }
        let mut command = with_signals(signals, hbbp());
        command.args(["record", "--", "sh", "-c", script]).current_dir(self.folder());
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("the command to start", || self.path("started").exists());
        Some(child)
    }
}

fn hbbp() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_hbbp"))
}

/// The head of the file is written when the events are open; they are enabled next.
fn wait_for_recording_of_others(place: &Place) {
    wait_for("the recording", || fs::metadata(place.recording()).is_ok_and(|file| file.len() > 0));
    sleep(Duration::from_millis(500));
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stderr_of(mut child: Child) -> (std::process::ExitStatus, String) {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (child.wait().unwrap(), text)
}

fn installed(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok();
    if !there {
        testing::skip!(Tool, "{tool} is not installed");
    }
    there
}

#[test]
fn a_short_command_leaves_a_whole_recording() {
    let Some(place) = Place::to_record() else { return };
    let output = place.run(&["--", "true"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains(" samples in "), "{}", errors(&output));
    let contents = place.contents();
    assert!(contents.has_mapped("true"), "{:?}", contents.mapped);
    assert!(contents.build_ids.iter().any(|path| path.ends_with("/true")), "{:?}", contents.build_ids);
    assert!(contents.names.values().any(|name| name == "true"));
    assert_eq!(contents.exits.len(), 1);
    assert_eq!(contents.metadata["schema"], "hbbp-recording/1");
    assert_eq!(contents.metadata["target"], "command");
    assert_eq!(contents.metadata["events"].as_array().unwrap().len(), contents.events.len());
}

#[test]
fn every_thread_is_sampled_by_its_time() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let stolen_before = testing::stolen();
    let output = place.run(&[
        "--tracer",
        "none",
        "--ebs-event",
        "task-clock",
        "--ebs-period",
        "1000000",
        "-u",
        "--",
        spin.to_str().unwrap(),
        "4",
        "300",
    ]);
    // perf's clocks count what a hypervisor gave to others, too, which CPU time leaves out.
    let stolen = testing::stolen() - stolen_before;
    assert!(output.status.success(), "{}", errors(&output));
    let contents = place.contents();
    assert_eq!(contents.samples.len(), 4, "{:?}", contents.samples);
    // Threads that take turns on a CPU hand on the kernel's timer with the rest of its period, so one may get samples of
    // another's time: up to a sixth was seen. Together they have what their time gives.
    let stolen_samples = stolen.as_millis() as u64;
    for (thread, &samples) in &contents.samples {
        assert!(
            (150..=450 + stolen_samples).contains(&samples),
            "300 ms at a sample per ms: {thread:?} has {samples}, {stolen:?} stolen"
        );
    }
    assert!((800..=1320 + stolen_samples).contains(&contents.total()), "four times 300 ms: {}", contents.total());
    assert_eq!(contents.names.values().filter(|name| *name == "worker").count(), 3);
    assert!(contents.times.is_sorted(), "records are in order of time");
    // The counter misses nothing, and the samples follow it.
    let counted = contents.metadata["events"][0]["counted"].as_u64().unwrap();
    let most = 1_600_000_000 + stolen.as_nanos() as u64;
    assert!((1_150_000_000..most).contains(&counted), "four times 300 ms of CPU time: {counted} ns, {stolen:?} stolen");
    assert!(contents.total() * 1_000_000 <= counted + counted / 10, "{} samples in {counted} ns", contents.total());
    assert_eq!(contents.metadata["events"][0]["samples"], contents.total());
    assert_eq!(contents.metadata["lost"], 0);
}

#[test]
fn children_are_recorded_unless_left_out() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let spin = spin.to_str().unwrap();
    let tree = format!("{spin} 1 150 & (sh -c '{spin} 2 150; true'; true) ; wait; {spin} 1 150");
    let output = place.run(&["--tracer", "none", "--expect", "seconds", "--", "sh", "-c", &tree]);
    assert!(output.status.success(), "{}", errors(&output));
    let contents = place.contents();
    let spinners: Vec<u32> = contents.mapped.iter().filter(|(_, path)| path == spin).map(|(pid, _)| *pid).collect();
    assert_eq!(spinners.len(), 3, "{:?}", contents.mapped);
    for pid in &spinners {
        assert!(contents.of_process(*pid) >= 40, "150 ms at 400 Hz: {pid} has {}", contents.of_process(*pid));
        assert!(contents.forks.iter().any(|(_, child)| child == pid));
    }

    let output = place.run(&["--no-inherit", "--tracer", "none", "--expect", "seconds", "--", "sh", "-c", &tree]);
    assert!(output.status.success(), "{}", errors(&output));
    let alone = place.contents();
    assert!(alone.mapped.iter().all(|(_, path)| path != spin), "{:?}", alone.mapped);
    assert!(alone.total() < contents.total() / 4);
    assert!(place.path("hbbp.data.old").exists(), "the first recording is kept");
    assert_eq!(Contents::of(&place.path("hbbp.data.old")).total(), contents.total());
}

#[test]
fn a_running_process_is_recorded_with_all_its_threads_until_it_ends() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let mut target = Command::new(&spin).args(["3", "700"]).spawn().unwrap();
    let pid = target.id();
    wait_for("three threads", || fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() == 3));
    let child = place.command(&["--expect", "seconds", "-p", &pid.to_string()]).stderr(Stdio::piped()).spawn().unwrap();
    assert!(target.wait().unwrap().success(), "the process is not disturbed");
    let (status, said) = stderr_of(child);
    assert!(status.success(), "{said}");
    let contents = place.contents();
    assert_eq!(contents.samples.len(), 3, "{said} {:?}", contents.samples);
    assert!(contents.samples.keys().all(|(process, _)| *process == pid));
    assert!(contents.has_mapped("spin") && contents.names[&pid] == "spin", "{:?}", contents.names);
    assert!(
        contents.build_ids.contains(spin.to_str().unwrap())
            || contents.build_ids.iter().any(|path| path.contains("libc"))
    );
    assert_eq!(contents.metadata["target"], "processes");
    assert!(contents.times.is_sorted(), "what was there before has time 0");
}

#[test]
fn processes_are_found_by_name() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    // The kernel keeps 15 bytes of a name.
    let name = "spinners-of-hbbp-tests";
    fs::copy(&spin, place.path(name)).unwrap();
    let start = || Command::new(place.path(name)).args(["1", "600000"]).spawn().unwrap();
    let mut running = [start(), start()];
    let pids = running.each_ref().map(|child| child.id());
    let record = |pids: &str| place.run(&["--tracer", "none", "--expect", "seconds", "--duration", "1", "-p", pids]);
    let by_name = record(name);
    let sampled = || place.contents().samples.keys().map(|(pid, _)| *pid).collect::<BTreeSet<u32>>();
    assert!(by_name.status.success(), "{}", errors(&by_name));
    assert_eq!(sampled(), pids.into());
    let said = errors(&by_name);
    let all =
        format!("{name} is 2 processes, and all are recorded: {}, {}", pids[0].min(pids[1]), pids[0].max(pids[1]));
    assert!(said.contains(&all), "{said}");
    // A number beside the name names one of them once more.
    let twice = record(&format!("{},{name}", pids[0]));
    assert!(twice.status.success() && sampled() == pids.into(), "{}", errors(&twice));
    running[1].kill().unwrap();
    // Nobody waits for it yet: what is left of a process is none.
    let one = record(name);
    assert!(errors(&one).contains(&format!("{name} is process {}", pids[0])), "{}", errors(&one));
    running.iter_mut().for_each(|child| drop((child.kill(), child.wait())));
    let none = record(name);
    assert_eq!(none.status.code(), Some(1));
    assert!(errors(&none).contains(&format!("there is no process called \"{name}\"")), "{}", errors(&none));
}

/// One that looks for its own name does not find itself.
#[test]
fn a_recorder_is_no_process_of_its_name() {
    let Some(place) = Place::to_record() else { return };
    let name = "hbbp-with-a-name-of-its-own";
    fs::copy(hbbp(), place.path(name)).unwrap();
    let output =
        Command::new(place.path(name)).args(["record", "-p", name]).current_dir(place.folder()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("there is no process called"), "{}", errors(&output));
}

/// What recording took is no share of nothing.
#[test]
fn an_idle_process_has_no_overhead() {
    let Some(place) = Place::to_trace() else { return };
    let mut idle = Command::new("sleep").arg("600").spawn().unwrap();
    let output = place.run(&["--tracer", "lookahead", "--duration", "0.5", "-p", &idle.id().to_string()]);
    idle.kill().unwrap();
    idle.wait().unwrap();
    let said = errors(&output).replace("\nhbbp:  ", "");
    assert!(
        output.status.success() && said.contains("the program was idle: ") && said.contains("recording took"),
        "{said}"
    );
    assert!(!said.contains("% of CPU time (") && !said.contains("other "), "{said}");
}

#[test]
fn threads_started_later_are_recorded_too() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let script = format!(": > started; while [ -e started ]; do sleep 0.05; done; exec {} 2 200", spin.display());
    let mut target = with_default_signals("sh").args(["-c", &script]).current_dir(place.folder()).spawn().unwrap();
    wait_for("the shell", || place.path("started").exists());
    let child = place
        .command(&["--tracer", "none", "--expect", "seconds", "-p", &target.id().to_string()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_recording_of_others(&place);
    fs::remove_file(place.path("started")).unwrap();
    assert!(target.wait().unwrap().success());
    let (status, said) = stderr_of(child);
    assert!(status.success(), "{said}");
    let contents = place.contents();
    let of_spin = contents.samples.iter().filter(|((pid, _), count)| *pid == target.id() && **count >= 40).count();
    assert_eq!(of_spin, 2, "{:?}", contents.samples);
    assert!(contents.has_mapped("spin"), "an exec in a recorded process is seen");
}

#[test]
fn one_thread_of_several() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    // It runs until it is killed: on a busy machine, opening events may take longer than any time it is given.
    let mut target = Command::new(&spin).args(["3", "600000"]).spawn().unwrap();
    let tasks = || -> Vec<u32> {
        let names = fs::read_dir(format!("/proc/{}/task", target.id())).unwrap();
        names.map(|name| name.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
    };
    wait_for("three threads", || tasks().len() == 3);
    let tid = *tasks().iter().max().unwrap();
    let args = ["--expect", "seconds", "-t", &tid.to_string()];
    let child = place.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_recording_of_others(&place);
    wait_for_cpu_time(target.id(), 100);
    send("-INT", child.id());
    let (status, said) = stderr_of(child);
    target.kill().unwrap();
    target.wait().unwrap();
    assert!(status.success(), "{said}");
    let contents = place.contents();
    assert_eq!(contents.samples.keys().collect::<Vec<_>>(), [&(target.id(), tid)]);
    assert_eq!(contents.metadata["target"], "threads");
}

#[test]
fn everything_that_runs() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let mut other = Command::new(&spin).args(["1", "20000"]).spawn().unwrap();
    let output = place.run(&["-a", "--expect", "seconds", "--", "sleep", "1.5"]);
    if errors(&output).contains("recording all processes needs") {
        testing::skip!(Privileges, "{}", errors(&output));
    } else {
        assert!(output.status.success(), "{}", errors(&output));
        let contents = place.contents();
        // How much of the time it gets depends on what else runs.
        assert!(contents.of_process(other.id()) > 3, "{:?}", contents.samples);
        assert_eq!(contents.metadata["target"], "system");
        assert!(contents.names.len() > 5 && contents.names.contains_key(&1), "names of what was there before");
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn the_time_is_up() {
    let Some(place) = Place::to_record() else { return };
    let script = "trap 'echo ended > trapped; exit 5' TERM; : > started; while [ -e started ]; do :; done";
    let (begin, time) = (Instant::now(), SystemTime::now());
    let output = place.run(&["--duration", "1", "--", "sh", "-c", script]);
    let elapsed = begin.elapsed().as_nanos() as u64;
    assert_eq!(output.status.code(), Some(0), "the command was told to end, which is no failure: {}", errors(&output));
    assert!(place.path("trapped").exists(), "the command was told to end");
    let contents = place.contents();
    assert!(contents.total() > 0);
    let nanoseconds = contents.metadata["duration_ns"].as_u64().unwrap();
    assert!((1_000_000_000..elapsed).contains(&nanoseconds), "{nanoseconds} of {elapsed}");
    let began = Duration::from_nanos(contents.metadata["began_unix_ns"].as_u64().unwrap());
    let began = (SystemTime::UNIX_EPOCH + began).duration_since(time).unwrap().as_nanos() as u64;
    assert!(began + nanoseconds <= elapsed, "{began} + {nanoseconds} of {elapsed}");
}

#[test]
fn exit_codes_are_those_of_the_command() {
    let Some(place) = Place::to_record() else { return };
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -ABRT $$", 134)] {
        let output = place.run(&["--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}: {}", errors(&output));
        place.contents();
    }
}

/// Some supervisors ignore SIGCHLD, and the kernel then forgets how children end.
#[test]
fn exit_codes_where_the_death_of_children_is_ignored() {
    let Some(place) = Place::to_record() else { return };
    let ignoring = "--ignore-signal=CHLD";
    if !can_set_signals(ignoring) {
        testing::skip!(ToolVersion, "env has no {ignoring}");
        return;
    }
    let command = ["record", "--", "sh", "-c", "sleep 0.1; exit 7"];
    let output = with_signals(ignoring, hbbp()).args(command).current_dir(place.folder()).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", errors(&output));
}

#[test]
fn commands_that_cannot_be_run() {
    let Some(place) = Place::to_record() else { return };
    fs::write(place.recording(), "a recording from before").unwrap();
    fs::write(place.path("hbbp.data.old"), "one before that").unwrap();
    fs::write(place.path("not-executable"), "text").unwrap();
    fs::write(place.path("no-interpreter"), "#!/does/not/exist\n").unwrap();
    assert!(Command::new("chmod").args(["+x"]).arg(place.path("no-interpreter")).status().unwrap().success());
    for (program, code, reason) in [
        ("no-such-program", 127, "No such file"),
        ("./not-executable", 126, "Permission denied"),
        ("./no-interpreter", 127, "No such file"),
    ] {
        let output = place.run(&["--", program]);
        assert_eq!(output.status.code(), Some(code), "{program}: {}", errors(&output));
        assert!(errors(&output).contains(&format!("cannot run {program}: {reason}")), "{}", errors(&output));
        assert_eq!(fs::read(place.recording()).unwrap(), b"a recording from before", "{program}");
        assert_eq!(fs::read(place.path("hbbp.data.old")).unwrap(), b"one before that", "{program}");
    }
}

/// Whether there is a device that is a full disk; says so when not.
fn has_full_disk() -> bool {
    let there = Path::new("/dev/full").exists();
    if !there {
        testing::skip!(Kernel, "there is no /dev/full");
    }
    there
}

#[test]
fn files_that_cannot_be_written() {
    let Some(place) = Place::to_record() else { return };
    for (file, code) in [("no/such/dir/x", 1), (".", 1)] {
        let output = place.run(&["-o", file, "--", "touch", "ran"]);
        assert_eq!(output.status.code(), Some(code), "{file}: {}", errors(&output));
        assert!(errors(&output).contains(&format!("cannot write {file}: ")), "{}", errors(&output));
        assert!(!place.path("ran").exists(), "{file}: the command must not run");
    }
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    let output = place.run(&["-o", "pipe", "--", "touch", "ran"]);
    assert!(!output.status.success() && errors(&output).contains("not a pipe"), "{}", errors(&output));
    assert!(!place.path("ran").exists());
}

#[test]
fn a_full_disk_is_said_and_the_command_runs_on() {
    let Some(place) = Place::to_record() else { return };
    if !has_full_disk() {
        return;
    }
    let output = place.run(&["-o", "/dev/full", "--", "sh", "-c", "sleep 0.2; touch ran"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("No space left on device"), "{}", errors(&output));
    assert!(place.path("ran").exists());
    assert!(Path::new("/dev/full").exists());
}

/// For a shell: enough for some samples, about 0.2 s of CPU time.
const SOME_WORK: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; ";

#[test]
fn interrupt_stops_both_and_completes_the_file() {
    let Some(place) = Place::to_record() else { return };
    let child = place.start(&["--", "sh", "-c", &format!("{SOME_WORK}: > started; while [ -e started ]; do :; done")]);
    send("-INT", child.id());
    let (status, said) = stderr_of(child);
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(place.contents().total() > 0);
}

/// Runs `hbbp record -- sh command` at a terminal of its own, which is in the control of `script`; what it shows goes to the file `screen`.
/// The shell that `script` starts outlives an interrupt by a trap, which what it starts does not inherit. hbbp's own id is in `pid`.
fn at_a_terminal(place: &Place, command: &str) -> Option<Child> {
    if !installed("script") {
        return None;
    }
    fs::write(place.path("command"), command).unwrap();
    // Traced, the command would stand still while a test has the collector stopped.
    let inner = format!("echo $$ > pid; exec {} record --tracer none -- sh command", hbbp().display());
    let recorded = format!("trap : INT; sh -c '{inner}'; code=$?; exit $code");
    let screen = fs::File::create(place.path("screen")).unwrap();
    let terminal = with_default_signals("script")
        .args(["-qec", &recorded, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .current_dir(place.folder())
        .stdin(Stdio::piped())
        .stderr(screen.try_clone().unwrap())
        .stdout(screen)
        .spawn()
        .unwrap();
    wait_or_tell("the command to start", || screen_of(place), || place.path("started").exists());
    Some(terminal)
}

fn screen_of(place: &Place) -> String {
    format!("on the screen: {}", String::from_utf8_lossy(&fs::read(place.path("screen")).unwrap_or_default()))
}

/// A terminal interrupts both; the command must not be interrupted once more.
#[test]
fn interrupt_at_a_terminal_reaches_the_command_once() {
    let Some(place) = Place::to_record() else { return };
    let script = "trap 'echo x >> trapped' INT; : > started; while [ -e started ]; do :; done; exit 9";
    let Some(mut terminal) = at_a_terminal(&place, script) else { return };
    let collector = fs::read_to_string(place.path("pid")).unwrap().trim().parse().unwrap();
    // Two signals that come close together may be taken as one: the collector sees its own when the command has dealt with it.
    send("-STOP", collector);
    let mut keyboard = terminal.stdin.take().unwrap();
    keyboard.write_all(b"\x03").unwrap();
    keyboard.flush().unwrap();
    let trapped = || fs::read_to_string(place.path("trapped")).unwrap_or_default();
    wait_or_tell("the interrupt", || screen_of(&place), || trapped().ends_with('\n'));
    send("-CONT", collector);
    // The recording is completed before the command is told anything.
    let complete = || {
        Recording::open(&place.recording())
            .is_ok_and(|recording| recording.features().other.contains_key(&perfdata::FeatureBit(250)))
    };
    wait_or_tell("the end of the recording", || screen_of(&place), complete);
    sleep(Duration::from_millis(300));
    fs::remove_file(place.path("started")).unwrap();
    let status = terminal.wait().unwrap();
    drop(keyboard);
    assert_eq!((status.code(), trapped().as_str()), (Some(9), "x\n"), "{status:?}, {}", screen_of(&place));
    place.contents();
}

/// A command that does not mind being interrupted is told to end, and its end is waited for.
#[test]
fn a_second_interrupt_terminates_the_command() {
    let Some(place) = Place::to_record() else { return };
    let script = "trap 'touch trapped' INT; trap 'sleep 0.5; exit 3' TERM; : > started; while [ -e started ]; do sleep 0.01; done";
    let child = place.start(&["--", "sh", "-c", script]);
    send("-INT", child.id());
    wait_for("the interrupt", || place.path("trapped").exists());
    send("-INT", child.id());
    let (status, said) = stderr_of(child);
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(!said.contains("goes on"), "{said}");
    place.contents();
}

#[test]
fn terminate_is_passed_on() {
    let Some(place) = Place::to_record() else { return };
    let script = format!("trap 'touch trapped; exit 3' TERM; {SOME_WORK}: > started; while [ -e started ]; do :; done");
    for signal in ["-TERM", "-HUP", "-QUIT"] {
        let Some(child) = place.start_with_signals("--default-signal", &script) else { return };
        send(signal, child.id());
        let (status, said) = stderr_of(child);
        assert_eq!(status.code(), Some(3), "{signal}: {said}");
        assert!(place.path("trapped").exists(), "{signal}");
        assert!(place.contents().total() > 0, "{signal}");
        for name in ["started", "trapped", "hbbp.data"] {
            fs::remove_file(place.path(name)).unwrap();
        }
    }
}

/// `nohup hbbp record ...`, and what shells run in the background.
#[test]
fn signals_that_are_ignored_stay_ignored() {
    let Some(place) = Place::to_record() else { return };
    let script = ": > started; while [ -e started ]; do sleep 0.01; done; exit 7";
    let Some(child) = place.start_with_signals("--ignore-signal=HUP,QUIT", script) else { return };
    send("-HUP", child.id());
    send("-QUIT", child.id());
    sleep(Duration::from_millis(300));
    fs::remove_file(place.path("started")).unwrap();
    let (status, said) = stderr_of(child);
    assert_eq!(status.code(), Some(7), "{said}");
    place.contents();
}

/// An ssh session that breaks off: nothing can be said any more, but the recording is whole.
#[test]
fn a_lost_terminal_leaves_a_whole_recording() {
    let Some(place) = Place::to_record() else { return };
    let script = format!("trap '' HUP; {SOME_WORK}: > started; while [ -e started ]; do :; done");
    let Some(mut terminal) = at_a_terminal(&place, &script) else { return };
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    fs::remove_file(place.path("started")).unwrap();
    let pid = fs::read_to_string(place.path("pid")).unwrap();
    let status = format!("/proc/{}/status", pid.trim());
    let ended = || fs::read_to_string(&status).map_or(true, |text| text.contains("State:\tZ"));
    wait_for("the end of the recording", ended);
    assert!(place.contents().total() > 0);
}

#[test]
fn interrupt_ends_a_recording_of_others_and_leaves_them_alone() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let mut target = Command::new(&spin).args(["1", "20000"]).spawn().unwrap();
    let child = place.command(&["-p", &target.id().to_string()]).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_recording_of_others(&place);
    wait_for_cpu_time(target.id(), 20);
    send("-INT", child.id());
    let (status, said) = stderr_of(child);
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(place.contents().of_process(target.id()) > 10);
    assert!(target.try_wait().unwrap().is_none(), "the process runs on");
    target.kill().unwrap();
    target.wait().unwrap();
}

/// A collector that is killed leaves what it has written, and does not take the program with it.
#[test]
fn a_killed_collector_leaves_the_program_and_a_readable_file() {
    let Some(place) = Place::to_record() else { return };
    let script = ": > started; while [ -e started ]; do :; done; touch done";
    let mut child = place.start(&["--tracer", "none", "--expect", "seconds", "--", "sh", "-c", script]);
    wait_for("some of the recording", || fs::metadata(place.recording()).is_ok_and(|file| file.len() > 25_000));
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let recording = Recording::open(&place.recording()).unwrap();
    let (mut chunks, mut chunk, mut samples) = (recording.chunks(), perfdata::Chunk::new(), 0);
    while chunks.next_into(&mut chunk).unwrap() {
        samples += chunk.records().filter(|raw| raw.is_sample()).count();
    }
    assert!(samples > 200, "{samples}");
    fs::remove_file(place.path("started")).unwrap();
    wait_for("the program to end by itself", || place.path("done").exists());
}

/// Even before it has read any ring.
#[test]
fn a_collector_killed_at_once_leaves_a_readable_file() {
    let Some(place) = Place::to_record() else { return };
    let mut child = place.start(&["--", "sh", "-c", ": > started; sleep 2"]);
    wait_for("the file", || place.recording().exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let recording = Recording::open(&place.recording()).unwrap();
    assert!(!recording.events().is_empty());
}

#[test]
fn lost_samples_are_counted_and_said() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let script = format!("echo $$ > pid; : > started; exec {} 1 1500", spin.display());
    let child = place.start(&[
        "--tracer",
        "none",
        "-m",
        "1",
        "--ebs-event",
        "task-clock",
        "--ebs-period",
        "100000",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let pid = fs::read_to_string(place.path("pid")).unwrap().trim().parse().unwrap();
    send("-STOP", child.id());
    wait_for_cpu_time(pid, 50);
    send("-CONT", child.id());
    let (status, said) = stderr_of(child);
    assert!(status.success(), "{said}");
    let metadata = place.contents().metadata;
    let lost = metadata["lost"].as_u64().unwrap();
    // A page holds 85 samples of 48 bytes; 500 ms of CPU time bring 5,000.
    assert!(lost > 500, "{metadata}");
    assert!(said.contains(&format!("{lost} records lost")), "{said}");
}

#[test]
fn what_was_not_to_be_had_is_said_and_recorded() {
    let Some(place) = Place::to_record() else { return };
    let output = place.run(&["--", "true"]);
    let metadata = place.contents().metadata;
    for sentence in metadata["degradations"].as_array().unwrap() {
        assert!(errors(&output).contains(sentence.as_str().unwrap()), "{sentence}");
    }
    let source = metadata["source"].as_str().unwrap();
    assert!(source != "clock" || !metadata["degradations"].as_array().unwrap().is_empty(), "a clock is never silent");
    let quiet = place.run(&["-q", "--", "true"]);
    assert_eq!(errors(&quiet), "");
}

#[test]
fn an_event_asked_for_by_name_is_never_replaced() {
    let Some(place) = Place::to_record() else { return };
    let output = place.run(&["--ebs-event", "cpu/event=0xc0/pp", "--", "touch", "ran"]);
    if output.status.success() {
        assert_eq!(place.contents().events[0], "cpu/event=0xc0/pp");
    } else {
        assert!(!place.path("ran").exists() && !place.recording().exists(), "{}", errors(&output));
    }
    let output = place.run(&["--ebs-event", "no-such-event", "--", "touch", "ran2"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("`no-such-event`"));
    assert!(!place.path("ran2").exists());
}

#[test]
fn wrong_usage() {
    let Some(place) = Place::to_record() else { return };
    for args in [
        &[][..],
        &["-m", "3", "--", "true"],
        &["-j", "nonsense", "--", "true"],
        &["--duration", "0", "--", "true"],
        &["--start-credit=-1", "--", "true"],
        &["-p", "1", "-a"],
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", errors(&output));
    }
    let output = place.run(&["-p", "4294967295"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("no process or thread 4294967295"), "{}", errors(&output));
    assert!(!place.recording().exists());
}

/// The program must find the signals, limits and files it would find without the collector.
#[test]
fn the_command_sees_nothing_of_the_collector() {
    let Some(place) = Place::to_record() else { return };
    let script = "ulimit -n; ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status";
    let alone = with_default_signals("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap();
    let recorded = place.run(&["-q", "--", "sh", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&recorded.stdout), String::from_utf8_lossy(&alone.stdout));
}

/// Memory must not grow with what is recorded: short-lived processes leave nothing behind.
#[test]
fn memory_does_not_grow_with_the_recording() {
    let Some(place) = Place::to_record() else { return };
    let peak_kb = |children: u32| {
        let _ = fs::remove_file(place.path("started"));
        // What tracing needs once a program has computed for a while is there in both.
        let script = format!(
            ": > started; {SOME_WORK}i=0; while [ $i -lt {children} ]; do /bin/true; i=$((i+1)); done; touch done; sleep 0.3"
        );
        let child = place.start(&["--", "sh", "-c", &script]);
        wait_for("the children", || place.path("done").exists());
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(stderr_of(child).0.success());
        fs::remove_file(place.path("done")).unwrap();
        let recording = Recording::open(&place.recording()).unwrap();
        let (mut chunks, mut chunk, mut forks) = (recording.chunks(), Chunk::new(), 0);
        while chunks.next_into(&mut chunk).unwrap() {
            forks += chunk.records().filter(|raw| raw.record_type == RecordType::FORK).count();
        }
        assert!(forks >= children as usize, "{forks} forks of {children} children");
        peak
    };
    // The decoder's tables, a megabyte and a half, are made when a thread that is stopped needs them: among few, none may.
    let (few, many) = (peak_kb(10), peak_kb(2400));
    assert!(many < few + 4_000, "{few} KiB with 10 children, {many} KiB with 2,400");
}

/// Without privileges: user space only, said; and what needs more is refused.
#[test]
fn an_unprivileged_user_records_user_space() {
    let Some(place) = Place::to_record() else { return };
    let drop_to = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];
    let usable = Command::new("setpriv").args(drop_to).arg("true").status().is_ok_and(|status| status.success());
    let paranoid: i32 = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap().trim().parse().unwrap();
    if !usable || paranoid != 2 {
        testing::skip!(Privileges, "needs setpriv, root and perf_event_paranoid 2 (it is {paranoid})");
        return;
    }
    // The tests' own directory is closed to others.
    let program = place.path("hbbp");
    fs::copy(hbbp(), &program).unwrap();
    assert!(Command::new("chmod").arg("777").arg(place.folder()).status().unwrap().success());
    let run = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(drop_to).arg(&program).arg("record").args(args).current_dir(place.folder());
        command.output().unwrap()
    };
    let output = run(&["--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("kernel code is not recorded"), "{}", errors(&output));
    let contents = place.contents();
    assert!(contents.total() > 10);
    assert!(contents.events.iter().all(|name| name.contains('u')), "{:?}", contents.events);
    assert!(contents.mapped.iter().all(|(pid, _)| *pid != u32::MAX), "the kernel is not mapped");
    for args in [&["-a", "--", "true"][..], &["-k", "--", "true"], &["-p", "1", "--duration", "1"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", errors(&output));
    }
}

#[test]
fn perf_reads_the_recording() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    if !installed("perf") {
        return;
    }
    let output = place.run(&["--expect", "seconds", "--", spin.to_str().unwrap(), "2", "200"]);
    assert!(output.status.success(), "{}", errors(&output));
    let total = place.contents().total();
    let perf = |args: &[&str]| {
        let output = Command::new("perf").args(args).current_dir(place.folder()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", errors(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let script = perf(&["script", "-F", "comm,tid,time,ip,sym", "-i", "hbbp.data"]);
    assert_eq!(script.lines().count() as u64, total);
    assert!(script.contains("worker") && script.contains("spin"), "{script}");
    let report = perf(&["report", "--stdio", "--sort", "sym", "-i", "hbbp.data"]);
    assert!(report.contains("] spin"), "{report}");
    let ids = perf(&["buildid-list", "-i", "hbbp.data"]);
    assert!(ids.contains("/spin") && ids.contains("libc"), "{ids}");
    let header = perf(&["report", "--header-only", "-i", "hbbp.data"]);
    for feature in [
        "hostname",
        "os release",
        "arch",
        "nrcpus",
        "cpudesc",
        "cpuid",
        "total memory",
        "cmdline",
        "event",
        "pmu mappings",
        "time of first sample",
    ] {
        assert!(header.contains(feature), "{feature}: {header}");
    }
}
