//! The third reading, when what bursts weigh is known: each burst or stack is walked, and what it shows is added up.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use perfdata::{Branch, BranchStack, Error, RawRecord, Recording};

use crate::address::Avma;
use crate::calls::code::CalledCode;
use crate::calls::streams::{Space, SpaceId, Streams};
use crate::calls::{CallerTree, Walk};
use crate::counting::Spots;
use crate::progress::{Progress, Step};
use crate::recording::{
    Context, EpochId, EventUse, Selection, Sources, Tasks, Totals, Weight, context_of, event_uses, followed,
    samples_by_threads, shown, weight_of,
};

/// What was walked.
pub struct Walked {
    /// The contexts.
    pub tree: CallerTree,
    /// Bursts, pieces of them, and stacks.
    pub walks: u64,
    /// How often a walk could not go on from what it knew of callers, and began anew.
    pub lost: u64,
}

/// What the walks need to know.
pub struct Walks<'a> {
    pub recording: &'a Recording,
    pub tasks: &'a Tasks,
    pub sources: &'a Sources,
    pub selection: Selection,
    pub code: &'a CalledCode<'a>,
    pub spots: &'a Spots,
    pub spaces: &'a Spaces,
    /// What the bursts of a context are multiplied by; 1 where it is not there.
    pub factors: &'a HashMap<Context, f64>,
}

/// The address spaces of all contexts.
#[derive(Default)]
pub struct Spaces {
    spaces: Vec<Space>,
    ids: HashMap<(u32, EpochId, bool), SpaceId>,
}

impl Spaces {
    /// Of the contexts of a recording.
    pub fn of(totals: &Totals, tasks: &Tasks) -> Self {
        let mut wanted: BTreeMap<(u32, u32), BTreeMap<u32, Vec<bool>>> = BTreeMap::new();
        for context in &totals.contexts {
            let process = wanted.entry((context.pid, context.place.incarnation)).or_default();
            let kinds = process.entry(context.place.epoch).or_default();
            if !kinds.contains(&context.guest) {
                kinds.push(context.guest);
            }
        }
        let mut all = Spaces::default();
        for ((pid, incarnation), epochs) in wanted {
            tasks.timeline.for_each_epoch(pid, incarnation, |epoch, space| {
                for &guest in epochs.get(&epoch).into_iter().flatten() {
                    let id = SpaceId(all.spaces.len() as u32);
                    all.ids.insert((pid, EpochId { incarnation, epoch }, guest), id);
                    all.spaces.push(Space { mappings: space.clone(), guest });
                }
            });
        }
        all
    }
}

impl Walks<'_> {
    /// Walks all bursts and stacks, with that many threads.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn read(&self, threads: usize, progress: Progress<'_>) -> Result<Walked, Error> {
        let uses = event_uses(self.sources, self.recording.events());
        let of = self.recording.data_size();
        let read = |done| progress(Step::Reading { done, of });
        let workers = samples_by_threads(self.recording, threads, &read, || Worker::new(self, &uses), Worker::add)?;
        let sum = workers.into_iter().map(|worker| worker.walked).reduce(|mut sum, walked| {
            sum.tree.merge(&walked.tree);
            sum.walks += walked.walks;
            sum.lost += walked.lost;
            sum
        });
        Ok(sum.unwrap_or_else(Walked::none))
    }
}

impl Walked {
    fn none() -> Self {
        let tree = CallerTree::new(CallerTree::MOST_NODES, CallerTree::MOST_FRAMES);
        Walked { tree, walks: 0, lost: 0 }
    }
}

/// One thread of the reading.
struct Worker<'a> {
    of: &'a Walks<'a>,
    uses: &'a [EventUse],
    streams: Streams<'a>,
    walk: Walk,
    /// Of the stack that is walked, newest first.
    branches: Vec<Branch>,
    walked: Walked,
    recent: Option<(u32, bool, Range<u64>, EpochId)>,
}

impl<'a> Worker<'a> {
    fn new(of: &'a Walks<'a>, uses: &'a [EventUse]) -> Self {
        let streams = Streams::new(of.code, of.spots, &of.spaces.spaces);
        Worker { of, uses, streams, walk: Walk::default(), branches: Vec::new(), walked: Walked::none(), recent: None }
    }

    /// Walks the branches of a sample, if they count: those that the second reading added up.
    fn add(&mut self, raw: &RawRecord<'_>) {
        let Ok(sample) = self.of.recording.sample(raw) else { return };
        let Selection { granularity, subset, full_burst, .. } = self.of.selection;
        let Some(uses) = self.uses.get(sample.event).filter(|uses| uses.stack) else { return };
        let Some(stack) = &sample.branch_stack else { return };
        if !subset.keeps(&sample, raw) {
            return;
        }
        let period = sample.period.unwrap_or(uses.period);
        let burst = uses.burst.then(|| weight_of(&sample));
        let branches = followed(stack).count() as u64;
        let (context, _) = context_of(&sample, raw, burst.as_ref(), granularity, &self.of.tasks.first_pieces);
        let place = self.place(context.pid, context.guest, sample.time.unwrap_or(u64::MAX));
        let Some(&space) = self.of.spaces.ids.get(&(context.pid, place, context.guest)) else { return };
        let (start, weight) = match &burst {
            Some(burst) if burst.instructions < branches => return,
            Some(burst) => {
                let factor = self.of.factors.get(&Context { place, ..context }).copied().unwrap_or(1.0);
                let weight = Weight::of_burst_stream(shown(period, burst, full_burst), burst.instructions);
                (sample.ip, weight.times(factor))
            }
            None => (None, Weight::of_stream(period, branches.saturating_sub(1))),
        };
        self.walk_stack(space, start, stack);
        self.walked.lost += self.walk.finish(weight, &mut self.walked.tree);
        self.walked.walks += 1;
    }

    fn walk_stack(&mut self, space: SpaceId, start: Option<Avma>, stack: &BranchStack<'_>) {
        self.branches.clear();
        self.branches.extend(followed(stack));
        let mut at = start;
        if let Some(function) = start.and_then(|start| self.streams.function_at(space, start)) {
            self.walk.begin(function);
        }
        for branch in self.branches.iter().rev() {
            let Some(stream) = self.streams.get(space, at, branch) else { return };
            match &stream.parts {
                Some(_) if at.is_none() => self.walk.begin(stream.function),
                Some(parts) => parts.iter().for_each(|part| self.walk.run(part.function, part.instructions)),
                None => self.walk.lose(stream.function),
            }
            self.walk.go(&stream.transfer, stream.target);
            at = Some(branch.to);
        }
    }

    fn place(&mut self, pid: u32, guest: bool, time: u64) -> EpochId {
        if let Some((recent, kind, times, place)) = &self.recent
            && (*recent, *kind) == (pid, guest)
            && times.contains(&time)
        {
            return *place;
        }
        let (place, times) = self.of.tasks.timeline.place(pid, time);
        self.recent = Some((pid, guest, times, place));
        place
    }
}
