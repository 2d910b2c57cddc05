//! `--cgroup`: what is in a control group, and nothing else.

use std::cell::Cell;

use serde_json::Value;

use super::containers::{WITH_ID, spins_in};
use super::*;

thread_local! {
    /// Groups of this test.
    static MADE: Cell<u32> = const { Cell::new(0) };
}

/// A control group of a test's, which goes with it.
pub struct Group(PathBuf);

impl Group {
    /// `None`, said on stderr, where none can be made.
    pub fn make() -> Option<Self> {
        let unified = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let number = MADE.replace(MADE.get() + 1);
        let name = format!("hbbp-test-{}-{number}", std::process::id());
        let folder = unified.iter().find(|root| root.join("cgroup.procs").is_file()).map(|root| root.join(name));
        let folder = folder.filter(|folder| fs::create_dir(folder).is_ok());
        if folder.is_none() {
            testing::skip!(Privileges, "no control group can be made");
        }
        folder.map(Self)
    }

    fn make_in(&self, name: &str) -> Self {
        let folder = self.0.join(name);
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub fn name(&self) -> &str {
        self.0.file_name().unwrap().to_str().unwrap()
    }

    /// The file that a process is moved by.
    pub fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    fn take(&self, process: u32) {
        fs::write(self.processes(), process.to_string()).unwrap();
    }

    /// Starts a program in it.
    fn start(&self, program: &Path, arguments: &[&str]) -> Running {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.processes()).arg(program).args(arguments);
        Running(shell.spawn().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What was killed leaves a moment later.
        let _ = (0..100).find(|_| {
            let is_gone = fs::remove_dir(&self.0).is_ok() || !self.0.exists();
            if !is_gone {
                sleep(Duration::from_millis(20));
            }
            is_gone
        });
    }
}

/// Ends when the test does.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A place to record groups, and a group; `None`, said on stderr, where that cannot be.
fn to_record_groups() -> Option<(Place, Group)> {
    let place = Place::to_record()?;
    let doctor = Command::new(hbbp()).args(["doctor", "--format", "json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    if doctor["probes"]["control_group"] != "works" {
        testing::skip!(Privileges, "no events of control groups: {}", doctor["probes"]["control_group"]);
        return None;
    }
    Some((place, Group::make()?))
}

const CLOCK: [&str; 6] = ["--tracer", "none", "--ebs-event", "cpu-clock:u", "-F", "499"];

/// Of each function, its part of a recording.
fn shares(recording: &Path) -> BTreeMap<String, f64> {
    shares_of("function", recording)
}

/// Of each row by this key.
fn shares_of(key: &str, recording: &Path) -> BTreeMap<String, f64> {
    let mut mix = Command::new(hbbp());
    mix.args(["mix", "--no-cache", "--format", "json", "--top", "0", "--rows", key]).arg(recording);
    let output = mix.output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap().iter();
    rows.map(|row| (row[key].as_str().unwrap().to_owned(), row["share"].as_f64().unwrap())).collect()
}

#[test]
fn what_is_in_the_group_and_what_it_starts_is_recorded_and_nothing_else() {
    let Some((place, group)) = to_record_groups() else { return };
    let Some(other) = Group::make() else { return };
    let programs = ["inside", "child", "outside"].map(|name| spins_in(&place, name, WITH_ID));
    let [Some(inside), Some(child), Some(outside)] = programs else { return };
    let below = group.make_in("below it");
    let within = group.start(&inside, &["120"]);
    let deeper = below.start(&inside, &["120"]);
    let without = other.start(&outside, &["120"]);
    // It starts others while it is recorded.
    let script = format!("sleep 0.5; {} 120 & echo $! > {}; wait", child.display(), place.path("child").display());
    let shell = group.start(Path::new("sh"), &["-c", &script]);

    // With so many bursts that each program has some: 1 % of two seconds is a handful in all.
    for tracer in [&CLOCK[..], &["--tracer", "lookahead", "--overhead", "20"]] {
        let output = place.run(&[tracer, &["--cgroup", group.name(), "--", "sleep", "2"]].concat());
        assert!(output.status.success(), "{}", errors(&output));
        let contents = place.contents();
        let processes: BTreeSet<u32> = contents.samples.keys().map(|(process, _)| *process).collect();
        let child: u32 = fs::read_to_string(place.path("child")).unwrap().trim().parse().unwrap();
        for expected in [within.0.id(), deeper.0.id(), child] {
            assert!(processes.contains(&expected), "{expected} of {processes:?}: {}", errors(&output));
        }
        assert!(!processes.contains(&without.0.id()), "{processes:?}");
        assert_eq!(contents.metadata["target"], "cgroup");
        assert_eq!(contents.metadata["cgroup"], format!("/{}", group.name()));
        let shares = shares(&place.recording());
        assert!(shares["inside"] > 0.1 && shares["child"] > 0.01, "{shares:?}");
        assert!(!shares.contains_key("outside"), "{shares:?}");
    }
    let child: u32 = fs::read_to_string(place.path("child")).unwrap().trim().parse().unwrap();
    send("-KILL", child);
    drop(shell);
}

/// Its mappings are from before: the kernel tells of none.
#[test]
fn a_process_counts_while_it_is_in_the_group() {
    let Some((place, group)) = to_record_groups() else { return };
    let (Some(other), Some(moved)) = (Group::make(), spins_in(&place, "moved", WITH_ID)) else { return };
    // Of its own code alone: the kernel's, which stops it, may be a third.
    let traced = ["--tracer", "lookahead", "--overhead", "20", "--ebs-event", "cpu-clock:u"];
    for tracer in [&CLOCK[..], &traced] {
        let running = other.start(&moved, &["30"]);
        let arguments = [tracer, &["--cgroup", group.0.to_str().unwrap()]].concat();
        let mut command = place.command(&arguments);
        let recorder = command.stderr(Stdio::piped()).spawn().unwrap();
        wait_for_recording_of_others(&place);
        sleep(Duration::from_millis(500));
        let samples_before = fs::metadata(place.recording()).unwrap().len();
        group.take(running.0.id());
        sleep(Duration::from_millis(2500));
        other.take(running.0.id());
        // The tracer looks twice a second, or less often on a busy machine.
        sleep(Duration::from_millis(1500));
        let bytes_when_out = fs::metadata(place.recording()).unwrap().len();
        sleep(Duration::from_millis(1000));
        let bytes_later = fs::metadata(place.recording()).unwrap().len();
        send("-INT", recorder.id());
        let (status, said) = stderr_of(recorder);
        assert!(status.success(), "{said}");
        assert!(said.contains("no process is in the control group"), "{said}");
        assert!(bytes_when_out > samples_before + 1000, "{samples_before} {bytes_when_out}");
        assert_eq!(bytes_when_out, bytes_later, "nothing of it comes when it is out");
        let processes: BTreeSet<u32> = place.contents().samples.keys().map(|(process, _)| *process).collect();
        assert_eq!(processes, BTreeSet::from([running.0.id()]));
        let shares = shares(&place.recording());
        assert!(shares["moved"] > 0.95, "{shares:?}");
    }
}

/// What comes in forks, and ends as daemons do, or executes something else: nothing tells any more what it was. The child executes nothing.
#[test]
fn a_child_of_what_came_in_is_known_when_its_parent_is_another_program() {
    let Some((place, group)) = to_record_groups() else { return };
    for then in ["exit", "exec sleep 1"] {
        let mut command = place.command(&[&CLOCK[..], &["--cgroup", group.name(), "--duration", "3"]].concat());
        let recorder = command.stderr(Stdio::piped()).spawn().unwrap();
        wait_for_recording_of_others(&place);
        sleep(Duration::from_millis(500));
        let script = format!("echo $$ > \"$0\"; (while :; do :; done) & echo $! > \"$1\"; {then}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(group.processes()).arg(place.path("child"));
        assert!(shell.status().unwrap().success());
        let child: u32 = fs::read_to_string(place.path("child")).unwrap().trim().parse().unwrap();
        let (status, said) = stderr_of(recorder);
        send("-KILL", child);
        assert!(status.success(), "{said}");
        let program = fs::canonicalize("/bin/sh").unwrap().to_str().unwrap().to_owned();
        let shares = shares_of("module", &place.recording());
        let known: f64 = shares.iter().filter(|(module, _)| module.starts_with('/')).map(|(_, share)| share).sum();
        assert!(shares.get(&program).is_some_and(|share| *share > 0.5) && known > 0.95, "{then}: {shares:?}");
        fs::remove_file(place.recording()).unwrap();
    }
}

/// The recorder waits for a command that its tracer stops.
#[test]
fn the_command_may_be_in_the_group() {
    let (Some((place, group)), Some(spin)) = (to_record_groups(), programs::spin()) else { return };
    let joins = format!("echo $$ > {}; {} 1 1000; exit 7", group.processes().display(), spin.display());
    let options = ["--tracer", "lookahead", "--overhead", "50", "--cgroup", group.name()];
    let output = place.command(&[&options[..], &["--", "sh", "-c", &joins]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", errors(&output));
    assert!(place.contents().metadata["tracer"]["bursts"].as_u64().is_some_and(|bursts| bursts > 0));
    // A program of its own, which the tracer may be about to stop when it ends.
    let joins = format!("echo $$ > {}; exec {} 1 300", group.processes().display(), spin.display());
    for _ in 0..5 {
        let output = place.command(&[&options[..], &["--", "sh", "-c", &joins]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    }
}

/// Clocks of threads do not take the files that are needed to read what comes in.
#[test]
fn where_few_files_may_be_open_all_threads_have_bursts() {
    let (Some((place, group)), Some(threads)) = (to_record_groups(), programs::spin()) else { return };
    let (Some(moved), Some(other)) = (spins_in(&place, "moved", WITH_ID), Group::make()) else { return };
    let limited = |files: usize, seconds: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {files}; exec \"$0\" record \"$@\"")]).arg(hbbp());
        command.args(["--tracer", "lookahead", "--overhead", "20", "--cgroup", group.name(), "--duration", seconds]);
        command.current_dir(place.folder()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // The least that suffices to begin, which it says.
    let mut files = 8;
    for _ in 0..3 {
        let (_, said) = stderr_of(limited(files, "0.1"));
        let Some(needed) = said.split("this needs ").nth(1) else { break };
        files = needed.split(' ').next().unwrap().parse().unwrap();
    }
    let _ = fs::remove_file(place.recording());
    let many = other.start(&threads, &["60", "30000"]);
    wait_for("threads", || fs::read_dir(format!("/proc/{}/task", many.0.id())).is_ok_and(|tasks| tasks.count() >= 60));
    let running = other.start(&moved, &["30"]);
    // For the tracer's own events of each CPU, and clocks of some of the threads at a time.
    let cpus = std::thread::available_parallelism().unwrap().get();
    let recorder = limited(files + cpus + 20, "5");
    wait_for_recording_of_others(&place);
    sleep(Duration::from_millis(500));
    group.take(many.0.id());
    sleep(Duration::from_millis(2500));
    group.take(running.0.id());
    let (status, said) = stderr_of(recorder);
    assert!(status.success(), "{said}");
    assert!(!said.contains("each needs an open file"), "{said}");
    // Chance gives so many bursts to half as many threads at least, of sixty.
    let metadata = place.contents().metadata;
    let [threads, bursts] = ["threads", "bursts"].map(|what| metadata["tracer"][what].as_u64().unwrap());
    assert!(bursts > 0 && 2 * threads >= bursts.min(60), "{bursts} bursts in {threads} threads: {said}");
    let modules = shares_of("module", &place.recording());
    assert!(modules.get("[unknown]").is_none_or(|share| *share < 0.05), "{modules:?}: {said}");
    let application = &place.contents().metadata["tracer"]["time"]["application_ns"];
    assert!(application.as_f64().is_some_and(|time| time > 1e9), "{application}: {said}");
}

#[test]
fn a_group_that_is_removed_ends_the_recording() {
    let Some((place, group)) = to_record_groups() else { return };
    let mut command = place.command(&[&CLOCK[..], &["--cgroup", group.name(), "--", "sleep", "60"]].concat());
    let recorder = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_for_recording_of_others(&place);
    sleep(Duration::from_millis(300));
    let name = group.name().to_owned();
    drop(group);
    let (status, said) = stderr_of(recorder);
    assert!(status.success(), "{said}");
    assert!(said.contains(&format!("no process is in the control group /{name}")), "{said}");
    assert!(said.contains(&format!("the control group /{name} was removed")), "{said}");
    let contents = place.contents();
    assert_eq!(contents.samples.len(), 0);
}

#[test]
fn files_of_a_rotation_know_what_came_in_before() {
    let Some((place, group)) = to_record_groups() else { return };
    let Some(moved) = spins_in(&place, "moved", WITH_ID) else { return };
    let running = Running(Command::new(&moved).arg("30").spawn().unwrap());
    let options = ["--cgroup", group.name(), "--rotate", "1s", "--duration", "4", "-o", "web.data"];
    let mut command = place.command(&[&CLOCK[..], &options].concat());
    let recorder = command.stderr(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_millis(500));
    group.take(running.0.id());
    let (status, said) = stderr_of(recorder);
    assert!(status.success(), "{said}");
    let mut files: Vec<PathBuf> = fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "data"));
    files.sort();
    assert!(files.len() >= 3, "{files:?}: {said}");
    for file in &files[1..] {
        assert!(shares(file)["moved"] > 0.95, "{}", file.display());
    }
}

/// A threaded group has some of the threads of a process.
#[test]
fn threads_of_a_threaded_group() {
    let (Some((place, group)), Some(threads)) = (to_record_groups(), programs::spin()) else { return };
    let some = group.make_in("some");
    if fs::write(some.0.join("cgroup.type"), "threaded").is_err() {
        testing::skip!(Kernel, "the kernel has no threaded groups");
        return;
    }
    let running = group.start(&threads, &["4", "20000"]);
    let process = running.0.id();
    let tasks = || -> Vec<u32> {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
        let mut tasks: Vec<u32> =
            tasks.map(|task| task.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
        tasks.sort_unstable();
        tasks
    };
    wait_for("threads", || tasks().len() > 2);
    let chosen = tasks()[1];
    fs::write(some.0.join("cgroup.threads"), chosen.to_string()).unwrap();
    for tracer in [&CLOCK[..], &["--tracer", "lookahead"]] {
        let path = some.0.to_str().unwrap();
        let output = place.run(&[tracer, &["--cgroup", path, "--duration", "1"]].concat());
        assert!(output.status.success(), "{}", errors(&output));
        let of: Vec<(u32, u32)> = place.contents().samples.into_keys().collect();
        assert_eq!(of, [(process, chosen)], "{}", errors(&output));
    }
    drop(running);
    drop(some);
}

#[test]
fn groups_that_are_none() {
    let Some((place, group)) = to_record_groups() else { return };
    let twins = [group.make_in("a"), group.make_in("b")].map(|group| (group.make_in("twin \\x2d ü"), group));
    let typed = group.name().replace("hbbp-test", "hbbp-tset");
    for (word, error) in [
        (typed.as_str(), format!("did you mean /{}", group.name())),
        ("no-such-group-anywhere", "there is no control group \"no-such-group-anywhere\" in /sys/fs/cgroup".to_owned()),
        (
            "twin \\x2d ü",
            format!(
                "is the name of 2 control groups: give the path of one, /{0}/a/twin \\x2d ü or /{0}/b/twin \\x2d ü",
                group.name()
            ),
        ),
        ("/etc", "there is no control group \"/etc\"".to_owned()),
    ] {
        let output = place.run(&["--cgroup", word, "--duration", "1"]);
        assert_eq!(output.status.code(), Some(1), "{word}: {}", errors(&output));
        assert!(errors(&output).contains(&error), "{word}: {}", errors(&output));
        assert!(!place.recording().exists());
    }
    for (options, error) in [
        (&["-i"][..], "-i cannot be with --cgroup"),
        (&["--tracer", "breakpoint"], "--cgroup goes with --tracer lookahead or none"),
        (&["--inject"], "--inject is for processes"),
        (&["--pmu", "simulated"], "no -p, -t, -a, --cgroup"),
        (&["-p", "1"], "cannot be used with"),
    ] {
        let output = place.run(&[&["--cgroup", group.name(), "--duration", "1"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", errors(&output));
        assert!(errors(&output).contains(error), "{options:?}: {}", errors(&output));
    }
    for (inner, outer) in twins {
        drop(inner);
        drop(outer);
    }
}
