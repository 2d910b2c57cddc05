//! Programs that the recorder does not find at their paths: in another root or mount namespace, deleted, replaced, made in memory. What is at
//! their paths for the recorder is another build, which must not be taken for them.

use serde_json::Value;

use super::cgroup::Group;
use super::*;

/// `program SECONDS`, with all its time in the function NAME, and in one of what was loaded before it, if something was.
pub const SPIN: &str = r#"
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((weak)) void loaded_before(void);

__attribute__((noinline)) void NAME(void) {
    for (int i = 0; i < 100000; i++)
        sink = sink * 3 + i;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    do {
        NAME();
        if (loaded_before)
            loaded_before();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - began.tv_sec) + (now.tv_nsec - began.tv_nsec) / 1e9 < seconds);
    return 0;
}
"#;

/// `in-memory PROGRAM ARGUMENT..`: executes a copy of a program that is in no folder.
pub const IN_MEMORY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv) {
    int from = open(argv[argc > 1], O_RDONLY), to = memfd_create("program", MFD_CLOEXEC);
    struct stat file;
    fstat(from, &file);
    for (off_t at = 0; at < file.st_size;)
        if (sendfile(to, from, &at, file.st_size - at) <= 0)
            return 1;
    fexecve(to, argv + 1, environ);
    return 1;
}
"#;

pub const WITH_ID: &str = "-Wl,--build-id=sha1";
pub const WITHOUT_ID: &str = "-Wl,--build-id=none";

/// A static program that spends its time in the function `name`.
pub fn spins_in(place: &Place, name: &str, id: &str) -> Option<PathBuf> {
    let source = place.path("named.c");
    fs::write(&source, SPIN).unwrap();
    testing::c_program(&place.path("built"), "named", &[source], &["-static", &format!("-DNAME={name}"), id])
}

/// A process that is ended and waited for when this goes.
pub struct Running(Child);

impl Running {
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Records as [`Place::run`] does, with copies in the folder `home`.
pub fn record(place: &Place, arguments: &[&str]) -> Value {
    record_by(place, Command::new(hbbp()), arguments)
}

/// The same without the copies that were made before.
pub fn record_anew(place: &Place, arguments: &[&str]) -> Value {
    forget_copies(place);
    record(place, arguments)
}

pub fn forget_copies(place: &Place) {
    let _ = fs::remove_dir_all(place.path("home"));
}

/// As [`record`] does, by a command that goes on as `hbbp`.
pub fn record_by(place: &Place, mut command: Command, arguments: &[&str]) -> Value {
    let output = command
        .args(["record", "--tracer", "none", "--ebs-event", "cpu-clock:u", "-F", "499", "-o"])
        .arg(place.recording())
        .args(arguments)
        .env("HOME", place.path("home"))
        .current_dir(place.folder())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    place.contents().metadata["mapped_files"].clone()
}

/// The functions that have a quarter of the counts or more; none where no code can be read, which is said.
pub fn hot(place: &Place) -> Vec<String> {
    hot_of(place, Command::new(hbbp()), &place.recording())
}

/// The same of a recording or an archive, by a command that goes on as `hbbp`.
pub fn hot_of(place: &Place, mut command: Command, recording: &Path) -> Vec<String> {
    command.args(["mix", "--no-cache", "--format", "json", "--top", "0", "--rows", "function"]).arg(recording);
    let output = command.env("HOME", place.path("home")).output().unwrap();
    if errors(&output).contains("the code of no module could be read") {
        return Vec::new();
    }
    assert!(output.status.success(), "{}", errors(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap().iter().filter(|row| row["share"].as_f64().unwrap() > 0.25);
    let mut names: Vec<String> = rows.map(|row| row["function"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Whether no hot code could be read: nothing at all, or no more than the dynamic linker, where a sample may be.
pub fn is_unread(place: &Place) -> bool {
    hot(place).iter().all(|function| function == "[unreadable]")
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        testing::skip!(Privileges, "needs root");
    }
    is_root
}

#[test]
fn a_program_of_another_root_is_not_that_of_this_one() {
    let Some(place) = Place::to_record() else { return };
    if !is_root() {
        return;
    }
    for id in [WITH_ID, WITHOUT_ID] {
        let (Some(inside), Some(outside)) = (spins_in(&place, "inside", id), spins_in(&place, "outside", id)) else {
            return;
        };
        let program = place.path("program");
        fs::copy(outside, &program).unwrap();
        let jail = place.path("jail");
        let there = jail.join(program.strip_prefix("/").unwrap());
        fs::create_dir_all(there.parent().unwrap()).unwrap();
        fs::copy(inside, &there).unwrap();
        let (jail, program) = (jail.to_str().unwrap(), program.to_str().unwrap());

        // Without a copy it is not known, and nothing else stands for it.
        record(&place, &["-N", "--", "chroot", jail, program, "1"]);
        assert!(is_unread(&place), "{id}: {:?}", hot(&place));
        let files = record(&place, &["--", "chroot", jail, program, "1"]);
        assert_eq!(hot(&place), ["inside"], "{id}");
        assert_eq!((&files["elsewhere"], &files["kept"]), (&1.into(), &1.into()), "{id}");
        assert!(files["copied_bytes"].as_u64().unwrap() > 0, "{id}");
        // The same again costs no copy.
        let files = record(&place, &["--", "chroot", jail, program, "1"]);
        assert_eq!((&files["kept"], &files["copied_bytes"]), (&1.into(), &0.into()), "{id}");
        // With its parent outside, both are told apart in one recording.
        let both = format!("{program} 1 & chroot {jail} {program} 1; wait");
        record(&place, &["--", "sh", "-c", &both]);
        assert_eq!(hot(&place), ["inside", "outside"], "{id}");
    }
}

#[test]
fn a_program_of_another_mount_namespace() {
    let Some(place) = Place::to_record() else { return };
    let (Some(inside), Some(outside)) = (spins_in(&place, "inside", WITH_ID), spins_in(&place, "outside", WITH_ID))
    else {
        return;
    };
    let program = place.path("program");
    fs::copy(outside, &program).unwrap();
    let script = format!("mount --bind {} {1} && exec {1} 1", inside.display(), program.display());
    let tried = Command::new("unshare").args(["-m", "sh", "-c", &script]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        testing::skip!(Privileges, "no mount namespace can be made");
        return;
    }
    record(&place, &["--", "unshare", "-m", "sh", "-c", &script]);
    assert_eq!(hot(&place), ["inside"]);
}

#[test]
fn a_program_that_was_deleted_or_replaced() {
    let Some(place) = Place::to_record() else { return };
    for id in [WITH_ID, WITHOUT_ID] {
        let (Some(inside), Some(outside)) = (spins_in(&place, "inside", id), spins_in(&place, "outside", id)) else {
            return;
        };
        let (program, new) = (place.path("program"), place.path("new"));
        // Before the recording, and while it goes on.
        for script in ["rm program", "mv new program", "(sleep 0.7; mv new program) &"] {
            fs::copy(&inside, &program).unwrap();
            fs::copy(&outside, &new).unwrap();
            let running = Running::start(Command::new(&program).arg("4"));
            assert!(Command::new("sh").args(["-c", script]).current_dir(place.folder()).status().unwrap().success());
            record(&place, &["-p", &running.id(), "--duration", "1.5"]);
            drop(running);
            assert_eq!(hot(&place), ["inside"], "{script} {id}");
        }
    }
}

/// As a linker or `cat` does it: the same inode has other bytes.
#[test]
fn a_program_that_was_written_in_its_place() {
    let Some(place) = Place::to_record() else { return };
    for id in [WITH_ID, WITHOUT_ID] {
        let (Some(first), Some(second)) = (spins_in(&place, "first", id), spins_in(&place, "second", id)) else {
            return;
        };
        fs::copy(first, place.path("program")).unwrap();
        fs::copy(second, place.path("new")).unwrap();
        // The first is nowhere any more.
        record(&place, &["--", "sh", "-c", "./program 1; sleep 0.5; cat new > program; ./program 1"]);
        assert_eq!(hot(&place), ["[unreadable]", "second"], "{id}");
    }
}

#[test]
fn a_program_that_was_made_in_memory() {
    let Some(place) = Place::to_record() else { return };
    let source = place.path("in-memory.c");
    fs::write(&source, IN_MEMORY).unwrap();
    let Some(in_memory) = testing::c_program(&place.path("built"), "in-memory", &[source], &[]) else { return };
    let Some(inside) = spins_in(&place, "inside", WITH_ID) else { return };
    let files = record(&place, &["--", in_memory.to_str().unwrap(), inside.to_str().unwrap(), "1"]);
    assert_eq!(hot(&place), ["inside"], "{files}");
    let copies: Vec<_> =
        fs::read_dir(place.path("home/.debug")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(copies.iter().any(|name| *name == *"memfd:program"), "{copies:?}");
}

#[test]
fn the_control_group_of_a_process_is_a_key() {
    let Some(place) = Place::to_record() else { return };
    let Some(inside) = spins_in(&place, "inside", WITH_ID) else { return };
    let Some(group) = Group::make() else { return };
    let (spin, procs) = (inside.display(), group.processes());
    let script = format!("{spin} 1 & sh -c 'echo $$ > {} && exec {spin} 1'; wait", procs.display());
    record(&place, &["--", "sh", "-c", &script]);
    let shares = |filter: &[&str]| -> BTreeMap<String, f64> {
        let mut mix = Command::new(hbbp());
        mix.args(["mix", "--no-cache", "--format", "json", "--rows", "cgroup"]).args(filter).arg(place.recording());
        let output = mix.output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| (row["cgroup"].as_str().unwrap().to_owned(), row["share"].as_f64().unwrap())).collect()
    };
    let all = shares(&[]);
    let is_own = |path: &str| path.ends_with(&format!("/{}", group.name()));
    let (path, share) = all.iter().find(|(path, _)| is_own(path)).unwrap_or_else(|| panic!("{all:?}"));
    assert!((0.3..0.7).contains(share), "{all:?}");
    let own = shares(&["--filter", &format!("cgroup={path}")]);
    assert_eq!(own.keys().collect::<Vec<_>>(), [path], "{own:?}");
}

/// `perf` finds what was kept, as it does what it keeps itself.
/// An id of its bytes is none that `perf` knows.
#[test]
fn perf_finds_programs_without_a_build_id() {
    let Some(place) = Place::to_record() else { return };
    if !testing::has("perf") {
        return;
    }
    let Some(inside) = spins_in(&place, "inside", WITHOUT_ID) else { return };
    let files = record(&place, &["--", inside.to_str().unwrap(), "1"]);
    assert!(files["by_path"][0]["id"].as_str().unwrap().starts_with("68626270"), "{files}");
    assert_eq!(hot(&place), ["inside"]);
    assert!(symbols_by_perf(&place).contains("inside"));
    // Another program at the same path is not taken for it.
    let Some(outside) = spins_in(&place, "outside", WITHOUT_ID) else { return };
    let moved = place.path("moved");
    fs::rename(&inside, &moved).unwrap();
    fs::rename(outside, &inside).unwrap();
    assert!(is_unread(&place), "{:?}", hot(&place));
    fs::rename(moved, &inside).unwrap();
    assert_eq!(hot(&place), ["inside"]);
}

/// What `perf report` prints of a recording.
fn symbols_by_perf(place: &Place) -> String {
    let mut perf = Command::new("perf");
    perf.args(["report", "--stdio", "--sort", "symbol", "-i"]).arg(place.recording());
    let output = perf.env("HOME", place.path("home")).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output)
}

#[test]
fn perf_finds_copies() {
    let Some(place) = Place::to_record() else { return };
    if !testing::has("perf") {
        return;
    }
    let Some(inside) = spins_in(&place, "inside", WITH_ID) else { return };
    let program = place.path("program");
    fs::copy(&inside, &program).unwrap();
    let running = Running::start(Command::new(&program).arg("3"));
    fs::remove_file(&program).unwrap();
    record(&place, &["-p", &running.id(), "--duration", "1"]);
    drop(running);
    let said = symbols_by_perf(&place);
    assert!(said.contains("inside"), "{said}");
}
