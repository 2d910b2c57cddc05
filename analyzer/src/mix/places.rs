//! Which lines of the source the instructions of blocks come from: what every mix by line or file can be added up from.

use foldhash::HashMap;

use crate::Analysis;
use crate::address::Svma;
use crate::code::instructions;
use crate::counting::Code;
use crate::mix::composition::attribute;
use crate::mix::source::{Place, Sources};
use crate::mix::{Attribute, Dimension, Key, UNREADABLE};
use crate::uncertainty::Sampled;

/// The places of the source that were executed: line and file.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The keys `line` and `file`, by place.
    pub attributes: Vec<Attribute>,
    /// By module and block of [`Analysis::counted`]: where a place begins, as the index of an instruction in the block, and the place; empty
    /// where the count is 0. A block whose code was not read is one instruction.
    pub blocks: Vec<Vec<Vec<(u32, u32)>>>,
    /// What was damaged or missing in debug information, in words.
    pub notes: Vec<String>,
}

/// The places so far: of each its line and file, in words, and its executions.
#[derive(Default)]
struct Known {
    ids: HashMap<[String; 2], u32>,
    texts: [Vec<String>; 2],
    sums: Vec<(f64, Sampled)>,
}

impl Known {
    fn id(&mut self, texts: [String; 2]) -> u32 {
        let Known { ids, texts: all, sums } = self;
        *ids.entry(texts).or_insert_with_key(|texts| {
            all.iter_mut().zip(texts).for_each(|(all, text)| all.push(text.clone()));
            sums.push(Default::default());
            (sums.len() - 1) as u32
        })
    }
}

impl Places {
    /// Of all blocks of an analysis. So many threads read the debug information.
    pub fn of(analysis: &Analysis, threads: usize) -> Self {
        let sources = Sources::read(analysis, threads);
        let mut known = Known::default();
        let mut whole = (0.0, Sampled::default());
        let mut blocks = Vec::new();
        for module in &analysis.counted {
            let source = sources.of(module);
            let mut in_module: HashMap<[Place; 2], u32> = HashMap::default();
            let sampled = module.sampled_blocks();
            let of_module = module.blocks.iter().zip(&*sampled).map(|(block, sampled)| {
                if block.count.count <= 0.0 {
                    return Vec::new();
                }
                let mut add = |place: u32, known: &mut Known, times: f64| {
                    if let Some((sum, sampled_sum)) = known.sums.get_mut(place as usize) {
                        *sum += block.count.count * times;
                        sampled_sum.add(sampled, times);
                    }
                    whole.0 += block.count.count * times;
                    whole.1.add(sampled, times);
                };
                let Code::Read(code) = &module.counts.code else {
                    let place = known.id([UNREADABLE.to_owned(), UNREADABLE.to_owned()]);
                    add(place, &mut known, block.size.instructions);
                    return vec![(0, place)];
                };
                let Some(of_code) = code.blocks.blocks().get(block.index as usize) else { return Vec::new() };
                let places = instructions(&code.binary.image, of_code).map(|instruction| {
                    let address = Svma(instruction.ip());
                    let of_source = [Dimension::Line, Dimension::File].map(|key| source.place(key, address));
                    *in_module
                        .entry(of_source)
                        .or_insert_with(|| known.id(of_source.map(|place| source.value(place, address))))
                });
                let places: Vec<u32> = places.collect();
                let mut at = 0;
                let begun = places.chunk_by(u32::eq).map(|same| {
                    add(same[0], &mut known, same.len() as f64);
                    let begins = at;
                    at += same.len() as u32;
                    (begins, same[0])
                });
                begun.collect()
            });
            blocks.push(of_module.collect());
        }
        let keys = [Dimension::Line, Dimension::File].into_iter().zip(&known.texts);
        let attributes =
            keys.map(|(key, texts)| attribute(analysis, Key::from(key), texts, &known.sums, &whole)).collect();
        Places { attributes, blocks, notes: sources.notes() }
    }
}
