//! What the command finds of signals and limits: what it would find without the collector.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::processes::{can_set_signals, with_signals};
use crate::{Place, errors, hbbp};

/// The mask of ignored signals in lines of `/proc/PID/status`.
fn ignored(text: &str) -> Vec<u64> {
    let masks = text.lines().filter_map(|line| line.strip_prefix("SigIgn:"));
    masks.map(|mask| u64::from_str_radix(mask.trim(), 16).unwrap()).collect()
}

/// systemd has services ignore SIGPIPE, and they rely on it. Rust's runtime and the collector change others for themselves.
#[test]
fn ignored_signals_stay_ignored() {
    let Some(place) = Place::to_record() else { return };
    // A stand-in that tells what it finds. (A shell would change SIGCHLD; the words it gets are files to grep, of which one is that file.)
    let valgrind = place.path("valgrind");
    fs::write(&valgrind, "#!/usr/bin/env -S grep -hs ^SigIgn: /proc/self/status --\n").unwrap();
    fs::set_permissions(&valgrind, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", place.folder().display(), std::env::var("PATH").unwrap());
    for option in ["--ignore-signal=PIPE,XFSZ,CHLD", "--ignore-signal=PIPE", "--default-signal"] {
        if !can_set_signals(option) {
            testing::skip!(ToolVersion, "env has no {option}");
            return;
        }
        let found = |mut command: Command| {
            let output = command.current_dir(place.folder()).env("PATH", &path).output().unwrap();
            let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), errors(&output));
            let masks = ignored(&text);
            assert!(!masks.is_empty(), "{text}");
            masks
        };
        let look = ["grep", "SigIgn", "/proc/self/status"];
        let mut alone = with_signals(option, look[0]);
        alone.args(&look[1..]);
        let alone = found(alone)[0];
        for (subcommand, times) in [
            (&["record"][..], 1),
            (&["record", "--tracer", "none"], 1),
            (&["mix"], 1),
            (&["truth"], 1),
            // Where it goes to standard error, the output of the second run is kept, too.
            (&["validate", "--stdout", "stderr"], 2),
        ] {
            let mut command = with_signals(option, hbbp());
            command.args(subcommand).arg("--").args(look);
            let masks = found(command);
            assert!(masks.len() >= times, "{option} {subcommand:?}: {masks:x?}");
            assert!(masks.iter().all(|&mask| mask == alone), "{option} {subcommand:?}: {masks:x?}, alone {alone:x}");
        }
    }
}

/// Limits that are raised for the collector are those that were found for the command.
#[test]
fn limits_are_raised_for_the_collector_only() {
    let Some(place) = Place::to_record() else { return };
    for (option, value) in [("n", "8"), ("v", "90000")] {
        let script = format!("ulimit -S -{option} {value}; exec \"$0\" record -- sh -c 'ulimit -S -{option}'");
        let mut command = Command::new("sh");
        let output = command.args(["-c", &script]).arg(hbbp()).current_dir(place.folder()).output().unwrap();
        assert!(output.status.success(), "-{option}: {}", errors(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), value, "-{option}");
        assert!(!errors(&output).contains("cannot be traced"), "-{option}: {}", errors(&output));
        place.contents();
    }
}
