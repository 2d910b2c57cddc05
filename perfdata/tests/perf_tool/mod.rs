//! The `perf` of this machine as an oracle: what it prints of a recording against what this crate reads from it.
#![allow(dead_code)] // each test binary uses a part

mod dump;
mod render;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use perfdata::{Chunk, RawRecord, Recording};

/// Whether `perf` can be run; says so loudly when not.
pub fn perf_is_here() -> bool {
    let found = Command::new("perf").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        testing::skip!(Tool, "perf is not installed");
    }
    found
}

/// What `perf ARGS` prints; panics when it fails.
pub fn perf(args: &[&str], recording: &Path) -> String {
    let output = Command::new("perf").args(args).arg("-i").arg(recording).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "perf {args:?} -i {}: {errors}", recording.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Everything that can be compared: all records to the last field, event names, branch stacks, build ids.
pub fn check(path: &Path) {
    let recording = Recording::open(path).unwrap();
    check_open(&recording, path);
}

/// The same for a recording that is open already; `path` is for `perf`.
pub fn check_open(recording: &Recording, path: &Path) {
    check_records(recording, path);
    check_events(recording, path);
    check_branch_stacks(recording, path);
    check_build_ids(recording, path);
}

fn check_records(recording: &Recording, path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let header_size = if bytes[8] == 16 { 16 } else { 0 };
    let mut ours = render::records(recording, header_size);
    let mut theirs = dump::records(&perf(&["script", "--no-itrace", "-D"], path));
    assert!(!theirs.is_empty(), "perf shows no record of {}", path.display());
    // perf sorts by time; the offset in each text keeps equal ones apart.
    ours.sort();
    theirs.sort();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "in {}", path.display());
    }
    assert_eq!(ours.len(), theirs.len(), "records of {}", path.display());
}

/// The event of each sample: `pid/tid time event`.
fn check_events(recording: &Recording, path: &Path) {
    let mut ours = Vec::new();
    for_each_record(recording, |raw| {
        if !raw.is_sample() {
            return;
        }
        let sample = recording.sample(raw).unwrap();
        // The kernel says -1 for a thread that is already gone, perf for what is not recorded.
        let (pid, tid) = (sample.pid.unwrap_or(u32::MAX) as i32, sample.tid.unwrap_or(u32::MAX) as i32);
        let time = sample.time.unwrap_or(u64::MAX);
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        ours.push(format!("{pid}/{tid} {seconds}.{rest:09}: {}:", recording.events()[sample.event].name));
    });
    if ours.is_empty() || recording.events().iter().any(|event| event.attr.kind == 2) {
        // perf hides the names of tracepoints in its own way.
        return;
    }
    let printed = perf(&["script", "--no-itrace", "--ns", "-G", "-F", "pid,tid,time,event"], path);
    let mut theirs: Vec<_> = printed.lines().map(one_space).filter(|line| !line.is_empty()).collect();
    if has_read_groups(recording) {
        // perf makes several samples of one that carries a group's values.
        return;
    }
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs, "in {}", path.display());
}

fn has_read_groups(recording: &Recording) -> bool {
    use perfdata::{ReadFormat, SampleFormat};
    recording.events().iter().any(|event| {
        event.attr.sample_format.contains(SampleFormat::READ) && event.attr.read_format.contains(ReadFormat::GROUP)
    })
}

/// Each stack as `perf script -F brstack` writes it, on which llvm-profgen and perf2bolt rely.
fn check_branch_stacks(recording: &Recording, path: &Path) {
    let mut ours = Vec::new();
    for_each_record(recording, |raw| {
        let Some(stack) = raw.is_sample().then(|| recording.sample(raw).unwrap().branch_stack).flatten() else {
            return;
        };
        let branches = stack.iter().map(|branch| {
            let flags = branch.flags;
            let predicted = if flags.mispredicted() {
                'M'
            } else if flags.predicted() {
                'P'
            } else {
                '-'
            };
            let in_tx = if flags.in_tx() { 'X' } else { '-' };
            let abort = if flags.abort() { 'A' } else { '-' };
            let kind = if flags.kind().0 == 0 { String::new() } else { flags.kind().to_string() };
            format!("{}/{}/{predicted}/{in_tx}/{abort}/{}/{kind}", branch.from, branch.to, flags.cycles())
        });
        ours.push(branches.collect::<Vec<_>>().join(" "));
    });
    if ours.is_empty() {
        return;
    }
    let printed = perf(&["script", "--no-itrace", "-F", "brstack"], path);
    // Of what comes by a pipe, perf prints the address, too.
    let branches =
        |line: &str| line.split_whitespace().filter(|word| word.matches('/').count() > 4).collect::<Vec<_>>().join(" ");
    let mut theirs: Vec<_> = printed.lines().map(branches).filter(|line| !line.is_empty()).collect();
    ours.retain(|line| !line.is_empty());
    ours.sort();
    theirs.sort();
    assert!(ours == theirs, "branch stacks of {} differ", path.display());
}

fn check_build_ids(recording: &Recording, path: &Path) {
    let mut ours: Vec<_> = recording
        .features()
        .build_ids
        .iter()
        .map(|entry| {
            let id: String = entry.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{id} {}", String::from_utf8_lossy(&entry.path))
        })
        .collect();
    let printed = perf(&["buildid-list"], path);
    // perf also lists what has no id.
    let mut theirs: Vec<_> = printed.lines().map(one_space).filter(|line| line.contains(' ')).collect();
    ours.sort();
    ours.dedup();
    theirs.sort();
    if recording.features().build_ids.is_empty() {
        // Without that feature perf lists what it finds on this machine.
        return;
    }
    assert_eq!(ours, theirs, "build ids of {}", path.display());
}

/// Features as `perf script --header-only` writes them.
pub fn check_header(path: &Path) {
    let recording = Recording::open(path).unwrap();
    let features = recording.features();
    let printed = perf(&["script", "--header-only", "-I"], path);
    let theirs: BTreeMap<_, _> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("# ")?.split_once(':'))
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect();
    let mut compared = 0;
    let mut compare = |name: &str, ours: Option<String>| {
        let theirs = theirs.get(name).map(|value| one_space(value));
        assert_eq!(ours.map(|value| one_space(&value)), theirs, "{name} of {}", path.display());
        compared += usize::from(theirs.is_some());
    };
    compare("hostname", features.hostname.clone());
    compare("os release", features.os_release.clone());
    compare("perf version", features.version.clone());
    compare("arch", features.arch.clone());
    compare("cpudesc", features.cpu_desc.clone());
    compare("cpuid", features.cpuid.clone());
    compare("nrcpus avail", features.nr_cpus.map(|(all, _)| all.to_string()));
    compare("nrcpus online", features.nr_cpus.map(|(_, online)| online.to_string()));
    compare("total memory", features.total_mem.map(|size| format!("{size} kB")));
    compare("cmdline", (!features.cmdline.is_empty()).then(|| features.cmdline.join(" ")));
    let mappings = features.pmu_mappings.iter().map(|(kind, name)| format!("{name} = {kind}"));
    let mappings = mappings.collect::<Vec<_>>().join(", ");
    compare("pmu mappings", (!mappings.is_empty()).then_some(mappings));
    let time = |time: u64| format!("{}.{:06}", time / 1_000_000_000, time % 1_000_000_000 / 1000);
    compare("time of first sample", features.sample_time.map(|(first, _)| time(first)));
    compare("time of last sample", features.sample_time.map(|(_, last)| time(last)));
    compare("compressed", features.compressed.map(|c| format!("Zstd, level = {}, ratio = {}", c.level, c.ratio)));
    // `#  L1 Data                   48K [0-1]`
    for cache in &features.caches {
        let line = format!("# L{} {} {} [{}]", cache.level, cache.kind, cache.size, cache.cpus);
        assert!(printed.lines().any(|printed| one_space(printed) == line), "{line:?} of {}", path.display());
    }
    let caps = features.cpu_pmu_caps.iter().map(|(name, value)| format!("{name}={value}"));
    let caps = caps.collect::<Vec<_>>().join(", ");
    compare("cpu pmu capabilities", (!caps.is_empty()).then_some(caps));
    for (pmu, caps) in &features.pmu_caps {
        let caps = caps.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ");
        compare(&format!("{pmu} pmu capabilities"), Some(caps));
    }
    for (pmu, cpus) in &features.hybrid_topology {
        compare(&format!("{pmu} cpu list"), Some(cpus.clone()));
    }
    let branch_stack = printed.contains("# contains samples with branch stack");
    assert_eq!(features.branch_stack, branch_stack, "branch stack of {}", path.display());
    assert!(compared >= 5, "only {compared} features of {} were compared", path.display());
}

pub fn for_each_record(recording: &Recording, mut each: impl FnMut(&RawRecord<'_>)) {
    let mut reader = recording.chunks();
    let mut chunk = Chunk::new();
    while reader.next_into(&mut chunk).unwrap() {
        chunk.records().for_each(|raw| each(&raw));
    }
    assert!(reader.damage().is_none(), "{:?}", reader.damage());
}

/// The text with every run of white space as one space, and none at its ends.
pub fn one_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
