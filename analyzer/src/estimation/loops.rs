//! Short loops, as bursts go around them.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::address::FileOffset;
use crate::counting::LocatedPath;
use crate::recording::ModuleId;

/// Bytes of a loop at most: what a longer one goes through is told apart by windows. On training programs 1,024 do better than 256 and 512.
const LONGEST: u64 = 1024;

/// The short loops of all modules, innermost ones and those around them: code from where a branch backwards leads to the last one that leads there.
#[derive(Debug, Default)]
pub(super) struct Loops(BTreeMap<ModuleId, Vec<Loop>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    start: FileOffset,
    /// Its last branch.
    end: FileOffset,
}

impl Loops {
    /// Those that the paths go around. `jumps`: whether an instruction is a branch within its function, neither a call nor a return: what is called
    /// and lies before its caller is no loop.
    pub fn of(paths: &[LocatedPath], jumps: impl Fn(ModuleId, FileOffset) -> bool) -> Self {
        let streams = paths.iter().flat_map(|path| path.streams.windows(2));
        let branches = streams.filter_map(|pair| {
            let [from, to] = pair else { return None };
            let (from, to) = (from.as_ref()?, to.as_ref()?);
            (from.module == to.module).then_some((from.module, from.end, to.start))
        });
        Loops::of_branches(branches, jumps)
    }

    /// Those of taken branches: module, where from, where to.
    fn of_branches(
        branches: impl Iterator<Item = (ModuleId, FileOffset, FileOffset)>,
        jumps: impl Fn(ModuleId, FileOffset) -> bool,
    ) -> Self {
        let is_short = |(_, from, to): &(ModuleId, FileOffset, FileOffset)| to <= from && from.0 - to.0 < LONGEST;
        let backwards: HashSet<(ModuleId, FileOffset, FileOffset)> = branches.filter(is_short).collect();
        let mut ends: HashMap<(ModuleId, FileOffset), FileOffset> = HashMap::new();
        for (module, from, to) in backwards.into_iter().filter(|(module, from, _)| jumps(*module, *from)) {
            let end = ends.entry((module, to)).or_insert(from);
            *end = (*end).max(from);
        }
        let mut loops: BTreeMap<ModuleId, Vec<Loop>> = BTreeMap::new();
        for ((module, start), end) in ends {
            loops.entry(module).or_default().push(Loop { start, end });
        }
        loops.values_mut().for_each(|loops| loops.sort_unstable_by_key(|of| of.start));
        Loops(loops)
    }

    /// Where the innermost loop around a place starts.
    pub fn around(&self, module: ModuleId, at: FileOffset) -> Option<FileOffset> {
        let loops = self.0.get(&module)?;
        let before = &loops[..loops.partition_point(|of| of.start <= at)];
        let near = before.iter().rev().take_while(|of| at.0 - of.start.0 < LONGEST);
        near.into_iter().find(|of| at <= of.end).map(|of| of.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_short_loop_is_found() {
        let module = ModuleId(1);
        let branch = |from, to| (module, FileOffset(from), FileOffset(to));
        let branches = [
            branch(0x140, 0x120),
            branch(0x130, 0x120), // another way around
            branch(0x180, 0x100), // the loop around it
            branch(0x200, 0x240), // forwards
            branch(0x900, 0x200), // too long
            branch(0x300, 0x300), // of one instruction
            branch(0x150, 0x138), // a return
            (ModuleId(2), FileOffset(0x700), FileOffset(0x680)),
        ];
        let loops = Loops::of_branches(branches.into_iter(), |_, from| from != FileOffset(0x150));
        let around = |at| loops.around(module, FileOffset(at)).map(|start| start.0);
        let expected = [
            (0xff, None),
            (0x100, Some(0x100)),
            (0x11f, Some(0x100)),
            (0x120, Some(0x120)),
            (0x140, Some(0x120)),
            (0x141, Some(0x100)),
            (0x180, Some(0x100)),
            (0x181, None),
            (0x250, None),
            (0x300, Some(0x300)),
            (0x690, None),
        ];
        for (at, start) in expected {
            assert_eq!(around(at), start, "{at:#x}");
        }
        assert_eq!(loops.around(ModuleId(2), FileOffset(0x690)), Some(FileOffset(0x680)));
    }
}
