//! Where symbols come from when a program is stripped: debug files of distributions and of `perf`, links, symbols that are compressed in
//! the program, debuginfod servers.

#[path = "support/archived.rs"]
mod archived;
#[path = "support/debuginfod.rs"]
mod debuginfod;
#[path = "support/place.rs"]
mod place;
mod support;
#[path = "support/terminal.rs"]
mod terminal;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use debuginfod::Server;
use support::{Fixture, hbbp};
use tempfile::TempDir;
use terminal::Terminal;

/// A recording, and its stripped program in a folder that stands for `/`.
struct Place {
    folder: TempDir,
    fixture: Fixture,
    /// What is printed with all symbols.
    expected: String,
    /// What is printed without.
    stripped: String,
}

impl Place {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let fixture = Fixture::simulated("westmere");
        fs::create_dir_all(folder.path().join("root")).unwrap();
        let mut place = Place { folder, fixture, expected: String::new(), stripped: String::new() };
        fs::copy(&place.fixture.binary, place.program()).unwrap();
        place.expected = place.functions();
        place.tool("strip", &["root/compress"])?;
        place.stripped = place.functions();
        assert!(place.expected.contains(",main,") || place.expected.contains("main,"), "{}", place.expected);
        assert_ne!(place.expected, place.stripped);
        Some(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self) -> PathBuf {
        self.path("root").join(self.fixture.recorded_as)
    }

    fn tool(&self, tool: &str, arguments: &[&str]) -> Option<()> {
        testing::has(tool).then_some(())?;
        let status = Command::new(tool).args(arguments).current_dir(self.folder.path()).status().unwrap();
        assert!(status.success(), "{tool} {arguments:?}");
        Some(())
    }

    /// The build id, as folder and name.
    fn build_id(&self) -> (String, String) {
        let image = analyzer::code::Image::open(&self.fixture.binary).unwrap();
        let id = image.build_id().expect("the program has a build id").to_string();
        (id[..2].to_owned(), id[2..].to_owned())
    }

    fn command(&self) -> Command {
        let mut command = hbbp();
        command.args(["mix", "--rows", "function", "--format", "csv", "--symfs", "root"]).arg(&self.fixture.recording);
        command.current_dir(self.folder.path()).env("HOME", self.path("home"));
        for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(proxy);
        }
        command
    }

    fn functions(&self) -> String {
        printed(&self.command().output().unwrap())
    }

    /// With this server.
    fn ask(&self, server: &Server, way: &str) -> Output {
        let mut command = self.command();
        command.env("DEBUGINFOD_URLS", server.address(way)).env("DEBUGINFOD_TIMEOUT", "1");
        command.env("DEBUGINFOD_CACHE_PATH", self.path("cache")).output().unwrap()
    }

    fn install(&self, place: &str) {
        let place = self.path(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(&self.fixture.binary, place).unwrap();
    }
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn debug_files_are_found_where_distributions_and_perf_have_them() {
    let Some(place) = Place::new() else { return };
    let (folder, name) = place.build_id();
    for debug in [
        format!("root/usr/lib/debug/.build-id/{folder}/{name}.debug"),
        format!("home/.debug/.build-id/{folder}/{name}/debug"),
    ] {
        place.install(&debug);
        assert_eq!(place.functions(), place.expected, "{debug}");
        // Of another build it is not taken.
        fs::copy(&Fixture::bursts("parse").binary, place.path(&debug)).unwrap();
        assert_eq!(place.functions(), place.stripped, "{debug}");
        fs::remove_file(place.path(&debug)).unwrap();
    }
}

/// Where `perf --buildid-dir` tells its commands that copies are, and where its settings say so (perf-config(1)).
#[test]
fn copies_are_found_where_perf_is_told_to_keep_them() {
    let Some(place) = Place::new() else { return };
    let (folder, name) = place.build_id();
    fs::remove_file(place.program()).unwrap();
    place.install(&format!("copies/.build-id/{folder}/{name}/elf"));
    fs::create_dir_all(place.path("home")).unwrap();
    let functions = |variables: &[(&str, PathBuf)]| {
        let output = place.command().envs(variables.iter().map(|(name, value)| (name, value))).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!functions(&[]).contains("main"));
    assert_eq!(functions(&[("PERF_BUILDID_DIR", place.path("copies"))]), place.expected);
    let settings = format!("[buildid]\n\tdir = {}\n", place.path("copies").display());
    fs::write(place.path("home/.perfconfig"), &settings).unwrap();
    assert_eq!(functions(&[]), place.expected);
    // One file of settings stands for all others.
    fs::write(place.path("settings"), "[report]\n").unwrap();
    assert!(!functions(&[("PERF_CONFIG", place.path("settings"))]).contains("main"));
    fs::rename(place.path("home/.perfconfig"), place.path("settings")).unwrap();
    assert_eq!(functions(&[("PERF_CONFIG", place.path("settings"))]), place.expected);
    // The usual place is looked at, too.
    place.install(&format!("home/.debug/.build-id/{folder}/{name}/elf"));
    assert_eq!(functions(&[("PERF_BUILDID_DIR", place.path("nothing"))]), place.expected);
}

/// A tool that must succeed, whose user has this home.
fn must_succeed(home: &Path, tool: &str, arguments: &[&str]) {
    let output = Command::new(tool).args(arguments).env("HOME", home).current_dir(home).output().unwrap();
    assert!(output.status.success(), "{tool} {arguments:?}: {}", said(&output));
}

/// As `perf` itself keeps them: at the usual place, and where its settings say.
#[test]
fn what_perf_buildid_cache_keeps_is_found() {
    let Some(place) = Place::new() else { return };
    if !testing::has("perf") {
        return;
    }
    fs::remove_file(place.program()).unwrap();
    let home = place.path("home");
    for settings in [String::new(), format!("[buildid]\ndir = {} # a comment\n", place.path("kept").display())] {
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join(".perfconfig"), &settings).unwrap();
        assert!(!place.command().output().unwrap().status.success(), "{settings}");
        let copied = place.path("copied");
        fs::copy(&place.fixture.binary, &copied).unwrap();
        must_succeed(&home, "perf", &["buildid-cache", "-a", copied.to_str().unwrap()]);
        fs::remove_file(copied).unwrap();
        assert_eq!(place.functions(), place.expected, "{settings}");
        assert_eq!(home.join(".debug").exists(), settings.is_empty());
        fs::remove_dir_all(&home).unwrap();
    }
}

/// A program that is mostly in the vDSO.
const CLOCK: &str = "
#include <time.h>
int main(void) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 1000; i++) clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < 2);
    return 0;
}
";

/// `perf record` keeps the program and the vDSO, and nothing else has the latter.
#[test]
fn what_perf_record_keeps_is_read_with_the_vdso() {
    let Some(place) = place::Place::to_record() else { return };
    if !testing::has("perf") {
        return;
    }
    let (folder, home) = (place.folder(), place.path("home"));
    fs::create_dir_all(&home).unwrap();
    fs::write(place.path("clock.c"), CLOCK).unwrap();
    let Some(program) = testing::c_program(folder, "clock", &[place.path("clock.c")], &[]) else { return };
    let data = place.path("run.data");
    let [program, recording] = [&program, &data].map(|path| path.to_str().unwrap());
    must_succeed(&home, "perf", &["record", "-e", "task-clock:u", "-o", recording, program]);
    fs::remove_file(program).unwrap();
    let functions = |home: &Path| {
        let mut mix = archived::command(folder, home, &[]);
        let mix = mix.args(["mix", "--rows", "module,function", "--format", "csv", "run.data"]).output().unwrap();
        String::from_utf8(mix.stdout).unwrap()
    };
    let found = functions(&home);
    assert!(found.contains("clock,main,"), "{found}");
    let of_vdso = |text: &str| text.lines().any(|line| line.starts_with("[vdso],") && line.contains("clock_gettime"));
    assert!(of_vdso(&found), "{found}");
    assert!(!of_vdso(&functions(folder)), "it is nowhere else");
    let remove = || fs::remove_dir_all(&home).unwrap();
    let archive = archived::reports_are_the_same(folder, &[], &home, &[], remove);
    fs::rename(archive, &data).unwrap();
    assert_eq!(functions(folder), found);
}

/// Copies of programs that only a process had, as `hbbp record` keeps them.
#[test]
fn an_archive_has_copies_that_were_kept() {
    let Some(place) = Place::new() else { return };
    let (folder, name) = place.build_id();
    fs::remove_dir_all(place.path("root")).unwrap();
    place.install(&format!("home/.debug/.build-id/{folder}/{name}/elf"));
    fs::copy(&place.fixture.recording, place.path("run.data")).unwrap();
    let home = place.path("home");
    let remove = || fs::remove_dir_all(&home).unwrap();
    let archive = archived::reports_are_the_same(place.folder.path(), &[], &home, &[], remove);
    assert!(printed(&mix_functions(&place, &archive)).contains("main"));
}

fn mix_functions(place: &Place, file: &Path) -> Output {
    let mut mix = archived::command(place.folder.path(), place.folder.path(), &[]);
    mix.args(["mix", "--rows", "function", "--format", "csv"]).arg(file).output().unwrap()
}

/// The program where it is missing, and its debug file where it is stripped.
#[test]
fn an_archive_has_what_came_from_a_server() {
    for is_there in [false, true] {
        let Some(place) = Place::new() else { return };
        if !is_there {
            fs::remove_file(place.program()).unwrap();
        }
        let server = Server::of(&place.fixture.binary);
        let (address, cache) = (server.address("found"), place.path("cache"));
        let variables = [("DEBUGINFOD_URLS", &*address), ("DEBUGINFOD_CACHE_PATH", cache.to_str().unwrap())];
        fs::copy(&place.fixture.recording, place.path("run.data")).unwrap();
        let remove = || ["cache", "root"].iter().for_each(|name| fs::remove_dir_all(place.path(name)).unwrap());
        let options = ["--symfs", "root"];
        let archive =
            archived::reports_are_the_same(place.folder.path(), &options, &place.path("home"), &variables, remove);
        assert_eq!(printed(&mix_functions(&place, &archive)), place.expected);
    }
}

/// On a terminal a line shows what is being got, until it is there.
#[test]
fn a_line_shows_what_is_being_got() {
    let Some(place) = Place::new() else { return };
    let server = Server::of(&place.fixture.binary);
    let address = server.address("held");
    let [cache, home, root, recording] =
        [place.path("cache"), place.path("home"), place.path("root"), place.fixture.recording.clone()];
    let [cache, home, root, recording] = [&cache, &home, &root, &recording].map(|path| path.to_str().unwrap());
    let variables = [("DEBUGINFOD_URLS", &*address), ("DEBUGINFOD_CACHE_PATH", cache), ("HOME", home)];
    let arguments = ["mix", "--rows", "function", "--symfs", root, recording];
    let Some(mut terminal) = Terminal::open(200, 50, &arguments, &variables) else { return };
    let size = fs::metadata(&place.fixture.binary).unwrap().len();
    let all = indicatif::HumanBytes(size).to_string();
    let (folder, name) = place.build_id();
    let getting = format!("getting {address}/buildid/{folder}{name}/debuginfo");
    let is_line = |line: &String| line.contains(&getting) && line.contains(&format!("of {all}"));
    let lines = terminal.wait_for("what is being got", |lines| lines.iter().any(is_line));
    assert!(!lines.iter().any(|line| line.contains("main")), "{lines:?}");
    server.release();
    assert_eq!(terminal.end(), 0);
    let lines = terminal.lines();
    assert!(!lines.iter().any(|line| line.contains("getting")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("main")), "{lines:?}");
    // Elsewhere there is none.
    fs::remove_dir_all(place.path("cache")).unwrap();
    assert!(!said(&place.ask(&server, "found")).contains("getting"));
}

#[test]
fn programs_are_found_by_build_id() {
    let Some(place) = Place::new() else { return };
    let (folder, name) = place.build_id();
    fs::remove_file(place.program()).unwrap();
    for program in [
        format!("home/.debug/.build-id/{folder}/{name}/elf"),
        // As `perf` had it before Linux 4.10.
        format!("home/.debug/.build-id/{folder}/{name}"),
        format!("root/usr/lib/debug/.build-id/{folder}/{name}"),
        format!("root/usr/lib/.build-id/{folder}/{name}"),
    ] {
        place.install(&program);
        assert_eq!(place.functions(), place.expected, "{program}");
        fs::remove_file(place.path(&program)).unwrap();
        let _ = fs::remove_dir(place.path(&program).parent().unwrap());
    }
    assert!(!place.command().output().unwrap().status.success());
}

#[test]
fn debug_links_are_followed_as_gdb_does() {
    let Some(place) = Place::new() else { return };
    place.install("compress.debug");
    let linked = place.tool("objcopy", &["--add-gnu-debuglink=compress.debug", "root/compress"]);
    if linked.is_none() {
        return;
    }
    fs::rename(place.path("root"), place.path("real")).unwrap();
    fs::create_dir_all(place.path("real/opt/app")).unwrap();
    fs::rename(place.path("real/compress"), place.path("real/opt/app/compress")).unwrap();
    std::os::unix::fs::symlink("opt/app/compress", place.path("real/compress")).unwrap();
    std::os::unix::fs::symlink("real", place.path("root")).unwrap();
    for debug in [
        "root/compress.debug",
        "root/.debug/compress.debug",
        "root/usr/lib/debug/compress.debug",
        // Where the file is that the link leads to.
        "root/opt/app/compress.debug",
        "root/opt/app/.debug/compress.debug",
        "root/usr/lib/debug/opt/app/compress.debug",
    ] {
        assert_eq!(place.functions(), place.stripped, "before {debug}");
        place.install(debug);
        assert_eq!(place.functions(), place.expected, "{debug}");
        fs::write(place.path(debug), "something else").unwrap();
        assert_eq!(place.functions(), place.stripped, "not of that checksum: {debug}");
        fs::remove_file(place.path(debug)).unwrap();
    }
}

#[test]
fn symbols_that_are_compressed_in_the_program_are_read() {
    let Some(place) = Place::new() else { return };
    let make = || {
        place.install("symbols");
        place.tool("objcopy", &["--only-keep-debug", "symbols"])?;
        place.tool("objcopy", &["--strip-debug", "symbols"])?;
        place.tool("xz", &["symbols"])?;
        place.tool("objcopy", &["--add-section", ".gnu_debugdata=symbols.xz", "root/compress"])
    };
    if make().is_none() {
        return;
    }
    assert_eq!(place.functions(), place.expected);
    // Damaged ones are left out.
    let mut bytes = fs::read(place.program()).unwrap();
    let magic = b"\xfd7zXZ";
    let at = bytes.windows(magic.len()).position(|window| window == magic).unwrap();
    bytes[at + 100] ^= 1;
    fs::write(place.program(), bytes).unwrap();
    assert_eq!(place.functions(), place.stripped);
}

#[test]
fn a_server_is_asked_once_and_what_it_gave_is_kept() {
    let Some(place) = Place::new() else { return };
    let server = Server::of(&place.fixture.binary);
    for time in ["first", "second"] {
        let output = place.ask(&server, "found");
        assert_eq!(printed(&output), place.expected, "{time}: {}", said(&output));
    }
    let (folder, name) = place.build_id();
    assert_eq!(server.asked(), [format!("/found/buildid/{folder}{name}/debuginfo")]);
    // As elfutils' client has it.
    let kept = place.path("cache").join(format!("{folder}{name}/debuginfo"));
    assert_eq!(fs::read(kept).unwrap(), fs::read(&place.fixture.binary).unwrap());
    // Who sets no variable asks nobody.
    assert_eq!(place.functions(), place.stripped);
}

#[test]
fn programs_that_are_not_there_come_from_a_server() {
    let Some(place) = Place::new() else { return };
    fs::remove_file(place.program()).unwrap();
    let server = Server::of(&place.fixture.binary);
    let output = place.ask(&server, "found");
    assert_eq!(printed(&output), place.expected, "{}", said(&output));
    assert!(server.asked().iter().any(|asked| asked.ends_with("/executable")), "{:?}", server.asked());
}

#[test]
fn what_a_server_does_not_have_is_not_asked_for_again() {
    let Some(place) = Place::new() else { return };
    let server = Server::of(&place.fixture.binary);
    for _ in 0..2 {
        let output = place.ask(&server, "absent");
        assert_eq!((printed(&output), said(&output).contains("debuginfod")), (place.stripped.clone(), false));
    }
    assert_eq!(server.asked().len(), 1);
    // Two servers: the second has it.
    fs::remove_dir_all(place.path("cache")).unwrap();
    let mut both = place.command();
    both.env("DEBUGINFOD_URLS", format!("{} {}", server.address("absent"), server.address("found/")));
    let both = both.env("DEBUGINFOD_CACHE_PATH", place.path("cache")).output().unwrap();
    assert_eq!(printed(&both), place.expected);
}

#[test]
fn servers_that_fail_are_named_and_nothing_of_theirs_is_kept() {
    let Some(place) = Place::new() else { return };
    let server = Server::of(&place.fixture.binary);
    for (way, why) in [
        ("silent", "timeout"),
        ("stalled", "too slow"),
        ("dripping", "too slow"),
        ("extension", "too slow"),
        ("half", "its sections after"),
        ("sized", "X-DEBUGINFOD-SIZE"),
        ("cut", "after"),
        ("chunks", "after"),
        ("other", "is of build"),
        ("text", "no file of this build"),
        ("failing", "status 500"),
        ("large", "DEBUGINFOD_MAXSIZE"),
        ("around", "redirect"),
        ("garbage", "debuginfod server"),
    ] {
        let output = place.ask(&server, way);
        assert_eq!(printed(&output), place.stripped, "{way}");
        let said = said(&output);
        assert!(said.contains(&server.address(way)) && said.contains(why), "{way}: {said}");
        assert!(!has_files(&place.path("cache")), "{way}");
    }
    let mut command = place.command();
    command.env("DEBUGINFOD_URLS", "file:///srv http://127.0.0.1:1").env("DEBUGINFOD_CACHE_PATH", place.path("cache"));
    let output = command.output().unwrap();
    assert_eq!(printed(&output), place.stripped);
    let said = said(&output);
    assert!(said.contains("file:///srv is left out") && said.contains("http://127.0.0.1:1:"), "{said}");
}

#[test]
fn a_file_has_to_be_there_in_the_time_that_is_allowed_for_all_of_it() {
    let Some(place) = Place::new() else { return };
    let server = Server::of(&place.fixture.binary);
    for way in ["silent", "stalled", "dripping", "extension"] {
        let mut command = place.command();
        command.env("DEBUGINFOD_URLS", server.address(way)).env("DEBUGINFOD_CACHE_PATH", place.path("cache"));
        // More than the greatest number of seconds that a clock has.
        command.env("DEBUGINFOD_TIMEOUT", u64::MAX.to_string()).env("DEBUGINFOD_MAXTIME", "1");
        let output = command.output().unwrap();
        assert_eq!(printed(&output), place.stripped, "{way}");
        assert!(said(&output).contains("DEBUGINFOD_MAXTIME"), "{way}: {}", said(&output));
        assert!(!has_files(&place.path("cache")), "{way}");
    }
}

#[test]
fn the_folder_of_what_was_got_may_be_named_from_the_working_directory() {
    let Some(place) = Place::new() else { return };
    let server = Server::of(&place.fixture.binary);
    let mut command = place.command();
    command.env("DEBUGINFOD_URLS", server.address("found")).env("DEBUGINFOD_CACHE_PATH", "got/here");
    let longest = u64::MAX.to_string();
    command.env("DEBUGINFOD_TIMEOUT", &longest).env("DEBUGINFOD_MAXTIME", &longest);
    let output = command.output().unwrap();
    assert_eq!(printed(&output), place.expected, "{}", said(&output));
    assert!(has_files(&place.path("got/here")));
}

/// Whether there is a file of a build.
fn has_files(cache: &Path) -> bool {
    let folders = fs::read_dir(cache).into_iter().flatten().map(|entry| entry.unwrap().path());
    folders.filter(|folder| folder.is_dir()).any(|folder| fs::read_dir(folder).unwrap().next().is_some())
}
