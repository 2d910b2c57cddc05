//! From sums per address to counts per basic block.

mod analysed_module;
mod block_counts;
mod broken;
mod code_features;
mod groups;
mod interval_sum;
mod kernel_entries;
mod locate;
mod module_counts;
mod scale;
mod spots;
mod straight_line;
mod unreadable;

pub use analysed_module::AnalysedModule;
pub use block_counts::{BlockCount, Decider, sums_by_block};
pub use broken::BrokenStreams;
pub use code_features::CodeFeatures;
pub use groups::{Group, GroupBy, GroupId, Groups, TaskGroups, UNKNOWN_CGROUP};
pub(crate) use interval_sum::{Executions, IntervalSum, sum_over_addresses};
pub(crate) use kernel_entries::KernelEntries;
pub use locate::{
    Detail, Located, LocatedBranch, LocatedCut, LocatedIp, LocatedPath, LocatedStart, LocatedStream, ModuleHits,
    StartId, Stream, TakenBranch, granule_of, locate,
};
pub use module_counts::{BlockSize, BlockSums, Code, ModuleCounts, SlicedSums, StartSums, count_module};
pub use scale::{CountScale, mean_instruction_length};
pub(crate) use spots::{Spot, Spots, View, is_kernel};
pub use straight_line::{Broken, StraightLines};
pub use unreadable::UnreadBlock;
