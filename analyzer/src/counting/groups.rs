//! Which executions are told apart: those of each process or thread, and of each phase.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::recording::{ContextId, Phases, Timeline, Totals};

/// A group: an index into the [`Groups`] that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupId(pub u32);

/// A process, thread or phase whose counts are kept apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Group {
    /// `pid:name`, as `perf report` shows it; empty where processes are not told apart.
    pub process: String,
    /// `tid:name`; empty where threads are not told apart.
    pub thread: String,
    /// Name of the process (`comm`), at most 15 bytes; empty where processes are not told apart.
    pub comm: String,
    /// Name of the phase, `[none]` outside of all; empty where phases are not told apart.
    pub phase: String,
    /// The path of the process' control group, `[unknown]` where the recording does not say it; empty where groups are not told apart.
    pub cgroup: String,
}

/// The control group of a process of which the recording does not say it.
pub const UNKNOWN_CGROUP: &str = "[unknown]";

/// What is in no phase.
pub const NO_PHASE: &str = "[none]";

/// How finely executions are told apart; by default not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupBy {
    /// By who executed them.
    pub tasks: TaskGroups,
    /// By the phase that the program was in.
    pub phases: bool,
    /// By the control group of the process.
    pub cgroups: bool,
}

/// How finely executions are told apart by who executed them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskGroups {
    /// All processes are one group.
    #[default]
    Nothing,
    /// One group for each process, by its id and name.
    Process,
    /// One group for each thread, by its id and name, within its process.
    Thread,
}

/// The groups, sorted, and which context belongs to which.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Groups {
    groups: Vec<Group>,
    /// Only while they are counted.
    #[serde(skip)]
    of_context: Vec<GroupId>,
}

impl Groups {
    /// Groups the contexts of the sums.
    pub fn new(by: GroupBy, totals: &Totals, timeline: &Timeline, phases: &Phases) -> Self {
        let names: Vec<Group> = totals
            .contexts
            .iter()
            .map(|context| {
                let phase = if by.phases { phases.name(context.phase).unwrap_or(NO_PHASE) } else { "" };
                let phase = phase.to_owned();
                let cgroup = match by.cgroups {
                    true => timeline.cgroup(context.pid, context.place).unwrap_or(UNKNOWN_CGROUP).to_owned(),
                    false => String::new(),
                };
                if by.tasks == TaskGroups::Nothing {
                    return Group { phase, cgroup, ..Group::default() };
                }
                let comm = timeline.process_name(context.pid, context.place).unwrap_or("?").to_string();
                let thread = match by.tasks {
                    TaskGroups::Thread => {
                        let name = timeline.thread_name(context.pid, context.tid).unwrap_or(&comm);
                        format!("{}:{name}", context.tid)
                    }
                    _ => String::new(),
                };
                Group { process: format!("{}:{comm}", context.pid), thread, comm, phase, cgroup }
            })
            .collect();
        let mut ids: BTreeMap<&Group, GroupId> = names.iter().map(|group| (group, GroupId(0))).collect();
        for (index, id) in ids.values_mut().enumerate() {
            *id = GroupId(index as u32);
        }
        let of_context = names.iter().map(|group| ids[group]).collect();
        let groups = ids.into_keys().cloned().collect();
        Groups { groups, of_context }
    }

    /// One group, of which nothing is known.
    pub fn unknown(by: GroupBy) -> Self {
        const UNKNOWN: &str = "[unknown]";
        let named = |known: bool| if known { UNKNOWN.to_owned() } else { String::new() };
        let (has_processes, has_threads) = (by.tasks != TaskGroups::Nothing, by.tasks == TaskGroups::Thread);
        let group = Group {
            process: named(has_processes),
            thread: named(has_threads),
            comm: named(has_processes),
            phase: named(by.phases),
            cgroup: named(by.cgroups),
        };
        Groups { groups: vec![group], of_context: Vec::new() }
    }

    /// The group of a context.
    pub fn of(&self, context: ContextId) -> GroupId {
        self.of_context[context.0 as usize]
    }

    /// How many groups there are.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The group of an id of this table.
    pub fn get(&self, id: GroupId) -> &Group {
        &self.groups[id.0 as usize]
    }
}
