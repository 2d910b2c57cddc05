//! Findings come from a file, and are input like any other: no index in them may be taken on trust.

use super::{Findings, FlowFindings, ModuleFindings};
use crate::CountedModule;
use crate::counting::Code;
use crate::recording::{SourceEvents, Sources};

impl Findings<'_> {
    /// Whether everything that it refers to is there, as far as that can be told without the code.
    pub(super) fn is_sound(&self) -> bool {
        let modules = self.modules.iter().len();
        let groups = self.groups.len();
        let events = self.summary.records.samples.len().min(self.summary.records.bursts.len());
        let Sources { ebs, lbr, .. } = &*self.sources;
        let has_events = |source: &Option<SourceEvents>| {
            source.iter().flat_map(|source| &source.events).all(|event| *event < events)
        };
        self.counted.iter().all(|module| (module.module.0 as usize) < modules && module.is_sound(groups))
            && has_events(ebs)
            && has_events(lbr)
            && self.flow.as_ref().is_none_or(FlowFindings::is_sound)
            && self.calls.as_ref().is_none_or(|calls| calls.is_sound(modules))
    }
}

impl ModuleFindings<'_> {
    /// Sums and blocks go together.
    fn is_sound(&self, groups: usize) -> bool {
        let has_block = |index: &u32| self.blocks.binary_search_by_key(index, |block| block.index).is_ok();
        self.blocks.is_sorted_by(|one, next| one.index < next.index)
            && self.sums.iter().all(|(group, block, _)| (group.0 as usize) < groups && has_block(block))
    }
}

impl FlowFindings<'_> {
    fn is_sound(&self) -> bool {
        let modules = self.flow.modules.len();
        self.indexes.values().all(|index| *index < modules)
            && self.flow.modules.iter().flat_map(|of| &of.branches).all(|branch| branch.to.module < modules)
    }
}

impl CountedModule {
    /// Whether its blocks are blocks of its code.
    pub(super) fn fits_its_code(&self) -> bool {
        let known = match &self.counts.code {
            Code::Read(code) => code.blocks.blocks().len(),
            Code::Unread { blocks, .. } => blocks.len(),
        };
        self.blocks.iter().all(|block| {
            (block.index as usize) < known
                && self.counts.range_of(block.index) == (block.start, block.end)
                && (!self.is_read() || self.counts.size_of(block.index, 1.0) == block.size)
        })
    }
}
