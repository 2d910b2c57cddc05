//! Whose executions are told apart: nobody's, each process's, each thread's.

use std::collections::BTreeMap;

use crate::recording::{ContextId, Timeline, Totals};

/// A group: an index into the [`Groups`] that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// A process or thread whose counts are kept apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// `pid:name`, as `perf report` shows it; empty where processes are not told apart.
    pub process: String,
    /// `tid:name`; empty where threads are not told apart.
    pub thread: String,
    /// Name of the process (`comm`), at most 15 bytes; empty where processes are not told apart.
    pub comm: String,
}

/// How finely executions are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupBy {
    /// Everything is one group.
    #[default]
    Nothing,
    /// One group for each process, by its id and name.
    Process,
    /// One group for each thread, by its id and name, within its process.
    Thread,
}

/// The groups, sorted, and which context belongs to which.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    groups: Vec<Group>,
    of_context: Vec<GroupId>,
}

impl Groups {
    /// Groups the contexts of the sums.
    pub fn new(by: GroupBy, totals: &Totals, timeline: &Timeline) -> Self {
        let names: Vec<Group> = totals
            .contexts
            .iter()
            .map(|context| {
                if by == GroupBy::Nothing {
                    return Group::default();
                }
                let comm = timeline.process_name(context.pid, context.place).unwrap_or("?").to_string();
                let thread = match by {
                    GroupBy::Thread => {
                        let name = timeline.thread_name(context.pid, context.tid).unwrap_or(&comm);
                        format!("{}:{name}", context.tid)
                    }
                    _ => String::new(),
                };
                Group { process: format!("{}:{comm}", context.pid), thread, comm }
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

    /// The group of a context.
    pub fn of(&self, context: ContextId) -> GroupId {
        self.of_context[context.0 as usize]
    }

    /// The group of an id of this table.
    pub fn get(&self, id: GroupId) -> &Group {
        &self.groups[id.0 as usize]
    }
}
