//! What a chooser may look at.

/// What is known of one basic block when the source of its count is chosen (HBBP section IV.B names the kinds).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Features {
    /// Length of the block in instructions.
    pub instructions: u32,
    /// Length of the block in bytes.
    pub bytes: u64,
    /// The branch that ends the block sits in entry\[0\] of the stacks far more often than its share (HBBP section III.C).
    pub bias: bool,
    /// EBS samples that fell into the block.
    pub ebs_samples: u64,
    /// Streams of the branch stacks that cover the block.
    pub lbr_streams: u64,
    /// Executions by EBS: samples x period / instructions.
    pub ebs_count: f64,
    /// Executions by branch stacks: sum of period / (N - 1) over the streams.
    pub lbr_count: f64,
}
