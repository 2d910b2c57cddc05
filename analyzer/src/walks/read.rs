//! The third reading, when what bursts weigh is known: each burst or stack is walked.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use perfdata::{Branch, Error, RawRecord, Recording};

use crate::address::Avma;
use crate::progress::{Progress, Step};
use crate::recording::{
    Context, EpochId, EventUse, Selection, Sources, Tasks, Totals, Weight, context_of, event_uses, followed,
    samples_by_threads, shown, weight_of,
};
use crate::uncertainty::Slice;
use crate::walks::streams::{Space, SpaceId};

/// What of samples is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walked {
    /// The stacks that the second reading added up: the streams of branches.
    Streams,
    /// LBR call stacks of samples that count.
    CallStacks,
}

/// What is walked.
pub struct Reading<'a> {
    pub what: Walked,
    pub recording: &'a Recording,
    pub tasks: &'a Tasks,
    pub sources: &'a Sources,
    pub selection: Selection,
    pub spaces: &'a Spaces,
    /// What the bursts of a context are multiplied by; 1 where it is not there.
    pub factors: &'a HashMap<Context, f64>,
}

/// A burst, a piece of one, a stack, or an LBR call stack.
pub struct WalkedStack<'a> {
    /// The address space that its addresses are of.
    pub space: SpaceId,
    /// Where it starts, if that is recorded; of LBR call stacks the address of the sample.
    pub start: Option<Avma>,
    /// The branches that were executed, oldest first; of LBR call stacks the calls that had not returned.
    pub branches: &'a [Branch],
    /// What each of its streams stands for; of LBR call stacks the period of the sample.
    pub weight: Weight,
    /// The slice of the recording that it is in.
    pub slice: Slice,
}

/// What walks bursts and stacks.
pub trait Walker: Send {
    /// Walks one.
    fn walk(&mut self, stack: &WalkedStack<'_>);
    /// Adds what another one found. Which stacks each of them walked is not the same from time to time.
    fn merge(&mut self, other: Self);
}

/// Process, whether it is a guest's, and whether it has addresses of a kernel that changed.
type Seen = (u32, bool, bool);

/// Whether contexts are a guest's, and their epochs of the kernel.
type Kinds = Vec<(bool, u32)>;

/// The address spaces of all contexts.
#[derive(Default)]
pub struct Spaces {
    spaces: Vec<Space>,
    ids: HashMap<(u32, EpochId, bool), SpaceId>,
}

impl Spaces {
    /// Of the contexts of a recording.
    pub fn of(totals: &Totals, tasks: &Tasks) -> Self {
        let mut wanted: BTreeMap<(u32, u32), BTreeMap<u32, Kinds>> = BTreeMap::new();
        for context in &totals.contexts {
            let process = wanted.entry((context.pid, context.place.incarnation)).or_default();
            process.entry(context.place.epoch).or_default().push((context.guest, context.place.kernel));
        }
        for kinds in wanted.values_mut().flat_map(BTreeMap::values_mut) {
            kinds.sort_unstable();
            kinds.dedup();
        }
        let mut all = Spaces::default();
        for ((pid, incarnation), epochs) in wanted {
            tasks.timeline.for_each_epoch(pid, incarnation, |epoch, space| {
                for &(guest, kernel) in epochs.get(&epoch).into_iter().flatten() {
                    let id = SpaceId(all.spaces.len() as u32);
                    all.ids.insert((pid, EpochId { incarnation, epoch, kernel }, guest), id);
                    all.spaces.push(Space { mappings: space.clone(), guest, kernel });
                }
            });
        }
        all
    }
}

impl Spaces {
    /// All of them; a [`SpaceId`] is an index.
    pub fn all(&self) -> &[Space] {
        &self.spaces
    }
}

impl Reading<'_> {
    /// Walks all bursts and stacks, with that many threads, of which each makes a walker.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn walk<W: Walker>(
        &self,
        walker: impl Fn() -> W + Sync,
        threads: usize,
        progress: Progress<'_>,
    ) -> Result<W, Error> {
        let uses = event_uses(self.sources, self.recording.events());
        let of = self.recording.data_size();
        let read = |done| progress(Step::Reading { done, of });
        let make = || Worker { of: self, uses: &uses, walker: walker(), branches: Vec::new(), recent: None };
        let workers = samples_by_threads(self.recording, threads, &read, make, Worker::add)?;
        let sum = workers.into_iter().map(|worker| worker.walker).reduce(|mut sum, more| {
            sum.merge(more);
            sum
        });
        Ok(sum.unwrap_or_else(walker))
    }
}

/// One thread of the reading.
struct Worker<'a, W> {
    of: &'a Reading<'a>,
    uses: &'a [EventUse],
    walker: W,
    /// Of the stack that is walked, oldest first.
    branches: Vec<Branch>,
    recent: Option<(Seen, Range<u64>, EpochId)>,
}

impl<W: Walker> Worker<'_, W> {
    /// Walks the branches of a sample, if they count: those that the second reading added up.
    fn add(&mut self, raw: &RawRecord<'_>) {
        let Ok(sample) = self.of.recording.sample(raw) else { return };
        let Selection { granularity, subset, full_burst, .. } = self.of.selection;
        let is_walked = |uses: &&EventUse| match self.of.what {
            Walked::Streams => uses.stack,
            Walked::CallStacks => uses.ip && uses.call_stack,
        };
        let Some(uses) = self.uses.get(sample.event).filter(is_walked) else { return };
        let Some(stack) = &sample.branch_stack else { return };
        if !subset.keeps(&sample, raw) {
            return;
        }
        let period = sample.period.unwrap_or(uses.period);
        let burst = uses.burst.then(|| weight_of(&sample));
        let branches = followed(stack).count() as u64;
        let (context, _) = context_of(&sample, raw, burst.as_ref(), granularity, &self.of.tasks.first_pieces);
        let sees_kernel = uses.sees_kernel(&sample, &self.of.tasks.timeline);
        let place = self.place((context.pid, context.guest, sees_kernel), sample.time.unwrap_or(u64::MAX));
        let Some(&space) = self.of.spaces.ids.get(&(context.pid, place, context.guest)) else { return };
        let (start, weight) = match &burst {
            None if self.of.what == Walked::CallStacks => (sample.ip, Weight(u128::from(period) << 32)),
            Some(burst) if burst.instructions < branches => return,
            Some(burst) => {
                let factor = self.of.factors.get(&Context { place, ..context }).copied().unwrap_or(1.0);
                let weight = Weight::of_burst_stream(shown(period, burst, full_burst), burst.instructions);
                (sample.ip, weight.times(factor))
            }
            None => (None, Weight::of_stream(period, branches.saturating_sub(1))),
        };
        let slice = self.of.tasks.slicing.of(sample.time, raw.offset);
        self.branches.clear();
        self.branches.extend(followed(stack));
        self.branches.reverse();
        self.walker.walk(&WalkedStack { space, start, branches: &self.branches, weight, slice });
    }

    fn place(&mut self, of: Seen, time: u64) -> EpochId {
        if let Some((recent, times, place)) = &self.recent
            && *recent == of
            && times.contains(&time)
        {
            return *place;
        }
        let (pid, _, sees_kernel) = of;
        let (place, times) = self.of.tasks.timeline.place_of_sample(pid, time, sees_kernel);
        self.recent = Some((of, times, place));
        place
    }
}
