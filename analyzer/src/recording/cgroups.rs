//! Which control groups processes are in: as `hbbp record` marks it, or as samples and records of the kernel tell it (`perf record
//! --all-cgroups`).

use std::collections::HashMap;
use std::sync::Arc;

use perfdata::Cgroup;

use crate::recording::TaskEvent;

/// What was seen of control groups.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    /// By the kernel's id.
    paths: HashMap<u64, Arc<str>>,
    /// The group that the last sample of a process names.
    last: HashMap<u32, u64>,
    /// Changes of it: when, of which process, to which group.
    changes: Vec<(u64, u32, u64)>,
}

impl Cgroups {
    /// A group has a path.
    pub(super) fn name(&mut self, cgroup: &Cgroup<'_>) {
        self.paths.insert(cgroup.id, String::from_utf8_lossy(cgroup.path).into());
    }

    /// A sample of a process names its group.
    pub(super) fn sample(&mut self, time: u64, pid: u32, id: u64) {
        if self.last.insert(pid, id) != Some(id) {
            self.changes.push((time, pid, id));
        }
    }

    /// What samples told, with its times. A group whose path is not in the recording has its number.
    pub(super) fn events(mut self) -> impl Iterator<Item = (u64, TaskEvent)> {
        self.changes.into_iter().map(move |(time, pid, id)| {
            let path = self.paths.entry(id).or_insert_with(|| format!("[cgroup {id}]").into());
            (time, TaskEvent::Cgroup { pid, path: path.clone() })
        })
    }
}

#[cfg(test)]
mod tests {
    use perfdata::SampleId;

    use super::*;

    #[test]
    fn changes_are_told_once() {
        let mut cgroups = Cgroups::default();
        for (time, pid, id) in [(1, 7, 3), (2, 7, 3), (3, 8, 3), (4, 7, 5), (5, 7, 5)] {
            cgroups.sample(time, pid, id);
        }
        cgroups.name(&Cgroup { id: 3, path: b"/a", sample_id: SampleId::default() });
        let told: Vec<String> = cgroups
            .events()
            .map(|(time, event)| match event {
                TaskEvent::Cgroup { pid, path } => format!("{time} {pid} {path}"),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told, ["1 7 /a", "3 8 /a", "4 7 [cgroup 5]"]);
    }
}
