//! Calling contexts for flame graphs and other viewers: one file per format.
//!
//! Every stack begins with [`UNKNOWN_CALLERS`]: branch records reach only so far back, and what called the outermost known function is not
//! in them. Weights are executed instructions, or of LBR call stacks the periods of their samples, in whole numbers, 1 at least.

mod firefox;
mod flamegraph;
mod folded;
mod speedscope;

use std::borrow::Cow;

use analyzer::calls::Calls;
use analyzer::flow::whole;
use analyzer::recording::{Module, ModuleTable};

use crate::output::{cut_inside, printable};
pub use firefox::firefox;
pub use flamegraph::flamegraph;
pub use folded::folded;
pub use speedscope::speedscope;

/// The frame of all callers that no branch record shows.
pub const UNKNOWN_CALLERS: &str = "[unknown callers]";

/// Columns of a name.
const LONGEST_NAME: usize = 256;

/// The contexts of a recording, with the modules of their functions.
pub struct Contexts<'a> {
    /// The contexts.
    pub calls: &'a Calls,
    /// What the modules of [`Calls::functions`] are.
    pub modules: &'a ModuleTable,
    /// What they are of, for titles: the name of a file.
    pub title: String,
}

impl Contexts<'_> {
    /// The functions of each context but [`UNKNOWN_CALLERS`], outermost first, and how many instructions the last of them executed.
    fn stacks(&self) -> impl Iterator<Item = (&[usize], u64)> {
        self.calls.contexts().map(|context| (context.frames, whole(context.instructions)))
    }

    /// The name of a function, cut inside where it is very long: it is written for each context. Control characters are escaped.
    fn name(&self, function: usize) -> Cow<'_, str> {
        let Some(function) = self.calls.functions.get(function) else { return "".into() };
        let name = printable(&function.name);
        if name.len() <= LONGEST_NAME {
            return name;
        }
        let mut name = name.into_owned();
        cut_inside(&mut name, LONGEST_NAME);
        name.into()
    }

    fn module(&self, function: usize) -> Option<&Module> {
        self.calls.functions.get(function).map(|function| self.modules.get(function.module))
    }

    /// What is counted, in words.
    fn counted(&self) -> &str {
        self.calls.events.as_deref().unwrap_or("instructions")
    }

    /// What is counted, and whether absolutely.
    fn unit(&self) -> &str {
        if let Some(events) = &self.calls.events {
            return events;
        }
        if self.calls.executions { "instructions" } else { "instructions (relative)" }
    }
}
