//! What a chooser may look at.

/// What is known of one basic block when the source of its count is chosen (HBBP section IV.B names the kinds).
///
/// [`FEATURES`](crate::FEATURES) lists what trees see of it.
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
    /// Instructions of tens of cycles: divisions, square roots.
    pub long_latency: u32,
    /// Instructions that read memory.
    pub memory_reads: u32,
    /// Instructions that write memory.
    pub memory_writes: u32,
    /// Instructions on vectors or floating-point numbers.
    pub simd: u32,
    /// The instruction that ends the block.
    pub end: BlockEnd,
    /// The block in front, if this one is reached from it without a branch, has an instruction of long latency: the samples of
    /// its wait fall behind it ("shadowing", HBBP section III.A).
    pub shadowed: bool,
    /// An instruction of long latency is the last of the block, or the last before its branch: samples of its wait fall outside.
    pub casts_shadow: bool,
}

/// How a block ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockEnd {
    /// The next instruction starts a block.
    #[default]
    FallThrough,
    /// A conditional branch.
    Conditional,
    /// A jump to a stated target.
    Jump,
    /// A jump or call to a computed target.
    Indirect,
    /// A call of a stated target.
    Call,
    /// A return to the caller.
    Return,
    /// A system call or trap.
    Kernel,
}
