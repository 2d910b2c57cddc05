//! Where symbols come from when a program is stripped: debug files of distributions and of `perf`, links, symbols that are compressed in
//! the program, debuginfod servers.

#[path = "support/debuginfod.rs"]
mod debuginfod;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use debuginfod::Server;
use support::{Fixture, hbbp};
use tempfile::TempDir;

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
