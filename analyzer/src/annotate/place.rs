//! Where branches go.

use crate::Analysis;
use crate::address::Svma;
use crate::code::demangle;
use crate::counting::{AnalysedModule, Code};
use crate::flow::{Flow, ModuleAddress, base_name};

/// An address in the code of any module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The path of the module.
    pub module: String,
    /// As the module's file states it; an offset in the file where its code was not read.
    pub address: Svma,
    /// The function that holds it, demangled; `None` where the code was not read.
    pub function: Option<String>,
    /// How many bytes it is behind the function's symbol.
    pub offset: u64,
}

impl Place {
    /// For people: `f`, `f+0x12`, `libc.so.6+0x27c10`.
    pub fn name(&self) -> String {
        match &self.function {
            Some(function) if self.offset == 0 => function.clone(),
            Some(function) => format!("{function}+{:#x}", self.offset),
            None => format!("{}+{:#x}", base_name(&self.module), self.address.0),
        }
    }
}

/// The code that a flow ran through, to name places in it.
pub(super) struct Places<'a> {
    flow: &'a Flow,
    /// By module of the flow.
    codes: Vec<Option<&'a AnalysedModule>>,
}

impl<'a> Places<'a> {
    pub fn of(analysis: &'a Analysis, flow: &'a Flow) -> Self {
        let mut codes: Vec<Option<&AnalysedModule>> = vec![None; flow.modules.len()];
        for module in &analysis.counted {
            let index = analysis.flow.as_ref().and_then(|flow| flow.index_of(module.counts.module));
            if let (Some(index), Code::Read(code)) = (index, &module.counts.code) {
                codes[index].get_or_insert(code);
            }
        }
        Places { flow, codes }
    }

    pub fn of_branch(&self, to: ModuleAddress) -> Place {
        let module = self.flow.modules[to.module].module.path.clone();
        match self.codes[to.module] {
            Some(code) => place_in(code, module, to.at),
            None => Place { module, address: to.at, function: None, offset: 0 },
        }
    }
}

/// A place in code that was read.
pub(super) fn place_in(code: &AnalysedModule, module: String, address: Svma) -> Place {
    let function = code.functions.at(address);
    let offset = function.map_or(0, |id| address.0 - code.functions.get(id).symbol.0);
    Place { module, address, function: function.map(|id| demangle(&code.functions.name(id))), offset }
}
