//! The profile itself.

use std::collections::BTreeMap;

use crate::flow::whole;

/// Counts of the functions of one binary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleProfile {
    /// By name. Functions of the same name (copies that a compiler made) are one.
    pub functions: BTreeMap<String, FunctionSamples>,
    /// What is in it, and what is not.
    pub placement: Placement,
}

/// Counts of a function, or of what was inlined at one call.
///
/// Example: `f` starts on line 10; line 12, which ran 100 times, calls `g`, which was inlined, starts on line 3 and ran line 4:
/// ```text
/// f: body {2: 100}, inlined {(2, "g"): body {1: 100}}
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionSamples {
    /// Calls of the function itself; 0 of what was inlined.
    pub head: u64,
    /// Executions of all instructions, those of what was inlined among them, times their bytes: so do `create_llvm_prof` and
    /// `llvm-profgen`, and so compilers expect it where they ask whether a call is hot.
    pub total: u64,
    /// Executions by position. A position that the code of the function has and that did not run counts 0.
    pub body: BTreeMap<Location, BodySample>,
    /// What was inlined, by the position of the call and the name of the function.
    pub inlined: BTreeMap<(Location, String), FunctionSamples>,
}

/// A position in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Lines after the one on which the function starts; modulo 65,536, as compilers compare it: a line before it counts from there
    /// backwards.
    pub offset: u16,
    /// Which of the blocks on the line.
    pub discriminator: u32,
}

/// What is counted at a position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodySample {
    /// Executions: of the instruction at this position that ran most, or all calls from here if they are more.
    pub count: u64,
    /// Calls from here, by the name of the function that was called.
    pub targets: BTreeMap<String, u64>,
}

/// How much of what ran has a place in the profile: executions times bytes of code (of samples without branches, what they stand
/// for).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Placement {
    /// What has a place.
    pub placed: f64,
    /// Code that no debug information is about: of assembly, of objects that were compiled without.
    pub without_debug_information: f64,
    /// Instructions that the debug information says to be of no line, or to be inlined at a call of none.
    pub without_line: f64,
    /// Code of functions of which the debug information does not say on which line they start, or what they are called.
    pub without_start_line: f64,
}

impl Placement {
    /// All instructions that ran, whether they were placed or not.
    pub fn all(&self) -> f64 {
        self.placed + self.without_debug_information + self.without_line + self.without_start_line
    }
}

impl SampleProfile {
    /// Divides all counts by the same number if one of a position is above `most`. Counts stay in proportion, and what ran counts 1
    /// at least. Returns that number.
    pub fn limit(&mut self, most: u64) -> Option<f64> {
        let largest = self.functions.values().map(FunctionSamples::largest).max().filter(|&largest| largest > most)?;
        let divisor = largest as f64 / most as f64;
        self.functions.values_mut().for_each(|function| function.divide(divisor));
        Some(divisor)
    }
}

impl FunctionSamples {
    /// The largest count of a position, of calls of the function, or of calls from a position.
    fn largest(&self) -> u64 {
        let body = self.body.values().flat_map(|sample| sample.targets.values().copied().chain([sample.count]));
        let inlined = self.inlined.values().map(Self::largest);
        body.chain(inlined).chain([self.head]).max().unwrap_or(0)
    }

    fn divide(&mut self, divisor: f64) {
        let counts = self.body.values_mut().flat_map(|sample| sample.targets.values_mut().chain([&mut sample.count]));
        for count in counts.chain([&mut self.head, &mut self.total]).filter(|count| **count > 0) {
            *count = whole(*count as f64 / divisor);
        }
        self.inlined.values_mut().for_each(|function| function.divide(divisor));
    }

    /// Adds another copy of the same function.
    pub fn add(&mut self, other: FunctionSamples) {
        self.head = self.head.saturating_add(other.head);
        self.total = self.total.saturating_add(other.total);
        for (location, sample) in other.body {
            let known = self.body.entry(location).or_default();
            known.count = known.count.saturating_add(sample.count);
            for (target, count) in sample.targets {
                let known = known.targets.entry(target).or_default();
                *known = known.saturating_add(count);
            }
        }
        for (call, function) in other.inlined {
            self.inlined.entry(call).or_default().add(function);
        }
    }
}
