//! Archives: reports of one are those of the machine where it was made, and damaged or hostile ones are refused.

#[path = "support/archived.rs"]
mod archived;
mod support;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use analyzer::recording::Module;
use analyzer::{BinarySearch, BuildId, PackedFile, PackedFiles};
use archived::REPORTS;
use serde_json::{Value, json};
use support::{Fixture, hbbp};
use tar::{EntryType, Header};
use tempfile::TempDir;

/// A folder with recordings, `root` with their programs, and an empty folder for what commands unpack.
struct Place {
    folder: TempDir,
}

const RECORDINGS: [&str; 2] = ["objects", "threads"];

impl Place {
    fn new() -> Self {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.path("root")).unwrap();
        fs::create_dir(place.path("tmp")).unwrap();
        for name in RECORDINGS {
            let fixture = Fixture::bursts(name);
            fs::copy(&fixture.recording, place.path(&format!("{name}.data"))).unwrap();
            fs::copy(&fixture.binary, place.path("root").join(name)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = hbbp();
        command.args(arguments).current_dir(self.folder.path()).env("TMPDIR", self.path("tmp"));
        command.env("HOME", self.path("home"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        assert!(fs::read_dir(self.path("tmp")).unwrap().next().is_none(), "{arguments:?} leaves files");
        output
    }

    /// Archives of both recordings.
    fn archive(&self) {
        for name in RECORDINGS {
            let (data, archive) = (format!("{name}.data"), format!("{name}.tar.zst"));
            let output = self.run(&["archive", &data, "-o", &archive, "--symfs", "root"]);
            assert!(said(&output).contains(&format!("{data}, 1 program or library")), "{}", said(&output));
        }
    }

    /// What is said of an archive that is refused.
    fn refused(&self, archive: &[u8]) -> String {
        fs::write(self.path("bad.tar.zst"), archive).unwrap();
        let output = self.command(&["mix", "bad.tar.zst"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(output.stdout.is_empty());
        assert!(fs::read_dir(self.path("tmp")).unwrap().next().is_none());
        assert!(!self.path("tmp/x").exists() && !self.path("x").exists());
        said(&output)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn same(one: &Output, other: &Output, what: &str) {
    assert_eq!(said(one), said(other), "{what}");
    assert!(one.stdout == other.stdout, "{what}: standard output differs");
}

#[test]
fn reports_are_the_same_after_the_binaries_are_gone() {
    let place = Place::new();
    let symfs = ["--symfs", "root"];
    let of = |name: &str, more: &[&str]| -> Vec<Output> {
        REPORTS.iter().map(|report| place.run(&[*report, &[name], more].concat())).collect()
    };
    let before = RECORDINGS.map(|name| of(&format!("{name}.data"), &symfs));
    let diff = |suffix: &str, more: &[&str]| {
        let names = RECORDINGS.map(|name| format!("{name}{suffix}"));
        place.run(&[&["diff", &names[0], &names[1], "--format", "json"], more].concat())
    };
    let merge = |suffix: &str, more: &[&str]| {
        let names = RECORDINGS.map(|name| format!("{name}{suffix}"));
        place.run(&[&["merge", &names[0], &names[1], "-o", "sum.flow"], more].concat());
        fs::read(place.path("sum.flow")).unwrap()
    };
    let (diff_before, merge_before) = (diff(".data", &symfs), merge(".data", &symfs));
    place.archive();
    fs::remove_dir_all(place.path("root")).unwrap();
    for (name, before) in RECORDINGS.iter().zip(&before) {
        fs::remove_file(place.path(&format!("{name}.data"))).unwrap();
        for ((one, other), report) in before.iter().zip(of(&format!("{name}.tar.zst"), &[])).zip(REPORTS) {
            same(one, &other, &format!("{name}: {report:?}"));
        }
    }
    // Names of files are all that differs.
    let text = |output: &Output, suffix: &str| String::from_utf8_lossy(&output.stdout).replace(suffix, "");
    assert_eq!(text(&diff(".tar.zst", &[]), ".tar.zst"), text(&diff_before, ".data"));
    assert!(merge(".tar.zst", &[]) == merge_before);
    let mut piped = place.command(&["mix", "-"]);
    let piped = piped.stdin(File::open(place.path("objects.tar.zst")).unwrap()).output().unwrap();
    same(&before[0][0], &piped, "standard input");
}

#[test]
fn why_a_file_is_missing_is_in_the_archive() {
    let place = Place::new();
    fs::remove_file(place.path("root/objects")).unwrap();
    let report = ["mix", "--rows", "module"];
    let before = place.run(&[&report[..], &["objects.data", "--symfs", "root"]].concat());
    assert!(String::from_utf8_lossy(&before.stdout).contains("there is no root/"));
    let packed = place.run(&["archive", "objects.data", "-o", "a.tar.zst", "--symfs", "root"]);
    assert!(said(&packed).contains("objects is not in it: there is no root/"), "{}", said(&packed));
    // A file of this machine is not taken for it, unless it is named.
    same(&before, &place.run(&[&report[..], &["a.tar.zst"]].concat()), "archive");
    let option = Fixture::bursts("objects").binary_option();
    let named = place.run(&["mix", "a.tar.zst", "--binary", &option]);
    same(&place.run(&["mix", "objects.data", "--binary", &option]), &named, "named");
}

#[test]
fn separate_debug_files_and_builds_that_were_named_are_packed() {
    let place = Place::new();
    let image = analyzer::code::Image::open(&place.path("root/objects")).unwrap();
    let id = image.build_id().expect("the program has a build id").to_string();
    let debug = place.path("root/usr/lib/debug/.build-id").join(&id[..2]).join(format!("{}.debug", &id[2..]));
    fs::create_dir_all(debug.parent().unwrap()).unwrap();
    fs::rename(place.path("root/objects"), &debug).unwrap();
    if !testing::has("strip") {
        return;
    }
    let strip = Command::new("strip").arg("-o").arg(place.path("root/objects")).arg(&debug).status().unwrap();
    assert!(strip.success());
    let report = ["mix", "--rows", "function"];
    let before = place.run(&[&report[..], &["objects.data", "--symfs", "root"]].concat());
    assert!(String::from_utf8_lossy(&before.stdout).contains("main"));
    let packed = place.run(&["archive", "objects.data", "-o", "a.tar.zst", "--symfs", "root"]);
    assert!(said(&packed).contains("1 program or library, 1 file of debug information"), "{}", said(&packed));
    same(&before, &place.run(&[&report[..], &["a.tar.zst"]].concat()), "archive");
    // Another build, because the user says so; and all that was mapped.
    let option = format!("objects={}", place.path("root/threads").display());
    let before = place.run(&["mix", "-v", "objects.data", "--binary", &option]);
    place.run(&["archive", "objects.data", "-o", "b.tar.zst", "--all", "--binary", &option]);
    fs::remove_dir_all(place.path("root")).unwrap();
    same(&before, &place.run(&["mix", "-v", "b.tar.zst"]), "another build");
}

#[test]
fn the_same_files_give_the_same_archive_which_can_be_unpacked_by_hand() {
    let place = Place::new();
    place.archive();
    let first = fs::read(place.path("threads.tar.zst")).unwrap();
    place.archive();
    assert!(first == fs::read(place.path("threads.tar.zst")).unwrap());
    let before = place.run(&["mix", "threads.data", "--symfs", "root"]);
    let tar = zstd::decode_all(&*first).unwrap();
    tar::Archive::new(&*tar).unpack(place.path("by-hand")).unwrap();
    same(&before, &place.run(&["mix", "by-hand/recording.data", "--symfs", "by-hand/root"]), "by hand");
}

#[test]
fn what_cannot_be_packed_is_said() {
    let place = Place::new();
    place.archive();
    let refused = |arguments: &[&str]| {
        let output = place.command(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        said(&output)
    };
    assert!(refused(&["archive", "threads.tar.zst", "-o", "x"]).contains("threads.tar.zst is an archive already"));
    let length = fs::metadata(place.path("threads.data")).unwrap().len();
    assert!(
        refused(&["archive", "threads.data", "-o", "threads.data"]).contains("threads.data is the recording itself")
    );
    assert_eq!(fs::metadata(place.path("threads.data")).unwrap().len(), length);
    assert!(refused(&["archive", "root/threads", "-o", "x"]).contains("is an ELF program"));
    assert!(refused(&["archive", "-", "-o", "x"]).contains("packs files"));
    assert!(refused(&["truth", "--from", "threads.tar.zst", "-o", "x"]).contains("is an archive of `hbbp archive`"));
    assert!(!place.path("x").exists());
}

/// A tar of these: name, kind and bytes, as stated and as they are.
fn tar(entries: &[(&str, EntryType, u64, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, stated, bytes) in entries {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(*stated);
        header.set_cksum();
        builder.append(&header, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn packed(tar: &[u8]) -> Vec<u8> {
    zstd::encode_all(tar, 1).unwrap()
}

fn document(files: &Value, recording: u64) -> Vec<u8> {
    let recording = json!({ "name": "run.data", "bytes": recording });
    let document = json!({ "schema": "hbbp-archive/1", "recording": recording, "files": files, "modules": [] });
    serde_json::to_vec(&document).unwrap()
}

#[test]
fn hostile_archives_are_refused_and_leave_nothing() {
    const FILE: EntryType = EntryType::Regular;
    let place = Place::new();
    let name = "hbbp-archive.json";
    let one = document(&json!([{ "name": "root/a", "bytes": 4 }]), 4);
    let length = one.len() as u64;
    let begin = (name, FILE, length, &one[..]);
    let recording = ("recording.data", FILE, 4, &b"PERF"[..]);
    let with = |more: &[(&str, EntryType, u64, &[u8])]| packed(&tar(&[&[begin][..], more].concat()));
    for (archive, why) in [
        (with(&[("../x", FILE, 4, b"evil")]), "\"../x\" is in it, and hbbp-archive.json does not list it"),
        (with(&[("/tmp/x", FILE, 4, b"evil")]), "\"/tmp/x\" is in it"),
        (with(&[recording, ("root/a", EntryType::Symlink, 0, b"")]), "\"root/a\" in it is of the kind Symlink"),
        (with(&[("root", EntryType::Directory, 0, b"")]), "of the kind Directory"),
        (with(&[("pax", EntryType::XHeader, 4, b"evil")]), "of the kind XHeader"),
        (with(&[recording, recording]), "recording.data is in it twice"),
        (with(&[("root/a", FILE, 5, b"12345")]), "root/a has 5 bytes, 4 are stated"),
        (with(&[recording]), "root/a is missing"),
        (with(&[("long", EntryType::GNULongName, 1 << 40, b"")]), "of the kind GNULongName"),
        (with(&[recording, ("root/a", FILE, 4, b"1234")]), "not a perf.data file"),
    ] {
        let said = place.refused(&archive);
        assert!(said.contains("bad.tar.zst") && said.contains(why), "{why}: {said}");
    }
    for (files, recording, why) in [
        (json!([{ "name": "root/../../x", "bytes": 4 }]), 4, "names \"root/../../x\""),
        (json!([{ "name": "/root/x", "bytes": 4 }]), 4, "names \"/root/x\""),
        (json!([{ "name": "root/a", "bytes": 4 }, { "name": "root/a", "bytes": 4 }]), 4, "names \"root/a\" twice"),
        (json!([]), 1 << 40, "1099511627776 bytes, packed into"),
        (json!([{ "name": format!("root/{}x", "a/".repeat(63)), "bytes": 0 }]), 4, "at most 64 parts"),
        (json!([{ "name": format!("root/{}", "a".repeat(4096)), "bytes": 0 }]), 4, "at most 64 parts and 4096 bytes"),
        // Empty files, each in folders of its own.
        (
            (0..600).map(|at| json!({ "name": format!("root/{at}/{}x", "a/".repeat(40)), "bytes": 0 })).collect(),
            4,
            "more than is believed",
        ),
        (json!([{ "name": "root/a", "bytes": u64::MAX }]), u64::MAX, "more than is believed"),
        (json!("none"), 4, "not as `hbbp archive` writes it"),
    ] {
        let document = document(&files, recording);
        let said = place.refused(&packed(&tar(&[(name, FILE, document.len() as u64, &document)])));
        assert!(said.contains(why), "{why}: {said}");
    }
    // One file has to be the folder of another.
    let both = document(&json!([{ "name": "root/a", "bytes": 1 }, { "name": "root/a/b", "bytes": 1 }]), 4);
    let entries = [(name, FILE, both.len() as u64, &both[..]), ("root/a", FILE, 1, b"1"), ("root/a/b", FILE, 1, b"1")];
    assert!(place.refused(&packed(&tar(&entries))).contains("root/a/b"));
    // Names may be as long as paths.
    let long = format!("root/{}a", "folder/".repeat(60));
    let listed = document(&json!([{ "name": &long, "bytes": 1 }]), 4);
    let extension = format!("{long}\0");
    let entries = [
        (name, FILE, listed.len() as u64, &listed[..]),
        recording,
        ("././@LongLink", EntryType::GNULongName, extension.len() as u64, extension.as_bytes()),
        ("root/folder", FILE, 1, b"1"),
    ];
    assert!(place.refused(&packed(&tar(&entries))).contains("perf.data"));
    // A document that goes on and on.
    let said = place.refused(&packed(&tar(&[(name, FILE, 1 << 40, b"{}")])));
    assert!(said.contains("hbbp-archive.json has 1099511627776 bytes"), "{said}");
}

/// The names of what is in an archive.
fn names(archive: &Path) -> Vec<String> {
    let tar = zstd::decode_all(File::open(archive).unwrap()).unwrap();
    let name = |entry: io::Result<tar::Entry<&[u8]>>| entry.unwrap().path().unwrap().display().to_string();
    tar::Archive::new(&*tar).entries().unwrap().map(name).collect()
}

#[test]
fn a_file_that_is_packed_is_not_written_to() {
    let place = Place::new();
    let program = place.path("root/objects");
    let before = fs::read(&program).unwrap();
    let pack =
        |output: &str| place.command(&["archive", "objects.data", "-o", output, "--symfs", "root"]).output().unwrap();
    std::os::unix::fs::symlink("root/objects", place.path("link")).unwrap();
    for name in ["root/objects", "link"] {
        let output = pack(name);
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains("which is packed: name another file"), "{}", said(&output));
        assert!(fs::read(&program).unwrap() == before, "{name}");
    }
    // A link stays one, and nothing else is left.
    fs::remove_file(place.path("link")).unwrap();
    fs::write(place.path("old"), "old").unwrap();
    std::os::unix::fs::symlink("old", place.path("link")).unwrap();
    let there = || fs::read_dir(place.folder.path()).unwrap().count();
    let number = there();
    assert!(pack("link").status.success());
    assert!(place.path("link").is_symlink());
    assert!(names(&place.path("old")).contains(&"recording.data".to_owned()));
    assert_eq!(there(), number);
    // A folder that is missing is said, and devices are written to.
    assert!(!pack("no/folder").status.success());
    assert!(pack("/dev/null").status.success() && !Path::new("/dev/null").is_file());
}

#[test]
fn only_debug_information_is_packed_for_split_units() {
    let place = Place::new();
    fs::write(place.path("x.c"), "int main(void) { return 0; }").unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-g", "-gsplit-dwarf", "-c", "x.c", "-o", "x.o"]).current_dir(place.folder.path());
    if !testing::has("gcc") || !compiler.status().unwrap().success() || !place.path("x.dwo").is_file() {
        return;
    }
    let mut linker = Command::new("gcc");
    assert!(linker.args(["x.o", "-o", "x"]).current_dir(place.folder.path()).status().unwrap().success());
    let packed = || {
        place.run(&["archive", "objects.data", "-o", "x.tar.zst", "--binary", "objects=x"]);
        let names = names(&place.path("x.tar.zst"));
        names.iter().any(|name| name.ends_with("x.dwo"))
    };
    assert!(packed());
    fs::write(place.path("x.dwo"), "secret").unwrap();
    assert!(!packed());
}

#[test]
fn builds_without_build_ids_are_told_apart() {
    let place = Place::new();
    let module = Module::file("/x".to_owned(), None);
    let of = |name: Option<&str>| {
        let mut files = PackedFiles::below(place.path("root"));
        let file = |name| PackedFile {
            file: "/x".into(),
            place: place.path("root").join(name),
            debug_file: None,
            other_build: None,
        };
        files.insert("/x".to_owned(), None, name.map(file).ok_or_else(|| "there is no /x".to_owned()));
        Arc::new(files)
    };
    let open = |packed: &[Option<&str>]| {
        let packed = packed.iter().map(|name| of(*name)).collect();
        BinarySearch { packed, ..BinarySearch::default() }.open(&module).map(|binary| binary.place)
    };
    let why = open(&[Some("objects"), Some("threads")]).unwrap_err().to_string();
    assert!(why.contains("different builds") && why.contains("--build-id"), "{why}");
    fs::copy(place.path("root/objects"), place.path("root/same")).unwrap();
    assert_eq!(open(&[Some("objects"), Some("same")]).unwrap(), place.path("root/objects"));
    assert_eq!(open(&[None, Some("threads")]).unwrap(), place.path("root/threads"));
    assert_eq!(open(&[None, None]).unwrap_err().to_string(), "there is no /x");
    // A file of another build than the module's is none.
    let mut files = PackedFiles::below(place.path("root"));
    let other = BuildId::from_hex("0102030405060708");
    let file = PackedFile { file: "/x".into(), place: place.path("root/objects"), debug_file: None, other_build: None };
    let said = PackedFile { other_build: Some("of another build".to_owned()), ..file.clone() };
    files.insert("/x".to_owned(), other.clone(), Ok(file));
    files.insert("/y".to_owned(), other.clone(), Ok(said));
    let search = BinarySearch { packed: vec![Arc::new(files)], ..BinarySearch::default() };
    let why = search.open(&Module::file("/x".to_owned(), other.clone())).unwrap_err().to_string();
    assert!(why.contains("recorded was 0102030405060708"), "{why}");
    assert!(search.open(&Module::file("/y".to_owned(), other)).is_ok());
}

#[test]
fn damaged_archives_are_refused() {
    let place = Place::new();
    place.archive();
    let whole = fs::read(place.path("threads.tar.zst")).unwrap();
    for part in 1..12 {
        let said = place.refused(&whole[..whole.len() * part / 12]);
        assert!(said.contains("bad.tar.zst"), "{said}");
    }
    let tar = zstd::decode_all(&*whole).unwrap();
    for length in [200, 512, 513, 1024, 1500, 2048, 10_000, tar.len() / 2] {
        let said = place.refused(&packed(&tar[..length]));
        assert!(said.contains("bad.tar.zst"), "{length}: {said}");
    }
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..40 {
        // Whatever it is, it ends.
        let mut bytes = tar.clone();
        let at = random.usize(..2048);
        bytes[at] = random.u8(..);
        fs::write(place.path("odd.tar.zst"), packed(&bytes)).unwrap();
        let output = place.command(&["mix", "odd.tar.zst"]).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "byte {at}: {}", said(&output));
    }
}
