//! What walks need to know of blocks: their loops and their instructions.

use crate::Analysis;
use crate::annotate::LoopTable;
use crate::counting::Code;
use crate::walks::BlockKey;

/// The blocks of all modules.
pub struct CodeMap {
    /// By id of the module.
    modules: Vec<Option<ModuleMap>>,
    loops: Vec<LoopNode>,
}

struct ModuleMap {
    /// Index of the module in [`Analysis::counted`].
    counted: usize,
    is_read: bool,
    blocks: Vec<BlockFacts>,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockFacts {
    /// The innermost loop that it is in.
    pub innermost: Option<LoopId>,
    /// How many instructions it has.
    pub instructions: u32,
    /// It is in no loop, and no way in the code of its function leads there: an exception is caught there, as a rule.
    pub is_apart: bool,
}

/// Index of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(pub u32);

/// A loop.
#[derive(Clone, Copy, Debug)]
pub struct LoopNode {
    /// The block that every way into it passes.
    pub header: BlockKey,
    /// The loop around it.
    pub parent: Option<LoopId>,
    /// 1 for an outermost loop.
    pub depth: usize,
}

impl CodeMap {
    /// Of an analysis that was made with its branches, so that computed jumps close loops.
    pub fn of(analysis: &Analysis, bytes_per_instruction: f64) -> Self {
        let table = LoopTable::without_names(analysis);
        let id = |index: usize| LoopId(index as u32);
        let mut modules: Vec<Option<ModuleMap>> = Vec::new();
        for (counted, module) in analysis.counted.iter().enumerate() {
            let place = module.counts.module.0 as usize;
            if modules.len() <= place {
                modules.resize_with(place + 1, || None);
            }
            // Where a module was read, what comes after it is what is no code of it.
            let Some(free) = modules.get_mut(place).filter(|of| of.is_none()) else { continue };
            let blocks = match &module.counts.code {
                Code::Read(code) => (0..)
                    .zip(code.blocks.blocks())
                    .map(|(index, block)| BlockFacts {
                        innermost: table.index(counted, index).map(id),
                        instructions: block.instructions,
                        is_apart: table.is_apart(counted, index) && table.index(counted, index).is_none(),
                    })
                    .collect(),
                Code::Unread { blocks, .. } => {
                    let instructions = blocks.iter().map(|block| block.estimated_instructions(bytes_per_instruction));
                    instructions.map(|all| BlockFacts { instructions: all as u32, ..BlockFacts::default() }).collect()
                }
            };
            *free = Some(ModuleMap { counted, is_read: module.is_read(), blocks });
        }
        let mut loops = Vec::new();
        for one in table.iter() {
            let module = analysis.counted.get(one.module);
            let header = module.and_then(|module| {
                let Code::Read(code) = &module.counts.code else { return None };
                let index = code.blocks.block_at(one.header)?;
                Some(BlockKey { module: module.counts.module, index: index as u32 })
            });
            let nowhere = BlockKey { module: crate::recording::ModuleId(u32::MAX), index: BlockKey::NOWHERE };
            let header = header.unwrap_or(nowhere);
            loops.push(LoopNode { header, parent: one.parent.map(id), depth: one.depth });
        }
        CodeMap { modules, loops }
    }

    /// What is known of a block.
    pub fn block(&self, key: BlockKey) -> BlockFacts {
        let module = self.modules.get(key.module.0 as usize).and_then(Option::as_ref);
        module.and_then(|module| module.blocks.get(key.index as usize)).copied().unwrap_or_default()
    }

    /// Whether the code of its module was read.
    pub fn is_read(&self, key: BlockKey) -> bool {
        self.modules.get(key.module.0 as usize).and_then(Option::as_ref).is_some_and(|module| module.is_read)
    }

    /// The index of its module in [`Analysis::counted`].
    pub fn counted(&self, key: BlockKey) -> Option<usize> {
        self.modules.get(key.module.0 as usize)?.as_ref().map(|module| module.counted)
    }

    /// A loop.
    pub fn get(&self, id: LoopId) -> Option<&LoopNode> {
        self.loops.get(id.0 as usize)
    }

    /// The loop and those around it, innermost first.
    pub fn around(&self, innermost: Option<LoopId>) -> impl Iterator<Item = (LoopId, &LoopNode)> {
        // No loop is deeper than there are loops.
        let next = |id: &LoopId| self.get(*id)?.parent;
        std::iter::successors(innermost, next).take(self.loops.len()).filter_map(|id| Some((id, self.get(id)?)))
    }
}

/// The block of functions of tests that no way leads to.
#[cfg(test)]
pub const APART: usize = 599;

#[cfg(test)]
impl CodeMap {
    /// A map of modules, each a function with so many blocks of one instruction. Its blocks from 1 to 3 are a loop, and one is apart.
    pub fn of_test(modules: usize, blocks: usize) -> Self {
        let header = |module: usize| BlockKey { module: crate::recording::ModuleId(module as u32), index: 1 };
        let module = |counted: usize| {
            let of_loop = |block| (1..=3).contains(&block).then_some(LoopId(counted as u32));
            let blocks = (0..blocks).map(|block| BlockFacts {
                innermost: of_loop(block),
                instructions: 1,
                is_apart: block == APART,
            });
            Some(ModuleMap { counted, is_read: true, blocks: blocks.collect() })
        };
        CodeMap {
            modules: (0..modules).map(module).collect(),
            loops: (0..modules).map(|module| LoopNode { header: header(module), parent: None, depth: 1 }).collect(),
        }
    }
}
