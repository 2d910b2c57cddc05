//! What an analysis found is kept: reports that use it are the same to the byte, and none uses what is not of its recording, binaries,
//! options and executable.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant, SystemTime};

use support::{Fixture, hbbp};
use tempfile::TempDir;

/// A recording that is large enough, and a folder for what is kept.
struct Place {
    folder: TempDir,
    recording: PathBuf,
    binary: String,
}

/// Clocks of file systems are coarse: what is kept depends on no binary that changed a moment ago.
fn wait_until_binaries_are_old() {
    std::thread::sleep(OLD + Duration::from_millis(200));
}

/// So long after its change a file is old.
const OLD: Duration = Duration::from_secs(2);

impl Place {
    /// Small recordings are made longer, after their end.
    fn new(fixture: &Fixture) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("hbbp.data");
        fs::copy(&fixture.recording, &recording).unwrap();
        let file = File::options().write(true).open(&recording).unwrap();
        file.set_len(file.metadata().unwrap().len() + (1 << 20)).unwrap();
        Place { folder, recording, binary: fixture.binary_option() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn with(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.args(arguments).env("XDG_CACHE_HOME", self.path("cache")).current_dir(self.folder.path());
        command
    }

    /// Runs a command; the recording is `hbbp.data` here.
    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.with(hbbp(), arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// The same with the binary.
    fn analyse(&self, arguments: &[&str]) -> Output {
        self.run(&[arguments, &["--binary", &self.binary]].concat())
    }

    /// Whether a mix with these options is made of what was kept.
    fn hits(&self, arguments: &[&str]) -> bool {
        says_so(&self.run(&[&["mix", "-v"], arguments].concat()))
    }

    fn mix_hits(&self, arguments: &[&str]) -> bool {
        self.hits(&[arguments, &["--binary", &self.binary]].concat())
    }

    /// What is kept.
    fn entries(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("cache/hbbp/analyses")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

fn says_so(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stdout).lines().any(|line| line.starts_with("# cache "))
}

fn same(one: &Output, other: &Output, what: &str) {
    assert_eq!(one.status, other.status, "{what}");
    assert_eq!(String::from_utf8_lossy(&one.stderr), String::from_utf8_lossy(&other.stderr), "{what}");
    assert!(one.stdout == other.stdout, "{what}: standard output differs");
}

#[test]
fn every_report_is_the_same_with_and_without() {
    let commands: &[&[&str]] = &[
        &["mix"],
        &["mix", "--format", "csv", "--rows", "process,thread,function"],
        &["mix", "--format", "json", "--rows", "phase,module", "--columns", "packing"],
        &["blocks", "--format", "json"],
        &["annotate", "--format", "json"],
        &["annotate", "--format", "csv"],
        &["export", "--format", "bolt", "-o", "-"],
        &["export", "--format", "llvm-profgen", "-o", "-"],
        &["export", "--format", "folded", "-o", "-"],
        &["diff", "hbbp.data", "hbbp.data", "--format", "json"],
        &["mix", "--core", "zen-2"],
        &["mix", "--model", "published"],
    ];
    // A page of several threads tells them apart.
    for (fixture, entries) in [(Fixture::bursts("threads"), 9), (Fixture::simulated("ivy-bridge"), 8)] {
        let place = Place::new(&fixture);
        for command in commands {
            let without = place.analyse(&[*command, &["--no-cache"]].concat());
            for time in ["first", "second"] {
                same(&without, &place.analyse(command), &format!("{}: {command:?}, {time}", fixture.name));
            }
        }
        let page = |more: &[&str]| place.analyse(&[&["report", "-o", "-"], more].concat());
        let without = page(&["--no-cache"]);
        ["first", "second"].iter().for_each(|time| same(&without, &page(&[]), &format!("{}: {time}", fixture.name)));
        // Blocks, processes, phases; branches; contexts; another core, another model; threads in phases; a page.
        assert_eq!(place.entries().len(), entries, "{}", fixture.name);
    }
}

#[test]
fn options_have_entries_of_their_own_and_threads_have_not() {
    let place = Place::new(&Fixture::bursts("objects"));
    assert!(!place.mix_hits(&["--no-cache"]));
    assert!(place.entries().is_empty());
    assert!(!place.mix_hits(&[]));
    for same in [&[][..], &["--threads", "1"], &["--threads", "3"], &["--rows", "function"], &["--filter", "isa=base"]]
    {
        assert!(place.mix_hits(same), "{same:?}");
    }
    assert!(!place.mix_hits(&["--no-cache"]));
    for other in [
        &["--rows", "process"][..],
        &["--rows", "thread"],
        &["--rows", "phase"],
        &["--core", "zen-3"],
        &["--model", "published"],
    ] {
        assert!(!place.mix_hits(other), "{other:?}");
        assert!(place.mix_hits(other), "{other:?}");
    }
    assert!(!place.hits(&["--binary", place.binary.split_once('=').unwrap().1]), "the binary stands for no name");
}

/// What has branches is used for a mix, too.
#[test]
fn a_mix_is_made_of_what_annotate_found() {
    let place = Place::new(&Fixture::bursts("objects"));
    place.analyse(&["annotate"]);
    assert!(place.mix_hits(&[]));
    for command in [&["mix", "--format", "json"][..], &["blocks", "--format", "json"]] {
        same(&place.analyse(&[command, &["--no-cache"]].concat()), &place.analyse(command), &format!("{command:?}"));
    }
    assert_eq!(place.entries().len(), 1);
}

#[test]
fn a_recording_is_known_by_its_content() {
    let place = Place::new(&Fixture::bursts("objects"));
    assert!(!place.mix_hits(&[]));
    let copy = place.path("copy.data");
    fs::copy(&place.recording, &copy).unwrap();
    assert!(place.mix_hits(&["-i", "copy.data"]));
    let file = File::options().read(true).write(true).open(&copy).unwrap();
    let (length, time) = (file.metadata().unwrap().len(), file.metadata().unwrap().modified().unwrap());
    for at in [length - 1, length / 2] {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
        file.set_modified(time).unwrap();
        assert!(!place.mix_hits(&["-i", "copy.data"]), "byte {at} of {length}");
    }
    assert!(place.mix_hits(&[]));
}

/// One that was read before is known by its state; whoever changes a byte and puts the time back makes another state.
#[test]
fn a_recording_in_the_same_state_is_not_read_again() {
    let place = Place::new(&Fixture::bursts("objects"));
    wait_until_binaries_are_old();
    assert!(!place.mix_hits(&[]));
    let contents = || fs::read_dir(place.path("cache/hbbp/contents")).unwrap().count();
    assert_eq!(contents(), 1);
    assert!(place.mix_hits(&[]));
    let file = File::options().read(true).write(true).open(&place.recording).unwrap();
    let (length, time) = (file.metadata().unwrap().len(), file.metadata().unwrap().modified().unwrap());
    // Between the pieces that are looked at all the same, after the end of the records.
    let at = length / 62 * 59;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    let write = |byte: u8| {
        file.write_all_at(&[byte], at).unwrap();
        file.set_modified(time).unwrap();
    };
    write(byte[0] ^ 1);
    assert!(!place.mix_hits(&[]), "a byte was changed in place");
    write(byte[0]);
    assert!(place.mix_hits(&[]), "it is what it was");
    wait_until_binaries_are_old();
    assert!(place.mix_hits(&[]));
    assert_eq!(contents(), 2, "another state of the same content");
}

#[test]
fn a_binary_that_comes_goes_or_is_replaced_is_seen() {
    let fixture = Fixture::bursts("objects");
    let place = Place::new(&fixture);
    let (root, outside) = (place.path("root"), place.path("outside"));
    [&root, &outside].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let found = root.join(fixture.recorded_as);
    let symfs = ["--symfs", "root", "--rows", "module"];
    let is_right = |what: &str| {
        let mix = |more: &[&str]| place.run(&[&["mix", "--format", "json"], &symfs[..], more].concat());
        same(&mix(&["--no-cache"]), &mix(&[]), what);
    };
    assert!(!place.hits(&symfs));
    assert!(place.hits(&symfs), "without any binary");

    fs::copy(&fixture.binary, &found).unwrap();
    is_right("the binary appeared");
    wait_until_binaries_are_old();
    place.hits(&symfs);
    assert!(place.hits(&symfs), "with the binary");

    // One byte of the code is another one.
    let other = outside.join("other");
    let mut bytes = fs::read(&fixture.binary).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&other, bytes).unwrap();
    let times = fs::metadata(&found).unwrap().modified().unwrap();
    File::options().write(true).open(&other).unwrap().set_modified(times).unwrap();
    fs::rename(&other, &found).unwrap();
    assert!(!place.hits(&symfs), "the binary was replaced by one of the same size and time");
    is_right("the binary was replaced");

    fs::copy(&fixture.binary, &found).unwrap();
    File::options().write(true).open(&found).unwrap().set_modified(times).unwrap();
    is_right("the binary was written over");
    fs::remove_file(&found).unwrap();
    is_right("the binary is gone");
}

#[test]
fn a_debug_file_that_appears_is_seen() {
    let fixture = Fixture::bursts("objects");
    let place = Place::new(&fixture);
    let symfs = ["--symfs", "root"];
    fs::create_dir(place.path("root")).unwrap();
    fs::copy(&fixture.binary, place.path("root").join(fixture.recorded_as)).unwrap();
    let stripped = Command::new("strip").arg(place.path("root").join(fixture.recorded_as)).status();
    let Ok(true) = stripped.map(|status| status.success()) else {
        testing::skip!(Tool, "strip is not installed");
        return;
    };
    wait_until_binaries_are_old();
    assert_eq!([place.hits(&symfs), place.hits(&symfs)], [false, true], "with a stripped binary");
    let image = analyzer::code::Image::open(&fixture.binary).unwrap();
    let id = image.build_id().expect("the program has a build id").to_string();
    let (folder, name) = id.split_at(2);
    let debug = place.path("root/usr/lib/debug/.build-id").join(folder);
    fs::create_dir_all(&debug).unwrap();
    fs::copy(&fixture.binary, debug.join(format!("{name}.debug"))).unwrap();
    assert!(!place.hits(&symfs));
}

#[test]
fn another_executable_uses_nothing() {
    let place = Place::new(&Fixture::bursts("objects"));
    assert!(!place.mix_hits(&[]));
    let other = place.path("other-hbbp");
    fs::copy(env!("CARGO_BIN_EXE_hbbp"), &other).unwrap();
    let mix = || place.with(Command::new(&other), &["mix", "-v", "--binary", &place.binary]).output().unwrap();
    assert_eq!([mix(), mix()].each_ref().map(says_so), [false, true]);
    assert!(place.mix_hits(&[]));
}

#[test]
fn damaged_entries_are_found_anew() {
    let place = Place::new(&Fixture::bursts("objects"));
    let without = place.analyse(&["mix", "--no-cache", "--format", "json"]);
    place.analyse(&["mix"]);
    let [entry] = &place.entries()[..] else { panic!("one entry") };
    let whole = fs::read(entry).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    let last = whole.len() - 1;
    let mut damaged: Vec<Vec<u8>> = [0, 8, 12, 44, last / 2].map(flipped).to_vec();
    damaged.extend([0, 75, last].map(|length| whole[..length].to_vec()));
    damaged.push([&whole[..], b"\0"].concat());
    for (index, bytes) in damaged.iter().enumerate() {
        fs::write(entry, bytes).unwrap();
        same(&without, &place.analyse(&["mix", "--format", "json"]), &format!("damage {index}"));
        assert!(fs::read(entry).unwrap() == whole, "damage {index} is not repaired");
    }
    File::options().write(true).open(entry).unwrap().set_len(1 << 40).unwrap();
    same(&without, &place.analyse(&["mix", "--format", "json"]), "a length of 1 TiB");
    assert!(place.mix_hits(&[]));
    fs::remove_file(entry).unwrap();
    fs::create_dir(entry).unwrap();
    same(&without, &place.analyse(&["mix", "--format", "json"]), "a folder in its place");
}

#[test]
fn several_at_the_same_time_are_no_trouble() {
    let place = Place::new(&Fixture::bursts("objects"));
    let arguments = ["mix", "--format", "json", "--binary", &place.binary];
    let expected = place.run(&[&arguments[..], &["--no-cache"]].concat());
    let running: Vec<_> = (0..4)
        .map(|_| {
            let mut command = place.with(hbbp(), &arguments);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for process in running {
        same(&expected, &process.wait_with_output().unwrap(), "one of four");
    }
    assert!(place.mix_hits(&[]));
    assert_eq!(place.entries().len(), 1);
}

#[test]
fn without_a_folder_all_works_as_ever() {
    let place = Place::new(&Fixture::bursts("objects"));
    let arguments = ["mix", "--format", "json", "--binary", &place.binary];
    let expected = place.run(&[&arguments[..], &["--no-cache"]].concat());
    fs::write(place.path("file"), "").unwrap();
    let file = place.path("file");
    let no_home = [(None, None), (None, Some("/proc/1"))];
    let no_folder = [file.to_str().unwrap(), "/proc", "relative"].map(|folder| (Some(folder), None));
    for environment in no_home.into_iter().chain(no_folder) {
        let mut command = place.with(hbbp(), &arguments);
        for (variable, value) in [("XDG_CACHE_HOME", environment.0), ("HOME", environment.1)] {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        same(&expected, &command.output().unwrap(), &format!("{environment:?}"));
    }
    assert!(!Path::new("relative").exists() && !place.path("relative").exists());
}

/// Small recordings, and those that nobody can come back to.
#[test]
fn what_does_not_pay_is_not_kept() {
    let fixture = Fixture::bursts("objects");
    let place = Place::new(&fixture);
    let small = Fixture::simulated("ivy-bridge").recording;
    let small = small.to_str().unwrap();
    for arguments in
        [&["mix", "-", "--rows", "module"][..], &["diff", "-", small], &["mix", "-i", small, "--rows", "module"]]
    {
        let mut command = place.with(hbbp(), arguments);
        let output = command.stdin(File::open(&place.recording).unwrap()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(place.entries().is_empty());
}

/// Of `hbbp report` the page is kept as well, as long as the binary and the source that it shows are as they were.
#[test]
fn pages_are_made_anew_when_anything_that_they_show_changes() {
    let fixture = Fixture::bursts("objects");
    let place = Place::new(&fixture);
    let (root, source) = (place.path("root"), place.path("root/fixtures/objects.cpp"));
    fs::create_dir_all(root.join("fixtures")).unwrap();
    fs::copy(&fixture.binary, root.join(fixture.recorded_as)).unwrap();
    wait_until_binaries_are_old();
    place.run(&["export", "--format", "folded", "-o", "-", "--symfs", "root"]);
    let analysis = place.entries().pop().unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(1000);
    // Whether a page was made without a look at the analysis. It is as without anything kept.
    let is_kept = |more: &[&str]| {
        File::options().write(true).open(&analysis).unwrap().set_modified(long_ago).unwrap();
        let page = |most: &[&str]| place.run(&[&["report", "-o", "-", "--symfs", "root"], more, most].concat());
        let made = page(&[]);
        let is_kept = fs::metadata(&analysis).unwrap().modified().unwrap() == long_ago;
        same(&page(&["--no-cache"]), &made, &format!("{more:?}"));
        is_kept
    };
    assert_eq!([is_kept(&[]), is_kept(&[])], [false, true]);
    fs::copy(&place.recording, place.path("other.data")).unwrap();
    fs::write(
        place.path("own.toml"),
        "name = \"own\"\ndescription = \"Own.\"\nother = \"none\"\n[[group]]\nname = \"x87\"\nisa = \"x87\"\n",
    )
    .unwrap();
    for other in [&["--top", "1"][..], &["--no-source"], &["other.data"], &["--taxonomy", "own.toml"]] {
        assert_eq!([is_kept(other), is_kept(other)], [false, true], "{other:?}");
    }
    let write = |text: &str| fs::write(&source, text).unwrap();
    write(&"one;\n".repeat(200));
    let written = Instant::now();
    assert!(!is_kept(&[]), "the source appeared");
    let is_kept_at_once = is_kept(&[]);
    // On a busy machine two pages take longer than it is new.
    assert!(!is_kept_at_once || written.elapsed() > OLD, "it could change again");
    wait_until_binaries_are_old();
    is_kept(&[]);
    assert!(is_kept(&[]), "it is old");
    let times = fs::metadata(&source).unwrap().modified().unwrap();
    write(&"two;\n".repeat(200));
    File::options().write(true).open(&source).unwrap().set_modified(times).unwrap();
    assert!(!is_kept(&[]), "it has the same size and time, and another text");
    fs::remove_file(&source).unwrap();
    assert_eq!([is_kept(&[]), is_kept(&[])], [false, true], "the source is gone");
    let two = ["hbbp.data", "hbbp.data"];
    assert_eq!([is_kept(&two), is_kept(&two)], [false; 2], "of two recordings");
    // It is read whether anything is in it or not, and said to be damaged.
    let package = root.join(format!("{}.dwp", fixture.recorded_as));
    fs::write(&package, "no package").unwrap();
    assert_eq!([is_kept(&[]), is_kept(&[])], [false; 2], "there is a package");
    fs::remove_file(package).unwrap();
    assert!(is_kept(&[]), "all is as it was");
    for entry in place.entries() {
        let mut bytes = fs::read(&entry).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&entry, bytes).unwrap();
    }
    is_kept(&[]);
    // The analysis is not used, so that nothing tells but the page.
    fs::remove_file(root.join(fixture.recorded_as)).unwrap();
    is_kept(&[]);
}
