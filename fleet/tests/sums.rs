//! What a store adds up is what `hbbp merge` makes of the same files, bit for bit: in any order, before and after `compact`.

mod support;

use support::Setup;
use testing::Fixture;

/// Recordings, exact counts and a merged file, and the options that name the binaries.
fn inputs(setup: &Setup) -> (Vec<String>, Vec<String>) {
    let fixtures = [Fixture::bursts("compress"), Fixture::bursts("threads"), Fixture::simulated("ivy-bridge")];
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let mut files: Vec<String> = fixtures.iter().map(|fixture| text(&fixture.recording)).collect();
    files.push(text(&fixtures[0].truth()));
    files.push(setup.flow("large", "00ff", 1e17));
    files.push(setup.flow("small", "00ff", 0.1));
    // Equal to the other, but spelled in another way.
    files.push(setup.flow("padded", "00ff0000", 0.2));
    let mut binaries: Vec<String> = fixtures.iter().map(Fixture::binary_option).collect();
    binaries.dedup();
    (files, binaries.into_iter().flat_map(|binary| ["--binary".to_owned(), binary]).collect())
}

fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

#[test]
fn any_order_and_any_batches_give_the_bytes_of_merge() {
    let setup = Setup::new();
    let (files, binaries) = inputs(&setup);
    let (files, binaries) = (borrowed(&files), borrowed(&binaries));
    let expected = setup.merged(&[&files[..], &binaries].concat());
    assert!(
        expected.len() > 10_000 && expected.contains(&format!("\"inputs\":{},", files.len())),
        "{}",
        expected.len()
    );
    let backwards: Vec<&str> = files.iter().rev().copied().collect();
    assert_eq!(setup.merged(&[&backwards[..], &binaries].concat()), expected, "merge, backwards");

    let one = setup.path("one");
    setup.said(&[&["ingest", &one], &files[..], &binaries].concat());
    assert_eq!(setup.slice("one", &[]), expected, "in one go");

    let many = setup.path("many");
    for (index, file) in backwards.iter().enumerate() {
        let (host, day) = (format!("host{}", index % 2), format!("2025-11-{:02}T12:00:00Z", 20 + index % 3));
        let labels = ["--service", "s", "--host", &host, "--time", &day];
        setup.said(&[&["ingest", &many, file], &labels[..], &binaries].concat());
    }
    assert_eq!(setup.slice("many", &[]), expected, "one after the other, of several hosts and days");
    let host = setup.slice("many", &["--host", "host1"]);
    for by in [&[][..], &["--by", "host", "--older-than", "0"], &["--by", "service", "--older-than", "0"]] {
        let before = setup.files("many").len();
        setup.said(&[&["compact", &many], by].concat());
        assert_eq!(setup.slice("many", &[]), expected, "compact {by:?}");
        assert!(setup.files("many").len() <= before);
        if by.contains(&"service") {
            let error = setup.error(&["slice", &many, "--host", "host1", "-o", &setup.path("out")]);
            assert!(error.contains("cannot be told apart any more"), "{error}");
        } else {
            assert_eq!(setup.slice("many", &["--host", "host1"]), host);
        }
    }
    // Nothing is left to do.
    let files_before = setup.files("many");
    setup.said(&["compact", &many, "--by", "service", "--older-than", "0"]);
    assert_eq!(setup.files("many"), files_before);
    // What came later is put together with what was before.
    let late = setup.flow("late", "00ff", 0.7);
    setup.said(&["ingest", &many, &late, "--service", "s", "--time", "2025-11-20T13:00:00Z"]);
    setup.said(&["compact", &many, "--by", "service", "--older-than", "0"]);
    assert_eq!(setup.slice("many", &[]), setup.merged(&[&files[..], &[&late], &binaries].concat()));
    let parts = setup.rows("many", "SELECT count(*), count(DISTINCT part) FROM recordings");
    let (recordings, parts) = parts[0].split_once(',').unwrap();
    assert_eq!(recordings, (files.len() + 1).to_string());
    // At most two of a day: in executions, and relative.
    assert!(parts.parse::<usize>().unwrap() <= 6, "{parts}");
}

#[test]
fn weights_are_those_of_merge() {
    let setup = Setup::new();
    let files = [("one", 0.1), ("two", 3.0), ("three", 7.0 / 3.0)];
    let mut weighted = Vec::new();
    for (name, weight) in files {
        let (file, weight) = (setup.flow(name, "01", 1.0 / 3.0 + weight), weight.to_string());
        setup.said(&["ingest", &setup.path("store"), &file, "--weight", &weight]);
        weighted.push(format!("{file}:{weight}"));
    }
    assert_eq!(setup.slice("store", &[]), setup.merged(&borrowed(&weighted)));
    let huge = setup.flow("huge", "01", 1e19);
    let error = setup.error(&["ingest", &setup.path("store"), &huge, "--weight", "1000"]);
    assert!(error.contains("use a smaller --weight"), "{error}");
    assert!(setup.error(&["ingest", &setup.path("store"), &huge, "--weight", "0"]).contains("expected more than 0"));
    let error = setup.error(&["ingest", &setup.path("store"), &huge, "--weight", "-1"]);
    assert!(error.contains("--weight is -1, expected more than 0"), "{error}");
}

#[test]
fn a_recording_counts_once() {
    let setup = Setup::new();
    let (store, file) = (setup.path("store"), setup.flow("file", "01", 2.0));
    let same = setup.path("other name");
    std::fs::copy(&file, &same).unwrap();
    setup.said(&["ingest", &store, &file, &file, &same]);
    let said = setup.said(&["ingest", &store, &same, "--service", "another"]);
    assert!(said.contains("0 of 1 files put into") && said.contains("1 were there before"), "{said}");
    assert_eq!(setup.slice("store", &[]), setup.merged(&[&file]));
    // Two at once wait for each other.
    let more: Vec<String> =
        (0..4).map(|number| setup.flow(&format!("{number}"), "01", f64::from(number) + 0.1)).collect();
    let start =
        || setup.fleet().args(["ingest", &store]).args(&more).stderr(std::process::Stdio::null()).spawn().unwrap();
    for mut child in [start(), start(), start()] {
        assert!(child.wait().unwrap().success());
    }
    let all: Vec<&str> = more.iter().map(String::as_str).chain([&*file]).collect();
    assert_eq!(setup.slice("store", &[]), setup.merged(&all));
}
