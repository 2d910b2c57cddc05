//! Which kinds of instructions blocks are made of: what every mix by attributes of instructions can be added up from.

use foldhash::HashMap;

use crate::code::instructions;
use crate::counting::Code;
use crate::mix::kind::Kind;
use crate::mix::{Key, UNREADABLE, Uncertainty};
use crate::uncertainty::Sampled;
use crate::{Analysis, CountedModule};

/// The kinds of instructions that were executed. Instructions of one kind have the same values of all attributes.
///
/// Example: where the kinds 0 and 1 are those of `add eax, 1` and `jne`, and a block is `[0, 0, 1]`, its instructions are two additions
/// and a jump. Its count is added twice to the value that kind 0 has of an attribute, and once to that of kind 1.
#[derive(Clone, Debug, Default)]
pub struct Composition {
    /// The attributes that were asked for, in the same order.
    pub attributes: Vec<Attribute>,
    /// How many kinds there are.
    pub kinds: usize,
    /// By module and block of [`Analysis::counted`]: the kind of each instruction, in order; empty where the count is 0. A block whose
    /// code was not read is one instruction of a kind whose values are all [`UNREADABLE`].
    pub blocks: Vec<Vec<Vec<u32>>>,
}

/// A key of a mix, and the value that it has for each of what tells it: for each kind of instructions, place or task.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The key.
    pub key: Key,
    /// What was executed, each once, in the order of texts.
    pub values: Vec<AttributeValue>,
    /// By kind (place, task), the index of its value.
    pub of_kinds: Vec<u32>,
}

/// A value of an attribute.
#[derive(Clone, Debug)]
pub struct AttributeValue {
    /// As a mix prints it.
    pub text: String,
    /// Executed instructions that have it.
    pub count: f64,
    /// What that would be in the replicates.
    pub sampled: Sampled,
    /// How uncertain it is.
    pub uncertainty: Uncertainty,
}

impl Composition {
    /// Of all blocks of an analysis; keys that are no attributes of instructions are left out.
    pub fn of(analysis: &Analysis, keys: impl IntoIterator<Item = Key>) -> Self {
        let keys: Vec<Key> = keys.into_iter().filter(Key::is_attribute).collect();
        let with_form = keys.iter().any(Key::needs_form);
        let mut kinds = Kinds::default();
        let blocks = analysis.counted.iter().map(|module| kinds.add(module, with_form)).collect();
        let mut whole = (0.0, Sampled::default());
        for (count, sampled) in &kinds.sums {
            whole.0 += count;
            whole.1.add(sampled, 1.0);
        }
        let attributes = keys.into_iter().map(|key| kinds.attribute(analysis, key, &whole)).collect();
        Composition { attributes, kinds: kinds.all.len(), blocks }
    }
}

/// The kinds seen so far; `None` is that of code that was not read.
#[derive(Default)]
struct Kinds {
    ids: HashMap<Option<Kind>, u32>,
    all: Vec<Option<Kind>>,
    /// Executions of each, and what they would be in the replicates.
    sums: Vec<(f64, Sampled)>,
}

impl Kinds {
    fn id(&mut self, kind: Option<Kind>) -> u32 {
        *self.ids.entry(kind).or_insert_with(|| {
            self.all.push(kind);
            self.sums.push((0.0, Sampled::default()));
            (self.all.len() - 1) as u32
        })
    }

    fn execute(&mut self, id: u32, (count, sampled): (f64, &Sampled), times: f64) {
        if let Some((sum, sampled_sum)) = self.sums.get_mut(id as usize) {
            *sum += count * times;
            sampled_sum.add(sampled, times);
        }
    }

    /// The kinds of the instructions of each block.
    fn add(&mut self, module: &CountedModule, with_form: bool) -> Vec<Vec<u32>> {
        let sampled = module.sampled_blocks();
        let blocks = module.blocks.iter().zip(&*sampled).map(|(block, sampled)| {
            let executed = (block.count.count, sampled);
            if block.count.count <= 0.0 {
                return Vec::new();
            }
            let Code::Read(code) = &module.counts.code else {
                let id = self.id(None);
                self.execute(id, executed, block.size.instructions);
                return vec![id];
            };
            let Some(of_code) = code.blocks.blocks().get(block.index as usize) else { return Vec::new() };
            let ids = instructions(&code.binary.image, of_code)
                .map(|instruction| self.id(Some(Kind::of(&instruction, with_form))));
            let ids: Vec<u32> = ids.collect();
            // There are fewer kinds than instructions, and replicates are many numbers.
            let mut sorted = ids.clone();
            sorted.sort_unstable();
            sorted.chunk_by(u32::eq).for_each(|same| self.execute(same[0], executed, same.len() as f64));
            ids
        });
        blocks.collect()
    }

    fn attribute(&self, analysis: &Analysis, key: Key, whole: &(f64, Sampled)) -> Attribute {
        let text = |kind: &Option<Kind>| match kind {
            Some(kind) => key.value_of(kind).map_or(UNREADABLE.to_owned(), |value| value.into_owned()),
            None => UNREADABLE.to_owned(),
        };
        let texts: Vec<String> = self.all.iter().map(text).collect();
        attribute(analysis, key, &texts, &self.sums, whole)
    }
}

/// An attribute of these texts, one for each of what it tells apart, with their executions.
pub(super) fn attribute(
    analysis: &Analysis,
    key: Key,
    texts: &[String],
    sums: &[(f64, Sampled)],
    whole: &(f64, Sampled),
) -> Attribute {
    let mut existing: Vec<&String> = texts.iter().collect();
    existing.sort_unstable();
    existing.dedup();
    let of_kinds: Vec<u32> = texts.iter().map(|text| existing.partition_point(|other| *other < text) as u32).collect();
    let mut by_value: Vec<(f64, Sampled)> = vec![Default::default(); existing.len()];
    for (value, (count, sampled)) in of_kinds.iter().zip(sums) {
        if let Some((sum, sampled_sum)) = by_value.get_mut(*value as usize) {
            *sum += count;
            sampled_sum.add(sampled, 1.0);
        }
    }
    let values = existing.iter().zip(by_value).map(|(text, (count, sampled))| AttributeValue {
        text: (*text).clone(),
        count,
        uncertainty: Uncertainty {
            count: analysis.design.interval(count, &sampled),
            share: analysis.design.share((count, &sampled), (whole.0, &whole.1)),
        },
        sampled,
    });
    let values = values.collect();
    Attribute { key, values, of_kinds }
}
