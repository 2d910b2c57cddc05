//! Programs whose own file is not what was executed, or not what is at the name by which they were executed: those that the dynamic linker is
//! given, what is loaded before them, symbolic links, and files in memory.

use super::containers::{
    IN_MEMORY, Running, SPIN, WITH_ID, WITHOUT_ID, forget_copies, hot, hot_of, is_unread, record_anew, record_by,
    spins_in,
};
use super::*;

/// What is loaded before the program, with its time in the function NAME.
const LIBRARY: &str = r#"
static volatile unsigned long sink;

__attribute__((noinline)) static void NAME(void) {
    for (int i = 0; i < 100000; i++)
        sink = sink * 3 + i;
}

void loaded_before(void) {
    NAME();
}
"#;

const LINKER: &str = "/lib64/ld-linux-x86-64.so.2";

/// A program and a library with their times in these functions.
pub fn built(place: &Place, [own, library]: [&str; 2], id: &str) -> Option<[PathBuf; 2]> {
    let make = |name: &str, source: &str, function: &str, flags: &[&str]| {
        let file = place.path(&format!("{name}.c"));
        fs::write(&file, source).unwrap();
        let defined = format!("-DNAME={function}");
        testing::c_program(&place.path("built"), name, &[file], &[&[id, &defined], flags].concat())
    };
    Some([
        make("program", SPIN, own, &["-fPIE", "-pie"])?,
        make("library.so", LIBRARY, library, &["-shared", "-fPIC"])?,
    ])
}

/// Puts them where they are executed.
fn put(place: &Place, files: &[PathBuf; 2]) {
    for (file, name) in files.iter().zip(["program", "library.so"]) {
        let _ = fs::remove_file(place.path(name));
        fs::copy(file, place.path(name)).unwrap();
    }
}

fn wait_for_library(running: &Running) {
    let maps = format!("/proc/{}/maps", running.id());
    wait_for("the program", || fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("/library.so")));
}

#[test]
fn a_program_that_the_dynamic_linker_is_given() {
    let Some(place) = Place::to_record() else { return };
    let can_load = Command::new(LINKER).arg("--help").output();
    if !can_load.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("--preload")) {
        testing::skip!(ToolVersion, "{LINKER} has no --preload");
        return;
    }
    for id in [WITH_ID, WITHOUT_ID] {
        let (Some(first), Some(second)) = (built(&place, ["own", "before"], id), built(&place, ["new", "newer"], id))
        else {
            return;
        };
        let put = |files: &[PathBuf; 2]| put(&place, files);
        put(&first);
        record_anew(&place, &["--", LINKER, "--preload", "./library.so", "./program", "1"]);
        assert_eq!(hot(&place), ["before", "own"], "{id}");
        record_anew(&place, &["--", "env", "LD_PRELOAD=./library.so", "./program", "1"]);
        assert_eq!(hot(&place), ["before", "own"], "{id}");
        // Both are replaced while they run: before the recording, and in it.
        for wait in [0.0, 0.7] {
            put(&first);
            let mut linker = Command::new(LINKER);
            linker.args(["--preload", "./library.so", "./program", "60"]).current_dir(place.folder());
            let running = Running::start(&mut linker);
            wait_for_library(&running);
            let record = |place: &Place| record_anew(place, &["-p", &running.id(), "--duration", "1.5"]);
            let files = if wait == 0.0 {
                put(&second);
                record(&place)
            } else {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        wait_for_recording_of_others(&place);
                        put(&second);
                    });
                    record(&place)
                })
            };
            drop(running);
            assert_eq!(hot(&place), ["before", "own"], "{wait} {id} {files}");
            assert_eq!(files["unidentified"], 0, "{wait} {id} {files}");
        }
    }
}

/// The link is moved to another build while the first one runs: both are told apart, by the files and not by the name.
#[test]
fn a_symbolic_link_that_is_moved() {
    let Some(place) = Place::to_record() else { return };
    for id in [WITH_ID, WITHOUT_ID] {
        let (Some(first), Some(second)) = (spins_in(&place, "first", id), spins_in(&place, "second", id)) else {
            return;
        };
        for (file, name) in [(&first, "one"), (&second, "two")] {
            let _ = fs::remove_file(place.path(name));
            fs::copy(file, place.path(name)).unwrap();
        }
        let script = "ln -sfn one link; ./link 1 & sleep 0.5; ln -sfn two link; ./link 1; wait";
        let files = record_anew(&place, &["--", "sh", "-c", script]);
        assert_eq!(hot(&place), ["first", "second"], "{id} {files}");
        // Deleted, too: the link has another build, and the file is nowhere but in the process.
        let script = "ln -sfn one link; ./link 5 & sleep 0.5; ln -sfn two link; rm one; wait";
        let files = record_anew(&place, &["--", "sh", "-c", script]);
        assert_eq!(hot(&place), ["first"], "{id} {files}");
        // A copy that was removed is missed, and another file can be named.
        forget_copies(&place);
        assert!(is_unread(&place), "{id}: {:?}", hot(&place));
        let mut mix = Command::new(hbbp());
        mix.args(["mix", "--no-cache", "--rows", "function", "--binary"]).arg(format!("one={}", first.display()));
        let output = mix.arg(place.recording()).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("first"), "{id}: {}", errors(&output));
    }
}

/// All of one name: paths of files in memory say nothing.
#[test]
fn programs_in_memory_of_one_name_are_told_apart() {
    let Some(place) = Place::to_record() else { return };
    let source = place.path("in-memory.c");
    fs::write(&source, IN_MEMORY).unwrap();
    let Some(in_memory) = testing::c_program(&place.path("built"), "in-memory", &[source], &[]) else { return };
    for id in [WITH_ID, WITHOUT_ID] {
        let (Some(first), Some(second)) = (spins_in(&place, "first", id), spins_in(&place, "second", id)) else {
            return;
        };
        let of = |program: &Path| format!("{} {} 1", in_memory.display(), program.display());
        let script = format!("{} & {}; wait", of(&first), of(&second));
        let files = record_anew(&place, &["--", "sh", "-c", &script]);
        assert_eq!(hot(&place), ["first", "second"], "{id} {files}");
        let running = Running::start(Command::new(&in_memory).arg(&first).arg("60"));
        let program = format!("/proc/{}/exe", running.id());
        wait_for("the program", || fs::read_link(&program).is_ok_and(|exe| exe.to_string_lossy().contains("memfd:")));
        record_anew(&place, &["-p", &running.id(), "--duration", "1"]);
        drop(running);
        assert_eq!(hot(&place), ["first"], "{id}");
    }
}

/// Who may not look at what others have mapped finds the executable all the same. Of a library that was deleted, nothing else is left.
#[test]
fn an_unprivileged_user_finds_the_executable_of_what_was_replaced() {
    let Some(place) = Place::to_record() else { return };
    let drop_to = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];
    let usable = Command::new("setpriv").args(drop_to).arg("true").status().is_ok_and(|status| status.success());
    let paranoid: i32 = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap().trim().parse().unwrap();
    if !usable || paranoid > 2 {
        testing::skip!(Privileges, "needs setpriv, root and perf_event_paranoid 2 (it is {paranoid})");
        return;
    }
    let recorder = place.path("hbbp");
    fs::copy(hbbp(), &recorder).unwrap();
    let home = place.path("home");
    fs::create_dir(&home).unwrap();
    for folder in [place.folder(), &home] {
        assert!(Command::new("chown").arg("65534:65534").arg(folder).status().unwrap().success());
    }
    for id in [WITH_ID, WITHOUT_ID] {
        let (Some(first), Some(second)) = (built(&place, ["own", "before"], id), built(&place, ["new", "newer"], id))
        else {
            return;
        };
        let put = |files: &[PathBuf; 2]| put(&place, files);
        put(&first);
        let by_user = |program: &Path| {
            let mut command = Command::new("setpriv");
            command.args(drop_to).arg(program).current_dir(place.folder());
            command
        };
        let running = Running::start(by_user(Path::new("env")).args(["LD_PRELOAD=./library.so", "./program", "60"]));
        wait_for_library(&running);
        put(&second);
        let files = record_by(&place, by_user(&recorder), &["-p", &running.id(), "--duration", "1"]);
        drop(running);
        assert_eq!(files["unidentified"], 1, "{files}");
        let output = by_user(&recorder)
            .args(["mix", "-v", "--no-cache", "--rows", "function,module"])
            .arg(place.recording())
            .env("HOME", &home)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output);
        assert!(said.contains("nothing tells which file it was"), "{said}");
        assert_eq!(hot_of(&place, by_user(&recorder), &place.recording()), ["[unreadable]", "own"], "{id} {files}");

        // In a mount namespace of their own, libraries that are there are found by the root of the process.
        put(&first);
        fs::copy(&second[1], place.path("library.so")).unwrap();
        fs::copy(&first[1], place.path("inner.so")).unwrap();
        let script = "mount --bind inner.so library.so; exec env LD_PRELOAD=./library.so ./program 60";
        let in_namespace = |script: &str| {
            let mut command = by_user(Path::new("unshare"));
            command.args(["--user", "--map-root-user", "--mount", "sh", "-ec", script]);
            command
        };
        if !in_namespace(&script.replace("60", "0")).status().is_ok_and(|status| status.success()) {
            testing::skip!(Privileges, "a user can make no namespaces");
            return;
        }
        let running = Running::start(&mut in_namespace(script));
        wait_for_library(&running);
        let files = record_by(&place, by_user(&recorder), &["-p", &running.id(), "--duration", "1"]);
        drop(running);
        assert_eq!(hot_of(&place, by_user(&recorder), &place.recording()), ["before", "own"], "{id} {files}");
    }
}
