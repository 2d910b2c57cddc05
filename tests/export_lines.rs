//! Lines of the source in `hbbp export --format pprof` and `callgrind`, beside those that valgrind finds itself.

#[path = "support/pprof.rs"]
mod pprof;
mod support;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

use pprof::Profile;
use support::hbbp;

const PROGRAM: &str = "\
#include <stdio.h>
#include \"inner.h\"
static __attribute__((noinline)) unsigned outer(unsigned n)
{
    unsigned sum = n;
    for (unsigned i = 0; i < n; i++)
        sum += i % 5 ? inner(i) : 1;
    return sum;
}
int main(int argc, char **argv)
{
    printf(\"%u\\n\", outer(argc * 1000));
}
";

const INNER: &str = "\
static inline unsigned leaf(unsigned x) {
    return x % 3 ? x / 7 : x * 5;
}
static inline unsigned inner(unsigned x) {
    unsigned y = leaf(x);
    return y > 10 ? leaf(y) + 1 : y;
}
";

/// Executed instructions by file and line.
type Lines = BTreeMap<(String, u32), u64>;

/// Runs a command that must succeed in a folder, and returns what it printed.
fn run(folder: &Path, command: &mut Command) -> String {
    let output = command.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The costs of an object in a file of callgrind's without shortened positions; names may be shortened.
fn lines_of_callgrind(text: &str, object: &str) -> Lines {
    let mut names: HashMap<(bool, &str), &str> = HashMap::new();
    let (mut current, mut file, mut is_call) = ("", "", false);
    let mut lines = Lines::new();
    for line in text.lines() {
        if let Some((key @ ("ob" | "fl" | "fi" | "fe" | "cob" | "cfi" | "cfl"), name)) = line.split_once('=') {
            let (number, long) = name.split_once(')').unwrap_or(("", name));
            let slot = names.entry((key.contains('o'), if number.is_empty() { name } else { number })).or_insert("");
            if !long.is_empty() {
                *slot = long.trim();
            }
            match key {
                "ob" => current = slot,
                "fl" | "fi" | "fe" => file = slot,
                _ => {}
            }
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with("0x") && !std::mem::take(&mut is_call) && current == object {
            let fields: Vec<&str> = line.split(' ').collect();
            *lines.entry((file.to_owned(), fields[1].parse().unwrap())).or_default() +=
                fields[2].parse::<u64>().unwrap();
        }
    }
    lines
}

/// By the innermost function's place, and the functions' names around each place.
fn lines_of_pprof(profile: &Profile) -> (Lines, BTreeMap<(String, u32), Vec<String>>) {
    let text = |index: i64| profile.string_table[index as usize].clone();
    let (mut lines, mut names) = (Lines::new(), BTreeMap::new());
    for (sample, location) in profile.sample.iter().zip(&profile.location) {
        assert_eq!(sample.location_id, [location.id]);
        let functions = location.line.iter().map(|line| &profile.function[line.function_id as usize - 1]);
        let innermost = functions.clone().next().unwrap();
        let place = (text(innermost.filename), location.line[0].line as u32);
        *lines.entry(place.clone()).or_default() += *sample.value.last().unwrap() as u64;
        names.insert(place, functions.map(|function| text(function.name)).collect());
    }
    (lines, names)
}

#[test]
fn lines_are_those_of_valgrind() {
    if !["gcc", "valgrind", "callgrind_annotate"].iter().all(|tool| support::has(tool)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("program.c"), PROGRAM).unwrap();
    std::fs::write(path("inner.h"), INNER).unwrap();
    run(folder.path(), Command::new("gcc").args(["-O2", "-g", "program.c", "-o", "program"]));
    let options = [
        "-q",
        "--tool=callgrind",
        "--dump-instr=yes",
        "--compress-pos=no",
        "--skip-plt=no",
        "--callgrind-out-file=exact",
    ];
    run(folder.path(), Command::new("valgrind").args(options).arg(path("program")));
    for format in ["callgrind", "pprof"] {
        run(folder.path(), hbbp().args(["export", "--truth", "exact", "--format", format, "-o", format]));
    }
    let read = |name: &str| lines_of_callgrind(&std::fs::read_to_string(path(name)).unwrap(), &path("program"));
    // The start of a program has no lines.
    let known = |lines: Lines| lines.into_iter().filter(|((_, line), _)| *line > 0).collect::<Lines>();
    let expected = known(read("exact"));
    assert!(expected.len() > 6 && expected[&(path("inner.h"), 2)] > 800, "{expected:?}");
    assert_eq!(known(read("callgrind")), expected);

    let profile = Profile::open(Path::new(&path("pprof")));
    let (lines, names) = lines_of_pprof(&profile);
    let of_program =
        |lines: Lines| lines.into_iter().filter(|((file, _), _)| expected.keys().any(|key| key.0 == *file));
    assert_eq!(of_program(known(lines)).collect::<Lines>(), expected);
    assert_eq!(names[&(path("inner.h"), 2)], ["leaf", "inner", "outer"]);
    assert_eq!(names[&(path("program.c"), 6)], ["outer"]);
    // pprof takes the first mapping for the program's: the one in which most ran; not that of the smallest path.
    let mut ran: BTreeMap<u64, i64> = BTreeMap::new();
    for (sample, location) in profile.sample.iter().zip(&profile.location) {
        *ran.entry(location.mapping_id).or_default() += sample.value.last().unwrap();
    }
    let most = ran.iter().max_by_key(|(_, instructions)| **instructions).unwrap().0;
    assert!(ran.len() > 1 && profile.mapping[0].id == *most, "{ran:?} {:?}", profile.mapping);
    assert!(profile.mapping.iter().any(|mapping| mapping.has_inline_frames));
    let starts = |name: &str| {
        let of_name = profile.function.iter().filter(|function| profile.string_table[function.name as usize] == name);
        of_name.map(|function| function.start_line).collect::<Vec<_>>()
    };
    assert_eq!((starts("leaf"), starts("outer")), (vec![1], vec![3]));

    let annotated = run(folder.path(), Command::new("callgrind_annotate").arg("callgrind"));
    let line = annotated.lines().find(|line| line.contains("return x % 3 ? x / 7 : x * 5;")).unwrap();
    assert!(line.contains('%'), "{annotated}");
    if support::has("go") {
        let listed = run(folder.path(), Command::new("go").args(["tool", "pprof", "-list", "outer", "pprof"]));
        let line = listed.lines().find(|line| line.contains("sum += i % 5 ? inner(i) : 1;")).unwrap();
        let costs: Vec<u64> = line.split_whitespace().take(2).map(|cost| cost.parse().unwrap()).collect();
        assert!(costs[0] > 800 && costs[1] > 2 * costs[0], "{listed}");
    }
}
