//! Rows of a recording by name, to be compared with those of another one.

use std::collections::BTreeMap;

use crate::address::Svma;
use crate::flow::base_name;
use crate::mix::{Dimension, Key, Query, UNREADABLE, mix};
use crate::recording::EventKind;
use crate::uncertainty::interval::NORMAL;
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
    /// A kind of instructions: instruction set extension, packing.
    Kind(String, String),
}

/// Instructions executed by row, with their replicates.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    design: Design,
    rows: BTreeMap<RowName, (f64, Sampled)>,
    all: (f64, Sampled),
    /// What could be read: kinds are shares of it.
    read: (f64, Sampled),
    counted: Option<Counted>,
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

/// A share, what it would be in the replicates, and the interval's half width by chance.
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
            for (block, sampled) in module.blocks.iter().zip(sampled) {
                let executed = (block.count.count, &sampled, block.size.instructions);
                add(&mut rows.all, executed);
                if module.is_read() {
                    add(&mut rows.read, executed);
                    add(rows.rows.entry(RowName::Block(name.clone(), block.start)).or_default(), executed);
                }
            }
        }
        let kinds = Query { rows: [Dimension::Isa, Dimension::Packing].map(Key::from).to_vec(), ..Query::default() };
        rows.add_mix(analysis, &kinds, |[isa, packing]| RowName::Kind(isa.clone(), packing.clone()));
        let functions =
            Query { rows: [Dimension::Module, Dimension::Function].map(Key::from).to_vec(), ..Query::default() };
        rows.add_mix(analysis, &functions, |[module, function]| {
            RowName::Function(base_name(module), (function != UNREADABLE).then(|| function.clone()))
        });
        rows
    }

    fn add_mix(&mut self, analysis: &Analysis, query: &Query, name: impl Fn(&[String; 2]) -> RowName) {
        // A query with two keys can be answered.
        for cell in mix(analysis, query).unwrap_or_default().cells {
            if let Ok(keys) = <[String; 2]>::try_from(cell.row) {
                add(self.rows.entry(name(&keys)).or_default(), (cell.count, &cell.sampled, 1.0));
            }
        }
    }

    /// The share of rows together. Of a block, that of the block of this recording around it, of which it has so much.
    fn share(&self, names: &[RowName]) -> Share {
        let whole = if let Some(RowName::Kind(..)) = names.first() { &self.read } else { &self.all };
        let (mut count, mut sampled, mut is_found) = (0.0, Sampled::default(), false);
        for (of_row, replicates) in names.iter().filter_map(|name| self.row(name)) {
            is_found = true;
            count += of_row;
            sampled.add(replicates, 1.0);
        }
        if !is_found {
            return Share { value: 0.0, sampled: Sampled::default(), by_chance: None };
        }
        let interval = self.design.share((count, &sampled), (whole.0, &whole.1));
        let replicates = sampled.replicates.zip(&whole.1.replicates, ratio);
        let sampled = Sampled { replicates, seen: sampled.seen };
        Share { value: ratio(count, whole.0), sampled, by_chance: interval.by_chance }
    }

    fn row(&self, name: &RowName) -> Option<&(f64, Sampled)> {
        match name {
            RowName::Block(module, _) => self
                .rows
                .range(..=name)
                .next_back()
                .filter(|(found, _)| matches!(found, RowName::Block(same, _) if same == module))
                .map(|(_, found)| found),
            _ => self.rows.get(name),
        }
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
    /// How many instructions were executed, where that is known; `sum` are those of exact counts.
    pub fn counted(&self, sum: f64) -> Option<Counted> {
        match self {
            Side::Exact => Some(Counted { instructions: sum, error: 0.0 }),
            Side::Sampled(rows) => rows.counted,
            Side::Unknown => None,
        }
    }
}

/// How much wider an interval of 95 % must be so that of so many of them together 95 % hold the truth (Šidák, of normally distributed errors).
///
/// Example: 1 for one row, 1.43 for ten, 1.77 for a hundred.
pub fn width_of_many(rows: usize) -> f64 {
    let beyond = -(0.95_f64.ln() / rows.max(1) as f64).exp_m1() / 2.0;
    (normal_beyond(beyond) / NORMAL).max(1.0)
}

/// What is exceeded by so much of a normal distribution, at most half of it: Abramowitz and Stegun, 26.2.23, within 0.00045.
fn normal_beyond(tail: f64) -> f64 {
    let t = (-2.0 * tail.max(f64::MIN_POSITIVE).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

/// Half the width of the interval of the change of a share from one side to the other, at 95 %; `None` where it is not known. Each side names
/// the row, or the rows whose sum it is, in its own way. What costs of code are wrong by, they are wrong by on both sides, so it matters only as far as its effects differ.
/// What one side never saw is as uncertain as what the other side saw of it.
pub fn change_error(sides: [&Side; 2], names: [&[RowName]; 2]) -> Option<f64> {
    let mut shares = Vec::new();
    for (side, name) in sides.into_iter().zip(names) {
        match side {
            Side::Unknown => return None,
            Side::Exact => shares.push(None),
            Side::Sampled(rows) => {
                rows.design.interval(0.0, &Sampled::default()).half_width?;
                shares.push(Some(rows.share(name)));
            }
        }
    }
    let widths: Vec<Option<f64>> = shares.iter().flatten().map(|share| share.by_chance).collect();
    let largest = widths.iter().flatten().copied().fold(0.0, f64::max);
    let by_chance: f64 = widths.iter().map(|width| width.unwrap_or(largest).powi(2)).sum();
    let moved = |share: &Option<Share>, replicate: usize| {
        share.as_ref().map_or(0.0, |share| share.sampled.replicates.with_costs()[replicate] - share.value)
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

    #[test]
    fn many_intervals_are_wider_than_one() {
        for (rows, expected) in [(0, 1.0), (1, 1.0), (10, 1.43), (100, 1.776), (10_000, 2.33)] {
            assert!((width_of_many(rows) - expected).abs() < 0.01, "{rows}: {}", width_of_many(rows));
        }
    }
}
