//! Which control groups the recorded processes are in: looked up where one is first seen, and when it executes a program, for that is after
//! whoever starts a service or a container has put it into its group.

use std::collections::HashMap;

use formats::cgroup_mark::CgroupMark;
use perf_event_open_sys::bindings as sys;

use crate::session::last_thread::LastThreads;
use crate::session::record_layout::{MISC_EXEC, RecordBytes, RecordLayout, halves, word};
use crate::sys::process::{contents, proc_path};

#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    layout: RecordLayout,
    of: HashMap<u32, String>,
    last_threads: LastThreads,
    new: Vec<CgroupMark>,
}

impl Cgroups {
    pub(crate) fn new(layout: RecordLayout) -> Self {
        Self { layout, ..Self::default() }
    }

    /// Takes in a record that has just come: its process may end soon.
    pub(crate) fn see(&mut self, record: &RecordBytes<'_>) {
        match record.kind {
            sys::PERF_RECORD_COMM => self.name(record),
            sys::PERF_RECORD_FORK => self.fork(record),
            sys::PERF_RECORD_EXIT => self.exit(record.body),
            _ => None,
        };
    }

    /// What is new since this was asked before.
    pub(crate) fn take_new(&mut self) -> Vec<CgroupMark> {
        std::mem::take(&mut self.new)
    }

    /// The groups of all that lives, as if it had been there before everything that is recorded.
    pub(crate) fn standing(&self) -> impl Iterator<Item = CgroupMark> {
        self.of.iter().map(|(pid, path)| CgroupMark { time: 0, pid: *pid, path: path.clone() })
    }

    /// pid, tid.
    fn name(&mut self, record: &RecordBytes<'_>) -> Option<()> {
        let [pid, tid] = halves(word(record.body, 0)?);
        let executes = record.misc() & MISC_EXEC != 0;
        if !executes && (pid != tid || self.of.contains_key(&pid)) {
            return Some(());
        }
        let path = cgroup(&contents(&proc_path(pid).join("cgroup")))?;
        if self.of.get(&pid) != Some(&path) {
            // Of one that was there before, the name has the time 0.
            let time = self.layout.time(record).unwrap_or(0);
            self.new.push(CgroupMark { time, pid, path: path.clone() });
            self.of.insert(pid, path);
        }
        Some(())
    }

    /// pid, ppid.
    fn fork(&mut self, record: &RecordBytes<'_>) -> Option<()> {
        let [pid, parent] = halves(word(record.body, 0)?);
        if pid != parent && record.misc() & MISC_EXEC == 0 {
            let path = self.of.get(&parent)?.clone();
            self.of.insert(pid, path);
        }
        Some(())
    }

    /// pid, ppid, tid, ptid.
    fn exit(&mut self, body: &[u8]) -> Option<()> {
        let ([pid, _], [tid, _]) = (halves(word(body, 0)?), halves(word(body, 8)?));
        let ends = self.of.contains_key(&pid) && self.last_threads.ends(pid, tid);
        if ends { self.of.remove(&pid).map(drop) } else { None }
    }
}

/// The path in `/proc/PID/cgroup`: that of the unified hierarchy, or, where that is not used, the longest of the others.
/// `0::/system.slice/nginx.service`, `5:cpu,cpuacct:/docker/0123`
fn cgroup(text: &[u8]) -> Option<String> {
    let lines = text.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.splitn(3, |&byte| byte == b':');
        let (number, _, path) = (fields.next()?, fields.next()?, fields.next()?);
        Some((number == b"0" && path != b"/", path))
    });
    let path = lines.max_by_key(|(is_unified, path)| (*is_unified, path.len()))?.1;
    Some(String::from_utf8_lossy(path).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_process() {
        let check = |text: &str, path: Option<&str>| assert_eq!(cgroup(text.as_bytes()).as_deref(), path, "{text}");
        check("0::/system.slice/nginx.service\n", Some("/system.slice/nginx.service"));
        check("5:cpu,cpuacct:/docker/0123\n1:name=systemd:/\n0::/a:b\n", Some("/a:b"));
        check("5:cpu,cpuacct:/docker/0123\n1:name=systemd:/x\n0::/\n", Some("/docker/0123"));
        check("0::/\n", Some("/"));
        check("", None);
        check("no line", None);
    }

    #[test]
    fn a_group_is_said_once_and_inherited() {
        let mut cgroups = Cgroups::default();
        let (pid, child) = (std::process::id(), u32::MAX - 1);
        let see = |cgroups: &mut Cgroups, kind: u32, misc: u16, ids: [u32; 4]| {
            let body: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let head = [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &24_u16.to_le_bytes()].concat();
            let all = [head, body].concat();
            cgroups.see(&crate::session::record_layout::first_record(&all, 0).unwrap().unwrap());
        };
        let own = cgroup(&contents(&proc_path(pid).join("cgroup")));
        for _ in 0..2 {
            see(&mut cgroups, sys::PERF_RECORD_COMM, MISC_EXEC, [pid, pid, 0, 0]);
        }
        see(&mut cgroups, sys::PERF_RECORD_FORK, 0, [child, pid, child, pid]);
        assert_eq!(
            cgroups.take_new().into_iter().map(|mark| mark.path).collect::<Vec<_>>(),
            own.iter().cloned().collect::<Vec<_>>()
        );
        assert_eq!(cgroups.standing().count(), 2 * usize::from(own.is_some()));
        see(&mut cgroups, sys::PERF_RECORD_EXIT, 0, [child, pid, child, pid]);
        assert_eq!(cgroups.standing().count(), usize::from(own.is_some()));
    }
}
