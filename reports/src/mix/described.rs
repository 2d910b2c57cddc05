//! The numbers of rows in documents and data frames: those that are always there, and those that are asked for.

use analyzer::Origin;
use analyzer::mix::{Cell, Mix, Query, Sum};

use super::nested::Line;
use super::numbers::{Number, part, per_call, unread};

/// What a number is of.
pub struct Numbered<'r> {
    /// A pair of row and column, a group, or others.
    pub sum: &'r Sum,
    /// What its shares are of.
    pub whole: &'r Sum,
    /// The values of its keys; `None` of others, which have neither shares of groups nor calls.
    pub values: Option<&'r [String]>,
    /// All columns of the row, of a pair of row and column.
    pub row: Option<&'r Sum>,
}

/// What the rows of a mix are to say.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// What the mix is of.
    pub query: &'a Query,
    /// The mix.
    pub mix: &'a Mix,
    /// What it was made of.
    pub origin: Origin,
    /// How many keys make the groups that shares are of.
    pub per: usize,
    /// The numbers of each row.
    pub numbers: &'a [Number],
}

/// The numbers of something.
pub struct Described {
    /// Executed instructions, in the unit of the recording.
    pub count: f64,
    /// Their share of all instructions, 0 to 1.
    pub share: f64,
    /// Half the width of the interval of the count (95 %); `None`: not known.
    pub count_error: Option<f64>,
    /// The same of the share.
    pub share_error: Option<f64>,
    /// Whether it was seen in too little of the recording for these to be trusted.
    pub rests_on_little: bool,
    /// What is asked for beside these, by name: always the same names in the same order for the same kind of thing. `None` where a number is
    /// not known.
    pub more: Vec<(String, Option<f64>)>,
}

impl Described {
    /// The names of the numbers that are always there, in their order.
    pub const NAMES: [&str; 5] = ["count", "share", "count_error", "share_error", "rests_on_little"];
}

impl<'a> Asked<'a> {
    /// Each pair of row and column that a line has, with its numbers; none of a line that is no row.
    pub fn pairs(&self, line: &Line<'_, 'a>) -> Vec<(&'a Cell, Described)> {
        let Some(row) = line.row() else { return Vec::new() };
        let described = |&cell: &&'a Cell| {
            let sum = &Sum::of([cell]);
            (cell, self.described(&Numbered { sum, whole: line.whole, values: Some(&cell.row), row: Some(&row.sum) }))
        };
        row.cells.iter().map(described).collect()
    }

    /// The numbers of something.
    pub fn described(&self, of: &Numbered<'_>) -> Described {
        let uncertainty = self.mix.uncertainty_of(of.sum);
        Described {
            count: of.sum.count,
            share: part(of.sum.count, self.mix.instructions),
            count_error: uncertainty.count.half_width,
            share_error: uncertainty.share.half_width,
            rests_on_little: uncertainty.share.rests_on_little,
            more: self.more_numbers(of),
        }
    }

    /// The names of what is asked for, of pairs of row and column.
    pub fn more_names(&self) -> Vec<String> {
        let nothing = Sum::default();
        let pair = Numbered { sum: &nothing, whole: &nothing, values: Some(&[]), row: Some(&nothing) };
        self.more_numbers(&pair).into_iter().map(|(name, _)| name).collect()
    }

    /// Whether a number is asked for.
    pub fn asks(&self, number: Number) -> bool {
        self.numbers.contains(&number)
    }

    /// Names and values. A number that is called as a key of the rows is (`flops` may be both) has `executed_` before its name.
    fn more_numbers(&self, of: &Numbered<'_>) -> Vec<(String, Option<f64>)> {
        let is_key = |name: &str| self.query.rows.iter().chain(&self.query.columns).any(|key| key.as_str() == name);
        let name_of = |name: &str| if is_key(name) { format!("executed_{name}") } else { name.to_owned() };
        self.by_name(of).into_iter().map(|(name, number)| (name_of(name), number)).collect()
    }

    fn by_name(&self, of: &Numbered<'_>) -> Vec<(&'static str, Option<f64>)> {
        let (mix, sum) = (self.mix, of.sum);
        let mut numbers = Vec::new();
        if self.per > 0 && of.values.is_some() {
            let error = mix.share_within(sum, of.whole).half_width;
            numbers.push(("share_of_group", Some(part(sum.count, of.whole.count))));
            numbers.push(("share_of_group_error", error));
        }
        let calls = |number| per_call(number, mix, self.query, of.values.unwrap_or_default(), sum);
        if self.asks(Number::PerCall) && of.values.is_some() {
            numbers.push(("per_call", calls(Number::PerCall)));
        }
        if self.asks(Number::Samples) {
            numbers.push(("samples", (self.origin == Origin::Recording).then_some(sum.samples)));
        }
        if let Some(row) = of.row.filter(|_| self.asks(Number::RowShare)) {
            numbers.push(("row_share", Some(part(sum.count, row.count))));
        }
        let of_branches = [
            (Number::Taken, "taken"),
            (Number::Mispredicted, "mispredicted"),
            (Number::MispredictRate, "mispredict_rate"),
            (Number::PerTaken, "per_taken"),
        ];
        let asked = of_branches.into_iter().filter(|(number, _)| self.asks(*number));
        numbers.extend(asked.map(|(number, name)| (name, number.of_branches(self.mix, sum))));
        self.add_operations(sum, &mut numbers);
        let of_time = [
            (Number::Time, "time_share"),
            (Number::TimeError, "time_share_error"),
            (Number::TimePerInstruction, "time_per_instruction"),
        ];
        let asked = of_time.into_iter().filter(|(number, _)| self.asks(*number));
        numbers.extend(asked.map(|(number, name)| (name, number.of_time(mix, sum, &mix.all))));
        if self.query.cycles {
            numbers.push(("timed_instructions", Some(sum.timed.instructions)));
        }
        for (number, name) in [(Number::Cycles, "cycles"), (Number::Ipc, "ipc")] {
            if self.asks(number) {
                numbers.push((name, number.of_cycles(sum)));
            }
        }
        let per_call = [
            (Number::FlopsPerCall, "flops_per_call"),
            (Number::BytesPerCall, "bytes_per_call"),
            (Number::CyclesPerCall, "cycles_per_call"),
        ];
        for (number, name) in per_call {
            if self.asks(number) && of.values.is_some() {
                numbers.push((name, calls(number)));
            }
        }
        numbers
    }

    /// Floating-point operations and bytes, with what of them is not known.
    fn add_operations(&self, sum: &Sum, numbers: &mut Vec<(&'static str, Option<f64>)>) {
        let (known, design) = (sum.operations.as_ref(), &self.mix.design);
        let has_bytes = self.asks(Number::Bytes) || self.asks(Number::BytesPerCall) || self.asks(Number::Intensity);
        let has_flops = self.asks(Number::Flops) || self.asks(Number::FlopsPerCall) || self.asks(Number::Intensity);
        if has_flops {
            numbers.push(("flops", known.map(|known| known.sum.flops)));
            numbers.push(("flops_error", known.and_then(|known| known.flops_interval(design).half_width)));
            numbers.push(("flops_masked", known.map(|known| known.sum.masked_flops)));
        }
        if has_bytes {
            numbers.push(("bytes", known.map(|known| known.sum.bytes())));
            numbers.push(("bytes_read", known.map(|known| known.sum.bytes_read)));
            numbers.push(("bytes_written", known.map(|known| known.sum.bytes_written)));
            numbers.push(("bytes_error", known.and_then(|known| known.bytes_interval(design).half_width)));
            numbers.push(("bytes_masked", known.map(|known| known.sum.masked_bytes)));
            numbers.push(("bytes_unknown", known.map(|known| known.sum.unknown_bytes)));
        }
        if self.asks(Number::Intensity) {
            let intensity = known.filter(|known| known.sum.intensity().is_some());
            numbers.push(("intensity", intensity.and_then(|known| known.sum.intensity())));
            numbers.push(("intensity_error", intensity.and_then(|known| known.intensity_interval(design).half_width)));
        }
        if has_flops || has_bytes {
            let unread = known.map_or(sum.count, |known| unread(sum.count, &known.sum));
            numbers.push(("unread_instructions", Some(unread)));
        }
    }
}
