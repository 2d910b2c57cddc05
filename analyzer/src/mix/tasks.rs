//! Who executed blocks: what every mix by process, thread, phase or control group can be added up from.

use crate::address::Svma;
use crate::counting::{Group, GroupId, UNKNOWN_CGROUP};
use crate::mix::composition::attribute;
use crate::mix::{Attribute, Dimension, Key};
use crate::recording::ModuleId;
use crate::uncertainty::Sampled;
use crate::{Analysis, GroupCount};

/// A block: its module, whether that was read, and where it starts.
pub type TaskBlock = (ModuleId, bool, Svma);

/// The tasks of an analysis that tells them apart: threads in phases.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// The keys `process`, `thread`, `comm`, `phase` and, where any is known, `cgroup`, by task.
    pub attributes: Vec<Attribute>,
    /// Executions of blocks by task, sorted.
    pub executions: Vec<(TaskBlock, u32, f64)>,
}

impl Tasks {
    /// Of an analysis that tells threads, phases and control groups apart.
    pub fn of(analysis: &Analysis) -> Self {
        let mut sums: Vec<(f64, Sampled)> = vec![Default::default(); analysis.groups.len()];
        let mut whole = (0.0, Sampled::default());
        let mut executions = Vec::new();
        for module in &analysis.counted {
            for GroupCount { group, block, count, sampled, .. } in module.group_counts(&analysis.scale) {
                if count <= 0.0 {
                    continue;
                }
                let block_of = (module.counts.module, module.is_read(), block.start);
                executions.push((block_of, group.0, count));
                if let Some((sum, sampled_sum)) = sums.get_mut(group.0 as usize) {
                    *sum += count * block.size.instructions;
                    sampled_sum.add(sampled, block.size.instructions);
                }
                whole.0 += count * block.size.instructions;
                whole.1.add(sampled, block.size.instructions);
            }
        }
        executions.sort_by_key(|(block, task, _)| (*block, *task));
        type Text = fn(&Group) -> &String;
        let keys: [(Dimension, Text); 5] = [
            (Dimension::Process, |group| &group.process),
            (Dimension::Thread, |group| &group.thread),
            (Dimension::Comm, |group| &group.comm),
            (Dimension::Phase, |group| &group.phase),
            (Dimension::Cgroup, |group| &group.cgroup),
        ];
        let groups = || (0..analysis.groups.len()).map(|index| analysis.groups.get(GroupId(index as u32)));
        let has_cgroups = groups().any(|group| group.cgroup != UNKNOWN_CGROUP);
        let keys = keys.into_iter().filter(|(key, _)| has_cgroups || *key != Dimension::Cgroup);
        let attributes = keys.map(|(key, text)| {
            let texts: Vec<String> = groups().map(|group| text(group).clone()).collect();
            attribute(analysis, Key::from(key), &texts, &sums, &whole)
        });
        Tasks { attributes: attributes.collect(), executions }
    }
}
