//! docs/guide/fleet.md: its commands run, and docs/formats/fleet-store.md: it has every column.

mod support;

use std::path::Path;

use support::opentelemetry::message;
use support::{Setup, hbbp};
use testing::Fixture;
use testing::guide::{Reader, Step, steps};

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)).unwrap()
}

#[test]
fn every_command_of_the_guide_runs() {
    let setup = Setup::new();
    // The recordings that it speaks of, of a program that is where it was recorded.
    let fixture = Fixture::bursts("compress");
    let recording = std::fs::read(&fixture.recording).unwrap();
    for host in ["web1", "web2", "web3"] {
        std::fs::write(setup.path(&format!("{host}.data")), [&recording[..], host.as_bytes()].concat()).unwrap();
    }
    std::fs::write(setup.path("record.2025-11-21T12-00-00Z.data"), [&recording[..], b"unit"].concat()).unwrap();
    let profiles = message(&[("web4", "web", "4.2", 3), ("web4", "mail", "1", 2)], "samples");
    std::fs::write(setup.path("profiles-2026-11-25T12-00-00.000.json"), profiles).unwrap();
    let programs = setup.path("bin");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_hbbp-fleet"), format!("{programs}/hbbp-fleet")).unwrap();
    let hbbp = hbbp();
    let variables = [("HBBP", hbbp.to_str().unwrap()), ("XDG_CACHE_HOME", "/dev/null")];
    let mut reader = Reader::new(Path::new(&setup.path("")), &[Path::new(&programs)], &variables);
    let mut commands = 0;
    for step in steps(&page("guide/fleet.md")) {
        let Step::Run { mut line, .. } = step else { continue };
        // tests/cluster.rs has a cluster for those that want one.
        if !line.starts_with("hbbp-fleet ") || line.contains("--cluster") {
            continue;
        }
        // Where the guide leaves it to a recording, and where the binaries are, depends on the machine.
        line = line.replace("/var/lib/hbbp", ".").replace("s3://profiles/incoming", "incoming");
        let binary = format!(" --binary {}", fixture.binary_option());
        if line.contains(" ingest ") {
            line += &binary;
            line += if line.contains("web3") { " --host web3 --time 2025-11-21T12:00:00Z" } else { " --host web1" };
        } else if [" mix ", " annotate ", " export ", " diff ", " functions ", " blocks "]
            .iter()
            .any(|command| line.contains(command))
        {
            line += &binary;
        }
        reader.run(&line);
        commands += 1;
    }
    assert!(commands > 10, "{commands}");
}

#[test]
fn every_column_is_explained() {
    let setup = Setup::new();
    let file = setup.flow("a", "01", 1.0);
    setup.said(&["ingest", &setup.path("store"), &file]);
    let format = page("formats/fleet-store.md");
    let columns = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'";
    let columns = setup.rows("store", columns);
    assert!(columns.len() > 35, "{columns:?}");
    for column in columns {
        let (table, name) = column.split_once(',').unwrap();
        let section = format.split(&format!("\n`{table}`: ")).nth(1).unwrap().split("\n`").next().unwrap();
        let table: Vec<&str> = section.lines().filter(|line| line.starts_with('|')).collect();
        assert!(table.iter().any(|line| line.split('|').nth(1).unwrap().contains(&format!("`{name}`"))), "{column}");
    }
}
