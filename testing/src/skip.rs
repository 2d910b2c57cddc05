use std::fmt::Display;

/// Why a test, or a part of one, does not run here. Which of them continuous integration accepts is in `tests/skips-allowed.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A program that the test runs is not installed.
    Tool,
    /// It is installed, in a version that cannot do what the test asks of it.
    ToolVersion,
    /// The recordings made on real hardware are not beside the repository.
    HardwareRecordings,
    /// The kernel samples no events for us.
    NoSampling,
    /// The machine has no such event.
    NoEvent,
    /// The kernel lets us trace no process.
    NoTracing,
    /// The CPU lacks an instruction.
    CpuInstruction,
    /// The CPU records branches, so that nothing is traced in software by default.
    HardwareBranches,
    /// The user or a setting of the machine does not allow it.
    Privileges,
    /// The kernel or a file system lacks something.
    Kernel,
    /// A way of tracing cannot do it, and says so.
    TracerLimit,
    /// The programs of Apache Ballista are not installed.
    Cluster,
}

impl Skip {
    /// The word in the output, and in the list of accepted ones.
    pub fn id(self) -> &'static str {
        match self {
            Skip::Tool => "tool",
            Skip::ToolVersion => "tool-version",
            Skip::HardwareRecordings => "hardware-recordings",
            Skip::NoSampling => "no-sampling",
            Skip::NoEvent => "no-event",
            Skip::NoTracing => "no-tracing",
            Skip::CpuInstruction => "cpu-instruction",
            Skip::HardwareBranches => "hardware-branches",
            Skip::Privileges => "privileges",
            Skip::Kernel => "kernel",
            Skip::TracerLimit => "tracer-limit",
            Skip::Cluster => "cluster",
        }
    }
}

/// Says that a test does not run here, in one line that `.ci/run` looks for: `SKIPPED tool: perf is not installed`.
pub fn skip(why: Skip, what: impl Display) {
    let what = what.to_string();
    let lines: Vec<&str> = what.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    eprintln!("SKIPPED {}: {}", why.id(), lines.join("; "));
}

/// [`skip`] with a [`Skip`] by its name and text as of `format!`: `skip!(Tool, "{program} is not installed")`.
#[macro_export]
macro_rules! skip {
    ($why:ident, $($text:tt)+) => {
        $crate::skip($crate::Skip::$why, format_args!($($text)+))
    };
}

#[cfg(test)]
mod tests {
    use super::Skip;

    const ALL: [Skip; 12] = [
        Skip::Tool,
        Skip::ToolVersion,
        Skip::HardwareRecordings,
        Skip::NoSampling,
        Skip::NoEvent,
        Skip::NoTracing,
        Skip::CpuInstruction,
        Skip::HardwareBranches,
        Skip::Privileges,
        Skip::Kernel,
        Skip::TracerLimit,
        Skip::Cluster,
    ];

    #[test]
    fn ids_are_words_of_their_own() {
        for (index, skip) in ALL.iter().enumerate() {
            assert!(skip.id().chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", skip.id());
            assert!(ALL[..index].iter().all(|other| other.id() != skip.id()), "{}", skip.id());
        }
    }

    /// A reason that no test can give would be accepted for nothing. Those of `.ci/run` itself begin with `ci-`.
    #[test]
    fn the_list_of_accepted_reasons_names_only_these() {
        let list = std::fs::read_to_string(crate::fixture::repository().join("tests/skips-allowed.txt")).unwrap();
        for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (id, why) = line.split_once(' ').unwrap_or((line, ""));
            assert!(id.starts_with("ci-") || ALL.iter().any(|skip| skip.id() == id), "{line}");
            assert!(!why.trim().is_empty(), "{line}: it says no reason");
        }
    }
}
