//! The rule of the paper.

use crate::{Chooser, Features, Source};

/// HBBP's published rule: blocks of up to 18 instructions by branch stacks, longer ones by EBS (section IV.B).
///
/// The paper's trees put the cutoff "consistently close to 18"; bias alone did not decide, so it is not asked.
///
/// ```
/// use model::{Chooser, Features, PublishedRule, Source};
/// let block = |instructions| Features { instructions, ..Features::default() };
/// assert_eq!(PublishedRule.choose(&block(18)), Source::Lbr);
/// assert_eq!(PublishedRule.choose(&block(19)), Source::Ebs);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PublishedRule;

impl PublishedRule {
    /// The longest block, in instructions, that is counted by branch stacks.
    pub const LONGEST_BY_LBR: u32 = 18;
}

impl Chooser for PublishedRule {
    fn choose(&self, block: &Features) -> Source {
        if block.instructions <= Self::LONGEST_BY_LBR { Source::Lbr } else { Source::Ebs }
    }

    fn describe(&self) -> String {
        format!("published rule (up to {} instructions: lbr, longer: ebs)", Self::LONGEST_BY_LBR)
    }
}
