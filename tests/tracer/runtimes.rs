//! Runtimes that make code: do hot functions have their names, and is their code counted?

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::made_code::{mix, modules};
use crate::place::Place;
use crate::{errors, text};

/// Prints the process, which names the perf map, as the last word of a line.
const JAVASCRIPT: &str = "
function hot(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum * 3 + i) | 0; return sum; }
let sum = 0; for (let i = 0; i < 30; i++) sum ^= hot(2e7); console.log(sum, process.pid);
";

const JAVA: &str = "
public class Hot {
    static int hot(int n) { int sum = 0; for (int i = 0; i < n; i++) sum = sum * 3 + (i ^ sum); return sum; }
    public static void main(String[] arguments) throws Exception {
        int sum = 0;
        for (int turn = 0; turn < 100; turn++) sum ^= hot(4000000);
        System.out.println(sum + \" \" + ProcessHandle.current().pid());
        if (arguments.length > 0) System.in.read();
        for (int turn = 0; turn < 300; turn++) sum ^= hot(4000000);
        System.out.println(sum);
    }
}
";

const PYTHON: &str = "
import os
def hot(n): return n if n < 2 else hot(n - 1) + hot(n - 2)
print(sum(hot(20) for turn in range(60)), os.getpid())
";

const LUA: &str = "
local function hot(n) local sum = 0; for i = 1, n do sum = (sum * 3 + i) % 1000003 end return sum end
local sum = 0; for i = 1, 20 do sum = sum + hot(5000000) end print(sum)
";

const WASM: &str = r#"
import os, sys, wasmtime
config = wasmtime.Config()
config.profiler = sys.argv[1]
store = wasmtime.Store(wasmtime.Engine(config))
module = wasmtime.Module(store.engine, """(module (func $hot (export "hot") (param $n i32) (result i32) (local $sum i32)
    (loop $again
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (local.get $n)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $again (local.get $n)))
    (local.get $sum)))""")
hot = wasmtime.Instance(store, module, []).exports(store)["hot"]
print(sum(hot(store, 100000000) for turn in range(6)), os.getpid())
"#;

/// Whether a command succeeds.
fn succeeds(command: &[&str]) -> bool {
    let mut started = Command::new(command[0]);
    started.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    started.status().is_ok_and(|status| status.success())
}

/// A file in the folder of the test.
fn source(place: &Place, name: &str, text: &str) -> PathBuf {
    std::fs::write(place.path(name), text).unwrap();
    place.path(name)
}

/// Records a command that prints its process as the last word of its first line, and removes the perf map of that process.
fn record(place: &Place, command: &[&str]) {
    let output = place.record(&[&["--"], command].concat());
    assert!(output.status.success(), "{command:?}: {}", errors(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    remove_map(said.lines().next().unwrap_or_default());
}

fn remove_map(said: &str) {
    let pid: u32 = said.split_whitespace().next_back().and_then(|pid| pid.parse().ok()).expect(said);
    let _ = std::fs::remove_file(format!("/tmp/perf-{pid}.map"));
}

/// Functions whose names contain `hot` have a share of the code that was made, and their instructions are known.
fn is_hot(place: &Place, how: &str, hot: &str, share: f64) {
    let counts = mix(place);
    let all: f64 = counts.values().sum();
    let of_hot: Vec<_> = counts.iter().filter(|((name, _), _)| name.contains(hot)).collect();
    let count: f64 = of_hot.iter().map(|(_, count)| **count).sum();
    assert!(count > share * all, "{how}: {counts:?}");
    assert!(of_hot.iter().all(|((_, mnemonic), _)| !mnemonic.starts_with('[')), "{how}: {counts:?}");
    let unread = modules(place).get("//anon").copied().unwrap_or(0.0);
    assert!(unread < 0.02, "{how}: {unread} of the instructions are in code of which the recording has no bytes");
}

#[test]
fn functions_of_node_have_their_names() {
    let Some(place) = Place::to_trace() else { return };
    if !succeeds(&["node", "--version"]) {
        testing::skip!(Tool, "node is not installed");
        return;
    }
    let script = source(&place, "hot.js", JAVASCRIPT);
    for how in ["--perf-basic-prof", "--perf-prof"] {
        record(&place, &["node", how, text(&script)]);
        is_hot(&place, how, "hot ", 0.5);
    }
}

/// Compiles the program of Java; `None`, said on stderr, without a JDK.
fn java(place: &Place) -> Option<()> {
    source(place, "Hot.java", JAVA);
    if !succeeds(&["javac", "-version"]) {
        testing::skip!(Tool, "no JDK is installed");
        return None;
    }
    assert!(succeeds(&["javac", "-d", text(place.folder()), text(&place.path("Hot.java"))]));
    if !succeeds(&["java", "-XX:+UnlockDiagnosticVMOptions", "-XX:-DumpPerfMapAtExit", "-version"]) {
        testing::skip!(ToolVersion, "this JVM writes no perf map: JDK 17 and later do");
        return None;
    }
    Some(())
}

#[test]
fn functions_of_a_jvm_have_the_names_of_its_end() {
    let Some(place) = Place::to_trace() else { return };
    let Some(()) = java(&place) else { return };
    let options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-cp", text(place.folder())];
    record(&place, &[&["java"], &options[..], &["Hot"]].concat());
    is_hot(&place, "at its end", "Hot.hot", 0.5);
}

#[test]
fn functions_of_a_jvm_have_the_names_that_are_asked_for_while_it_runs() {
    let Some(place) = Place::to_trace() else { return };
    let Some(()) = java(&place) else { return };
    let mut recording = place
        .hbbp(&["record", "--", "java", "-cp", text(place.folder()), "Hot", "waits"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(recording.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    let pid = said.split_whitespace().next_back().expect("it says which process it is");
    let dumped = Command::new("jcmd").args([pid, "Compiler.perfmap"]).output().unwrap();
    // The JVM goes on when its input ends.
    drop(recording.stdin.take());
    assert!(recording.wait().unwrap().success());
    remove_map(&said);
    assert!(dumped.status.success(), "{dumped:?}");
    is_hot(&place, "jcmd", "Hot.hot", 0.5);
}

#[test]
fn functions_of_python_have_their_names_in_its_trampolines() {
    let Some(place) = Place::to_trace() else { return };
    let can = "import sys; sys.exit(not sys.is_stack_trampoline_active())";
    let found = ["python3", "python3.14", "python3.13", "python3.12"]
        .into_iter()
        .find(|python| succeeds(&[python, "-X", "perf", "-c", can]));
    let Some(python) = found else {
        testing::skip!(ToolVersion, "no Python with trampolines for perf: 3.12 and later have them");
        return;
    };
    let script = source(&place, "hot.py", PYTHON);
    record(&place, &[python, "-X", "perf", text(&script)]);
    is_hot(&place, python, "py::hot:", 0.5);
}

#[test]
fn functions_of_wasmtime_have_their_names() {
    let Some(place) = Place::to_trace() else { return };
    if !succeeds(&["python3", "-c", "import wasmtime"]) {
        testing::skip!(ToolVersion, "Python has no package wasmtime");
        return;
    }
    let script = source(&place, "hot.py", WASM);
    for how in ["perfmap", "jitdump"] {
        record(&place, &["python3", text(&script), how]);
        is_hot(&place, how, "hot", 0.5);
    }
}

/// As Debian has it, it writes no names.
#[test]
fn code_of_luajit_is_counted_by_its_addresses() {
    let Some(place) = Place::to_trace() else { return };
    if !succeeds(&["luajit", "-v"]) {
        testing::skip!(Tool, "luajit is not installed");
        return;
    }
    let script = source(&place, "hot.lua", LUA);
    let output = place.record(&["--", "luajit", text(&script)]);
    assert!(output.status.success(), "{}", errors(&output));
    is_hot(&place, "luajit", "[jit 0x", 0.9);
    assert!(modules(&place).get("[jit]").copied().unwrap_or(0.0) > 0.5, "{:?}", modules(&place));
}
