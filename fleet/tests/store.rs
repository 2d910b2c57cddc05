//! Stores: what is kept and asked, and what happens to them when something goes wrong.

mod support;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use support::{Setup, copy};

/// Three recordings of two services, two versions and two hosts, on three days.
fn three(setup: &Setup) -> [String; 3] {
    let files =
        [("a", "01", 1.5), ("b", "01", 2.5), ("c", "02", 4.0)].map(|(name, id, count)| setup.flow(name, id, count));
    let labels =
        [["web", "1", "h1", "2025-01-01"], ["web", "2", "h2", "2025-01-02"], ["mail", "2", "h1", "2025-01-03"]];
    for (file, [service, version, host, day]) in files.iter().zip(labels) {
        let time = format!("{day}T10:00:00Z");
        let labels = ["--service", service, "--version", version, "--host", host, "--time", &time];
        setup.said(&[&["ingest", &setup.path("store"), file], &labels[..]].concat());
    }
    files
}

/// Sixteenths of the recordings, which say how uncertain the sum is: together they have what it has, and the sum is the same.
#[test]
fn sixteenths_add_up_to_the_slice() {
    let setup = Setup::new();
    let store = setup.path("store");
    let recordings: Vec<String> =
        (1..=9).map(|number| setup.flow(&number.to_string(), "01", f64::from(number))).collect();
    for file in &recordings {
        setup.said(&["ingest", &store, file, "--time", "2025-01-01T10:00:00Z", "--service", "web"]);
    }
    let document = |options: &[&str]| -> Value {
        let out = setup.path("out");
        setup.said(&[&["slice", &store, "-o", &out], options].concat());
        serde_json::from_str(&fs::read_to_string(out).unwrap()).unwrap()
    };
    let ranges = |module: &Value| -> Vec<(u64, u64, f64)> {
        let range =
            |range: &Value| (range[0].as_u64().unwrap(), range[1].as_u64().unwrap(), range[2].as_f64().unwrap());
        module["ranges"].as_array().unwrap().iter().map(range).collect()
    };
    let (plain, mut apart) = (document(&[]), document(&["--slices"]));
    assert_eq!(setup.slice("store", &[]), setup.merged(&recordings.iter().map(String::as_str).collect::<Vec<_>>()));
    let mut slices = Vec::new();
    for module in apart["modules"].as_array_mut().unwrap() {
        slices.push(module.as_object_mut().unwrap().remove("slices").unwrap_or_default());
    }
    assert_eq!(apart, plain);
    for (module, slices) in plain["modules"].as_array().unwrap().iter().zip(&slices) {
        let slices = slices.as_array().map_or(&[][..], Vec::as_slice);
        assert!(ranges(module).is_empty() || (3..=9).contains(&slices.len()), "{} of nine recordings", slices.len());
        for (first, last, count) in ranges(module) {
            let same = slices.iter().flat_map(ranges).filter(|range| (range.0, range.1) == (first, last));
            assert_eq!(same.map(|range| range.2).sum::<f64>(), count);
        }
    }
    // Put together they are one part, which nothing is compared with.
    setup.said(&["compact", &store, "--by", "service", "--older-than", "1"]);
    assert_eq!(document(&["--slices"]), plain);
}

#[test]
fn slices_are_sums_of_what_is_in_them() {
    let setup = Setup::new();
    let [a, b, c] = three(&setup);
    let check = |selection: &[&str], files: &[&str]| {
        assert_eq!(setup.slice("store", selection), setup.merged(files), "{selection:?}");
    };
    check(&["--service", "web"], &[&a, &b]);
    check(&["--host", "h1"], &[&a, &c]);
    check(&["--version", "2", "--service", "web"], &[&b]);
    check(&["--since", "2025-01-02"], &[&b, &c]);
    check(&["--until", "2025-01-02T10:00:00Z"], &[&a]);
    check(&["--since", "5000w"], &[&a, &b, &c]);
    let error = setup.error(&["slice", &setup.path("store"), "--service", "it's", "-o", &setup.path("out")]);
    assert!(error.contains("no recording is of that slice"), "{error}");
    let output = setup.run(&["slice", &setup.path("store"), "--since", "yesterday", "-o", &setup.path("out")]);
    assert_eq!(output.status.code(), Some(2));
    // Of builds, only what ran in them.
    let document = |selection: &[&str]| -> Value { serde_json::from_str(&setup.slice("store", selection)).unwrap() };
    let ranges = |selection: &[&str]| -> Vec<(String, usize)> {
        let modules = document(selection)["modules"].as_array().unwrap().clone();
        let ranges = |of: &Value| of["ranges"].as_array().unwrap().len();
        let build_id = |of: &Value| of["build_id"].as_str().unwrap_or("none").to_owned();
        modules.iter().map(|of| (build_id(of), ranges(of))).filter(|(_, ranges)| *ranges > 0).collect()
    };
    assert_eq!(ranges(&[]), [("01".into(), 1), ("02".into(), 1)]);
    assert_eq!(ranges(&["--build", "01"]), [("01".into(), 1)]);
    // As `stale` has it, each service has a newest build of its own.
    assert_eq!(ranges(&["--build", "latest"]), [("01".into(), 1), ("02".into(), 1)]);
    assert_eq!(ranges(&["--build", "latest", "--host", "h1"]), [("01".into(), 1), ("02".into(), 1)]);
    assert_eq!(ranges(&["--build", "latest", "--version", "2", "--service", "mail"]), [("02".into(), 1)]);
    // What is said of whole recordings is of those that have it.
    let of_build = document(&["--build", "01"]);
    assert_eq!(of_build["inputs"], 2);
    assert_eq!(of_build["left_out"], serde_json::json!({"streams": 0.0, "branches": 0.0, "samples": 0.0}));
    assert!(of_build["seen"].as_f64().is_none_or(|seen| seen == 0.0), "{of_build}");
    assert_eq!(ranges(&["--build", "latest", "--service", "web"]), [("01".into(), 1)]);
    let error = setup.error(&["slice", &setup.path("store"), "--build", "0", "-o", &setup.path("out")]);
    assert!(error.contains("2 modules of that slice have build ids that begin with 0"), "{error}");
    assert!(
        setup.error(&["slice", &setup.path("store"), "--build", "ff", "-o", &setup.path("out")]).contains("no module")
    );
}

#[test]
fn questions_are_answered_in_four_formats() {
    let setup = Setup::new();
    let [a, ..] = three(&setup);
    let store = setup.path("store");
    let sql = "SELECT service, count(*) AS recordings, sum(inputs) AS inputs FROM recordings GROUP BY service ORDER BY service";
    assert_eq!(
        setup.stdout(&["query", &store, sql, "--format", "csv"]),
        "service,recordings,inputs\nmail,1,1\nweb,2,2\n"
    );
    let json: Value = serde_json::from_str(&setup.stdout(&["query", &store, sql, "--format", "json"])).unwrap();
    assert_eq!(json[1], serde_json::json!({"service": "web", "recordings": 2, "inputs": 2}));
    let table = setup.stdout(&["query", &store, sql]);
    assert!(table.lines().any(|line| line.split_whitespace().eq(["|", "web", "|", "2", "|", "2", "|"])), "{table}");
    let parquet = setup.path("out.parquet");
    setup.said(&["query", &store, sql, "--format", "parquet", "-o", &parquet]);
    assert!(fs::read(&parquet).unwrap().starts_with(b"PAR1"));
    // Sums of the flow are exact, and need no other table.
    let sum = "SELECT service, sum(count) FROM flow WHERE kind = 'range' GROUP BY 1 ORDER BY 1";
    assert_eq!(setup.rows("store", sum), ["mail,4.000000000", "web,4.000000000"]);
    let columns =
        "SELECT path, build_id FROM modules WHERE part = (SELECT id FROM recordings WHERE file LIKE '%/a') ORDER BY 1";
    assert_eq!(setup.rows("store", columns), ["/nowhere/library,", "/nowhere/server,01", "[kernel.kallsyms],"]);
    let id = setup
        .rows("store", "SELECT id, day, host, source, weight, left_out_samples FROM recordings WHERE version = '1'");
    let hash = blake3::hash(&fs::read(&a).unwrap()).to_string();
    assert_eq!(id, [format!("{hash},2025-01-01,h1,flow,1.0,0.700000000")]);
    assert_eq!(
        setup.rows("store", "SELECT date_trunc('month', day), round(sum(weight)) FROM recordings GROUP BY 1").len(),
        1
    );
    // Questions change nothing.
    for statement in
        ["DROP TABLE flow", "INSERT INTO flow SELECT * FROM flow", "COPY flow TO '/nonexistent'", "SET x = 1"]
    {
        setup.error(&["query", &store, statement]);
    }
    assert!(setup.error(&["query", &store, "SELECT nothing FROM flow"]).contains("nothing"));
}

#[test]
fn hbbp_makes_its_reports_of_slices() {
    let setup = Setup::new();
    let fixture = testing::Fixture::bursts("compress");
    let (store, file) = (setup.path("store"), fixture.recording.to_str().unwrap());
    let binary = fixture.binary_option();
    setup.said(&["ingest", &store, file, "--service", "web", "--version", "1", "--binary", &binary]);
    setup.said(&[
        "ingest",
        &store,
        fixture.truth().to_str().unwrap(),
        "--service",
        "web",
        "--version",
        "2",
        "--binary",
        &binary,
    ]);
    let merged = setup.path("web-1.flow");
    fs::write(&merged, setup.merged(&[file, "--binary", &binary])).unwrap();
    let expected = std::process::Command::new(support::hbbp())
        .args(["mix", &merged, "--binary", &binary, "--rows", "function", "--format", "csv"])
        .output()
        .unwrap();
    let expected = String::from_utf8(expected.stdout).unwrap();
    assert!(expected.lines().count() > 3, "{expected}");
    let slice = ["mix", &store, "--service", "web", "--version", "1"];
    let options = ["--binary", &binary, "--rows", "function", "--format", "csv"];
    assert_eq!(setup.stdout(&[&slice[..], &options].concat()), expected);
    // What `hbbp` exits with is passed on.
    assert_eq!(setup.run(&[&slice[..], &["--no-such-option"]].concat()).status.code(), Some(2));
    let sides = ["--service", "web", "--before", "version=1", "--after", "version=2"];
    let diff = setup.stdout(&[&["diff", &store], &sides[..], &["--binary", &binary, "--format", "json"]].concat());
    assert!(serde_json::from_str::<Value>(&diff).unwrap()["overlap"]["blocks"].as_f64().unwrap() > 0.8, "{diff}");
    // The other way around, where it is in PATH, and where it is not.
    let alone = setup.path("hbbp");
    fs::copy(support::hbbp(), &alone).unwrap();
    let question = ["fleet", "query", &store, "SELECT count(*) FROM recordings", "--format", "csv"];
    let program = Path::new(env!("CARGO_BIN_EXE_hbbp-fleet"));
    let by = |path: &Path| std::process::Command::new(&alone).args(question).env("PATH", path).output().unwrap();
    assert!(String::from_utf8_lossy(&by(program.parent().unwrap()).stdout).ends_with("\n2\n"));
    let missing = by(Path::new("/nonexistent"));
    assert!(
        !missing.status.success() && String::from_utf8_lossy(&missing.stderr).contains("hbbp-fleet is not installed")
    );
    let missing = setup.fleet().args(slice).env("HBBP", "/nonexistent/hbbp").output().unwrap();
    assert!(String::from_utf8_lossy(&missing.stderr).contains("neither beside this program nor in PATH"));
}

#[test]
fn what_cannot_be_read_is_named_and_changes_no_sum() {
    let setup = Setup::new();
    let [a, b, c] = three(&setup);
    let store = setup.path("store");
    let expected = setup.merged(&[&a, &b, &c]);
    let recording = fs::read(testing::Fixture::bursts("compress").recording).unwrap();
    let bad: [(&str, &[u8]); 8] = [
        ("empty", b""),
        ("cut", &recording[..100]),
        ("noise", &[0x5a; 5000]),
        ("newer", br#"{"schema":"hbbp-flow/2","modules":[]}"#),
        ("no document", b"{\"schema\":"),
        ("no count", br#"{"schema":"hbbp-flow/1","executions":true,"inputs":1,"left_out":{"streams":-1,"branches":0,"samples":0},"modules":[]}"#),
        ("text", b"hello\n"),
        ("parquet", b"PAR1PAR1"),
    ];
    for (name, bytes) in bad {
        let file = setup.path(name);
        fs::write(&file, bytes).unwrap();
        let error = setup.error(&["ingest", &store, &file]);
        assert!(error.contains(&file) && !error.contains("panicked"), "{error}");
    }
    let folder = setup.path("folder");
    fs::create_dir(&folder).unwrap();
    assert!(setup.said(&["ingest", &store, &folder]).contains("0 of 0 files put into"));
    assert!(setup.error(&["ingest", &store, &setup.path("not there")]).contains("not there"));
    // A clock that is ahead; nobody would find the recording where it belongs.
    let file = setup.flow("later", "01", 1.0);
    let error = setup.error(&["ingest", &store, &file, "--time", "2099-01-01T00:00:00Z"]);
    assert!(error.contains("2099-01-01") && error.contains("yet to come") && error.contains("--time"), "{error}");
    assert_eq!(setup.slice("store", &[]), expected);
    // Of several, the good ones count.
    let (newer, empty) = (setup.path("newer"), setup.path("empty"));
    let said = setup.said(&["ingest", &store, &newer, &file, &empty, "--keep-going"]);
    assert!(said.contains("1 of 3 files") && said.contains("2 left out") && said.contains(&newer), "{said}");
    assert!(
        setup.error(&["ingest", &store, &newer, &empty, "--keep-going"]).contains("none of the files could be read")
    );
    let other = setup.flow("other", "01", 9.0);
    assert!(setup.error(&["ingest", &store, &other, &empty]).contains("1 file before it is in the store"));
    assert_eq!(setup.slice("store", &[]), setup.merged(&[&a, &b, &c, &file, &other]));
}

/// The recordings among the fixtures are older than `began_unix_ns`: in place of other fields, it is written into one.
#[test]
fn recordings_say_when_they_were_made() {
    let setup = Setup::new();
    let store = setup.path("store");
    let recording = fs::read(testing::Fixture::bursts("compress").recording).unwrap();
    let replaced = br#""lost":0,"lost_by_hardware":0,"throttled":0,"late":0"#;
    let at = recording.windows(replaced.len()).rposition(|bytes| bytes == replaced).unwrap();
    let saying = |name: &str, began: u64| {
        let field = format!("{:1$}", format!("\"began_unix_ns\":{began}"), replaced.len());
        let (file, mut bytes) = (setup.path(name), recording.clone());
        bytes[at..at + replaced.len()].copy_from_slice(field.as_bytes());
        fs::write(&file, bytes).unwrap();
        file
    };
    let plain = setup.path("plain");
    fs::write(&plain, &recording).unwrap();
    // 2025-01-02T03:04:05Z, and a clock that is ahead: of 2100, and of a year that the store has no number for.
    let made = saying("made", 1_735_787_045_000_000_000);
    setup.said(&["ingest", &store, &made, &plain, "--service", "s"]);
    let times = "SELECT file, time_is_of_file, day FROM recordings ORDER BY time";
    let rows = setup.rows("store", times);
    assert_eq!(rows[0], format!("{made},false,2025-01-02"));
    assert!(rows[1].starts_with(&format!("{plain},true,")), "{rows:?}");
    for began in [4_102_444_800_000_000_000, 18_000_000_000_000_000_000] {
        let error = setup.error(&["ingest", &store, &saying("ahead", began)]);
        assert!(error.contains("yet to come") && error.contains("--time"), "{error}");
    }
    setup.said(&["ingest", &store, &setup.path("ahead"), "--time", "2025-01-01T00:00:00Z"]);
    assert_eq!(setup.rows("store", times)[0], format!("{},false,2025-01-01", setup.path("ahead")));
}

#[test]
fn a_folder_that_is_no_store_is_left_alone() {
    let setup = Setup::new();
    let [a, ..] = three(&setup);
    let (folder, store) = (setup.path("folder"), setup.path("store"));
    fs::create_dir(&folder).unwrap();
    fs::write(format!("{folder}/mine"), "mine").unwrap();
    assert!(setup.error(&["ingest", &folder, &a]).contains("has other files (mine)"));
    assert_eq!(setup.files("folder"), ["mine"]);
    assert!(setup.error(&["query", &folder, "SELECT 1"]).contains("is no store of recordings"));
    fs::write(format!("{store}/hbbp-fleet.json"), "{\"schema\":\"hbbp-fleet/2\"}\n").unwrap();
    for arguments in [&["query", &store, "SELECT 1"][..], &["ingest", &store, &a], &["compact", &store]] {
        let error = setup.error(arguments);
        assert!(error.contains("a store of version 2") && error.contains("take a newer hbbp-fleet"), "{error}");
    }
    fs::write(format!("{store}/hbbp-fleet.json"), "mine").unwrap();
    assert!(setup.error(&["query", &store, "SELECT 1"]).contains("expected {\"schema\":\"hbbp-fleet/1\"}"));
}

/// An ingest that is killed before it is done.
#[test]
fn there_is_no_half_recording() {
    let setup = Setup::new();
    let files: Vec<String> =
        (0..6).map(|number| setup.flow(&format!("{number}"), "01", f64::from(number) + 0.3)).collect();
    let store = setup.path("store");
    let day = ["--time", "2025-01-01T00:00:00Z"];
    setup.said(&["ingest", &store, &files[0], day[0], day[1]]);
    let first = setup.merged(&[&files[0]]);
    // What it leaves when it comes to no end: the commit is written last.
    let others = setup.path("others");
    setup.said(&[&["ingest", &others], &files[1..].iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    let flow = setup.files("others").into_iter().find(|file| file.contains(".flow.")).unwrap();
    let target = Path::new(&store).join(&flow);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    fs::copy(Path::new(&others).join(&flow), &target).unwrap();
    let unfinished = target.parent().unwrap().join(".unfinished-x");
    fs::write(&unfinished, "half").unwrap();
    assert_eq!(setup.slice("store", &[]), first);
    // Killed at any moment.
    for milliseconds in [5, 20, 40, 80, 160] {
        let mut child =
            setup.fleet().args(["ingest", &store]).args(day).args(&files).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        let _ = child.kill();
        child.wait().unwrap();
        let recordings = setup.rows("store", "SELECT count(*) FROM recordings");
        assert!(["1", "6"].contains(&recordings[0].as_str()), "{recordings:?}");
    }
    let all: Vec<&str> = files.iter().map(String::as_str).collect();
    setup.said(&[&["ingest", &store], &all[..]].concat());
    assert_eq!(setup.slice("store", &[]), setup.merged(&all));
    assert!(!unfinished.exists());
}

/// `compact` that is killed: before its commit nothing changed, after it what it replaced counts no more.
#[test]
fn a_compaction_counts_as_a_whole() {
    let setup = Setup::new();
    let files: Vec<String> =
        (0..3).map(|number| setup.flow(&format!("{number}"), "01", f64::from(number) + 0.3)).collect();
    let store = setup.path("store");
    for file in &files {
        setup.said(&["ingest", &store, file, "--service", "s", "--host", "h", "--time", "2025-01-01T00:00:00Z"]);
    }
    let all: Vec<&str> = files.iter().map(String::as_str).collect();
    let expected = setup.merged(&all);
    let before = setup.path("before");
    copy(Path::new(&store), Path::new(&before));
    setup.said(&["compact", &store, "--by", "host", "--older-than", "1"]);
    assert_eq!(setup.files("store").len(), 3 + 3, "{:?}", setup.files("store"));
    assert_eq!(setup.rows("store", "SELECT count(*), count(DISTINCT part) FROM recordings"), ["3,1"]);
    // Everything but the removal.
    let done = setup.path("done");
    copy(Path::new(&store), Path::new(&done));
    copy(Path::new(&before), Path::new(&done));
    assert_eq!(setup.files("done").len(), 3 + 3 + 9);
    assert_eq!(setup.slice("done", &[]), expected);
    setup.said(&["compact", &done]);
    assert_eq!((setup.slice("done", &[]), setup.files("done")), (expected.clone(), setup.files("store")));
    // Everything but the commit.
    for file in setup.files("store").iter().filter(|file| file.contains("/c-") && !file.contains("recordings")) {
        fs::copy(Path::new(&store).join(file), Path::new(&before).join(file)).unwrap();
    }
    assert_eq!(setup.slice("before", &[]), expected);
    // The same recordings are known after it.
    let said = setup.said(&[&["ingest", &store], &all[..]].concat());
    assert!(said.contains("3 were there before"), "{said}");
}

#[test]
fn a_damaged_store_is_an_error_and_no_sum() {
    let setup = Setup::new();
    three(&setup);
    let store = setup.path("store");
    setup.said(&["compact", &store]);
    for file in setup.files("store").iter().filter(|file| file.ends_with(".parquet")) {
        let path = Path::new(&store).join(file);
        let good = fs::read(&path).unwrap();
        for damage in [&good[..good.len() / 2], &[], &[0xff; 64]] {
            fs::write(&path, damage).unwrap();
            let error = setup.error(&["slice", &store, "-o", &setup.path("out")]);
            assert!(!error.contains("panicked"), "{error}");
        }
        fs::write(&path, good).unwrap();
    }
    // What is only called like a day is none.
    fs::write(format!("{store}/day=2025-01-09"), "").unwrap();
    fs::create_dir(format!("{store}/day=2025-1-8")).unwrap();
    setup.slice("store", &[]);
}

#[test]
fn shares_of_services_and_of_builds() {
    let setup = Setup::new();
    three(&setup);
    let store = setup.path("store");
    // A range from 4096 to 4100 is two instructions.
    let top = setup.stdout(&["top", &store, "--format", "csv"]);
    assert_eq!(
        top,
        "service,version,counts,instructions,percent\nmail,2,executions,8.0,50.0\nweb,2,executions,5.0,31.25\nweb,1,executions,3.0,18.75\n"
    );
    let of_host = setup.stdout(&["top", &store, "--by", "module", "--host", "h1", "--top", "1", "--format", "csv"]);
    assert_eq!(of_host.lines().nth(1), Some("/nowhere/server,02,executions,8.0,72.73"));
    // The newest build of one service is that of another no more.
    let newer = setup.flow("newer", "02", 12.0);
    setup.said(&["ingest", &store, &newer, "--service", "web", "--version", "3", "--time", "2025-02-01T00:00:00Z"]);
    let stale = setup.stdout(&["stale", &store, "--format", "csv"]);
    assert_eq!(
        stale,
        "service,path,newest,builds,counts,instructions,percent_of_newest\nweb,/nowhere/server,02,2,executions,32.0,75.0\nmail,/nowhere/server,02,1,executions,8.0,100.0\n"
    );
    // One of seven bytes is two and a half: half instructions are not lost before they are added up.
    let text =
        std::fs::read_to_string(setup.flow("short", "03", 1.0)).unwrap().replace("[4096,4100,1]", "[4096,4102,3]");
    std::fs::write(setup.path("short"), text).unwrap();
    setup.said(&["ingest", &store, &setup.path("short"), "--service", "short", "--version", "1"]);
    let short = setup.stdout(&["top", &store, "--by", "service", "--service", "short", "--format", "csv"]);
    assert_eq!(short.lines().nth(1), Some("short,executions,8.0,100.0"));
    assert!(setup.error(&["top", &store, "--build", "01"]).contains("--build is for reports"));
    let error = setup.error(&["top", &store, "--by", "service,version,service"]);
    assert!(error.contains("--by has service twice"), "{error}");
}

/// A build that is the newest under one name is not for that reason the newest under another.
#[test]
fn the_newest_build_is_that_of_each_name() {
    let setup = Setup::new();
    let store = setup.path("store");
    let recordings = [("a", "01", 1.0, "server"), ("b", "02", 2.0, "server"), ("c", "01", 4.0, "copy")];
    for (day, (name, build_id, count, path)) in recordings.into_iter().enumerate() {
        let file = setup.flow(name, build_id, count);
        fs::write(&file, fs::read_to_string(&file).unwrap().replace("server", path)).unwrap();
        setup.said(&["ingest", &store, &file, "--service", "s", "--time", &format!("2025-01-0{}T00:00:00Z", day + 1)]);
    }
    let latest: Value = serde_json::from_str(&setup.slice("store", &["--build", "latest"])).unwrap();
    let counts: Vec<_> = latest["modules"].as_array().unwrap().iter().map(|of| &of["ranges"][0][2]).collect();
    assert!(counts.contains(&&Value::from(2.0)) && counts.contains(&&Value::from(4.0)), "{latest}");
    assert!(!counts.contains(&&Value::from(5.0)), "{latest}");
    let stale = setup.stdout(&["stale", &store, "--format", "csv"]);
    assert!(stale.contains("s,/nowhere/server,02,2,executions,6.0,66.67"), "{stale}");
    assert!(stale.contains("s,/nowhere/copy,01,1,executions,8.0,100.0"), "{stale}");
}

#[test]
fn a_recording_that_is_cut_short_is_taken_only_if_that_is_said() {
    let setup = Setup::new();
    let fixture = testing::Fixture::bursts("compress");
    let whole = fs::read(&fixture.recording).unwrap();
    let (store, file, binary) = (setup.path("store"), setup.path("cut.data"), fixture.binary_option());
    fs::write(&file, &whole[..whole.len() * 2 / 3]).unwrap();
    let error = setup.error(&["ingest", &store, &file, "--binary", &binary]);
    assert!(error.contains(&file) && error.contains("cut short") && error.contains("--damaged"), "{error}");
    assert!(!error.contains("before it"), "{error}");
    assert_eq!(setup.rows("store", "SELECT count(*) FROM recordings"), ["0"]);
    let said = setup.said(&["ingest", &store, &file, "--binary", &binary, "--damaged"]);
    assert!(said.lines().any(|line| line.contains("1 of 1 files: ") && line.contains("cut short")), "{said}");
    // The size of its data is written when a recorder is done.
    let mut killed = whole.clone();
    killed[48..56].fill(0);
    fs::write(&file, killed).unwrap();
    let error = setup.error(&["ingest", &store, &file, "--binary", &binary]);
    assert!(error.contains("killed") && error.contains("--damaged"), "{error}");
}

#[test]
fn an_answer_is_there_as_a_whole_or_not_at_all() {
    let setup = Setup::new();
    three(&setup);
    let (store, out) = (setup.path("store"), setup.path("out"));
    fs::write(&out, "mine").unwrap();
    setup.error(&["query", &store, "SELECT CAST(service AS INT) FROM recordings", "-o", &out, "--format", "csv"]);
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
    setup.said(&["query", &store, "SELECT 1 AS one", "-o", &out, "--format", "csv"]);
    assert_eq!(fs::read_to_string(&out).unwrap(), "one\n1\n");
    let json = setup.stdout(&["query", &store, "SELECT 1 AS a, NULL AS b", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), serde_json::json!([{"a": 1, "b": null}]));
    let table = setup.stdout(&["query", &store, "SELECT chr(27) AS c"]);
    assert!(table.contains(r"| \u{1b} |"), "{table}");
    for format in ["table", "csv", "json", "parquet"] {
        let arguments = ["query", &store, "SELECT * FROM flow", "--format", format];
        let mut child = setup.fleet().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{format}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // Long questions are answered or refused.
    let long = |parts: usize| format!("SELECT {}1 AS sum", "1+".repeat(parts));
    assert_eq!(setup.rows("store", &long(600)), ["601"]);
    assert!(setup.error(&["query", &store, &long(50_000)]).contains("expected at most"));
}
