//! What instructions cost on a simulated core.
//!
//! Clocks say how much time code takes, not how often it runs; what is between them is how fast the core is there. A burst is an exact
//! path, so that can be simulated: which branches a predictor would have predicted, which instructions wait for which, which data is far
//! away. The absolute speed does not matter, only that of one function against another, and that is decided by the code much more than by
//! the make of the core.
//!
//! ```text
//! path of a burst -> operations -> predictor -+
//! lines of data of all bursts  -> caches -----+-> pipeline -> cycles by function
//! ```

mod caches;

use std::collections::{BTreeMap, HashMap};

use iced_x86::InstructionInfoFactory;

use formats::burst_data::Forwarded;
use simulated_core::{Core, Flow, Operation, Outcome, Pipeline, Predictor, Wait};

use crate::address::{FileOffset, Svma};
use crate::code::LONGEST_INSTRUCTION;
use crate::counting::{LocatedPath, Stream};
use crate::estimation::simulated::caches::{FirstUse, Site, Waits};
use crate::estimation::strata::{Extent, Part, Strata, Stratum};
use crate::recording::ModuleId;
use crate::uncertainty::mixed;

/// Instructions of one path that are simulated at most, and of all, to learn and to measure: 2,000 bursts of usual length are 20 million.
const LONGEST_PATH: usize = 50_000;
const MOST_INSTRUCTIONS: usize = 40_000_000;
/// Instructions that are kept decoded at most.
const MOST_DECODED: usize = 2_000_000;
/// Instructions of the mean cost that are added to each function, and of its function's cost to each part: few say little. On training
/// programs windows of 64 to 1,024 bytes and 2,000 to 20,000 instructions do about equally well, and for short loops 80,000 a little better than
/// 20,000. Loops of very different speed in one function want less.
const PRIOR: f64 = 2000.0;
const WINDOW_PRIOR: f64 = 20_000.0;
const LOOP_PRIOR: f64 = 50_000.0;

/// An instruction that is not known.
const NO_SITE: Site = Site::MAX;

/// So many instructions, executed one after the other, share the cycles of their short delays: at which one of a loop's the core stands still is not
/// known so well as how long a round takes. Longer ones than that of a load
/// from the first level are of the instruction that waits. Training programs
/// have the same errors with 1, 20, 50 and 100 instructions; loops that lie in two parts need it.
const NEIGHBOURS: usize = 50;

/// Instructions of the usual cost that are added to those of the part in which a burst starts, to tell how slow it is there in that burst.
const START_PRIOR: f64 = 1000.0;

/// Costs of instructions on a simulated core, in units of the mean.
pub(super) fn costs(paths: &[LocatedPath], strata: &Strata<'_>, core: Core) -> Costs {
    let mut simulation = Simulation::new(strata, core);
    let uses: Vec<Vec<FirstUse>> = paths.iter().map(|path| caches::first_uses(&path.uses.first)).collect();
    let sites = simulation.learn(paths, &uses);
    let spent = simulation.measure(paths, &caches::waits(paths, &uses, &sites, &core.levels));
    simulation.costs(&spent)
}

/// What an instruction costs, in units of the mean.
#[derive(Debug, Default)]
pub(super) struct Costs {
    functions: BTreeMap<Stratum, f64>,
    parts: BTreeMap<Part, f64>,
}

impl Costs {
    /// That of a part; where nothing was simulated, that of its function.
    pub fn at(&self, part: Part) -> f64 {
        let own = self.parts.get(&part);
        own.or_else(|| self.functions.get(&part.0)).copied().unwrap_or(1.0)
    }
}

/// An instruction that was decoded.
struct Decoded {
    operation: Operation,
    /// Index of its part.
    part: usize,
    /// Index of the instruction after it, once that was decoded.
    after: Option<u32>,
}

/// What is known of the data that a path uses, from the instruction at hand on.
#[derive(Default)]
struct Data<'a> {
    waits: &'a [(u32, Wait)],
    forwarded: &'a [Forwarded],
}

impl Data<'_> {
    /// What the instruction that is executed after so many waits for, and how many instructions before it the address was stored to.
    fn at(&mut self, executed: usize) -> (Option<Wait>, Option<u32>) {
        let mut wait: Option<Wait> = None;
        while let Some((instruction, other)) = self.waits.first().filter(|(other, _)| *other as usize <= executed) {
            if *instruction as usize == executed {
                wait = Some(wait.map_or(*other, |wait| wait.and(*other)));
            }
            self.waits = &self.waits[1..];
        }
        while self.forwarded.first().is_some_and(|used| (used.instruction as usize) < executed) {
            self.forwarded = &self.forwarded[1..];
        }
        let forwarded = self.forwarded.first().filter(|used| used.instruction as usize == executed);
        (wait, forwarded.map(|used| used.distance))
    }
}

/// Instructions that were executed, and the cycles that they took.
#[derive(Clone, Copy, Default)]
struct Spent {
    instructions: f64,
    cycles: f64,
}

impl Spent {
    fn add(&mut self, other: Spent, weight: f64) {
        self.instructions += weight * other.instructions;
        self.cycles += weight * other.cycles;
    }

    /// Cycles of an instruction.
    fn cost(self) -> f64 {
        self.cycles / self.instructions
    }

    /// Cycles of an instruction, where so many of that cost are added: shrunk towards it.
    fn shrunk(self, to: f64, prior: f64) -> f64 {
        (self.cycles + prior * to) / (self.instructions + prior)
    }
}

/// What a path spent in the parts it came through, by index, in the order in which it did so.
type PathSpent = Vec<(usize, Spent)>;

/// What the path at hand spent so far.
struct Spending {
    /// A delay up to this is short, cycles.
    short: f64,
    /// What was spent in each part.
    parts: Vec<Spent>,
    /// Those that the path came through, in that order.
    visited: Vec<usize>,
    /// The parts of the latest instructions, and their short delays.
    neighbours: Vec<usize>,
    shared: f64,
}

impl Spending {
    fn new(short: f64) -> Self {
        Spending { short, parts: Vec::new(), visited: Vec::new(), neighbours: Vec::new(), shared: 0.0 }
    }

    /// One instruction of a part, and the cycles that it kept those after it waiting.
    fn add(&mut self, part: usize, cycles: f64) {
        let own = if cycles > self.short { cycles } else { 0.0 };
        let spent = &mut self.parts[part];
        if spent.instructions == 0.0 {
            self.visited.push(part);
        }
        spent.add(Spent { instructions: 1.0, cycles: own }, 1.0);
        self.neighbours.push(part);
        self.shared += cycles - own;
        if self.neighbours.len() == NEIGHBOURS {
            self.share();
        }
    }

    fn share(&mut self) {
        let each = self.shared / self.neighbours.len() as f64;
        for part in self.neighbours.drain(..) {
            self.parts[part].cycles += each;
        }
        self.shared = 0.0;
    }

    /// All of it, once the path has ended.
    fn take(&mut self) -> PathSpent {
        self.share();
        self.visited.drain(..).map(|part| (part, std::mem::take(&mut self.parts[part]))).collect()
    }
}

struct Simulation<'a> {
    core: Core,
    strata: &'a Strata<'a>,
    factory: InstructionInfoFactory,
    decoded: Vec<Decoded>,
    by_address: HashMap<(ModuleId, Svma), u32>,
    part_ids: HashMap<Part, usize>,
    parts: Vec<Part>,
    spending: Spending,
    pipeline: Pipeline,
    /// That of one half of the paths, and that of the other.
    predictors: [Predictor; 2],
    /// The one of the path at hand.
    predictor: usize,
    /// What used the data of the path at hand, in the order of its waits.
    sites: Vec<Site>,
}

impl<'a> Simulation<'a> {
    fn new(strata: &'a Strata<'a>, core: Core) -> Self {
        Simulation {
            core,
            strata,
            factory: InstructionInfoFactory::new(),
            decoded: Vec::new(),
            by_address: HashMap::new(),
            part_ids: HashMap::new(),
            parts: Vec::new(),
            spending: Spending::new(core.load),
            pipeline: Pipeline::new(core),
            predictors: Default::default(),
            predictor: 0,
            sites: Vec::new(),
        }
    }

    /// Runs all paths, for the predictor has seen the code for much longer than the bursts show it. Two of them see one half of the paths each: what
    /// one has learned by heart does not help it with the paths that it predicts then. The instructions that use data first.
    fn learn(&mut self, paths: &[LocatedPath], uses: &[Vec<FirstUse>]) -> Vec<Vec<Site>> {
        let mut left = MOST_INSTRUCTIONS;
        let learn = |(index, (path, uses)): (usize, (&LocatedPath, &Vec<FirstUse>))| {
            self.predictor = half(index);
            let waits: Waits = uses.iter().map(FirstUse::without_wait).collect();
            left -= self.run::<false>(path, &waits, left.min(LONGEST_PATH));
            let mut sites = std::mem::take(&mut self.sites);
            sites.resize(uses.len(), NO_SITE);
            sites
        };
        paths.iter().zip(uses).enumerate().map(learn).collect()
    }

    /// Runs all paths, each with the predictor that has not seen it: only this counts.
    fn measure(&mut self, paths: &[LocatedPath], waits: &[Waits]) -> Vec<PathSpent> {
        let mut left = MOST_INSTRUCTIONS;
        let has_other = paths.len() > 1;
        let measure = |(index, (path, waits)): (usize, (&LocatedPath, &Waits))| {
            self.predictor = if has_other { 1 - half(index) } else { half(index) };
            left -= self.run::<true>(path, waits, left.min(LONGEST_PATH));
            self.spending.take()
        };
        paths.iter().zip(waits).enumerate().map(measure).collect()
    }

    /// Runs a path, `most` instructions of it, on the predictor, and with `MEASURES` on the pipeline; how many it were.
    fn run<const MEASURES: bool>(&mut self, path: &LocatedPath, waits: &Waits, most: usize) -> usize {
        self.pipeline.forget_values();
        self.predictors[self.predictor].forget_history();
        self.sites.clear();
        let mut data = Data { waits, forwarded: &path.uses.forwarded };
        let most = path.uses.known_until.map_or(most, |known| most.min(known as usize));
        let mut executed = 0;
        for (index, stream) in path.streams.iter().enumerate() {
            let next = path.streams.get(index + 1).copied().flatten();
            let target = next.map_or(0, |next| tag(next.module, next.start.0));
            let is_known = stream
                .is_some_and(|stream| self.run_stream::<MEASURES>(&stream, target, &mut data, &mut executed, most));
            if executed == most {
                break;
            }
            if !is_known {
                // After code that is not known, places of uses are not known either.
                self.pipeline.forget_values();
                data = Data::default();
            }
        }
        executed
    }

    /// Runs a stream until `executed` is `most`; `false` if its code is not known, or cannot have been executed in this way.
    fn run_stream<const MEASURES: bool>(
        &mut self,
        stream: &Stream,
        target: u64,
        data: &mut Data<'_>,
        executed: &mut usize,
        most: usize,
    ) -> bool {
        let Some((mut at, last)) = self.start_of(stream) else { return false };
        while *executed < most {
            let decoded = &self.decoded[at as usize];
            let operation = &decoded.operation;
            let is_last = operation.ip == last.0;
            if operation.ip > last.0 || !is_last && matches!(operation.flow, Flow::Known | Flow::Indirect) {
                return false;
            }
            let uses_left = data.waits.len();
            let (wait, from_store) = data.at(*executed);
            self.sites.extend(std::iter::repeat_n(at, uses_left - data.waits.len()));
            let outcome = outcome(&mut self.predictors[self.predictor], operation, stream.module, is_last, target);
            if MEASURES {
                // Addresses that are only computed are no uses.
                let is_use = operation.load.is_some() || operation.store.is_some();
                let cycles = self.pipeline.execute(operation, outcome, wait.filter(|_| is_use), from_store);
                self.spending.add(decoded.part, cycles);
            }
            *executed += 1;
            if is_last {
                return true;
            }
            let Some(after) = self.after(at, stream.module) else { return false };
            at = after;
        }
        true
    }

    /// The first instruction of a stream and the address of its last; `None` if its code was not read.
    fn start_of(&mut self, stream: &Stream) -> Option<(u32, Svma)> {
        let image = &self.strata.code(stream.module)?.binary.image;
        let (start, end) = (image.svma_of_file_offset(stream.start.0)?, image.svma_of_file_offset(stream.end.0)?);
        Some((self.at(stream.module, start)?, end))
    }

    fn after(&mut self, at: u32, module: ModuleId) -> Option<u32> {
        let decoded = &self.decoded[at as usize];
        if decoded.after.is_none() {
            let after = self.at(module, Svma(decoded.operation.next));
            self.decoded[at as usize].after = after;
        }
        self.decoded[at as usize].after
    }

    /// The instruction at an address, decoded now if it is new.
    fn at(&mut self, module: ModuleId, address: Svma) -> Option<u32> {
        if let Some(at) = self.by_address.get(&(module, address)) {
            return Some(*at);
        }
        let image = &self.strata.code(module)?.binary.image;
        let instruction = image.decoder(address, LONGEST_INSTRUCTION).decode();
        if instruction.is_invalid() || self.decoded.len() == MOST_DECODED {
            return None;
        }
        let offset = FileOffset(image.file_offset_of_svma(address)?);
        let part = (self.strata.of(module, offset), self.strata.extent(module, offset));
        let next = self.parts.len();
        let index = *self.part_ids.entry(part).or_insert(next);
        if index == next {
            self.parts.push(part);
            self.spending.parts.push(Spent::default());
        }
        let operation = Operation::of(&instruction, &mut self.factory, &self.core);
        let at = self.decoded.len() as u32;
        self.decoded.push(Decoded { operation, part: index, after: None });
        self.by_address.insert((module, address), at);
        Some(at)
    }

    fn costs(self, spent: &[PathSpent]) -> Costs {
        let sums = as_executed(spent, self.parts.len());
        let mut functions: BTreeMap<Stratum, Spent> = BTreeMap::new();
        let mut all = Spent::default();
        for ((stratum, _), sum) in self.parts.iter().zip(&sums) {
            functions.entry(*stratum).or_default().add(*sum, 1.0);
            all.add(*sum, 1.0);
        }
        let mean = if all.cycles > 0.0 { all.cost() } else { 1.0 };
        let functions: BTreeMap<Stratum, f64> =
            functions.into_iter().map(|(stratum, sum)| (stratum, sum.shrunk(mean, PRIOR) / mean)).collect();
        let part = |(part, sum): (Part, Spent)| {
            let prior = if let Extent::Loop(_) = part.1 { LOOP_PRIOR } else { WINDOW_PRIOR };
            (part, sum.shrunk(functions[&part.0] * mean, prior) / mean)
        };
        Costs { parts: self.parts.into_iter().zip(sums).map(part).collect(), functions }
    }
}

/// Sums by part. Bursts start in a place the more often the slower it is just then. So each counts the less the slower it is where it starts
/// than it is there as a rule, or data that is sometimes far away would be taken to be so too often.
fn as_executed(spent: &[PathSpent], parts: usize) -> Vec<Spent> {
    let sums = |weight: &dyn Fn(&PathSpent) -> f64| {
        let mut sums = vec![Spent::default(); parts];
        for path in spent {
            let weight = weight(path);
            path.iter().for_each(|(part, spent)| sums[*part].add(*spent, weight));
        }
        sums
    };
    let as_started = sums(&|_| 1.0);
    sums(&|path| {
        let Some((start, there)) = path.first() else { return 1.0 };
        let usual = as_started[*start].cost();
        if usual > 0.0 { usual / there.shrunk(usual, START_PRIOR) } else { 1.0 }
    })
}

/// The half of the paths that one belongs to: a hash says it, for threads may take turns.
fn half(path: usize) -> usize {
    (mixed(path as u64) & 1) as usize
}

/// A number for an address: those of modules begin near 0.
fn tag(module: ModuleId, address: u64) -> u64 {
    address ^ u64::from(module.0) << 48
}

/// What comes of the branch, if it is one. The last instruction of a stream is a taken branch, or a system call.
fn outcome(predictor: &mut Predictor, operation: &Operation, module: ModuleId, is_last: bool, target: u64) -> Outcome {
    let branch = tag(module, operation.ip);
    let predicted = match operation.flow {
        Flow::Conditional => predictor.direction(branch, is_last),
        Flow::Indirect if is_last => predictor.target(branch, target),
        Flow::Known if is_last => {
            predictor.pass();
            true
        }
        _ => return Outcome::Straight,
    };
    match predicted {
        true if is_last => Outcome::Taken,
        true => Outcome::Straight,
        false => Outcome::Mispredicted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_delays_are_shared_and_long_ones_are_not() {
        let mut spending = Spending { parts: vec![Spent::default(); 3], ..Spending::new(4.0) };
        // A loop in two parts, of which one stands still for a moment in every round, and one long wait in a third.
        for _ in 0..500 {
            spending.add(0, 3.0);
            spending.add(1, 0.0);
        }
        spending.add(2, 600.0);
        let spent = spending.take();
        let costs: Vec<(usize, f64)> = spent.iter().map(|(part, spent)| (*part, spent.cost())).collect();
        assert_eq!(costs, [(0, 1.5), (1, 1.5), (2, 600.0)]);
        assert!(spending.take().is_empty() && spending.parts.iter().all(|spent| spent.instructions == 0.0));
    }

    #[test]
    fn bursts_that_start_more_often_because_they_are_slow_count_less() {
        // Half of the executions take ten times as long, so that ten of eleven bursts start there.
        let burst = |cost: f64| vec![(0, Spent { instructions: 1e6, cycles: cost * 1e6 })];
        let spent: Vec<PathSpent> = [burst(1.0)].into_iter().chain((0..10).map(|_| burst(10.0))).collect();
        let cost = as_executed(&spent, 1)[0].cost();
        assert!((cost - 5.5).abs() < 0.05, "{cost}");
    }
}
