//! How the tests record: the one place that makes the command line of `hbbp record`.

use std::env;
use std::path::PathBuf;

/// The tracer if `HBBP_TRACER` does not say another.
const DEFAULT_TRACER: &str = "lookahead";

/// Options if `HBBP_TORTURE_OPTIONS` does not say others: short bursts, and as much time for them as for the program, so that threads are
/// stopped up to some thousand times a second.
const DEFAULT_OPTIONS: &str = "--overhead 100 --burst 200";

/// `lookahead`, `agent` or `breakpoint`; `None` to record without.
pub fn kind() -> Option<String> {
    let kind = env::var("HBBP_TRACER").unwrap_or_else(|_| DEFAULT_TRACER.to_owned());
    (kind != "none").then_some(kind)
}

/// `hbbp record` with stops as frequent as can be had, and the options `more` (the output file is `hbbp.data`).
pub fn record(more: &[&str]) -> Vec<String> {
    let mut words = vec![hbbp().display().to_string(), "record".to_owned()];
    match kind() {
        Some(kind) => {
            // Into what runs already, agents are put if that is asked for.
            words.extend((kind == "agent" && more.contains(&"-p")).then(|| "--inject".to_owned()));
            words.extend(["--tracer".to_owned(), kind]);
            let options = env::var("HBBP_TORTURE_OPTIONS").unwrap_or_else(|_| DEFAULT_OPTIONS.to_owned());
            words.extend(options.split_whitespace().map(str::to_owned));
        }
        None => words.extend(["--tracer", "none", "--expect", "seconds"].map(str::to_owned)),
    }
    words.extend(more.iter().map(|&word| word.to_owned()));
    words
}

/// The same for a command.
pub fn record_command(command: &[String]) -> Vec<String> {
    let mut words = record(&["--"]);
    words.extend_from_slice(command);
    words
}

pub fn hbbp() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_hbbp"))
}
