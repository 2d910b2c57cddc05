//! Rows of a recording by name, to be compared with those of another one.

use std::collections::{BTreeMap, HashMap};

use crate::address::Svma;
use crate::mix::{Attribute, AttributeValue, Dimension, Key, Mix, Query, mix};
use crate::recording::EventKind;
use crate::recording::base_name;
use crate::uncertainty::interval::{NORMAL, student_beyond};
use crate::uncertainty::sampled::ratio;
use crate::uncertainty::{COSTS, Design, Sampled};
use crate::{Analysis, CountedModule};

/// What a row is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowName {
    /// A function: base name of its file, its name. `None` where the code was not read.
    Function(String, Option<String>),
    /// A block: base name of its file, the address of an instruction in it.
    Block(String, Svma),
    /// So many instructions of a block.
    PartOfBlock(String, Svma, u32),
    /// A kind of instructions: instruction set extension, packing.
    Kind(String, String),
    /// A row of a mix: the values of its keys.
    Values(Vec<String>),
    /// A value of an attribute of instructions: the key, and the value.
    Value(String, String),
}

/// Instructions executed by row, with their replicates.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    design: Design,
    rows: BTreeMap<RowName, (f64, Sampled)>,
    /// By base name of the file and address of the first instruction.
    blocks: BTreeMap<(String, Svma), BlockRow>,
    all: (f64, Sampled),
    /// What could be read: kinds are shares of it.
    read: (f64, Sampled),
    counted: Option<Counted>,
}

#[derive(Clone, Debug, Default)]
struct BlockRow {
    /// After the last instruction.
    end: Svma,
    executed: (f64, Sampled),
    /// Of one execution.
    instructions: f64,
}

/// How many instructions of user code a recording executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// The number.
    pub instructions: f64,
    /// Half the width of its interval.
    pub error: f64,
}

impl Counted {
    /// What an event counted that counts instructions: the sum of the periods of its samples in user code, as uncertain as if the samples came
    /// at random. `None` without such an event, and where samples were lost.
    fn of(analysis: &Analysis) -> Option<Self> {
        analysis.sources.ebs.as_ref().filter(|ebs| ebs.kind == EventKind::Instructions && ebs.covers_user)?;
        let records = &analysis.summary.records;
        if records.lost_in_all() > 0 || records.throttled > 0 {
            return None;
        }
        let is_user = |module: &&CountedModule| !analysis.modules.get(module.counts.module).kind.is_kernel();
        let sums = analysis.counted.iter().filter(is_user).flat_map(|module| &module.counts.sums);
        let (samples, periods) = sums.fold((0, 0), |(samples, periods), (_, _, sums)| {
            (samples + sums.ebs_samples, sums.ebs_periods.saturating_add(periods))
        });
        let instructions = periods as f64;
        (samples > 0).then(|| Counted { instructions, error: NORMAL * instructions / (samples as f64).sqrt() })
    }
}

/// A share, what it would be in the replicates, and the interval's half width by chance: `None` of what was never seen.
struct Share {
    value: f64,
    sampled: Sampled,
    by_chance: Option<f64>,
}

impl Rows {
    /// Of an analysis.
    pub fn of(analysis: &Analysis) -> Self {
        let mut rows = Rows { design: analysis.design, counted: Counted::of(analysis), ..Rows::default() };
        for (module, sampled) in analysis.counted.iter().map(|module| (module, module.sampled_blocks())) {
            let name = base_name(&analysis.modules.get(module.counts.module).path);
            let mut functions: HashMap<u32, RowName> = HashMap::new();
            for (block, sampled) in module.blocks.iter().zip(&*sampled) {
                let executed = (block.count.count, sampled, block.size.instructions);
                add(&mut rows.all, executed);
                // As comparisons have it, which are of code.
                let of_function = functions.entry(module.function_id(block.index)).or_insert_with(|| {
                    let function = module.is_read().then(|| module.function_name(block.index)).flatten();
                    RowName::Function(name.clone(), function)
                });
                add(rows.rows.entry(of_function.clone()).or_default(), executed);
                if module.is_read() {
                    add(&mut rows.read, executed);
                    let row = rows.blocks.entry((name.clone(), block.start)).or_default();
                    add(&mut row.executed, executed);
                    // Of files of one name, the longer block.
                    row.instructions = row.instructions.max(block.size.instructions);
                    row.end = row.end.max(block.end);
                }
            }
        }
        let kinds = Query { rows: [Dimension::Isa, Dimension::Packing].map(Key::from).to_vec(), ..Query::default() };
        rows.add_mix(analysis, &kinds, |[isa, packing]| RowName::Kind(isa.clone(), packing.clone()));
        rows
    }

    /// Of a mix: a row for each of its rows, of which shares are those of all that passes its filters.
    pub fn of_mix(mix: &Mix) -> Self {
        let all = (mix.all.count, mix.all.sampled.clone());
        let mut rows = Rows { design: mix.design, read: all.clone(), all, ..Rows::default() };
        for cell in &mix.cells {
            add(rows.rows.entry(RowName::Values(cell.row.clone())).or_default(), (cell.count, &cell.sampled, 1.0));
        }
        rows
    }

    /// Adds the values of attributes of the same analysis.
    pub fn add_values(&mut self, attributes: &[Attribute]) {
        for Attribute { key, values, .. } in attributes {
            for AttributeValue { text, count, sampled, .. } in values {
                let name = RowName::Value(key.as_str().to_owned(), text.clone());
                add(self.rows.entry(name).or_default(), (*count, sampled, 1.0));
            }
        }
    }

    fn add_mix(&mut self, analysis: &Analysis, query: &Query, name: impl Fn(&[String; 2]) -> RowName) {
        // A query with two keys can be answered.
        for cell in mix(analysis, query).unwrap_or_default().cells {
            if let Ok(keys) = <[String; 2]>::try_from(cell.row) {
                add(self.rows.entry(name(&keys)).or_default(), (cell.count, &cell.sampled, 1.0));
            }
        }
    }

    /// The share of rows together. Of a block, that of the block of this recording around it.
    fn share(&self, names: &[RowName]) -> Share {
        let whole = if let Some(RowName::Kind(..)) = names.first() { &self.read } else { &self.all };
        let (mut count, mut sampled) = (0.0, Sampled::default());
        for ((of_row, replicates), part) in names.iter().filter_map(|name| self.row(name)) {
            count += part * of_row;
            sampled.add(replicates, part);
        }
        if count <= 0.0 {
            return Share { value: 0.0, sampled: Sampled::default(), by_chance: None };
        }
        let interval = self.design.share((count, &sampled), (whole.0, &whole.1));
        let replicates = sampled.replicates.zip(&whole.1.replicates, ratio);
        let sampled = Sampled { replicates, seen: sampled.seen };
        Share { value: ratio(count, whole.0), sampled, by_chance: interval.by_chance }
    }

    /// A row, and which part of it the name is of.
    fn row(&self, name: &RowName) -> Option<(&(f64, Sampled), f64)> {
        match name {
            RowName::Block(module, at) => self.block(module, *at).map(|block| (&block.executed, 1.0)),
            RowName::PartOfBlock(module, at, instructions) => {
                let block = self.block(module, *at)?;
                Some((&block.executed, ratio(f64::from(*instructions), block.instructions)))
            }
            _ => self.rows.get(name).map(|row| (row, 1.0)),
        }
    }

    /// The block around an address.
    fn block(&self, module: &str, at: Svma) -> Option<&BlockRow> {
        let (found, block) = self.blocks.range(..=(module.to_owned(), at)).next_back()?;
        (found.0 == module && at < block.end).then_some(block)
    }
}

/// What is known of the uncertainty of one side of a comparison.
#[derive(Clone, Debug)]
pub enum Side {
    /// Its counts are exact.
    Exact,
    /// It is of a recording.
    Sampled(Box<Rows>),
    /// It does not say.
    Unknown,
}

impl Side {
    /// The slices that its intervals rest on, where it has intervals.
    fn slices(&self) -> Option<usize> {
        if let Side::Sampled(rows) = self { Some(rows.design.slices.len()) } else { None }
    }

    /// How many instructions were executed, where that is known; `sum` are those of exact counts.
    pub fn counted(&self, sum: f64) -> Option<Counted> {
        match self {
            Side::Exact => Some(Counted { instructions: sum, error: 0.0 }),
            Side::Sampled(rows) => rows.counted,
            Side::Unknown => None,
        }
    }
}

/// How much wider the interval of a change must be so that of so many of them together at least 95 % hold the truth (Šidák). Each is Student's t
/// of as many slices as the side with fewer of them has, so fewer slices need more; 1 where no side is a recording.
///
/// Example of 20 slices: 1 for one row, 1.51 for ten, 2.0 for a hundred. Of 5 slices: 1, 2.0, 3.7.
pub fn width_of_many(rows: usize, sides: [&Side; 2]) -> f64 {
    sides.into_iter().filter_map(Side::slices).min().map_or(1.0, |slices| widening(rows, slices))
}

/// The same for so many slices; 1 for fewer than two, which have no interval.
fn widening(rows: usize, slices: usize) -> f64 {
    let Some(degrees) = slices.checked_sub(1).filter(|degrees| *degrees > 0) else { return 1.0 };
    let beyond = -(0.95_f64.ln() / rows.max(1) as f64).exp_m1();
    (student_beyond(beyond, degrees) / student_beyond(0.05, degrees)).max(1.0)
}

/// Half the width of the interval of the change of a share from one side to the other, at 95 %; `None` where it is not known. Each side names
/// the row, or the rows whose sum it is, in its own way. What costs of code are wrong by, they are wrong by on both sides, so it matters only as far as its effects differ.
/// What a recording never saw is as uncertain as what the other side saw of it, and at least as what so many bursts, or samples, can miss.
pub fn change_error(sides: [&Side; 2], names: [&[RowName]; 2]) -> Option<f64> {
    let mut shares = Vec::new();
    for (side, name) in sides.into_iter().zip(names) {
        match side {
            Side::Unknown => return None,
            Side::Exact => shares.push(None),
            Side::Sampled(rows) => {
                rows.design.interval(0.0, &Sampled::default()).half_width?;
                shares.push(Some((rows.share(name), rows.design.unseen())));
            }
        }
    }
    let widths = || shares.iter().flatten().map(|(share, unseen)| (share.by_chance, *unseen));
    let largest = widths().filter_map(|(width, _)| width).fold(0.0, f64::max);
    let by_chance: f64 = widths().map(|(width, unseen)| width.unwrap_or(largest.max(unseen)).powi(2)).sum();
    let moved = |share: &Option<(Share, f64)>, replicate: usize| {
        share.as_ref().map_or(0.0, |(share, _)| share.sampled.replicates.with_costs()[replicate] - share.value)
    };
    let by_costs =
        (0..COSTS).map(|at| (moved(&shares[1], at) - moved(&shares[0], at)).powi(2)).sum::<f64>() / COSTS as f64;
    Some((by_chance + NORMAL * NORMAL * by_costs).sqrt())
}

fn add(sum: &mut (f64, Sampled), (count, sampled, times): (f64, &Sampled, f64)) {
    sum.0 += times * count;
    sum.1.add(sampled, times);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uncertainty::slices::mixed;
    use crate::uncertainty::{Replicates, Slice, SliceSet};

    #[test]
    fn many_intervals_are_wider_than_one() {
        for (rows, slices, expected) in [
            (0, 20, 1.0),
            (1, 20, 1.0),
            (10, 20, 1.511),
            (100, 20, 1.995),
            (1, 5, 1.0),
            (10, 5, 2.003),
            (100, 5, 3.688),
            (9, 1, 1.0),
            (9, 0, 1.0),
        ] {
            let width = widening(rows, slices);
            assert!((width - expected).abs() < 0.01, "{rows} rows, {slices} slices: {width}");
        }
        assert_eq!(width_of_many(100, [&Side::Exact, &Side::Unknown]), 1.0);
    }

    const ROWS: usize = 400;

    fn row(number: usize) -> RowName {
        RowName::Kind(number.to_string(), String::new())
    }

    /// Numbers of a normal distribution (Box and Muller).
    fn normal(state: &mut u64) -> f64 {
        let mut uniform = || {
            *state += 1;
            (mixed(*state) >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (radius, angle) = ((-2.0 * (1.0 - uniform()).ln()).sqrt(), std::f64::consts::TAU * uniform());
        radius * angle.cos()
    }

    fn design(slices: usize, observations: u64) -> Design {
        let mut seen = SliceSet::default();
        Slice::all().take(slices).for_each(|slice| seen.insert(slice));
        Design { slices: seen, observations, ..Design::default() }
    }

    /// A recording of so many slices, in which all rows have one share: what each slice has of it differs by chance.
    fn recorded(slices: usize, state: &mut u64) -> Side {
        let design = design(slices, u64::MAX);
        let share = 1.0 / ROWS as f64;
        let rows = (0..ROWS).map(|number| {
            let parts: Vec<f64> = (0..slices).map(|_| share * (1.0 + 0.01 * normal(state))).collect();
            let sum: f64 = parts.iter().sum();
            let mut replicates = Replicates::of(sum / slices as f64);
            for (slice, part) in Slice::all().zip(&parts) {
                *replicates.without_mut(slice) = (sum - part) / (slices - 1) as f64;
            }
            replicates.with_costs_mut().fill(sum / slices as f64);
            (row(number), (sum / slices as f64, Sampled { replicates, seen: design.slices }))
        });
        let all = (1.0, Sampled { replicates: Replicates::of(1.0), seen: design.slices });
        Side::Sampled(Box::new(Rows {
            design,
            rows: rows.collect(),
            all: all.clone(),
            read: all,
            counted: None,
            blocks: BTreeMap::new(),
        }))
    }

    /// In how many of 300 comparisons of the same a row of 400 is a finding.
    fn findings(slices: usize, is_exact: bool) -> usize {
        let share = |side: &Side, name: &RowName| match side {
            Side::Sampled(rows) => rows.rows[name].0,
            _ => 1.0 / ROWS as f64,
        };
        let mut state = 0x9e37_79b9;
        let is_finding = |state: &mut u64| {
            let before = recorded(slices, state);
            let after = if is_exact { Side::Exact } else { recorded(slices, state) };
            let sides = [&before, &after];
            let wider = width_of_many(ROWS, sides);
            (0..ROWS).map(row).any(|name| {
                let error = change_error(sides, [std::slice::from_ref(&name); 2]).unwrap();
                (share(&before, &name) - share(&after, &name)).abs() > error * wider
            })
        };
        (0..300).filter(|_| is_finding(&mut state)).count()
    }

    /// 5 % of 300 are 15, with a standard deviation of 3.8.
    #[test]
    fn at_most_one_of_twenty_comparisons_of_the_same_has_a_finding() {
        for slices in [5, 20] {
            let (exact, both) = (findings(slices, true), findings(slices, false));
            println!("{slices} slices: {exact} of 300 against exact counts, {both} of two recordings");
            assert!((4..=26).contains(&exact), "{slices} slices: {exact}");
            assert!(both <= 26, "{slices} slices: {both}");
        }
    }

    #[test]
    fn what_a_recording_never_saw_is_uncertain_beside_exact_counts() {
        let seen = |observations| {
            let whole = (1.0, Sampled { replicates: Replicates::of(1.0), seen: design(20, 0).slices });
            let rows = [(row(1), (0.0, Sampled::default()))].into();
            let design = design(20, observations);
            Side::Sampled(Box::new(Rows {
                design,
                rows,
                all: whole.clone(),
                read: whole,
                counted: None,
                blocks: BTreeMap::new(),
            }))
        };
        let error = |sides: [&Side; 2], number| change_error(sides, [&[row(number)]; 2]).unwrap();
        let (few, many) = (seen(100), seen(10_000));
        // Not there at all, and there with nothing.
        for number in [0, 1] {
            assert!((error([&few, &Side::Exact], number) - 0.0356).abs() < 1e-4);
            assert!((error([&Side::Exact, &many], number) - 0.000_369).abs() < 1e-6);
            assert!((error([&few, &many], number) - 0.0356).abs() < 1e-4);
        }
        assert_eq!(error([&Side::Exact, &Side::Exact], 0), 0.0);
        assert_eq!(change_error([&Side::Unknown, &few], [&[row(0)]; 2]), None);
    }
}
