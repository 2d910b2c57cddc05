//! Limits that leave no room for a recording, or not for all of it.

use std::fs;
#[cfg(feature = "simulated-pmu")]
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use perfdata::{Chunk, Recording};

use crate::{Place, SOME_WORK, errors, has_full_disk, hbbp, programs};

/// `hbbp record ARGS` under a limit, as `ulimit` of the shell takes it.
fn limited(place: &Place, limit: &str, args: &[&str]) -> Output {
    let script = format!("ulimit {limit}; exec \"$0\" record \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(hbbp()).args(args).current_dir(place.folder());
    command.output().unwrap()
}

/// Records of a recording that may be cut off.
fn records(file: &Path) -> usize {
    let recording = Recording::open(file).unwrap();
    assert!(!recording.events().is_empty());
    let (mut chunks, mut chunk, mut records) = (recording.chunks(), Chunk::new(), 0);
    while chunks.next_into(&mut chunk).unwrap() {
        records += chunk.records().count();
    }
    records
}

/// The command is not to blame, and does not run.
#[test]
fn too_few_files_are_said_of_the_recording() {
    let Some(place) = Place::to_record() else { return };
    for files in ["4", "6", "8", "10"] {
        let output = limited(&place, &format!("-n {files}"), &["--", "touch", "ran"]);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{files}: {said}");
        assert!(said.contains(&format!("no more than {files} are allowed")) && said.contains("ulimit -n"), "{said}");
        assert!(!said.contains("touch") && !place.path("ran").exists() && !place.recording().exists(), "{said}");
    }
    // As many as it says are enough; it says more once it knows its events.
    let (mut needed, mut tries) = ("8".to_owned(), 0);
    loop {
        let output = limited(&place, &format!("-n {needed}"), &["--", "true"]);
        let said = errors(&output);
        if output.status.success() {
            assert!(!said.contains("Too many open files"), "{needed}: {said}");
            break;
        }
        needed = said.split("this needs ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        tries += 1;
        assert!(tries <= 2, "{said}");
    }
}

/// Each thread of a command has a clock of its own.
#[test]
fn where_few_files_may_be_open_some_threads_have_no_bursts() {
    let (Some(place), Some(threads)) = (Place::to_trace(), programs::spin()) else { return };
    let args = ["--tracer", "lookahead", "--duration", "3", "--", threads.to_str().unwrap(), "60", "2000"];
    let output = limited(&place, "-n 50", &args);
    let said = errors(&output);
    assert!(said.contains("each needs an open file"), "{said}");
    let tracer = &place.contents().metadata["tracer"];
    assert!(tracer["threads"].as_u64().is_some_and(|threads| (2..60).contains(&threads)), "{tracer:#}");
}

/// A file that may not grow is a full disk: the command runs on, its status counts, and what is written can be read.
#[test]
fn a_limit_of_file_sizes_ends_the_recording_and_not_the_command() {
    let Some(place) = Place::to_record() else { return };
    // In `sh`, units of 512 bytes.
    for (status, code) in [("7", 7), ("0", 1)] {
        let look = format!("{SOME_WORK}: > ran; grep SigIgn /proc/self/status; exit {status}");
        let output = limited(&place, "-f 6", &["--expect", "seconds", "--", "sh", "-c", &look]);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("hbbp.data is not complete: ") && said.contains("File too large"), "{said}");
        let mask = String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("SigIgn:").trim().to_owned();
        assert_eq!(u64::from_str_radix(&mask, 16).unwrap() >> 24 & 1, 0, "the command's SIGXFSZ is as it was: {mask}");
        assert!(place.path("ran").exists());
        assert!(records(&place.recording()) > 0);
        fs::remove_file(place.path("ran")).unwrap();
    }
}

#[test]
fn on_a_full_disk_the_status_is_the_commands() {
    let Some(place) = Place::to_record() else { return };
    if !has_full_disk() {
        return;
    }
    for (script, code) in [("exit 7", 7), ("kill -KILL $$", 137), ("exit 0", 1)] {
        let output = place.run(&["-o", "/dev/full", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}: {}", errors(&output));
        assert!(errors(&output).contains("/dev/full is not complete: "), "{}", errors(&output));
    }
}

/// What cannot be written is no reason to wait for a command for longer than was asked.
#[test]
fn on_a_full_disk_the_time_is_kept() {
    let Some(place) = Place::to_record() else { return };
    if !has_full_disk() {
        return;
    }
    // An hour, which the test does not wait for; the time ends it.
    let output = place.run(&["-o", "/dev/full", "--duration", "0.5", "--", "sleep", "3600"]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("/dev/full is not complete: "), "{}", errors(&output));
}

/// What is written beside a recording is none of the command's, whose status counts.
#[cfg(feature = "simulated-pmu")]
#[test]
fn exact_counts_that_cannot_be_written_leave_the_status() {
    let Some(place) = Place::to_record() else { return };
    let simulated = ["--pmu", "simulated", "--expect", "seconds", "--truth"];
    let run = |truth: &str, script: &str| place.run(&[&simulated[..], &[truth, "--", "sh", "-c", script]].concat());
    let refused = run("no/such/folder", ": > ran");
    assert_eq!(refused.status.code(), Some(1), "{}", errors(&refused));
    assert!(!place.path("ran").exists(), "nothing runs for counts that cannot be kept");
    for (script, code) in [("exit 7", 7), ("exit 0", 1)] {
        let output = run("/dev/full", script);
        assert_eq!(output.status.code(), Some(code), "{}", errors(&output));
        assert!(errors(&output).contains("/dev/full"), "{}", errors(&output));
    }
    let streamed = run("-", "echo the command speaks");
    assert!(streamed.status.success(), "{}", errors(&streamed));
    let document: serde_json::Value =
        serde_json::from_slice(&streamed.stdout).expect("counts alone are on standard output");
    assert_eq!(document["schema"], "hbbp-executions/1");
    assert!(errors(&streamed).contains("the command speaks"));
}

/// Exact counts of a run before stay until a command runs again; of one whose recording ends early there are none.
#[cfg(feature = "simulated-pmu")]
#[test]
fn exact_counts_of_another_run_are_lost_only_to_a_run() {
    let Some(place) = Place::to_record() else { return };
    const BEFORE: &str = "counts of a run before, longer than what comes next";
    fs::write(place.path("no-interpreter"), "#!/does/not/exist\n").unwrap();
    fs::set_permissions(place.path("no-interpreter"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(place.path("before"), BEFORE).unwrap();
    let run = |truth: &str, output: &str, command: &str| {
        place.run(&["--pmu", "simulated", "--truth", truth, "-o", output, "--", command])
    };
    for (output, command) in
        [("data", "no-such-program"), ("data", "./no-interpreter"), ("no/such/folder/data", "true")]
    {
        for truth in ["before", "new"] {
            let run = run(truth, output, command);
            assert!(!run.status.success(), "{output} {command}: {}", errors(&run));
            assert!(!errors(&run).contains("exact counts"), "nothing ran: {}", errors(&run));
        }
        assert_eq!(fs::read_to_string(place.path("before")).unwrap(), BEFORE, "{output} {command}");
        assert!(!place.path("new").exists(), "{output} {command}");
    }
    if has_full_disk() {
        let run = run("before", "/dev/full", "true");
        assert!(errors(&run).contains("before: no exact counts, for "), "{}", errors(&run));
        assert_eq!(fs::read_to_string(place.path("before")).unwrap(), "");
        fs::write(place.path("before"), BEFORE.repeat(10_000)).unwrap();
    }
    let run = run("before", "data", "true");
    assert!(run.status.success(), "{}", errors(&run));
    let document: serde_json::Value = serde_json::from_slice(&fs::read(place.path("before")).unwrap()).unwrap();
    assert_eq!(document["schema"], "hbbp-executions/1");
}

/// A simulation that ends early may let the command go in the midst of a step, whose trap must not reach it.
#[cfg(feature = "simulated-pmu")]
#[test]
fn on_a_full_disk_a_simulated_command_runs_on() {
    let Some(place) = Place::to_record() else { return };
    if !has_full_disk() {
        return;
    }
    for _ in 0..20 {
        let output = place.run(&["--pmu", "simulated", "-o", "/dev/full", "--", "sh", "-c", "exit 7"]);
        assert_eq!(output.status.code(), Some(7), "{}", errors(&output));
    }
}

/// Too little memory is said before anything begins, and no allocation fails in the midst of it.
#[test]
fn too_little_address_space_is_said() {
    let Some(place) = Place::to_record() else { return };
    let mut refused = 0;
    for kib in (50_000..=200_000).step_by(10_000) {
        let work = format!("{SOME_WORK}: > ran");
        let output = limited(&place, &format!("-v {kib}"), &["--", "sh", "-c", &work]);
        let said = errors(&output);
        assert_eq!(output.status.signal(), None, "{kib}: {said}");
        if output.status.success() {
            place.contents();
            fs::remove_file(place.path("ran")).unwrap();
        } else if output.status.code() == Some(1) {
            assert!(said.contains("MiB of address space") && said.contains(&format!("ulimit -v {kib}")), "{said}");
            assert!(!place.path("ran").exists(), "{kib}: {said}");
            refused += 1;
        } else {
            assert!(said.contains("shared libraries"), "{kib}: the program itself finds no room: {said}");
        }
    }
    assert!(refused > 0, "the range begins too high");
    let output = limited(&place, "-v 150000", &["-m", "16384", "--", "true"]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("for its rings"), "{}", errors(&output));
}
