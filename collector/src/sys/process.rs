//! What `/proc` says of processes that were there before the recording.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use perfdata::is_memory_without_file;
use rustix::buffer::spare_capacity;

use crate::sys::{is_file_of, open_regular};

/// The process ids there are.
pub(crate) fn all_processes() -> Vec<u32> {
    numbered(Path::new("/proc"))
}

/// The threads of a process; none if it has ended.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    numbered(&proc_path(pid).join("task"))
}

/// Whether the thread, or any thread of the process, still runs (a zombie does not).
pub(crate) fn is_running(id: u32) -> bool {
    is_alive(id) || threads(id).into_iter().any(is_alive)
}

/// Whether there is such a thread, or what is left of one that has ended.
pub(crate) fn exists(tid: u32) -> bool {
    !status(tid).is_empty()
}

/// Whether a thread has not ended.
pub(crate) fn is_alive(tid: u32) -> bool {
    field(&status(tid), "State:").is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// The process a thread belongs to, and that process's parent.
pub(crate) fn group_and_parent(id: u32) -> Option<(u32, u32)> {
    let status = status(id);
    let number = |name: &str| field(&status, name)?.parse().ok();
    Some((number("Tgid:")?, number("PPid:")?))
}

/// Whether a thread waits for something that no signal ends: for its child of vfork, or for a disk.
pub(crate) fn is_in_uninterruptible_sleep(tid: u32) -> bool {
    field(&status(tid), "State:").is_some_and(|state| state.starts_with('D'))
}

/// Whether a process has a timer that sends this signal; `false`, too, where the kernel does not show timers (`CONFIG_CHECKPOINT_RESTORE`).
pub(crate) fn has_timer(pid: u32, signal: i32) -> bool {
    let timers = String::from_utf8(contents(&proc_path(pid).join("timers"))).unwrap_or_default();
    timers.lines().any(|line| line.starts_with(&format!("signal: {signal}/")))
}

/// The environment that a process was started with; empty if it is another user's.
pub(crate) fn environment(pid: u32) -> Vec<u8> {
    contents(&proc_path(pid).join("environ"))
}

/// The process that traces a thread.
pub(crate) fn tracer_of(id: u32) -> Option<u32> {
    field(&status(id), "TracerPid:")?.parse().ok().filter(|&tracer| tracer != 0)
}

/// The number that a process has for itself: in its own namespace.
pub(crate) fn namespace_id(pid: u32) -> Option<u32> {
    let status = status(pid);
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().next_back()?.parse().ok()
}

/// How long a process is there, ns; `None` if it has ended (proc_pid_stat(5), field 22).
pub(crate) fn age(pid: u32) -> Option<u64> {
    let stat = contents(&proc_path(pid).join("stat"));
    // The name may have blanks and parentheses.
    let after_name = stat.rsplit(|&byte| byte == b')').next()?;
    let ticks: u64 = std::str::from_utf8(after_name).ok()?.split_whitespace().nth(19)?.parse().ok()?;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
    let started = ticks.checked_mul(1_000_000_000)?.checked_div(rustix::param::clock_ticks_per_second())?;
    Some(now.saturating_sub(started))
}

/// Processes that a thread has started, where the kernel says (`CONFIG_PROC_CHILDREN`).
pub(crate) fn children(pid: u32, tid: u32) -> Vec<u32> {
    let list = fs::read_to_string(proc_path(pid).join(format!("task/{tid}/children"))).unwrap_or_default();
    list.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// Whether a process can serve faults of memory (userfaultfd(2)), its own perhaps.
pub(crate) fn has_userfaultfd(pid: u32) -> bool {
    has_open(pid, is_userfaultfd)
}

/// Whether a process may serve what others read: their faults of memory, or their files (FUSE).
pub(crate) fn serves_others(pid: u32) -> bool {
    has_open(pid, |file| is_userfaultfd(file) || file == Path::new("/dev/fuse"))
}

fn is_userfaultfd(file: &Path) -> bool {
    file.as_os_str() == "anon_inode:[userfaultfd]"
}

fn has_open(pid: u32, is_it: impl Fn(&Path) -> bool) -> bool {
    let files = fs::read_dir(proc_path(pid).join("fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| is_it(&file))
}

/// Signals a process has handlers for: bit n - 1 for signal n.
pub(crate) fn signals_caught(id: u32) -> u64 {
    signals(&status(id), "SigCgt:")
}

/// Signals a thread blocks.
pub(crate) fn signals_blocked(id: u32) -> u64 {
    signals(&status(id), "SigBlk:")
}

/// Signals that wait for a thread to take them, and those it blocks, at the same moment.
pub(crate) fn signals_pending_and_blocked(id: u32) -> (u64, u64) {
    let status = status(id);
    (signals(&status, "SigPnd:"), signals(&status, "SigBlk:"))
}

/// Whether a thread has to take a signal before it executes anything: one waits for it or its process, and is not blocked.
#[cfg(feature = "simulated-pmu")]
pub(crate) fn has_signal_to_take(id: u32) -> bool {
    signals_to_take(id) != 0
}

/// What decides whether a process may get an agent: signals that it has handlers for and ignores, and that the thread blocks; filters of
/// system calls (seccomp); whether its stack is guarded by a shadow stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Guards {
    pub(crate) caught: u64,
    pub(crate) ignored: u64,
    pub(crate) blocked: u64,
    pub(crate) filters: u64,
    pub(crate) shadow_stack: bool,
    /// It runs, or could, and does not wait in a system call.
    pub(crate) computes: bool,
    /// How much code is mapped, KiB.
    pub(crate) code: u64,
}

/// The guards of a thread and its process.
pub(crate) fn guards(id: u32) -> Guards {
    let status = status(id);
    let number = |name: &str| field(&status, name).and_then(|text| text.parse().ok());
    // Kernels before 5.10 do not count the filters.
    let filters = match (number("Seccomp:"), number("Seccomp_filters:")) {
        // The strict mode, which has no filter.
        (Some(1), _) => u64::MAX,
        (mode, filters) => filters.or(mode).unwrap_or(0),
    };
    let shadow_stack = field(&status, "x86_Thread_features:").is_some_and(|features| features.contains("shstk"));
    let [caught, ignored, blocked] = ["SigCgt:", "SigIgn:", "SigBlk:"].map(|name| signals(&status, name));
    let computes = field(&status, "State:").is_some_and(|state| state.starts_with('R'));
    let size = |name: &str| field(&status, name).and_then(|text| text.strip_suffix(" kB")?.parse().ok()).unwrap_or(0);
    let code = size("VmExe:") + size("VmLib:");
    Guards { caught, ignored, blocked, filters, shadow_stack, computes, code }
}

/// The mask in that line of a status file.
fn signals(status: &str, name: &str) -> u64 {
    field(status, name).and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0)
}

/// The status file of a process or thread; empty if it has ended.
fn status(id: u32) -> String {
    String::from_utf8(contents(&proc_path(id).join("status"))).unwrap_or_default()
}

/// What that line of a status file says.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Whether a thread runs, or could, and does not wait in a system call.
pub(crate) fn is_computing(id: u32) -> bool {
    stat_field(id, 3).is_some_and(|state| state == "R")
}

/// Where a thread goes on in user space that sleeps in a system call; `None` if it does not, or it is not known.
pub(crate) fn sleeps_at(id: u32) -> Option<u64> {
    (stat_field(id, 3)? == "S").then_some(())?;
    Some(waited_in(id)?.goes_on_at)
}

/// A system call that a thread does not run in: it waits there, or stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitedIn {
    pub(crate) number: i64,
    pub(crate) arguments: [u64; 6],
    /// Where the thread goes on in user space.
    pub(crate) goes_on_at: u64,
}

/// The system call that a thread is in; `None` if it runs, is in none, or the kernel does not say.
pub(crate) fn waited_in(id: u32) -> Option<WaitedIn> {
    of_syscall(&String::from_utf8(contents(&proc_path(id).join("syscall"))).ok()?)
}

/// Of a syscall file (proc_pid_syscall(5)): the number, six arguments, the stack pointer, and where it goes on.
fn of_syscall(text: &str) -> Option<WaitedIn> {
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?.parse().ok().filter(|&number: &i64| number >= 0)?;
    let mut hexadecimal = words.map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = hexadecimal.next()??;
    }
    Some(WaitedIn { number, arguments, goes_on_at: hexadecimal.nth(1)?? })
}

/// Signals that wait for a thread or its process and that the thread does not block.
pub(crate) fn signals_to_take(id: u32) -> u64 {
    let status = status(id);
    (signals(&status, "SigPnd:") | signals(&status, "ShdPnd:")) & !signals(&status, "SigBlk:")
}

/// Time that the threads of a process ran in user space, in steps of 10 ms; `None` if it has ended.
pub(crate) fn user_time(id: u32) -> Option<Duration> {
    // In units of 1/100 s, whatever the kernel's own clock (USER_HZ).
    stat_field(id, 14)?.parse().ok().map(|hundredths: u64| Duration::from_millis(10 * hundredths))
}

/// CPU time that everything on the machine has used, in hundredths of a second at most (proc_stat(5)): user, nice, system, irq, softirq.
pub(crate) fn busy_time() -> Option<Duration> {
    busy_of_stat(&String::from_utf8(contents(Path::new("/proc/stat"))).ok()?)
}

fn busy_of_stat(stat: &str) -> Option<Duration> {
    let mut all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?.split_whitespace().map(str::parse::<u64>);
    let mut next = || all.next()?.ok();
    let [user, nice, system, _idle, _iowait, irq, softirq] =
        [next()?, next()?, next()?, next()?, next()?, next()?, next()?];
    let ticks = [user, nice, system, irq, softirq].iter().sum::<u64>();
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// How a thread has run so far: for so long, at so many times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    pub(crate) ran: Duration,
    pub(crate) times: u64,
}

/// How a thread has run so far, where the kernel says (`CONFIG_SCHED_INFO`).
pub(crate) fn scheduled(pid: u32, tid: u32) -> Option<Scheduled> {
    let schedstat = contents(&proc_path(pid).join(format!("task/{tid}/schedstat")));
    // On the CPU, and waiting for it, ns; then how often it got it.
    let mut numbers = std::str::from_utf8(&schedstat).ok()?.split_whitespace().map(|number| number.parse().ok());
    let (ran, _, times) = (numbers.next()??, numbers.next()??, numbers.next()??);
    Some(Scheduled { ran: Duration::from_nanos(ran), times })
}

/// The CPU a thread ran on last.
pub(crate) fn last_cpu(id: u32) -> Option<usize> {
    stat_field(id, 39)?.parse().ok()
}

/// A field of the stat file of a process or thread, numbered from 1 as in proc(5), after the name.
fn stat_field(id: u32, number: usize) -> Option<String> {
    let stat = contents(&proc_path(id).join("stat"));
    // The name, which is field 2, is in parentheses and may hold any bytes.
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let field = stat.get(name_end + 2..)?.split(|&byte| byte == b' ').nth(number - 3)?;
    String::from_utf8(field.to_vec()).ok()
}

/// A thread's name, without the newline.
pub(crate) fn thread_name(pid: u32, tid: u32) -> Option<Vec<u8>> {
    let mut name = fs::read(proc_path(pid).join(format!("task/{tid}/comm"))).ok()?;
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    Some(name)
}

/// What a process was started as; `None` if it has no arguments (a zombie, a thread of the kernel).
pub(crate) fn first_argument(pid: u32) -> Option<PathBuf> {
    let line = contents(&proc_path(pid).join("cmdline"));
    let first = line.split(|&byte| byte == 0).next().filter(|first| !first.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(first)))
}

/// A line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) prot: u32,
    pub(crate) shared: bool,
    pub(crate) offset: u64,
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    /// As the kernel's own records name it: `//anon` where there is no name.
    pub(crate) path: Vec<u8>,
}

impl Mapping {
    /// Whether the code in it can be found elsewhere: it is of a file, or the kernel's.
    pub(crate) fn has_code_elsewhere(&self) -> bool {
        has_code_elsewhere(&self.path, self.inode != 0)
    }
}

/// Whether the code of a mapping can be found elsewhere: `has_file`, as its inode or its build id tells, or it is the kernel's.
pub(crate) fn has_code_elsewhere(path: &[u8], has_file: bool) -> bool {
    let of_kernel = path == b"[vdso]" || path == b"[vsyscall]";
    of_kernel || has_file && !is_memory_without_file(path)
}

/// The mappings of a process, by address, read as they are asked for: the kernel takes long to name the files of many. None if it has ended or is
/// another user's; those before an error, where one comes later.
pub(crate) fn each_mapping(pid: u32) -> impl Iterator<Item = Mapping> {
    let file = File::open(proc_path(pid).join("maps")).ok();
    let lines = file.into_iter().flat_map(|file| BufReader::with_capacity(PIECE, file).split(b'\n'));
    lines.map_while(Result::ok).filter_map(|line| mapping(&line))
}

/// All of them, or none: who asks whether a process has something must not be told of a part.
pub(crate) fn mappings(pid: u32) -> Vec<Mapping> {
    let maps = contents(&proc_path(pid).join("maps"));
    maps.split(|&byte| byte == b'\n').filter_map(mapping).collect()
}

/// The file of a mapping: the one that is mapped, where the recorder may ask for it, or else what has its name now, as the process sees it, if
/// it is that.
pub(crate) fn open_mapped(pid: i32, map: &Mapping) -> Option<File> {
    let named = || {
        let path = proc_path(pid as u32).join("root").join(Path::new(OsStr::from_bytes(map.path.strip_prefix(b"/")?)));
        open_regular(&path, |file, stat| is_file_of(file, stat, map.device, map.inode)).ok()
    };
    open_regular(&place_of(pid, map), |_, _| true).ok().or_else(named)
}

/// Where the file of a mapping is, for those who may ask.
pub(crate) fn place_of(pid: i32, map: &Mapping) -> PathBuf {
    proc_path(pid as u32).join(format!("map_files/{:x}-{:x}", map.start, map.end))
}

/// `7f00-7f10 r-xp 00001000 fe:00 1234      /lib/x.so`; the path may hold any bytes but a newline.
fn mapping(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (field, tail) = rest.split_at(end);
        rest = tail.strip_prefix(b" ").unwrap_or(tail);
        std::str::from_utf8(field).ok()
    };
    let (range, permissions, offset, device, inode) = (field()?, field()?, field()?, field()?, field()?);
    let path = rest.trim_ascii_start();
    let (start, end) = range.split_once('-')?;
    let (major, minor) = device.split_once(':')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let bit = |letter: char, bit: u32| if permissions.contains(letter) { bit } else { 0 };
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        prot: bit('r', 1) | bit('w', 2) | bit('x', 4),
        shared: permissions.contains('s'),
        offset: hex(offset)?,
        device: (hex(major)? as u32, hex(minor)? as u32),
        inode: inode.parse().ok()?,
        path: if path.is_empty() { b"//anon".to_vec() } else { path.to_vec() },
    })
}

/// The kernel hands over a page of a file of `/proc` at a time at most, and less where less is asked for.
const PIECE: usize = 4096;

/// All of a file of `/proc`; nothing if it cannot be read.
pub(crate) fn contents(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    let Ok(file) = File::open(path) else { return text };
    loop {
        text.reserve(PIECE);
        match rustix::io::read(&file, spare_capacity(&mut text)) {
            Ok(0) => return text,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // Half of it would pass for all.
            Err(_) => return Vec::new(),
        }
    }
}

/// `/proc/ID`, which works for threads too.
pub(crate) fn proc_path(id: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{id}"))
}

/// Names in a directory that are numbers, ascending.
fn numbered(dir: &Path) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_has_used() {
        let stat = "cpu  300 20 100 9000 50 7 3 4 0 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
        let tick = 1e3 / rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(busy_of_stat(stat), Some(Duration::from_millis((430.0 * tick) as u64)));
        for other in ["", "cpu0 1 2 3 4 5 6 7\n", "cpu  1 2 3 4 5 6\n", "cpu  1 2 x 4 5 6 7\n"] {
            assert_eq!(busy_of_stat(other), None, "{other}");
        }
        assert!(busy_time().is_some_and(|time| time > Duration::ZERO));
    }

    #[test]
    fn how_a_thread_has_run() {
        let own = std::process::id();
        let of_own = scheduled(own, own);
        if of_own.is_none() {
            return testing::skip!(Kernel, "no schedstat (CONFIG_SCHED_INFO)");
        }
        assert!(of_own.is_some_and(|thread| thread.times > 0 && !thread.ran.is_zero()), "{of_own:?}");
        assert_eq!(scheduled(u32::MAX, 1), None);
    }

    #[test]
    fn lines_of_maps() {
        let parsed =
            mapping(b"7f1fc8000000-7f1fc8021000 r-xp 00001000 fe:00 1234                       /lib/a b.so (deleted)")
                .unwrap();
        assert_eq!(
            parsed,
            Mapping {
                start: 0x7f1fc8000000,
                end: 0x7f1fc8021000,
                prot: 5,
                shared: false,
                offset: 0x1000,
                device: (0xfe, 0),
                inode: 1234,
                path: b"/lib/a b.so (deleted)".to_vec(),
            }
        );
        let anonymous = mapping(b"1000-2000 rwxs 00000000 00:00 0 ").unwrap();
        assert_eq!((anonymous.path.as_slice(), anonymous.prot, anonymous.shared), (&b"//anon"[..], 7, true));
        for line in ["", "x", "1000-2000 r-xp", "1000 r-xp 0 0:0 0", "g-h r-xp 0 0:0 0"] {
            assert_eq!(mapping(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn the_system_call_of_a_thread() {
        let read = "0 0x3 0x7ffd 0x10 0x0 0x0 0x6 0x7ffc8 0x7f1234\n";
        let expected = WaitedIn { number: 0, arguments: [3, 0x7ffd, 16, 0, 0, 6], goes_on_at: 0x7f1234 };
        assert_eq!(of_syscall(read), Some(expected));
        for text in ["running\n", "-1 0x7ffc8 0x7f1234\n", "", "0 0x3 0x7ffd"] {
            assert_eq!(of_syscall(text), None, "{text}");
        }
    }

    #[test]
    fn this_process() {
        let pid = std::process::id();
        assert!(all_processes().contains(&pid) && threads(pid).contains(&pid) && is_running(pid));
        assert_eq!(group_and_parent(pid).unwrap().0, pid);
        assert!(thread_name(pid, pid).is_some());
        let code = this_process as *const () as u64;
        let holder = each_mapping(pid).find(|map| (map.start..map.end).contains(&code)).unwrap();
        assert_eq!(holder.prot & 4, 4);
        assert!(mappings(pid).contains(&holder));
        assert!(!is_running(u32::MAX) && threads(u32::MAX).is_empty() && each_mapping(u32::MAX).next().is_none());
    }
}
