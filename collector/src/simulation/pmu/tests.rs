//! The PMU as a whole, on traces made by hand.

use std::collections::BTreeMap;

use super::*;
use crate::simulation::SimulatedCore;

/// Code of nothing but `nop`, with some instructions in between.
struct Code(BTreeMap<u64, Vec<u8>>);

impl CodeBytes for Code {
    fn read(&mut self, ip: Avma, bytes: &mut [u8; 15]) -> usize {
        bytes.fill(0x90);
        if let Some(instruction) = self.0.get(&ip.0) {
            bytes[..instruction.len()].copy_from_slice(instruction);
        }
        bytes.len()
    }
}

const JUMP: [u8; 2] = [0xeb, 0];

/// A loop of blocks of so many `nop` with a jump at the end, each block at another multiple of 64; one round of it.
fn chain(blocks: &[u64]) -> (Code, Vec<Executed>) {
    let (mut code, mut trace) = (BTreeMap::new(), Vec::new());
    let start = |block: usize| 0x1_0000 + block as u64 * 64;
    for (block, &nops) in blocks.iter().enumerate() {
        let plain = (0..nops).map(|at| Executed { ip: Avma(start(block) + at), operand: Avma(0), taken: None });
        trace.extend(plain);
        let jump = Avma(start(block) + nops);
        code.insert(jump.0, JUMP.to_vec());
        let to = Avma(start((block + 1) % blocks.len()));
        trace.push(Executed { ip: jump, operand: Avma(0), taken: Some((BranchKind::Jump, to)) });
    }
    (Code(code), trace)
}

/// Events with these captures, and one period that is prime to all loops here.
const fn events(instructions: Capture, taken_branches: Capture) -> SampledEvents {
    SampledEvents {
        instructions: Sampling { period: 1009, capture: instructions },
        taken_branches: Sampling { period: 211, capture: taken_branches },
    }
}

/// Those of the Ivy Bridge and of the Westmere.
const IVY_BRIDGE: SampledEvents = events(Capture::Distributed, Capture::Precise);
const WESTMERE: SampledEvents = events(Capture::Precise, Capture::Interrupt);

fn sample(
    settings: PmuSettings,
    events: SampledEvents,
    code: &mut Code,
    trace: &[Executed],
    rounds: u64,
) -> Vec<PmuSample> {
    let (mut core, mut table) = (Core::default(), CodeTable::default());
    let mut thread = ThreadPmu::new(settings, events);
    let mut samples = Vec::new();
    for _ in 0..rounds {
        core.retire(&mut thread, &mut table, code, trace, &mut samples);
    }
    let branches = trace.iter().filter(|executed| executed.taken.is_some()).count() as u64;
    assert_eq!(thread.counted(), (rounds * trace.len() as u64, rounds * branches));
    assert_eq!(thread.merged(), 0);
    let counts: BTreeMap<Avma, u64> = table.take().collect();
    assert!(trace.iter().all(|executed| counts[&executed.ip] == rounds) && counts.len() == trace.len());
    samples
}

fn of(samples: &[PmuSample], event: SampledBy) -> impl Iterator<Item = &PmuSample> {
    samples.iter().filter(move |sample| sample.event == event)
}

/// How often each address is sampled.
fn histogram<'a>(ips: impl Iterator<Item = &'a PmuSample>) -> BTreeMap<Avma, u64> {
    let mut counts = BTreeMap::new();
    ips.for_each(|sample| *counts.entry(sample.ip).or_default() += 1);
    counts
}

const UNBIASED: PmuSettings = PmuSettings { core: SimulatedCore::IvyBridge, depth: 16, bias: 0.0, seed: 1 };

#[test]
fn as_many_samples_as_periods_and_none_where_it_did_not_run() {
    let (mut code, trace) = chain(&[3, 9, 0, 30]);
    for events in [IVY_BRIDGE, WESTMERE, events(Capture::Interrupt, Capture::Distributed)] {
        let samples = sample(UNBIASED, events, &mut code, &trace, 10_000);
        let (instructions, branches) = (10_000 * trace.len() as u64, 40_000);
        // The last overflow may not have come to its sample.
        let expected = |count: u64, period: u64| (count / period).saturating_sub(1)..=count / period;
        assert!(expected(instructions, 1009).contains(&(of(&samples, SampledBy::Instructions).count() as u64)));
        assert!(expected(branches, 211).contains(&(of(&samples, SampledBy::TakenBranches).count() as u64)));
        assert!(samples.iter().all(|sample| trace.iter().any(|executed| executed.ip == sample.ip)));
    }
}

/// Code without long latencies is sampled evenly: a period that is prime to the loop, whose cycles begin with another instruction each
/// time, meets each instruction as often.
#[test]
fn plain_code_is_sampled_evenly() {
    let (mut code, trace) = chain(&[20]);
    for (events, unevenness) in [(WESTMERE, 2), (IVY_BRIDGE, model::WIDTH)] {
        let counts = histogram(of(&sample(UNBIASED, events, &mut code, &trace, 100_000), SampledBy::Instructions));
        let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
        assert_eq!(counts.len(), 21);
        assert!(most - least <= unevenness, "{counts:?}");
    }
}

/// HBBP III.A: "samples disproportionately represent instructions following long-latency instructions", and with `PREC_DIST` they do so
/// "to a lesser extent": only what retires in one cycle with the overflow is not sampled.
#[test]
fn samples_pile_up_behind_a_division() {
    let (mut code, mut trace) = chain(&[20]);
    let division = trace[7].ip;
    code.0.insert(division.0, vec![0x48, 0xf7, 0xf1]);
    trace.retain(|executed| executed.ip != Avma(division.0 + 1) && executed.ip != Avma(division.0 + 2));
    let mut shares = |events: SampledEvents| {
        let counts = histogram(of(&sample(UNBIASED, events, &mut code, &trace, 100_000), SampledBy::Instructions));
        let all = counts.values().sum::<u64>() as f64;
        [division.0, division.0 + 3].map(|at| counts.get(&Avma(at)).copied().unwrap_or(0) as f64 / all)
    };
    let length = trace.len() as f64;
    // The division itself is in nobody's shadow.
    let [itself, behind] = shares(WESTMERE);
    assert!(behind > 0.5 && itself < 0.05, "{behind} {itself}");
    let [itself, behind] = shares(IVY_BRIDGE);
    let most = model::WIDTH as f64 / length;
    assert!((1.0 / length..=most + 0.01).contains(&behind) && itself <= most + 0.01, "{behind} {itself} {most}");
}

/// A loop longer than what is underway at most, so that no two loads overlap.
#[test]
fn a_load_that_misses_casts_a_shadow_and_one_that_hits_does_not() {
    const LENGTH: u64 = 400;
    for (stride, shadow) in [(0, false), (4096, true)] {
        let (mut code, mut trace) = chain(&[LENGTH]);
        let load = trace[7].ip.0;
        code.0.insert(load, vec![0x8a, 0x07]); // mov al, [rdi]
        trace.remove(8);
        let (mut core, mut table, mut samples) = (Core::default(), CodeTable::default(), Vec::new());
        let mut thread = ThreadPmu::new(UNBIASED, WESTMERE);
        for round in 0..20_000 {
            trace[7].operand = Avma(0x1000_0000 + round * stride);
            core.retire(&mut thread, &mut table, &mut code, &trace, &mut samples);
        }
        let counts = histogram(of(&samples, SampledBy::Instructions));
        let all: u64 = counts.values().sum();
        let behind = counts.get(&Avma(load + 2)).copied().unwrap_or(0) as f64 / all as f64;
        // It gets what overflows while sampling is being armed before it.
        let expected = (model::ARMING * model::WIDTH) as f64 / LENGTH as f64;
        assert!(!shadow || (behind / expected - 1.0).abs() < 0.2, "{behind} instead of {expected}");
        assert!(shadow || behind < 0.2 * expected, "{behind}");
    }
}

/// Every stack is a piece of what really ran, newest first, whatever the bias.
#[test]
fn stacks_are_true() {
    let blocks: Vec<u64> = (0..37).map(|block| block % 5).collect();
    let (mut code, trace) = chain(&blocks);
    let taken: Vec<(Avma, Avma)> = trace.iter().filter_map(|e| Some((e.ip, e.taken?.1))).collect();
    for bias in [0.0, 0.1, 1.0] {
        for depth in [16, 32] {
            let settings = PmuSettings { depth, bias, seed: 5, ..UNBIASED };
            for events in [IVY_BRIDGE, WESTMERE] {
                for sample in sample(settings, events, &mut code, &trace, 2000) {
                    let newest = taken.iter().position(|&(from, _)| from == sample.branches[0].from).unwrap();
                    let expected = (0..depth).map(|back| taken[(newest + 10 * taken.len() - back) % taken.len()]);
                    assert!(sample.branches.iter().map(|branch| (branch.from, branch.to)).eq(expected));
                }
            }
        }
    }
}

/// HBBP III.C: a particular branch is in entry\[0\] "even up to 50% of the time".
#[test]
fn branches_that_hold_the_stack_are_oldest_too_often_and_others_are_not() {
    let (mut code, trace) = chain(&[2; 61]);
    let jumps: Vec<Avma> =
        trace.iter().filter(|executed| executed.taken.is_some()).map(|executed| executed.ip).collect();
    let seed = (1..).find(|&seed| jumps.iter().filter(|&&at| holds_the_stack(at, 0.02, seed)).count() == 1).unwrap();
    let mut share = |bias: f64, events: SampledEvents| -> BTreeMap<Avma, f64> {
        let samples = sample(PmuSettings { bias, seed, ..UNBIASED }, events, &mut code, &trace, 10_000);
        let stacks: Vec<&PmuSample> = of(&samples, SampledBy::TakenBranches).collect();
        let mut counts = BTreeMap::new();
        stacks.iter().for_each(|s| *counts.entry(s.branches[15].from).or_default() += 1.0 / stacks.len() as f64);
        counts
    };
    for events in [IVY_BRIDGE, WESTMERE] {
        let (without, with) = (share(0.0, events), share(0.02, events));
        assert!(without.values().all(|&share| share < 2.0 / 61.0), "{without:?}");
        for (&branch, &share) in &with {
            // Half of the stacks that hold it, of which there are 16 of 61; the rest are as without.
            let expected = if holds_the_stack(branch, 0.02, seed) { 0.5 * 15.0 / 61.0 } else { 0.0 };
            assert!((share - expected - 0.013).abs() < 0.013, "{branch:?}: {share}, {expected}");
        }
    }
}

/// A branch behind a long latency is taken in the wait of all that overflow while the core is being armed: the precise stack ends with it. An
/// interrupt comes later: the newest is the branch before the latency.
#[test]
fn a_long_latency_decides_which_branch_is_the_newest() {
    let (mut code, mut trace) = chain(&[2; 61]);
    let division = trace[3 * 30].ip;
    code.0.insert(division.0, vec![0x48, 0xf7, 0xf1]);
    trace.remove(3 * 30 + 1);
    let jumps: Vec<Avma> =
        trace.iter().filter(|executed| executed.taken.is_some()).map(|executed| executed.ip).collect();
    let mut newest = |events: SampledEvents| {
        let samples = sample(UNBIASED, events, &mut code, &trace, 10_000);
        let stacks: Vec<&PmuSample> = of(&samples, SampledBy::TakenBranches).collect();
        let share =
            |jump: Avma| stacks.iter().filter(|s| s.branches[0].from == jump).count() as f64 / stacks.len() as f64;
        [share(jumps[29]), share(jumps[30])]
    };
    // Ten branches overflow in the 32 slots before, of 61.
    let [before, behind] = newest(IVY_BRIDGE);
    assert!(before < 0.03 && (behind - 11.0 / 61.0).abs() < 0.03, "{before} {behind}");
    let [before, behind] = newest(WESTMERE);
    assert!(before > 0.3 && behind < 0.03, "{before} {behind}");
}

#[test]
fn what_a_branch_carries() {
    let (mut code, trace) = chain(&[3, 400]);
    let samples = sample(UNBIASED, IVY_BRIDGE, &mut code, &trace, 2000);
    let last = &samples.last().unwrap().branches;
    for branch in last {
        assert!(branch.flags.predicted() && !branch.flags.mispredicted());
        assert_eq!(branch.flags.kind().0, BranchKind::Jump as u8);
        // Four instructions in a cycle.
        let short = branch.from.0 < 0x1_0040;
        assert!(if short { branch.flags.cycles() <= 2 } else { (99..=102).contains(&branch.flags.cycles()) });
    }
}

#[test]
fn the_same_seed_gives_the_same_samples() {
    let (mut code, trace) = chain(&[2, 5, 11, 0, 3]);
    for events in [IVY_BRIDGE, WESTMERE] {
        let settings = |seed| PmuSettings { depth: 32, bias: 0.3, seed, ..UNBIASED };
        let mut with = |seed| sample(settings(seed), events, &mut code, &trace, 5000);
        assert_eq!(with(3), with(3));
        assert_ne!(with(3), with(4));
    }
}

/// A thread's own step tells where it went: whether a branch was taken follows from that.
#[test]
fn steps_are_told_from_where_they_lead() {
    let mut code = Code([(0x100, vec![0x75, 2]), (0x200, vec![0xc3])].into());
    let mut table = CodeTable::default();
    let mut taken = |ip, next| stepped(&mut table, &mut code, Avma(ip), Avma(next)).taken;
    assert_eq!(taken(0x100, 0x102), None);
    assert_eq!(taken(0x100, 0x104), Some((BranchKind::Conditional, Avma(0x104))));
    assert_eq!(taken(0x200, 0x201), Some((BranchKind::Return, Avma(0x201))));
    assert_eq!(taken(0x300, 0x301), None);
}
