//! Where branches go.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::Analysis;
use crate::address::{FileOffset, Svma};
use crate::code::{FunctionId, demangle};
use crate::counting::Code;
use crate::flow::{AnalysedFlow, ModuleAddress};
use crate::recording::base_name;

/// An address in the code of any module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The path of the module.
    pub module: Arc<str>,
    /// As the module's file states it; an offset in the file where its code was not read.
    pub address: Svma,
    /// The function that holds it, demangled; `None` where neither code nor name is known.
    pub function: Option<Arc<str>>,
    /// How many bytes it is after the function's symbol.
    pub offset: u64,
}

impl Place {
    /// Where the symbol of the function is that holds it.
    pub fn symbol(&self) -> Option<Svma> {
        self.function.is_some().then(|| Svma(self.address.0 - self.offset))
    }

    /// For people: `f`, `f+0x12`, `libc.so.6+0x27c10`.
    pub fn name(&self) -> String {
        match &self.function {
            Some(function) => in_function(function, self.offset as i64),
            None => format!("{}+{:#x}", base_name(&self.module), self.address.0),
        }
    }
}

/// A place in a function of that name: `main`, `main+0x20`.
pub(crate) fn in_function(name: &str, offset: i64) -> String {
    match offset {
        0 => name.to_owned(),
        offset if offset < 0 => format!("{name}-{:#x}", offset.unsigned_abs()),
        offset => format!("{name}+{offset:#x}"),
    }
}

/// The modules of an analysis and of its flow, to name places in them.
pub(crate) struct Places<'a> {
    /// By index in [`Analysis::counted`].
    counted: Vec<NamedModule<'a>>,
    /// By module of the flow, one of `counted`.
    of_flow: Vec<(Arc<str>, Option<usize>)>,
}

struct NamedModule<'a> {
    path: Arc<str>,
    code: &'a Code,
    /// Names can be long, and many places may be in one function.
    names: RefCell<HashMap<FunctionId, Arc<str>>>,
}

impl<'a> Places<'a> {
    pub fn of(analysis: &'a Analysis) -> Self {
        let named = |module: &'a crate::CountedModule| NamedModule {
            path: analysis.modules.get(module.counts.module).path.as_str().into(),
            code: &module.counts.code,
            names: RefCell::default(),
        };
        let flow = analysis.flow.as_ref().map(AnalysedFlow::flow);
        let modules = flow.iter().flat_map(|flow| &flow.modules);
        let mut of_flow: Vec<(Arc<str>, Option<usize>)> =
            modules.map(|of| (of.module.path.as_str().into(), None)).collect();
        for (index, module) in analysis.counted.iter().enumerate() {
            // Where a module was read, what comes after it are samples at addresses that are no code of it.
            if let Some(of) = analysis.flow.as_ref().and_then(|flow| flow.index_of(module.counts.module)) {
                of_flow[of].1.get_or_insert(index);
            }
        }
        Places { counted: analysis.counted.iter().map(named).collect(), of_flow }
    }

    /// Of an address in a module of the flow.
    pub fn of_branch(&self, to: ModuleAddress) -> Place {
        match &self.of_flow[to.module] {
            (_, Some(index)) => self.in_module(*index, to.at),
            (path, None) => Place { module: path.clone(), address: to.at, function: None, offset: 0 },
        }
    }

    /// Of an address in a module of the analysis.
    pub fn in_module(&self, index: usize, address: Svma) -> Place {
        let NamedModule { path, code, names } = &self.counted[index];
        let named: Option<(Arc<str>, u64)> = match code {
            Code::Read(code) => code.functions.at(address).map(|id| {
                let mut names = names.borrow_mut();
                let name = names.entry(id).or_insert_with(|| demangle(&code.functions.name(id)).into());
                (name.clone(), address.0 - code.functions.get(id).symbol.0)
            }),
            Code::Unread { functions, .. } => functions
                .around(FileOffset(address.0))
                .map(|function| (demangle(&function.name).into(), address.0 - function.start.0)),
        };
        let offset = named.as_ref().map_or(0, |(_, offset)| *offset);
        Place { module: path.clone(), address, function: named.map(|(name, _)| name), offset }
    }
}
