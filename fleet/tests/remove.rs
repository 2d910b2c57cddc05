//! Recordings that are removed: what is left is as if they had never been there.

mod support;

use support::Setup;

/// Four recordings of two services and two days.
fn four(setup: &Setup) -> [String; 4] {
    let files = [("a", 1.5), ("b", 2.5), ("c", 4.0), ("d", 0.25)].map(|(name, count)| setup.flow(name, "01", count));
    let labels = [["web", "h1", "1"], ["web", "h2", "1"], ["mail", "h1", "1"], ["web", "h1", "2"]];
    for (file, [service, host, day]) in files.iter().zip(labels) {
        let time = format!("2025-01-0{day}T10:00:00Z");
        let labels = ["--service", service, "--host", host, "--version", "1", "--time", &time];
        setup.said(&[&["ingest", &setup.path("store"), file], &labels[..]].concat());
    }
    files
}

fn id(file: &str) -> String {
    blake3::hash(&std::fs::read(file).unwrap()).to_string()
}

#[test]
fn what_is_left_is_the_sum_of_the_others() {
    for compacted in [false, true] {
        let setup = Setup::new();
        let ([a, b, c, d], store) = (four(&setup), setup.path("store"));
        if compacted {
            setup.said(&["compact", &store]);
        }
        let said = setup.said(&["remove", &store, "--host", "h1", "--service", "web", "--dry-run"]);
        assert!(said.contains("2 recordings of 2 days would be removed"), "{said}");
        assert_eq!(setup.slice("store", &[]), setup.merged(&[&a, &b, &c, &d]));
        setup.said(&["remove", &store, "--id", &id(&a)[..8]]);
        assert_eq!(setup.slice("store", &[]), setup.merged(&[&b, &c, &d]));
        assert_eq!(setup.slice("store", &["--service", "mail"]), setup.merged(&[&c]));
        // A day without any is gone, but for its folder.
        setup.said(&["remove", &store, "--service", "web", "--host", "h1"]);
        assert!(!setup.files("store").iter().any(|file| file.contains("2025-01-02")), "{:?}", setup.files("store"));
        assert_eq!(setup.slice("store", &[]), setup.merged(&[&b, &c]));
        // It comes in again like any other.
        setup.said(&["ingest", &store, &a, &d, &b, "--time", "2025-01-01T10:00:00Z"]);
        assert_eq!(setup.slice("store", &[]), setup.merged(&[&a, &b, &c, &d]));
        setup.said(&["remove", &store, "--before", "2025-01-02"]);
        assert_eq!(setup.rows("store", "SELECT count(*) FROM recordings"), ["0"]);
        setup.said(&["ingest", &store, &a]);
        assert_eq!(setup.slice("store", &[]), setup.merged(&[&a]));
    }
}

#[test]
fn what_cannot_be_told_apart_goes_together_or_not_at_all() {
    let setup = Setup::new();
    let ([_, _, c, d], store) = (four(&setup), setup.path("store"));
    setup.said(&["compact", &store, "--by", "service", "--older-than", "1"]);
    let before = setup.slice("store", &[]);
    let error = setup.error(&["remove", &store, "--host", "h2"]);
    assert!(error.contains("1 of the 2 recordings") && error.contains("cannot be told apart any more"), "{error}");
    assert_eq!(setup.slice("store", &[]), before);
    setup.said(&["remove", &store, "--service", "web", "--before", "2025-01-02"]);
    assert_eq!(setup.slice("store", &[]), setup.merged(&[&c, &d]));
    for (arguments, expected) in [
        (&["remove", &store][..], "say which recordings"),
        (&["remove", &store, "--service", "none"], "no recording is so"),
        (&["remove", &store, "--service", "it's"], "no recording is so"),
        (&["remove", &store, "--id", "00000000"], "no recording has an id that begins with 00000000"),
    ] {
        let error = setup.error(arguments);
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(setup.run(&["remove", &store, "--id", "0' OR true"]).status.code(), Some(2));
    assert_eq!(setup.slice("store", &[]), setup.merged(&[&c, &d]));
}

/// While somebody reads, files stay, and do not count.
#[test]
fn what_a_reader_keeps_does_not_count() {
    let setup = Setup::new();
    let ([a, b, c, d], store) = (four(&setup), setup.path("store"));
    let reader = std::fs::File::open(format!("{store}/readers")).unwrap();
    // What is cleaned first waits for readers: this one comes after it.
    setup.said(&["compact", &store]);
    let files = setup.files("store").len();
    reader.lock_shared().unwrap();
    let mut remove = setup.fleet().args(["remove", &store, "--service", "web"]).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(remove.try_wait().unwrap().is_none() || setup.files("store").len() >= files);
    drop(reader);
    assert!(remove.wait().unwrap().success());
    assert_eq!(setup.slice("store", &[]), setup.merged(&[&c]));
    setup.said(&["ingest", &store, &a, &b, &d, "--time", "2025-01-01T10:00:00Z"]);
    assert_eq!(setup.slice("store", &[]), setup.merged(&[&a, &b, &c, &d]));
}
