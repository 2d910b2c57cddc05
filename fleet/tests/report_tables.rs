//! Questions about mix, functions and blocks: their tables have what `hbbp` says of the same slices.

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use support::{Setup, hbbp};
use testing::Fixture;

/// Two services, one of them in two versions and the other without one, and exact counts; the options that name the binaries.
fn store(setup: &Setup) -> Vec<String> {
    let [compress, threads] = ["compress", "threads"].map(Fixture::bursts);
    let binaries = [&compress, &threads].map(|fixture| ["--binary".to_owned(), fixture.binary_option()]).concat();
    let (text, store) = (|path: &std::path::Path| path.to_str().unwrap().to_owned(), setup.path("store"));
    let inputs = [
        (text(&compress.recording), &["--service", "it's web", "--version", "1"][..]),
        (text(&threads.recording), &["--service", "it's web", "--version", "2"]),
        (text(&compress.truth()), &["--service", "it's web", "--version", "2"]),
        (text(&Fixture::bursts("parse").recording), &[]),
    ];
    for (file, labels) in inputs {
        let binaries: Vec<&str> = binaries.iter().map(String::as_str).collect();
        setup.said(&[&["ingest", &store, &file][..], labels, &binaries].concat());
    }
    binaries
}

/// The rows of a report of `hbbp` of a slice: the first column, and the one with this name.
fn report(
    setup: &Setup,
    selection: &[&str],
    words: &[&str],
    binaries: &[String],
    column: &str,
) -> BTreeMap<String, f64> {
    let slice = setup.path("slice.flow");
    setup.said(&[&["slice", &setup.path("store"), "-o", &slice], selection].concat());
    let mut command = Command::new(hbbp());
    command.args(&words[..1]).arg(&slice).args(&words[1..]).args(["--format", "csv"]).args(binaries);
    let output = command.env("XDG_DATA_HOME", "/nonexistent").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let at = lines.next().unwrap().iter().position(|name| *name == column).unwrap();
    lines.map(|cells| (cells[0].to_owned(), cells[at].parse().unwrap())).collect()
}

fn close(found: &BTreeMap<String, f64>, expected: &BTreeMap<String, f64>) {
    assert!(expected.len() > 3 && found.keys().eq(expected.keys()), "{found:?} {expected:?}");
    for (key, value) in expected {
        assert!((found[key] - value).abs() <= 1e-6 * value.abs() + 1e-6, "{key}: {} {value}", found[key]);
    }
}

#[test]
fn they_have_what_reports_say() {
    let setup = Setup::new();
    let binaries = store(&setup);
    let binary: Vec<&str> = binaries.iter().map(String::as_str).collect();
    let rows = |sql: &str, options: &[&str]| -> Vec<String> {
        let store = setup.path("store");
        let asked = [&["query", &store, sql, "--format", "csv"], options, &binary].concat();
        setup.stdout(&asked).lines().skip(1).map(str::to_owned).collect()
    };
    let sums = |sql: &str, options: &[&str]| -> BTreeMap<String, f64> {
        let pair = |row: &String| {
            let (key, value) = row.rsplit_once(',').unwrap();
            (key.to_owned(), value.parse().unwrap())
        };
        rows(sql, options).iter().map(pair).collect()
    };
    let of_one = ["--service", "it's web", "--version", "1"];
    let mnemonics = report(&setup, &of_one, &["mix", "--rows", "mnemonic"], &binaries, "count");
    let by_mnemonic = "SELECT mnemonic, sum(count) FROM mix WHERE version = '1' GROUP BY 1";
    close(&sums(by_mnemonic, &of_one), &mnemonics);
    close(&sums(by_mnemonic, &[]), &mnemonics);
    let functions = report(&setup, &of_one, &["mix", "--rows", "function"], &binaries, "count");
    close(&sums("SELECT function, sum(count) FROM functions GROUP BY 1", &of_one), &functions);
    // Executions of a block times its length are instructions, where no part of a block ran alone.
    let by_block = sums("SELECT function, sum(count * instructions) FROM blocks GROUP BY 1", &of_one);
    let (of_blocks, of_mix) = (by_block.values().sum::<f64>(), functions.values().sum::<f64>());
    assert!((of_blocks / of_mix - 1.0).abs() < 0.01, "{of_blocks} {of_mix}");
    // Widths are numbers, and what has none has none.
    let wide = "SELECT width > 32 AS wide, count(*) > 0 FROM mix WHERE version = '1' GROUP BY 1 ORDER BY 1";
    assert_eq!(rows(wide, &of_one), ["false,true", "true,true", ",true"]);
    // Versions, services    // Versions, services and kinds of counts are told apart, also where they have no name.
    let groups =
        "SELECT service, version, executions, count(DISTINCT module) > 0 FROM mix GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";
    let expected = ["it's web,1,false,true", "it's web,2,false,true", "it's web,2,true,true", ",,false,true"];
    assert_eq!(rows(groups, &[]), expected);
    let counts = "SELECT count(*) AS blocks, sum(count) > 0 FROM blocks WHERE service IS NULL";
    let blocks = rows(counts, &[]);
    assert!(
        blocks[0].ends_with(",true") && blocks[0].split(',').next().unwrap().parse::<u64>().unwrap() > 10,
        "{blocks:?}"
    );
    // One recording has nothing to be compared with, and of exact counts nothing is said.
    let errors =
        "SELECT executions, count(count_error), count(rests_on_little) > 0 FROM functions GROUP BY 1 ORDER BY 1";
    assert_eq!(rows(errors, &[]), ["false,0,true", "true,0,true"]);
    // With the tables of the store in one question.
    let joined = "SELECT mnemonic, sum(count) FROM mix JOIN (SELECT DISTINCT service, version FROM recordings) USING (service, version) GROUP BY 1";
    close(&sums(joined, &of_one), &mnemonics);
    // Sums have no order: the same again.
    let isa = "SELECT isa, sum(count) AS count FROM mix GROUP BY isa ORDER BY isa";
    assert_eq!(rows(isa, &[]), rows(isa, &[]));
}

/// Recordings that differ say how uncertain their sum is.
#[test]
fn what_several_recordings_counted_has_its_uncertainty() {
    let setup = Setup::new();
    let fixture = Fixture::bursts("compress");
    let binary = fixture.binary_option();
    let (store, source) = (setup.path("store"), fixture.recording.to_str().unwrap().to_owned());
    for weight in ["1", "1.5", "2", "2.5", "3"] {
        // An id of its own each.
        let copy = setup.path(&format!("{weight}.flow"));
        let weighted = format!("{source}:{weight}");
        let made = Command::new(hbbp()).args(["merge", "-o", &copy, &weighted, "--binary", &binary]).output();
        assert!(made.unwrap().status.success());
        setup.said(&["ingest", &store, &copy, "--service", "web", "--binary", &binary]);
    }
    let sql = "SELECT function, count_error > 0 AND count_error < 5 * count AS known FROM functions ORDER BY count DESC LIMIT 3";
    let found = setup.stdout(&["query", &store, sql, "--format", "csv", "--binary", &binary]);
    let known: Vec<&str> = found.lines().skip(1).map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(known, ["true"; 3], "{found}");
    let mix = setup.stdout(&["mix", &store, "--rows", "mnemonic", "--format", "csv", "--binary", &binary]);
    let has_error = |line: &&str| line.split(',').nth(3).is_some_and(|error| error.parse::<f64>().is_ok());
    assert!(mix.lines().skip(1).filter(has_error).count() > 10, "{mix}");
}

/// A service of which no code is known does not take the others with it, and code that nobody could read is said.
#[test]
fn what_has_no_code_is_said() {
    let setup = Setup::new();
    let binaries = store(&setup);
    let text = std::fs::read_to_string(setup.flow("nothing", "01", 1.0)).unwrap();
    let from = text.find("\"modules\":").unwrap();
    std::fs::write(setup.path("nothing"), format!("{}\"modules\":[]}}", &text[..from])).unwrap();
    setup.said(&["ingest", &setup.path("store"), &setup.path("nothing"), "--service", "nothing"]);
    setup.said(&["ingest", &setup.path("store"), &setup.flow("unread", "ff", 5.0), "--service", "unread"]);
    let store = setup.path("store");
    let mut asked = vec!["query", &store, "SELECT DISTINCT service FROM mix ORDER BY 1", "--format", "csv"];
    asked.extend(binaries.iter().map(String::as_str));
    let output = setup.run(&asked);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "service\nit's web\nunread\n\"\"\n", "{said}");
    assert!(said.contains("nothing (executions): nothing in it is in any code"), "{said}");
    assert!(said.contains("% of the counts are of code that could not be read"), "{said}");
}

#[test]
fn what_cannot_be_made_is_said() {
    let setup = Setup::new();
    store(&setup);
    let store = setup.path("store");
    let error = setup.error(&["query", &store, "SELECT count(*) FROM mix", "--service", "other"]);
    assert!(error.contains("no recording is of that slice"), "{error}");
    let error = setup.error(&["query", &store, "SELECT count(*) FROM flow", "--service", "other"]);
    assert!(error.contains("is about none of mix, functions and blocks"), "{error}");
    let of_build = setup.error(&["query", &store, "SELECT count(*) FROM mix", "--build", "latest"]);
    assert!(of_build.contains("--build is for reports"), "{of_build}");
    let said_with = |hbbp: &str, sql: &str| {
        let output = setup.fleet().env("HBBP", hbbp).args(["query", &store, sql]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        said
    };
    // Mistakes are told before a report is made.
    for mistake in ["SELECT nothing_such FROM mix", "CREATE TABLE t AS SELECT * FROM mix", "DELETE FROM blocks"] {
        let said = said_with("/bin/false", mistake);
        assert!(!said.contains("has failed"), "{said}");
    }
    let said = said_with("/bin/false", "SELECT count(*) FROM mix");
    assert!(said.contains("it's web 1 (relative): `hbbp mix` has failed (exit status: 1)"), "{said}");
    // A name of the question's own is none of ours, nor is one of another schema.
    let own = ["query", &store, "WITH mix AS (SELECT 7 AS count) SELECT count FROM mix", "--format", "csv"];
    assert_eq!(setup.stdout(&own), "count\n7\n");
    let error = setup.error(&["query", &store, "SELECT FROM WHERE"]);
    assert!(error.contains("hbbp-fleet: "), "{error}");
    let said = said_with("/nonexistent/hbbp", "SELECT count(*) FROM blocks");
    assert!(said.contains("/nonexistent/hbbp is neither beside this program nor in PATH"), "{said}");
}
