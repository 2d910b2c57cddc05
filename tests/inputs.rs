//! What is named on the command line: files by position and of any kind, options that need a command, values of filters.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use support::Fixture;
use synthetic::{A, AROUND, Burst, Recorder, burst_metadata, note, program};

/// A folder with a program and a recording of it: `run.data`.
struct Setup {
    folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let binary = program(folder.path(), "four", &["-Wl,--build-id=0x0123456789abcdef"])?;
        let setup = Setup { folder };
        setup.write("run.data", &traced(&binary).finish(&burst_metadata("nanoseconds")));
        Some(setup)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        support::hbbp().current_dir(self.folder.path()).args(arguments).output().unwrap()
    }

    fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is said of arguments that end with this status.
    fn refused(&self, arguments: &[&str], status: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
        said(&output)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn traced(binary: &Path) -> Recorder {
    let mut recorder = Recorder::traced(binary);
    recorder.burst(&Burst { ip: A, branches: &AROUND, instructions: 60, period: 5_000 });
    recorder.sample(A);
    recorder
}

#[test]
fn files_are_named_by_position_too() {
    let Some(setup) = Setup::new() else { return };
    for command in [&["mix"][..], &["blocks"], &["annotate"], &["export", "--format", "bolt-preagg"]] {
        let with = |input: &[&str]| setup.stdout(&[command, input].concat());
        let expected = with(&["-i", "run.data"]);
        assert!(expected.lines().count() > 1, "{expected}");
        assert_eq!(with(&["run.data"]), expected);
        assert_eq!(with(&["run.data", "--threads", "2"]), expected);
        let both = setup.refused(&[command, &["run.data", "-i", "run.data"]].concat(), 2);
        assert!(both.contains("[FILE]") && both.contains("--input"), "{both}");
        let command_too = setup.refused(&[command, &["run.data", "--", "true"]].concat(), 2);
        assert!(command_too.contains("[FILE]") && command_too.contains("COMMAND"), "{command_too}");
    }
    let missing = setup.refused(&["mix"], 1);
    assert!(missing.contains("hbbp.data") && missing.contains("`hbbp mix FILE`"), "{missing}");
    let program = setup.refused(&["blocks", "sh"], 1);
    assert!(program.contains("`hbbp blocks -- sh`"), "{program}");
    // Where the default is: the recording has another name in the folder of that test only.
    std::fs::rename(setup.folder.path().join("run.data"), setup.folder.path().join("hbbp.data")).unwrap();
    assert_eq!(setup.stdout(&["mix"]), setup.stdout(&["mix", "hbbp.data"]));
}

/// Whoever forgets `--` is told.
#[test]
fn a_command_without_dashes_is_recognized() {
    let Some(setup) = Setup::new() else { return };
    for command in ["mix", "record", "blocks", "truth"] {
        let said = setup.refused(&[command, "sh", "-c", "touch ran"], 2);
        assert!(said.contains(&format!("put -- before it: hbbp {command} -- sh -c touch ran")), "{said}");
    }
    let other = setup.refused(&["mix", "run.data", "--rowz", "isa"], 2);
    assert!(other.contains("'--rows'") && !other.contains("put --"), "{other}");
}

/// A document in the shape of `hbbp truth`, of nothing.
const TRUTH: &str = r#"{"schema":"hbbp-blocks/1","source":"truth","instructions":0,"head":{"source":"truth","unit":"executions",
    "engine":"x","command":"x","processes":1,"counted":0,"left_out":[],"environment":{}},"modules":[],"blocks":[]}"#;

#[test]
fn a_file_of_another_kind_is_called_what_it_is() {
    let Some(setup) = Setup::new() else { return };
    setup.write("exact.json", TRUTH.as_bytes());
    setup.write("other.json", br#"{"schema":"grocery-list/1"}"#);
    setup.write("model.json", br#"{"schema":"hbbp-model/1"}"#);
    setup.write("run.sh", b"#!/bin/sh\nexit 0\n");
    setup.write("run.data.gz", b"\x1f\x8b\x08\x00");
    setup.write("strange.json", br#"{"$schema":5,"meta":1}"#);
    setup.write("text", b"hello\n");
    setup.write("damaged.data", b"PERFILE2");
    setup.write("callgrind.out", b"# callgrind format\nversion: 1\n");
    setup.stdout(&["merge", "-o", "all.flow", "run.data"]);
    setup.stdout(&["mix", "run.data", "--format", "json", "-o", "mix.json"]);
    setup.stdout(&["diff", "run.data", "run.data", "--format", "json", "-o", "diff.json"]);
    setup.stdout(&["report", "run.data", "--no-source", "-o", "report.html"]);
    setup.stdout(&["mix", "run.data", "--format", "csv", "-o", "mix.csv"]);
    for (format, file) in [
        ("folded", "folded"),
        ("flamegraph", "run.svg"),
        ("perf-script", "script"),
        ("speedscope", "speedscope.json"),
        ("firefox", "firefox.json"),
    ] {
        setup.stdout(&["export", "run.data", "--format", format, "-o", file]);
    }
    for command in ["mix", "blocks", "annotate"] {
        for (file, expected) in [
            ("four", format!("four is an ELF program: did you mean `hbbp {command} -- ./four`?")),
            ("./run.sh", format!("./run.sh is a script: did you mean `hbbp {command} -- ./run.sh`?")),
            ("callgrind.out", "callgrind.out is a file of callgrind; ".to_owned()),
            ("mix.json", "mix.json is what `hbbp mix --format json` printed; ".to_owned()),
            ("diff.json", "diff.json is what `hbbp diff --format json` printed; ".to_owned()),
            ("speedscope.json", "speedscope.json is a file for speedscope; ".to_owned()),
            ("firefox.json", "firefox.json is a file for the Firefox Profiler; ".to_owned()),
            ("model.json", "model.json is a model of `hbbp train`; ".to_owned()),
            ("other.json", "other.json is JSON, but no document of hbbp; ".to_owned()),
            ("strange.json", "strange.json is JSON, but no document of hbbp; ".to_owned()),
            ("run.data.gz", "run.data.gz is packed by gzip; ".to_owned()),
            ("report.html", "report.html is an HTML page; ".to_owned()),
            ("mix.csv", "mix.csv is a table (CSV); ".to_owned()),
            ("folded", "folded is folded stacks; ".to_owned()),
            ("run.svg", "run.svg is an SVG picture; ".to_owned()),
            ("script", "script is text of `perf script`; ".to_owned()),
            ("text", "text is not a recording of `hbbp record` or `perf record`: ".to_owned()),
            ("damaged.data", "damaged.data: ".to_owned()),
            (".", ". is a directory, and none of `perf record --kcore`; ".to_owned()),
        ] {
            for arguments in [&[command, file][..], &[command, "-i", file]] {
                let said = setup.refused(arguments, 1);
                assert!(said.contains(&expected), "{arguments:?}: {said}");
            }
        }
    }
    for (file, expected) in [("exact.json", "is a truth of `hbbp truth`"), ("all.flow", "is a merged file")] {
        let said = setup.refused(&["label", file, "--truth", "exact.json", "--program", "x", "-o", "y"], 1);
        assert!(said.contains(&format!("{file} {expected}")) && said.contains("hbbp label reads recordings"), "{said}");
    }
    for command in ["mix", "blocks", "annotate"] {
        setup.stdout(&[command, "all.flow"]);
        let said = setup.run(&[command, "exact.json"]);
        let said = String::from_utf8_lossy(&said.stderr);
        assert!(!said.contains("reads recordings"), "{said}");
    }
    assert!(setup.refused(&["mix", "exact.json"], 1).contains("no code of it ran, or none is known"));
    for reader in [&["diff", "run.data"][..], &["merge", "-o", "out.flow"], &["export", "--format", "pprof"]] {
        assert!(setup.run(&[reader, &["all.flow"]].concat()).status.success(), "{reader:?}");
        for (file, expected) in [
            ("mix.json", "is what `hbbp mix --format json` printed"),
            ("diff.json", "is what `hbbp diff --format json` printed"),
            ("four", "is an ELF program"),
            ("text", "is not a recording"),
        ] {
            let said = setup.refused(&[reader, &[file]].concat(), 1);
            assert!(said.contains(&format!("{file} {expected}")), "{reader:?}: {said}");
        }
    }
    for (file, expected) in
        [("run.data", "is a recording"), ("all.flow", "is a merged file"), ("mix.json", "is what `hbbp mix")]
    {
        let said = setup.refused(&["validate", "run.data", "--truth", file], 1);
        assert!(said.contains(&format!("{file} {expected}")) && said.contains("--truth reads exact counts"), "{said}");
    }
}

/// Blocks and annotated functions have counts of blocks: all reports can be made of them.
#[test]
fn documents_with_blocks_are_read() {
    let Some(setup) = Setup::new() else { return };
    let rows = |file: &str| setup.stdout(&["mix", file, "--rows", "function,mnemonic", "--format", "csv"]);
    for (command, file) in [("blocks", "blocks.json"), ("annotate", "annotate.json")] {
        setup.stdout(&[command, "run.data", "--format", "json", "-o", file]);
        for reader in [&["mix"][..], &["blocks"], &["annotate"], &["vectorization"], &["report", "-o", "-"]] {
            assert!(!setup.stdout(&[reader, &[file]].concat()).is_empty(), "{reader:?} {file}");
        }
        setup.stdout(&["diff", "run.data", file]);
    }
    assert!(rows("blocks.json").lines().count() > 3, "{}", rows("blocks.json"));
    assert_eq!(rows("annotate.json"), rows("blocks.json"));
}

/// After a file, or alone where the recording is there that is read by default, a name is that of a function.
#[test]
fn functions_are_named_by_position() {
    let Some(setup) = Setup::new() else { return };
    let expected = setup.stdout(&["annotate", "run.data", "-f", "_start"]);
    assert_eq!(setup.stdout(&["annotate", "run.data", "_start"]), expected);
    assert_eq!(setup.stdout(&["annotate", "run.data", "_start", "-f", "_start"]), expected);
    let no_file = setup.refused(&["annotate", "_start"], 1);
    assert!(no_file.starts_with("hbbp: _start: opening the recording"), "{no_file}");
    std::fs::rename(setup.folder.path().join("run.data"), setup.folder.path().join("hbbp.data")).unwrap();
    assert_eq!(setup.stdout(&["annotate", "_start"]), expected);
    let neither = setup.refused(&["annotate", "_strat"], 1);
    assert!(neither.contains("_strat is no file, and is taken for a function of hbbp.data: "), "{neither}");
    assert!(neither.contains("did you mean --function '_start'?"), "{neither}");
    // Of two names the first is a file, even if it is none.
    for mistyped in [&["annotate", "rnu.data", "_start"][..], &["annotate", "rnu.data", "-f", "_start"]] {
        let said = setup.refused(mistyped, 1);
        assert!(said.starts_with("hbbp: rnu.data: opening the recording"), "{said}");
    }
    let path = setup.refused(&["annotate", "there/_start"], 1);
    assert!(path.starts_with("hbbp: there/_start: opening the recording"), "{path}");
}

/// What a shell makes of `<(..)`: recordings are read from it, and for others it is said what to do.
#[test]
fn a_pipe_that_is_named_has_a_recording_or_is_called_a_pipe() {
    let Some(setup) = Setup::new() else { return };
    setup.write("exact.json", TRUTH.as_bytes());
    let pipe = setup.folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let with = |file: &str, read: &dyn Fn()| {
        let content = std::fs::read(setup.folder.path().join(file)).unwrap();
        std::thread::scope(|scope| {
            // Who reads may go before all is written.
            scope.spawn(|| std::fs::write(&pipe, content));
            read();
        });
    };
    let expected = setup.stdout(&["mix", "run.data"]);
    with("run.data", &|| assert_eq!(setup.stdout(&["mix", "pipe"]), expected));
    with("exact.json", &|| {
        let said = setup.refused(&["mix", "pipe"], 1);
        assert!(said.contains("pipe is a pipe") && said.contains("named, or piped in (-)"), "{said}");
    });
}

/// A recording stays as it is: what is said of recording would be ignored.
#[test]
fn options_of_recording_need_a_command() {
    let Some(setup) = Setup::new() else { return };
    for option in
        ["--overhead=5", "--tracer=none", "--expect=seconds", "--burst=100", "-F99", "--off", "--stdout=hidden"]
    {
        for command in
            [&["mix"][..], &["blocks"], &["export", "--format", "bolt-preagg"], &["validate", "--truth", "x"]]
        {
            let said = setup.refused(&[command, &["run.data", option]].concat(), 2);
            let name = option.split('=').next().unwrap().replace("-F99", "--freq");
            assert!(said.contains(&format!("{name} is for recording a command")), "{said}");
        }
        setup.refused(&["mix", option], 2);
    }
    let said = setup.refused(&["mix", "run.data", "--precision", "5%"], 2);
    assert!(said.contains("--precision is for recording a command"), "{said}");
}

#[test]
fn overhead_has_a_range() {
    let Some(setup) = Setup::new() else { return };
    for command in ["record", "mix", "blocks", "validate"] {
        for overhead in ["200", "0", "-1", "nan", "inf", "much"] {
            let said = setup.refused(&[command, "--overhead", overhead, "--", "touch", "ran"], 2);
            assert!(said.contains("above 0 and up to 100") && said.contains("--overhead"), "{said}");
        }
    }
    assert!(!setup.folder.path().join("ran").exists());
}

/// Rows of a mix of the fixture of C++.
fn rows(fixture: &Fixture, options: &[&str]) -> (Vec<String>, String) {
    let input = fixture.input();
    let shape = ["mix", "--rows", "function", "--format", "json"];
    let output = support::run(&[&shape, options, &input.each_ref().map(String::as_str)].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let rows = document["rows"].as_array().cloned().unwrap_or_default();
    (rows.iter().map(|row| row["function"].as_str().unwrap().to_owned()).collect(), said(&output))
}

#[test]
fn functions_are_filtered_without_their_arguments() {
    let fixture = Fixture::bursts("objects");
    let area = "(anonymous namespace)::Polygon::area() const";
    for filter in [area, "(anonymous namespace)::Polygon::area"] {
        let (rows, said) = rows(&fixture, &["--filter", &format!("function={filter}")]);
        assert_eq!(rows, [area], "{said}");
    }
    let (others, _) = rows(&fixture, &["--filter", "function!=(anonymous namespace)::Polygon::area"]);
    assert!(others.len() > 1 && !others.iter().any(|name| name == area), "{others:?}");
    // A whole name is no part of another.
    let (main, _) = rows(&fixture, &["--filter", "function=main"]);
    assert_eq!(main, ["main"]);
}

#[test]
fn a_value_that_nothing_has_is_said_with_the_nearest() {
    let fixture = Fixture::bursts("objects");
    let mean = "did you mean --filter 'function=(anonymous namespace)::Circle::area() const' or 'function=(";
    let (nothing, said) = rows(&fixture, &["--filter", "function=aera"]);
    assert!(nothing.is_empty() && said.contains("nothing to show") && said.contains(mean), "{said}");
    // The others are shown.
    let (main, said) = rows(&fixture, &["--filter", "function=main,aera"]);
    assert!(main == ["main"] && said.contains("nothing has the function \"aera\"") && said.contains(mean), "{said}");
    let (some, said) = rows(&fixture, &["--filter", "mnemonic!=movv"]);
    assert!(!some.is_empty() && said.contains("'mnemonic=mov'"), "{said}");
    // What another filter leaves out is there all the same.
    let (_, said) = rows(&fixture, &["--filter", "mnemonic=ret", "--filter", "isa=base"]);
    assert!(!said.contains("nothing has"), "{said}");
    let (_, said) = rows(&fixture, &["--filter", "function=quicksort"]);
    assert!(
        said.contains("`hbbp mix --rows function` shows what there is") && !said.contains("did you mean"),
        "{said}"
    );
}

/// What recording took is no share of a program that hardly ran.
#[test]
fn an_idle_program_has_no_overhead() {
    let Some(setup) = Setup::new() else { return };
    let head = |application: u64| {
        let recorder = traced(&setup.folder.path().join("four"));
        setup.write(
            "idle.data",
            &recorder.finish(&note(&format!(
                r#"{{"schema":"hbbp-recording/1","duration_ns":10000000000,"events":[
            {{"name":"task-clock","role":"ebs","unit":"nanoseconds"}},
            {{"name":"burst:u","role":"lbr","provenance":"software","unit":"nanoseconds"}}],
            "tracer":{{"kind":"agent","bursts":1,"overhead":187.0,"time":{{"application_ns":{application}}}}}}}"#
            ))),
        );
        ["-v", "--top=5"].map(|option| setup.stdout(&["mix", "idle.data", option])).concat()
    };
    let idle = head(90_000_000);
    assert!(idle.contains("tracer   agent; the program was idle: 90.0 ms of CPU time in 10.00 s\n"), "{idle}");
    assert!(idle.contains("instructions; the program was idle: 90.0 ms of CPU time in 10.00 s;"), "{idle}");
    assert!(!idle.contains("187"), "{idle}");
    let busy = head(110_000_000);
    assert!(
        busy.contains("tracer   agent, overhead 187.00 %") && busy.contains("instructions, overhead 187.00 %"),
        "{busy}"
    );
}
