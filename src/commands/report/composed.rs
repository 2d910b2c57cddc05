//! What the mix of a page is added up from: attributes, functions, and blocks with their kinds of instructions.

use std::collections::{BTreeMap, HashMap, HashSet};

use analyzer::address::Svma;
use analyzer::annotate::{Ranked, TimeShare, Times};
use analyzer::mix::{
    Attribute, Composition, Dimension, InnermostLoops, Key, NO_SOURCE, Places, TaskBlock, Tasks, Taxonomies, UNREADABLE,
};
use analyzer::uncertainty::SampledBlocks;
use analyzer::{Analysis, GroupCount};
use reports::lacks::without_lines;
use serde::Serialize;

use super::address::Address;
use super::key::{KeyData, of_attribute, of_block};
use super::short::Short;
use crate::output::count;
use crate::usage::CommandLine;

/// Lines of the source, and places where one begins (or counts of blocks by thread), that a page has at most: more would make it large.
const MOST_LINES: usize = 30_000;
pub const MOST_RUNS: usize = 200_000;
/// Loops that it has at most as values of a key.
const MOST_LOOPS: usize = 30_000;
/// Facts that the page adds up: each kind of instructions in each place of a block, for each task. A browser keeps them all.
const MOST_FACTS: usize = 2_000_000;

/// The keys of tasks.
pub const TASKS: &str = "process, thread, comm, phase and cgroup";
/// Keys of tasks whose values have the numbers that the system gave out.
const NUMBERED: [Dimension; 2] = [Dimension::Process, Dimension::Thread];

/// All functions with counts, by column: those that were read, hottest first, then for each module what was not.
#[derive(Default, Serialize)]
pub struct Functions {
    name: Vec<String>,
    module: Vec<usize>,
    /// Address of the symbol; null where the code was not read.
    start: Vec<Option<Address>>,
    executed: Vec<Short>,
    share_error: Vec<Option<Short>>,
    rest_on_little: Vec<usize>,
    /// Share of the time, and half of its interval. Nothing where the recording does not tell time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    time: Vec<Short>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    time_error: Vec<Short>,
    /// How many times as long an instruction of it took as one of all code does; null where either share may be none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    time_per_instruction: Vec<Option<Short>>,
}

/// All blocks that were counted, by column.
#[derive(Default, Serialize)]
pub struct Blocks {
    function: Vec<usize>,
    start: Vec<Address>,
    /// Executions; of code that was not read, executed instructions.
    count: Vec<Short>,
    chosen: Vec<&'static str>,
    /// The kind of each instruction, in order.
    kinds: Vec<Vec<u32>>,
    /// Where places of the source begin: the index of an instruction, and the place. Nothing where they are no keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<Vec<(u32, u32)>>,
    /// The tasks that executed it, and which part of its executions each. Nothing where they are no keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<Vec<(u32, Short)>>,
    /// Share of the time. Nothing where the recording does not tell time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    time: Vec<Short>,
    /// The part of its time that each of its `tasks` took; nothing of a block without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    task_times: Vec<Vec<Short>>,
    /// Samples of time, of which all these are parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_samples: Option<u64>,
}

/// The periods of samples of time, by block and task.
pub type TaskTimes = HashMap<TaskBlock, BTreeMap<u32, f64>>;

/// Those of an analysis that tells tasks apart.
pub fn task_times(analysis: &Analysis) -> TaskTimes {
    let mut times = TaskTimes::new();
    for module in analysis.counted.iter().filter(|_| analysis.tells_time()) {
        let counts = module.group_counts(&analysis.scale).filter(|of| of.ebs.1 > 0);
        for GroupCount { group, block, ebs: (_, periods), .. } in counts {
            let of_block = times.entry((module.counts.module, module.is_read(), block.start)).or_default();
            *of_block.entry(group.0).or_default() += periods as f64;
        }
    }
    times
}

/// Why executions of blocks by task are not in the page.
pub fn too_many_runs(runs: usize) -> String {
    format!("{} counts of blocks by thread would make the page too large", count(runs as f64))
}

/// All of it.
pub struct Composed {
    /// The attributes that are among the keys.
    pub attributes: Vec<Attribute>,
    pub keys: Vec<KeyData>,
    pub functions: Functions,
    pub blocks: Blocks,
    /// The index of each function that was read, by module of the analysis and symbol.
    pub by_symbol: HashMap<(usize, Svma), usize>,
    /// The index of each block, by module of the analysis and start.
    pub by_start: HashMap<(usize, Svma), usize>,
    /// Keys that are not there, and why, in sentences.
    pub without: Vec<String>,
    /// What was said when it was made.
    pub said: Vec<String>,
}

impl Composed {
    /// Of the functions of an analysis.
    pub fn of(analysis: &Analysis, ranked: &[Ranked], taxonomies: &Taxonomies) -> Self {
        let taxonomies = taxonomies.iter().cloned().map(Key::Taxonomy);
        let attributes = Dimension::ALL.iter().copied().map(Key::Dimension).chain(taxonomies);
        let mut composition = Composition::of(analysis, attributes);
        let of_blocks = [Dimension::Function, Dimension::Module, Dimension::BlockLength, Dimension::Chosen];
        let mut composed = Composed {
            attributes: Vec::new(),
            keys: of_blocks.into_iter().map(of_block).chain(composition.attributes.iter().map(of_attribute)).collect(),
            functions: Functions::default(),
            blocks: Blocks::default(),
            by_symbol: HashMap::new(),
            by_start: HashMap::new(),
            without: Vec::new(),
            said: Vec::new(),
        };
        composed.attributes = std::mem::take(&mut composition.attributes);
        for of in ranked {
            let index = composed.functions.add(of.name.clone(), of.module, Some(of.symbol), of.executed);
            composed.functions.share_error.push(of.share_interval.half_width.map(Short));
            composed.functions.rest_on_little.extend(of.share_interval.rests_on_little.then_some(index));
            if let Some(time) = of.time {
                composed.functions.add_time(time, time.per_instruction(of.share, of.share_interval));
            }
            composed.by_symbol.insert((of.module, of.symbol), index);
        }
        let times = Times::of(analysis);
        for (module, kinds) in composition.blocks.iter_mut().enumerate() {
            composed.add_blocks(analysis, module, kinds, times.as_ref());
        }
        composed.add_uncertainty_of_unread(analysis);
        if analysis.tells_time() {
            composed.add_times(analysis);
        }
        composed
    }

    /// Adds how uncertain the share of what has no name is, of each module that was not read.
    fn add_uncertainty_of_unread(&mut self, analysis: &Analysis) {
        let unread: Vec<usize> =
            (0..self.functions.module.len()).filter(|of| self.functions.start[*of].is_none()).collect();
        if unread.is_empty() {
            return;
        }
        let sampled = SampledBlocks::of(analysis);
        for function in unread {
            let share = sampled.share_without_name(self.functions.module[function]);
            self.functions.share_error[function] = share.half_width.map(Short);
            self.functions.rest_on_little.extend(share.rests_on_little.then_some(function));
        }
    }

    /// Adds which part of the time each block took.
    fn add_times(&mut self, analysis: &Analysis) {
        let (mut times, mut all) = (vec![0.0; self.blocks.start.len()], (0, 0.0));
        for (index, module) in analysis.counted.iter().enumerate() {
            for GroupCount { block, ebs: (samples, periods), .. } in module.group_counts(&analysis.scale) {
                all.0 += samples;
                all.1 += periods as f64;
                if let Some(&at) = self.by_start.get(&(index, block.start)) {
                    times[at] += periods as f64;
                }
            }
        }
        if all.1 > 0.0 {
            self.blocks.time = times.into_iter().map(|time| Short(time / all.1)).collect();
            self.blocks.time_samples = Some(all.0);
        }
    }

    /// Adds keys of the source, if they are not too many.
    pub fn add_places(&mut self, analysis: &Analysis, places: &Places) {
        let runs: usize = places.blocks.iter().flatten().map(Vec::len).sum();
        let values = places.attributes.first().map_or(0, |lines| lines.values.len());
        let is_known = |text: &str| text != NO_SOURCE && text != UNREADABLE;
        if !places.attributes.iter().any(|of| of.values.iter().any(|value| is_known(&value.text))) {
            self.without.push(format!("file and line are no keys: {}", without_lines(&CommandLine)));
        } else if values > MOST_LINES {
            let many = count(values as f64);
            self.without.push(format!("file and line are no keys: {many} lines would make the page too large"));
        } else if runs > MOST_RUNS {
            let many = count(runs as f64);
            self.without.push(format!(
                "file and line are no keys: {many} places in blocks where a line begins would make the page too large"
            ));
        } else {
            self.blocks.places = vec![Vec::new(); self.blocks.start.len()];
            for ((index, module), blocks) in analysis.counted.iter().enumerate().zip(&places.blocks) {
                for (block, begun) in module.blocks.iter().zip(blocks) {
                    if let Some(&at) = self.by_start.get(&(index, block.start)) {
                        self.blocks.places[at].clone_from(begun);
                    }
                }
            }
            self.keys.extend(places.attributes.iter().map(|attribute| {
                let mut key = of_attribute(attribute);
                key.of_places = std::mem::take(&mut key.of_kinds);
                key
            }));
        }
    }

    /// Adds the key of loops, if they are not too many.
    pub fn add_loops(&mut self, analysis: &Analysis, loops: &InnermostLoops) {
        let number = loops.attribute.values.len();
        if number > MOST_LOOPS {
            let many = count(number as f64);
            self.without.push(format!("loop is no key: {many} loops would make the page too large"));
            return;
        }
        let mut key = of_attribute(&loops.attribute);
        let values = std::mem::take(&mut key.of_kinds);
        key.of_blocks = vec![0; self.blocks.start.len()];
        for ((index, module), innermost) in analysis.counted.iter().enumerate().zip(&loops.blocks) {
            for (block, innermost) in module.blocks.iter().zip(innermost) {
                let value = innermost.and_then(|innermost| values.get(innermost as usize));
                if let (Some(&at), Some(value)) = (self.by_start.get(&(index, block.start)), value) {
                    key.of_blocks[at] = *value;
                }
            }
        }
        self.keys.push(key);
    }

    /// Adds keys of tasks, if they are not too many; of a recording that is compared, those alone whose values another one can have.
    pub fn add_tasks(&mut self, analysis: &Analysis, (tasks, times): &(Tasks, TaskTimes), is_compared: bool) {
        if tasks.executions.len() > MOST_RUNS {
            self.without.push(format!("{TASKS} are no keys: {}", too_many_runs(tasks.executions.len())));
            return;
        }
        let mut of_blocks = vec![Vec::new(); self.blocks.start.len()];
        let mut task_times = vec![Vec::new(); if self.blocks.time.is_empty() { 0 } else { of_blocks.len() }];
        let by_block = tasks.executions.chunk_by(|one, other| one.0 == other.0);
        let by_block: HashMap<TaskBlock, &[(TaskBlock, u32, f64)]> =
            by_block.filter_map(|executions| Some((executions.first()?.0, executions))).collect();
        for (index, module) in analysis.counted.iter().enumerate() {
            for block in &module.blocks {
                let place = (module.counts.module, module.is_read(), block.start);
                let (Some(&at), Some(executions)) = (self.by_start.get(&(index, block.start)), by_block.get(&place))
                else {
                    continue;
                };
                let sum: f64 = executions.iter().map(|(.., count)| count).sum();
                let mut parts: Vec<(u32, Short)> =
                    executions.iter().map(|(_, task, count)| (*task, Short(count / sum))).collect();
                if let (Some(times), Some(of_block)) = (times.get(&place), task_times.get_mut(at)) {
                    // Of some tasks, samples were seen and no executions.
                    let is_new = |task: &&u32| executions.iter().all(|(_, executes, _)| executes != *task);
                    parts.extend(times.keys().filter(is_new).map(|task| (*task, Short(0.0))));
                    let all: f64 = times.values().sum();
                    let time = |(task, _): &(u32, Short)| Short(times.get(task).map_or(0.0, |time| time / all));
                    *of_block = parts.iter().map(time).collect();
                }
                of_blocks[at] = parts;
            }
        }
        let facts = self.facts(&of_blocks);
        if facts > MOST_FACTS {
            let many = count(facts as f64);
            self.without.push(format!(
                "{TASKS} are no keys: {many} counts of kinds of instructions by block and thread would make the page too large"
            ));
            return;
        }
        self.blocks.tasks = of_blocks;
        self.blocks.task_times = task_times;
        let is_number = |key: &Key| NUMBERED.iter().any(|dimension| *key == Key::Dimension(*dimension));
        let mut attributes: Vec<&Attribute> = tasks.attributes.iter().collect();
        if is_compared {
            attributes.retain(|attribute| !is_number(&attribute.key));
            self.without.push(
                "process and thread are no keys of two recordings, because their numbers are new ones in each: comm has their names".to_owned(),
            );
        }
        if !tasks.attributes.iter().any(|attribute| attribute.key == Dimension::Cgroup) {
            self.without.push("cgroup is no key: the recording does not tell control groups".to_owned());
        }
        self.keys.extend(attributes.into_iter().map(|attribute| {
            let mut key = of_attribute(attribute);
            key.of_tasks = std::mem::take(&mut key.of_kinds);
            key
        }));
    }

    /// How many facts the page makes of all blocks, with these tasks.
    fn facts(&self, tasks: &[Vec<(u32, Short)>]) -> usize {
        let of_block = |(at, kinds): (usize, &Vec<u32>)| {
            let begun = self.blocks.places.get(at).map(Vec::as_slice).unwrap_or_default();
            let place = |instruction: usize| begun.partition_point(|(first, _)| *first as usize <= instruction);
            let place = |instruction| place(instruction).checked_sub(1).map_or(0, |run| begun[run].1);
            let different: HashSet<(u32, u32)> =
                kinds.iter().enumerate().map(|(at, kind)| (*kind, place(at))).collect();
            different.len().saturating_mul(tasks[at].len())
        };
        self.blocks.kinds.iter().enumerate().map(of_block).fold(0, usize::saturating_add)
    }

    fn add_blocks(&mut self, analysis: &Analysis, index: usize, kinds: &mut [Vec<u32>], times: Option<&Times>) {
        let Some(module) = analysis.counted.get(index) else { return };
        let unnamed = module.blocks.iter().filter(|block| module.function_symbol(block.index).is_none());
        let unnamed: f64 = unnamed.map(|block| block.count.count * block.size.instructions).sum();
        let unread = (!module.is_read() && unnamed > 0.0).then(|| {
            let function = self.functions.add(UNREADABLE.to_owned(), index, None, unnamed);
            self.functions.share_error.push(None);
            if let Some(times) = times {
                self.functions.add_time(times.of_function(index, None), None);
            }
            function
        });
        for (block, kinds) in module.blocks.iter().zip(kinds).filter(|(_, kinds)| !kinds.is_empty()) {
            let symbol = module.function_symbol(block.index);
            let function = symbol.and_then(|symbol| self.by_symbol.get(&(index, symbol)).copied());
            let Some(function) = function.or(unread) else { continue };
            let times = if module.is_read() { 1.0 } else { block.size.instructions };
            self.by_start.insert((index, block.start), self.blocks.start.len());
            self.blocks.function.push(function);
            self.blocks.start.push(Address(block.start));
            self.blocks.count.push(Short(block.count.count * times));
            self.blocks.chosen.push(block.count.chosen.as_str());
            self.blocks.kinds.push(std::mem::take(kinds));
        }
    }
}

impl Functions {
    /// The path of the module of each, and its name. `paths` are those of the modules.
    pub fn names<'a>(&'a self, paths: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        let path = |module: &usize| paths.get(*module).copied().unwrap_or_default();
        self.module.iter().map(path).zip(self.name.iter().map(String::as_str))
    }

    /// The index of the new one.
    fn add(&mut self, name: String, module: usize, start: Option<Svma>, executed: f64) -> usize {
        self.name.push(name);
        self.module.push(module);
        self.start.push(start.map(Address));
        self.executed.push(Short(executed));
        self.name.len() - 1
    }

    fn add_time(&mut self, time: TimeShare, per_instruction: Option<f64>) {
        self.time.push(Short(time.share));
        self.time_error.push(Short(time.error));
        self.time_per_instruction.push(per_instruction.map(Short));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_kinds_in_places_for_each_task() {
        let blocks = Blocks {
            kinds: vec![vec![0, 0, 1, 0], vec![2]],
            places: vec![vec![(0, 5), (3, 6)], vec![(0, 5)]],
            ..Blocks::default()
        };
        let composed = Composed {
            attributes: Vec::new(),
            keys: Vec::new(),
            functions: Functions::default(),
            blocks,
            by_symbol: HashMap::new(),
            by_start: HashMap::new(),
            without: Vec::new(),
            said: Vec::new(),
        };
        // Of the first block: 0 and 1 in 5, 0 in 6, by two tasks; of the second 2 in 5.
        let part = |task| (task, Short(0.5));
        assert_eq!(composed.facts(&[vec![part(0), part(1)], vec![part(1)]]), 7);
    }
}
