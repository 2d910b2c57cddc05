//! The same recording gives the same bytes, whatever the number of threads.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use support::Fixture;
use synthetic::{A, A_JNE, B_JMP, Burst, C, D, D_JMP, Recorder, burst_metadata};

/// Bursts of several processes and threads, two hardware events, and real branch stacks where those are.
fn recordings() -> Vec<Fixture> {
    let mut found = vec![Fixture::bursts("threads"), Fixture::simulated("ivy-bridge")];
    found.extend(Fixture::westmere());
    found
}

#[test]
fn output_does_not_depend_on_the_number_of_threads() {
    for fixture in recordings() {
        let pivot = vec!["mix", "--rows", "thread,function", "--columns", "category"];
        let loops = vec!["vectorization", "--loops"];
        for command in [vec!["blocks"], vec!["mix"], pivot, vec!["annotate", "--source"], loops] {
            for format in ["json", "csv", "table"] {
                let print = |threads: &str| {
                    let more = ["--format", format, "--threads", threads];
                    support::stdout_of(&[&command[..], &more].concat(), &fixture)
                };
                let one = print("1");
                for threads in ["2", "3", "16"] {
                    assert_eq!(one, print(threads), "{}: {command:?} with {threads} threads", fixture.name);
                }
            }
        }
    }
}

#[test]
fn profiles_do_not_depend_on_the_number_of_threads() {
    for fixture in recordings() {
        for format in ["bolt", "bolt-preagg", "llvm-profgen", "callgrind", "sde-mix", "folded", "firefox"] {
            let print =
                |threads: &str| support::stdout_of(&["export", "--format", format, "--threads", threads], &fixture);
            let one = print("1");
            for threads in ["2", "16"] {
                assert!(one == print(threads), "{}: {format} with {threads} threads", fixture.name);
            }
        }
    }
}

#[test]
fn bursts_whose_pieces_fall_to_different_threads_stay_whole() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let file = folder.path().join("run.data");
    let mut recorder = Recorder::traced(&binary);
    let (by_b, by_c) = ([(B_JMP, D), (D_JMP, A)], [(A_JNE, C), (D_JMP, A)]);
    const BURSTS: u64 = 700;
    for burst in 0..BURSTS {
        let turns = (0..100).map(|turn| if (turn * burst) % 7 < 3 { by_b } else { by_c });
        let branches: Vec<(u64, u64)> = turns.flatten().collect();
        let piece = |branches, period| Burst { ip: A, branches, instructions: 2345, period };
        let (start, end) = branches.split_at(2 * (1 + burst as usize % 99));
        recorder.pieces(&[piece(start, 1_000_003 + burst), piece(end, 999_983)]);
        recorder.sample(A + burst % 20);
    }
    std::fs::write(&file, recorder.finish(&burst_metadata("nanoseconds"))).unwrap();
    assert!(std::fs::metadata(&file).unwrap().len() > 3 << 20, "several chunks of 1 MiB");
    for command in ["blocks", "mix"] {
        let print = |threads: &str| {
            support::stdout(&[command, "-i", file.to_str().unwrap(), "--format", "json", "--threads", threads])
        };
        let one = print("1");
        assert!(one.contains(&format!("\"bursts\":{BURSTS},")), "{one}");
        for threads in ["2", "3", "16"] {
            assert_eq!(one, print(threads), "{command} with {threads} threads");
        }
    }
}
