//! Questions that a cluster of Apache Ballista answers: the bytes of one process, or an error, whatever happens to its executors.
//!
//! `ballista-scheduler` and `ballista-executor` are looked for in the folder that `HBBP_BALLISTA` names, and in PATH (`cargo install`).
#![cfg(feature = "cluster")]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::{Setup, hbbp};
use testing::guide::Reader;
use testing::{Alone, Fixture, skip};

/// A program of Ballista, if it is installed.
fn program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("HBBP_BALLISTA").into_iter().chain(std::env::var_os("PATH"));
    let found = folders.flat_map(|folders| std::env::split_paths(&folders).collect::<Vec<_>>());
    found.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The scheduler and the executor; without them, tests are skipped.
fn programs() -> Option<(PathBuf, PathBuf)> {
    let programs = program("ballista-scheduler").zip(program("ballista-executor"));
    if programs.is_none() {
        skip!(Cluster, "Ballista is not installed: cargo install ballista-scheduler ballista-executor");
    }
    programs
}

/// A process that is killed at the end of a test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A scheduler and two executors of one core each.
struct Cluster {
    executors: Vec<Killed>,
    _scheduler: Killed,
    port: u16,
    url: String,
}

/// A port that nobody listens at.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_for(port: u16) {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody listens at {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Cluster {
    fn begin(setup: &Setup) -> Option<Self> {
        let (scheduler, executor) = programs()?;
        let start = |program: &PathBuf, arguments: &[&str]| {
            let log = fs::File::create(setup.path(&format!("log-{}", port()))).unwrap();
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
            Killed(command.current_dir(setup.path("")).spawn().unwrap())
        };
        let at = port();
        let port_of_scheduler = at.to_string();
        let lost = ["--executor-timeout-seconds", "10", "--expire-dead-executor-interval-seconds", "1"];
        let of_scheduler = ["--bind-host", "127.0.0.1", "--bind-port", &port_of_scheduler];
        let scheduler = start(&scheduler, &[&of_scheduler[..], &lost].concat());
        wait_for(at);
        let executor = |name: &str| {
            let folder = setup.path(name);
            fs::create_dir(&folder).unwrap();
            let [data, control, health] = [port(), port(), port()].map(|port| port.to_string());
            let of_scheduler = ["--scheduler-port", &port_of_scheduler, "--scheduler-host", "127.0.0.1"];
            let own = ["--bind-host", "127.0.0.1", "--bind-port", &data, "--bind-grpc-port", &control];
            let others = [
                "--bind-health-port",
                &health,
                "--work-dir",
                &folder,
                "--vcores",
                "1",
                "--executor-heartbeat-interval-seconds",
                "2",
            ];
            let process = start(&executor, &[&of_scheduler[..], &own, &others].concat());
            wait_for(data.parse().unwrap());
            process
        };
        let executors = vec![executor("one"), executor("two")];
        Some(Cluster { executors, _scheduler: scheduler, port: at, url: format!("df://127.0.0.1:{at}") })
    }

    /// Jobs that the scheduler was given, as it tells over HTTP.
    fn jobs(&self) -> usize {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(b"GET /api/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.matches("\"job_id\"").count()
    }
}

/// A question has the same answer with the cluster and in one process.
fn check_answer(setup: &Setup, cluster: &Cluster, store: &str, sql: &str) {
    let asked = ["query", store, sql, "--format", "csv"];
    assert_eq!(setup.stdout(&[&asked[..], &["--cluster", &cluster.url]].concat()), setup.stdout(&asked), "{sql}");
}

/// A merged file with so many ranges, each of a count of its own.
fn flow(setup: &Setup, name: &str, ranges: u64, seed: u64) -> String {
    let mut text = String::new();
    for number in 0..ranges {
        let count = 0.1 + ((number * 7919 + seed * 104_729) % 1_000_003) as f64 / 7.0;
        write!(text, "{}[{},{},{count}]", if number == 0 { "" } else { "," }, 4096 + 16 * number, 4100 + 16 * number)
            .unwrap();
    }
    let path = setup.path(name);
    let text = format!(
        r#"{{"schema":"hbbp-flow/1","executions":true,"inputs":1,"seen":1.0,"left_out":{{"streams":0.0,"branches":0.0,"samples":0.0}},
        "modules":[{{"path":"/nowhere/server","build_id":"01","read":true,"ranges":[{text}],"branches":[],"samples":[]}}]}}"#
    );
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_cluster_gives_the_bytes_of_one_process_and_of_merge() {
    let setup = Setup::new();
    let Some(cluster) = Cluster::begin(&setup) else { return };
    let store = setup.path("profiles");
    let fixtures = [Fixture::bursts("compress"), Fixture::bursts("threads")];
    let mut files = vec![setup.flow("large", "00ff", 1e17), flow(&setup, "many", 30_000, 1)];
    files.extend(fixtures.iter().map(|fixture| fixture.recording.to_str().unwrap().to_owned()));
    let binaries: Vec<String> = fixtures.iter().flat_map(|of| ["--binary".to_owned(), of.binary_option()]).collect();
    let binaries: Vec<&str> = binaries.iter().map(String::as_str).collect();
    for (day, file) in files.iter().enumerate() {
        let (version, time) = (format!("{}", day % 2), format!("2025-11-2{day}T10:00:00Z"));
        let labels = ["--service", "web", "--version", &version, "--time", &time];
        setup.said(&[&["ingest", &store, file], &labels[..], &binaries].concat());
    }
    let on = ["--cluster", &cluster.url];
    let merged: Vec<&str> = files.iter().map(String::as_str).chain(binaries.iter().copied()).collect();
    assert_eq!(setup.slice("profiles", &on), setup.merged(&merged));
    for selection in
        [&["--slices"][..], &["--version", "1"], &["--since", "2025-11-22"], &["--build", "01"], &["--build", "latest"]]
    {
        assert_eq!(
            setup.slice("profiles", &[selection, &on].concat()),
            setup.slice("profiles", selection),
            "{selection:?}"
        );
    }
    let questions = [
        "SELECT version, count(*), min(time) FROM recordings GROUP BY version ORDER BY version",
        "SELECT module, kind, sum(count), count(DISTINCT part) FROM flow GROUP BY module, kind ORDER BY 1, 2",
        "SELECT * FROM flow ORDER BY day, part, module, kind, from_address, to_address, target LIMIT 100",
        "SELECT count(*) FROM flow JOIN recordings USING (part) WHERE recordings.version = '0' AND count > 3",
        "SELECT part FROM recordings WHERE part NOT IN (SELECT part FROM flow WHERE kind = 'branch') ORDER BY part",
        "SELECT r.part, f.count FROM recordings r LEFT JOIN (SELECT part, sum(count) AS count FROM flow WHERE count > 1e9 GROUP BY part) f \
         ON r.part = f.part ORDER BY r.part",
        "SELECT from_address, row_number() OVER (PARTITION BY part ORDER BY count DESC, from_address) AS place FROM flow ORDER BY 2, 1 LIMIT 50",
        "SELECT path FROM modules UNION SELECT part FROM recordings ORDER BY 1",
        "SELECT count(*) FROM information_schema.columns",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
        "SELECT sum(count) FROM flow WHERE part = 'none'",
        "EXPLAIN SELECT 1",
    ];
    for sql in questions {
        let jobs = cluster.jobs();
        check_answer(&setup, &cluster, &store, sql);
        let reads_files = [" FROM flow", " FROM recordings", " FROM modules"].iter().any(|table| sql.contains(table));
        assert_eq!(cluster.jobs() > jobs, reads_files, "{sql}");
    }
    for report in [&["stale"][..], &["top", "--by", "module,day"]] {
        let asked = [&report[..1], &[&*store], &report[1..], &["--format", "csv"]].concat();
        assert_eq!(setup.stdout(&[&asked[..], &on].concat()), setup.stdout(&asked), "{report:?}");
    }
    // The guide's commands.
    let programs = setup.path("bin");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_hbbp-fleet"), format!("{programs}/hbbp-fleet")).unwrap();
    let variables = [("HBBP", hbbp().to_str().unwrap()), ("XDG_CACHE_HOME", "/dev/null")];
    let mut reader = Reader::new(Path::new(&setup.path("")), &[Path::new(&programs)], &variables);
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/fleet.md")).unwrap();
    let lines =
        guide.lines().map(str::trim).filter(|line| line.starts_with("hbbp-fleet ") && line.contains("--cluster"));
    let lines: Vec<String> = lines.map(|line| line.replace("df://reader0:50050", &cluster.url)).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let binary = if line.contains(" mix ") { format!(" {}", binaries.join(" ")) } else { String::new() };
        reader.run(&(line + &binary));
    }
    // A mistake is told as in one process.
    let wrong = ["query", &store, "SELECT no FROM flow"];
    assert_eq!(setup.error(&[&wrong[..], &on].concat()), setup.error(&wrong));
    let error = setup.error(&["query", &store, "SELECT count / 0 FROM flow", "--cluster", &cluster.url]);
    assert!(error.contains("has failed"), "{error}");
}

/// One file that is read in pieces, in plans that take it for one.
#[test]
fn a_file_in_pieces_is_added_up_once() {
    let setup = Setup::new();
    let Some(cluster) = Cluster::begin(&setup) else { return };
    let store = setup.path("store");
    setup.said(&["ingest", &store, &flow(&setup, "large", 200_000, 3)]);
    let questions = [
        "SELECT count(*) FROM flow WHERE count > (SELECT avg(count) FROM flow)",
        "SELECT count(*) OVER () AS rows FROM flow LIMIT 3",
        "SELECT count(*) FROM flow, recordings WHERE flow.count > 3",
        "SELECT count(*) FROM (SELECT part FROM flow LIMIT 9223372036854775807 OFFSET 10)",
        "SELECT arrow_cast(kind, 'Dictionary(Int32, Utf8)') AS kind, count(*) FROM flow GROUP BY kind",
        "SELECT sums.module, sum, n FROM (SELECT module, sum(count) AS sum FROM flow GROUP BY module) sums \
         JOIN (SELECT module, count(*) AS n FROM flow WHERE count > 9 GROUP BY module) counts ON sums.module = counts.module",
        "SELECT kind, count(DISTINCT count), min(from_address), max(to_address) FROM flow GROUP BY kind ORDER BY kind",
        "SELECT count(*) FROM (SELECT DISTINCT count FROM flow)",
        "SELECT count(*) FROM (SELECT * FROM flow WHERE count > 9 LIMIT 70000)",
        "SELECT from_address FROM flow ORDER BY count DESC, from_address LIMIT 5 OFFSET 99999",
        "SELECT from_address % 7 AS rest, sum(count) FROM flow GROUP BY rest HAVING sum(count) > (SELECT avg(count) FROM flow) ORDER BY rest",
    ];
    for sql in questions {
        check_answer(&setup, &cluster, &store, sql);
    }
}

#[test]
fn without_a_scheduler_nothing_is_answered() {
    let setup = Setup::new();
    setup.said(&["ingest", &setup.path("store"), &setup.flow("a", "01", 1.0)]);
    let nowhere = format!("df://127.0.0.1:{}", port());
    let error = setup.error(&["query", &setup.path("store"), "SELECT sum(count) FROM flow", "--cluster", &nowhere]);
    assert!(error.contains("no scheduler of Ballista answers at df://127.0.0.1:"), "{error}");
}

/// Whenever an executor is killed: the right sum, or an error.
#[test]
fn an_executor_that_is_killed_makes_no_sum_wrong() {
    if programs().is_none() {
        return;
    }
    let setup = Setup::new();
    let _alone = Alone::wait();
    let store = setup.path("store");
    for day in 0..4 {
        let file = flow(&setup, &format!("file{day}"), 40_000, day);
        setup.said(&["ingest", &store, &file, "--time", &format!("2025-11-2{day}T10:00:00Z")]);
    }
    let work = "regexp_replace(repeat(CAST(from_address AS VARCHAR), 4), '([0-9])([0-9])', '\\2\\1', 'g')";
    let sql = format!("SELECT day, count(*), sum(count), sum(length({work})) FROM flow GROUP BY day ORDER BY day");
    let expected = setup.rows("store", &sql);
    assert_eq!(expected.len(), 4);
    let mut outcomes = [0, 0];
    // The last one is stopped, and says nothing any more.
    for turn in 0..5 {
        let Some(mut cluster) = Cluster::begin(&setup) else { return };
        let ask = || {
            let mut fleet = setup.fleet();
            fleet.args(["query", &store, &sql, "--format", "csv", "--cluster", &cluster.url, "--cluster-wait", "60"]);
            fleet.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let begun = Instant::now();
        assert!(ask().wait_with_output().unwrap().status.success());
        let took = begun.elapsed();
        let asked = ask();
        std::thread::sleep(took * (2 * turn % 8 + 1) / 8);
        if turn < 4 {
            drop(cluster.executors.pop());
        } else {
            let executor = cluster.executors[1].0.id().to_string();
            assert!(Command::new("kill").args(["-STOP", &executor]).status().unwrap().success());
        }
        let answer = asked.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&answer.stderr);
        if answer.status.success() {
            let rows: Vec<&str> = std::str::from_utf8(&answer.stdout).unwrap().lines().skip(1).collect();
            assert_eq!(rows, expected);
            outcomes[0] += 1;
        } else {
            assert!(said.contains("ask again") || said.contains("has failed"), "{said}");
            outcomes[1] += 1;
        }
        drop(cluster);
        for name in ["one", "two"] {
            fs::remove_dir_all(setup.path(name)).unwrap();
        }
    }
    eprintln!("{} right answers, {} errors", outcomes[0], outcomes[1]);
}
