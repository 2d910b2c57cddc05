//! Traces of a processor (Intel PT): counts of the blocks are those of the path that was traced.
//!
//! The traces are written here, packet by packet, of random paths through a real program; nothing was recorded by a processor.

#[path = "support/pt_packets.rs"]
mod pt_packets;
#[path = "support/pt_recording.rs"]
mod pt_recording;
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use pt_packets::{Cpu, OVF, Style};
use pt_recording::{PtRecording, Thread, Traced};
use serde_json::Value;

const PLAIN: Style = Style { compresses_returns: false, defers_addresses: false, has_long_tnt: false };

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&support::stdout(arguments)).unwrap()
}

fn write(folder: &Path, recording: PtRecording) -> String {
    let file = folder.join("run.data");
    std::fs::write(&file, recording.finish()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Checks that the blocks have the counts of their first instructions, and that no block is missing.
fn check(document: &Value, executed: &BTreeMap<u64, u64>) {
    let mut covered = 0;
    for block in document["blocks"].as_array().unwrap() {
        let number = |key: &str| block[key].as_u64().unwrap();
        let counts: Vec<u64> = executed.range(number("start")..number("end")).map(|(_, count)| *count).collect();
        covered += counts.len();
        let expected = counts.iter().max().copied().unwrap_or(0);
        assert_eq!(
            counts.iter().min().copied().unwrap_or(0),
            expected,
            "a block is executed from its start to its end"
        );
        assert_eq!(block["count"].as_f64().unwrap(), expected as f64, "{block}");
    }
    assert_eq!(covered, executed.len());
}

#[test]
fn counts_are_those_of_the_path_whatever_the_packets_are_like() {
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = Traced::assemble(folder.path()) else { return };
    let mut seed = 0;
    for compresses_returns in [false, true] {
        for defers_addresses in [false, true] {
            for has_long_tnt in [false, true] {
                let style = Style { compresses_returns, defers_addresses, has_long_tnt };
                for _ in 0..4 {
                    seed += 1;
                    let mut thread = Thread::new(&traced, style, seed);
                    thread.begin();
                    thread.walk(3000);
                    thread.stop();
                    let recording = PtRecording::of(&thread, 2);
                    let file = write(folder.path(), recording);
                    let document = json(&["blocks", "-i", &file, "--format", "json"]);
                    check(&document, &thread.executed);
                    assert_eq!(document["head"]["unit"], "executions");
                }
            }
        }
    }
}

#[test]
fn threads_that_share_a_cpu_are_told_apart_and_go_on_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = Traced::assemble(folder.path()) else { return };
    let style = Style { compresses_returns: true, ..PLAIN };
    let mut threads = [Thread::new(&traced, style, 1), Thread::new(&traced, style, 2)];
    let mut recording = PtRecording::new(&traced);
    let mut cpus = [Cpu::default(), Cpu::default()];
    for turn in 0..40 {
        for (index, thread) in threads.iter_mut().enumerate() {
            // Each is now on this CPU, now on the other. The hardware writes a PSB at its first start, and then when it has written enough.
            let cpu = (turn + index) / 3 % 2;
            thread.packets.swap(&mut cpus[cpu]);
            thread.go_on(recording.is_empty(cpu as u32));
            thread.walk(200);
            thread.stop();
            thread.packets.swap(&mut cpus[cpu]);
            recording.filled(7 + index as u32, cpu as u32, std::mem::take(&mut thread.packets.bytes));
        }
    }
    let file = write(folder.path(), recording);
    let csv = support::stdout(&["mix", "-i", &file, "--rows", "thread,function", "--format", "csv"]);
    let counts: BTreeMap<(String, String), f64> = csv
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            ((fields[0].to_owned(), fields[1].to_owned()), fields[2].parse().unwrap())
        })
        .collect();
    for (index, thread) in threads.iter().enumerate() {
        for (function, place) in traced.places() {
            let executed: u64 = thread.executed.range(place).map(|(_, count)| *count).sum();
            let count = counts.get(&(format!("{}:?", 7 + index), function.to_owned())).copied();
            assert_eq!(count, Some(executed as f64), "{csv}");
        }
    }
}

/// Handlers of signals do not disturb what they interrupt, however many come.
#[test]
fn signals_cost_the_last_line_of_their_handlers_alone() {
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = Traced::assemble(folder.path()) else { return };
    let mut thread = Thread::new(&traced, PLAIN, 4);
    thread.begin();
    for _ in 0..200 {
        thread.walk(30);
        thread.handle_signal();
    }
    thread.walk(100);
    thread.stop();
    let recording = PtRecording::of(&thread, 1);
    let document = json(&["blocks", "-i", &write(folder.path(), recording), "--format", "json"]);
    let said = document["head"].to_string();
    assert!(said.contains("200 straight lines that a signal or the like has ended"), "{said}");
    for block in document["blocks"].as_array().unwrap() {
        let executed = thread.executed[&block["start"].as_u64().unwrap()];
        let at_end = block["start"].as_u64() == Some(traced.last_line());
        let expected = if at_end { executed - 200 } else { executed };
        assert_eq!(block["count"].as_f64(), Some(expected as f64), "{block}");
    }
}

/// Branches that have no packets may go around in circles: that cannot be, or it has nothing to say.
#[test]
fn circles_of_direct_jumps_count_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = Traced::assemble_source(folder.path(), ".globl _start\n_start: jmp _start\n") else { return };
    let mut thread = Thread::new(&traced, PLAIN, 1);
    thread.begin();
    for _ in 0..1000 {
        thread.packets.bit(true);
        thread.packets.interrupted(0x40_1000);
        thread.packets.on(0x40_1000);
    }
    let recording = PtRecording::of(&thread, 1);
    let output =
        support::hbbp().args(["blocks", "--format", "json", "-i", &write(folder.path(), recording)]).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["blocks"].as_array().map(Vec::len), Some(0), "{document}");
    assert!(document["head"].to_string().contains("places that do not fit the code"), "{}", document["head"]);
}

#[test]
fn what_is_lost_is_said_and_the_rest_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = Traced::assemble(folder.path()) else { return };
    let recorded = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut thread = Thread::new(&traced, PLAIN, 3);
        thread.begin();
        thread.walk(3000);
        change(&mut thread.packets.bytes);
        let recording = PtRecording::of(&thread, 1);
        let document = json(&["blocks", "-i", &write(folder.path(), recording), "--format", "json"]);
        let all: f64 =
            document["blocks"].as_array().unwrap().iter().map(|block| block["count"].as_f64().unwrap()).sum();
        (all, document["head"].to_string())
    };
    let (whole, said) = recorded(&|_| {});
    assert!(!said.contains("processor trace"), "{said}");
    // An overflow in the middle: until the next place is known, nothing is counted.
    let (some, said) = recorded(&|bytes| {
        let middle = bytes.len() / 2;
        let sync = bytes[middle..].windows(2).position(|pair| pair == [2, 0x82]).unwrap() + middle;
        bytes.splice(sync..sync, OVF);
    });
    assert!(said.contains("the processor trace has 1 gap"), "{said}");
    assert!(some > 0.9 * whole && some <= whole, "{some} of {whole}");
    // The next thing after a loss is an interrupt: what comes after its place was not executed yet.
    let mut thread = Thread::new(&traced, PLAIN, 3);
    thread.begin();
    thread.walk(1000);
    for _ in 0..200 {
        thread.lose();
        thread.walk(20);
    }
    thread.stop();
    let recording = PtRecording::of(&thread, 1);
    let document = json(&["blocks", "-i", &write(folder.path(), recording), "--format", "json"]);
    for block in document["blocks"].as_array().unwrap() {
        let executed = thread.executed[&block["start"].as_u64().unwrap()] as f64;
        let count = block["count"].as_f64().unwrap();
        assert!(count <= executed && count > 0.8 * executed - 10.0, "{block}: {executed}");
    }
    assert!(!document["head"].to_string().contains("does not fit"), "{}", document["head"]);
    // Bytes that are no packet.
    let (some, said) = recorded(&|bytes| {
        let middle = bytes.len() / 2;
        bytes.splice(middle..middle, [2, 0xff, 2, 0xff]);
    });
    assert!(said.contains("the processor trace"), "{said}");
    assert!(some > 0.3 * whole && some <= whole, "{some} of {whole}");
    // Cut off anywhere, nothing panics.
    for cut in 1..40 {
        recorded(&|bytes| bytes.truncate(bytes.len() * cut / 40));
    }
}

/// Whatever the file ends with, nothing panics.
#[test]
fn recordings_that_are_cut_are_read_as_far_as_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = Traced::assemble(folder.path()) else { return };
    let mut thread = Thread::new(&traced, PLAIN, 3);
    thread.begin();
    thread.walk(500);
    let recording = PtRecording::of(&thread, 3);
    let whole = recording.finish();
    let file = folder.path().join("cut.data");
    for cut in 0..40 {
        std::fs::write(&file, &whole[..whole.len() * cut / 40]).unwrap();
        let status = support::hbbp().arg("mix").arg(&file).output().unwrap().status;
        assert!(matches!(status.code(), Some(0 | 1)), "{cut}: {status}");
    }
}

/// A place where something interrupts a program of which nothing is known is no place where it goes on.
#[test]
fn places_of_interrupts_are_not_executed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = Traced::assemble(folder.path()) else { return };
    let mut thread = Thread::new(&traced, PLAIN, 3);
    // Where there is no code.
    thread.packets.sync(None);
    thread.packets.on(0x50_0000);
    for _ in 0..100 {
        thread.packets.bit(true);
        thread.packets.interrupted(0x40_1000);
        thread.packets.on(0x50_0000);
    }
    let recording = PtRecording::of(&thread, 1);
    let output = support::hbbp().args(["mix", "-i", &write(folder.path(), recording)]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("nothing of its processor trace could be followed") && !said.contains("fit the code"),
        "{said}"
    );
}

/// A recording whose kernel is traced, too: what the kernel did is not followed, and what the program did is.
#[test]
fn the_kernels_part_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = Traced::assemble(folder.path()) else { return };
    let mut thread = Thread::new(&traced, PLAIN, 8);
    thread.traces_kernel = true;
    thread.begin();
    thread.walk(3000);
    thread.stop();
    let recording = PtRecording::of(&thread, 1);
    let document = json(&["blocks", "-i", &write(folder.path(), recording), "--format", "json"]);
    check(&document, &thread.executed);
    assert!(
        document["head"].to_string().contains("parts of the kernel's: its code is not followed"),
        "{}",
        document["head"]
    );
    assert_eq!(document["blocks"][0]["count_error"], Value::Null);
}

#[test]
fn without_the_code_it_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = Traced::assemble(folder.path()) else { return };
    let mut thread = Thread::new(&traced, PLAIN, 3);
    thread.begin();
    thread.walk(300);
    let recording = PtRecording::of(&thread, 1);
    let file = write(folder.path(), recording);
    std::fs::remove_file(&traced.binary).unwrap();
    let output = support::hbbp().args(["mix", "-i", &file]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = said.split_whitespace().collect();
    assert!(words.join(" ").contains("that cannot be read: it is not counted there"), "{said}");
}

/// Intel's own decoder takes the same path. It does not know addresses that come late.
#[test]
fn libipt_takes_the_same_path() {
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = Traced::assemble(folder.path()) else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/libipt.c");
    let Some(decoder) = testing::c_program(folder.path(), "libipt", &[source], &["-lipt"]) else { return };
    for (seed, compresses_returns) in [(5, false), (6, true), (7, true)] {
        let mut thread = Thread::new(&traced, Style { compresses_returns, ..PLAIN }, seed);
        thread.begin();
        thread.walk(3000);
        thread.stop();
        let trace = folder.path().join("trace");
        std::fs::write(&trace, &thread.packets.bytes).unwrap();
        let place = ["0x1000", "0x100", "0x401000"];
        let output = Command::new(&decoder).arg(&trace).arg(&traced.binary).args(place).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut executed: BTreeMap<u64, u64> = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            *executed.entry(u64::from_str_radix(line, 16).unwrap()).or_default() += 1;
        }
        assert_eq!(executed, thread.executed, "{seed}");
    }
}

/// What `perf` makes of a real trace, without the binaries: it cannot follow the path, and each place where it could not is counted.
#[test]
fn what_perf_makes_of_a_real_trace_is_read() {
    let Some(file) = testing::hardware_recording("intel_pt-4.14.perf.data") else { return };
    if !testing::has("perf") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("branches.data");
    let perf = |arguments: &[&str], of: &Path| {
        let mut perf = Command::new("perf");
        let output = perf.args(arguments).arg("-i").arg(of).env("HOME", folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "perf {arguments:?}: {said}");
        (String::from_utf8_lossy(&output.stdout).into_owned(), said)
    };
    let (_, said) = perf(&["inject", "--itrace=i100usle", "-o", made.to_str().unwrap()], &file);
    let errors = said
        .lines()
        .find_map(|line| line.strip_suffix(" instruction trace errors"))
        .unwrap_or_else(|| panic!("{said}"));
    let (samples, _) = perf(&["script", "-F", "event"], &made);
    let samples = samples.lines().filter(|line| line.contains("cycles")).count();
    let output = support::hbbp().args(["mix", "-v", "--rows", "module", "-i"]).arg(&made).output().unwrap();
    let mixed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{mixed}{}", String::from_utf8_lossy(&output.stderr));
    let words = mixed.split_whitespace().filter(|word| *word != "#").collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("perf could not decode the processor trace in {errors} places")), "{words}");
    assert!(samples > 0 && words.contains(&format!("cycles: {samples} samples")), "{samples}: {words}");
    assert!(words.contains("0 malformed, 0 unknown"), "{words}");
}

/// Of real hardware, with the kernel, without the binaries.
#[test]
fn a_real_trace_is_read_and_what_is_missing_is_said() {
    let Some(file) = testing::hardware_recording("intel_pt-4.14.perf.data") else { return };
    let output = support::hbbp().args(["blocks", "--format", "json", "-i"]).arg(&file).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = document["head"].to_string();
    assert!(said.contains("times to code of /lib64/ld-2.23.so that cannot be read"), "{said}");
    // All its bytes are packets, and the hardware lost none.
    assert!(!said.contains("are no packets") && !said.contains("gap") && !said.contains("mean nothing"), "{said}");
}
