//! Source positions of compiled programs beside those of `llvm-symbolizer`; damaged debug information.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use analyzer::address::Svma;
use analyzer::lines::{Companions, Encoding, SourceIndex};
use analyzer::recording::Module;
use analyzer::{Binary, BinarySearch};
use serde_json::Value;

const CPP: &str = r#"
#include <cstdio>
#include <cstdlib>
namespace {
struct Sum {
    unsigned value;
    explicit Sum(unsigned start) : value(start) {}
    void add(unsigned x) { if (x & 1) value += x; else value ^= x; }
};
template <class T> inline T twice(T x) { return x + x; }
}
static inline unsigned leaf(unsigned x) { return x % 3 ? x / 7 : twice(x); }
static inline unsigned inner(unsigned x) { unsigned y = leaf(x); return y > 10 ? leaf(y) + 1 : y; }
__attribute__((noinline)) unsigned outer(unsigned n)
{
    Sum sum(n);
    for (unsigned i = 0; i < n; i++) { if (i % 5 == 0 || i % 7 == 3) sum.add(inner(i)); else sum.add(i); }
    return sum.value;
}
int main(int argc, char **argv)
{
    std::printf("%u\n", outer(argc > 1 ? std::atoi(argv[1]) : 1000));
}
"#;

const RUST: &str = r#"
#[inline(always)]
fn step(x: u64) -> u64 { if x % 2 == 0 { x / 2 } else { 3 * x + 1 } }
#[inline(never)]
fn longest(n: u64) -> (u64, usize) {
    (1..n).map(|start| (start, std::iter::successors(Some(start), |&x| (x > 1).then(|| step(x))).count()))
        .max_by_key(|&(_, length)| length).unwrap()
}
fn main() {
    let n = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    println!("{:?}", longest(n));
}
"#;

/// Runs a tool in a folder; `None` (said loudly) where it is not installed or refuses.
fn run(folder: &Path, tool: &str, arguments: &[&str]) -> Option<()> {
    match Command::new(tool).args(arguments).current_dir(folder).output() {
        Ok(output) if output.status.success() => Some(()),
        Ok(output) => {
            testing::skip!(Tool, "{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            testing::skip!(Tool, "{tool}: {error}");
            None
        }
    }
}

/// Compiles and links in two steps, as build systems do.
fn compile(folder: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    fs::write(folder.join("program.cc"), CPP).unwrap();
    run(folder, compiler, &[&["-O2", "-c", "program.cc", "-o", "program.o"], options].concat())?;
    run(folder, compiler, &["program.o", "-o", "program"])?;
    Some(folder.join("program"))
}

fn open(path: &Path) -> Binary {
    let module = Module::file(path.to_str().unwrap().into(), None);
    BinarySearch::default().open(&module).unwrap()
}

fn text(binary: &Binary) -> std::ops::Range<Svma> {
    let text = binary.image.sections().iter().find(|section| section.name == ".text").unwrap();
    text.start..Svma(text.start.0 + text.size)
}

fn index(binary: &Binary, threads: usize) -> SourceIndex {
    SourceIndex::read(binary, &[text(binary)], threads)
}

/// A frame: function, file, line, the line the function starts on, block on the line.
type Frame = (Option<String>, String, u32, u32, u32);

/// The frames of an address, the innermost first.
fn frames(index: &SourceIndex, at: Svma) -> Vec<Frame> {
    let mut frames = index.at(at).into_iter().flat_map(|span| index.frames(span)).peekable();
    let mut found = Vec::new();
    while let Some((function, position)) = frames.next() {
        let inlined = frames.peek().and(function.name.clone());
        let name = function.linkage_name.clone().or(inlined);
        let file = index.file(position.file).unwrap_or_default().to_owned();
        found.push((name, file, position.line, function.start_line.unwrap_or(0), position.discriminator.base));
    }
    found
}

/// The same of `llvm-symbolizer`, of all addresses.
fn symbolizer_frames(binary: &Path, addresses: &[Svma], encoding: Encoding) -> Option<Vec<Vec<Frame>>> {
    let arguments = ["--functions=linkage", "--inlines", "--no-demangle", "--output-style=JSON", "--obj"];
    let mut command = Command::new("llvm-symbolizer-19");
    command.args(arguments).arg(binary).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        testing::skip!(Tool, "llvm-symbolizer-19 is not installed");
        return None;
    };
    let mut input = child.stdin.take().unwrap();
    let lines: String = addresses.iter().map(|address| format!("{address}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    writer.join().unwrap();
    let number = |symbol: &Value, key: &str| symbol[key].as_u64().unwrap() as u32;
    let frame = |symbol: &Value| {
        let block = encoding.decode(number(symbol, "Discriminator")).base;
        let text = |key: &str| symbol[key].as_str().unwrap().to_owned();
        (Some(text("FunctionName")), text("FileName"), number(symbol, "Line"), number(symbol, "StartLine"), block)
    };
    let stack = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["Symbol"].as_array().unwrap().iter().map(frame).collect()
    };
    Some(output.lines().map(stack).collect())
}

/// Compares all addresses of a program's code.
fn check(path: &Path, encoding: Encoding) -> SourceIndex {
    let binary = open(path);
    let index = index(&binary, 2);
    assert_eq!(index.notes(), &[] as &[String]);
    let addresses: Vec<Svma> = (text(&binary).start.0..text(&binary).end.0).map(Svma).collect();
    let Some(expected) = symbolizer_frames(path, &addresses, encoding) else { return index };
    assert_eq!(expected.len(), addresses.len());
    let (mut inlined, mut blocks) = (0, 0);
    for (&address, expected) in addresses.iter().zip(&expected) {
        let found = frames(&index, address);
        if found.is_empty() {
            // Code of the C library's objects has no debug information, or that of assembly.
            assert!(expected.iter().all(|frame| frame.3 == 0), "{address}: {expected:?}");
            continue;
        }
        let same = |(found, expected): (&Frame, &Frame)| {
            let name = found.0.is_none() || found.0 == expected.0;
            name && (&found.1, found.2, found.3, found.4) == (&expected.1, expected.2, expected.3, expected.4)
        };
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(same),
            "{}, {address}:\n{found:?}\n{expected:?}",
            path.display()
        );
        inlined += usize::from(found.len() > 2);
        blocks += usize::from(found.iter().any(|frame| frame.4 > 0));
    }
    eprintln!("{}: {inlined} bytes twice inlined, {blocks} in other blocks of their line", path.display());
    assert!(inlined > 20 && blocks > 20, "{}: {inlined} {blocks}", path.display());
    index
}

#[test]
fn positions_are_those_of_llvm_symbolizer() {
    let folder = tempfile::tempdir().unwrap();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        for options in [&[][..], &["-ffunction-sections"], &["-gz=zlib"], &["-fdebug-types-section"]] {
            let options = [&[version, "-g"], options].concat();
            if let Some(program) = compile(folder.path(), "g++", &options) {
                check(&program, Encoding::Plain);
            }
        }
        for options in [
            &["-g"][..],
            &["-gline-tables-only"],
            &["-g", "-gz=zlib"],
            &["-g", "-gz=zstd"],
            &["-g", "-fdebug-types-section"],
        ] {
            let options = [&[version, "-fdebug-info-for-profiling"], options].concat();
            if let Some(program) = compile(folder.path(), "clang++-19", &options) {
                check(&program, Encoding::Prefixed);
            }
        }
    }
}

#[test]
fn positions_of_a_rust_program_with_its_library() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("program.rs"), RUST).unwrap();
    let options = ["-Copt-level=2", "-Cdebuginfo=2", "-Ccodegen-units=4", "program.rs"];
    if run(folder.path(), "rustc", &options).is_none() {
        return;
    }
    let program = folder.path().join("program");
    let binary = open(&program);
    let [one, three] = [1, 3].map(|threads| index(&binary, threads));
    assert_eq!(one.spans(), three.spans());
    assert_eq!(one.scopes(), three.scopes());
    let own =
        |at: &Svma| frames(&one, *at).iter().any(|frame| frame.0.as_ref().is_some_and(|name| name.contains("longest")));
    let addresses: Vec<Svma> = (text(&binary).start.0..text(&binary).end.0).map(Svma).filter(own).collect();
    let found: Vec<_> = addresses.iter().map(|&at| frames(&one, at)).collect();
    assert!(found.iter().any(|frames| frames.len() > 4 && frames[0].0.as_ref().unwrap().contains("step")));
    let Some(expected) = symbolizer_frames(&program, &addresses, Encoding::Prefixed) else { return };
    assert_eq!(found, expected);
}

#[test]
fn split_debug_information_is_found_beside_and_packed() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, encoding) in [("g++", Encoding::Plain), ("clang++-19", Encoding::Prefixed)] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let options = ["-g", version, "-gsplit-dwarf", "-fdebug-info-for-profiling"];
            let options = &options[..if compiler == "g++" { 3 } else { 4 }];
            let Some(program) = compile(folder.path(), compiler, options) else { continue };
            let parts = check(&program, encoding);
            if run(folder.path(), "llvm-dwp-19", &["-e", "program", "-o", "program.dwp"]).is_some() {
                fs::remove_file(folder.path().join("program.dwo")).unwrap();
                let packed = index(&open(&program), 1);
                assert_eq!(packed.notes(), &[] as &[String]);
                assert_eq!(packed.spans(), parts.spans());
                fs::remove_file(folder.path().join("program.dwp")).unwrap();
            } else {
                fs::remove_file(folder.path().join("program.dwo")).unwrap();
            }
            let without = index(&open(&program), 1);
            assert!(without.spans().is_empty());
            assert!(without.notes()[0].contains("program.dwo"), "{:?}", without.notes());
        }
    }
}

#[test]
fn split_debug_information_is_found_below_another_root() {
    let [folder, root] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let Some(program) = compile(folder.path(), "g++", &["-g", "-gsplit-dwarf"]) else { return };
    let expected = index(&open(&program), 1);
    let part = folder.path().join("program.dwo");
    assert_eq!(Companions::of(&open(&program)).parts, [(part.clone(), part)]);
    let inside = root.path().join(folder.path().strip_prefix("/").unwrap());
    fs::create_dir_all(&inside).unwrap();
    fs::rename(folder.path().join("program.dwo"), inside.join("program.dwo")).unwrap();
    fs::rename(&program, root.path().join("program")).unwrap();
    let search = BinarySearch { symfs: Some(root.path().into()), ..BinarySearch::default() };
    let module = Module::file("/program".into(), None);
    let found = index(&search.open(&module).unwrap(), 1);
    assert_eq!(found.notes(), &[] as &[String]);
    assert!(!found.spans().is_empty());
    assert_eq!(found.spans(), expected.spans());
}

#[test]
fn a_separate_debug_file_is_found_by_its_link() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "g++", &["-g"]) else { return };
    let whole = index(&open(&program), 1);
    let steps: [&[&str]; 3] = [
        &["--only-keep-debug", "program", "program.debug"],
        &["--strip-debug", "program"],
        &["--add-gnu-debuglink=program.debug", "program"],
    ];
    if steps.iter().any(|step| run(folder.path(), "objcopy", step).is_none()) {
        return;
    }
    let linked = index(&open(&program), 1);
    assert!(!whole.spans().is_empty());
    assert_eq!(linked.spans(), whole.spans());
    // Of another build, it is not taken.
    fs::write(folder.path().join("program.debug"), b"something else").unwrap();
    assert!(index(&open(&program), 1).spans().is_empty());
}

/// `dwz` moves what several files have in common to one more, which `.gnu_debugaltlink` names; in DWARF 5 `.debug_sup` does.
#[test]
fn what_dwz_moved_is_found() {
    for form in [None, Some("--dwarf-5")] {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = compile(folder.path(), "g++", &["-g"]) else { return };
        let expected = index(&open(&program), 1);
        fs::copy(&program, folder.path().join("same")).unwrap();
        let files = ["-m", "common.debug", "-M", "common.debug", "program", "same"];
        let arguments: Vec<_> = form.into_iter().chain(files).collect();
        if run(folder.path(), "dwz", &arguments).is_none() {
            return;
        }
        let found = index(&open(&program), 1);
        assert_eq!(found.notes(), &[] as &[String]);
        assert_eq!(found.spans(), expected.spans());
        let names = |index: &SourceIndex| -> Vec<_> {
            index.scopes().iter().map(|scope| (index.function(scope).clone(), scope.caller)).collect()
        };
        assert_eq!(names(&found), names(&expected));
        let alternate = Companions::of(&open(&program)).alternate.map(|file| file.path);
        assert_eq!(alternate, Some(folder.path().join("common.debug")));
        // Without the file, or with another one of its name.
        for other in [None, Some("same")] {
            fs::remove_file(folder.path().join("common.debug")).unwrap();
            fs::copy(folder.path().join(other.unwrap_or("program.cc")), folder.path().join("common.debug")).unwrap();
            let without = index(&open(&program), 1);
            assert_eq!(
                without.notes(),
                ["names and functions that dwz moved to common.debug are missing: install that file"]
            );
            assert_ne!(names(&without), names(&expected));
        }
    }
}

/// The debug file names the other one as it is seen from the debug file's own folder, to which a link leads.
#[test]
fn what_dwz_moved_is_seen_from_the_debug_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "g++", &["-g"]) else { return };
    let link = ["program.o", "-Wl,--build-id=0x0123456789abcdef", "-o", "program"];
    if run(folder.path(), "g++", &link).is_none() {
        return;
    }
    let expected = index(&open(&program), 1);
    let installed = folder.path().join("root/usr/lib/debug");
    for made in [".build-id/01", ".dwz", "bin"] {
        fs::create_dir_all(installed.join(made)).unwrap();
    }
    for copy in ["root/usr/lib/debug/bin/program.debug", "same"] {
        fs::copy(&program, folder.path().join(copy)).unwrap();
    }
    let bin = installed.join("bin");
    let steps: [(&str, &[&str]); 3] = [
        ("dwz", &["-m", "../.dwz/common", "-M", "../.dwz/common", "program.debug", "../../../../../same"]),
        ("objcopy", &["--only-keep-debug", "program.debug"]),
        ("strip", &["../../../../../program"]),
    ];
    if steps.iter().any(|(tool, arguments)| run(&bin, tool, arguments).is_none()) {
        return;
    }
    std::os::unix::fs::symlink("../../bin/program.debug", installed.join(".build-id/01/23456789abcdef.debug")).unwrap();
    fs::rename(&program, folder.path().join("root/program")).unwrap();
    let search = BinarySearch { symfs: Some(folder.path().join("root")), ..BinarySearch::default() };
    let binary = search.open(&Module::file("/program".into(), None)).unwrap();
    let debug_file = binary.debug_file.as_ref().map(|file| file.path.clone());
    assert_eq!(debug_file, Some(installed.join(".build-id/01/23456789abcdef.debug")));
    let found = index(&binary, 1);
    assert_eq!(found.notes(), &[] as &[String]);
    assert!(!found.spans().is_empty());
    assert_eq!(found.spans(), expected.spans());
}

#[test]
fn damaged_debug_information_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let compilers = [("g++", ["-g", "-gdwarf-4"]), ("g++", ["-g", "-gdwarf-5"]), ("clang++-19", ["-g", "-gdwarf-5"])];
    for (compiler, options) in compilers {
        let Some(program) = compile(folder.path(), compiler, &options) else { continue };
        let bytes = fs::read(&program).unwrap();
        let sections: Vec<_> = open(&program).image.sections().to_vec();
        let debug = || sections.iter().filter(|section| section.name.starts_with(".debug_"));
        let whole = index(&open(&program), 1).spans().len();
        let (mut random, mut less) = (fastrand::Rng::with_seed(1), 0);
        for round in 0..400 {
            let mut damaged = bytes.clone();
            for section in debug() {
                for _ in 0..=round % 5 {
                    let at = section.file_offset + random.u64(..section.size.max(1));
                    damaged[at as usize] = random.u8(..);
                }
            }
            fs::write(&program, &damaged).unwrap();
            let index = index(&open(&program), 1);
            assert!(index.spans().is_sorted_by(|a, b| a.end <= b.start));
            less += usize::from(index.spans().len() < whole);
        }
        assert!(less > 50, "{less}");
        // Sections cut short.
        for section in debug() {
            let mut damaged = bytes.clone();
            let half = (section.file_offset + section.size / 2) as usize;
            damaged[half..(section.file_offset + section.size) as usize].fill(0xff);
            fs::write(&program, &damaged).unwrap();
            let _ = index(&open(&program), 1);
        }
    }
}
