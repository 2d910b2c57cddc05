//! Which loops blocks are in: what every mix by loop can be added up from.

use foldhash::HashMap;

use crate::Analysis;
use crate::annotate::LoopTable;
use crate::mix::composition::attribute;
use crate::mix::{Attribute, Dimension, Key, NO_LOOP, UNREADABLE};
use crate::uncertainty::Sampled;

/// The innermost loop of each block that was executed.
#[derive(Clone, Debug)]
pub struct InnermostLoops {
    /// The key `loop`, by what `blocks` names.
    pub attribute: Attribute,
    /// By module and block of [`Analysis::counted`]: an index in the attribute's `of_kinds`; `None` where the count is 0.
    pub blocks: Vec<Vec<Option<u32>>>,
}

impl InnermostLoops {
    /// Of all blocks of an analysis whose loops were found.
    pub fn of(analysis: &Analysis, loops: &LoopTable) -> Self {
        let mut ids: HashMap<(usize, &str), u32> = HashMap::default();
        let (mut texts, mut sums) = (Vec::new(), Vec::<(f64, Sampled)>::new());
        let mut whole = (0.0, Sampled::default());
        let mut blocks = Vec::new();
        for (index, module) in analysis.counted.iter().enumerate() {
            let sampled = module.sampled_blocks();
            let of_module = module.blocks.iter().zip(&*sampled).map(|(block, sampled)| {
                if block.count.count <= 0.0 {
                    return None;
                }
                let name = match loops.innermost(index, block.index) {
                    _ if !module.is_read() => UNREADABLE,
                    None => NO_LOOP,
                    Some(innermost) => innermost.name.as_str(),
                };
                let id = *ids.entry((index, name)).or_insert_with(|| {
                    texts.push(name.to_owned());
                    sums.push(Default::default());
                    (texts.len() - 1) as u32
                });
                let instructions = block.size.instructions;
                for (sum, sampled_sum) in sums.get_mut(id as usize).into_iter().chain([&mut whole]) {
                    *sum += block.count.count * instructions;
                    sampled_sum.add(sampled, instructions);
                }
                Some(id)
            });
            blocks.push(of_module.collect());
        }
        InnermostLoops { attribute: attribute(analysis, Key::from(Dimension::Loop), &texts, &sums, &whole), blocks }
    }
}
