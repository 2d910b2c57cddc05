//! What the kernel says of a process.

use std::fs;

/// The states of all its threads, such as `S` or `t`; none when it has ended.
pub fn states(pid: u32) -> Vec<char> {
    let state = |(stat, _): (String, u32)| stat_fields(&stat).first().and_then(|field| field.chars().next());
    tasks(pid).filter_map(state).collect()
}

/// CPU time of all its threads, in ticks of the kernel.
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Fields 14 and 15 of proc(5), the first here being field 3.
    stat_fields(&stat).iter().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

/// The `name: value` lines of the status files of all its threads, by name.
pub fn of_threads(pid: u32, name: &str) -> Vec<String> {
    let value = |(_, tid): (String, u32)| {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().to_owned())
    };
    tasks(pid).filter_map(value).collect()
}

/// A number of KiB in the status file of a process.
pub fn kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The stat file and the id of each thread.
fn tasks(pid: u32) -> impl Iterator<Item = (String, u32)> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        Some((stat, entry.file_name().to_str()?.parse().ok()?))
    })
}

/// The fields after the name, which may hold spaces.
fn stat_fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace().collect()).unwrap_or_default()
}
