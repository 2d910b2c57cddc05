//! How far counts are from the truth.

use crate::training::LabelledBlock;
use crate::training::digits::to_digits;
use crate::{Error, FEATURES, Features, Source};

/// The errors of a program's blocks when each is counted by the source that `choose` names.
pub fn error(blocks: &[&LabelledBlock], choose: impl Fn(&LabelledBlock) -> Source) -> Error {
    let mut kinds = vec![(0.0, 0.0); FEATURES.len()];
    let (mut wrong, mut executed) = (0.0, 0.0);
    for block in blocks {
        let source = choose(block);
        wrong += block.error(source);
        executed += block.weight();
        for (kind, (count, truth)) in KINDS.iter().zip(&mut kinds) {
            let instructions = kind(&block.features);
            *count += block.count(source) * instructions;
            *truth += block.executions * instructions;
        }
    }
    let truth: f64 = kinds.iter().map(|(_, truth)| truth).sum();
    let off: f64 = kinds.iter().map(|(count, truth)| f64::abs(count - truth)).sum();
    Error { blocks: to_digits(wrong / executed, 6), kinds: to_digits(if truth > 0.0 { off / truth } else { 0.0 }, 6) }
}

/// Instructions of the block that are of one kind, for all kinds that features tell apart.
const KINDS: [fn(&Features) -> f64; 6] = [
    |block| f64::from(block.long_latency),
    |block| f64::from(block.memory_reads),
    |block| f64::from(block.memory_writes),
    |block| f64::from(block.simd),
    |block| f64::from(u8::from(block.end == crate::BlockEnd::Conditional)),
    |block| f64::from(u8::from(matches!(block.end, crate::BlockEnd::Call | crate::BlockEnd::Return))),
];
