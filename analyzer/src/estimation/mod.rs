//! How much each burst weighs that a clock started.
//!
//! A clock starts bursts evenly in *time*, and so the more often in code the slower it is. Inside a burst the path is exact; what has to be
//! put right is how much bursts count against each other. All bursts that start in the same 16 bytes of code weigh the same:
//!
//! ```text
//! weight = share of time  /  cost of an instruction there
//!          time_share        cost: from what clock and bursts say together
//! ```

mod cost;
mod descent;
mod simulated_core;
mod time_share;

use std::collections::BTreeMap;

use crate::address::FileOffset;
use crate::code::FunctionId;
use crate::counting::{Code, Located, LocatedStart, ModuleCounts, SharedCode};
use crate::recording::{EventKind, ModuleId, ModuleTable, Sources};

/// How bursts were weighted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// By [`StartId`](crate::counting::StartId): what streams of bursts that started there are multiplied by.
    pub weights: Vec<f64>,
}

/// A stretch of code whose instructions are taken to cost the same: a function, or 1 KiB of code of which it is not known where functions end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stratum {
    Function(ModuleId, u32),
    Stretch(ModuleId, u64),
}

/// Bytes of a stretch, as a power of two.
const STRETCH_BITS: u32 = 10;

/// Bytes of a part, as a power of two.
const PART_BITS: u32 = 8;

/// What a stratum has of so many bytes.
type Part = (Stratum, u64);

/// Finds the strata of places.
struct Strata<'a> {
    modules: BTreeMap<ModuleId, &'a ModuleCounts>,
}

impl Strata<'_> {
    /// The code of a module, if it was read.
    fn code(&self, module: ModuleId) -> Option<&SharedCode> {
        match &self.modules.get(&module)?.code {
            Code::Read(code) => Some(code),
            Code::Unread { .. } => None,
        }
    }

    fn of(&self, module: ModuleId, at: FileOffset) -> Stratum {
        let code = self.code(module);
        let function = code.and_then(|code| code.functions.at(code.binary.image.svma_of_file_offset(at.0)?));
        stratum(module, code, function, at)
    }

    /// The part of the block around a place: all that a block executes is counted where it starts, and some are longer than a part.
    fn part_of(&self, module: ModuleId, at: FileOffset) -> Part {
        let counts = self.modules.get(&module);
        let of_block = counts.and_then(|counts| Some(self.part_of_block(counts, counts.block_at(at)?)));
        of_block.unwrap_or_else(|| (self.of(module, at), at.0 >> PART_BITS))
    }

    fn part_of_block(&self, counts: &ModuleCounts, block: u32) -> Part {
        let (code, function, at) = match &counts.code {
            Code::Read(code) => {
                let block = &code.blocks.blocks()[block as usize];
                let at = code.binary.image.file_offset_of_svma(block.start).unwrap_or_default();
                (Some(&**code), Some(block.function), FileOffset(at))
            }
            Code::Unread { blocks, .. } => (None, None, blocks[block as usize].start),
        };
        (stratum(counts.module, code, function, at), at.0 >> PART_BITS)
    }
}

fn stratum(module: ModuleId, code: Option<&SharedCode>, function: Option<FunctionId>, at: FileOffset) -> Stratum {
    match code.zip(function) {
        Some((code, function)) if code.functions.get(function).has_known_end => Stratum::Function(module, function.0),
        _ => Stratum::Stretch(module, at.0 >> STRETCH_BITS),
    }
}

/// Weighs the bursts of a recording; `None` if it has none, or they were not started by a clock.
pub fn estimate(
    located: &Located,
    counted: &[ModuleCounts],
    modules: &ModuleTable,
    sources: &Sources,
) -> Option<Estimate> {
    let lbr = sources.lbr.as_ref().filter(|lbr| lbr.has_bursts && lbr.kind == EventKind::Clock)?;
    let starts = &located.starts;
    if starts.iter().all(|start| start.starts.bursts == 0) || !lbr.covers_user {
        return None;
    }
    // The parts of modules that could not be read come behind those that could.
    let by_module = counted.iter().rev().map(|counts| (counts.module, counts)).collect();
    let strata = Strata { modules: by_module };
    let samples_show_time = sources.ebs.as_ref().is_some_and(|ebs| ebs.kind == EventKind::Clock);
    let samples = match samples_show_time {
        true => time_share::samples(located, |module| !modules.get(module).kind.is_kernel()),
        false => Vec::new(),
    };
    let shares = time_share::shares(starts, &samples, &strata);
    let of_starts: Vec<Part> = starts.iter().map(|start| strata.part_of(start.module, start.at)).collect();
    let simulated = simulated_core::costs(&located.paths, &strata);
    let costs = cost::costs(starts, &of_starts, &shares, counted, &strata, &simulated);
    let rates: Vec<f64> = costs.iter().map(|cost| 1.0 / cost).collect();
    let weights = relative(starts, &shares, &rates);
    Some(Estimate { weights })
}

/// What to multiply streams with, which weigh what their bursts' periods say, so that bursts weigh share x rate; 1 on the average.
fn relative(starts: &[LocatedStart], shares: &[f64], rates: &[f64]) -> Vec<f64> {
    let all: f64 = starts.iter().map(|start| start.starts.periods as f64).sum();
    let wanted: f64 = shares.iter().zip(rates).map(|(share, rate)| share * rate).sum();
    let factor = |((start, share), rate): ((&LocatedStart, &f64), &f64)| {
        let periods = start.starts.periods as f64;
        if periods > 0.0 && wanted > 0.0 { share * rate / wanted * all / periods } else { 0.0 }
    };
    starts.iter().zip(shares).zip(rates).map(factor).collect()
}
