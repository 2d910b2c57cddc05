//! Profiles of OpenTelemetry that collectors wrote: each service on each host is a recording of its own.

mod support;

use std::fs;
use std::process::{Command, Stdio};

use support::Setup;
use support::opentelemetry::message;

const LABELS: &str = "SELECT host, service, version, source FROM recordings ORDER BY 1, 2, 3";

#[test]
fn each_service_on_each_host_is_a_recording() {
    let setup = Setup::new();
    let (file, store) = (setup.path("profiles.json"), setup.path("store"));
    let owners = [("a", "web", "1", 3), ("b", "web", "1", 5), ("b", "web", "2", 2), ("b", "mail", "", 1)];
    // Two messages, and in the second also what was in the first.
    fs::write(&file, message(&owners[..3], "samples") + "\n" + &message(&owners[2..], "samples")).unwrap();
    let said = setup.said(&["ingest", &store, &file]);
    assert!(said.contains("1 of 1 files put into") && said.contains(", 4 recordings, of 1 days"), "{said}");
    assert!(said.contains("1 of 1 files: the samples are OTLP profiles"), "{said}");
    assert_eq!(setup.rows("store", LABELS), ["a,web,1,ebs", "b,mail,,ebs", "b,web,1,ebs", "b,web,2,ebs"]);
    // Each has what a file of its own would have.
    let alone = setup.path("alone.json");
    for (host, service, version, counts) in [
        ("a", "web", "1", vec![3]),
        ("b", "web", "1", vec![5]),
        ("b", "web", "2", vec![2, 2]),
        ("b", "mail", "", vec![1]),
    ] {
        let each: Vec<String> =
            counts.iter().map(|places| message(&[(host, service, version, *places)], "samples")).collect();
        fs::write(&alone, each.join("\n")).unwrap();
        let mut selection = vec!["--host", host, "--service", service];
        if !version.is_empty() {
            selection.extend(["--version", version]);
        }
        assert_eq!(setup.slice("store", &selection), setup.merged(&[&alone]), "{selection:?}");
    }
    // They count once.
    let said = setup.said(&["ingest", &store, &file, &file]);
    assert!(said.contains("0 of 2 files put into") && said.contains("2 were there before"), "{said}");
    // Packed they are the same.
    assert!(Command::new("gzip").args(["-k", &file]).status().unwrap().success());
    assert!(setup.said(&["ingest", &store, &format!("{file}.gz")]).contains("1 were there before"));
    // Of a file of which a run that was killed put in a part, the rest comes.
    setup.said(&["remove", &store, "--service", "mail"]);
    let said = setup.said(&["ingest", &store, &file, &file]);
    assert!(said.contains("1 of 2 files put into") && said.contains("1 were there before"), "{said}");
    assert_eq!(
        setup.rows("store", "SELECT count(*), count(DISTINCT id), count(DISTINCT file) FROM recordings"),
        ["4,4,1"]
    );
}

#[test]
fn labels_that_are_given_go_before() {
    let setup = Setup::new();
    let (file, store) = (setup.path("profiles.json"), setup.path("store"));
    fs::write(&file, message(&[("a", "web", "1", 3), ("b", "", "", 5)], "samples")).unwrap();
    setup.said(&["ingest", &store, &file, "--service", "shop", "--version", "7"]);
    assert_eq!(setup.rows("store", LABELS), ["a,shop,7,ebs", "b,shop,7,ebs"]);
}

#[test]
fn what_does_not_count_is_named() {
    let setup = Setup::new();
    let (file, store) = (setup.path("profiles.json"), setup.path("store"));
    let of = [("a", "web", "1", 3), ("b", "mail", "2", 5)];
    fs::write(&file, message(&of[..1], "samples") + "\n" + &message(&of[1..], "inuse_space")).unwrap();
    let said = setup.said(&["ingest", &store, &file]);
    let expected = "1 of 1 files: 1 of its 2 parts have no samples that count, as service \"mail\", version \"2\", host \"b\": \
                    it has no samples of code that ran; its profiles are of inuse_space (count): 5";
    assert!(said.contains(expected), "{said}");
    assert_eq!(setup.rows("store", LABELS), ["a,web,1,ebs"]);
    // A file of which nothing counts, and one that is cut off.
    fs::write(&file, message(&of, "inuse_space")).unwrap();
    let error = setup.error(&["ingest", &store, &file]);
    let expected = "profiles.json: none of its 2 parts has samples that count; the first, service \"web\", version \"1\", host \"a\": ";
    assert!(error.contains(expected), "{error}");
    let whole = message(&of, "samples");
    fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    let error = setup.error(&["ingest", &store, &file, "--damaged"]);
    assert!(error.contains("message 1 is no JSON of OTLP profiles"), "{error}");
    assert_eq!(setup.rows("store", LABELS), ["a,web,1,ebs"]);
}

/// A host whose clock is wrong does not keep the others out.
#[test]
fn hosts_with_wrong_clocks_are_left_out_alone() {
    let setup = Setup::new();
    let (file, store) = (setup.path("profiles.json"), setup.path("store"));
    let late = message(&[("b", "web", "1", 5)], "samples").replace("1790000000000000000", "4790000000000000000");
    fs::write(&file, message(&[("a", "web", "1", 3)], "samples") + "\n" + &late).unwrap();
    let error = setup.error(&["ingest", &store, &file]);
    let expected =
        "profiles.json, service \"web\", version \"1\", host \"b\": it says that it was recorded at 2121-10-15T";
    assert!(error.contains(expected) && error.contains("--keep-going"), "{error}");
    assert_eq!(setup.rows("store", LABELS), Vec::<String>::new());
    let said = setup.said(&["ingest", &store, &file, "--keep-going"]);
    assert!(
        said.contains(&format!("left out: {}", setup.path(expected))) && said.contains("1 of 1 files put into"),
        "{said}"
    );
    assert_eq!(setup.rows("store", LABELS), ["a,web,1,ebs"]);
    // What is right comes when it is right.
    let said = setup.said(&["ingest", &store, &file, "--time", "2026-10-01T00:00:00Z"]);
    assert!(said.contains("1 of 1 files put into"), "{said}");
    assert_eq!(setup.rows("store", LABELS), ["a,web,1,ebs", "b,web,1,ebs"]);
}

/// Two runs at once: what the one has put in the other leaves out, and counts so.
#[test]
fn of_two_runs_at_once_each_says_what_came_by_it() {
    let setup = Setup::new();
    let (file, store) = (setup.path("profiles.json"), setup.path("store"));
    let owners = [("a", "web", "1", 30), ("b", "web", "1", 50), ("b", "mail", "", 10)];
    fs::write(&file, message(&owners, "samples")).unwrap();
    let mut runs: Vec<_> =
        (0..3).map(|_| setup.fleet().args(["ingest", &store, &file]).stderr(Stdio::piped()).spawn().unwrap()).collect();
    let said: Vec<String> = runs
        .drain(..)
        .map(|run| {
            let output = run.wait_with_output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{said}");
            said
        })
        .collect();
    let came = said.iter().filter(|said| said.contains("1 of 1 files put into") && said.contains(", 3 recordings, "));
    let were_there =
        said.iter().filter(|said| said.contains("0 of 1 files put into") && said.contains("1 were there before"));
    assert_eq!((came.count(), were_there.count()), (1, 2), "{said:?}");
    assert_eq!(setup.rows("store", "SELECT count(*), count(DISTINCT id) FROM recordings"), ["3,3"]);
}
